#include "verifier/team/step.h"

#include <string.h>

enum { HEAD = 4 }; /* words: rows, outputs, ids, scored */

size_t step_bytes(int rows, int outputs, int ids)
{
    return sizeof(int32_t) * (size_t)(HEAD + 7 * rows + 2 * outputs + 1 + ids);
}

void step_layout(struct step *step, int rows, int outputs, int ids)
{
    step_layout_scored(step, rows, outputs, 0, ids);
}

void step_layout_scored(struct step *step, int rows, int outputs, int scored, int ids)
{
    int32_t *at = step->words;

    at[0] = rows;
    at[1] = outputs;
    at[2] = ids;
    at[3] = scored;
    step_adopt(step);
    step->rows.count = 0; /* step_add_chain adds them */
    step->support_first[0] = 0;
}

void step_adopt(struct step *step)
{
    int32_t *at = step->words + HEAD;
    int rows = step->words[0];

    step->outputs = step->words[1];
    step->ids = step->words[2];
    step->scored = step->words[3];
    step->rows.count = rows;
    step->rows.ancestors = (uint64_t *)(void *)at; /* aligned, as the head has an even number of words */
    at += 2 * rows;
    step->rows.token = at;
    step->rows.position = at += rows;
    step->rows.slot = at += rows;
    step->rows.place = at += rows;
    step->rows.base = at += rows;
    step->output_row = at += rows;
    step->support_first = at += step->outputs + step->scored;
    step->id = at + step->outputs + 1;
    step->bytes = (size_t)(step->id + step->ids - step->words) * sizeof *step->words;
}

int step_add_chain(struct step *step, int slot, int first, const int32_t *tokens, int count)
{
    struct rows *rows = &step->rows;
    int start = rows->count;

    for (int i = 0; i < count; i++) {
        int r = rows->count++;

        rows->token[r] = tokens[i];
        rows->position[r] = first + i;
        rows->slot[r] = slot;
        rows->place[r] = first + i;
        backend_see_chain(rows, r, first, i);
    }
    return start;
}

_Static_assert((int)SAMPLING_MAX_DRAFT < (int)BACKEND_MAX_ROWS, "a tree and the token that it follows are rows that a mask has bits for");

int step_add_tree(struct step *step, int slot, int first, int32_t token, const int32_t *tokens, const int8_t *parent, int count)
{
    struct rows *rows = &step->rows;
    int start = step_add_chain(step, slot, first, &token, 1);

    for (int i = 0; i < count; i++) {
        int r = rows->count++, before = start + 1 + parent[i];

        rows->token[r] = tokens[i];
        rows->position[r] = rows->position[before] + 1;
        rows->slot[r] = slot;
        rows->place[r] = first + 1 + i;
        rows->base[r] = first;
        rows->ancestors[r] = rows->ancestors[before] | UINT64_C(1) << (i + 1);
    }
    return start;
}
