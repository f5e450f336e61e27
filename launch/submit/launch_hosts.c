#include "launch/submit/launch_hosts.h"

#include "common/base/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SLOTS = 1 << 20 };

static int name_length(const char *at)
{
    return (int)strcspn(at, ":,");
}

/* The slots of one mention; 0 where it is none. */
static int slots_of(const char *at)
{
    int name = name_length(at);
    char *end;
    long slots;

    if (name == 0 || name >= LAUNCH_HOSTS_NAME)
        return 0;
    if (at[name] != ':')
        return 1;
    if (at[name + 1] < '1' || at[name + 1] > '9')
        return 0;
    slots = strtol(at + name + 1, &end, 10);
    return (*end == ',' || *end == '\0') && slots <= MOST_SLOTS ? (int)slots : 0;
}

/* The next mention, or NULL. */
static const char *behind(const char *at)
{
    at += strcspn(at, ",");
    return *at == ',' ? at + 1 : NULL;
}

static int is_same(const char *a, const char *b)
{
    return name_length(a) == name_length(b) && strncmp(a, b, (size_t)name_length(a)) == 0;
}

/* One host alone may have them all: the line shows how that is written. */
static void say_too_few(const char *hosts, int slots, int drafters, int verifiers)
{
    char form[LAUNCH_HOSTS_NAME + 32] = "HOST:SLOTS,...";

    if (behind(hosts) == NULL)
        snprintf(form, sizeof form, "%.*s:%d", name_length(hosts), hosts, drafters + verifiers);
    log_error("--hosts is '%s' with %d slot%s, expected one for each of %d drafters and %d verifiers, as %s", hosts, slots, slots == 1 ? "" : "s",
              drafters, verifiers, form);
}

enum status launch_hosts_check(const struct options *options, int drafters, int verifiers)
{
    int slots = 0;

    for (const char *at = options->launch.hosts; at != NULL; at = behind(at)) {
        if (slots_of(at) == 0) {
            log_error("--hosts is '%s', expected HOST[:SLOTS],...", options->launch.hosts);
            return STATUS_USAGE;
        }
        slots += slots <= MOST_SLOTS ? slots_of(at) : 0;
    }
    if (options->launch.hosts == NULL || slots >= drafters + verifiers ||
        (options->launch.mpirun_options != NULL && strstr(options->launch.mpirun_options, "oversubscribe") != NULL))
        return STATUS_OK;
    say_too_few(options->launch.hosts, slots, drafters, verifiers);
    return STATUS_USAGE;
}

struct launch_share launch_hosts_next(struct launch_hosts *hosts, int most)
{
    struct launch_share share = {0};

    if (hosts->at == NULL)
        hosts->at = hosts->list;
    while (hosts->used == slots_of(hosts->at) && behind(hosts->at) != NULL)
        *hosts = (struct launch_hosts){.list = hosts->list, .at = behind(hosts->at)};
    share.name = hosts->at;
    share.length = name_length(hosts->at);
    for (;; hosts->at = behind(hosts->at), hosts->used = 0) { /* HOST,HOST is one host */
        int free = slots_of(hosts->at) - hosts->used, taken = free < most - share.ranks ? free : most - share.ranks;

        hosts->used += taken;
        share.ranks += taken;
        if (share.ranks == most || behind(hosts->at) == NULL || !is_same(behind(hosts->at), share.name))
            break;
    }
    if (behind(hosts->at) == NULL)
        share.ranks = most;
    for (const char *at = hosts->list; at != NULL; at = behind(at))
        share.slots += is_same(at, share.name) ? slots_of(at) : 0;
    return share;
}
