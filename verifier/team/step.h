/* A step is one forward pass over the group: the rows to feed, which of them are output rows (evidence is wanted), and the ids of each output row's q
 * support. It owns nothing: all arrays point into one block of words that the caller gives. Invariant: the block holds everything, so the lead
 * broadcasts it as it is and followers find the arrays in it. Local; never allocates, sends or checks. */
#ifndef TANDEM_VERIFIER_TEAM_STEP_H
#define TANDEM_VERIFIER_TEAM_STEP_H

#include "common/backend/backend.h"

struct step {
    int outputs;              /* rows for which evidence is wanted */
    int scored;               /* further rows whose logits are wanted, for log p alone: output rows outputs .. outputs + scored - 1 */
    int ids;
    struct rows rows;
    int32_t *output_row;    /* [outputs + scored] index of the row */
    int32_t *support_first; /* [outputs + 1] indices into id: output a's support is id[support_first[a] .. support_first[a + 1]) */
    int32_t *id;            /* [ids] */
    int32_t *words;         /* the block */
    size_t bytes;           /* used bytes of the block */
};

/* Most bytes that a block of these counts needs; outputs: scored ones included. */
size_t step_bytes(int rows, int outputs, int ids);
/* Lays out a step of these counts in step->words, with no row yet. */
void step_layout(struct step *step, int rows, int outputs, int ids);
/* The same with `scored` rows beside the outputs. */
void step_layout_scored(struct step *step, int rows, int outputs, int scored, int ids);
/* Finds the arrays in a received block. It is trusted: it comes from the lead, the same program. */
void step_adopt(struct step *step);

/* Adds a chain: `count` tokens of `slot` at places first .. first + count - 1. Returns the index of its first row. */
int step_add_chain(struct step *step, int slot, int first, const int32_t *tokens, int count);
/* Adds a token of `slot` at place `first`, and a tree of `count` tokens, at most BACKEND_MAX_ROWS - 1, that follow it, at the places behind: each
 * sees those that lead to it.  parent: [count] as of struct proposal. Returns the index of its first row. */
int step_add_tree(struct step *step, int slot, int first, int32_t token, const int32_t *tokens, const int8_t *parent, int count);

#endif
