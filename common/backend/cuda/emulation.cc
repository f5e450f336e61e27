/* One process thread runs all: clusters of blocks one after the other, their threads as fibers that give way at barriers. A fiber is made once and
 * runs a thread of one block after another. It is entered by ucontext and from then on by the compiler's own longjmp, which makes no system call. The
 * address sanitizer is told of every switch; its own longjmp and swapcontext would forget what is poisoned on a stack, and take longer for it than
 * the kernels. */
#include "common/backend/cuda/emulation.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <pthread.h>
#include <set>
#include <sys/mman.h>
#include <ucontext.h>
#include <utility>
#include <vector>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#define LEAVE(save, to) __sanitizer_start_switch_fiber(save, (to).stack, (to).stack_bytes)
#define ARRIVE(save)    __sanitizer_finish_switch_fiber(save, NULL, NULL)
#else
#define LEAVE(save, to) (void)0
#define ARRIVE(save)    (void)0
#endif

struct emulation_place emulation_now;

struct device_graph {
    std::vector<std::function<void()>> work;
};

namespace
{
enum { WARP = 32, MOST_THREADS = 1024, MOST_CLUSTER = 8, STACK_BYTES = 256 << 10, EXCHANGE_BYTES = 64, PLACES = 2 };
enum waiting { RUNNING, AT_WARP, AT_BLOCK, AT_CLUSTER, ENDED, AT_PLACE /* and those after it */ };

struct copy {
    void *to;
    const void *from; /* NULL for zeros */
    size_t bytes;
};

struct fiber {
    ucontext_t context;
    void *place[5];
    bool entered; /* `place` is where it stands */
    void *stack;
    size_t stack_bytes;
    void *fake_stack; /* the sanitizer's */
    struct block *block;
    dim3 thread;
    enum waiting waiting;
    unsigned exchanges;
    std::vector<struct copy> copies; /* begun */
};

struct warp {
    int lanes, arrived, ended; /* arrived at the warp's barrier, or ended */
    alignas(16) unsigned char given[2][WARP][EXCHANGE_BYTES];
};

struct block {
    dim3 number;
    unsigned char *shared;
    int first;            /* of its fibers */
    int arrived, ended;
    int met[PLACES]; /* threads that wait there */
};

/* Blocks that run together: the fibers of one lie behind those of another, and so do its warps. */
struct cluster {
    int blocks, threads; /* of a block, */
    int arrived, ended;  /* and of all */
    size_t shared_bytes; /* of a block */
    struct fiber *current;
    const std::function<void()> *body;
};

struct fiber fibers[MOST_CLUSTER * MOST_THREADS];
struct warp warps[MOST_CLUSTER * MOST_THREADS / WARP];
struct block blocks[MOST_CLUSTER];
struct cluster cluster;
struct fiber scheduler;
struct device_graph *recording;
bool refuses_recordings;
const size_t LEAST_SHARED = (size_t)48 << 10;
size_t most_shared = (size_t)227 << 10;
std::map<const void *, size_t> prepared; /* most shared memory of a block */
std::set<const void *> launched;
unsigned order_seed;
uint64_t order_state;

[[noreturn]] void fault(const char *what)
{
    fprintf(stderr, "emulation: block (%u, %u, %u) of (%u, %u, %u): %s\n", emulation_now.block.x, emulation_now.block.y,
            emulation_now.block.z, emulation_now.grid_size.x, emulation_now.grid_size.y, emulation_now.grid_size.z, what);
    abort();
}

unsigned next_random(unsigned below)
{
    order_state = order_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((order_state >> 33) % below);
}

/* A permutation of 0 .. count - 1 by the order asked for. */
std::vector<int> ordered(int count)
{
    std::vector<int> order((size_t)count);

    for (int i = 0; i < count; i++)
        order[(size_t)i] = order_seed == 1 ? count - 1 - i : i;
    for (int i = count - 1; order_seed > 1 && i > 0; i--)
        std::swap(order[(size_t)i], order[next_random((unsigned)i + 1)]);
    return order;
}

int index_of(const struct fiber *fiber)
{
    return (int)(fiber - fibers);
}

/* Not where __builtin_setjmp is called. */
[[noreturn]] __attribute__((noinline, no_sanitize("address"))) void jump(struct fiber *to)
{
    if (to->entered)
        __builtin_longjmp(to->place, 1);
    setcontext(&to->context);
    fault("a thread cannot be entered");
}

__attribute__((noinline, no_sanitize("address"))) void switch_to(struct fiber *from, struct fiber *to)
{
    LEAVE(&from->fake_stack, *to);
    from->entered = true;
    if (__builtin_setjmp(from->place) == 0)
        jump(to);
    ARRIVE(from->fake_stack);
}

void give_way(enum waiting waiting)
{
    struct fiber *self = cluster.current;

    self->waiting = waiting;
    switch_to(self, &scheduler);
}

void release_warp(int w)
{
    struct warp *warp = &warps[w];

    if (warp->arrived == 0 || warp->arrived + warp->ended < warp->lanes)
        return;
    warp->arrived = 0;
    for (int i = w * WARP; i < w * WARP + warp->lanes; i++)
        if (fibers[i].waiting == AT_WARP)
            fibers[i].waiting = RUNNING;
}

void release_block(struct block *block)
{
    if (block->arrived == 0 || block->arrived + block->ended < cluster.threads)
        return;
    block->arrived = 0;
    for (int i = block->first; i < block->first + cluster.threads; i++)
        if (fibers[i].waiting == AT_BLOCK)
            fibers[i].waiting = RUNNING;
}

void release_cluster()
{
    int threads = cluster.blocks * cluster.threads;

    if (cluster.arrived == 0 || cluster.arrived + cluster.ended < threads)
        return;
    cluster.arrived = 0;
    for (int i = 0; i < threads; i++)
        if (fibers[i].waiting == AT_CLUSTER)
            fibers[i].waiting = RUNNING;
}

void begin_fiber()
{
    ARRIVE(NULL);
    for (;;) {
        (*cluster.body)();
        if (!cluster.current->copies.empty())
            fault("a thread ends before what it copies has come");
        warps[index_of(cluster.current) / WARP].ended++;
        if (++cluster.current->block->ended == cluster.threads)
            memset(cluster.current->block->shared, 0xff, cluster.shared_bytes); /* it is another block's by now */
        cluster.ended++;
        give_way(ENDED); /* up to the next block */
    }
}

void prepare(struct block *block, int i, dim3 size)
{
    struct fiber *fiber = &fibers[block->first + i];

    if (fiber->stack == NULL) {
        fiber->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        fiber->stack_bytes = STACK_BYTES;
        if (fiber->stack == MAP_FAILED)
            fault("no memory for a thread's stack");
    }
    fiber->thread = dim3((unsigned)i % size.x, (unsigned)i / size.x % size.y, (unsigned)i / size.x / size.y);
    fiber->block = block;
    fiber->waiting = RUNNING;
    fiber->exchanges = 0;
    if (fiber->entered)
        return;
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = fiber->stack_bytes;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, begin_fiber, 0);
}

