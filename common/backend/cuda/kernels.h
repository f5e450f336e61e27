/* What the host asks of the kernels: for each a struct of arguments and a launcher, which returns at once; the work is done in `stream`, in the order
 * of the launches. Launchers say nothing of failures: the host asks device_launched. They own no memory and allocate none. For the files of this
 * folder alone.
 *
 * Pointers are into the device's memory, arrays row-major float32 unless said otherwise. No kernel reads or writes beyond the shapes named here.
 * Invariant: the bits of a row do not depend on how many rows, or which, are in the launch. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_KERNELS_H
#define TANDEM_COMMON_BACKEND_CUDA_KERNELS_H

#include "common/backend/backend.h"
#include "common/backend/cuda/blocks.h"
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

enum {
    KERNEL_ROWS = 64,          /* most rows of a launch, but for wide*.cu */
    KERNEL_CLUSTER_LEAST = 17, /* rows for which clusters pay, by arithmetic */
    KERNEL_CLUSTER_ROWS = 128,
    KERNEL_MAX_HIDDEN = 16384, /* most columns of a linear map with a norm before it */
};

/* The type of numbers that one kernel hands on to another. */
enum kernel_numbers { KERNEL_F32, KERNEL_BF16, KERNEL_F16 };
static inline size_t kernel_numbers_bytes(enum kernel_numbers numbers)
{
    return numbers == KERNEL_F32 ? 4 : 2;
}

/* The rows of a launch, as in struct rows, each [count]. */
struct kernel_rows {
    int count;
    const int32_t *position, *slot, *place, *base;
    const uint64_t *ancestors;
};

/* The rows of logits that a question is about */
struct kernel_logits {
    const float *logits; /* [..][count]; NULL where a head gives the evidence at once */
    int rows, count;
    const int32_t *row;  /* [rows] of logits */
    const float *scale;  /* [rows] that logits are multiplied by first, 1 / temperature */
};

/* evidence.cu: what a shard knows of each row of logits, so that logits need not leave the device. max, argmax and
 * winner are to the bit what row_scan and row_gumbel_max of the CPU give for the scaled row; the sum is of the same terms but for their
 * rounding, in an order of its own. Rows hold no NaN. */
struct evidence_launch {
    struct kernel_logits from;
    const struct rng_key *key; /* [rows] of the noise, or NULL for none */
    const int32_t *purpose;    /* [rows] what the noise is for, enum rng_purpose; -1: this row has none */
    int32_t first_token;       /* the id of a row's first logit, a multiple of 4 */
    const int32_t *excludes;   /* [rows] whether the tokens below take no part in the Gumbel-max */
    const int32_t *token_first; /* [rows + 1]: row r has the tokens token_first[r] .. token_first[r + 1] - 1 */
    const int32_t *token;      /* ids, rising within a row, of any shard */
    float *logit;              /* of each token; minus infinity where it is another shard's */
    struct row_stats *stats;   /* [rows] */
    int below;                 /* whether `below` of these is wanted; it is 0 otherwise, and where the head has made the parts */
    struct scored_token *winner; /* [rows], or NULL where key is; token: index in the shard, -1 when none is above minus infinity */
    void *scratch;             /* evidence_scratch_bytes of it, aligned to 8 */
};
/* Once for each device, and so the others. 0, or CUDA's number of the error. */
int evidence_prepare(void);
size_t evidence_scratch_bytes(int rows, int count);
void evidence_start(const struct evidence_launch *launch, struct CUstream_st *stream);
/* The second half, where linear_start has made the parts: so many of each row. */
void evidence_join_start(const struct evidence_launch *launch, int parts, struct CUstream_st *stream);

/* linear.cu: to[r] = W norm(from[r]). What enters a product is rounded to the type of the weights: here, or, where there is no norm, by the kernel
 * that made it, so that it is half as long a way.
 *
 * Weights lie in tiles of 16 output channels x 16 columns, each as the 32 lanes of a warp want it: lane l has of the channels l / 4 and l / 4 + 8
 * the columns 4 (l % 4) .. + 3, in the order c0 k0 k1, c8 k0 k1, c0 k2 k3, c8 k2 k3: 16 bytes. A panel is 16 channels, its tiles in rising order
 * of the column. Channels and columns that are not there are zeros. */
