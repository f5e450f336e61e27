/* What ranks of other hosts get done. A rank that gets something done tells it to one rank of each other host, its ear, by an empty message, four
 * times a second at most; the ear counts them in the page of its host's doorbells, where all look who wait. An ear is a verifier where its host has
 * one, for a job outlives its drafters. A message that is on its way is not followed by another, so what nobody takes does not pile up.
 *
 * The messages leave and come by the main thread alone, as all of MPI: an ear that is at work takes them as it gets something done, which those
 * who wait on its host can see anyway. */
#ifndef TANDEM_COMMON_WORLD_PULSE_H
#define TANDEM_COMMON_WORLD_PULSE_H

#include "common/world/world.h"

/* Collective over all ranks, after the doorbells. */
enum status pulse_open(struct world *world);
/* Local, before the doorbells are closed. */
void pulse_close(struct world *world);
/* Local. Takes what has come, if this rank is an ear. */
void pulse_listen(const struct world *world);

#endif
