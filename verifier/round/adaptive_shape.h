/* Which shape drafts have where the job leaves that to the lead (--tree auto): a chain or one of the trees, whichever is the fastest by what was
 * measured of each in this run. It owns what was seen of the shapes that are not in use; what is seen of the one in use is the borrowed struct
 * adaptive's. Invariant: as that one's, the choice depends on times and on verdicts of decided positions alone, and is made for rules under which the
 * output does not depend on what was drafted. Only the lead's thread may call. Pure: never reads a clock, sends, waits or allocates. */
#ifndef TANDEM_VERIFIER_ROUND_ADAPTIVE_SHAPE_H
#define TANDEM_VERIFIER_ROUND_ADAPTIVE_SHAPE_H

#include "common/wire/message.h"
#include "verifier/round/adaptive.h"

enum { ADAPTIVE_SHAPES = 4 };

struct adaptive_shape {
    int count;                                  /* shapes to choose from; 0: the job's own is the only one */
    struct adaptive_seen seen[ADAPTIVE_SHAPES]; /* [count] of each that is not in use */
    int now;                                    /* the one in use, */
    int home;                                   /* and the fastest so far: another one than that in a trial */
    int tried;                                  /* the last one that was tried */
    int trial_rounds;                           /* rounds left of the trial */
    int since_trial;                            /* rounds with drafts since the last one, */
    int trial_rest;                             /* and between it and the next */
    int drafted;                                /* the last round was one with drafts */
};

/* Begins with chains. ranks: drafts have probabilities, so that trees of several shapes can be made of them, and not one alone */
void adaptive_shape_begin(struct adaptive_shape *shape, int ranks);
/* What to ask of a drafter: the shape in use, and TREE_CHAIN where there is no choice. */
enum tree_kind adaptive_shape_now(const struct adaptive_shape *shape);
/* The fastest by what was measured: another one than that in use in a trial. */
enum tree_kind adaptive_shape_best(const struct adaptive_shape *shape);
/* To be called between adaptive_add_round and adaptive_choose: may go on with another shape. */
void adaptive_shape_turn(struct adaptive_shape *shape, struct adaptive *adaptive, int sequences);

#endif
