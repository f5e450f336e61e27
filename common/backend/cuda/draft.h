/* Drafts of several tokens that the device makes without the host. An entry is one token of one sequence; entries lie step by step, and within a step
 * in the order of the sequences. It owns nothing: the arrays lie in the context's memory. Invariant: a drafted token is drawn by common/sample,
 * compiled for the device, so it is the host's. For the files of this folder alone; never used where the host must change a row. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_DRAFT_H
#define TANDEM_COMMON_BACKEND_CUDA_DRAFT_H

#include "common/backend/backend.h"

/* Laid out alike in pinned memory and on the device: requests up to `next`, answers from `token` on. */
struct draft_arrays {
    struct sampling *sampling; /* [BACKEND_MAX_ROWS], and so are the next three */
    int32_t *next, *token, *count;
    int32_t *id;               /* [BACKEND_MAX_ROWS ROW_MAX_ASKED] */
    uint32_t *weight;          /* as id */
};

struct draft_work {
    struct draft_arrays pinned, on_device;
    struct draft_terms terms;
    int entries;          /* of all steps; 0: there is no draft */
    int gumbel, tops;      /* does any entry need these? */
    int first_row, first; /* first row and entry of the step that is being enqueued */
};

/* The arrays, in an arena of the host or of the device. */
size_t draft_bytes(void);
void draft_lay_out(struct draft_arrays *arrays, struct arena *arena);

/* Starts enqueuing at the first step. */
void draft_rewind(struct backend_context *context);
/* Called by finish: takes over the answers of a draft that is done. */
void draft_answer(struct backend_context *context);

#endif
