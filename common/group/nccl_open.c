/* Making and ending the group over NCCL. Each step that can fail on one rank alone ends in an agreement over the host's group, so that all
 * ranks go on or none does: a rank that waited in a collective for one that gave up would wait for ever. */
#include "common/group/nccl.h"

#include "common/base/log.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CLOSE_PATIENCE_S = 5, /* less than a job's end waits for its ranks */
    LEAST_SUM = 256,      /* numbers of the first sum, less than a part has */
    STRIDE = 4,           /* from one size of the first sums to the next */
    MOST_AT_ONCE = 32 << 20, /* bytes of a sum; more go in parts */
    MOST_GATHERED = 4 << 20, /* bytes of which everybody's are gathered, of few ranks */
    SPARED = 4500000,        /* bytes that pass in the time of a further exchange: 15 us at 300 GB/s, by arithmetic */
    LONGEST_LOOK_NS = 200000000, /* at a device, before a wait sleeps: longer than a step of decoding takes */
    MOST_BUFFER = 64 << 20, /* of memory that is lent; who needs more has plain memory for all */
};

/* Who a rank is, as the others see it. */
struct place {
    char host[WORLD_HOST_BYTES], boot[WORLD_BOOT_BYTES];
    int rank; /* of the world */
    int pid;
    int number; /* of its device */
    char device[64];
    char bus[32], uuid[48];
    int version; /* of its NCCL */
    int windows; /* has it symmetric ones? */
};

static void describe_self(struct nccl *nccl)
{
    const struct backend_device *device = nccl->device;

    snprintf(nccl->who, sizeof nccl->who, "rank %d (host %s, device %d [%s] %s)", nccl->world->rank, nccl->world->host, device->number,
             device->place, device->name);
}

static struct place place_of(const struct nccl *nccl)
{
    struct place place = {.rank = nccl->world->rank,
                          .pid = (int)getpid(),
                          .number = nccl->device->number,
                          .version = nccl->library.version,
                          .windows = nccl->library.comm_window_register != NULL};

    memcpy(place.host, nccl->world->host, sizeof place.host);
    memcpy(place.boot, nccl->world->boot, sizeof place.boot);
    memcpy(place.device, nccl->device->name, sizeof place.device);
    memcpy(place.bus, nccl->device->place, sizeof place.bus);
    memcpy(place.uuid, nccl->device->uuid, sizeof place.uuid);
    return place;
}

/* As nccl-tests prints it. */
static void show_places(const struct place *place, int count)
{
    for (int i = 0; i < count; i++)
        log_debug("#  Rank %2d Group  0 Pid %6d on %10s device %2d [%s] %s, NCCL %d.%d.%d", place[i].rank, place[i].pid, place[i].host,
                  place[i].number, place[i].bus, place[i].device, place[i].version / 10000, place[i].version / 100 % 100,
                  place[i].version % 100);
}

/* Hosts made from one image may have one name, and containers of one host several: neither reaches the other's memory. */
static int is_one_host(const struct place *one, const struct place *other)
{
    return strcmp(one->host, other->host) == 0 && strcmp(one->boot, other->boot) == 0;
}

/* In two containers, too, and two parts of one device (MIG) as well: NCCL knows devices by their bus ids. */
static int is_one_device(const struct place *one, const struct place *other)
{
    if (is_one_host(one, other) && strcmp(one->bus, other->bus) == 0)
        return 1;
    return one->boot[0] != '\0' && strcmp(one->boot, other->boot) == 0 && strcmp(one->uuid, other->uuid) == 0;
}

