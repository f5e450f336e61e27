#include "drafter/mirror.h"

#include "common/base/clock.h"
#include "common/base/digest.h"
#include <string.h>

size_t mirror_bytes(int context)
{
    return arena_round((size_t)(context + MESSAGE_MAX_DRAFT + 1) * sizeof(int32_t));
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

static void drop_branches(struct mirror *mirror)
{
    mirror->ahead.is_planned = mirror->ahead.has_looked = 0;
    mirror->ahead.branches = 0;
    mirror->tree.count = 0;
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
    mirror->opened++;
    mirror->request = open->request;
    mirror->line = open->line;
    mirror->pass = open->pass;
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
    mirror->wanted = mirror->asked = (int)open->draft_length;
    mirror->shape = (enum tree_kind)open->shape;
    mirror->drafted = mirror->begun = mirror->is_stopped = 0;
    drop_branches(mirror);
    mirror->asked_ns = clock_ns();
    return 1;
}

void mirror_close(struct mirror *mirror)
{
    mirror->open = 0;
    mirror->wanted = 0;
    mirror->drafted = mirror->is_stopped = 0;
    drop_branches(mirror);
}

/* Where the branch that all drafts and the best guess behind them make goes on in the cache: as it will lie there when it is committed. */
static int straight_place(const struct mirror *mirror)
{
    return mirror->length + mirror->drafted;
}

int mirror_branch_length(const struct mirror *mirror)
{
    return mirror->is_stopped ? mirror->asked : mirror->drafted;
}

/* The next place for another branch, which is to be copied: beyond all places that it may be copied to. Each has room for its guess and as many
 * drafts. */
static int next_place(const struct mirror *mirror)
{
    int room = mirror_branch_length(mirror) + 1, place = straight_place(mirror) + room;

    for (int i = 0; i < mirror->ahead.branches; i++)
        if (mirror->ahead.branch[i].place != straight_place(mirror))
            place += room;
    return place;
}

/* The first output of the slot that neither the draft nor a branch has. */
static int free_output(const struct mirror *mirror)
{
    int output = 0, is_taken = 1;

    for (output = -1; is_taken;) {
        is_taken = ++output == mirror->output;
        for (int i = 0; i < mirror->ahead.branches; i++)
            is_taken |= mirror->ahead.branch[i].output == output;
    }
    return output;
}

int mirror_branch(struct mirror *mirror, int after, int guess)
{
    int is_straight = after == mirror->drafted && guess == 0, place = is_straight ? straight_place(mirror) : next_place(mirror);
    int wanted = mirror_branch_length(mirror), end = place + wanted;
    struct branch *branch = &mirror->ahead.branch[mirror->ahead.branches];

    if (mirror->ahead.branches == MIRROR_BRANCHES || end - mirror->length > MIRROR_ROOM || end >= mirror->context)
        return 0;
    *branch = (struct branch){.after = after, .guess = guess, .place = place, .wanted = wanted, .output = free_output(mirror)};
    mirror->tokens[place] = mirror->ahead.guesses[after].token[guess];
    branch->digest = digest_tokens(digest_tokens(mirror->digest, mirror->tokens + mirror->length, after), mirror->tokens + place, 1);
    mirror->ahead.branches++;
    return 1;
}

int mirror_expected(const struct mirror *mirror, const struct commit *commit)
{
    for (int i = 0; i < mirror->ahead.branches; i++)
        if ((int)commit->old_length == mirror->length && commit->count == mirror->ahead.branch[i].after + 1 &&
            commit->digest == mirror->ahead.branch[i].digest)
            return i;
    return -1;
}

int mirror_grow(struct mirror *mirror, int parent, int32_t token)
{
    struct mirror_tree *tree = &mirror->tree;
    int i = tree->count;

    if (i == MIRROR_ROOM || mirror->length + i >= mirror->context)
        return -1;
    mirror->tokens[mirror->length + i] = token;
    tree->parent[i] = (int8_t)parent;
    tree->depth[i] = (int8_t)(parent < 0 ? 1 : tree->depth[parent] + 1);
    tree->path[i] = (parent < 0 ? 0 : tree->path[parent]) | UINT64_C(1) << i;
    return tree->count++;
}

/* The token of the tree that follows its `at`-th and is this one; -1: there is none. */
static int child_of(const struct mirror *mirror, int at, int32_t token)
{
    for (int i = at + 1; i < mirror->tree.count; i++)
        if (mirror->tree.parent[i] == at && mirror->tokens[mirror->length + i] == token)
            return i;
    return -1;
}

/* How many of the tokens are a path of the tree.  path: [count] the tokens of the tree that they are */
static int path_of(const struct mirror *mirror, const int32_t *tokens, int count, int *path)
{
    int found = 0;

    for (int at = -1; found < count && (at = child_of(mirror, at, tokens[found])) >= 0; found++)
        path[found] = at;
    return found;
}

int mirror_path(const struct mirror *mirror, const struct commit *commit, struct mirror_move *moves)
{
    int path[MESSAGE_MAX_COMMIT], count = 0, found = 0;

    if ((int)commit->old_length == mirror->length)
        found = path_of(mirror, commit->tokens, commit->count, path);
    for (int i = 0; i < found; i++)
        if (path[i] != i)
            moves[count++] = (struct mirror_move){mirror->length + path[i], mirror->length + i, 1};
    return count;
}

/* Has the mirror all of this already? So it is when a Commit comes twice, or after a later one. */
static int is_known(const struct mirror *mirror, const struct commit *commit)
{
    int64_t end = (int64_t)commit->old_length + commit->count;

    return end <= mirror->length && digest_tokens(DIGEST_EMPTY, mirror->tokens, (int)end) == commit->digest;
}

/* What was drafted in the branch is the draft of the text, which is committed now. The lead takes no more of it than it asked for. */
static void take_branch(struct mirror *mirror, const struct branch *branch, struct mirror_move *move)
{
    int drafted = branch->count < mirror->wanted ? branch->count : mirror->wanted, fed = branch->count - branch->copies;

    memmove(mirror->tokens + mirror->length, mirror->tokens + branch->place + 1, (size_t)drafted * sizeof *mirror->tokens);
    fed = fed < drafted ? fed : drafted;
    if (branch->place != mirror->length - 1)
        *move = (struct mirror_move){branch->place, mirror->length - 1, fed};
    mirror->drafted = mirror->begun = drafted;
    mirror->is_stopped = branch->is_stopped && drafted < mirror->asked;
    mirror->reach = branch->reach;
    mirror->output = branch->output;
    mirror->wanted = branch->is_sent ? 0 : mirror->wanted;
    mirror->cached = mirror->length - 1 + fed;
}

int mirror_commit(struct mirror *mirror, const struct commit *commit, struct mirror_move *move)
{
    int keep = (int)commit->keep, expected = mirror_expected(mirror, commit), path[MESSAGE_MAX_COMMIT];

    *move = (struct mirror_move){0};
    if (is_known(mirror, commit))
        return 1;
    mirror->wanted = 0;
    if ((int)commit->old_length != mirror->length || mirror->length + commit->count >= mirror->context ||
        digest_tokens(mirror->digest, commit->tokens, commit->count) != commit->digest) {
        mirror_close(mirror);
        return 0;
    }
    /* The cache holds the committed tokens and the drafts that were fed; only those that the commit confirms stay valid. After a round without this
     * proposal the committed tokens may differ from the drafts that were fed. */
    for (int i = 0; i < commit->count; i++)
        if (mirror->length + i < mirror->cached && mirror->tokens[mirror->length + i] != commit->tokens[i])
            mirror->cached = mirror->length + i;
    if (mirror->tree.count > 0)
        mirror->cached = mirror->length + path_of(mirror, commit->tokens, commit->count, path);
    memcpy(mirror->tokens + mirror->length, commit->tokens, (size_t)commit->count * sizeof *commit->tokens);
    mirror->length += commit->count;
    mirror->digest = commit->digest;
    mirror->drafted = mirror->begun = mirror->is_stopped = 0;
    mirror->wanted = mirror->asked = (int)commit->draft_length;
    mirror->shape = (enum tree_kind)commit->shape;
    mirror->cached = mirror->cached < keep ? mirror->cached : keep;
    if (mirror->cached > mirror->length - 1)
        mirror->cached = mirror->length - 1;
    if (expected >= 0 && mirror->cached == mirror->length - 1)
        take_branch(mirror, &mirror->ahead.branch[expected], move);
    drop_branches(mirror);
    mirror->asked_ns = clock_ns();
    return 1;
}
