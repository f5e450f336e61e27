#include "drafter/mirror.h"

#include "common/base/clock.h"
#include "common/base/digest.h"
#include <string.h>

size_t mirror_bytes(int context)
{
    return arena_round((size_t)(context + 2 * MESSAGE_MAX_DRAFT + 1) * sizeof(int32_t));
}

void mirror_init(struct mirror *mirror, struct arena *arena, int slot, int context)
{
    *mirror = (struct mirror){.slot = slot, .context = context};
    mirror->tokens = arena_take(arena, mirror_bytes(context));
}

int mirror_common(const struct mirror *mirror, const int32_t *tokens, int count)
{
    int most = mirror->cached < count ? mirror->cached : count, same = 0;

    while (same < most && mirror->tokens[same] == tokens[same])
        same++;
    return same;
}

int mirror_open(struct mirror *mirror, const struct open_message *open)
{
    int same;

    if (open->count >= mirror->context) {
        mirror_close(mirror);
        return 0;
    }
    /* The slot may have the same request (reopened after a gap) or another one with a common prefix: what is cached of these tokens stays valid,
     * because a KV cache depends on tokens alone. */
    same = mirror_common(mirror, open->tokens, open->count);
    memcpy(mirror->tokens, open->tokens, (size_t)open->count * sizeof *mirror->tokens);
    mirror->open = 1;
    mirror->request = open->request;
    mirror->prompt_count = (int)open->prompt_count;
    mirror->sampling = open->sampling;
    if (open->bias != NULL)
        mirror->bias = *open->bias;
    else
        bias_init(&mirror->bias);
    mirror->sampling_digest = bias_digest(open->bias, sampling_digest(&open->sampling));
    mirror->length = open->count;
    mirror->digest = digest_tokens(DIGEST_EMPTY, open->tokens, open->count);
    mirror->cached = same < open->count ? same : open->count - 1;
    mirror->wanted = (int)open->draft_length;
    mirror->drafted = 0;
    mirror->ahead.length = mirror->ahead.is_sent = 0;
    mirror->asked_ns = clock_ns();
    return 1;
}

void mirror_close(struct mirror *mirror)
{
    mirror->open = 0;
    mirror->wanted = 0;
    mirror->drafted = 0;
    mirror->ahead.length = mirror->ahead.is_sent = 0;
}

void mirror_expect(struct mirror *mirror, int32_t token)
{
    int end = mirror->length + mirror->drafted;

    mirror->tokens[end] = token;
    mirror->ahead.length = end + 1;
    mirror->ahead.digest = digest_tokens(mirror->digest, mirror->tokens + mirror->length, mirror->drafted + 1);
    mirror->ahead.count = mirror->ahead.wanted = mirror->ahead.is_sent = 0;
}

/* Has the mirror all of this already? So it is when a Commit comes twice, or after a later one. */
static int is_known(const struct mirror *mirror, const struct commit *commit)
{
    int64_t end = (int64_t)commit->old_length + commit->count;

    return end <= mirror->length && digest_tokens(DIGEST_EMPTY, mirror->tokens, (int)end) == commit->digest;
}

int mirror_commit(struct mirror *mirror, const struct commit *commit)
{
    int keep = (int)commit->keep;

    if (is_known(mirror, commit))
        return 1;
    mirror->wanted = 0;
    if ((int)commit->old_length != mirror->length || mirror->length + commit->count >= mirror->context ||
        digest_tokens(mirror->digest, commit->tokens, commit->count) != commit->digest) {
        mirror_close(mirror);
        return 0;
    }
    /* The cache holds the committed tokens and all drafts but the last; only those that the commit confirms stay valid. After a round without this
     * proposal the committed tokens may differ from the drafts that were fed. */
    for (int i = 0; i < commit->count; i++)
        if (mirror->length + i < mirror->cached && mirror->tokens[mirror->length + i] != commit->tokens[i])
            mirror->cached = mirror->length + i;
    memcpy(mirror->tokens + mirror->length, commit->tokens, (size_t)commit->count * sizeof *commit->tokens);
    mirror->length += commit->count;
    mirror->digest = commit->digest;
    mirror->drafted = 0;
    mirror->wanted = (int)commit->draft_length;
    if (mirror->ahead.length == mirror->length && mirror->ahead.digest == mirror->digest && mirror->length <= keep + 1) {
        mirror->drafted = mirror->ahead.count < mirror->wanted ? mirror->ahead.count : mirror->wanted; /* the lead takes no more */
        mirror->wanted = mirror->ahead.is_sent ? 0 : mirror->wanted;
        keep += mirror->drafted;
    }
    mirror->ahead.length = mirror->ahead.is_sent = 0;
    mirror->cached = mirror->cached < keep ? mirror->cached : keep;
    if (mirror->cached > mirror->length + mirror->drafted - 1)
        mirror->cached = mirror->length + mirror->drafted - 1;
    mirror->asked_ns = clock_ns();
    return 1;
}