/* NCCL hangs, or says so only later, when a device is there twice, or when its versions differ. */
static enum status check_places(const struct place *place, int count)
{
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            if (is_one_device(&place[i], &place[j])) {
                log_error("ranks %d and %d on host %s have the same device %d [%s] %s, and NCCL needs one for each rank: start fewer "
                          "verifiers there, or use --backend cpu",
                          place[j].rank, place[i].rank, place[i].host, place[i].number, place[i].bus, place[i].device);
                return STATUS_USAGE;
            }
    for (int i = 1; i < count; i++)
        if (place[i].version / 100 != place[0].version / 100) {
            log_error("rank %d on host %s has NCCL %d.%d and rank %d on host %s has %d.%d: all verifiers need the same", place[0].rank,
                      place[0].host, place[0].version / 10000, place[0].version / 100 % 100, place[i].rank, place[i].host,
                      place[i].version / 10000, place[i].version / 100 % 100);
            return STATUS_USAGE;
        }
    return STATUS_OK;
}

/* Gathers every rank's place, so that all ranks find the same errors. */
static enum status meet(struct nccl *nccl)
{
    struct group *host = &nccl->host;
    struct place mine = place_of(nccl), *all = calloc((size_t)host->size, sizeof *all);
    enum status status = group_agree(host, all != NULL ? STATUS_OK : STATUS_INTERNAL);

    if (status != STATUS_OK)
        goto free_all;
    TRY_TO(group_gather(host, &mine, sizeof mine, all), free_all);
    TRY_TO(group_broadcast(host, all, (size_t)host->size * sizeof *all), free_all);
    if (host->rank == 0)
        show_places(all, host->size);
    nccl->one_host = 1;
    for (int i = 0; i < host->size; i++) {
        if (!all[i].windows)
            nccl->library.comm_window_register = NULL;
        nccl->one_host &= is_one_host(&all[i], &all[0]);
    }
    status = check_places(all, host->size);

free_all:
    free(all);
    return status;
}

static struct nccl_config config_of(int blocking)
{
    return (struct nccl_config){.size = sizeof(struct nccl_config),
                                .magic = NCCL_CONFIG_MAGIC,
                                .version = NCCL_LEAST_VERSION,
                                .blocking = blocking,
                                .cga_cluster_size = NCCL_UNDEFINED,
                                .min_ctas = NCCL_UNDEFINED,
                                .max_ctas = NCCL_UNDEFINED,
                                .split_share = NCCL_UNDEFINED};
}

/* In order: all ranks have come here, and none has anything under way. */
static enum status end_communicator(struct nccl *nccl)
{
    TRY(nccl_done(nccl, "ncclCommFinalize", nccl->library.comm_finalize(nccl->comm)));
    nccl->library.comm_destroy(nccl->comm);
    nccl->comm = NULL;
    return STATUS_OK;
}

static enum status make_communicator(struct nccl *nccl)
{
    const struct nccl_library *library = &nccl->library;
    struct nccl_config config = config_of(0);
    struct nccl_unique_id id = {{0}};
    enum status status = STATUS_OK;

    if (nccl->host.rank == 0)
        status = nccl_done(nccl, "ncclGetUniqueId", library->get_unique_id(&id));
    TRY(group_agree(&nccl->host, status));
    TRY(group_broadcast(&nccl->host, &id, sizeof id));
    status = nccl_done(nccl, "ncclCommInitRankConfig",
                       library->comm_init_rank_config(&nccl->comm, nccl->host.size, id, nccl->host.rank, &config));
    return group_agree(&nccl->host, status);
}

/* NCCL starts a thread for each call of a communicator that does not block, which a step of many sums would feel. A call of one that blocks asks the
 * device and returns; but nobody could end the waiting if such a one were made and a rank did not come. So the one for sums is the child of one that
 * does not block, whose making can be given up: NCCL makes a child on the terms of its parent. The parent is not needed any longer. */
static enum status split_communicator(struct nccl *nccl)
{
    struct nccl_config config = config_of(1);
    int result = nccl->library.comm_split(nccl->comm, 0, nccl->host.rank, &nccl->child, &config);
    /* NCCL answers success when it has begun; the parent tells when it is done. */
    enum status status = nccl_done(nccl, "ncclCommSplit", result == NCCL_SUCCESS ? NCCL_IN_PROGRESS : result);

