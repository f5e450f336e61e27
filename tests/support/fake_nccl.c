/* A library with NCCL's symbols, for tests: ranks of one host, "devices" whose memory is the host's, communicators that do not block. A call is done
 * when every rank has made it and somebody has asked how it goes; one that is made before the last is done is refused. Sums are added in an order
 * that changes with an element's place and the size of the whole, as NCCL's rings do. A communicator that blocks is made by splitting one that does
 * not, as NCCL does it: the split answers success at once and the parent tells when it is done. Calls of the child return when they are done, or when
 * a rank has aborted. In a group it takes one exchange: to and from each rank, in their order, equally much.
 *
 * What it is told by the environment: FAKE_NCCL="RANK CALL NTH DEED;..." where RANK is that of the world, NTH counts that rank's calls of CALL
 * from 1, and DEED is fail=CODE (at once), later=CODE (in progress first, then this), async=CODE (it succeeds, and then the communicator has
 * this), stuck (in progress for ever) or hang (does not return). FAKE_NCCL_PROGRESS=N: every call is in progress for N questions at least.
 * FAKE_NCCL_VERSION=23007. FAKE_NCCL_WINDOWS=0: devices that cannot reach each other, so no window. FAKE_NCCL_TRACE=FILE: gets a line "RANK CALL"
 * for each call but the questions. */
#include "common/group/nccl_library.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_RANKS = 8, MOST_BYTES = 16 << 20 };
enum deed { DEED_NONE, DEED_FAIL, DEED_LATER, DEED_ASYNC, DEED_STUCK, DEED_HANG };
enum work { WORK_MEET, WORK_REDUCE, WORK_GATHER, WORK_EXCHANGE };

struct page {
    _Atomic uint64_t given[MOST_RANKS]; /* the operation that a rank has come to */
    _Atomic int gone;                   /* a rank has aborted */
    unsigned char bytes[MOST_RANKS][2][MOST_BYTES];
};

struct nccl_window {
    int kept;
};

struct nccl_comm {
    struct page *page;
    int rank, size, blocking;
    uint64_t operation;
    enum work work;
    void *to;
    size_t count;
    int pending, delay, stuck, doom, outcome, async;
    struct nccl_window **window;
    const void *sent[MOST_RANKS]; /* in a group */
    void *received[MOST_RANKS];
    int sends, receives;
    struct nccl_comm *child, **made; /* by a split under way */
    char path[160];                  /* of the page, which rank 0 removes once all have it */
};

static struct {
    int open;
    struct nccl_comm *comm; /* of the calls in it */
    size_t count;
} grouped;

static int world_rank(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    return rank != NULL ? atoi(rank) : 0;
}

static int number(const char *name, int otherwise)
{
    const char *value = getenv(name);

    return value != NULL ? atoi(value) : otherwise;
}

static void trace(const char *call)
{
    const char *path = getenv("FAKE_NCCL_TRACE");
    char line[64];
    int file = path != NULL ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;

    if (file < 0)
        return;
    if (write(file, line, (size_t)snprintf(line, sizeof line, "%d %s\n", world_rank(), call)) < 0)
        abort();
    close(file);
}

/* How often this rank has made the call, this one included. */
static int count_call(const char *call)
{
    static struct {
        const char *name;
        int calls;
    } counts[32];
    int i = 0;

    while (counts[i].name != NULL && strcmp(counts[i].name, call) != 0)
        i++;
    counts[i].name = call;
    return ++counts[i].calls;
}

static enum deed deed_of(const char *call, int *code)
{
    static const char *const deeds[] = {"fail", "later", "async", "stuck", "hang"};
    const char *at = getenv("FAKE_NCCL");
    int nth = count_call(call);

    trace(call);
    while (at != NULL && *at != '\0') {
        char name[40], deed[20];
        int rank, which, length = 0;

        if (sscanf(at, " %d %39s %d %19[^;]%n", &rank, name, &which, deed, &length) != 4)
            abort();
        if (rank == world_rank() && which == nth && strcmp(name, call) == 0) {
            *code = strchr(deed, '=') != NULL ? atoi(strchr(deed, '=') + 1) : 0;
            for (int d = 0; d < (int)(sizeof deeds / sizeof deeds[0]); d++)
                if (strncmp(deed, deeds[d], strlen(deeds[d])) == 0)
                    return DEED_FAIL + d;
            abort();
        }
        at += length + (at[length] == ';');
    }
    return DEED_NONE;
}

