/* How linear.cu goes about a map: in which blocks, and what lies where in their shared memory. A plan is plain data, a kernel's one argument. For the
 * files linear*.cu alone; it starts nothing. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_KERNEL_LINEAR_PLAN_H
#define TANDEM_COMMON_BACKEND_CUDA_KERNEL_LINEAR_PLAN_H

#include "common/backend/cuda/kernel/linear.h"

enum {
    WARPS = 8, /* of a team */
    THREADS = 32 * WARPS,
    MOST_TEAMS = 2,      /* of a block */
    SWEEP = 4 * THREADS, /* columns that a team stages at once, four a thread */
    SWEEP_TILES = SWEEP / 16,
    AHEAD = 8,                /* tiles of weights on their way to a warp, as units of weights.h; AHEAD x WARPS divides SWEEP_TILES */
    BATCH = 4,                /* loads on their way to a thread that stages, sum_four at once: 8 would spill registers (sm_90) */
    CHUNK_BYTES = 64 << 10,   /* staged at once where all is too much: meanwhile, weights arrive in as many bytes of registers */
    BLOCK_BYTES = 1 << 10,    /* of shared memory that CUDA keeps for itself */
    PREFETCH_BYTES = 4 << 10, /* of weights for each row that is staged meanwhile, for 8 to 16 of them: all teams' are a third of the L2 cache */
};
static_assert(SWEEP_TILES % (AHEAD * WARPS) == 0, "a sweep is a whole number of rounds of prefetching");

/* What becomes of the sums. */
enum giving { GIVE_OUTPUTS, GIVE_SWIGLU, GIVE_EVIDENCE };

struct plan {
    struct linear_launch launch;
    int tiles; /* of a panel, */
    int units; /* as its weights are fetched */
    int panels;
    int groups;
    int teams;                         /* of a block */
    int chunk;                         /* tiles staged at once, a multiple of SWEEP_TILES, or all */
    int slots;                         /* rows that shared memory has room for: 1, or 8 for each tile of rows */
    int segments;                      /* of 128 columns, whose squares are summed by one warp */
    int aligned;                       /* rows can be read by 16 bytes */
    int restage;                       /* the rows are staged anew for each group */
    int at_sums, at_squares, at_scale; /* bytes into shared memory */
};

/* Teams of a block that the registers of a multiprocessor are enough for. */
constexpr int linear_plan_teams(int tiles, int panels)
{
    return tiles * panels <= 8 ? MOST_TEAMS : 1;
}

static inline int round_up(int value, int to)
{
    return (value + to - 1) / to * to;
}

/* Lays out shared memory; gives its size. Where all does not fit beside each other the sums take the place of the rows, which are staged again. */
static inline int lay_out(struct plan *plan, int tiles, int panels)
{
    int rows = plan->launch.rows, sums = plan->teams * WARPS * panels * tiles * 512, scales = 4 * plan->teams * round_up(rows, 4);
    int squares = plan->launch.norm != NULL ? 4 * rows * plan->segments : 0, tile_bytes, staged;

    plan->slots = rows == 1 ? 1 : 8 * tiles;
    tile_bytes = 32 * plan->slots;
    plan->chunk = round_up(plan->tiles, WARPS);
    plan->at_sums = staged = plan->chunk * tile_bytes;
    plan->restage = staged + sums + squares + scales > plan->launch.block_bytes;
    if (plan->restage) {
        int most = CHUNK_BYTES / tile_bytes / SWEEP_TILES * SWEEP_TILES;

        most = most > SWEEP_TILES ? most : (int)SWEEP_TILES;
        plan->chunk = plan->chunk < most ? plan->chunk : most;
        staged = plan->chunk * tile_bytes;
        plan->at_sums = 0;
    }
    plan->at_squares = plan->restage && staged > sums ? staged : plan->at_sums + sums;
    plan->at_scale = plan->at_squares + squares;
    return plan->at_scale + scales;
}

/* Of any launch of up to so many rows, where the sums take the place of the rows. */
constexpr int linear_plan_shared(int rows)
{
    int staged = SWEEP_TILES * 32 * rows, sums = MOST_TEAMS * WARPS * 2 * rows / 8 * 512;

    staged = staged > CHUNK_BYTES ? staged : (int)CHUNK_BYTES;
    return (staged > sums ? staged : sums) + 4 * rows * (KERNEL_MAX_HIDDEN / 128) + 4 * MOST_TEAMS * rows;
}
constexpr int FEW_ROWS = KERNEL_ROWS / 2;
static_assert(linear_plan_shared(KERNEL_ROWS) <= 163 << 10, "what sm_80 has for a block");
static_assert(linear_plan_shared(FEW_ROWS) <= 99 << 10, "what sm_86, sm_89 and sm_120 have");

/* Are there enough pairs of panels for all multiprocessors? Then rows are read from shared memory half as often. Of weights in blocks there are no
 * kernels for pairs but where they are gate and up: these kernels are many already. */
static inline bool pairs_of(int layout, int panels, int processors)
{
    return layout < BLOCKS_FIRST && panels >= 4 * processors;
}

/* For each way that weights lie: starts the kernel that the plan is for; tells CUDA how much memory a block of any of them may have (its error, or
 * 0). They are made in several files, which compilers can be at at once. */
struct linear_kind {
    void (*start)(const struct plan &plan, struct CUstream_st *stream);
    int (*prepare)(int block_bytes);
};
struct linear_kind linear_kind_bf16();
struct linear_kind linear_kind_f16();
struct linear_kind linear_kind_blocks(int layout);
struct linear_kind linear_kind_k_quants(int layout);

#endif
