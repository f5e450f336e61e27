/* The matrix product. A block is a few rows times a few panels whose sums all stay in registers: each column is widened once and
 * multiplied into all of them. One row needs eight panels side by side, since each sum is one chain and a fused multiply-add has
 * four cycles of latency; eight rows have chains enough with three.
 *
 * All rows of a step (up to 64) are done for one group of panels before the next group is read, so the weights come from memory
 * once per step. How rows and panels are cut changes no bits: every output is its own chain. */
#include "common/backend/cpu/kernel/table.h"
#include "common/backend/cpu/kernel/tree.h"
#include "common/backend/cpu/kernel/vec.h"
#include "common/backend/cpu/matrix.h"

#if defined(TANDEM_ISA_AVX512)
enum { MAX_ROWS = 8, MAX_PANELS = 8 };
/* Most panels that go with r rows: 24 of the 32 registers hold sums. */
static const int most_panels[MAX_ROWS + 1] = {0, 8, 8, 8, 6, 4, 4, 3, 3};
#define BLOCKS(X, T)                                                                                                                       \
    X(1, 8, T)                                                                                                                             \
    X(1, 4, T)                                                                                                                             \
    X(1, 2, T)                                                                                                                             \
    X(1, 1, T)                                                                                                                             \
    X(2, 8, T) X(2, 4, T) X(2, 2, T) X(2, 1, T) X(3, 8, T) X(3, 4, T) X(3, 2, T) X(3, 1, T) X(4, 6, T) X(4, 4, T) X(4, 2, T) X(4, 1, T)    \
        X(5, 4, T) X(5, 2, T) X(5, 1, T) X(6, 4, T) X(6, 3, T) X(6, 2, T) X(6, 1, T) X(7, 3, T) X(7, 2, T) X(7, 1, T) X(8, 3, T)           \
            X(8, 2, T) X(8, 1, T)
#elif defined(TANDEM_ISA_AVX2)
enum { MAX_ROWS = 5, MAX_PANELS = 4 };
static const int most_panels[MAX_ROWS + 1] = {0, 4, 2, 1, 1, 1};
#define BLOCKS(X, T) X(1, 4, T) X(1, 2, T) X(1, 1, T) X(2, 2, T) X(2, 1, T) X(3, 1, T) X(4, 1, T) X(5, 1, T)
#else
enum { MAX_ROWS = 4, MAX_PANELS = 1 };
static const int most_panels[MAX_ROWS + 1] = {0, 1, 1, 1, 1};
#define BLOCKS(X, T) X(1, 1, T) X(2, 1, T) X(3, 1, T) X(4, 1, T)
#endif

enum {
    ROWS_PER_SWEEP = 64, /* whose activations stay in the cache while the panels stream by */
    NEAR = 2048,         /* bytes of a panel between its prefetch and its use, .. */
    FAR = 8192,          /* .. of one that comes out of memory */
};

struct block {
    const struct matrix *matrix;
    const unsigned char *weights; /* first panel */
    const float *from;            /* [rows][from_stride] */
    size_t from_stride;
    float *to; /* [rows][to_stride], at the first panel's channel 0 */
    size_t to_stride;
    int channels; /* that may be written, from the first panel on */
};

SPECIALISED vec widen(enum dtype dtype, const unsigned char *at, int odd)
{
    switch (dtype) {
    case DTYPE_BF16:
        return odd ? vec_widen_bf16_odd(at) : vec_widen_bf16_even(at);
    case DTYPE_F16:
        return vec_widen_f16(at + 32 * odd);
    default:
        return vec_load((const float *)(const void *)at + 16 * odd);
    }
}

/* One column, even or odd of its pair, into all sums. */
SPECIALISED void add_column(int rows, int panels, enum dtype dtype, const unsigned char *at, size_t panel_bytes, int odd, const float *from,
                            size_t from_stride, vec *sum /* [rows][panels] */)
{
    vec weight[MAX_PANELS];

    UNROLL for (int p = 0; p < panels; p++) weight[p] = widen(dtype, at + (size_t)p * panel_bytes, odd);
    UNROLL for (int r = 0; r < rows; r++)
    {
        vec x = vec_set(from[(size_t)r * from_stride + (size_t)odd]);

        UNROLL for (int p = 0; p < panels; p++) sum[r * panels + p] = vec_fma(weight[p], x, sum[r * panels + p]);
    }
}