struct linear_launch {
    const void *weights; /* [ceil(outputs / 16)][ceil(columns / 16)][32][8], or in blocks */
    int layout;          /* DTYPE_F16, DTYPE_BF16, or as blocks.h counts them: weights lie as it says, and rows are rounded to bfloat16 */
    int is_f16;          /* rows, and weights that are not in blocks, are of IEEE half precision, else of bfloat16 */
    int outputs, columns;
    int rows;          /* 1 .. linear_rows */
    const void *from;  /* [rows][columns] */
    int is_rounded;    /* from is of the type of the weights, else float32; without norm */
    const float *norm; /* weights of the RMS norm of from, [columns], or NULL for none */
    float norm_eps;
    int ffn;        /* 0, or: the panels are pairs (gate, up) and to = silu(gate) * up has `ffn` channels */
    void *to;       /* [rows][outputs], or [rows][ffn], or NULL: what is to be known of the outputs goes into the scratch of `evidence` */
    enum kernel_numbers gives;       /* in `to`; KERNEL_F32 for outputs */
    struct evidence_launch evidence; /* where to is NULL: its row r is the launch's */
    int adds;       /* to += instead */
    int processors; /* of the device */
    int processor_bytes; /* of shared memory that one of them has */
    int block_bytes;     /* of these, that a block may have */
    int overlaps;   /* device_overlaps: the kernel may begin before what is ahead of it has ended, and waits for it itself */
};
/* Most rows of a launch on a device whose blocks may have so many bytes of shared memory: KERNEL_ROWS, half of them, or 0 for none. The bits of a
 * row are the same. */
int linear_rows(int block_bytes);
/* Once for each device and layout, before the first launch. 0, or CUDA's number of the error. */
int linear_prepare(int layout, int block_bytes);
void linear_start(const struct linear_launch *launch, struct CUstream_st *stream);
/* Parts of a row that a launch without `to` makes. */
int linear_parts(int layout, int outputs, int processors);

/* wide.cu: to[r] = scale[r] W from[r] of more rows at once, each with the bits of linear_start. Columns are a multiple of 8, rows aligned to 16
 * bytes. */
struct wide_launch {
    const void *weights; /* and what follows: as in linear_launch */
    int layout, is_f16, outputs, columns;
    int rows;           /* 1 or more */
    const void *from;   /* [rows][columns] of the type of the weights */
    const float *scale; /* [rows], or NULL for 1 */
    int ffn;
    void *to;
    enum kernel_numbers gives;
    int adds, overlaps;
};
int wide_prepare(int layout);
void wide_start(const struct wide_launch *launch, struct CUstream_st *stream);
/* wide_clusters.cu: the same, with the same bits, for a device with clusters (device_clusters): the faster way up to KERNEL_CLUSTER_ROWS rows, where
 * linear_start would take longer for rows than for weights, from KERNEL_CLUSTER_LEAST on. */
int wide_clusters_prepare(int layout);
void wide_clusters_start(const struct wide_launch *launch, struct CUstream_st *stream);
/* Its rows, of float32: to = norm(from), rounded to the type of the weights as linear_start rounds them. */
struct round_launch {
    int is_f16;
    int rows, columns;  /* at most KERNEL_MAX_HIDDEN columns */
    const float *from;  /* [rows][columns] */
    const float *norm;  /* [columns], or NULL for none */
    float norm_eps;
    uint16_t *to;       /* [rows][columns] */
    float *scale;       /* [rows] of the norm, which `to` lacks then; NULL: it has it */
    int overlaps;
};
int round_prepare(void);
void round_start(const struct round_launch *launch, struct CUstream_st *stream);

/* attend.cu, around the cache. Its numbers are bfloat16 or E4M3.  keys, values: [slots][kv_heads][context][head_dim] */
struct kernel_cache {
    void *keys, *values;
    int is_e4m3;
    int heads, kv_heads, head_dim, context;
};

/* Bias, norms of q and k by head, RoPE; k and v are written at the rows' places. */
struct heads_launch {
    struct kernel_rows rows;
    struct kernel_cache cache;
    const float *qkv;    /* [rows][(heads + 2 kv_heads) head_dim] */
    const float *bias;   /* [(heads + 2 kv_heads) head_dim], or NULL */
    const float *q_norm; /* [head_dim], or NULL */
    const float *k_norm; /* [head_dim], or NULL */
    float norm_eps;
    const float *cosine, *sine; /* [context][head_dim / 2] */
    float *q;                   /* [rows][heads][head_dim], scaled by 1 / sqrt(head_dim) */
    int overlaps;               /* as in linear_launch, and so in the others */
};
/* For all of step.cu. */
int heads_prepare(void);
void heads_start(const struct heads_launch *launch, struct CUstream_st *stream);

