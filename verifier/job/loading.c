#include "verifier/job/loading.h"

#include "common/base/clock.h"
#include "common/base/log.h"

#define GB 1e9
#define MB 1e6

void loading_begin(struct loading *loading, FILE *to, int bar)
{
    *loading = (struct loading){.line = {.to = to, .redrawn = bar, .clears_errors = bar}, .started_ns = clock_ns()};
    progress_line_begin(&loading->line, 0);
}

static double seconds_of(const struct loading *loading)
{
    return (double)(clock_ns() - loading->started_ns) / 1e9;
}

/* "reading shard 3 of 8, 12.4 of 17.6 GB, 1.2 GB/s" */
static void write_words(const void *state, FILE *to)
{
    const struct loading *loading = state;
    const struct model_reading *reading = &loading->reading;
    int large = (double)reading->total >= GB;
    double unit = large ? GB : MB, bytes = (double)reading->bytes / unit, seconds = seconds_of(loading), rate = seconds > 0 ? bytes / seconds : 0;
    const char *name = large ? "GB" : "MB";

    if (reading->files > 1)
        fprintf(to, "reading shard %d of %d, ", reading->file, reading->files);
    else
        fputs("reading the weights, ", to);
    fprintf(to, "%.1f of %.1f %s, %.*f %s/s", bytes, (double)reading->total / unit, name, rate < 10 ? 1 : 0, rate, name);
}

void loading_tell(void *state, const struct model_reading *reading)
{
    struct loading *loading = state;

    loading->reading = *reading;
    if (progress_line_is_due(&loading->line))
        progress_line_tell(&loading->line, write_words, loading);
}

void loading_end(struct loading *loading)
{
    double seconds = seconds_of(loading), bytes = (double)loading->reading.bytes / MB;

    progress_line_clear(&loading->line);
    if (loading->reading.files > 0)
        log_debug("%.1f MB of %d file%s were read in %.1f s, %.0f MB/s", bytes, loading->reading.files, loading->reading.files == 1 ? "" : "s",
                  seconds, seconds > 0 ? bytes / seconds : 0.0);
}
