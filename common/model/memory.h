/* Does it fit? Asked before memory is taken, so that a rank refuses with the figures instead of being killed. */
#ifndef TANDEM_COMMON_MODEL_MEMORY_H
#define TANDEM_COMMON_MODEL_MEMORY_H

#include "common/base/status.h"
#include <stdint.h>

/* STATUS_INTERNAL, with both figures, when `bytes` for `what` are more than this host has available. */
enum status memory_check(const char *what, int64_t bytes);
/* Bytes that this host can still give, or -1 when it does not say. */
int64_t memory_available(void);

#endif
