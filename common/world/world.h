/* The ranks of one job: who they are, on which host, in which role, and how a rank waits without stealing a core. world_open and
 * world_close are the only places that start and end MPI, and only this folder may abort the job.
 *
 * Waiting. MPI wakes nobody: a receiver polls. Ranks of one host share a page of doorbells: a sender rings the receiver's doorbell after
 * sending, and a waiting rank polls for a short while and then sleeps in the kernel on its doorbell, so that it wakes within
 * microseconds and costs nothing meanwhile. Messages from other hosts ring no doorbell; a sleeper that expects one naps in short turns. */
#ifndef TANDEM_COMMON_WORLD_WORLD_H
#define TANDEM_COMMON_WORLD_WORLD_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include <mpi.h>
#include <stdint.h>

enum role { ROLE_DRAFTER, ROLE_VERIFIER };
enum {
    WORLD_MAX_RANKS = 1024,
    WORLD_HOST_BYTES = 64,
    WORLD_BOOT_BYTES = 40,
    WORLD_EAGER_BYTES = 32768 /* of a message within a host, with what MPI adds: up to there it is gone once it is sent */
};

struct world {
    int rank;
    int size;
    enum role role;
    int role_rank; /* among the ranks of its role */
    int node_rank; /* among the ranks of this host */
    int node_size;
    int node_role_rank; /* among the ranks of its role on this host */
    int node_role_size;
    int spread; /* some rank is on another host */
    int verifiers;
    int drafters;
    int lead;          /* world rank of the lead verifier; -1 when there is none */
    int *verifier_rank; /* [verifiers] world ranks */
    int *drafter_rank;  /* [drafters] */
    int cores;         /* of this host */
    char host[WORLD_HOST_BYTES];
    char boot[WORLD_BOOT_BYTES]; /* the kernel's id of this host's start, which no other host has; empty where it does not say */
    MPI_Comm wire; /* every rank; the wire's own */
    MPI_Comm role_comm; /* the ranks of this role, in world order */
    MPI_Comm node; /* the ranks of this host */
    struct doorbells *doorbells;
    struct pulse *pulse; /* NULL where all ranks are on one host */
    int *life; /* [size] a descriptor of the rank's process, -1 where there is none: life.c */
    int absent; /* ranks that the lead knows not to come to the end */
};

/* Collective over all ranks. Starts MPI (errors return), learns the roles. */
enum status world_open(int *argc, char ***argv, enum role role, struct world *world);
/* Collective over all ranks. Waits for the others, but not for ever: where some rank hangs, sooner where world->absent says so, the
 * lead ends the job with `status`, which is what this rank ends with. */
void world_close(struct world *world, enum status status);
/* Local. Whether a launcher (mpirun, srun) started this process among others: known before MPI is. */
int world_is_launched(void);
/* Collective over all ranks: the largest status of any, so that all go on or all stop. Errors that were held (log_hold) are told by
 * the first rank that is wrong, and by no other. */
enum status world_agree(struct world *world, enum status status);
/* Local, before world_open. Where this process writes its last events when the job breaks: `folder`, or when that is NULL one in TMPDIR
 * that is named for the job, so that the ranks of a host share it. */
void world_record(const char *folder, const char *who);
/* Local. From here on world_is_gone knows when `rank`, which has this pid on `host`, ends. Processes of other hosts, and where the kernel is
 * older than 5.3 those of this one, are not seen. */
void world_watch(struct world *world, int rank, const char *host, uint32_t pid);
/* Local. Whether the rank's process is known to have ended. */
int world_is_gone(const struct world *world, int rank);
/* Local. Ends the whole job at once with `status` as its exit code. */
void world_abort(enum status status) __attribute__((noreturn));

/* How long waits of one kind usually are: those of one place in the program, for one thing. All zero: none has ended yet. */
struct wait_usual {
    int64_t ns;
    int64_t most_ns; /* the longest that are looked through without sleeping; 0: a few milliseconds */
};

/* A wait in progress. Start one with world_wait_begin before the first look for what is awaited; call world_wait_step after each
 * look that found nothing. The order matters: a ring between begin and step is never lost. */
