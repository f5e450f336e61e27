/* What a message changes: mirrors are opened, moved on and closed by messages alone. Only drafter.c calls. Never drafts or waits; a Heartbeat is
 * answered by one. */
#ifndef TANDEM_DRAFTER_DRAFTER_TAKE_H
#define TANDEM_DRAFTER_DRAFTER_TAKE_H

#include "drafter/drafter.h"

/* Takes a message of rank `peer`. One that is not the lead's, of another run, or cannot be read (refused: no frame at all) is counted and changes
 * nothing else. */
void drafter_take(struct drafter *drafter, int peer, struct frame frame, int refused);

#endif
