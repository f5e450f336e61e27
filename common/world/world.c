/* Starting and ending MPI, and the roles. Roles come from the programs themselves (srun gives every rank application number 0), are
 * gathered once, and never change. */
#include "common/world/world.h"

#include "common/base/cores.h"
#include "common/base/log.h"
#include "common/base/patience.h"
#include "common/base/progress.h"
#include "common/base/recorder.h"
#include "common/base/try.h"
#include "common/world/doorbells.h"
#include "common/world/keeper.h"
#include "common/world/life.h"
#include "common/world/pulse.h"
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* How long a rank that ended well waits for the others before it ends alone, and what one look may count. */
#define END_DEADLINE_NS (10 * (int64_t)1000000000)
#define END_ABSENT_NS ((int64_t)200 * 1000000) /* where some have ended, the others need only this */
#define END_LATE_NS ((int64_t)3 * 1000000000) /* where some did not keep up: they may hang, or be slow */
#define END_LOOK_NS ((int64_t)100 * 1000000)
#define END_FOLLOW_NS ((int64_t)2 * 1000000000) /* longer for those that do not lead: the lead knows how the job ended */

struct introduction {
    int role;
    char host[WORLD_HOST_BYTES];
};

enum status world_mpi_failed(const char *call, const char *file, int line, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "MPI did not start";
    int length = 0, started = 0;

    MPI_Initialized(&started);
    if (started) /* before that the library has no words, and ends a process that asks for them */
        MPI_Error_string(code, text, &length);
    log_error("%s failed at %s:%d: %s", call, file, line, text);
    return STATUS_IO;
}

/* Open MPI prints the stack of a process that crashes. The first time that anybody does, the C library loads what unwinds the stack, and in
 * a process that crashed inside malloc or dlopen it then waits for itself, for ever. */
static void load_unwinder(void)
{
    void *frame;

    (void)backtrace(&frame, 1);
}

static void read_boot(char boot[WORLD_BOOT_BYTES])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");

    if (file == NULL)
        return;
    if (fscanf(file, "%39s", boot) != 1)
        boot[0] = '\0';
    fclose(file);
}

/* What is longer than its eager limit Open MPI sends in parts, the later ones when the sender looks at MPI again: a drafter that has sent a proposal
 * goes on with the next, and a proposal with many q would wait for the end of its step. Within a host the limit is 4 KiB unless somebody says
 * otherwise, in the environment or to mpirun; a file of Open MPI's own parameters is overridden. `vader` is `sm` from Open MPI 5 on. */
static void send_at_once(void)
{
    char limit[16];

    snprintf(limit, sizeof limit, "%d", WORLD_EAGER_BYTES);
    setenv("OMPI_MCA_btl_vader_eager_limit", limit, 0);
    setenv("OMPI_MCA_btl_sm_eager_limit", limit, 0);
}

static enum status start_mpi(int *argc, char ***argv, struct world *world)
{
    int provided;

    load_unwinder();
    cores_take_short_turns(); /* before MPI starts its threads */
    send_at_once();
    TRY_MPI(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided));
    TRY_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    TRY_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &world->rank));
    TRY_MPI(MPI_Comm_size(MPI_COMM_WORLD, &world->size));
    TRY_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &world->wire));
    TRY_MPI(MPI_Comm_split(MPI_COMM_WORLD, (int)world->role, world->rank, &world->role_comm));
    TRY_MPI(MPI_Comm_rank(world->role_comm, &world->role_rank));
    TRY_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world->rank, MPI_INFO_NULL, &world->node));
    TRY_MPI(MPI_Comm_rank(world->node, &world->node_rank));
    TRY_MPI(MPI_Comm_size(world->node, &world->node_size));
    world->spread = world->node_size < world->size;
    world->cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    gethostname(world->host, sizeof world->host - 1);
    read_boot(world->boot);
    return STATUS_OK;
}

static enum status learn_roles(struct world *world)
{
    struct introduction mine = {.role = (int)world->role}, *all;

