/* Draws drafts from a distribution other than the q that is sent, for `tandem check --break` (common/base/breakage.h). Pure. */
#ifndef TANDEM_DRAFTER_DRAFT_BROKEN_H
#define TANDEM_DRAFTER_DRAFT_BROKEN_H

#include "common/base/breakage.h"
#include "common/base/rng.h"
#include "common/sample/sparse_q.h"

/* The token at u in [0, SPARSE_Q_SUM) of a wrong distribution, for the faults that concern the drafter; of q for the others. */
int32_t draft_broken_draw(const struct sparse_q *q, enum breakage breakage, uint32_t u);
/* A token of q, by the noise at this place that a correction would be drawn with: the distribution is right, and not independent of what decides. */
int32_t draft_broken_noise(const struct sparse_q *q, const struct rng_key *key);
/* The one of two tokens of q that has more weight. */
int32_t draft_broken_likelier(const struct sparse_q *q, int32_t one, int32_t other);
/* The token of q that so many others are ahead of, -1: there is none. */
int32_t draft_broken_best(const struct sparse_q *q, int rank);

#endif
