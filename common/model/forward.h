/* The transformer, written once for any number of rows: prefill, draft (one row per sequence) and verify (K + 1 rows per sequence) are the same call.
 * It owns the activations of one step; model and cache are borrowed. Invariant: a row's values do not depend on the other rows of its step. One
 * thread per model; collective over the model's group, whose sums are its only messages. Never samples, and allocates at open alone. */
#ifndef TANDEM_COMMON_MODEL_FORWARD_H
#define TANDEM_COMMON_MODEL_FORWARD_H

#include "common/model/kv_cache.h"
#include "common/model/model.h"

/* The activations of one step, laid out at open. */
struct forward {
    struct model *model;
    struct kv_cache *cache;
    struct arena arena; /* of the device, as all of these */
    float *x;        /* [max_rows][hidden] the residual stream */
    float *q;        /* [max_rows][heads][head_dim] */
    float *attended; /* [max_rows][heads][head_dim] */
    float *partial;  /* [max_rows][hidden] */
    float *ffn;      /* [max_rows][ffn] */
    float *asked;    /* [max_rows][hidden] the rows whose logits are asked for */
    int64_t group_ns; /* time spent in the group's sums, added up */
};

enum status forward_open(struct forward *forward, struct model *model, struct kv_cache *cache);
void forward_close(struct forward *forward);

/* Collective over the model's group. Feeds the rows (1 .. max_rows of them; places and tokens are in range, the caller checked) and computes this
 * rank's shard of the logits of the `output_count` rows named in `asked`.  logits: [output_count][vocab_count], in the host's memory */
enum status forward_run(struct forward *forward, const struct rows *rows, const int32_t *asked, int output_count, float *logits);
/* What is to be known of the logits, as backend->output.ask has it; count 0: nothing. Queries name rows by their number in `asked`. */
struct forward_questions {
    int32_t first;
    struct kept_query *queries;
    int count;
};
/* The same in two halves, for who fetches rows in between. The device may still be at work after the first; then forward_end has the answers.
 * With questions, or without a place for them, logits stay where the device keeps them (where backend->output.fetch is there). questions: or NULL */
enum status forward_begin(struct forward *forward, const struct rows *rows, const int32_t *asked, int output_count, float *logits,
                          const struct forward_questions *questions);
enum status forward_end(struct forward *forward);

/* Whether forward_draft is there: on a device that drafts by itself, for a group of one and a model that was opened with `drafts`. */
int forward_drafts(const struct forward *forward);
/* Several tokens of `count` sequences, drawn on the device. rows: at most BACKEND_MAX_ROWS; those of the first step, which feed the
 * host's tokens, then for each later step one of each sequence that wants so many, in order, whose token is still to be drawn (any valid
 * id here). asked: [count] of the first step's rows, each sequence's last one. support: tokens that a q keeps at most. */
enum status forward_draft(struct forward *forward, const struct rows *rows, int first_rows, const int32_t *asked, struct kept_draft *drafts,
                          int count, int support);

#endif