    status = group_agree(&nccl->host, status);
    if (status == STATUS_OK)
        status = end_communicator(nccl);
    else
        nccl_abort(nccl); /* a parent goes before its child */
    nccl->comm = nccl->child;
    nccl->child = NULL;
    return group_agree(&nccl->host, status);
}

/* NCCL connects devices when a sum first needs it, and has ways of summing for different sizes that need different connections. Its calls wait for
 * these; so all sizes come once, before anybody counts on a call that returns. */
static enum status connect_devices(struct nccl *nccl)
{
    struct group group = {.rank = nccl->host.rank, .size = nccl->host.size, .kind = &nccl_kind, .state = nccl};
    size_t most = nccl->most;

    for (size_t count = LEAST_SUM;; count = STRIDE * count < most ? STRIDE * count : most) {
        TRY(nccl_sum_once(nccl, (float *)(void *)nccl->memory, count));
        progress_made(nccl->doing);
        if (count == most)
            break;
    }
    TRY(group_settle(&group));
    return nccl->backend->step.finish(nccl->context);
}

/* Memory that every rank's device can reach, for the fastest sums, or plain memory of the backend. */
static enum status take_memory(struct nccl *nccl, size_t bytes)
{
    const struct nccl_library *library = &nccl->library;

    if (library->comm_window_register == NULL) {
        TRY(nccl->backend->memory.open(nccl->context, bytes, "sums over the group", &nccl->arena));
        nccl->memory = arena_take(&nccl->arena, bytes);
        return STATUS_OK;
    }
    void *memory = NULL;

    TRY(nccl_done(nccl, "ncclMemAlloc", library->mem_alloc(&memory, bytes)));
    nccl->memory = memory;
    return STATUS_OK;
}

