/* Deciding, as pure functions: which drafted tokens stand, and where the next token comes from. No clock, no MPI, no random stream: coins and noise are
 * functions of (seed, request, position). One entry of the table is one acceptance rule.
 *
 * rejection: Leviathan et al. 2023, Algorithm 1. coupled: draft and target take the argmax of log p + the same Gumbel noise; equal
 * tokens stand (Daliri et al. 2024). At temperature 0 both are: the argmax stands. */
#ifndef TANDEM_VERIFIER_ACCEPT_ACCEPT_H
#define TANDEM_VERIFIER_ACCEPT_ACCEPT_H

#include "common/backend/backend.h"
#include "common/base/rng.h"
#include "common/sample/sampling.h"
#include "common/wire/message.h"

/* What is known of the target at one row, gathered from all shards. */
enum target_row_kind {
    TARGET_WINNER,  /* the target's own token: argmax of the logits, or of logits + noise */
    TARGET_LIST,    /* p on all tokens that it keeps */
    TARGET_SUPPORT, /* the normaliser, and the logits on q's support; other tokens stay on their shards */
};

struct target_row {
    enum target_row_kind kind;
    int32_t winner;                  /* TARGET_WINNER */
    int count;                       /* TARGET_LIST: tokens kept; TARGET_SUPPORT: tokens of the support */
    const struct scored_token *best; /* [count], TARGET_LIST: the tokens kept, most probable first */
    const double *p;                 /* [count], TARGET_LIST */
    const float *logit;              /* [count], TARGET_SUPPORT: of q's tokens, in q's order */
    double log_z;                    /* TARGET_SUPPORT: log of the sum of exp(logit) over the vocabulary */
};

/* How the round's last token comes about. */
enum draw_kind {
    DRAW_NONE,     /* it is known: verdict.token */
    DRAW_PLAIN,    /* from p of row `row` */
    DRAW_RESIDUAL, /* from norm(max(0, p - q)) of row `row` */
};

struct verdict {
    int accepted; /* drafted tokens that stand */
    int row;      /* the target row that the last token follows: 0 .. drafted */
    enum draw_kind draw;
    int32_t token; /* for DRAW_NONE */
};

/* Which of the proposal's `drafted` tokens stand (targets: [drafted + 1]; key->position is the position of the first drafted token). The
 * verdict of a proposal without tokens is the plain draw. */
struct verdict accept_decide(const struct sampling *sampling, const struct target_row *targets, const struct proposal *proposal, int drafted,
                             const struct rng_key *key);

/* The accept test: u q < p, with u in [0, 1). Strictly: at u = 0 a token of p = 0 must not stand. */
int accept_test(double u, double q, double p);

/* p of a drafted token at a row. */
double accept_p(const struct target_row *target, const struct support *q, int32_t token);
/* q of a token: its weight over the sum, or the point mass on `drawn` when the support is empty. */
double accept_q(const struct support *q, int32_t drawn, int32_t token);

/* The sum over tokens of min(p, q): the probability that a token drawn from q stands (Leviathan et al. 2023, Corollary 3.6). Exact, because
 * q has no mass outside its support. */
double accept_overlap(const struct target_row *target, const struct support *q, int32_t drawn);

/* Draws the last token where the lead can do it alone (TARGET_LIST): the winner of log(weight) + noise over the tokens kept. */
int32_t accept_draw_list(const struct target_row *target, const struct support *q, int32_t drawn, enum draw_kind draw, const struct rng_key *key,
                         enum rng_purpose purpose);

/* The residual's draw over q's support (TARGET_SUPPORT): the best of log(p - q) + log Z + noise over tokens with p > q; score is minus
 * infinity when there is none. Compare it with the winner of logit + noise outside the support. */
struct scored_token accept_gumbel_max_support(const struct target_row *target, const struct support *q, int32_t drawn, const struct rng_key *key);

#endif
