/* A mirror is the drafter's disposable copy of one sequence: it owns the tokens that the lead has committed, and how much of the draft model's cache
 * holds them. Invariant: places [0, cached) of the slot's cache hold tokens[0 .. cached), and cached <= length - 1 when a draft begins; when it
 * goes on, cached is less than the tokens that are there. It may be behind, wrong or gone: only speed depends on it. The drafter's thread alone calls;
 * local, never sends or waits, and allocates at init alone.
 *
 * A drafter that runs ahead drafts for the text as it will be if all its drafts are accepted and the expected token follows them. A Commit that says just
 * that makes what was drafted ahead the draft of the committed text. */
#ifndef TANDEM_DRAFTER_MIRROR_H
#define TANDEM_DRAFTER_MIRROR_H

#include "common/base/arena.h"
#include "common/wire/message.h"

struct mirror {
    int open;
    int slot;
    uint32_t request;
    int context;
    int prompt_count;
    struct sampling sampling;
    struct bias bias;
    uint64_t sampling_digest; /* of sampling and bias */
    int32_t *tokens; /* [context] the committed tokens, then the draft in progress, then the expected token and what is drafted ahead */
    int length;      /* committed */
    uint64_t digest; /* of the committed tokens */
    int cached;
    int wanted;      /* tokens to draft; 0: none are asked for */
    int drafted;     /* tokens of the draft in progress: tokens[length .. length + drafted) */
    int64_t asked_ns;
    struct {
        int length;      /* of the text that is expected; 0: none is */
        uint64_t digest; /* its digest */
        int count;       /* tokens drafted for it: tokens[length .. length + count), */
        int wanted;      /* and how many shall be */
        int is_sent;
    } ahead;
};

size_t mirror_bytes(int context);
void mirror_init(struct mirror *mirror, struct arena *arena, int slot, int context);
/* Starts or restarts the mirror from an Open; the cache of a common prefix stays. Returns 0 when the text does not fit the context. */
int mirror_open(struct mirror *mirror, const struct open_message *open);
void mirror_close(struct mirror *mirror);
/* How many of these leading tokens the cache holds.  tokens: [count] */
int mirror_common(const struct mirror *mirror, const int32_t *tokens, int count);
/* Expects the text in which all drafts are accepted and `token` follows them, which may lie there already. */
void mirror_expect(struct mirror *mirror, int32_t token);
/* Applies a Commit: appends the tokens, truncates the cache. A Commit of tokens that the mirror has already changes nothing. Where the text was expected,
 * what was drafted ahead for it is the draft now, and nothing more is wanted if it was sent. Returns 0, and closes the mirror until the next Open, when the
 * Commit does not continue its tokens. */
int mirror_commit(struct mirror *mirror, const struct commit *commit);

#endif