void run_fiber(int i)
{
    struct block *block = fibers[i].block;

    cluster.current = &fibers[i];
    emulation_now.thread = fibers[i].thread;
    emulation_now.block = block->number;
    emulation_now.shared = block->shared;
    switch_to(&scheduler, &fibers[i]);
    release_warp(i / WARP);
    release_block(block);
    release_cluster();
}

/* Runs each lane of the warp that can go on; returns how many could. */
int run_warp(int w)
{
    int ran = 0;

    for (int i = w * WARP; i < w * WARP + warps[w].lanes; i++)
        if (fibers[i].waiting == RUNNING) {
            run_fiber(i);
            ran++;
        }
    return ran;
}

/* By some orders a warp goes on as far as it can before another gets its turn: so a barrier of the block that is missing between the work
 * of two warps shows, also where the lanes of a warp meet in between. */
bool runs_ahead()
{
    return order_seed > 1 && order_seed % 2 == 1;
}

void begin_block(struct block *block, int number, dim3 grid, dim3 size)
{
    int first = number % cluster.blocks * cluster.threads;

    block->number = dim3((unsigned)number % grid.x, (unsigned)number / grid.x % grid.y, (unsigned)number / grid.x / grid.y);
    block->first = first;
    block->arrived = block->ended = 0;
    memset(block->met, 0, sizeof block->met);
    memset(block->shared, 0xff, cluster.shared_bytes);
    for (int i = 0; i < cluster.threads; i += WARP) {
        struct warp *warp = &warps[(first + i) / WARP];

        warp->lanes = cluster.threads - i < WARP ? cluster.threads - i : WARP;
        warp->arrived = warp->ended = 0;
        memset(warp->given, 0, sizeof warp->given);
    }
    for (int i = 0; i < cluster.threads; i++)
        prepare(block, i, size);
}

