/* The doorbells of one host: a counter for each of its ranks, in memory that they share. Ringing adds one to it and wakes its owner where that
 * sleeps, so a rank that has read the counter before it looks for messages cannot miss one. Beside it lies how much the rank has got done, by
 * which others tell slow from stuck. Owned by the host's ranks together, from world_open to world_close; only world.c, record.c, wait.c and
 * pulse.c look inside. */
#ifndef TANDEM_COMMON_WORLD_DOORBELLS_H
#define TANDEM_COMMON_WORLD_DOORBELLS_H

#include "common/world/world.h"
#include <stdatomic.h>

enum loan_told { LOAN_UNTOLD, LOAN_NONE, LOAN_MADE };

struct doorbell {
    _Atomic uint32_t rings;
    _Atomic uint32_t asleep;
    _Atomic uint32_t over; /* the lead says: the job ended in order, and whoever is ended now has nothing to tell */
    _Atomic uint32_t leaves; /* the rank has told its keeper that all is done */
    char apart[48];          /* one doorbell to a cache line */
    _Atomic uint32_t threads; /* of the host's first rank: those that its ranks compute with (world_claim_threads) */
    _Atomic uint32_t warned;  /* of the host's first rank: some rank has said that too many were asked for (world_threads) */
    char apart_too[56];
    _Atomic uint64_t made; /* things that the rank has got done (common/base/progress.h) */
    _Atomic uint64_t afar; /* of the host's first rank: pulses of ranks of other hosts (pulse.h) */
    char apart_also[48];
    _Atomic uint32_t lends; /* what the rank lends the others: enum loan_told */
    struct arena_loan loan;
};

struct doorbells {
    MPI_Win window;
    struct doorbell *mine;
    struct doorbell *first; /* of the host's first rank */
    struct doorbell *of[WORLD_MAX_RANKS]; /* by world rank; NULL on another host */
    uint64_t heard;    /* world_progress when this rank last listened */
    int64_t listen_ns; /* when it listens again */
};

/* Collective over the ranks of the host. */
enum status doorbells_open(struct world *world);
/* Collective over the ranks of the host. */
void doorbells_close(struct world *world);

#endif
