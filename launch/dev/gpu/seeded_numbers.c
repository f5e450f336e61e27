#include "launch/dev/gpu/seeded_numbers.h"

#include "common/base/log.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The end of MurmurHash3: every bit of x moves every bit of the result. */
static uint32_t mix(uint32_t x)
{
    x = (x ^ (x >> 16)) * UINT32_C(0x85EBCA6B);
    x = (x ^ (x >> 13)) * UINT32_C(0xC2B2AE35);
    return x ^ (x >> 16);
}

/* To the nearest, ties to even; no NaN comes here. */
static uint16_t bf16_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

float seeded_numbers_scale(double gain, int columns)
{
    return (float)(gain * sqrt(3.0 / columns));
}

enum status seeded_numbers_find(struct seeded_numbers *numbers, float scale, const uint16_t **table)
{
    uint16_t *new;
    int i = 0;

    while (i < numbers->count && (numbers->scale[i] < scale || numbers->scale[i] > scale))
        i++;
    if (i < numbers->count) {
        *table = numbers->table[i];
        return STATUS_OK;
    }
    new = i < SEEDED_SCALES ? malloc(SEEDED_NUMBERS * sizeof *new) : NULL;
    if (new == NULL) {
        log_error("no memory for table %d of seeded numbers", i);
        return STATUS_INTERNAL;
    }
    for (uint32_t n = 0; n < SEEDED_NUMBERS; n++)
        new[n] = bf16_of(((float)(mix(n) >> 8) * 0x1p-23f - 1.0f) * scale);
    numbers->scale[i] = scale;
    numbers->table[i] = new;
    numbers->count++;
    *table = new;
    return STATUS_OK;
}

const uint16_t *seeded_numbers_row(const uint16_t *table, int matrix, int row)
{
    uint32_t place = mix(mix((uint32_t)matrix + 1) + (uint32_t)row) % ((SEEDED_NUMBERS - SEEDED_LONGEST_ROW) / SEEDED_ROW_STEP);

    return table + place * SEEDED_ROW_STEP;
}

void seeded_numbers_release(struct seeded_numbers *numbers)
{
    for (int i = 0; i < numbers->count; i++)
        free(numbers->table[i]);
    *numbers = (struct seeded_numbers){0};
}
