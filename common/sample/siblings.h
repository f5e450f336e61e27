/* Drawing the drafts that follow one text in a tree, from one q, one after the other. The coins are of the position and of the draft's number among
 * its siblings: cousins have the same, of which only those of one parent are ever looked at, but for rules that look on. Pure. */
#ifndef TANDEM_COMMON_SAMPLE_SIBLINGS_H
#define TANDEM_COMMON_SAMPLE_SIBLINGS_H

#include "common/base/rng.h"
#include "common/sample/rule.h"
#include "common/sample/sparse_q.h"

/* A q, as its drafter or a proposal has it. */
struct siblings_q {
    int count;
    const int32_t *id;      /* [count], rising */
    const uint32_t *weight; /* [count], sum SPARSE_Q_SUM */
};

/* The weight that is left for the next one: 0 where no token is. Where siblings come again it is all of it.  before: [number] the siblings drawn so
 * far, different ones where they are drawn without replacement */
uint32_t siblings_left(const struct siblings_q *q, enum rule_siblings how, const int32_t *before, int number);
/* The draft of this number, -1: there is none. The first is drawn exactly by the weights, by rng_coin16 of RNG_DRAFT as a chain's is; of the
 * others a token's chance is its weight over what is left, to 2^-32.  coin: rule_tree_coin of the parent  key: of the position */
int32_t siblings_draw(const struct siblings_q *q, enum rule_siblings how, const int32_t *before, int number, uint32_t coin,
                      const struct rng_key *key);

#endif
