#include "verifier/command/sweep_noise.h"

#include "common/base/log.h"
#include "common/base/median.h"
#include "common/base/try.h"
#include <stdlib.h>
#include <string.h>

static enum status no_memory(void)
{
    log_error("no memory for the speeds of a sweep");
    return STATUS_INTERNAL;
}

static enum status grow_cells(struct sweep_noise *noise, int cells)
{
    struct sweep_noise_cell *grown;

    if (cells <= noise->cells)
        return STATUS_OK;
    grown = realloc(noise->cell, (size_t)cells * sizeof *grown);
    if (grown == NULL)
        return no_memory();
    for (int i = noise->cells; i < cells; i++)
        grown[i] = (struct sweep_noise_cell){.baseline = -1};
    noise->cell = grown;
    noise->cells = cells;
    return STATUS_OK;
}

static enum status grow_speeds(struct sweep_noise_cell *cell, int repetitions)
{
    double *grown;

    if (repetitions <= cell->repetitions)
        return STATUS_OK;
    grown = realloc(cell->speed, (size_t)repetitions * sizeof *grown);
    if (grown == NULL)
        return no_memory();
    memset(grown + cell->repetitions, 0, (size_t)(repetitions - cell->repetitions) * sizeof *grown);
    cell->speed = grown;
    cell->repetitions = repetitions;
    return STATUS_OK;
}

enum status sweep_noise_add(struct sweep_noise *noise, int cell, int baseline, int repetition, double speed)
{
    TRY(grow_cells(noise, (cell > baseline ? cell : baseline) + 1));
    TRY(grow_speeds(&noise->cell[cell], repetition + 1));
    noise->cell[cell].baseline = baseline != cell ? baseline : -1;
    noise->cell[cell].speed[repetition] = speed;
    return STATUS_OK;
}

void sweep_noise_release(struct sweep_noise *noise)
{
    for (int i = 0; i < noise->cells; i++)
        free(noise->cell[i].speed);
    free(noise->cell);
    noise->cell = NULL;
    noise->cells = 0;
}

/* The cell's speed over its baseline's in each repetition that has both.  ratio: [repetitions of the cell]; returns how many */
static int ratios_of(const struct sweep_noise_cell *cell, const struct sweep_noise_cell *baseline, double *ratio)
{
    int count = 0;

    for (int i = 0; i < cell->repetitions && i < baseline->repetitions; i++)
        if (cell->speed[i] > 0 && baseline->speed[i] > 0)
            ratio[count++] = cell->speed[i] / baseline->speed[i];
    return count;
}

double sweep_noise_error(const struct sweep_noise *noise, int cell)
{
    const struct sweep_noise_cell *own = &noise->cell[cell];
    double *ratio, middle, error = 0;
    int count;

    if (own->baseline < 0 || own->repetitions == 0)
        return 0;
    ratio = malloc((size_t)own->repetitions * sizeof *ratio);
    if (ratio == NULL)
        return 0; /* nothing is repeated for want of memory */
    count = ratios_of(own, &noise->cell[own->baseline], ratio);
    median_sort(ratio, count);
    middle = median_of_sorted(ratio, count);
    if (middle > 0)
        error = median_error_of_sorted(ratio, count) / middle;
    free(ratio);
    return error;
}

static int is_beyond(const struct sweep_noise *noise, int cell)
{
    return sweep_noise_error(noise, cell) > noise->limit;
}

int sweep_noise_wants(const struct sweep_noise *noise, int cell)
{
    if (cell >= noise->cells)
        return 0;
    for (int i = 0; i < noise->cells; i++)
        if ((i == cell || noise->cell[i].baseline == cell) && is_beyond(noise, i))
            return 1;
    return 0;
}

int sweep_noise_goes_on(const struct sweep_noise *noise, int repetitions, double spent, double seconds)
{
    int beyond = 0;

    for (int i = 0; i < noise->cells; i++)
        beyond += is_beyond(noise, i);
    return beyond > 0 && spent < seconds && repetitions < SWEEP_NOISE_MOST;
}
