/* A model of given shapes whose weights follow from a seed and from nothing else: for measurements, where a checkpoint would have to be
 * fetched. It owns the model and, on the host, the table of its embedding. torch_model.py makes the same numbers.
 *
 * Number i of the table T is uniform in [-1, 1) by a hash of i; row o of matrix m is a stretch of T, at a place that is a hash of (m, o),
 * times a scale of the matrix, rounded to bf16. So 16 GB of weights come out of 4 million numbers, and two programs agree on each of them.
 *
 * A pair is nested: the draft is the target's first layers. What the target's further layers add to the residual stream is scaled by
 * `further`: at 0 both models say the same, and the larger it is, the fewer drafts are accepted. */
#ifndef TANDEM_LAUNCH_DEV_GPU_SEEDED_H
#define TANDEM_LAUNCH_DEV_GPU_SEEDED_H

#include "common/model/model.h"

struct seeded_shape {
    const char *name;
    int layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
};

/* "1b" and "8b" are those of Llama-3.2-1B and Llama-3.1-8B, "tiny" is for tests. NULL, with a line that lists them, for another name. */
const struct seeded_shape *seeded_shape_find(const char *name);

struct seeded_options {
    const struct seeded_shape *shape;
    int layers; /* taken from the first; 0: all */
    int first;  /* layers that are not scaled by `further`; 0: all */
    float further;
    int context; /* tokens */
    int max_rows;  /* of a step */
    int max_outputs; /* of these, whose logits are asked for; 0: all */
    int threads; /* of the CPU backend */
    int drafts;  /* the device gets the embedding, too, so that it drafts by itself where it can */
};

struct seeded_model {
    struct model model;
    uint16_t *embedding; /* [vocab][hidden] bf16 */
    struct arena table;  /* the same on the device, or nothing */
};

/* Local. STATUS_INTERNAL when there is no memory. */
enum status seeded_model_open(const struct seeded_options *options, const struct backend *backend, struct group *group,
                              struct seeded_model **seeded);
void seeded_model_close(struct seeded_model *seeded);

/* Bytes that a step of one row must read at least: all matrices, and `context` places of the cache. */
double seeded_model_step_bytes(const struct seeded_model *seeded, int context);

#endif
