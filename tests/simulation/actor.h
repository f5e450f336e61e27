/* A drafter's process as the scheduler sees it: when its next turn or mishap comes, and what it does then. */
#ifndef TANDEM_TESTS_SIMULATION_ACTOR_H
#define TANDEM_TESTS_SIMULATION_ACTOR_H

#include "tests/simulation/simulation.h"

void actor_open(struct simulation *simulation, int number);
void actor_close(struct actor *actor);
/* When it acts next; INT64_MAX: nothing is ahead of it. */
int64_t actor_next_ns(const struct actor *actor);
/* What it does at that time, which is now. */
void actor_act(struct actor *actor);
/* Draws what befalls it in the round that begins. */
void actor_draw_incident(struct actor *actor);
/* From now on nothing befalls it: it lives, at its usual speed. */
void actor_settle(struct actor *actor);

#endif
