/* A mirror is the drafter's disposable copy of one sequence: it owns the tokens that the lead has committed, and how much of the draft model's cache
 * holds them. Invariant: places [0, cached) of the slot's cache hold tokens[0 .. cached), and cached <= length - 1 when a draft begins. It may be
 * behind, wrong or gone: only speed depends on it. The drafter's thread alone calls; local, never sends or waits, and allocates at init alone. */
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
    int32_t *tokens; /* [context] the committed tokens, then the draft in progress */
    int length;      /* committed */
    uint64_t digest; /* of the committed tokens */
    int cached;
    int wanted;      /* tokens to draft; 0: none are asked for */
    int drafted;     /* tokens of the draft in progress: tokens[length .. length + drafted) */
    int64_t asked_ns;
};

size_t mirror_bytes(int context);
void mirror_init(struct mirror *mirror, struct arena *arena, int slot, int context);
/* Starts or restarts the mirror from an Open; the cache of a common prefix stays. Returns 0 when the text does not fit the context. */
int mirror_open(struct mirror *mirror, const struct open_message *open);
void mirror_close(struct mirror *mirror);
/* How many of these leading tokens the cache holds.  tokens: [count] */
int mirror_common(const struct mirror *mirror, const int32_t *tokens, int count);
/* Applies a Commit: appends the tokens, truncates the cache. A Commit of tokens that the mirror has already changes nothing. Returns 0, and closes
 * the mirror until the next Open, when the Commit does not continue its tokens. */
int mirror_commit(struct mirror *mirror, const struct commit *commit);

#endif
