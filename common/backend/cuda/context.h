/* A CUDA context owns what the backend has between open and close: a device, what a step needs on it and in pinned memory of the host, the packed
 * matrices, and a context of the CPU backend for what is done on logits that have come back. Invariant: memory of a step is taken at open, and no
 * kernel reads memory that is freed. One thread at a time may call; only the files of this folder look inside. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_CONTEXT_H
#define TANDEM_COMMON_BACKEND_CUDA_CONTEXT_H

#include "common/backend/backend.h"
#include "common/backend/cpu/pool.h"
#include "common/backend/cuda/ask.h"
#include "common/backend/cuda/device.h"
#include "common/backend/cuda/draft.h"
#include "common/backend/cuda/kernels.h"
#include "common/backend/cuda/matrix.h"
#include "common/backend/cuda/one_shot.h"
#include "common/backend/cuda/replay.h"
#include "common/backend/cuda/switches.h"

enum { PACK_HALVES = 2 };

/* The rows of a step, as they lie in pinned memory and, at the same places, on the device. */
struct row_arrays {
    uint64_t *ancestors; /* [max_rows], and so are the others */
    int32_t *position, *slot, *place, *base, *asked;
};

struct backend_context {
    struct backend_options options;
    struct switches switches;
    struct device *device;
    struct backend_context *host; /* of backend_cpu, one thread */
    struct pool *pool;            /* packs weights */
    struct matrix *matrices;      /* all that were packed here */
    int told_rounding, told_refusal;
    unsigned prepared; /* bit l: the kernels of weights in layout l */

    struct arena scratch; /* of the device */
    struct row_arrays rows;
    float *qkv;    /* [max_rows][max_qkv] */
    uint16_t *rounded; /* [max_rows][max_hidden] of the type of some weights, for wide*.cu */
    float *norm_scale; /* [max_rows], the same */
    float *logits; /* [max_outputs][max_vocab] */
    int logits_columns; /* of the last head, */
    int logits_layout;  /* and how its weights lie */
    struct head_step head;
    struct ask_arrays ask;
    void *evidence_scratch, *top_scratch;
    void *attend_scratch;
    size_t attend_scratch_bytes;

    struct arena pinned;
    struct row_arrays pinned_rows;
    float *pinned_x;         /* [max_rows][max_hidden] */
    float *pinned_logits;    /* [fetch_rows][max_vocab] */
    int fetch_rows;
    char *pack[PACK_HALVES]; /* [pack_bytes] each; one is packed while the other is copied */
    size_t pack_bytes;

    struct replay replays[REPLAY_SHAPES];
    struct replay *recording;
    int least_longest; /* see cuda_longest; 0 where nothing is recorded */
    int64_t steps, replayed; /* steps that may be recorded, and how many of them were played */

    struct ask_arrays pinned_ask;
    struct draft_work draft;
    struct kept_query *queries; /* [asking.count] */
    struct ask_terms asking;
    int begun; /* of `asking` those that have an answer; the rest are copies */
    int asked; /* queries that finish answers */
    float **fetched; /* [fetch_rows] where each row of pinned_logits is taken once it has come */
    int fetches;     /* of them */
    struct one_shot one_shot;
    struct backend_device told; /* of the device, to ranks that compute together */
    char description[416];
};

/* Whether kernels are to begin before the one ahead of them has ended. */
int context_overlaps(const struct backend_context *context);
/* Whether blocks are to read each other's shared memory. */
int context_clusters(const struct backend_context *context);
/* Makes the last head store its logits where it has not: it runs again, on the same rows. */
void context_keep_logits(struct backend_context *context);

/* Memory, as in struct backend: memory.c */
enum status cuda_memory_check(struct backend_context *context, const char *what, size_t bytes);
enum status cuda_memory_open(struct backend_context *context, size_t bytes, const char *what, struct arena *arena);
void cuda_memory_close(struct backend_context *context, struct arena *arena);
void cuda_write(struct backend_context *context, void *to, const void *from, size_t bytes);
/* What a step needs on the device, and in pinned memory of the host. To be called once, at open; cuda_close frees both. */
enum status cuda_open_scratch(struct backend_context *context);
enum status cuda_open_pinned(struct backend_context *context);
/* Loads the kernels of weights in this layout, once: cuda.c */
enum status cuda_prepare_layout(struct backend_context *context, int layout);
/* As in struct backend: pack.c */
enum status cuda_matrix_pack(struct backend_context *context, const struct matrix_source *source, struct arena *arena, struct matrix **matrix);

/* The operations, as in struct backend: layer.c */
void cuda_embed(struct backend_context *context, const struct rows *rows, const int32_t *asked, int output_count, enum dtype dtype,
                const void *table, int hidden, float *x);
int cuda_replay(struct backend_context *context, const void *who, const struct rows *rows, uint64_t what);
int cuda_replayed(struct backend_context *context);
void cuda_pick(struct backend_context *context, int hidden, const int32_t *asked, int count, const float *x, float *to);
void cuda_matmul(struct backend_context *context, const struct matrix *matrix, int rows, const float *from, float *to);
void cuda_matmul_add(struct backend_context *context, const struct matrix *matrix, int rows, const float *from, float *x);
void cuda_attend_in(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights,
                    const struct rows *rows, const float *x, const float *cosine, const float *sine, const struct cache_layer *cache,
                    float *q);
void cuda_attend(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights,
                 const struct rows *rows, const float *q, const struct cache_layer *cache, float *to);
void cuda_cache_copy(struct backend_context *context, const struct layer_shape *shape, const struct cache_layer *cache, struct cache_place from,
                     struct cache_place to, int count);
void cuda_attend_out(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights, int rows,
                     const float *from, float *partial);
void cuda_mlp_in(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights, int rows,
                 const float *x, float *to);
void cuda_mlp_out(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights, int rows,
                  const float *from, float *partial);
void cuda_add(struct backend_context *context, float *x, const float *sum, size_t count);
void cuda_tree_sum(struct backend_context *context, const float *terms, int count, size_t size, float *to);
void cuda_head(struct backend_context *context, int hidden, float norm_eps, const float *norm, const struct matrix *head, int rows,
               const float *x, float *logits);
void cuda_ask(struct backend_context *context, int32_t first, struct kept_query *queries, int count);
uint64_t cuda_ask_begin(struct backend_context *context, int32_t first, struct kept_query *queries, int count, int padded);
void cuda_ask_run(struct backend_context *context);
void cuda_ask_end(struct backend_context *context);
void cuda_fetch(struct backend_context *context, int row, float *to);
uint64_t cuda_draft_begin(struct backend_context *context, const struct draft_terms *terms);
void cuda_draft_step(struct backend_context *context, int step);
void cuda_draft_end(struct backend_context *context);
enum status cuda_finish(struct backend_context *context);

/* layer.c: no row of these attends to this place or later ones; rounded up, so that a recorded step can be used for some time. */
int cuda_longest(const struct backend_context *context, const struct rows *rows, int first, int count);

#endif
