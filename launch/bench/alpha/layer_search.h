/* Which layers a target may do without as its own drafter (--draft self:skip=LIST): those without which the rest still names the target's own token
 * most often. The target decodes texts greedily; a set is then judged by feeding it half of them, all tokens of a text at once. Layers are taken out
 * one after the other, each time the one that costs least beside those that are out already, of the six that cost least when they were judged last.
 * What each set is worth is told of the other half, which has chosen no layer. (Zhang et al. 2024, Draft & Verify, search the same sets by Bayesian
 * optimisation; what single layers cost orders the candidates here, as most cost less beside others than the order changes.) Local, one thread, no
 * MPI. */
#ifndef TANDEM_LAUNCH_BENCH_ALPHA_LAYER_SEARCH_H
#define TANDEM_LAUNCH_BENCH_ALPHA_LAYER_SEARCH_H

#include "common/base/layer_set.h"
#include "launch/bench/alpha/alpha.h"

struct layer_terms {
    const struct options *target;
    int tokens; /* that the target decodes at most, over all texts */
    int least;  /* layers that are left at the end; 0: half of them */
};

/* One more layer is out. */
struct layer_step {
    struct layer_set skip;
    int left;                     /* layers */
    struct alpha_figures figures; /* of the half that has chosen nothing: agreement, alpha (the same), places, c */
};

struct layer_result {
    struct layer_step *step; /* [steps] from one layer out on; to be freed */
    int steps, layers;
    int texts, tokens;       /* of both halves */
    double step_us;          /* the target's step of one text */
    double v[ALPHA_LENGTHS]; /* time of the target's step with so many drafts over that without */
    int threads;             /* that all took */
};

/* STATUS_DATA, STATUS_NOINPUT, STATUS_USAGE as of the model and the prompts; logged. */
enum status layer_search(const struct layer_terms *terms, struct layer_result *result);
/* Tokens a second, over the target's alone, with the step's set as the drafter and alpha_lengths[which] drafts: where each round waits for them, and
 * at most where the drafter runs ahead, if it always guesses what will be committed. Without messages. */
double layer_speedup(const struct layer_result *result, int step, int which, int waits);

#endif
