/* The toy pair's laws, enumerated in double: the target's joint law, the law that a broken verifier would give (for power), and the expected
 * length of a first round. */
#ifndef TANDEM_TESTS_LAW_TOY_EXACT_H
#define TANDEM_TESTS_LAW_TOY_EXACT_H

#include "tests/law/toy_round.h"

enum toy_mutant {
    TOY_RIGHT,
    TOY_RESIDUAL_IS_P,     /* rejected drafts are replaced by a draw from p */
    TOY_ONE_Q_FOR_ALL,     /* tested against the q of the round's first row */
    TOY_Q_IS_WARMER,       /* drawn from q, tested against q^0.8 renormalised */
    TOY_RESIDUAL_IS_LARGEST, /* the most probable token of the residual */
};

/* Cells of the joint law of run->length tokens. */
int toy_exact_cells(const struct toy_law *law, const struct toy_run *run);
/* cells: [toy_exact_cells], by tokens in base law->tokens, the first one highest. TOY_RIGHT is the target's law, without any round. */
void toy_exact_joint(const struct toy_law *law, const struct toy_run *run, enum toy_mutant mutant, double *cells);
/* Expected tokens of the first round: 1 + the sum of prefix products of sum min(p, q). */
double toy_exact_first_round(const struct toy_law *law, const struct toy_run *run);
/* The target's p and the drafter's quantised q after a history.  history: [count] ids  p, q: [TOY_IDS] */
void toy_exact_p(const struct toy_law *law, const struct toy_run *run, const int32_t *history, int count, double *p);
void toy_exact_q(const struct toy_law *law, const struct toy_run *run, const int32_t *history, int count, double *q);

#endif