#define AHEAD(STREAMS) ((size_t)((STREAMS) ? FAR : NEAR))

/* What each panel will need: what streams out of memory, into the second cache. */
SPECIALISED void fetch_ahead(int panels, int streams, const unsigned char *next, size_t panel_bytes)
{
    UNROLL for (int p = 0; p < panels; p++) prefetch(!streams, next + (size_t)p * panel_bytes);
}

/* The sums of one slice. The prefetch runs ahead in each panel and, near the panel's end, at the start of the panel that takes
 * its place in the next group. */
SPECIALISED void sum_slice(int rows, int panels, enum dtype dtype, int streams, const struct block *block, const unsigned char *at, const float *from,
                           int columns, const unsigned char *jump_from, vec *sum /* [rows][panels] */)
{
    size_t panel_bytes = block->matrix->panel_bytes, pair_bytes = dtype == DTYPE_F32 ? 128 : 64, jump = (size_t)(panels - 1) * panel_bytes;

    UNROLL for (int i = 0; i < rows * panels; i++) sum[i] = vec_zero();
    for (int k = 0; k + 1 < columns; k += 2) {
        const unsigned char *next = at + AHEAD(streams) + (at >= jump_from ? jump : 0);

        fetch_ahead(panels, streams, next, panel_bytes);
        if (dtype == DTYPE_F32)
            fetch_ahead(panels, streams, next + 64, panel_bytes);
        add_column(rows, panels, dtype, at, panel_bytes, 0, from + k, block->from_stride, sum);
        add_column(rows, panels, dtype, at, panel_bytes, 1, from + k, block->from_stride, sum);
        at += pair_bytes;
    }
    if (columns % 2 != 0)
        add_column(rows, panels, dtype, at, panel_bytes, 0, from + columns - 1, block->from_stride, sum);
}

/* One column of f8. */
SPECIALISED void add_f8_column(int rows, int panels, const unsigned char *at, size_t panel_bytes, const vec *scale /* [panels] */, const float *from,
                               size_t from_stride, vec *sum /* [rows][panels] */)
{
    vec weight[MAX_PANELS];

    UNROLL for (int p = 0; p < panels; p++) weight[p] = vec_mul(vec_widen_e4m3(at + (size_t)p * panel_bytes), scale[p]);
    UNROLL for (int r = 0; r < rows; r++)
    {
        vec x = vec_set(from[(size_t)r * from_stride]);

        UNROLL for (int p = 0; p < panels; p++) sum[r * panels + p] = vec_fma(weight[p], x, sum[r * panels + p]);
    }
}

/* The same for f8, of the columns [first, last). */
SPECIALISED void sum_f8_slice(int rows, int panels, int streams, const struct block *block, const unsigned char *at, int first, int last,
                              const unsigned char *jump_from, vec *sum /* [rows][panels] */)
{
    size_t panel_bytes = block->matrix->panel_bytes, jump = (size_t)(panels - 1) * panel_bytes;
    vec scale[MAX_PANELS];

    UNROLL for (int i = 0; i < rows * panels; i++) sum[i] = vec_zero();
    for (int k = first, stop; k < last; k = stop) {
        stop = matrix_f8_stop(block->matrix->phase, k, last);
        UNROLL for (int p = 0; p < panels; p++) scale[p] = vec_load((const float *)(const void *)(at + (size_t)p * panel_bytes));
        at += 64;
        for (; k < stop; k += 4, at += 64) {
            const unsigned char *next = at + AHEAD(streams) + (at >= jump_from ? jump : 0);
            const float *from = block->from + k;

            fetch_ahead(panels, streams, next, panel_bytes);
            UNROLL for (int i = 0; i < 4; i++) if (i < stop - k)
                add_f8_column(rows, panels, at + 16 * i, panel_bytes, scale, from + i, block->from_stride, sum);
        }
    }
}

SPECIALISED void store_sums(int rows, int panels, const struct block *block, const vec *sum /* [rows][panels] */)
{
    UNROLL for (int r = 0; r < rows; r++)
    {
        UNROLL for (int p = 0; p < panels; p++)
            vec_store_left(block->to + (size_t)r * block->to_stride + (size_t)p * LANES, sum[r * panels + p], block->channels - p * LANES);
    }
}