static int obey(const char *call, struct nccl_comm *comm)
{
    int code = 0;
    enum deed deed = deed_of(call, &code);

    while (deed == DEED_HANG)
        pause();
    if (comm != NULL) {
        comm->delay = number("FAKE_NCCL_PROGRESS", 0);
        comm->stuck = deed == DEED_STUCK;
        comm->doom = deed == DEED_LATER ? code : 0;
        comm->delay += deed == DEED_LATER;
        comm->async = deed == DEED_ASYNC ? code : comm->async;
    }
    return deed == DEED_FAIL ? code : NCCL_SUCCESS;
}

static float term(const struct nccl_comm *comm, int rank, size_t i)
{
    return ((const float *)(const void *)comm->page->bytes[rank][comm->operation % 2])[i];
}

static void work(struct nccl_comm *comm)
{
    float *to = comm->to;

    if (comm->rank == 0)
        unlink(comm->path);
    if (comm->made != NULL)
        *comm->made = comm->child;
    comm->made = NULL;
    for (size_t i = 0; comm->work == WORK_REDUCE && i < comm->count; i++) {
        int first = (int)(i * (size_t)comm->size / comm->count);

        to[i] = term(comm, first, i);
        for (int r = 1; r < comm->size; r++)
            to[i] += term(comm, (first + r) % comm->size, i);
    }
    for (int r = 0; comm->work == WORK_EXCHANGE && r < comm->size; r++)
        memcpy(comm->received[r], comm->page->bytes[r][comm->operation % 2] + (size_t)comm->rank * comm->count * sizeof *to,
               comm->count * sizeof *to);
    for (int r = 0; comm->work == WORK_GATHER && r < comm->size; r++)
        memcpy(to + (size_t)r * comm->count, comm->page->bytes[r][comm->operation % 2], comm->count * sizeof *to);
    if (comm->window != NULL)
        *comm->window = number("FAKE_NCCL_WINDOWS", 1) ? calloc(1, sizeof **comm->window) : NULL;
    comm->window = NULL;
}

static int go_on(struct nccl_comm *comm)
{
    if (!comm->pending)
        return comm->outcome;
    if (comm->blocking && atomic_load(&comm->page->gone)) {
        comm->pending = 0;
        return comm->outcome = NCCL_REMOTE_ERROR;
    }
    if (comm->stuck || comm->delay-- > 0)
        return NCCL_IN_PROGRESS;
    comm->delay = 0;
    if (comm->doom != 0) {
        comm->pending = 0;
        return comm->outcome = comm->doom;
    }
    for (int r = 0; r < comm->size; r++)
        if (atomic_load_explicit(&comm->page->given[r], memory_order_acquire) < comm->operation)
            return NCCL_IN_PROGRESS;
    work(comm);
    comm->pending = 0;
    return comm->outcome = NCCL_SUCCESS;
}

static int begin(struct nccl_comm *comm, enum work what, const void *from, void *to, size_t count)
{
    if (comm->pending || comm->outcome != NCCL_SUCCESS || grouped.open || count * sizeof(float) > MOST_BYTES)
        return NCCL_INVALID_USAGE;
    comm->operation++;
    comm->work = what;
    comm->to = to;
    comm->count = count;
    comm->pending = 1;
    if (from != NULL)
        memcpy(comm->page->bytes[comm->rank][comm->operation % 2], from, count * sizeof(float));
    for (int r = 0; what == WORK_EXCHANGE && r < comm->size; r++)
        memcpy(comm->page->bytes[comm->rank][comm->operation % 2] + (size_t)r * count * sizeof(float), comm->sent[r], count * sizeof(float));
    if (!comm->stuck && comm->doom == 0)
        atomic_store_explicit(&comm->page->given[comm->rank], comm->operation, memory_order_release);
    while (comm->blocking && go_on(comm) == NCCL_IN_PROGRESS)
        sched_yield();
    return go_on(comm);
}

