/* The joint law of the two tokens that follow a text, as a table of a few cells with exact probabilities, and the samples counted in it. It owns its
 * tables. Invariant: the cells depend on p and q alone, never on the samples. Pure.
 *
 * The first token x1: each of the most probable ones is split further by what follows it, the others stand for themselves. Tokens of one part are
 * sorted by p/q, on which errors of the accept test and of the residual depend, and cut into cells of about equal probability. Cell 0 is for what
 * cannot be: a hit there is a fault at once. */
#ifndef TANDEM_VERIFIER_CHECK_CHECK_LAW_H
#define TANDEM_VERIFIER_CHECK_CHECK_LAW_H

#include "common/base/status.h"
#include <stdint.h>

/* The bound that decides costs about twice its df in G, so more cells see less: 32 of them for 4,000 samples. */
enum { CHECK_LAW_CELLS = 32, CHECK_LAW_FOLLOWED = 8, CHECK_LAW_MOST = CHECK_LAW_CELLS + CHECK_LAW_FOLLOWED + 2 };

struct check_law {
    int vocab;
    int followed;                       /* first tokens whose successor counts */
    int32_t token[CHECK_LAW_FOLLOWED];  /* which, most probable first */
    double share[CHECK_LAW_FOLLOWED];   /* their p */
    int32_t *first;                     /* [vocab] the cell of x1 */
    int32_t *second;                    /* [CHECK_LAW_FOLLOWED][vocab] the cell of x2 after token[i] */
    int cells;
    double expected[CHECK_LAW_MOST];
    int64_t count[CHECK_LAW_MOST];
    struct check_law_entry *order;      /* [vocab] scratch */
    unsigned char *leans;               /* [vocab] is p(x1) > q(x1)? A law that leans to the draft gives these tokens less than p */
    double lean_expected;               /* their p */
    int64_t leaning;                    /* samples with such an x1 */
    int64_t samples;
};

enum status check_law_open(struct check_law *law, int vocab);
void check_law_close(struct check_law *law);

/* Forgets all and chooses the first tokens to follow.  p: [vocab] of x1 */
void check_law_begin(struct check_law *law, const double *p);
/* Cuts the first tokens that are not followed, and the successors of the i-th that is.  p, q: [vocab]; q may be all 0 */
void check_law_cut_first(struct check_law *law, const double *p, const double *q);
void check_law_cut_second(struct check_law *law, int i, const double *p, const double *q);
/* Index among the followed, or -1. */
int check_law_followed(const struct check_law *law, int32_t token);
void check_law_add(struct check_law *law, int32_t x1, int32_t x2);
/* The total variation between what was added and the law, over the cells, and what is expected of it where they are one: each count is off by about
 * the root of its variance. */
void check_law_distance(const struct check_law *law, double *found, double *by_chance);

#endif
