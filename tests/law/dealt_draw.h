/* The draw of a round's last token with noise that a test deals, over the real functions of verifier/accept. Pure. */
#ifndef TANDEM_TESTS_LAW_DEALT_DRAW_H
#define TANDEM_TESTS_LAW_DEALT_DRAW_H

#include "verifier/accept/accept.h"

/* The token that wins; of a row that is known in part the shards' part of the draw is added, as verify.c does.  residual: NULL to draw from p;
 * p: [vocab] the row's probabilities up to the factor exp(-log_z); noise: [vocab] what rng_gumbel gives */
int32_t dealt_draw(const struct target_row *target, const struct support *q, int32_t drawn, const struct residual *residual, const double *p,
                   const float *noise, int vocab);

#endif
