/* The matrix product of quantised weights. Activations become integers of 8 bits, block by block of 32 columns, as the weights are; a block
 * of a product is then a sum of integers, exact in any order, that is scaled once. A block of rows and panels keeps its float sums in
 * registers; bytes of weights are taken from memory, and halves of bytes unpacked, once for all its rows.
 *
 * Each output is its own chain: over the blocks of a slice in rising order, sum = fma(integer sum, weight scale * activation scale, sum),
 * and where there are minima then sum = fma(minimum, activation scale * sum of the activations' integers, sum). A block of Q5_K or Q6_K is
 * both = integer sum of the first half * its scale, then of Q5_K fma(its minimum, sum of the half's activations' integers, both), the second half's
 * alike with fma, and sum = fma(both, activation scale, sum). Of Q4_Z the integer sum is that of q times the activations' integers less the zero
 * point times the sum of these, all of which float32 has exactly. */
#include "common/backend/cpu/kernel/activations.h"
#include "common/backend/cpu/kernel/table.h"
#include "common/backend/cpu/kernel/tree.h"
#include "common/backend/cpu/kernel/vec.h"
#include "common/backend/cpu/matrix.h"

#include <math.h>
#include <string.h>

#if defined(TANDEM_ISA_AVX512)
enum { MAX_ROWS = 8, MAX_PANELS = 4 };
static const int most_panels[MAX_ROWS + 1] = {0, 4, 4, 3, 3, 3, 2, 2, 2}; /* that go with r rows */
#define BLOCKS(X, T)                                                                                                                       \
    X(1, 4, T)                                                                                                                             \
    X(1, 2, T)                                                                                                                             \
    X(1, 1, T)                                                                                                                             \
    X(2, 4, T) X(2, 2, T) X(2, 1, T) X(3, 3, T) X(3, 2, T) X(3, 1, T) X(4, 3, T) X(4, 2, T) X(4, 1, T) X(5, 3, T) X(5, 2, T) X(5, 1, T)    \
    X(6, 2, T) X(6, 1, T) X(7, 2, T) X(7, 1, T) X(8, 2, T) X(8, 1, T)
#elif defined(TANDEM_ISA_AVX2)
enum { MAX_ROWS = 6, MAX_PANELS = 2 };
static const int most_panels[MAX_ROWS + 1] = {0, 2, 1, 1, 1, 1, 1};
#define BLOCKS(X, T) X(1, 2, T) X(1, 1, T) X(2, 1, T) X(3, 1, T) X(4, 1, T) X(5, 1, T) X(6, 1, T)
#else
enum { MAX_ROWS = 4, MAX_PANELS = 2 };
static const int most_panels[MAX_ROWS + 1] = {0, 2, 1, 1, 1};
#define BLOCKS(X, T) X(1, 2, T) X(1, 1, T) X(2, 1, T) X(3, 1, T) X(4, 1, T)
#endif

enum { TOGETHER = 3 };  /* so many rows and more go through all panels block by block, for a core is short of reads of activations */
enum { NEAR = 3072, FAR = 16384 }; /* bytes of a panel between its prefetch and its use, where it goes alone and where others go with it */
#define AHEAD(ALONE) ((size_t)((ALONE) ? NEAR : FAR))
#define LEAST 0x1p-100f /* 128 / x overflows far below; blocks of less count as zeros */

/* Of a packed block (matrix.c), as constants. */
#define SCALE_BYTES(DTYPE) ((size_t)((DTYPE) == DTYPE_Q4_Z ? 0 : (DTYPE) == DTYPE_Q4_1 || (DTYPE) == DTYPE_Q5_1 || (DTYPE) == DTYPE_Q5_K ? 64 : 32))
#define INTEGER_BYTES(DTYPE)                                                                                                                         \
    ((size_t)((DTYPE) == DTYPE_Q8_0 || (DTYPE) == DTYPE_Q5_1 ? 512 : (DTYPE) == DTYPE_Q5_K || (DTYPE) == DTYPE_Q6_K ? 384 : 256))

