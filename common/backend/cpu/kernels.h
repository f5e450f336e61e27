/* The inner loops of the CPU backend: one table per instruction set, all with the same bits. A kernel computes one thread's part; layer.c decides
 * which thread does which part. Owns nothing; never allocates or fails. */
#ifndef TANDEM_COMMON_BACKEND_CPU_KERNELS_H
#define TANDEM_COMMON_BACKEND_CPU_KERNELS_H

#include "common/backend/backend.h"
#include "common/backend/cpu/matrix.h"

enum { ATTEND_QUERIES = 24 }; /* queries of a block, which share the keys and values once these are in the cache */

/* Some queries of one sequence that read one key/value head together. */
struct attend_block {
    int count; /* of queries, 1 .. ATTEND_QUERIES */
    int head_dim;
    int context;                        /* places of the slot */
    const float *q[ATTEND_QUERIES];     /* [head_dim] each */
    float *to[ATTEND_QUERIES];          /* [head_dim] each */
    int32_t base[ATTEND_QUERIES];       /* as in struct rows */
    uint64_t ancestors[ATTEND_QUERIES]; /* as in struct rows */
    const void *keys;                   /* of the cache's dtype: [context / 16][head_dim][16] */
    const void *values;                 /* [context][head_dim] */
    float *scores;                      /* [context / 16][count][16], scratch */
    float *packed;                      /* [head_dim][count], scratch for the queries */
};

/* 32 of one row, rounded to 8 bits; each instruction set has its own. */
struct activations;

struct kernels {
    const char *isa;
    size_t activations_bytes;
    int attend_group; /* queries whose scores attend makes at once: what a thread takes at least */

    /* to[r][o] = W[o] . from[r] for the output channels o of the panels [first, last); `to` points at channel 16 first.
     * from: [rows][from_stride]  to: [rows][to_stride] */
    void (*matmul)(const struct matrix *matrix, int first, int last, int rows, const float *from, size_t from_stride, float *to,
                   size_t to_stride);

    /* A row of activations as the quantised matrix takes them, in blocks of 32 columns and of each slice for itself: a block's scale is the one of
     * largest magnitude, of two such the positive one, / -128, its values are min(rint(x (-128 / largest)), 127), ties to even. A block with a value
     * that is not finite has the scale NaN.
     * from: [columns]  to: block b at to + b * stride, which counts as struct activations does */
    void (*quantise)(const struct matrix *matrix, const float *from, struct activations *to, size_t stride);
    /* As matmul, of a quantised matrix.  from: [blocks][stride], row r of a block at r */
    void (*matmul_quantised)(const struct matrix *matrix, int first, int last, int rows, const struct activations *from, size_t stride,
                             float *to, size_t to_stride);

    /* to = x / sqrt(mean(x^2) + eps) * weight; `to` may be x.  x, weight, to: [count] */
    void (*norm)(const float *x, const float *weight, int count, float eps, float *to);
    /* Turns the pairs (i, i + half) of one head and scales them.  head: [2 half]  cosine, sine: [half] */
    void (*rope)(float *head, const float *cosine, const float *sine, int half, float scale);
    /* to[c] = silu(gate[c]) * up[c] from panels in pairs (gate, up): pairs of [2][16], the first `count` channels.  to: [count] */
    void (*swiglu)(const float *pairs, int count, float *to);
    /* x += y.  x, y: [count] */
    void (*add)(float *x, const float *y, size_t count);
    /* Puts in place of each value the nearest that bf16 has, ties to even; NaN stays NaN.  x: [count] */
    void (*round_bf16)(float *x, int count);

    /* The nearest number of E4M3, ties to even; 448 in place of what is larger, and NaN stays NaN. `to` may begin where x does.  x, to: [count] */
    void (*round_e4m3)(const float *x, int count, unsigned char *to);

    /* With keys and values in float32; in bf16; in E4M3. */
    void (*attend)(const struct attend_block *block);
    void (*attend_bf16)(const struct attend_block *block);
    void (*attend_e4m3)(const struct attend_block *block);

    /* Of one row, of which each logit is multiplied by `scale`, above 0, first. The largest of the logits [first, last) takes the place of
     * `best` where it is larger. */
    void (*row_max)(const float *logits, float scale, int first, int last, struct scored_token *best);
    /* Of exp(logit - max), as in struct row_stats. */
    double (*row_sum)(const float *logits, float scale, int count, float max);
    double (*row_below)(const float *logits, float scale, int count, float max); /* of (max - logit) exp(logit - max), likewise */
    /* As in struct backend, among [first, last): one that beats `winner` (token -1: there is none yet) takes its place. first: a multiple of 4,
     * with `excluded` of 64 */
    void (*row_gumbel_max)(const float *logits, float scale, int first, int last, int32_t first_token, const struct rng_key *key,
                     enum rng_purpose purpose, const uint32_t *excluded, struct scored_token *winner);
    /* The first i >= first with a logit > threshold, or count. */
    int (*row_find)(const float *logits, float scale, int first, int count, float threshold);

    /* Element by element, for tests.  [count] */
    void (*map_exp)(const float *from, float *to, int count);
    void (*map_log)(const float *from, float *to, int count);
    void (*map_gumbel)(const uint32_t *from, float *to, int count);
};

/* The table of that name, or of the best one that this CPU runs when NULL; NULL when the CPU or this build has not got it. */
const struct kernels *kernels_find(const char *isa);

extern const struct kernels kernels_scalar, kernels_avx2, kernels_avxvnni, kernels_avx512, kernels_avx512vnni;

#endif
