/* A mirror is the drafter's disposable copy of one sequence: the tokens that the lead has committed, and how much of the draft model's
 * cache still holds them. It may be behind, wrong or gone; nothing but speed depends on it.
 *
 * Invariant: the cache places [0, cached) of the slot hold tokens[0 .. cached). When a draft begins cached <= length - 1; when it goes on, at most one less
 * than the tokens that are there, the drafted ones included.
 *
 * A drafter that runs ahead drafts for the text as it will be if all its drafts are accepted and the token behind them is the one that it expects: the
 * mirror has that text's length and digest, and how many tokens were drafted for it. A Commit that says just that makes them the draft of the committed text. */
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
    uint64_t sampling_digest; /* of both */
    int32_t *tokens; /* [context] committed ones, then the draft in progress, then the expected token and what is drafted ahead */
    int length;      /* committed */
    uint64_t digest; /* of the committed tokens */
    int cached;
    int wanted;      /* tokens to draft; 0: nothing is asked for */
    int drafted;     /* of the draft in progress: tokens[length .. length + drafted) */
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
/* Starts or restarts it from an Open. What the cache holds of the same tokens stays. Returns 0 when it does not fit the context. */
int mirror_open(struct mirror *mirror, const struct open_message *open);
void mirror_close(struct mirror *mirror);
/* How many of these first tokens the cache has.  tokens: [count] */
int mirror_common(const struct mirror *mirror, const int32_t *tokens, int count);
/* Expects the text in which all drafts are accepted and `token` follows them, which may lie there already. */
void mirror_expect(struct mirror *mirror, int32_t token);
/* Applies a Commit: appends, truncates. One of what the mirror has already changes nothing. Where the text was expected, what was drafted for it is the draft, and where it was sent nothing more is wanted. Returns 0 when it does not continue what the mirror has; it then waits for an Open. */
int mirror_commit(struct mirror *mirror, const struct commit *commit);

#endif
