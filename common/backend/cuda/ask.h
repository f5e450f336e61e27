/* Questions about logits that stay on the device, and their answers. It owns nothing: queries and answers lie in the context's memory, laid out alike
 * in pinned memory and on the device. Invariant: the answers to a step's questions are good from its finish to the next step. For the files of this
 * folder alone; it computes no logits. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_ASK_H
#define TANDEM_COMMON_BACKEND_CUDA_ASK_H

#include "common/backend/backend.h"
#include "common/backend/cuda/kernels.h"

/* Queries and answers, laid out alike in pinned memory and on the device: questions up to `token`, answers from `stats` on. */
struct ask_arrays {
    struct rng_key *key; /* [max_outputs] */
    int32_t *row, *excludes, *purpose;
    float *scale;
    int32_t *token_first, *best_first; /* [max_outputs + 1] */
    int32_t *token;                    /* [max_outputs ROW_MAX_ASKED], and so are logit and best */
    struct row_stats *stats;
    struct scored_token *winner;
    float *logit;
    struct scored_token *best;
};

/* What is asked, without the numbers in the arrays: queries with the same terms launch the same kernels. */
struct ask_terms {
    int first, count, gumbel, tops, below;
    /* first: id of a row's first logit; gumbel, tops, below: is it asked of any */
    int in_order; /* query i is about row i */
};

/* The arrays for so many queries, in an arena of the host or of the device. */
size_t ask_bytes(int rows);
void ask_lay_out(struct ask_arrays *arrays, struct arena *arena, int rows);

/* Bytes from one array to another of the same side. */
size_t ask_between(const void *from, const void *to);
/* Writes query i behind the ones before it, of which the first finds 0 in both offsets. */
void ask_write(struct ask_arrays *to, int i, const struct kept_query *kept);
/* Do the queries ask for all rows of a head, and for nothing that takes the logits themselves? */
int ask_is_of_all(const struct ask_terms *terms, int rows);
/* The kernels' view of the queries first .. first + count - 1. */
struct evidence_launch ask_launch(const struct backend_context *context, int32_t first_token, int first, int count, int gumbel);
/* Enqueues the answers to terms->count queries from `first` on, which were copied to the device. */
void ask_start(struct backend_context *context, int first, const struct ask_terms *terms);

/* Asks for rows of logits, which finish takes to `to`; waits where there are more than pinned memory has room for.  to: [rows][outputs of the
 * head] */
void ask_fetch(struct backend_context *context, int first, int rows, float *to);
/* Called by finish: takes over answers and fetched rows; rows are dropped where the device has failed. */
void ask_answer(struct backend_context *context);
void ask_take_rows(struct backend_context *context, enum status status);

#endif