    if (world->size > WORLD_MAX_RANKS) {
        if (world->rank == 0)
            log_error("%d ranks, at most %d are supported", world->size, WORLD_MAX_RANKS);
        return STATUS_USAGE;
    }
    all = calloc((size_t)world->size, sizeof *all);
    world->verifier_rank = calloc((size_t)world->size, sizeof(int));
    world->drafter_rank = calloc((size_t)world->size, sizeof(int));
    if (all == NULL || world->verifier_rank == NULL || world->drafter_rank == NULL) {
        free(all);
        log_error("no memory for the table of %d ranks", world->size);
        return STATUS_INTERNAL;
    }
    memcpy(mine.host, world->host, sizeof mine.host);
    int code = MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; code == MPI_SUCCESS && i < world->size; i++)
        if (all[i].role == ROLE_VERIFIER)
            world->verifier_rank[world->verifiers++] = i;
        else
            world->drafter_rank[world->drafters++] = i;
    for (int i = 0; code == MPI_SUCCESS && i < world->size; i++) {
        int is_near = all[i].role == mine.role && strcmp(all[i].host, mine.host) == 0;

        world->node_role_rank += is_near && i < world->rank;
        world->node_role_size += is_near;
    }
    free(all);
    if (code != MPI_SUCCESS)
        return world_mpi_failed("MPI_Allgather of roles and hosts", __FILE__, __LINE__, code);
    world->lead = world->verifiers > 0 ? world->verifier_rank[0] : -1;
    return STATUS_OK;
}

/* What all_arrived does at the end, once at the beginning: Open MPI connects two ranks when they first talk, and what that takes, an address from
 * SLURM's PMIx among it, is not to count against END_DEADLINE_NS. */
static enum status connect_for_the_end(void)
{
    MPI_Request request;

    TRY_MPI(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    TRY_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    return STATUS_OK;
}

enum status world_open(int *argc, char ***argv, enum role role, struct world *world)
{
    *world = (struct world){.role = role, .lead = -1};
    TRY(start_mpi(argc, argv, world));
    TRY(learn_roles(world));
    TRY(connect_for_the_end());
    TRY(life_open(world));
    TRY(doorbells_open(world));
    TRY(pulse_open(world));
    recorder_heed(&world->doorbells->mine->over);
    recorder_catch_signals();
    recorder_note("joins # ranks, # of them drafters", world->size, world->drafters, 0);
    return STATUS_OK;
}

void world_claim_threads(const struct world *world, int threads)
{
    atomic_fetch_add(&world->doorbells->first->threads, (uint32_t)threads);
}

/* One rank says it for its host; a process that is no job has no others. */
static int is_first_to_warn(const struct world *world)
{
    return world->doorbells == NULL || atomic_exchange(&world->doorbells->first->warned, 1) == 0;
}

int world_threads(const struct world *world, int asked, int alone)
{
    int own = cores_count_own();

    if (asked > own && is_first_to_warn(world))
        log_warn("--threads %d, but a rank may run on %d core%s here: more threads than that would only wait for each other, and are not "
                 "started",
                 asked, own, own == 1 ? "" : "s");
    return cores_share(asked, alone ? world->node_role_size : world->node_size);
}

/* The n-th of the cores, and `count - 1` behind it. */
static void choose_cores(const cpu_set_t *cores, int n, int count, cpu_set_t *chosen)
{
    CPU_ZERO(chosen);
    for (int core = 0; core < CPU_SETSIZE && count > 0; core++)
        if (CPU_ISSET(core, cores) && n-- <= 0) {
            CPU_SET(core, chosen);
            count--;
        }
}

void world_keep_apart(const struct world *world, int threads)
{
    const cpu_set_t *own = cores_own();
    cpu_set_t chosen;

    if (own == NULL || CPU_COUNT(own) < world->cores || world->node_size <= world->cores || world->node_role_size * threads > world->cores)
        return;
    choose_cores(own, world->node_role_rank * threads, threads, &chosen);
    if (sched_setaffinity(0, sizeof chosen, &chosen) == 0) /* where it is not allowed the rank is as well off as before */
        log_debug("keeps to cores %d to %d of this host's %d, which its ranks share", world->node_role_rank * threads,
                  (world->node_role_rank + 1) * threads - 1, world->cores);
}

struct standing {
    int status;
    int rank;
};

static enum status agree(struct world *world, const struct standing *mine, struct standing *worst)
{
    MPI_Request request;

    TRY_MPI(MPI_Iallreduce(mine, worst, 1, MPI_2INT, MPI_MAXLOC, world->wire, &request)); /* of equals the lowest rank */
    world_await(world, &request);
    return STATUS_OK;
}

enum status world_agree(struct world *world, enum status status)
{
    struct standing mine = {.status = (int)status, .rank = world->rank}, worst = mine;
    const char *before = progress_doing("waiting for the other ranks to come as far");
    enum status agreed = agree(world, &mine, &worst);

