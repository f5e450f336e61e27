/* The roll call: every rank's Hello is gathered at start and compared, so that ranks that cannot work together report it before the first token. Owns
 * nothing; collective over all ranks, once. */
#ifndef TANDEM_COMMON_WIRE_ROLL_CALL_H
#define TANDEM_COMMON_WIRE_ROLL_CALL_H

#include "common/wire/message.h"
#include "common/world/world.h"

/* Collective over all ranks. Draws the run's id on world rank 0, fills mine->run, and gathers everybody's Hello.
 * all: [world->size]. STATUS_DATA on every rank when two disagree (protocol, vocabulary, special ids); the line, by world rank 0,
 * names both sides. From here on the ranks of this host are watched (world_is_gone). */
enum status roll_call(struct world *world, struct message_space *space, struct hello *mine, struct hello *all);
/* The model of the first drafter; NULL where there is none. */
const char *roll_call_draft(const struct hello *all, int ranks);

#endif
