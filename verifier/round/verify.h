/* Verify takes one step of the verifier group over several sequences: proposals in, outcomes out. It owns the memory of a step's target rows and
 * verdicts, and the measured times. Invariant: every outcome's tokens follow the target's distribution exactly (Leviathan et al. 2023, Algorithm 1),
 * unless breakage or synthetic_acceptance is set. The lead's thread alone calls, and what is collective is answered by team_follow on the other
 * ranks. Never commits, cuts or sends an outcome to anybody: it does not know stop conditions or drafters. Allocates at open alone. */
#ifndef TANDEM_VERIFIER_ROUND_VERIFY_H
#define TANDEM_VERIFIER_ROUND_VERIFY_H

#include "common/base/breakage.h"
#include "verifier/accept/accept.h"
#include "verifier/accept/explained.h"
#include "verifier/round/figures.h"
#include "verifier/round/sequence.h"
#include "verifier/team/team.h"

struct outcome {
    int drafted;
    int accepted; /* the path of the verdict */
    int refused;  /* the draft that was tested behind them and is not; -1: none was */
    int count;    /* accepted + 1 */
    int32_t token[MESSAGE_MAX_COMMIT];
    const struct explained *explained; /* until the next round, where verify_explain was called; else NULL */
};

/* The next `count` tokens of a prompt that are not in the cache. */
struct prompt_part {
    struct sequence *sequence;
    int count;
    int scored; /* after so many of them, the last ones, log p of the next token is asked for */
};

struct verify {
    struct team *team;
    struct arena arena;
    struct target_row *target_row;           /* [max_outputs] */
    struct scored_token *best;  /* [max_outputs][width] */
    double *p;                  /* [max_outputs][width] */
    float *logit;               /* [max_ids] */
    float *whole;               /* [vocab] */
    struct draw_order *orders;  /* [max_sequences] */
    struct evidence_winner *winners;
    int *drawn;                 /* [max_sequences] which sequence an order is for */
    struct verdict *verdict;    /* [max_sequences] */
    struct commit_note *notes;  /* [max_outputs] */
    struct keep_order *keep;    /* [max_outputs] accepted tokens of trees that are not where they belong */
    struct logprob_order *asked; /* [max_outputs], and what is answered: */
    struct logprob *logprobs;
    struct prompt_part *part;   /* [max_sequences] prompt rows of the next step */
    int parts;
    size_t width;
    const char *const *kind;      /* borrowed: what the kinds of drafters are called, where there are several; else NULL */
    int tells_own;                /* each sequence gets the target's own tokens, for its drafter; where the rule compares tokens */
    struct explained *explained;  /* [max_sequences] the last round as it was decided; NULL: nobody asks */
    int measure_overlap;          /* add up the sum of min(p, q) of every tested draft; costs a little time */
    double overlap, overlap_variance; /* sums over tested drafts of the overlap o = sum of min(p, q), and of o (1 - o) */
    int64_t overlaps;
    struct overlap_figures by_place[MESSAGE_MAX_DRAFT]; /* the same by the draft's place in its proposal */
    enum breakage breakage;       /* a fault put in on purpose, by `tandem check` */
    double synthetic_acceptance;  /* drafts are accepted with this probability, NOT LOSSLESS; -1: by the target */
    struct span_sum step, decide; /* time of the forward and evidence; time of deciding */
};

enum status verify_open(struct verify *verify, struct team *team, int max_sequences, int max_outputs, int max_ids);
void verify_close(struct verify *verify);
/* From here on each outcome says how it was decided. Local; allocates. */
enum status verify_explain(struct verify *verify, int max_sequences);

/* Local. Adds `count` prompt tokens of the sequence to the next step, once per step and sequence. All prompt rows and the rows of a round together
 * are at most the model's max_rows; the output rows and those that are scored, at most max_outputs. */
void verify_add_prompt(struct verify *verify, struct sequence *sequence, int count);
/* Takes a step of the added prompt rows alone. Log p of tokens that follow them is kept where it is asked for. Collective over the group. */
enum status verify_read(struct verify *verify);
/* Reads the whole prompt of a sequence, of which no log p is asked for, except its newest token. Collective over the group. */
enum status verify_prefill(struct verify *verify, struct sequence *sequence);

/* Times a step of `rows` output rows with this sampling, in slot 0, which must be free. Collective over the group. */
enum status verify_warm_up(struct verify *verify, const struct sampling *sampling, int rows, double *us);

/* One round of `count` sequences whose prompts are read, each with its proposal or without, and of the added prompt rows. outcomes: [count].
 * Collective over the group. */
enum status verify_round(struct verify *verify, struct sequence *const *sequences, int count, struct outcome *outcomes);

/* Tells the shards which tokens of the last round were committed, the first kept[s] of each outcome, for --hash-logits. Collective over the group. */
enum status verify_note(struct verify *verify, const struct outcome *outcomes, const int *kept, int count);

/* Adds log p of the last round's committed tokens, the first kept[s] of each outcome, to the sequences whose requests ask for it. Collective over the
 * group where one does. */
enum status verify_logprobs(struct verify *verify, struct sequence *const *sequences, const struct outcome *outcomes, const int *kept, int count);

#endif
