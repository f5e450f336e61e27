/* What must hold in every schedule. The lead's calls of verify_round and output_add pass through here (the linker wraps them), so that each is seen
 * with the lead's own state. */
#ifndef TANDEM_TESTS_SIMULATION_ORACLE_H
#define TANDEM_TESTS_SIMULATION_ORACLE_H

#include "tests/simulation/simulation.h"

/* Whose lead runs from here on. */
void oracle_watch(struct simulation *simulation);
/* Whether a frame that comes is one that its receiver has to refuse and count, by the table of proto/README.md. */
int oracle_must_be_refused(const struct simulation *simulation, int from, int to, struct frame frame);
/* After new requests were given drafters: none has a lost one where another was to be had. */
void oracle_check_admission(const struct simulation *simulation);
/* Faults have stopped. A drafter whose messages come in time from here on is not lost any more: what it missed costs one proposal. */
void oracle_note_losses(struct simulation *simulation);
/* After a drafter's turn. Each mirror's cache holds what the mirror says; without damaged frames a mirror is a beginning of the truth. */
void oracle_check_mirrors(const struct simulation *simulation, const struct actor *actor);
/* All requests are over. Where nothing went wrong a drafter knows it. */
void oracle_check_mirrors_at_end(const struct simulation *simulation, const struct actor *actor);
/* After a round. The target's caches hold all committed tokens but the newest; the round had an end in time. */
void oracle_check_round(const struct simulation *simulation);
/* After the run. Each request has one result, that of solo; what was counted agrees with what was done to the frames. */
void oracle_check_end(const struct simulation *simulation);

#endif
