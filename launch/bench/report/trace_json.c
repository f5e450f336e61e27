#include "launch/bench/report/trace_json.h"

#include "launch/bench/report/summary.h"
#include <stdlib.h>
#include <string.h>

enum { SHOWN_ROUNDS = 40 /* of each cell: a whole run would be more than a browser likes */ };

/* What a span's three numbers are (common/base/trace.h); NULL: there is no such number. */
static const char *const value_names[TRACE_PHASES][3] = {
    [TRACE_ROUND] = {"sequences", "proposals", "drafted ahead"},
    [TRACE_PREFILL] = {"tokens"},
    [TRACE_DRAFT] = {"tokens asked for", "sequences"},
    [TRACE_PACK] = {"tokens", "bytes"},
    [TRACE_UNPACK] = {"tokens", "tokens drafted ahead", "bytes"},
    [TRACE_ORDER] = {"bytes"},
    [TRACE_VERIFY] = {"rows", "ns in sums"},
    [TRACE_GATHER] = {"bytes"},
    [TRACE_DECIDE] = {"sequences"},
    [TRACE_BROADCAST] = {"tokens", "drafted", "accepted"},
    [TRACE_TRUNCATE] = {"tokens"},
};

struct window {
    int64_t from, upto;
};

struct page {
    FILE *to;
    int events;
    int flows; /* their numbers */
    int64_t zero_ns;
    int first_pid; /* of this placement */
};

static double us_of(const struct page *page, int64_t ns)
{
    return (double)(ns - page->zero_ns) / 1000;
}

static void begin_event(struct page *page)
{
    fputs(page->events++ > 0 ? ",\n" : "\n", page->to);
}

static void write_text(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text != '\0'; text++)
        if (*text == '"' || *text == '\\')
            fprintf(to, "\\%c", *text);
        else if ((unsigned char)*text >= ' ' && (unsigned char)*text < 0x7f)
            fputc(*text, to);
    fputc('"', to);
}

static void write_process(struct page *page, const struct run_placement *placement, const struct run_rank *rank)
{
    char name[256];

    begin_event(page);
    snprintf(name, sizeof name, "%.40s: rank %d %s on %s (%.40s)", placement->name, rank->rank, rank->role, rank->host, rank->device);
    fprintf(page->to, "{\"ph\":\"M\",\"pid\":%d,\"tid\":1,\"name\":\"process_name\",\"args\":{\"name\":", page->first_pid + rank->rank);
    write_text(page->to, name);
    fputs("}}", page->to);
}

static void write_span(struct page *page, const struct run_rank *rank, const struct trace_span *span)
{
    begin_event(page);
    fprintf(page->to,
            "{\"ph\":\"X\",\"pid\":%d,\"tid\":1,\"name\":\"%s\",\"ts\":%.3f,\"dur\":%.3f,"
            "\"args\":{\"request\":%u,\"length\":%d",
            page->first_pid + rank->rank, trace_name((enum trace_phase)span->phase), us_of(page, span->start_ns),
            (double)(span->end_ns - span->start_ns) / 1000, span->request, span->length);
    for (int i = 0; i < 3 && value_names[span->phase][i] != NULL; i++)
        fprintf(page->to, ",\"%s\":%d", value_names[span->phase][i], span->value[i]);
    fputs("}}", page->to);
}

static void write_flow(struct page *page, const char *name, const struct run_rank *from, int64_t from_ns, const struct run_rank *to, int64_t to_ns)
{
    int flow = ++page->flows;

    begin_event(page);
    fprintf(page->to, "{\"ph\":\"s\",\"id\":%d,\"cat\":\"wire\",\"name\":\"%s\",\"pid\":%d,\"tid\":1,\"ts\":%.3f}", flow, name,
            page->first_pid + from->rank, us_of(page, from_ns));
    begin_event(page);
    fprintf(page->to, "{\"ph\":\"f\",\"bp\":\"e\",\"id\":%d,\"cat\":\"wire\",\"name\":\"%s\",\"pid\":%d,\"tid\":1,\"ts\":%.3f}", flow, name,
            page->first_pid + to->rank, us_of(page, to_ns));
}

/* An arrow belongs to the span that it begins or ends in, so not at an edge. */
static int64_t middle_of(const struct trace_span *span)
{
    return span->start_ns + (span->end_ns - span->start_ns) / 2;
}

