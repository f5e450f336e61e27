#include "common/base/trace.h"

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/plain_file.h"
#include "common/base/try.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static struct {
    struct arena arena;
    struct trace_span *span; /* NULL: there is no trace */
    int room, count;
    int64_t dropped;
    FILE *file;
    char path[PATH_MAX];
    int rank;
} trace;

static const char *const names[TRACE_PHASES] = {
    [TRACE_ROUND] = "round",   [TRACE_PREFILL] = "prefill", [TRACE_DRAFT] = "draft",
    [TRACE_PACK] = "pack",       [TRACE_WAIT] = "wait",     [TRACE_UNPACK] = "unpack",   [TRACE_ORDER] = "order",
    [TRACE_VERIFY] = "verify",   [TRACE_GATHER] = "gather", [TRACE_DECIDE] = "decide",   [TRACE_BROADCAST] = "broadcast",
    [TRACE_TRUNCATE] = "truncate", [TRACE_OUTPUT] = "output",
};

const char *trace_name(enum trace_phase phase)
{
    return names[phase];
}

int trace_phase_of(const char *name, int length)
{
    for (int i = 0; i < TRACE_PHASES; i++)
        if ((int)strlen(names[i]) == length && memcmp(names[i], name, (size_t)length) == 0)
            return i;
    return -1;
}

static enum status open_file(const char *folder, int rank)
{
    snprintf(trace.path, sizeof trace.path, "%.4000s/rank-%04d.csv", folder, rank);
    trace.rank = rank;
    trace.file = plain_file_write(trace.path);
    if (trace.file != NULL)
        return STATUS_OK;
    log_error("--trace: %s: %s", trace.path, plain_file_fault());
    return STATUS_IO;
}

enum status trace_open(int spans, const char *folder, int rank)
{
    size_t bytes = (size_t)spans * sizeof(struct trace_span);

    TRY(open_file(folder, rank));
    TRY(arena_open(&trace.arena, arena_round(bytes), "the trace"));
    trace.span = arena_take(&trace.arena, bytes);
    memset(trace.span, 0, bytes); /* touches all pages now, so that no page fault falls into a round */
    trace.room = spans;
    trace.count = 0;
    trace.dropped = 0;
    return STATUS_OK;
}

int64_t trace_begin(void)
{
    return trace.span != NULL ? clock_ns() : 0;
}

static int32_t narrow(int64_t value)
{
    return (int32_t)(value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value);
}

void trace_end(enum trace_phase phase, int64_t start_ns, uint32_t request, int length, int64_t a, int64_t b, int64_t c)
{
    if (trace.span == NULL || start_ns == 0)
        return;
    if (trace.count == trace.room) {
        trace.dropped++;
        return;
    }
    trace.span[trace.count++] = (struct trace_span){.start_ns = start_ns,
                                                    .end_ns = clock_ns(),
                                                    .phase = (int32_t)phase,
                                                    .request = request,
                                                    .length = length,
                                                    .value = {narrow(a), narrow(b), narrow(c)}};
}

static int write_spans(FILE *file)
{
    int written = fprintf(file, "%s\n", TRACE_COLUMNS);

    for (int i = 0; i < trace.count && written >= 0; i++) {
        const struct trace_span *span = &trace.span[i];

        written = fprintf(file, "%s,%lld,%lld,%u,%d,%d,%d,%d\n", names[span->phase], (long long)span->start_ns, (long long)span->end_ns,
                          span->request, span->length, span->value[0], span->value[1], span->value[2]);
    }
    return written;
}

enum status trace_write(const char *role, const char *host)
{
    FILE *file = trace.file;
    int written;

    if (trace.span == NULL)
        return STATUS_OK;
    trace.file = NULL;
    written = fprintf(file, "# rank %d\n# role %s\n# host %s\n# dropped %lld\n", trace.rank, role, host, (long long)trace.dropped);
    written = written < 0 ? written : write_spans(file);
    if (fclose(file) == 0 && written >= 0)
        return STATUS_OK;
    log_error("--trace: %s: %s", trace.path, strerror(errno));
    return STATUS_IO;
}

void trace_close(void)
{
    arena_close(&trace.arena);
    trace.span = NULL;
    if (trace.file != NULL)
        fclose(trace.file);
    trace.file = NULL;
}