/* Are the integers multiplied as halves of bytes? Else as bytes. */
INLINE int is_of_halves(enum dtype dtype)
{
    return dtype == DTYPE_Q4_0 || dtype == DTYPE_Q4_1 || dtype == DTYPE_Q4_Z || dtype == DTYPE_Q4_K;
}

/* The one of largest magnitude, `most`; of two the positive one. */
INLINE float largest_of(vec low, vec high, float most)
{
    vec positive = vec_set(most);

    return (vecm_bits(vec_equal(low, positive)) | vecm_bits(vec_equal(high, positive))) != 0 ? most : -most;
}

/* -128 .. 127: the largest is -128, its opposite, where it is there as well, 127. */
INLINE veci byte_of(vec x, vec inverse)
{
    return veci_of_integral(vec_min(vec_rint(vec_mul(x, inverse)), vec_set(127)));
}

/* Columns of one block, zeros where other slices have theirs. */
static void quantise_block(const float *from /* [32] */, enum dtype dtype, int offset, struct activations *to)
{
    vec low = vec_load(from), high = vec_load(from + LANES), infinite = vec_set(INFINITY);
    vec low_size = vec_of_bits(veci_and(veci_of_vec_bits(low), veci_set(0x7fffffff)));
    vec high_size = vec_of_bits(veci_and(veci_of_vec_bits(high), veci_set(0x7fffffff)));
    int finite = (vecm_bits(vec_less(low_size, infinite)) & vecm_bits(vec_less(high_size, infinite))) == 0xffff;
    float most = finite ? vec_max_lane(vec_max(low_size, high_size)) : 0;
    float largest = most > LEAST ? largest_of(low, high, most) : 0;
    vec inverse = vec_set(most > LEAST ? -128 / largest : 0);
    veci first, second;
    int32_t low_sum, high_sum, sum;

    if (!finite)
        low = high = vec_zero();
    first = byte_of(low, inverse);
    second = byte_of(high, inverse);
    if (!is_of_halves(dtype)) {
        veci_store_activations(to->value, first);
        veci_store_activations(to->value + LANES, second);
    } else {
        veci_store_bytes(to->byte, first);
        veci_store_bytes(to->byte + LANES, second);
    }
    low_sum = veci_sum(first);
    high_sum = veci_sum(second);
    sum = low_sum + high_sum;
    to->scale = finite ? largest / -128 : NAN;
    to->start = -offset * sum;
    to->sum = (float)sum;
    to->total = to->scale * to->sum;
    to->start_half[0] = -offset * low_sum;
    to->start_half[1] = -offset * high_sum;
    to->sum_half[0] = (float)low_sum;
    to->sum_half[1] = (float)high_sum;
}

void KERNEL_QUANTISED(quantise)(const struct matrix *matrix, const float *from, struct activations *to, size_t stride)
{
    int offset = matrix_offset(matrix->dtype);

    for (int i = 0; i < matrix->slices; i++) {
        int first = matrix->phase + matrix->bound[i], last = matrix->phase + matrix->bound[i + 1];

        for (int column = first; column < last; to += stride) {
            int end = (column / DTYPE_BLOCK + 1) * DTYPE_BLOCK, count = (end < last ? end : last) - column;
            float part[DTYPE_BLOCK] = {0};

            if (count == DTYPE_BLOCK) {
                quantise_block(from + (column - matrix->phase), matrix->dtype, offset, to);
            } else {
                memcpy(part + column % DTYPE_BLOCK, from + (column - matrix->phase), (size_t)count * sizeof *part);
                quantise_block(part, matrix->dtype, offset, to);
            }
            column += count;
        }
    }
}

struct block {
    const struct matrix *matrix;
    const unsigned char *weights;   /* first panel */
    const struct activations *from; /* [blocks][stride] */
    size_t stride;
    float *to; /* [rows][to_stride], at the first panel's channel 0 */
    size_t to_stride;
    int channels; /* that may be written, from the first panel on */
};

