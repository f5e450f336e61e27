/* Deciding, as pure functions: which drafted tokens are accepted, and what the next token is drawn from. Coins and noise are functions of (seed,
 * request, position, and for some rules the text in front): no clock, no MPI, no random stream. The rules are the rows of accept_rule.h. At
 * temperature 0 all of them accept a draft that is the argmax, and lossless ones no other. */
#ifndef TANDEM_VERIFIER_ACCEPT_ACCEPT_H
#define TANDEM_VERIFIER_ACCEPT_ACCEPT_H

#include "common/backend/backend.h"
#include "common/base/rng.h"
#include "common/sample/sampling.h"
#include "common/wire/message.h"

/* What is known of the target at one row, gathered from all shards. */
enum target_row_kind {
    TARGET_WINNER,  /* the target's own token: argmax of the logits, or of logits + noise */
    TARGET_LIST,    /* p of every token that truncation keeps */
    TARGET_SUPPORT, /* the normaliser, and the logits of q's support; all other logits stay on their shards */
};

struct target_row {
    enum target_row_kind kind;
    int32_t winner;                  /* TARGET_WINNER, and a TARGET_SUPPORT at temperature 0 */
    int count;                       /* TARGET_LIST: tokens kept; TARGET_SUPPORT: tokens of the support */
    const struct scored_token *best; /* [count], TARGET_LIST: the tokens kept, most probable first */
    const double *p;                 /* [count], TARGET_LIST */
    const float *logit;              /* [count], TARGET_SUPPORT: of q's tokens, in q's order */
    double log_z;                    /* TARGET_SUPPORT: log of the sum of exp(logit) over the vocabulary */
    double entropy;                  /* of p, nats, where the rule asks for it beside a TARGET_SUPPORT */
    double most;                     /* p of the winner, where that is known beside a TARGET_SUPPORT (at temperature 0) */
};

/* How the round's last token, after the accepted drafts, is found. */
enum draw_kind {
    DRAW_NONE,     /* it is known already: verdict.token */
    DRAW_PLAIN,    /* drawn from p at the path's end */
    DRAW_RESIDUAL, /* drawn from what is left of p there, with q of the rejected node */
};

enum { ACCEPT_DRAFTERS = 4 }; /* whose proposals are joined, at most */

/* What is left of p once the accepted drafts have had their share of it: norm(max(0, of_p p - of_q min(q, most p))) on q's support, and p outside of
 * it. */
struct residual {
    double of_p, of_q;
    double most; /* 0: q, however little p is */
    int several; /* not 0: instead norm(max(0, p - the sum of these shares of the q's of so many drafters)) */
    struct residual_share {
        double of_q;
        int node;                /* of the proposal, which was rejected */
        const struct support *q; /* its q, borrowed of the proposal */
        int32_t drawn;           /* where q is a point mass */
    } share[ACCEPT_DRAFTERS];
};

/* A path through the proposal's nodes (its drafted tokens, by index) from the newest committed token down, each node the child of the one before it.
 * At its end one more token is drawn. */
struct verdict {
    int accepted;                   /* nodes of the path */
    int8_t node[MESSAGE_MAX_DRAFT]; /* [accepted]; in a chain 0, 1, 2 .. */
    int8_t refused;                 /* the node that was tested and rejected at the path's end; -1: none */
    enum draw_kind draw;
    struct residual residual; /* for DRAW_RESIDUAL */
    int32_t token;            /* for DRAW_NONE */
};

/* The target row that predicts the token after the first `depth` nodes of the path, 0 .. accepted: row 0 is the newest committed token's, row i + 1
 * that of node i. */
int verdict_row(const struct verdict *verdict, int depth);
/* The verdict that accepts the first `accepted` of a chain of `drafted` nodes and rejects the next, if there is one. Its residual is p - q. */
struct verdict verdict_of_chain(int accepted, int drafted, enum draw_kind draw);

/* Which of the proposal's `drafted` tokens, a chain or, by rules that take trees, a tree, are accepted (targets: [drafted + 1], by row; key->position
 * is the position of the first drafted token). An empty proposal's verdict is a plain draw. */
struct verdict accept_decide(const struct sampling *sampling, const struct target_row *targets, const struct proposal *proposal, int drafted,
                             const struct rng_key *key);

/* The key of the coins at the i-th drafted token. */
struct rng_key accept_key(const struct rng_key *key, int i);

/* The accept test: u q < p, with u in [0, 1). Strictly less: at u = 0 a token of p = 0 must not be accepted. */
int accept_test(double u, double q, double p);

/* p of a drafted token at a row. */
double accept_p(const struct target_row *target, const struct support *q, int32_t token);
/* q of a token: its weight over the sum, or the point mass on `drawn` when the support is empty. */
double accept_q(const struct support *q, int32_t drawn, int32_t token);

/* The sum over tokens of min(p, q): the probability that a token drawn from q is accepted by Algorithm 1 (Leviathan et al. 2023, Corollary 3.6).
 * Exact, because q has no mass outside its support. */
double accept_overlap(const struct target_row *target, const struct support *q, int32_t drawn);
/* Does the rule for this sampling decide about trees, too, and not about chains alone? */
int accept_takes_trees(const struct sampling *sampling);
/* About what several drafters propose for one text, each by itself? */
int accept_merges(const struct sampling *sampling);
/* Is the target's own token known at each row (TARGET_WINNER), which drafts are compared with? */
int accept_compares_tokens(const struct sampling *sampling);
/* Does the rule ask for the q that each draft was drawn from? */
int accept_needs_q(const struct sampling *sampling);
/* Does it tell, by the rule for this sampling, how often a tested draft is accepted? */
int accept_overlap_tells(const struct sampling *sampling);
/* The same of a share of p: the sum of min(share p, q). Not for TARGET_WINNER. */
double accept_overlap_of(const struct target_row *target, const struct support *q, int32_t drawn, double share);
/* The same of what several q's take: the sum of min(p, their shares).  asked: the ids of all of them */
double accept_overlap_of_several(const struct target_row *target, const struct support *asked, int32_t drawn, const struct residual *residual);
/* The sum of a token's shares. */
double accept_several(const struct residual *residual, int32_t token);
/* The largest p / q on q's support, and at least 1. Not for TARGET_WINNER. */
double accept_most(const struct target_row *target, const struct support *q, int32_t drawn);

/* Draws the last token where the lead knows all of p (TARGET_LIST): the argmax of log(weight) + noise over the tokens kept.  residual: NULL to draw
 * from p; q: of `several`, what the row was asked about, as below */
int32_t accept_draw_list(const struct target_row *target, const struct support *q, int32_t drawn, const struct residual *residual,
                         const struct rng_key *key, enum rng_purpose purpose);

/* The residual's draw within q's support (TARGET_SUPPORT): the maximum of log(weight) + log Z + noise over tokens with a weight above 0; token -1 and
 * score minus infinity when there is none. The winner against the best logit + noise outside the support is the residual's token. */
struct scored_token accept_gumbel_max_support(const struct target_row *target, const struct support *q, int32_t drawn,
                                              const struct residual *residual, const struct rng_key *key);

#endif
