/* How a drafter draws its next token from what is known of a row of logits: at temperature 0 the argmax, in coupled mode the argmax with the target's
 * own noise (point masses both), else from q. Owns nothing; pure; compiled for the device, too. */
#ifndef TANDEM_COMMON_SAMPLE_CHOICE_H
#define TANDEM_COMMON_SAMPLE_CHOICE_H

#include "common/sample/sampling.h"
#include "common/sample/sparse_q.h"

/* Sets what must be asked of the row: scans, sums, gumbel, purpose, top. The key, the coin and the lists' places are the caller's.  listed: so many
 * of the largest at least, for choice_rank */
DEVICE_CODE void choice_ask(const struct sampling *sampling, int support, int listed, struct row_query *query);
/* From the answered query, of processed logits. q->count is 0 for a point mass.  p: [query->top] */
DEVICE_CODE int32_t choice_draw(const struct sampling *sampling, int support, int vocab, const struct row_query *query, double *p,
                                struct sparse_q *q);

/* How many of query->best the target may come to, if its row is this one: those that the request's truncation leaves.  p: [query->top] */
int choice_listed(const struct sampling *sampling, int vocab, const struct row_query *query, double *p);
/* From the list of a row: the tokens that the target would most probably come to there by itself, most probable first, without `drafted` (-1: none is
 * left out). A correction or bonus token is an argmax with the noise of the target's own token (RNG_NOISE) or, where q is drawn from, with one that
 * no draft and no coin uses (RNG_RESIDUAL): the draft's row with that noise tells which it may be. Returns how many.  key: of the row's query  best:
 * [count], overwritten  tokens: [most]  scores: [most] what they are ranked by, falling; NULL: not asked for */
int choice_rank(const struct sampling *sampling, const struct rng_key *key, int32_t drafted, struct scored_token *best, int count, int most,
                int32_t *tokens, float *scores);

/* The parts of choice_draw where q is the row itself, cut to its most probable tokens: whether that is so, and p of the i-th of these. */
DEVICE_CODE int choice_is_plain(const struct sampling *sampling);
DEVICE_CODE double choice_plain(const struct row_query *query, int i);

#endif
