/* The drafter's distribution as both sides hold it: q(id[i]) = weight[i] / SPARSE_Q_SUM on a small support. Invariant: it is quantised first, then
 * sampled from, then sent; so q is exact and the same on both sides, and the output is lossless for any truncation (Leviathan et al. 2023, Theorem 1
 * asks only that the token was drawn from the q that is used). Plain data; pure; compiled for the device, too. */
#ifndef TANDEM_COMMON_SAMPLE_SPARSE_Q_H
#define TANDEM_COMMON_SAMPLE_SPARSE_Q_H

#include "common/sample/row.h"
#include <stdint.h>

enum { SPARSE_Q_SUM = 65536, SPARSE_Q_MAX = ROW_MAX_ASKED };
#define SPARSE_Q_COVERAGE 0.99

struct sparse_q {
    int count;
    int32_t id[SPARSE_Q_MAX]; /* rising */
    uint32_t weight[SPARSE_Q_MAX];
};

/* From tokens by falling p (p: [count], any scale that sums to at most `mass`): keeps the smallest support that holds
 * SPARSE_Q_COVERAGE of `mass`, at most `most` tokens. */
DEVICE_CODE void sparse_q_fill(struct sparse_q *q, const struct scored_token *best, const double *p, int count, double mass, int most);

/* What it is made of, in whole numbers, whose sums are the same in any order: a probability in SPARSE_Q_ONE of 1, of 1 where it is none; how many of
 * these cover; the weight of a part of what is held, before the sum is made right. */
#define SPARSE_Q_ONE ((uint64_t)1 << 47)
#define SPARSE_Q_COVERED ((uint64_t)(SPARSE_Q_COVERAGE * (double)SPARSE_Q_ONE))
DEVICE_CODE uint64_t sparse_q_part(double p);
DEVICE_CODE uint32_t sparse_q_share(uint64_t part, uint64_t held);
/* Makes weights that lack so much of SPARSE_Q_SUM sum to it: what is missing goes to the most probable, what is too much is taken from the first. */
DEVICE_CODE void sparse_q_settle(uint32_t *weight, int64_t missing);

/* The token at u of the integer inverse distribution function, u in [0, SPARSE_Q_SUM). */
DEVICE_CODE int32_t sparse_q_draw(const struct sparse_q *q, uint32_t u);

/* Weight of a token in a support of rising ids, 0 when it is not in it. */
DEVICE_CODE uint32_t sparse_q_weight(const int32_t *id, const uint32_t *weight, int count, int32_t token);

#endif
