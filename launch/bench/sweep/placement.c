#include "launch/bench/sweep/placement.h"

#include "common/base/log.h"
#include <stdlib.h>
#include <string.h>

enum status placement_list(const struct options *run, struct placement *placements, int *count)
{
    int hosts = 0, slots = 0;
    const char *last = run->launch.hosts;

    placements[0] = (struct placement){.name = "same-node"};
    *count = 1;
    for (const char *at = run->launch.hosts; at != NULL && *at != '\0';) {
        size_t length = strcspn(at, ","), name = strcspn(at, ":,");

        hosts += hosts == 0 || name != strcspn(last, ":,") || strncmp(at, last, name) != 0;
        last = at;
        slots += at[name] == ':' ? atoi(at + name + 1) : 1;
        at += length + (at[length] == ',');
    }
    if (hosts <= 1)
        return STATUS_OK;
    if (slots < 2 || strcspn(last, ":,") >= PLACEMENT_HOST - 16) {
        log_error("--hosts is '%s', expected HOST[:SLOTS],... with a slot for each rank", run->launch.hosts);
        return STATUS_USAGE;
    }
    snprintf(placements[0].hosts, sizeof placements[0].hosts, "%.*s:%d", (int)strcspn(last, ":,"), last, slots);
    placements[1] = (struct placement){.name = "other-node"};
    *count = 2;
    return STATUS_OK;
}