struct wait {
    int64_t started_ns;
    int64_t look_ns; /* until then it looks without sleeping */
    uint32_t heard;  /* the doorbell's value at the last look */
    int looks;       /* since the beginning, or since the last ring */
    int naps;        /* how often it slept */
    struct wait_usual *usual; /* borrowed; NULL: nobody counts such waits */
    int deaf;        /* what is awaited may ring no doorbell: begin sets it where ranks are on several hosts, and the caller may */
    int settled;     /* the caller sets it where nothing is on its way that asks for this rank's looks; a ring still ends the sleep at once */
    int64_t rung_ns; /* when it last rang, or the wait began */
};

/* Local. */
void world_wait_begin(const struct world *world, struct wait *wait);
/* Local. The same for a wait of a kind: where it usually ends soon, and no other thread needs the core, it looks until it should have ended, for a
 * sleeper wakes late. */
void world_wait_begin_usual(const struct world *world, struct wait *wait, struct wait_usual *usual);
/* Local. To be called when what such a wait was for is there, and not when it was given up: its length counts. */
void world_wait_end(const struct wait *wait, int64_t now);
/* Pure. How long a sleep that begins now lasts at most. */
int64_t world_wait_nap_ns(const struct wait *wait, int64_t now);
/* Local. Spins, yields, then sleeps until the doorbell rings, at most until deadline_ns (clock_ns) and never long. */
void world_wait_step(const struct world *world, struct wait *wait, int64_t deadline_ns);
/* Collective over `comm`. Until all have come: before calls of MPI that wait inside the library, where nobody can tell who works from who hangs. */
enum status world_meet(const struct world *world, MPI_Comm comm);
/* Local. Ends when the operation of several ranks has. Such a wait is no hang while other ranks get something done, and it leaves its core to them.
 * Where MPI cannot tell, the job ends: the operation may still use its memory, which could never be freed. */
void world_await(const struct world *world, MPI_Request *request);
/* Local. Changes whenever another rank gets something done (common/base/progress.h): on another host within a second, where it must be able to
 * tell. What a wait listens to. */
uint64_t world_progress(const struct world *world);
/* Local. Threads that this rank may use: `asked`, or when that is 0 this host's cores over its ranks, over those of its own role where they alone
 * compute or compute in turns with the others (`alone`), but no more than the cores that it may run on: where more are asked for a line says so,
 * once on a host. */
int world_threads(const struct world *world, int asked, int alone);
/* Local. Tells the ranks of this host that this one computes with so many threads: where all together have more than there are cores, a wait
 * soon gives its core away. */
void world_claim_threads(const struct world *world, int threads);
/* Local. How many all ranks of this host have claimed so far. */
int world_claimed_threads(const struct world *world);
/* Local. Have the ranks of this host more threads than it has cores, by what they have claimed so far? */
int world_is_crowded(const struct world *world);
/* Local, before this rank's threads start. Where a host has more ranks than cores, but one for each thread of the ranks of this role, they keep to
 * cores of their own: they compute at once and wait for each other, and the kernel would put two of them on one core for milliseconds after a rank
 * of the other role has had the other. Not where who started the rank has bound it. */
void world_keep_apart(const struct world *world, int threads);
/* Local. Tells the ranks of this host what memory this rank lends them; NULL: none, which a later call may say again. */
void world_lend(const struct world *world, const struct arena_loan *loan);
/* Local. Waits until that rank has told, if it is on this host: 1, and what it lends; 0: it lends nothing. Such a wait is no hang while other ranks
 * get something done. */
int world_borrow(const struct world *world, int rank, struct arena_loan *loan);
/* Local. Rings every verifier of this host: a step is about to begin, and sleepers had better wake up. */
void world_ring_verifiers(const struct world *world);
/* Local. Wakes `rank` (of the world) if it is on this host; call after what it waits for can be seen. */
void world_ring(const struct world *world, int rank);

/* TRY_MPI(call): returns STATUS_IO from the caller with the library's own words. */
enum status world_mpi_failed(const char *call, const char *file, int line, int code);
#define TRY_MPI(call)                                                                                                              \
    do {                                                                                                                           \
        int try_code_ = (call);                                                                                                    \
        if (try_code_ != MPI_SUCCESS)                                                                                              \
            return world_mpi_failed(#call, __FILE__, __LINE__, try_code_);                                                         \
    } while (0)

#endif