/* The next vector of each panel's bytes, 16 channels; `next` is what will be read later, into the first cache where one panel goes alone. */
SPECIALISED void load_words(int panels, int alone, const unsigned char *at, size_t panel_bytes, const unsigned char *next, veci *words /* [panels] */)
{
    UNROLL for (int p = 0; p < panels; p++)
    {
        words[p] = veci_load((const uint32_t *)(const void *)(at + (size_t)p * panel_bytes));
        prefetch(alone, next + (size_t)p * panel_bytes);
    }
}

/* Four columns of 16 channels of each panel into the integer sums of all rows: activations are read once for all panels. */
SPECIALISED void add_bytes(int rows, int panels, const veci *weights /* [panels] */, int group, const struct activations *from,
                           veci *dot /* [panels][rows] */)
{
    veci factor[MAX_PANELS];

    UNROLL for (int part = 0; part < DOT_PARTS; part++)
    {
        UNROLL for (int p = 0; p < panels; p++) factor[p] = veci_dot_part(weights[p], part);
        UNROLL for (int r = 0; r < rows; r++)
        {
            UNROLL for (int p = 0; p < panels; p++) dot[p * rows + r] = veci_dot(dot[p * rows + r], factor[p], from[r].value + 4 * group, part);
        }
    }
}

SPECIALISED void add_nibbles(int rows, int panels, const veci *weights /* [panels] */, int group, const struct activations *from,
                             veci *dot /* [panels][rows] */)
{
    UNROLL for (int r = 0; r < rows; r++)
    {
        UNROLL for (int p = 0; p < panels; p++) dot[p * rows + r] = veci_dot_nibbles(dot[p * rows + r], weights[p], from[r].byte + 4 * group);
    }
}

/* Sums of products of bytes. */
SPECIALISED void dot_bytes(int rows, int panels, int alone, const unsigned char *at, size_t panel_bytes, const struct activations *from,
                           const unsigned char *next, veci *dot /* [panels][rows] */)
{
    veci words[MAX_PANELS];

    UNROLL for (int i = 0; i < panels * rows; i++) dot[i] = veci_set((uint32_t)from[i % rows].start);
    UNROLL for (int g = 0; g < 8; g++)
    {
        load_words(panels, alone, at + 64 * g, panel_bytes, next + 64 * g, words);
        add_bytes(rows, panels, words, g, from, dot);
    }
}

SPECIALISED void dot_halves(int rows, int panels, int alone, const unsigned char *at, size_t panel_bytes, const struct activations *from,
                            const unsigned char *next, veci *dot /* [panels][rows] */)
{
    veci halves = veci_set(0x0f0f0f0f), words[MAX_PANELS], half[MAX_PANELS];

    UNROLL for (int i = 0; i < panels * rows; i++) dot[i] = veci_nibbles_begin(from[i % rows].start);
    UNROLL for (int g = 0; g < 4; g++)
    {
        load_words(panels, alone, at + 64 * g, panel_bytes, next + 64 * g, words);
        UNROLL for (int p = 0; p < panels; p++) half[p] = veci_and(words[p], halves);
        add_nibbles(rows, panels, half, g, from, dot);
        UNROLL for (int p = 0; p < panels; p++) half[p] = veci_and(veci_right(words[p], 4), halves);
        add_nibbles(rows, panels, half, g + 4, from, dot);
    }
    UNROLL for (int i = 0; i < panels * rows; i++) dot[i] = veci_nibbles_end(dot[i], from[i % rows].start);
}

/* The pairs of bits of group g of a half, above halves of bytes. */
INLINE veci pairs_of(veci word, int g)
{
    veci pairs = veci_set(0x30303030);

    return g == 0   ? veci_and(veci_left(word, 4), pairs)
           : g == 1 ? veci_and(veci_left(word, 2), pairs)
           : g == 2 ? veci_and(word, pairs)
                    : veci_and(veci_right(word, 2), pairs);
}

