/* The toy pair's laws, enumerated in double: the target's joint law, the laws that broken verifiers would give (for power), and the expected
 * length of a first round. */
#ifndef TANDEM_TESTS_LAW_TOY_EXACT_H
#define TANDEM_TESTS_LAW_TOY_EXACT_H

#include "tests/law/toy_round.h"

enum toy_mutant {
    TOY_RIGHT,
    TOY_RESIDUAL_IS_P,        /* rejected drafts are replaced by a draw from p */
    TOY_RESIDUAL_IS_DISTANCE, /* from |p - q| */
    TOY_RESIDUAL_IS_LARGEST,  /* by the most probable token of the residual */
    TOY_Q_OF_NEXT_ROW,        /* each draft but the last is tested against the next one's q */
    TOY_Q_OF_FIRST_ROW,       /* every draft is tested against the first one's q */
    TOY_P_OF_NEXT_ROW,        /* every draft is tested against the p of the row behind it */
    TOY_Q_IS_WARMER,          /* drawn from q, tested against q^0.8 renormalised */
    TOY_SAME_COIN,            /* the residual's noise is taken from the accept coin's words */
    TOY_DRAFT_COIN,           /* the accept coin is taken from the words that drew the draft */
    TOY_ALL_STAND,            /* drafts of p > 0 always stand */
    TOY_BONUS_FROM_DRAFTER,   /* after full acceptance a token of q */
    TOY_BONUS_OF_ROW_BEFORE,  /* after full acceptance a token of the last draft's p */
    TOY_P_IS_WARMER,          /* the target's temperature is 10 % too high */
    TOY_MUTANTS,
};

/* Rows are computed once per history. */
enum { TOY_NODES = 352 };
struct toy_rows {
    int known;
    double p[TOY_MOST], q[TOY_MOST]; /* by token */
};
struct toy_exact {
    const struct toy_law *law;
    const struct toy_run *run;
    struct toy_rows rows[TOY_NODES]; /* by history: child v of node n is n law->tokens + v + 1 */
};

void toy_exact_init(struct toy_exact *exact, const struct toy_law *law, const struct toy_run *run);
const char *toy_exact_name(enum toy_mutant mutant);
/* Cells of the joint law of run->length tokens. */
int toy_exact_cells(const struct toy_law *law, const struct toy_run *run);
/* The cell of these tokens.  tokens: [run->length] */
int toy_exact_cell(const struct toy_law *law, const struct toy_run *run, const int32_t *tokens);
/* cells: [toy_exact_cells], by tokens in base law->tokens, the first one highest. TOY_RIGHT is the target's law, without any round. */
void toy_exact_joint(struct toy_exact *exact, enum toy_mutant mutant, double *cells);

/* Lossless and slow: no test of the law sees them. */
enum toy_speed { TOY_SPEED_RIGHT, TOY_SPEED_NO_BONUS, TOY_SPEED_POINT_MASS /* each draft tested as if its q were 1 */ };
/* Expected tokens of the first round, 1 + the sum of prefix products of sum min(p, q), of a run without penalties. */
double toy_exact_first_round(const struct toy_law *law, const struct toy_run *run, enum toy_speed speed);

#endif
