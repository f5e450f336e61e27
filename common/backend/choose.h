/* Which backend a program computes with: the choice is made when it runs, among those that it was built with. Constant tables; it owns no context.
 * Programs call it; the backends do not know it. */
#ifndef TANDEM_COMMON_BACKEND_CHOOSE_H
#define TANDEM_COMMON_BACKEND_CHOOSE_H

#include "common/backend/backend.h"

/* In the order of the choices of --backend. */
enum backend_choice { BACKEND_AUTO, BACKEND_CPU, BACKEND_CUDA };

/* BACKEND_AUTO is CUDA where this program has it and a device can be used, else the CPU. STATUS_USAGE, with a line that says why, when CUDA is
 * asked for and is not to be had. Local. */
enum status backend_choose(enum backend_choice choice, const struct backend **backend);
/* Warns where that was the CPU although there is a driver, or a device, and says why. For one rank of a host. Local. */
void backend_choose_warn(enum backend_choice choice, const struct backend *backend);

/* For plans of memory, on any host and in any build: the CUDA backend as far as what it takes, packs, bytes of a matrix, rows of a prompt, cache.
 * Nothing else of it is there. */
extern const struct backend backend_cuda_sizes;

/* The device of number `turn` of those that share some out, for backend_options: all that can be used or, where `list` is not NULL, those of
 * that list ("2,3"), in turns. 0 for the CPU. STATUS_USAGE, with a line, where the list has a device that is not visible. Local. */
enum status backend_choose_device(const struct backend *backend, const char *list, int turn, int *device);

#endif