static size_t window_round(size_t bytes)
{
    return (bytes + NCCL_WINDOW_ALIGN - 1) / NCCL_WINDOW_ALIGN * NCCL_WINDOW_ALIGN;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Where a sum of B bytes in slices is as fast as one that is gathered: of R ranks it takes in 2 (R - 1) / R of B instead of R - 1, and one more
 * exchange.  size: more than 2 */
static size_t bytes_gathered(size_t size)
{
    return smaller(SPARED * size / ((size - 1) * (size - 2)), MOST_GATHERED);
}

static enum status lay_out_memory(struct nccl *nccl, size_t largest)
{
    const struct nccl_library *library = &nccl->library;
    size_t size = (size_t)nccl->host.size, mine = window_round(smaller(largest, MOST_BUFFER)), most = window_round(smaller(largest, MOST_AT_ONCE));
    size_t part = size > 2 ? smaller(window_round(bytes_gathered(size)), most) : most, bytes = mine;

    if (size > 2)
        bytes += size * part > most ? size * part : most;
    TRY(group_agree(&nccl->host, take_memory(nccl, bytes)));
    nccl->lent = mine;
    nccl->most = most / sizeof(float);
    nccl->part = part / sizeof(float);
    nccl->gathered = (float *)(void *)(nccl->memory + mine);
    if (library->comm_window_register == NULL)
        return STATUS_OK;
    /* Where devices cannot reach each other NCCL answers with success and, before 2.28, no window. */
    return group_agree(&nccl->host,
                       nccl_done(nccl, "ncclCommWindowRegister",
                                 library->comm_window_register(nccl->comm, nccl->memory, bytes, &nccl->window, NCCL_WINDOW_SYMMETRIC)));
}

static void describe(struct nccl *nccl)
{
    int version = nccl->library.version, length;

    length = snprintf(nccl->words, sizeof nccl->words, "NCCL %d.%d.%d, %s, %s", version / 10000, version / 100 % 100, version % 100,
                      nccl->window != NULL ? "symmetric windows" : "no symmetric windows",
                      nccl->host.size > 2 ? "sums by all-gather and tree" : "sums by all-reduce");
    if (nccl->part < nccl->most)
        length += snprintf(nccl->words + length, sizeof nccl->words - (size_t)length, ", of more than %zu KiB in slices",
                           nccl->part * sizeof(float) / 1024);
    if (nccl->alone > 0)
        snprintf(nccl->words + length, sizeof nccl->words - (size_t)length, ", up to %zu KiB by one-shot kernels",
                 nccl->alone * sizeof(float) / 1024);
}

enum status group_open_nccl(struct world *world, const struct backend *backend, struct backend_context *context, size_t largest,
                            double patience_s, enum group_sums sums, struct group *group)
{
    struct nccl *nccl;
    enum status status;

    if (group->size > BACKEND_MAX_TERMS) {
        if (group->rank == 0)
            log_error("%d verifiers with a device each cannot sum, expected at most %d", group->size, BACKEND_MAX_TERMS);
        return group->rank == 0 ? STATUS_USAGE : STATUS_ELSEWHERE;
    }
    nccl = calloc(1, sizeof *nccl);
    if (nccl == NULL)
        log_error("no memory for a group over NCCL");
    status = group_agree(group, nccl != NULL ? STATUS_OK : STATUS_INTERNAL);
    if (status != STATUS_OK) {
        free(nccl);
        return status;
    }
    *nccl = (struct nccl){.world = world, .host = *group, .backend = backend, .context = context, .device = backend->device.which(context)};
    nccl->alarm = MPI_COMM_NULL;
    nccl->step.most_ns = LONGEST_LOOK_NS;
    describe_self(nccl);
    TRY_TO(group_agree(group, nccl_library_open(&nccl->library)), release_nccl);
    TRY_TO(meet(nccl), release_nccl);
    int code = MPI_Comm_dup(world->role_comm, &nccl->alarm);
    TRY_TO(group_agree(group, code == MPI_SUCCESS ? STATUS_OK : world_mpi_failed("MPI_Comm_dup for NCCL", __FILE__, __LINE__, code)),
           release_nccl);
    nccl_patience(nccl, patience_s, "making the NCCL communicator");
    TRY_TO(make_communicator(nccl), release_nccl);
    TRY_TO(split_communicator(nccl), release_nccl);
    TRY_TO(lay_out_memory(nccl, largest), release_nccl);
    TRY_TO(group_agree(group, connect_devices(nccl)), release_nccl);
    TRY_TO(nccl_one_shot_open(nccl, sums), release_nccl);
    nccl_patience(nccl, 0, NULL);
    describe(nccl);
    *group = (struct group){.rank = nccl->host.rank, .size = nccl->host.size, .kind = &nccl_kind, .state = nccl};
    return STATUS_OK;

release_nccl:
    nccl_abort(nccl); /* some rank may not come to an end in order */
    nccl_release(nccl);
    return status;
}

static enum status close_window(struct nccl *nccl)
{
    struct nccl_window *window = nccl->window;

    nccl->window = NULL;
    return window != NULL ? nccl_done(nccl, "ncclCommWindowDeregister", nccl->library.comm_window_deregister(nccl->comm, window)) : STATUS_OK;
}

void nccl_release(struct nccl *nccl)
{
    nccl_patience(nccl, CLOSE_PATIENCE_S, "closing the NCCL communicator");
    if (nccl->comm != NULL && close_window(nccl) == STATUS_OK)
        (void)end_communicator(nccl);
    if (nccl->one_shot)
        nccl->backend->device.one_shot->leave(nccl->context); /* its own memory goes with the process: another rank may still have it open */
    if (nccl->arena.base != NULL)
        nccl->backend->memory.close(nccl->context, &nccl->arena);
    else if (nccl->memory != NULL)
        nccl->library.mem_free(nccl->memory);
    if (nccl->alarm != MPI_COMM_NULL)
        MPI_Comm_free(&nccl->alarm);
    free(nccl);
}
