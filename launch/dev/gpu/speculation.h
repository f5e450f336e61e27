/* Sequential speculation in one process, greedy, with a nested pair: what a round costs on one device when nothing else is in the way. It owns its
 * two models while it runs; local. Tokens that are not those of the target alone are a failure. */
#ifndef TANDEM_LAUNCH_DEV_GPU_SPECULATION_H
#define TANDEM_LAUNCH_DEV_GPU_SPECULATION_H

#include "launch/dev/gpu/settings.h"

/* Local. STATUS_CHECK when the tokens are not those of the target alone. */
enum status speculation_run(const struct settings *settings, const struct backend *backend);

#endif
