/* A step is one forward over the group: the rows to feed, which of them want evidence, and the ids of each one's q support. It is one
 * block of words, so that the lead broadcasts it as it lies. */
#ifndef TANDEM_VERIFIER_TEAM_STEP_H
#define TANDEM_VERIFIER_TEAM_STEP_H

#include "common/backend/backend.h"

struct step {
    int outputs;              /* rows that want evidence */
    int ids;
    struct rows rows;
    int32_t *output_row;     /* [outputs] index of the row */
    int32_t *support_first; /* [outputs + 1] into id: row a's support is id[support_first[a] .. support_first[a + 1]) */
    int32_t *id;            /* [ids] */
    int32_t *words;         /* the block */
    size_t bytes;           /* of the block in use */
};

/* Bytes that a block may need. */
size_t step_bytes(int rows, int outputs, int ids);
/* Lays out an empty step of these counts in step->words. */
void step_layout(struct step *step, int rows, int outputs, int ids);
/* Finds the arrays of a block that was received (from the lead, of the same program: trusted). */
void step_adopt(struct step *step);

/* Adds a chain: `count` tokens of `slot` at places first .. first + count - 1. Returns the index of its first row. */
int step_add_chain(struct step *step, int slot, int first, const int32_t *tokens, int count);

#endif
