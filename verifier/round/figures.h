/* The figures of a run, counted where they arise and reported at the end. */
#ifndef TANDEM_VERIFIER_ROUND_FIGURES_H
#define TANDEM_VERIFIER_ROUND_FIGURES_H

#include "common/base/clock.h"
#include "common/wire/message.h"
#include <stdint.h>

struct figures {
    int64_t tokens; /* generated */
    int64_t drafted_rounds; /* that verified a draft at least */
    int64_t rounds; /* of sequences: a step over three sequences counts three */
    int64_t steps;
    int64_t drafted;  /* tokens verified; what came after a cut counts nowhere */
    int64_t accepted;
    int64_t tested[MESSAGE_MAX_DRAFT];   /* how often the draft at that place of a proposal was tested */
    int64_t accepted_at[MESSAGE_MAX_DRAFT]; /* and how often it was accepted */
    double overlap;         /* mean over tested drafts of the sum of min(p, q): the expected alpha; 0 when not measured */
    double overlap_error;   /* standard error of the counted alpha around it */
    int64_t full_rounds;    /* rounds whose proposal had the whole draft length that the request asks for */
    int64_t full_tokens;    /* what those gave: equation 1 speaks of them */
    int64_t asked_rounds;    /* that wanted drafts, whether or not a drafter was there to be asked */
    int64_t answered_rounds; /* and had a proposal */
    int64_t fallback_rounds; /* without a proposal though one was asked for */
    int64_t empty_rounds;    /* whose proposal had no token: the drafter had none */
    int64_t prompt_tokens;        /* of prompts, fed to the target */
    int64_t prefix_tokens_reused; /* of prompts, which a cache held already: the first tokens of another one, or of the turn before */
    int64_t stale, refused;
    int drained;     /* the job was told to end before all results were there */
    int64_t resumed; /* results of earlier jobs, which no other figure counts */
    int64_t wall_ns; /* of decoding, prefill included */
    double draft_us, wire_us; /* means over all rounds, those without a proposal too: so with verify_us and decide_us they make a round */
    double verify_us, decide_us, group_us; /* means by step */
};

/* Share of judged drafts that stood: the counted alpha. */
double figures_alpha(const struct figures *figures);
/* Share of all drafts that stood: those behind the first that did not fall with it. */
double figures_kept(const struct figures *figures);
/* Share of rounds that verified a draft. */
double figures_drafted_rounds(const struct figures *figures);
double figures_tokens_per_second(const struct figures *figures);
/* Committed tokens per round of a sequence. */
double figures_mean_accepted_length(const struct figures *figures);
/* Microseconds of `spans` in a round, on the average of all rounds. */
double figures_us_per_round(const struct figures *figures, const struct span_sum *spans);

#endif