void run_cluster(int number, dim3 grid, dim3 size)
{
    int threads = cluster.blocks * cluster.threads;

    cluster.arrived = cluster.ended = 0;
    for (int b = 0; b < cluster.blocks; b++)
        begin_block(&blocks[b], number * cluster.blocks + b, grid, size);
    while (cluster.ended < threads) {
        int ran = 0;

        for (int i : ordered(threads)) {
            if (fibers[i].waiting != RUNNING)
                continue;
            ran = 1;
            run_fiber(i);
            while (runs_ahead() && run_warp(i / WARP) > 0)
                continue;
        }
        if (!ran)
            fault("its threads wait for each other at different barriers");
    }
}
} // namespace

extern "C" void emulation_order(unsigned seed)
{
    order_seed = seed;
    order_state = seed;
}

extern "C" void emulation_record()
{
    recording = new device_graph;
}

extern "C" struct device_graph *emulation_recorded()
{
    if (refuses_recordings)
        delete std::exchange(recording, nullptr);
    return std::exchange(recording, nullptr);
}

extern "C" void emulation_refuse_recordings(int refuse)
{
    refuses_recordings = refuse != 0;
}

extern "C" void emulation_play(struct device_graph *graph)
{
    for (const auto &work : graph->work)
        work();
}

extern "C" void emulation_forget(struct device_graph *graph)
{
    delete graph;
}

extern "C" void emulation_copy(void *to, const void *from, size_t bytes)
{
    if (recording != nullptr)
        recording->work.push_back([=] { memcpy(to, from, bytes); });
    else
        memcpy(to, from, bytes);
}

extern "C" void emulation_allow(size_t block_bytes)
{
    most_shared = block_bytes;
}

int emulation_prepare(const void *kernel, size_t shared_bytes)
{
    if (shared_bytes > most_shared)
        return 1; /* cudaErrorInvalidValue */
    prepared.emplace(kernel, LEAST_SHARED);
    if (shared_bytes > LEAST_SHARED)
        prepared[kernel] = shared_bytes;
    return 0;
}

extern "C" int emulation_unprepared()
{
    return (int)std::count_if(launched.begin(), launched.end(), [](const void *kernel) { return prepared.count(kernel) == 0; });
}

