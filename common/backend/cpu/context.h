/* A CPU context owns what the backend has between open and close: the table of kernels, the pool's threads and their scratch memory, taken at open.
 * Invariant between operations: no thread is at work. One thread at a time may call; only the files of this folder look inside. */
#ifndef TANDEM_COMMON_BACKEND_CPU_CONTEXT_H
#define TANDEM_COMMON_BACKEND_CPU_CONTEXT_H

#include "common/backend/backend.h"
#include "common/backend/cpu/kernels.h"
#include "common/backend/cpu/pool.h"

enum {
    SWEEP_ROWS = 64,   /* rows that an operation takes through all weights at once */
    CHUNK_PANELS = 24, /* panels whose sums wait together in scratch: a multiple of every size of group, and even */
    SHARED_ROWS = 8,   /* from so many rows on threads share the quantising; for fewer a barrier costs more */
    QKV_BUFFERS = 2,   /* two, so that a fast thread can write one sweep while a slow one reads the other */
};

/* A thread's answer to a query from its own panels; ids are indices in the row. */
struct finding {
    struct scored_token best;
    struct scored_token winner;
};

/* What is asked of the last head's rows. */
struct asking {
    int32_t first;
    struct kept_query *queries;
    int count; /* 0: nothing is asked */
    int found; /* the head had queries: the threads have their findings */
};

/* Scratch memory of one thread. */
struct scratch {
    float *normed;                 /* [SWEEP_ROWS][max_hidden] */
    struct activations *quantised; /* [blocks of max_columns][SWEEP_ROWS]; shared, the first two threads' by turns */
    float *chunk;                  /* [SWEEP_ROWS][CHUNK_PANELS x 16] */
    float *scores;                 /* [max_context / 16][ATTEND_QUERIES][16] */
    float *queries;                /* [ATTEND_QUERIES][head_dim], for which a third of max_qkv is room */
    struct finding *finding;       /* [max_rows] of each query */
    uint32_t *excluded;            /* [(max_vocab + 31) / 32] zero between gumbel */
};

struct backend_context {
    int nodes; /* of the host, which its threads are bound to */
    const struct kernels *kernels;
    struct pool *pool;
    struct backend_options options;
    struct arena arena;
    struct scratch *scratch; /* [threads] */
    float *qkv[QKV_BUFFERS]; /* [SWEEP_ROWS][max_qkv], shared */
    const float *logits;     /* [rows][logits_columns] of the last head, the caller's */
    int logits_columns;
    struct asking asking;
    char description[64];
};

/* What a matrix reads in a sweep: one of the two. */
struct linear_input {
    const float *from;             /* [rows][columns] */
    struct activations *quantised; /* [blocks][rows], for a quantised matrix */
    int rows;
};

/* Rows [first, first + count) of an operation's: those that go through all weights at once. */
struct sweep {
    int first, count;
    int of; /* all rows of the operation */
};

/* The sweep from row `first` on. */
struct sweep cpu_sweep(int first, int rows);
/* The sweep's rows of x, perhaps normed in the thread's scratch, as the matrix takes them. All threads call it for each sweep in turn: for
 * SHARED_ROWS and more each makes a part of the integers, and they meet.  norm: [columns] or NULL  x: [rows][columns] */
struct linear_input cpu_linear_input(const struct backend_context *context, const struct matrix *matrix, const float *norm, float norm_eps,
                                     const float *x, const struct sweep *sweep, int thread);
/* The panels [first, last) of the product.  to: [rows][to_stride], at channel 16 first */
void cpu_linear_run(const struct backend_context *context, const struct matrix *matrix, int first, int last,
                    const struct linear_input *input, float *to, size_t to_stride);

/* As in struct backend: memory.c */
enum status cpu_memory_check(struct backend_context *context, const char *what, size_t bytes);
/* The operations, as there: layer.c and attend.c */
void cpu_embed(struct backend_context *context, const struct rows *rows, const int32_t *asked, int output_count, enum dtype dtype,
               const void *table, int hidden, float *x);
void cpu_pick(struct backend_context *context, int hidden, const int32_t *asked, int count, const float *x, float *to);
void cpu_matmul(struct backend_context *context, const struct matrix *matrix, int rows, const float *from, float *to);
void cpu_matmul_add(struct backend_context *context, const struct matrix *matrix, int rows, const float *from, float *x);
void cpu_attend_in(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights,
                   const struct rows *rows, const float *x, const float *cosine, const float *sine, const struct cache_layer *cache,
                   float *q);
void cpu_attend(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights,
                const struct rows *rows, const float *q, const struct cache_layer *cache, float *to);
void cpu_attend_out(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights, int rows,
                    const float *from, float *partial);
void cpu_mlp_in(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights, int rows,
                const float *x, float *to);
void cpu_mlp_out(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights, int rows,
                 const float *from, float *partial);
void cpu_add(struct backend_context *context, float *x, const float *sum, size_t count);
void cpu_tree_sum(struct backend_context *context, const float *terms, int count, size_t size, float *to);
void cpu_head(struct backend_context *context, int hidden, float norm_eps, const float *norm, const struct matrix *head, int rows,
              const float *x, float *logits);
void cpu_cache_copy(struct backend_context *context, const struct layer_shape *shape, const struct cache_layer *cache, struct cache_place from,
                    struct cache_place to, int count);
/* ask.c */
void cpu_ask(struct backend_context *context, int32_t first, struct kept_query *queries, int count);
uint64_t cpu_ask_begin(struct backend_context *context, int32_t first, struct kept_query *queries, int count, int padded);
void cpu_ask_run(struct backend_context *context);
void cpu_ask_end(struct backend_context *context);
/* In the head, by each thread: before its first panel, and when it has the logits [first, last) of the sweep's rows. */
void cpu_ask_clear(const struct backend_context *context, int thread);
void cpu_ask_look(const struct backend_context *context, const struct sweep *sweep, int first, int last, int thread);
/* row.c */
void cpu_row_scan(struct backend_context *context, const float *logits, int count, enum row_sums sums, struct row_stats *stats);
void cpu_row_gumbel_max(struct backend_context *context, const float *logits, int count, int32_t first_token, const struct rng_key *key,
                  enum rng_purpose purpose, const uint32_t *excluded, struct scored_token *winner);
int cpu_row_top(struct backend_context *context, const float *logits, int count, int wanted, struct scored_token *best);
/* Of logits that are multiplied by `scale` first. */
int cpu_row_top_scaled(const struct backend_context *context, const float *logits, float scale, int count, int wanted,
                       struct scored_token *best);

#endif