    (void)progress_doing(before);
    log_let_go(agreed != STATUS_OK || worst.rank == world->rank);
    TRY(agreed);
    recorder_note("all agree on status #", worst.status, 0, 0);
    return (enum status)worst.status;
}

int world_is_launched(void)
{
    return getenv("PMIX_RANK") != NULL || getenv("PMI_RANK") != NULL || getenv("OMPI_COMM_WORLD_RANK") != NULL;
}

static int some_is_gone(const struct world *world)
{
    for (int i = 0; i < world->size; i++)
        if (world_is_gone(world, i))
            return 1;
    return 0;
}

/* Between two looks of a wait that has a deadline of its own. */
static void rest(void)
{
    progress_excused("waiting for the others to end");
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

/* Has every rank come to its end? A rank that hangs must not keep the others from ending. */
static int all_arrived(struct world *world)
{
    MPI_Request request;
    int64_t follow = world->rank == world->lead ? 0 : END_FOLLOW_NS;
    int64_t limit = (world->absent > 0 ? END_LATE_NS : END_DEADLINE_NS) + follow;
    struct patience patience = patience_begin(END_LOOK_NS);
    int arrived = 0, gone = 0;

    /* Not on the wire: a rank that could not begin an operation there comes here, while the others are still in it. */
    if (MPI_Ibarrier(MPI_COMM_WORLD, &request) != MPI_SUCCESS)
        return 0;
    for (;;) {
        if (MPI_Test(&request, &arrived, MPI_STATUS_IGNORE) != MPI_SUCCESS || arrived || patience_spent(&patience) > limit)
            return arrived;
        if (!gone && some_is_gone(world)) {
            gone = 1;
            world->absent += world->absent == 0;
            limit = END_ABSENT_NS + follow;
            patience_renew(&patience);
        }
        rest();
    }
}

/* Leaves: tells the keeper that all is done, and the lead that it knows. On the lead: does every rank of this host? For one that was lost between its
 * arrival and here MPI_Finalize would wait for ever, since the keeper of a drafter holds its place until the launcher ends it. */
static int all_leave(struct world *world)
{
    struct patience patience = patience_begin(END_LOOK_NS);

    keeper_close();
    atomic_store(&world->doorbells->mine->leaves, 1);
    for (int i = 0; world->rank == world->lead && i < world->size; i++) {
        const struct doorbell *bell = world->doorbells->of[i];

        while (bell != NULL && !atomic_load(&bell->leaves)) {
            if (world_is_gone(world, i)) {
                world->absent++;
                return 0;
            }
            if (patience_spent(&patience) > END_DEADLINE_NS)
                return 0;
            rest();
        }
    }
    return 1;
}

/* The job ended in order, and whoever is ended now has nothing to tell: on other hosts because it has come this far itself, on this one
 * also when it hangs. The lead alone may yet find that somebody is missing. */
static void quiet_recorders(struct world *world)
{
    if (world->rank != world->lead)
        recorder_close();
    for (int i = 0; world->rank == world->lead && i < world->size; i++)
        if (i != world->rank && world->doorbells->of[i] != NULL)
            atomic_store(&world->doorbells->of[i]->over, 1);
}

void world_close(struct world *world, enum status status)
{
    quiet_recorders(world);
    if (!all_arrived(world) || !all_leave(world)) {
        if (world->rank == world->lead && world->absent == 0) {
            log_warn("some rank did not come to the end within %d s: ending the job without it", (int)(END_DEADLINE_NS / 1000000000));
            recorder_dump("not all ranks came to the end");
        }
        recorder_close();
        MPI_Abort(MPI_COMM_WORLD, (int)status);
    }
    recorder_close();
    recorder_heed(NULL);
    pulse_close(world);
    doorbells_close(world);
    life_close(world);
    MPI_Comm_free(&world->node);
    MPI_Comm_free(&world->role_comm);
    MPI_Comm_free(&world->wire);
    free(world->verifier_rank);
    free(world->drafter_rank);
    MPI_Finalize();
}

void world_abort(enum status status)
{
    int started = 0;

    log_let_go(1);
    recorder_dump("this rank ends the job");
    MPI_Initialized(&started);
    if (started)
        MPI_Abort(MPI_COMM_WORLD, (int)status);
    _exit((int)status);
}