int ncclGetVersion(int *version)
{
    *version = number("FAKE_NCCL_VERSION", 23007);
    return obey("ncclGetVersion", NULL);
}

const char *ncclGetErrorString(int result)
{
    static const char *const words[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error"};

    return result >= 0 && result < (int)(sizeof words / sizeof words[0]) ? words[result] : "unknown result code";
}

const char *ncclGetLastError(struct nccl_comm *comm)
{
    (void)comm;
    return "as the fake was told";
}

int ncclGetUniqueId(struct nccl_unique_id *id)
{
    const char *folder = getenv("TMPDIR");
    int result = obey("ncclGetUniqueId", NULL), file;

    if (result != NCCL_SUCCESS)
        return result;
    snprintf(id->bytes, sizeof id->bytes, "%s/fake-nccl-XXXXXX", folder != NULL ? folder : "/tmp");
    file = mkstemp(id->bytes);
    if (file < 0 || ftruncate(file, sizeof(struct page)) != 0)
        return NCCL_SYSTEM_ERROR;
    close(file);
    return NCCL_SUCCESS;
}

static struct nccl_comm *open_comm(const char *path, int rank, int size, const struct nccl_config *config)
{
    struct nccl_comm *comm = calloc(1, sizeof *comm);
    int file = open(path, O_RDWR | O_CREAT, 0600);

    if (comm == NULL || file < 0 || ftruncate(file, sizeof(struct page)) != 0 || config->magic != NCCL_CONFIG_MAGIC)
        return NULL;
    *comm = (struct nccl_comm){.rank = rank, .size = size, .blocking = config->blocking};
    comm->page = mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    snprintf(comm->path, sizeof comm->path, "%s", path);
    close(file);
    return comm;
}

int ncclCommInitRankConfig(struct nccl_comm **out, int size, struct nccl_unique_id id, int rank, struct nccl_config *config)
{
    struct nccl_comm *comm = size <= MOST_RANKS && config->blocking == 0 ? open_comm(id.bytes, rank, size, config) : NULL;
    int result;

    if (comm == NULL)
        return NCCL_INVALID_ARGUMENT;
    result = obey("ncclCommInitRankConfig", comm);
    if (result != NCCL_SUCCESS)
        return result;
    *out = comm;
    return begin(comm, WORK_MEET, NULL, NULL, 0);
}

int ncclCommSplit(struct nccl_comm *comm, int color, int key, struct nccl_comm **child, struct nccl_config *config)
{
    int result = obey("ncclCommSplit", comm);
    char path[sizeof comm->path];

    *child = NULL;
    if (color != 0 || key != comm->rank)
        return NCCL_INVALID_ARGUMENT;
    if (result != NCCL_SUCCESS)
        return result;
    snprintf(path, sizeof path, "%.150s-split", comm->path);
    comm->child = open_comm(path, comm->rank, comm->size, config);
    comm->made = child;
    result = comm->child != NULL ? begin(comm, WORK_MEET, NULL, NULL, 0) : NCCL_SYSTEM_ERROR;
    return result == NCCL_IN_PROGRESS ? NCCL_SUCCESS : result;
}

int ncclCommGetAsyncError(struct nccl_comm *comm, int *result)
{
    *result = comm->async != 0 ? comm->async : go_on(comm);
    return NCCL_SUCCESS;
}

int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation, struct nccl_comm *comm, void *stream)
{
    int result = obey("ncclAllReduce", comm);

    (void)stream;
    if (type != NCCL_FLOAT32 || operation != NCCL_SUM)
        return NCCL_INVALID_ARGUMENT;
    return result != NCCL_SUCCESS ? result : begin(comm, WORK_REDUCE, from, to, count);
}

int ncclAllGather(const void *from, void *to, size_t count, int type, struct nccl_comm *comm, void *stream)
{
    const char *first = from, *into = to;
    size_t bytes = count * sizeof(float);
    int result = obey("ncclAllGather", comm);
    /* In place means the caller's own part of what is gathered, or nothing of it. */
    int overlaps = first + bytes > into && first < into + (size_t)comm->size * bytes;

    (void)stream;
    if (type != NCCL_FLOAT32 || (overlaps && first != into + (size_t)comm->rank * bytes))
        return NCCL_INVALID_ARGUMENT;
    return result != NCCL_SUCCESS ? result : begin(comm, WORK_GATHER, from, to, count);
}

