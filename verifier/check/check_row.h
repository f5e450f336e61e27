/* The target's own row after a text, asked for directly: no drafter, no acceptance. Owns nothing; it uses slot 0 of the team, which no sequence may
 * have meanwhile. The lead alone calls. */
#ifndef TANDEM_VERIFIER_CHECK_CHECK_ROW_H
#define TANDEM_VERIFIER_CHECK_CHECK_ROW_H

#include "verifier/request/request.h"
#include "verifier/team/team.h"

/* Logits after biases, penalties and temperature of the token after `count` tokens, which begin with the request's prompt; the first `cached`
 * were fed by the last call. They go through slot 0, which must be free.  logits: [vocab]. Collective over the group, on the lead. */
enum status check_row_take(struct team *team, const struct request *request, const int32_t *tokens, int cached, int count,
                           float *logits);

/* Their distribution after top-k, top-p and min-p.  p: [vocab]; order, kept: [vocab] scratch. Returns 0 when a cut falls where rounding may decide
 * it: such a row is no measure. */
int check_row_law(const struct sampling *sampling, const float *logits, int vocab, struct scored_token *order, double *kept,
                  double *p);

#endif