/* Sums of products of 6 bits, over one half of the block. */
SPECIALISED void dot_six(int rows, int panels, int alone, int h, const unsigned char *at, size_t panel_bytes, const struct activations *from,
                         const unsigned char *next, veci *dot /* [panels][rows] */)
{
    veci halves = veci_set(0x0f0f0f0f), upper[MAX_PANELS], words[MAX_PANELS];

    UNROLL for (int i = 0; i < panels * rows; i++) dot[i] = veci_set((uint32_t)from[i % rows].start_half[h]);
    load_words(panels, alone, at + 256 + 64 * h, panel_bytes, next + 256 + 64 * h, upper);
    UNROLL for (int g = 0; g < 4; g++)
    {
        load_words(panels, alone, at + 64 * g, panel_bytes, next + 64 * g, words);
        UNROLL for (int p = 0; p < panels; p++)
        {
            veci low = veci_and(h == 0 ? words[p] : veci_right(words[p], 4), halves);

            words[p] = veci_or(low, pairs_of(upper[p], g));
        }
        add_bytes(rows, panels, words, 4 * h + g, from, dot);
    }
}

/* One step of the chains of one panel. */
SPECIALISED void add_step(int rows, const veci *dot /* [rows] */, vec scale, const struct activations *from, vec *sum /* [rows] */)
{
    UNROLL for (int r = 0; r < rows; r++) sum[r] = vec_fma(vec_of_int(dot[r]), vec_mul(scale, vec_set(from[r].scale)), sum[r]);
}

/* The same where a zero point is to be taken away, whose sign is turned. */
SPECIALISED void add_step_from_zero(int rows, const veci *dot /* [rows] */, vec scale, vec zero, const struct activations *from,
                                    vec *sum /* [rows] */)
{
    UNROLL for (int r = 0; r < rows; r++)
    {
        vec whole = vec_fma(zero, vec_set(from[r].sum), vec_of_int(dot[r]));

        sum[r] = vec_fma(whole, vec_mul(scale, vec_set(from[r].scale)), sum[r]);
    }
}

/* One half of a block of one panel of Q5_K or Q6_K into what both are, but for the activations' scale.
 * half: its scales, and minima; head: the panel's d and m */
SPECIALISED void add_half(int rows, enum dtype dtype, int h, const veci *dot /* [rows] */, const unsigned char *half, const unsigned char *head,
                          const struct activations *from, vec *both /* [rows] */)
{
    vec scale = vec_mul(vec_widen_f16(head), vec_widen_i8(half));

    UNROLL for (int r = 0; r < rows; r++) both[r] = h == 0 ? vec_mul(vec_of_int(dot[r]), scale) : vec_fma(vec_of_int(dot[r]), scale, both[r]);
    if (dtype == DTYPE_Q5_K) {
        vec least = vec_mul(vec_widen_f16(head + 32), vec_widen_i8(half + 16));

        UNROLL for (int r = 0; r < rows; r++) both[r] = vec_fma(least, vec_set(from[r].sum_half[h]), both[r]);
    }
}

