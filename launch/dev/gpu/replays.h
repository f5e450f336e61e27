/* Whether steps that a device replays, with kernels that overlap, have the bits of steps whose kernels are launched one by one and wait for each other. A
 * measurement of bench_gpu: one process, one device. */
#ifndef TANDEM_LAUNCH_DEV_GPU_REPLAYS_H
#define TANDEM_LAUNCH_DEV_GPU_REPLAYS_H

#include "launch/dev/gpu/rig.h"
#include "launch/dev/gpu/settings.h"

/* settings->repetitions steps of 1, 2, 4 .. 64 rows in turns, after settings->context[0] places, or as many as half a minute allows. A line "replays,..."
 * says how many of them were replayed; STATUS_DATA, after a line, where none was, or that names the first step and row whose bits differ. */
enum status replays_run(const struct settings *settings, const struct backend *backend);

#endif
