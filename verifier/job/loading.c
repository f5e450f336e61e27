#include "verifier/job/loading.h"

#include "common/base/clock.h"
#include "common/base/log.h"

#define CLEAR "\r\033[K"
#define FIRST_NS ((int64_t)1000000000)
#define REDRAW_NS ((int64_t)200 * 1000000)
#define LINE_NS ((int64_t)5 * 1000000000)
#define GB 1e9
#define MB 1e6

void loading_begin(struct loading *loading, FILE *to, int bar)
{
    int64_t now = clock_ns();

    *loading = (struct loading){.to = to, .bar = bar, .started_ns = now, .said_ns = now};
}

static double seconds_of(const struct loading *loading)
{
    return (double)(clock_ns() - loading->started_ns) / 1e9;
}

/* "reading shard 3 of 8, 12.4 of 17.6 GB, 1.2 GB/s" */
static void write_words(const struct model_reading *reading, double seconds, FILE *to)
{
    int large = (double)reading->total >= GB;
    double unit = large ? GB : MB, bytes = (double)reading->bytes / unit, rate = seconds > 0 ? bytes / seconds : 0;
    const char *name = large ? "GB" : "MB";

    if (reading->files > 1)
        fprintf(to, "reading shard %d of %d, ", reading->file, reading->files);
    else
        fputs("reading the weights, ", to);
    fprintf(to, "%.1f of %.1f %s, %.*f %s/s", bytes, (double)reading->total / unit, name, rate < 10 ? 1 : 0, rate, name);
}

static int is_due(const struct loading *loading)
{
    int64_t since = clock_ns() - loading->said_ns;

    return loading->to != NULL && since >= (!loading->bar ? LINE_NS : loading->stands ? REDRAW_NS : FIRST_NS);
}

void loading_tell(void *state, const struct model_reading *reading)
{
    struct loading *loading = state;

    loading->reading = *reading;
    if (!is_due(loading))
        return;
    loading->said_ns = clock_ns();
    loading->stands = loading->bar;
    fputs(loading->bar ? CLEAR : "", loading->to);
    write_words(reading, seconds_of(loading), loading->to);
    fputs(loading->bar ? "" : "\n", loading->to);
    fflush(loading->to);
}

void loading_end(struct loading *loading)
{
    double seconds = seconds_of(loading), bytes = (double)loading->reading.bytes / MB;

    if (loading->stands) {
        fputs(CLEAR, loading->to);
        fflush(loading->to);
    }
    loading->stands = 0;
    if (loading->reading.files > 0)
        log_debug("%.1f MB of %d file%s were read in %.1f s, %.3g MB/s", bytes, loading->reading.files, loading->reading.files == 1 ? "" : "s", seconds,
                  seconds > 0 ? bytes / seconds : 0.0);
}