/* One block of each panel into the sums of all rows.  alone: no other panels go with these; head: of a k-quant's first panel, or of one of Q4_Z */
SPECIALISED void add_blocks(int rows, int panels, int alone, enum dtype dtype, const unsigned char *at, size_t panel_bytes, const unsigned char *head,
                            const struct activations *from, const unsigned char *next, vec *sum /* [panels][rows] */)
{
    const size_t scales = SCALE_BYTES(dtype);
    veci dot[MAX_ROWS * MAX_PANELS];

    if (dtype == DTYPE_Q5_K || dtype == DTYPE_Q6_K) {
        const size_t apart = dtype == DTYPE_Q5_K ? 32 : 16;
        vec both[MAX_ROWS * MAX_PANELS];

        UNROLL for (int h = 0; h < 2; h++)
        {
            dot_six(rows, panels, alone, h, at + scales, panel_bytes, from, next, dot);
            UNROLL for (int p = 0; p < panels; p++) add_half(rows, dtype, h, dot + p * rows, at + (size_t)p * panel_bytes + (size_t)h * apart,
                                                             head + (size_t)p * panel_bytes, from, both + p * rows);
        }
        UNROLL for (int i = 0; i < panels * rows; i++) sum[i] = vec_fma(both[i], vec_set(from[i % rows].scale), sum[i]);
        UNROLL for (int p = 0; p < panels; p++) prefetch(alone, next + (size_t)p * panel_bytes + 384);
        return;
    }
    if (is_of_halves(dtype))
        dot_halves(rows, panels, alone, at + scales, panel_bytes, from, next, dot);
    else
        dot_bytes(rows, panels, alone, at + scales, panel_bytes, from, next, dot);
    UNROLL for (int p = 0; p < panels; p++, at += panel_bytes, head += panel_bytes, next += panel_bytes, sum += rows)
    {
        if (dtype == DTYPE_Q4_Z) {
            add_step_from_zero(rows, dot + p * rows, vec_widen_f16(head), vec_widen_i8(head + 32), from, sum);
            continue;
        }
        prefetch(alone, next + INTEGER_BYTES(dtype));
        add_step(rows, dot + p * rows, dtype == DTYPE_Q4_K ? vec_mul(vec_widen_f16(head), vec_widen_i8(at)) : vec_widen_f16(at), from, sum);
        if (dtype == DTYPE_Q4_1 || dtype == DTYPE_Q5_1 || dtype == DTYPE_Q4_K) {
            vec least = dtype == DTYPE_Q4_K ? vec_mul(vec_widen_f16(head + 32), vec_widen_i8(at + 16)) : vec_widen_f16(at + 32);

            UNROLL for (int r = 0; r < rows; r++) sum[r] = vec_fma(least, vec_set(from[r].total), sum[r]);
        }
    }
}

/* The sums of `count` blocks. The prefetch runs ahead in each panel and, near the panel's end, at the start of the panel that takes its
 * place in the next group. */
SPECIALISED void sum_blocks(int rows, int panels, enum dtype dtype, const struct block *block, const unsigned char *at, int first,
                            const struct activations *from, int count, const unsigned char *jump_from, vec *sum /* [panels][rows] */)
{
    const size_t bytes = SCALE_BYTES(dtype) + INTEGER_BYTES(dtype);
    const int together = rows < TOGETHER ? 1 : panels, alone = panels == 1;
    size_t panel_bytes = block->matrix->panel_bytes, jump = (size_t)(panels - 1) * panel_bytes;

    UNROLL for (int i = 0; i < rows * panels; i++) sum[i] = vec_zero();
    for (int b = 0; b < count; b++, at += bytes, from += block->stride) {
        const unsigned char *next = at + AHEAD(alone) + (at >= jump_from ? jump : 0);
        const unsigned char *head = block->weights + matrix_head(block->matrix, first + b); /* for k-quants and Q4_Z */

        UNROLL for (int p = 0; p < panels; p += together)
            add_blocks(rows, together, alone, dtype, at + (size_t)p * panel_bytes, panel_bytes, head + (size_t)p * panel_bytes, from,
                       next + (size_t)p * panel_bytes, sum + p * rows);
    }
}

SPECIALISED void store_sums(int rows, int panels, const struct block *block, const vec *sum /* [panels][rows] */)
{
    UNROLL for (int p = 0; p < panels; p++)
    {
        UNROLL for (int r = 0; r < rows; r++)
            vec_store_left(block->to + (size_t)r * block->to_stride + (size_t)p * LANES, sum[p * rows + r], block->channels - p * LANES);
    }
}

