/* What a report says of where and how it was made. Owns nothing; local. It only reads what the system says of itself. */
#ifndef TANDEM_LAUNCH_BENCH_SWEEP_MACHINE_H
#define TANDEM_LAUNCH_BENCH_SWEEP_MACHINE_H

#include "common/options/options.h"
#include <jansson.h>

/* Processor, cores, memory, kernel, load, driver of the device, and the version of the source that the program stands in. NULL without memory. */
json_t *machine_describe(void);
/* The models of a run as theory sees them: parameters, bytes, and arithmetic operations of one token at a context of `context` tokens: two for
 * each weight of a matrix, and those of attention; none for a draft of copies. Null where the model cannot be read. */
json_t *machine_target(const struct options *run, int context);
json_t *machine_draft(const struct options *run, int context);

#endif
