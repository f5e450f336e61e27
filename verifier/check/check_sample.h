/* The second check: at a temperature, after several texts, many requests are completed with drafts, and the law of their first two tokens is compared
 * with the target's exact one (check_law.h; the bounds are common/base/bounds.h). It owns its figures by text; the lead alone runs it. It never
 * decides by chance alone: the chance of a false alarm is CHECK_ALARM. */
#ifndef TANDEM_VERIFIER_CHECK_CHECK_SAMPLE_H
#define TANDEM_VERIFIER_CHECK_CHECK_SAMPLE_H

#include "common/base/bounds.h"
#include "common/base/status.h"
#include "verifier/check/check_share.h"
#include "verifier/round/figures.h"
#include <stdint.h>

/* Total variation. A check that sees no less than that, of any shape or towards the draft, has seen nothing; one that does so towards the draft alone
 * is coarse. */
#define CHECK_SEEN_MOST 0.5

struct check_context {
    int prompt;   /* index in the user's input */
    int tokens;   /* of the text: the prompt and some of its completion */
    int cells;    /* that can be hit */
    double top_p; /* of the most probable next token */
    struct bounds_fit fit;
};

struct check_sample {
    struct check_context *context; /* [contexts] */
    int contexts;
    int draft_length[2];  /* they take turns */
    int64_t samples;      /* over all texts */
    int64_t drafted;      /* tokens */
    int64_t tested;       /* samples whose first token was drafted: the others are the target's own, and show nothing */
    struct check_share share; /* of rounds that had a proposal, by text */
    int cells;            /* over all texts */
    int df;               /* of the sum */
    double g;             /* the sum over texts */
    int impossible;       /* cells that cannot be hit and were */
    double lean;          /* share of first tokens with p > q, less what is expected: below 0, the law leans to the draft */
    int worst;            /* the text whose own g is least probable */
    double g_bar, worst_bar, lean_bar; /* what must not be reached */
    struct overlap_figures place[MESSAGE_MAX_DRAFT]; /* how often drafts were accepted, by their place, where their overlap tells it: else zeros */
    int worst_place;                                 /* the one whose excess is least probable */
    double place_bar;                                /* which its excess must not reach; 0: none was tested so */
    double log_p;                                    /* of all four statistics together: bound on the p-value */
    double p_chi_square;  /* of the sum, as the chi-square law has it: not proven, closer to the truth */
    /* the smallest total variation that this check finds with probability 0.999, whatever its shape, among drafted tokens: the mean over texts */
    double variation;
    double lean_seen;     /* and of a law that leans to the draft */
    double distance;      /* total variation between what came and the target's law, over the cells: the mean over texts */
    double by_chance;     /* what is expected of it where the law is the target's */
};

struct check;
/* Collective over the group, on the lead. */
enum status check_sample_run(struct check *check);
/* Tokens of all requests behind one text. */
int64_t check_sample_tokens(const struct check *check);
/* No statistic is beyond its bound. Whether enough drafts came for that to say anything, check_share tells. */
int check_sample_holds(const struct check_sample *sample);
/* Are there enough samples, with drafts among them, to see a law that is far off, if it leans to the draft as faults in accepting
 * do? With fewer it holds whatever the law is. */
int check_sample_sees(const struct check_sample *sample);
void check_sample_release(struct check_sample *sample);

#endif