SPECIALISED void run_block(int rows, int panels, enum dtype dtype, int streams, const struct block *block)
{
    const struct matrix *matrix = block->matrix;
    const size_t ahead = AHEAD(streams);
    const unsigned char *at = block->weights, *jump_from = at + matrix->panel_bytes - (matrix->panel_bytes < ahead ? matrix->panel_bytes : ahead);
    vec sum[MAX_ROWS * MAX_PANELS], terms[BACKEND_MAX_SLICES][MAX_ROWS * MAX_PANELS];
    for (int i = 0; i < matrix->slices; i++) {
        int first = matrix->bound[i], last = matrix->bound[i + 1];

        if (dtype == DTYPE_F8)
            sum_f8_slice(rows, panels, streams, block, at, first, last, jump_from, sum);
        else
            sum_slice(rows, panels, dtype, streams, block, at, block->from + first, last - first, jump_from, sum);
        if (matrix->slices == 1) {
            store_sums(rows, panels, block, sum);
            return;
        }
        UNROLL for (int j = 0; j < rows * panels; j++) terms[i][j] = sum[j];
        at += matrix_slice_bytes(dtype, matrix->phase, first, last);
    }
    tree_sum(terms[0], MAX_ROWS * MAX_PANELS, matrix->slices, rows * panels);
    store_sums(rows, panels, block, terms[0]);
}

typedef void block_kernel(const struct block *block);

#define BLOCK_KERNEL(R, P, T)                                                                                                                        \
    static void block_##R##x##P##_##T(const struct block *block)                                                                                     \
    {                                                                                                                                                \
        run_block(R, P, DTYPE_##T, 0, block);                                                                                                        \
    }                                                                                                                                                \
    static void block_##R##x##P##_##T##_streams(const struct block *block)                                                                           \
    {                                                                                                                                                \
        run_block(R, P, DTYPE_##T, 1, block);                                                                                                        \
    }
BLOCKS(BLOCK_KERNEL, F32)
BLOCKS(BLOCK_KERNEL, F16)
BLOCKS(BLOCK_KERNEL, BF16)
BLOCKS(BLOCK_KERNEL, F8)

#define BLOCK_ENTRY(R, P, T) [DTYPE_##T][R][P] = {block_##R##x##P##_##T, block_##R##x##P##_##T##_streams},
static block_kernel *const block_kernels[4][MAX_ROWS + 1][MAX_PANELS + 1][2] = {BLOCKS(BLOCK_ENTRY, F32) BLOCKS(BLOCK_ENTRY, F16)
                                                                                    BLOCKS(BLOCK_ENTRY, BF16) BLOCKS(BLOCK_ENTRY, F8)};

/* All rows of the sweep for a group of panels, in blocks of nearly equal size. */
static void run_group(struct block block, int panels, int rows)
{
    int blocks = (rows + MAX_ROWS - 1) / MAX_ROWS;

    for (int i = 0; i < blocks; i++) {
        int size = rows / blocks + (i < rows % blocks);

        block_kernels[block.matrix->dtype][size][panels][block.matrix->streams](&block);
        block.from += (size_t)size * block.from_stride;
        block.to += (size_t)size * block.to_stride;
    }
}

/* The widest group, at most `left` panels, for which there is a kernel for the two sizes of block. */
static int group_size(int rows, int left)
{
    int blocks = (rows + MAX_ROWS - 1) / MAX_ROWS, small = rows / blocks, large = (rows + blocks - 1) / blocks;
    int panels = left < most_panels[large] ? left : most_panels[large];

    while (block_kernels[DTYPE_BF16][small][panels][0] == NULL || block_kernels[DTYPE_BF16][large][panels][0] == NULL)
        panels--;
    return panels;
}

void KERNEL(matmul)(const struct matrix *matrix, int first, int last, int rows, const float *from, size_t from_stride, float *to,
                    size_t to_stride)
{
    for (int done = 0; done < rows; done += ROWS_PER_SWEEP) {
        int sweep = rows - done < ROWS_PER_SWEEP ? rows - done : ROWS_PER_SWEEP;

        for (int p = first, panels; p < last; p += panels) {
            panels = group_size(sweep, last - p);
            run_group((struct block){.matrix = matrix,
                                     .weights = matrix->data + (size_t)p * matrix->panel_bytes,
                                     .from = from + (size_t)done * from_stride,
                                     .from_stride = from_stride,
                                     .to = to + (size_t)done * to_stride + (size_t)(p - first) * LANES,
                                     .to_stride = to_stride,
                                     .channels = matrix->outputs - p * LANES},
                      panels, sweep);
        }
    }
}