SPECIALISED void run_block(int rows, int panels, enum dtype dtype, const struct block *block)
{
    const struct matrix *matrix = block->matrix;
    const struct activations *from = block->from;
    const size_t ahead = AHEAD(panels == 1);
    const unsigned char *at = block->weights + matrix->head_bytes,
                        *jump_from = block->weights + matrix->panel_bytes - (matrix->panel_bytes < ahead ? matrix->panel_bytes : ahead);
    vec sum[MAX_ROWS * MAX_PANELS], terms[BACKEND_MAX_SLICES * MAX_ROWS * MAX_PANELS];

    for (int i = 0; i < matrix->slices; i++) {
        int count = matrix_blocks(matrix->phase, matrix->bound[i], matrix->bound[i + 1]);

        sum_blocks(rows, panels, dtype, block, at, (matrix->phase + matrix->bound[i]) / DTYPE_BLOCK, from, count, jump_from, sum);
        if (matrix->slices == 1) {
            store_sums(rows, panels, block, sum);
            return;
        }
        UNROLL for (int j = 0; j < rows * panels; j++) terms[i * rows * panels + j] = sum[j];
        at += (size_t)count * matrix_block_bytes(dtype);
        from += (size_t)count * block->stride;
    }
    tree_sum(terms, rows * panels, matrix->slices, rows * panels);
    store_sums(rows, panels, block, terms);
}

typedef void block_kernel(const struct block *block);

#define BLOCK_KERNEL(R, P, T)                                                                                                              \
    static void block_##R##x##P##_##T(const struct block *block)                                                                           \
    {                                                                                                                                      \
        run_block(R, P, DTYPE_##T, block);                                                                                                 \
    }
BLOCKS(BLOCK_KERNEL, Q8_0)
BLOCKS(BLOCK_KERNEL, Q4_0)
BLOCKS(BLOCK_KERNEL, Q4_1)
BLOCKS(BLOCK_KERNEL, Q5_1)
BLOCKS(BLOCK_KERNEL, Q4_Z)
BLOCKS(BLOCK_KERNEL, Q4_K)
BLOCKS(BLOCK_KERNEL, Q5_K)
BLOCKS(BLOCK_KERNEL, Q6_K)

#define BLOCK_ENTRY(R, P, T) [DTYPE_##T][R][P] = block_##R##x##P##_##T,
static block_kernel *const block_kernels[DTYPES][MAX_ROWS + 1][MAX_PANELS + 1] = {
    BLOCKS(BLOCK_ENTRY, Q8_0) BLOCKS(BLOCK_ENTRY, Q4_0) BLOCKS(BLOCK_ENTRY, Q4_1) BLOCKS(BLOCK_ENTRY, Q5_1) BLOCKS(BLOCK_ENTRY, Q4_Z)
        BLOCKS(BLOCK_ENTRY, Q4_K) BLOCKS(BLOCK_ENTRY, Q5_K) BLOCKS(BLOCK_ENTRY, Q6_K)};

/* All rows of the sweep for a group of panels, in blocks of nearly equal size. */
static void run_group(struct block block, int panels, int rows)
{
    int blocks = (rows + MAX_ROWS - 1) / MAX_ROWS;

    for (int i = 0; i < blocks; i++) {
        int size = rows / blocks + (i < rows % blocks);

        block_kernels[block.matrix->dtype][size][panels](&block);
        block.from += size;
        block.to += (size_t)size * block.to_stride;
    }
}

/* The widest group, at most `left` panels, for which there is a kernel for the two sizes of block. */
static int group_size(const struct matrix *matrix, int rows, int left)
{
    int blocks = (rows + MAX_ROWS - 1) / MAX_ROWS, small = rows / blocks, large = (rows + blocks - 1) / blocks;
    int most = rows == 1 && matrix->row_goes_alone ? 1 : most_panels[large], panels = left < most ? left : most;

    while (block_kernels[DTYPE_Q8_0][small][panels] == NULL || block_kernels[DTYPE_Q8_0][large][panels] == NULL)
        panels--;
    return panels;
}

void KERNEL_QUANTISED(matmul_quantised)(const struct matrix *matrix, int first, int last, int rows, const struct activations *from,
                                        size_t stride, float *to, size_t to_stride)
{
    for (int p = first, panels; p < last; p += panels) {
        panels = group_size(matrix, rows, last - p);
        run_group((struct block){.matrix = matrix,
                                 .weights = matrix->data + (size_t)p * matrix->panel_bytes,
                                 .from = from,
                                 .stride = stride,
                                 .to = to + (size_t)(p - first) * LANES,
                                 .to_stride = to_stride,
                                 .channels = matrix->outputs - p * LANES},
                  panels, rows);
    }
}
