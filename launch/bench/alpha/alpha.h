/* Offline alpha: the target decodes texts of its own, alone, and at each token every draft says what it would have proposed there. So acceptance is
 * known without a speculative round, for many drafts at once, and by expectation instead of by coins: alpha = E sum min(p, q) (Leviathan et al. 2023,
 * theorem 3.5; under a rule that shares noise, how often both draw the same), and all of the first k drafts are accepted with probability E prod
 * min(1, q/p) over the target's own tokens, for the sum over all drafts of prod min(p, q) is that. It owns readers and texts; local, one thread, no
 * MPI. */
#ifndef TANDEM_LAUNCH_BENCH_ALPHA_ALPHA_H
#define TANDEM_LAUNCH_BENCH_ALPHA_ALPHA_H

#include "common/options/options.h"
#include "launch/bench/alpha/share.h"

enum { ALPHA_DRAFTS = 8, ALPHA_DEPTH = 8, ALPHA_GUESSES = 8, ALPHA_BEST = 5 };
static const int alpha_lengths[] = {1, 2, 4, 8}; /* of drafts, for which rounds are told of */
enum { ALPHA_LENGTHS = sizeof alpha_lengths / sizeof *alpha_lengths };
static const int alpha_rows[] = {1, 2, 4, 8}; /* of a draft model's step, which are timed */
enum { ALPHA_ROWS = sizeof alpha_rows / sizeof *alpha_rows };

/* What is known of one draft. */
struct alpha_figures {
    struct share alpha;
    struct share overlap;            /* sum min(p, q) = 1 - D_LK, whatever the rule: one that shares noise accepts another share than this */
    struct share agreement;          /* its most probable token is the target's */
    struct share proposals;          /* tokens where it proposes at all */
    struct share place[ALPHA_DEPTH]; /* accepted at place k + 1, where those before were */
    struct share corrected[ALPHA_GUESSES]; /* the target's token after a rejection is the draft's n-th guess, which it may run ahead with */
    struct share bonus[ALPHA_GUESSES];     /* the same where every draft was accepted */
    struct share among[ALPHA_BEST][ALPHA_DEPTH]; /* it is one of the n + 1 best guesses at place k + 1, where it was at those before */
    struct share support;                  /* tokens of a q that is sent; 0 of point masses */
    double c;                        /* time of its step over that of the target's, of one text; 0: it runs no model */
    double step_us[ALPHA_ROWS];      /* its step, by rows */
    double choose_us;                /* to draw a token from a row of its logits, and to make q */
};

struct alpha_terms {
    const struct options *target;              /* what is read and how; its draft does not matter */
    const struct options *draft[ALPHA_DRAFTS]; /* the same with a draft each */
    int drafts;
    int tokens; /* that the target decodes at most, over all texts */
};

struct alpha_result {
    struct alpha_figures draft[ALPHA_DRAFTS];
    int texts, tokens;
    double step_us;          /* the target's step of one text */
    double v[ALPHA_LENGTHS]; /* time of the target's step with so many drafts over that without */
    int threads;             /* that both used */
};

/* STATUS_DATA, STATUS_NOINPUT, STATUS_USAGE as of the models and the prompts; logged. */
enum status alpha_measure(const struct alpha_terms *terms, struct alpha_result *result);

/* Expected tokens of a round of so many drafts, where it has a proposal or not: by the acceptance of each place, and as if it were alpha at each
 * (equation 1). */
double alpha_tokens_by_place(const struct alpha_figures *figures, int drafts);
double alpha_tokens_by_mean(const struct alpha_figures *figures, int drafts);
/* The speed of a job of one text at a time over that of the target alone, whose ranks compute as this process did, with the drafts of
 * alpha_lengths[which]: where each round waits for its drafts, and where none does because the drafter ran ahead. Without messages and what a round
 * costs beside its steps: equation 3.8 of the paper with v(K + 1) in the place of 1. */
double alpha_speedup(const struct alpha_result *result, int draft, int which, int waits);

#endif
