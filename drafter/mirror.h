/* A mirror is the drafter's disposable copy of one sequence: the tokens that the lead has committed, and how much of the draft model's
 * cache still holds them. It may be behind, wrong or gone; nothing but speed depends on it.
 *
 * Invariant: the cache places [0, cached) of the slot hold tokens[0 .. cached), and cached <= length - 1 when a draft begins. */
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
    int32_t *tokens; /* [context] committed ones, then the draft in progress */
    int length;      /* committed */
    uint64_t digest; /* of the committed tokens */
    int cached;
    int wanted;      /* tokens to draft; 0: nothing is asked for */
    int drafted;     /* of the draft in progress: tokens[length .. length + drafted) */
    int64_t asked_ns;
};

size_t mirror_bytes(int context);
void mirror_init(struct mirror *mirror, struct arena *arena, int slot, int context);
/* Starts or restarts it from an Open. What the cache holds of the same tokens stays. Returns 0 when it does not fit the context. */
int mirror_open(struct mirror *mirror, const struct open_message *open);
void mirror_close(struct mirror *mirror);
/* How many of these first tokens the cache has.  tokens: [count] */
int mirror_common(const struct mirror *mirror, const int32_t *tokens, int count);
/* Applies a Commit: appends, truncates. One of what the mirror has already changes nothing. Returns 0 when it does not continue what the mirror has; it then waits for an Open. */
int mirror_commit(struct mirror *mirror, const struct commit *commit);

#endif
