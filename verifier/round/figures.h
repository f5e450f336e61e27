/* The figures of a run: counters and times, added up where they arise and reported at the end. Mere data, written by the lead alone; the functions
 * are pure. */
#ifndef TANDEM_VERIFIER_ROUND_FIGURES_H
#define TANDEM_VERIFIER_ROUND_FIGURES_H

#include "common/base/clock.h"
#include "common/wire/message.h"
#include "verifier/round/merge.h"
#include <stdint.h>

/* What the drafters' running ahead gave. */
struct ahead_figures {
    int64_t proposals;    /* that came before the tokens that they are for were committed */
    int64_t bytes;        /* of these, on the wire */
    int64_t hits;         /* proposals used that were all drafted before they were asked for */
    struct span_sum wait; /* for these, once asked for */
    struct ahead_outcome {
        int64_t rounds, hits;           /* rounds with a proposal, by what came of the round before; and hits among them */
    } all, rejected[MESSAGE_MAX_DRAFT]; /* all drafts were accepted; the one at this place was rejected */
};

/* What the lead and its drafters sent each other: frames, and their bytes. */
struct wire_figures {
    int64_t sent, sent_bytes;
    int64_t received, received_bytes; /* messages of drafters that were as they should be */
};

/* What one kind of drafter gave, where proposals of several are merged. */
struct kind_figures {
    int64_t missed;          /* proposals that did not come in time */
    int64_t proposals;       /* with at least one draft */
    int64_t drafted, agreed; /* its drafts, and those at the front of a proposal that are what was committed, whether they were verified or not */
    int64_t accepted, alone; /* drafts accepted that it proposed, and those of them that no other kind did */
};

/* Drafts at a place of proposals that were tested by rules whose overlap tells how often a draft is accepted. */
struct overlap_figures {
    int64_t tested;
    double excess; /* how many more of them were accepted than their overlaps, sum of min(p, q), add up to */
};

struct figures {
    int64_t tokens; /* generated */
    int64_t drafted_rounds; /* rounds that verified at least one draft */
    int64_t rounds; /* of sequences: a step over three sequences counts three */
    int64_t steps;
    int64_t drafted;  /* draft tokens verified */
    int64_t accepted;
    int64_t tested[MESSAGE_MAX_DRAFT];   /* how often the draft at that place of a proposal was tested */
    int64_t accepted_at[MESSAGE_MAX_DRAFT]; /* and how often it was accepted */
    double overlap;         /* mean over tested drafts of the sum of min(p, q), which is the expected alpha; 0 when not measured */
    struct overlap_figures overlap_at[MESSAGE_MAX_DRAFT]; /* zeros when not measured */
    double overlap_error;   /* standard error of the counted alpha around the expected one */
    int64_t full_rounds;    /* rounds whose proposal had the whole draft length that the request asks for */
    int64_t full_tokens;    /* tokens that these rounds gave: equation 1 (adaptive.c) is about them */
    int64_t asked_rounds;    /* rounds that wanted drafts, whether or not a drafter could be asked */
    int64_t answered_rounds; /* rounds that wanted drafts and had a proposal */
    int64_t fallback_rounds; /* rounds without a proposal though a drafter was asked for one */
    int64_t empty_rounds;    /* rounds whose proposal was empty: the drafter had nothing to propose */
    int64_t prompt_tokens;        /* prompt tokens that were fed to the target */
    int64_t prefix_tokens_reused; /* prompt tokens not fed, as a KV cache held them already: a shared prefix, or the turn before */
    struct ahead_figures ahead;
    struct wire_figures wire;
    int64_t shape_rounds[TREE_KINDS]; /* rounds with drafts by the shape that was asked for, where the lead chooses it */
    int kinds; /* of drafters, whose proposals are merged; 1: none are */
    struct kind_figures kind[MERGE_MOST];
    int64_t stale, refused;
    int drained;     /* the job was drained before all results were there */
    int64_t resumed; /* results of earlier jobs (a resumed journal), which no other figure counts */
    int64_t wall_ns; /* of decoding, prefill included */
    double draft_us, wire_us; /* means over all rounds, with or without a proposal: with verify_us and decide_us they add up to a round */
    double verify_us, decide_us, group_us; /* means per step */
};

/* Accepted drafts over tested drafts: the counted alpha. */
double figures_alpha(const struct figures *figures);
/* Accepted drafts over all drafts. Those after the first rejected one are discarded untested, and count here. */
double figures_kept(const struct figures *figures);
/* Share of rounds that verified at least one draft. */
double figures_drafted_rounds(const struct figures *figures);
double figures_tokens_per_second(const struct figures *figures);
/* Share of answered rounds whose proposal lay there before it was asked for. */
double figures_ahead_hit_rate(const struct figures *figures);
/* Drafts of a mean proposal, empty ones included. */
double figures_drafts_per_proposal(const struct figures *figures);
/* Committed tokens per round of a sequence. */
double figures_mean_accepted_length(const struct figures *figures);
/* Mean microseconds of `spans` per round, over all rounds. */
double figures_us_per_round(const struct figures *figures, const struct span_sum *spans);

#endif
