/* tandem-latency-drafter, tandem-latency-verifier: how long messages of rounds and the group's operations take between the ranks of a job, without
 * any model, so that network and engine can be told apart. Started as the ranks of a run are; the options are the same. */
#include "common/base/log.h"
#include "common/base/try.h"
#include "common/world/watchdog.h"
#include "launch/bench/latency/latency.h"
#include "launch/bench/report/statistics.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifndef LATENCY_ROLE
#define LATENCY_ROLE ROLE_VERIFIER
#endif

struct latency_times latency_times_of(double *us, int count)
{
    struct statistics times = {.value = us, .count = count};

    statistics_sort(&times);
    return (struct latency_times){.avg = statistics_mean(&times), .p50 = statistics_quantile(&times, 0.5), .p99 = statistics_quantile(&times, 0.99),
                                  .min = us[0]};
}

static enum status open_files(struct latency *latency)
{
    const char *path = latency->options->report.stats;

    if (latency->world.rank != latency->world.lead)
        return STATUS_OK;
    latency->text = stdout;
    fprintf(stdout, "# tandem %s, %d drafters, %d verifiers, the lead on %s\n", options_version(), latency->world.drafters, latency->world.verifiers,
            latency->world.host);
    if (path == NULL)
        return STATUS_OK;
    latency->json = fopen(path, "w");
    if (latency->json != NULL)
        return STATUS_OK;
    log_error("--stats %s: %s", path, strerror(errno));
    return STATUS_IO;
}

static enum status close_files(struct latency *latency, enum status status)
{
    int failed = latency->text != NULL && (fflush(latency->text) != 0 || ferror(latency->text));

    if (latency->json != NULL)
        failed |= fclose(latency->json) != 0;
    if (!failed || status != STATUS_OK)
        return status;
    log_error("the figures cannot be written: %s", strerror(errno));
    return STATUS_IO;
}

static enum status measure(struct latency *latency)
{
    struct world *world = &latency->world;
    int talks = world->drafters > 0 && (world->rank == world->lead || world->rank == world->drafter_rank[0]);
    enum status status;

    TRY(world_agree(world, world->verifiers > 0 ? STATUS_OK : STATUS_USAGE));
    TRY(message_space_open(&latency->space));
    TRY(channel_open_mpi(world, &latency->channel));
    status = world_agree(world, open_files(latency));
    if (status == STATUS_OK && talks)
        status = latency_messages(latency);
    if (status != STATUS_OK)
        return status;
    if (world->role == ROLE_VERIFIER)
        status = latency_collectives(latency);
    return close_files(latency, status);
}

int main(int argc, char **argv)
{
    struct options options = {0};
    struct latency latency = {.options = &options};
    enum status status, parsed = options_parse(argc, argv, &options);

    if (parsed != STATUS_OK && !world_is_launched())
        return (int)parsed;
    status = watchdog_open(options.limits.watchdog_s);
    if (status == STATUS_OK)
        status = world_open(&argc, &argv, LATENCY_ROLE, &latency.world);
    if (status != STATUS_OK)
        world_abort(status);
    log_init(LATENCY_ROLE == ROLE_DRAFTER ? "tandem-latency-drafter" : "tandem-latency-verifier", LOG_INFO);
    status = world_agree(&latency.world, parsed);
    if (status == STATUS_OK)
        status = measure(&latency);
    if (status != STATUS_OK)
        world_abort(status); /* the others may wait for this rank */
    channel_close(latency.channel);
    message_space_close(latency.space);
    world_close(&latency.world, status);
    watchdog_close();
    options_release(&options);
    return (int)status;
}