int ncclGroupStart(void)
{
    grouped.open = 1;
    grouped.comm = NULL;
    return obey("ncclGroupStart", NULL);
}

static int join(struct nccl_comm *comm, size_t count, int type, int peer, int next)
{
    if (!grouped.open || type != NCCL_FLOAT32 || peer != next || (grouped.comm != NULL && (grouped.comm != comm || grouped.count != count)))
        return NCCL_INVALID_USAGE;
    grouped.comm = comm;
    grouped.count = count;
    return NCCL_SUCCESS;
}

int ncclSend(const void *from, size_t count, int type, int peer, struct nccl_comm *comm, void *stream)
{
    int result = obey("ncclSend", comm);

    (void)stream;
    if (result == NCCL_SUCCESS)
        result = join(comm, count, type, peer, comm->sends);
    if (result == NCCL_SUCCESS)
        comm->sent[comm->sends++] = from;
    return result;
}

int ncclRecv(void *to, size_t count, int type, int peer, struct nccl_comm *comm, void *stream)
{
    int result = obey("ncclRecv", comm);

    (void)stream;
    if (result == NCCL_SUCCESS)
        result = join(comm, count, type, peer, comm->receives);
    if (result == NCCL_SUCCESS)
        comm->received[comm->receives++] = to;
    return result;
}

int ncclGroupEnd(void)
{
    struct nccl_comm *comm = grouped.comm;
    int result = obey("ncclGroupEnd", comm), all;

    grouped.open = 0;
    if (comm == NULL || result != NCCL_SUCCESS)
        return result;
    all = comm->sends == comm->size && comm->receives == comm->size && grouped.count * (size_t)comm->size * sizeof(float) <= MOST_BYTES;
    comm->sends = comm->receives = 0;
    return all ? begin(comm, WORK_EXCHANGE, NULL, NULL, grouped.count) : NCCL_INVALID_USAGE;
}

int ncclMemAlloc(void **memory, size_t bytes)
{
    int result = obey("ncclMemAlloc", NULL);

    *memory = result == NCCL_SUCCESS ? aligned_alloc(NCCL_WINDOW_ALIGN, bytes) : NULL;
    return result;
}

int ncclMemFree(void *memory)
{
    free(memory);
    return obey("ncclMemFree", NULL);
}

int ncclCommWindowRegister(struct nccl_comm *comm, void *memory, size_t bytes, struct nccl_window **window, int flags)
{
    int result = obey("ncclCommWindowRegister", comm);

    if ((uintptr_t)memory % NCCL_WINDOW_ALIGN != 0 || bytes % NCCL_WINDOW_ALIGN != 0 || flags != NCCL_WINDOW_SYMMETRIC)
        return NCCL_INVALID_ARGUMENT;
    comm->window = window;
    return result != NCCL_SUCCESS ? result : begin(comm, WORK_MEET, NULL, NULL, 0);
}

int ncclCommWindowDeregister(struct nccl_comm *comm, struct nccl_window *window)
{
    int result = obey("ncclCommWindowDeregister", comm);

    if (comm->pending)
        return NCCL_INVALID_USAGE;
    free(window);
    return result;
}

int ncclCommFinalize(struct nccl_comm *comm)
{
    int result = obey("ncclCommFinalize", comm);

    return result != NCCL_SUCCESS ? result : begin(comm, WORK_MEET, NULL, NULL, 0);
}

static int end(const char *call, struct nccl_comm *comm)
{
    int result = obey(call, NULL);

    munmap(comm->page, sizeof(struct page));
    free(comm);
    return result;
}

int ncclCommDestroy(struct nccl_comm *comm)
{
    if (comm->blocking)
        trace("a child ends in order");
    return end("ncclCommDestroy", comm);
}

int ncclCommAbort(struct nccl_comm *comm)
{
    atomic_store(&comm->page->gone, 1);
    return end("ncclCommAbort", comm);
}