void emulation_launch(const void *kernel, unsigned together, dim3 grid, dim3 size, size_t shared_bytes, const std::function<void()> &body)
{
    if (recording != nullptr) {
        recording->work.push_back([=] { emulation_launch(kernel, together, grid, size, shared_bytes, body); });
        return;
    }

    emulation_now.grid_size = grid;
    emulation_now.block_size = size;
    cluster.blocks = (int)together;
    cluster.threads = (int)(size.x * size.y * size.z);
    cluster.shared_bytes = shared_bytes;
    cluster.body = &body;
    if (size.x * size.y * size.z > MOST_THREADS || size.x * size.y * size.z == 0)
        fault("a block has 1 to 1024 threads");
    launched.insert(kernel);
    if (shared_bytes > (prepared.count(kernel) != 0 ? prepared[kernel] : LEAST_SHARED))
        fault("more shared memory than a block of the kernel may have");
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535)
        fault("a grid has 1 to 65,535 blocks in y and z, and some in x");
    if (together == 0 || together > MOST_CLUSTER || grid.x % together != 0 || (together > 1 && cluster.threads % WARP != 0))
        fault("a grid is of whole clusters of 1 to 8 blocks, of whole warps where these are several");
    for (int b = 0; b < cluster.blocks; b++) {
        blocks[b].shared = (unsigned char *)malloc(shared_bytes + (shared_bytes == 0)); /* each by itself, for the sanitizer to watch */
        if (blocks[b].shared == NULL)
            fault("no memory for shared memory");
    }
#ifdef __SANITIZE_ADDRESS__
    /* the scheduler's own stack, for the way back */
    pthread_attr_t attributes;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &scheduler.stack, &scheduler.stack_bytes);
    pthread_attr_destroy(&attributes);
#endif
    for (int c : ordered((int)(grid.x * grid.y * grid.z / together)))
        run_cluster(c, grid, size);
    for (int b = 0; b < cluster.blocks; b++)
        free(blocks[b].shared);
}

void __syncthreads()
{
    cluster.current->block->arrived++;
    give_way(AT_BLOCK);
}

void emulation_copy_later(void *to, const void *from, size_t bytes)
{
    memset(to, 0xff, bytes);
    cluster.current->copies.push_back({to, from, bytes});
}

void emulation_copied()
{
    for (const auto &copy : cluster.current->copies)
        if (copy.from != NULL)
            memcpy(copy.to, copy.from, copy.bytes);
        else
            memset(copy.to, 0, copy.bytes);
    cluster.current->copies.clear();
}

void emulation_meet(int place, int threads)
{
    enum waiting at = (enum waiting)(AT_PLACE + place);
    struct block *block = cluster.current->block;

    if (place < 0 || place >= PLACES || threads % WARP != 0 || threads > cluster.threads)
        fault("whole warps of the block meet, at place 0 or 1");
    if (++block->met[place] < threads) {
        give_way(at);
        return;
    }
    block->met[place] = 0;
    for (int i = block->first; i < block->first + cluster.threads; i++)
        if (fibers[i].waiting == at)
            fibers[i].waiting = RUNNING;
}

void emulation_meet_cluster()
{
    cluster.arrived++;
    give_way(AT_CLUSTER);
}

const void *emulation_of_block(const void *shared, int number)
{
    ptrdiff_t at = (const unsigned char *)shared - cluster.current->block->shared;

    if (number < 0 || number >= cluster.blocks || at < 0 || (size_t)at > cluster.shared_bytes)
        fault("shared memory of another block is that of the cluster, where there is as much");
    return blocks[number].shared + at;
}

void __syncwarp(unsigned)
{
    warps[index_of(cluster.current) / WARP].arrived++;
    give_way(AT_WARP);
}

const unsigned char *emulation_exchange(const void *mine, size_t bytes)
{
    int i = index_of(cluster.current);
    unsigned parity = fibers[i].exchanges++ & 1;

    if (bytes > EXCHANGE_BYTES)
        fault("an exchange of more than 64 bytes");
    memcpy(warps[i / WARP].given[parity][i % WARP], mine, bytes);
    __syncwarp();
    return &warps[i / WARP].given[parity][0][0];
}

unsigned __ballot_sync(unsigned, int predicate)
{
    unsigned char vote = predicate != 0;
    const unsigned char *votes = emulation_exchange(&vote, 1);
    unsigned ballot = 0;

    for (int lane = 0; lane < WARP; lane++)
        ballot |= (unsigned)votes[EXCHANGE_BYTES * lane] << lane;
    return ballot;
}