static int is_shown(const struct window *windows, int count, const struct trace_span *span)
{
    for (int i = 0; i < count; i++)
        if (span->start_ns >= windows[i].from && span->end_ns <= windows[i].upto)
            return 1;
    return 0;
}

/* The first rounds of each cell's first repetition. */
static int list_windows(const struct run *run, const struct run_placement *placement, const struct rounds *rounds, struct window *windows)
{
    int count = 0;

    for (int cell = 0; cell < run->cells; cell++) {
        struct window window = {0, 0};
        int shown = 0;

        for (int i = 0; i < rounds->count && shown < (run->timeline_rounds > 0 ? run->timeline_rounds : SHOWN_ROUNDS); i++) {
            const struct round *round = &rounds->round[i];
            const struct run_pass *pass = &placement->pass[round->pass];

            if (pass->warm_up || pass->cell != cell || pass->repetition != 0)
                continue;
            window.from = shown++ == 0 ? round->start_ns - 1000000 : window.from; /* with what went before: the prompt */
            window.upto = round->start_ns + (int64_t)(round->us * 1000) + 1000;
        }
        if (shown > 0)
            windows[count++] = window;
    }
    return count;
}

static void write_proposal(struct page *page, const struct run_placement *placement, const struct window *windows, int count,
                           const struct trace_span *span)
{
    const struct run_rank *lead = &placement->rank[placement->lead];

    for (int r = 0; r < placement->ranks; r++) {
        const struct run_rank *rank = &placement->rank[r];
        int at;

        if (strcmp(rank->role, "drafter") != 0)
            continue;
        at = span->phase == TRACE_UNPACK ? rounds_find(rank, TRACE_PACK, span->request, span->length, span->end_ns, rank->clock_error_ns) : -1;
        if (at >= 0 && is_shown(windows, count, &rank->span[at]))
            write_flow(page, "proposal", rank, middle_of(&rank->span[at]), lead, middle_of(span));
    }
}

static void write_rank(struct page *page, const struct run_placement *placement, const struct run_rank *rank, const struct window *windows, int count)
{
    const struct run_rank *lead = &placement->rank[placement->lead];

    write_process(page, placement, rank);
    for (int i = 0; i < rank->spans; i++) {
        const struct trace_span *span = &rank->span[i];
        int commit;

        if (!is_shown(windows, count, span))
            continue;
        write_span(page, rank, span);
        if (rank == lead)
            write_proposal(page, placement, windows, count, span);
        if (span->phase != TRACE_TRUNCATE)
            continue;
        commit = rounds_find(lead, TRACE_BROADCAST, span->request, span->length, span->end_ns, rank->clock_error_ns);
        if (commit >= 0 && is_shown(windows, count, &lead->span[commit]))
            write_flow(page, "commit", lead, middle_of(&lead->span[commit]), rank, middle_of(span));
    }
}

/* A proposal is verified by the first step after it arrived, so an arrow on the lead's own track joins the two. */
static void write_verify_flows(struct page *page, const struct run_placement *placement, const struct window *windows, int count)
{
    const struct run_rank *lead = &placement->rank[placement->lead];
    int64_t arrived = 0;

    for (int i = 0; i < lead->spans; i++) {
        const struct trace_span *span = &lead->span[i];

        if (!is_shown(windows, count, span))
            continue;
        if (span->phase == TRACE_UNPACK)
            arrived = middle_of(span);
        if (span->phase == TRACE_VERIFY && arrived != 0) {
            write_flow(page, "verify", lead, arrived, lead, middle_of(span));
            arrived = 0;
        }
    }
}

void trace_json_write(const struct run *run, const struct measured_placement *all, FILE *to)
{
    struct page page = {.to = to, .first_pid = 1}; /* viewers take 0 for an idle processor */

    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", to);
    for (int p = 0; p < run->placements; p++) {
        const struct run_placement *placement = &run->placement[p];
        struct window *windows = calloc((size_t)run->cells, sizeof *windows);
        int count = windows != NULL ? list_windows(run, placement, &all[p].rounds, windows) : 0;

        page.zero_ns = count > 0 ? windows[0].from : 0;
        for (int i = 0; i < placement->ranks; i++)
            write_rank(&page, placement, &placement->rank[i], windows, count);
        write_verify_flows(&page, placement, windows, count);
        page.first_pid += placement->ranks;
        free(windows);
    }
    fputs("\n]}\n", to);
}
