/* A pidfd becomes readable when its process ends, before anybody has reaped it, and it never means another process. */
#include "common/world/life.h"

#include "common/base/log.h"
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum status life_open(struct world *world)
{
    world->life = malloc((size_t)world->size * sizeof *world->life);
    if (world->life == NULL) {
        log_error("no memory to watch %d ranks", world->size);
        return STATUS_INTERNAL;
    }
    for (int i = 0; i < world->size; i++)
        world->life[i] = -1;
    return STATUS_OK;
}

void life_close(struct world *world)
{
    for (int i = 0; i < world->size; i++)
        if (world->life[i] >= 0)
            close(world->life[i]);
    free(world->life);
    world->life = NULL;
}

void world_watch(struct world *world, int rank, const char *host, uint32_t pid)
{
    if (world->life[rank] < 0 && strcmp(host, world->host) == 0)
        world->life[rank] = (int)syscall(SYS_pidfd_open, (int)pid, 0);
}

int world_is_gone(const struct world *world, int rank)
{
    struct pollfd end = {.fd = world->life[rank], .events = POLLIN};

    return end.fd >= 0 && poll(&end, 1, 0) == 1;
}
