/* Both roles in one process, with the real code of each on the toy pair: the draft model's proposals, the wire's messages, sequences, the
 * verifier group of 1, 2 or 4 shards (toy_hub.h), commits and mirrors. */
#ifndef TANDEM_TESTS_LAW_TOY_ROUND_H
#define TANDEM_TESTS_LAW_TOY_ROUND_H

#include "drafter/draft.h"
#include "tests/law/toy_model.h"
#include "verifier/round/verify.h"

enum { TOY_SHARDS = 4, TOY_SLOTS = 4 };

/* Who says how many tokens the next round drafts. */
enum toy_length {
    TOY_FIXED,
    TOY_ADAPTIVE,  /* verifier/round/adaptive.h, by verdicts and pretended times that jump about */
    TOY_JUMPY,     /* any other way to choose from these: far from slowly */
    TOY_HEURISTIC, /* each sequence by its own verdicts: adaptive_next */
    TOY_PEEKS,     /* NOT LAWFUL: a proposal that begins with the law's first token is not used */
};

enum toy_merges {
    TOY_MERGES_NOT,
    TOY_MERGES_LEARNT, /* by what was accepted before */
    TOY_MERGES_BLIND,  /* as if nothing were known */
};

struct toy_run {
    struct sampling sampling;
    int shards;
    int slots;        /* sequences at once, 1 .. TOY_SLOTS; 0: all slots */
    int draft_length; /* 0: solo; the first round's, where others choose later */
    enum toy_length length_by;
    int support;      /* most tokens of a q */
    int length;       /* tokens to commit */
    int beyond;       /* tokens that a request may have beyond them, which are cut off */
    struct stopping stopping; /* of the drafter */
    struct tree_shape shape;  /* of what it proposes */
    struct draft_copies copies; /* beside the model */
    int lookahead;              /* the target drafts for itself, in place of the model */
    enum toy_merges merges; /* a second drafter draws for each sequence, too, from p at twice the temperature, and ends behind one token of the law;
                               what both propose is merged */
    int run_ahead;    /* the drafter does, after each proposal, for 1 to 6 texts, until a message comes */
    double loss;      /* share of proposals, and of commits to the drafter, that get lost */
    uint32_t first;   /* number of the first request */
    int count;        /* requests */
};

struct toy_parts;

struct toy_round {
    const struct toy_law *law;
    const struct toy_run *run;
    struct toy_parts *parts;
    /* Called for every outcome, before it is cut; round counts from 0. */
    void (*on_outcome)(void *user, const struct sequence *sequence, const struct outcome *outcome);
    /* Called for every finished request: its tokens after the prompt, [run->length]. */
    void (*on_end)(void *user, uint32_t request, const int32_t *tokens);
    void *user;
    int64_t fetched; /* drafts made ahead that were used */
    int64_t copied;  /* proposals that are copies, or end with some */
};

/* Runs all requests. What goes wrong fails the test. overlap: may be NULL; gets the verifier's own sums of min(p, q) */
struct toy_overlap {
    double sum, variance;
    int64_t tested;
};
void toy_round_run(struct toy_round *round, struct toy_overlap *overlap);

#endif