/* to = softmax(q K^T) V over the places that each row sees. */
struct attend_launch {
    struct kernel_rows rows;
    struct kernel_cache cache;
    const float *q;       /* [rows][heads][head_dim] */
    void *to;             /* [rows][heads][head_dim] */
    enum kernel_numbers gives;
    void *scratch;        /* [scratch_bytes], aligned to 256 */
    size_t scratch_bytes; /* rows that do not fit go in several launches; one must */
    int longest;          /* no row sees a place from here on */
    int runs;             /* of rows of one slot, about: it chooses how blocks share keys, and no bits */
    int processors;       /* of the device */
    int overlaps;
};
int attend_prepare(void);
/* Enough for KERNEL_ROWS rows whose heads x head_dim is at most `width`, or for fewer where that were more than 128 MiB, but for 16
 * (whose heads are of 64 dimensions and more). */
size_t attend_scratch_bytes(int width, int context);
void attend_start(const struct attend_launch *launch, struct CUstream_st *stream);

enum { KERNEL_TERMS = 64 };
/* step.cu: to[i] = backend_tree_sum over terms[0][i], terms[1][i], ...  terms: [count][size], count <= KERNEL_TERMS  to: [size] */
void tree_sum_start(const float *terms, int count, size_t size, float *to, struct CUstream_st *stream);
/* to[i] = x[asked[i]]; x += sum.  asked: [count]  x: [..][hidden]  to: [count][hidden] */
void pick_start(const int32_t *asked, int count, int hidden, const float *x, float *to, struct CUstream_st *stream);
void add_start(float *x, const float *sum, size_t count, int overlaps, struct CUstream_st *stream);

/* one_shot.cu: the sum over devices that reach each other's memory, in one kernel. Each rank writes its numbers into every other's inbox and waits
 * for the others' in its own; a number travels with the number of the sum, so nobody waits for more than that, and there is no barrier. Sums have
 * numbers of the device's own counting, so that a launch may be recorded and played. All ranks launch the same sums in the same order. */
enum { ONE_SHOT_RANKS = 8 };
struct one_shot_launch {
    int rank, size;              /* at most ONE_SHOT_RANKS */
    void *inbox[ONE_SHOT_RANKS]; /* of each rank, one_shot_bytes, zeroed before anybody's first sum, aligned to 16 */
    size_t most;                 /* numbers that an inbox is for */
    unsigned *counters;          /* [2] of this device alone: sums so far, blocks that are done with this one; zero at first */
    const unsigned *stop;        /* not 0: what has not come will not come */
    const float *partial;        /* [count] */
    size_t count;                /* 1 .. most */
    int adds;                    /* x += the sum, else x = the sum */
    float *x;                    /* [count], may be `partial` */
    int processors;              /* of the device */
    int overlaps;
};
int one_shot_prepare(void);
size_t one_shot_bytes(int size, size_t most);
/* x[i] (+)= backend_tree_sum over the ranks' partial[i]: the same bits on all. */
void one_shot_start(const struct one_shot_launch *launch, struct CUstream_st *stream);

/* top.cu: the largest logits of each row, as row_top of the CPU has them. Row r wants best_first[r + 1] - best_first[r] of them, at most
 * ROW_MAX_ASKED; where a row has fewer, what is behind them is not written. */
struct top_launch {
    struct kernel_logits from;
    const int32_t *best_first; /* [rows + 1] */
    struct scored_token *best; /* token: index in the shard */
    void *scratch;             /* top_scratch_bytes of it, aligned to 8 */
};
int top_prepare(void);
size_t top_scratch_bytes(int rows, int count);
void top_start(const struct top_launch *launch, struct CUstream_st *stream);

/* choose.cu: each entry is a row of which evidence.cu and top.cu have told what choice_ask asks for; draws its token as choice_draw does and
 * puts the token's embedding into a row of x. */
struct choose_launch {
    int entries, support, vocab;
    int step;                          /* of the drafts, from 0: how many tokens they have already */
    const struct sampling *sampling;   /* [entries] */
    const struct rng_key *key;         /* [entries] */
    const struct row_stats *stats;     /* [entries] */
    const struct scored_token *winner; /* [entries] */
    const int32_t *best_first;         /* [entries + 1] into best, id and weight */
    struct scored_token *best;
    int32_t *token; /* [entries] */
    int32_t *count;     /* [entries] of q */
    int32_t *id;
    uint32_t *weight;
    const void *table; /* [vocab or more][hidden] */
    enum dtype dtype;
    int hidden;
    const int32_t *next; /* [entries] the row of x, or -1 */
    float *x;
};
int choose_prepare(void);
void choose_start(const struct choose_launch *launch, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
