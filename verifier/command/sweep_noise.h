/* Which cells of a sweep are not known well enough: a cell's speedup is that of its passes over those of its baseline in the same repetition, and
 * another pass of both is wanted while the standard error of their median is beyond the limit. Owns the speeds. Pure. */
#ifndef TANDEM_VERIFIER_COMMAND_SWEEP_NOISE_H
#define TANDEM_VERIFIER_COMMAND_SWEEP_NOISE_H

#include "common/base/status.h"

enum { SWEEP_NOISE_MOST = 1 << 16 /* cells, and repetitions of each */ };

/* One way to decode. */
struct sweep_noise_cell {
    int baseline;  /* -1: it is compared with nothing */
    double *speed; /* [repetitions] tokens per second; 0: it was not measured in that repetition */
    int repetitions;
};

/* All zero but for the limit is empty. */
struct sweep_noise {
    double limit; /* largest standard error of a speedup, as a share of it */
    struct sweep_noise_cell *cell; /* [cells] */
    int cells;
};

/* Adds a pass; all three from 0 to SWEEP_NOISE_MOST - 1, baseline from -1. A cell that is its own baseline is compared with nothing.
 * STATUS_INTERNAL. */
enum status sweep_noise_add(struct sweep_noise *noise, int cell, int baseline, int repetition, double speed);
void sweep_noise_release(struct sweep_noise *noise);
/* The standard error of a cell's speedup, as a share of it; 0 where it is compared with nothing. */
double sweep_noise_error(const struct sweep_noise *noise, int cell);
/* Would another pass of the cell help: for itself, or as the baseline of one that needs it? */
int sweep_noise_wants(const struct sweep_noise *noise, int cell);
/* Is there to be another repetition, after `spent` of the `seconds` that there are for more of them? Not when every cell is within the limit. */
int sweep_noise_goes_on(const struct sweep_noise *noise, int repetitions, double spent, double seconds);

#endif
