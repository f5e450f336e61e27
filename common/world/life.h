/* Which ranks' processes have ended, as the kernel of this host tells it. Only world.c opens and closes it; world_watch and world_is_gone
 * are its use. */
#ifndef TANDEM_COMMON_WORLD_LIFE_H
#define TANDEM_COMMON_WORLD_LIFE_H

#include "common/world/world.h"

/* Local. */
enum status life_open(struct world *world);
void life_close(struct world *world);

#endif
