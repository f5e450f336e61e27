/* The bells of one host: a word for each of its ranks in a page that they share. Ringing counts the word up and wakes its owner when it
 * sleeps. Beside it stands what the rank has got done. Only world.c, record.c, wait.c and pulse.c look inside. */
#ifndef TANDEM_COMMON_WORLD_BELLS_H
#define TANDEM_COMMON_WORLD_BELLS_H

#include "common/world/world.h"
#include <stdatomic.h>

struct bell {
    _Atomic uint32_t rings;
    _Atomic uint32_t asleep;
    _Atomic uint32_t over; /* the lead says: the job ended in order, and whoever is ended now has nothing to tell */
    char apart[52];        /* one bell to a cache line */
    _Atomic uint32_t threads; /* of the host's first rank: those that its ranks compute with (world_claim_threads) */
    _Atomic uint32_t warned;  /* of the host's first rank: some rank has said that too many were asked for (world_threads) */
    char apart_too[56];
    _Atomic uint64_t made; /* things that the rank has got done (common/base/progress.h) */
    _Atomic uint64_t afar; /* of the host's first rank: pulses of ranks of other hosts (pulse.h) */
    char apart_also[48];
};

struct bells {
    MPI_Win window;
    struct bell *mine;
    struct bell *first; /* of the host's first rank */
    struct bell *of[WORLD_MAX_RANKS]; /* by world rank; NULL on another host */
    uint64_t heard;    /* world_progress when this rank last listened */
    int64_t listen_ns; /* when it listens again */
};

/* Collective over the ranks of the host. */
enum status bells_open(struct world *world);
/* Collective over the ranks of the host. */
void bells_close(struct world *world);

#endif
