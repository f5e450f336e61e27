/* How far the logits of a model are from those of the same weights in float32, over the positions of a text. It owns both models while it runs;
 * local. */
#ifndef TANDEM_LAUNCH_DEV_STEP_QUALITY_H
#define TANDEM_LAUNCH_DEV_STEP_QUALITY_H

#include "common/model/model.h"
#include "launch/dev/step/difference.h"

/* cache: the numbers in the cache of `model`; those of `reference` are float32. STATUS_NOINPUT, STATUS_DATA (a text that is too short),
 * STATUS_INTERNAL, logged. */
enum status quality_measure(const char *reference, const char *model, enum cache_choice cache, const char *text, int threads, int positions,
                            struct difference *difference);

#endif
