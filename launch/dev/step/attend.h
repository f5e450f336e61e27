/* How much attention gets of the multiplications that the cores can do at most: the backend's operation alone, over caches of the shape of
 * SmolLM2-135M (9 heads of 64, 3 of keys), of so many layers in turns that they come from memory. It owns its caches while it runs; local. */
#ifndef TANDEM_LAUNCH_DEV_STEP_ATTEND_H
#define TANDEM_LAUNCH_DEV_STEP_ATTEND_H

#include "common/base/status.h"

/* One JSON object a line for each dtype of cache and number of rows and places, up to 131,072 of these, whose caches and scores take 0.2 GB and
 * what they do some 15 s of a core; `isa` may be NULL for the best one. */
enum status attend_measure(int threads, const char *isa);

#endif
