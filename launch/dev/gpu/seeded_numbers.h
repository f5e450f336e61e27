/* The numbers of seeded weights (seeded.h). It owns one table for each scale in use, filled when it is first asked for; all zeros is a set without
 * tables. Invariant: a number follows from its place and the scale alone. One thread. */
#ifndef TANDEM_LAUNCH_DEV_GPU_SEEDED_NUMBERS_H
#define TANDEM_LAUNCH_DEV_GPU_SEEDED_NUMBERS_H

#include "common/base/status.h"
#include <stdint.h>

enum {
    SEEDED_NUMBERS = 1 << 22,
    SEEDED_LONGEST_ROW = 1 << 14,
    SEEDED_ROW_STEP = 8, /* rows begin at multiples of it */
    SEEDED_SCALES = 8,   /* in use at once */
};

struct seeded_numbers {
    int count;
    float scale[SEEDED_SCALES];
    uint16_t *table[SEEDED_SCALES]; /* [SEEDED_NUMBERS] bf16 */
};

/* The scale of a matrix whose outputs vary by about `gain` when its inputs vary by one. */
float seeded_numbers_scale(double gain, int columns);
/* STATUS_INTERNAL without memory. */
enum status seeded_numbers_find(struct seeded_numbers *numbers, float scale, const uint16_t **table);
/* Row `row` of matrix `matrix`: at most SEEDED_LONGEST_ROW numbers of the table. */
const uint16_t *seeded_numbers_row(const uint16_t *table, int matrix, int row);
void seeded_numbers_release(struct seeded_numbers *numbers);

#endif
