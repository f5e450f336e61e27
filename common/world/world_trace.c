#include "common/world/world_trace.h"

#include "common/base/log.h"
#include "common/base/plain_file.h"
#include "common/base/trace.h"
#include "common/base/try.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum status measure(struct world *world, struct clock_offset **offsets)
{
    *offsets = calloc((size_t)world->size, sizeof **offsets);
    if (*offsets != NULL)
        return clock_offset_measure(world, *offsets);
    log_error("no memory for the clocks of %d ranks", world->size);
    return STATUS_INTERNAL;
}

enum status world_trace_open(const struct world *world, const char *folder, struct world_trace *trace)
{
    *trace = (struct world_trace){.folder = folder};
    return folder != NULL ? trace_open(WORLD_TRACE_SPANS, folder, world->rank) : STATUS_OK;
}

enum status world_trace_begin(struct world *world, struct world_trace *trace)
{
    return trace->folder != NULL ? measure(world, &trace->before) : STATUS_OK;
}

static int write_offsets(FILE *file, const char *when, const struct clock_offset *offsets, int ranks)
{
    int written = 0;

    for (int i = 0; i < ranks && written >= 0; i++)
        written = fprintf(file, "%s,%d,%d,%lld,%lld\n", when, i, offsets[i].measured, (long long)offsets[i].offset_ns,
                          (long long)offsets[i].round_trip_ns);
    return written;
}

static enum status write_clocks(const struct world *world, const struct world_trace *trace, const struct clock_offset *after)
{
    char path[PATH_MAX];
    FILE *file;
    int written;

    snprintf(path, sizeof path, "%.4000s/clocks.csv", trace->folder);
    file = plain_file_write(path);
    if (file == NULL) {
        log_error("--trace %s: %s: %s", trace->folder, path, plain_file_fault());
        return STATUS_IO;
    }
    written = fprintf(file, "when,rank,measured,offset_ns,round_trip_ns\n");
    written = written < 0 ? written : write_offsets(file, "before", trace->before, world->size);
    written = written < 0 ? written : write_offsets(file, "after", after, world->size);
    if (fclose(file) == 0 && written >= 0)
        return STATUS_OK;
    log_error("--trace %s: %s: %s", trace->folder, path, strerror(errno));
    return STATUS_IO;
}

enum status world_trace_end(struct world *world, struct world_trace *trace)
{
    struct clock_offset *after = NULL;
    enum status status;

    if (trace->folder == NULL)
        return STATUS_OK;
    TRY_TO(measure(world, &after), release);
    TRY_TO(trace_write(world->role == ROLE_DRAFTER ? "drafter" : world->rank == world->lead ? "lead" : "follower", world->host), release);
    if (world->rank == world->lead)
        status = write_clocks(world, trace, after);
release:
    free(after);
    free(trace->before);
    trace_close();
    *trace = (struct world_trace){0};
    return status;
}
