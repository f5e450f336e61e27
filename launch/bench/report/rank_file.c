#include "launch/bench/report/rank_file.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "launch/bench/report/text_file.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLOCK_COLUMNS "when,rank,measured,offset_ns,round_trip_ns"
#define DRIFT_NS     ((int64_t)2000000)    /* what clocks drift by between two measurements */
#define MOST_TRIP_NS ((int64_t)4000000000) /* ranks wait no longer for an answer */

static int is_within(long long n, long long least, long long most)
{
    return n >= least && n <= most;
}

/* Times that can be added and counts that can be summed up; what a commit brought is a list as long somewhere. */
static int is_possible(int phase, const long long n[7])
{
    long long most = phase == TRACE_BROADCAST ? RUN_MOST_DRAFT + 1 : INT32_MAX;
    int possible = is_within(n[0], 0, n[1]) && is_within(n[1], 0, RUN_MOST_NS) && is_within(n[2], 0, UINT32_MAX) && is_within(n[3], 0, INT32_MAX);

    for (int i = 4; i < 7; i++)
        possible &= is_within(n[i], 0, most);
    return possible;
}

static enum status add_span(const char *path, int line, char *text, struct run_rank *rank, int *room)
{
    struct trace_span span;
    char *at = strchr(text, ',');
    long long n[7];
    int numbers = 0;

    span.phase = at != NULL ? trace_phase_of(text, (int)(at - text)) : -1;
    while (numbers < 7 && at != NULL && *at == ',')
        n[numbers++] = strtoll(at + 1, &at, 10);
    if (span.phase < 0 || numbers < 7 || *at != '\0' || !is_possible(span.phase, n)) {
        log_error("%s:%d: no span, expected " TRACE_COLUMNS, path, line);
        return STATUS_DATA;
    }
    if (rank->spans == *room) {
        *room = *room > 0 ? 2 * *room : 1 << 14;
        struct trace_span *grown = realloc(rank->span, (size_t)*room * sizeof *grown);
        if (grown == NULL)
            return STATUS_INTERNAL;
        rank->span = grown;
    }
    span.start_ns = n[0];
    span.end_ns = n[1];
    span.request = (uint32_t)n[2];
    span.length = (int32_t)n[3];
    for (int i = 0; i < 3; i++)
        span.value[i] = (int32_t)n[4 + i];
    rank->span[rank->spans++] = span;
    return STATUS_OK;
}

static void read_head(const char *text, struct run_rank *rank)
{
    if (strncmp(text, "# role ", 7) == 0)
        snprintf(rank->role, sizeof rank->role, "%s", text + 7);
    else if (strncmp(text, "# host ", 7) == 0)
        snprintf(rank->host, sizeof rank->host, "%s", text + 7);
    else if (strncmp(text, "# dropped ", 10) == 0)
        rank->dropped = strtoll(text + 10, NULL, 10);
}

enum status rank_file_read(const char *path, struct run_rank *rank)
{
    char *text, *rest;
    size_t size;
    int room = 0;
    enum status status = STATUS_OK;

    TRY(text_file_read(path, &text, &size));
    if (size > 0 && text[size - 1] != '\n') { /* its last number may have lost digits */
        log_error("%s: it ends within a line, expected a whole file", path);
        status = STATUS_DATA;
    }
    rest = text;
    for (int number = 1; status == STATUS_OK && rest != NULL; number++) {
        char *line = strsep(&rest, "\n");

        if (*line == '#')
            read_head(line, rank);
        else if (*line != '\0' && strcmp(line, TRACE_COLUMNS) != 0)
            status = add_span(path, number, line, rank, &room);
    }
    free(text);
    return status;
}

static enum status take_offset(const char *line, struct run_placement *placement)
{
    long long offset, round_trip;
    int rank, measured, after;
    char when[8];

    if (sscanf(line, "%7[a-z],%d,%d,%lld,%lld", when, &rank, &measured, &offset, &round_trip) != 5 || !is_within(rank, 0, placement->ranks - 1) ||
        !is_within(offset, -RUN_MOST_NS, RUN_MOST_NS) || !is_within(round_trip, 0, RUN_MOST_NS))
        return STATUS_DATA;
    after = strcmp(when, "after") == 0;
    placement->rank[rank].measured[after] = measured;
    placement->rank[rank].offset_ns[after] = offset;
    placement->rank[rank].round_trip_ns[after] = round_trip;
    return STATUS_OK;
}

static enum status read_offsets(struct run_placement *placement)
{
    char path[PATH_MAX], *text, *rest;
    enum status status = STATUS_OK;
    int lines = 0;
    size_t size;

    snprintf(path, sizeof path, "%.4000s/clocks.csv", placement->folder);
    if (access(path, F_OK) != 0) { /* a bench writes it when all is measured */
        log_error("%s was not measured to its end, so there is nothing to report: tandem bench measures it anew", placement->folder);
        return STATUS_NOINPUT;
    }
    TRY(text_file_read(path, &text, &size));
    rest = text;
    (void)strsep(&rest, "\n"); /* what the columns are */
    while (status == STATUS_OK && rest != NULL && *rest != '\0') {
        char *line = strsep(&rest, "\n");

        status = rest != NULL ? take_offset(line, placement) : STATUS_DATA;
        lines += status == STATUS_OK;
    }
    if (status == STATUS_OK && lines != 2 * placement->ranks)
        status = STATUS_DATA;
    if (status == STATUS_DATA)
        log_error("%s:%d: expected " CLOCK_COLUMNS ", %d whole lines before and as many after", path, lines + 2, placement->ranks);
    free(text);
    return status;
}

/* An offset is right to half of the round trip that it was taken from, which is milliseconds on a busy machine; clocks drift in between. */
static int64_t clock_error(const struct run_rank *rank)
{
    int64_t trip = 0;

    for (int i = 0; i < 2; i++)
        if (rank->measured[i] && rank->round_trip_ns[i] > trip)
            trip = rank->round_trip_ns[i];
    return (trip < MOST_TRIP_NS ? trip : MOST_TRIP_NS) / 2 + DRIFT_NS;
}

/* Times of all ranks become the lead's. Ranks of its host read its clock; of others the offset is what was measured before and after, and in
 * between it is taken to move evenly. */
static void adjust_clock(const struct run_placement *placement, struct run_rank *rank)
{
    const struct run_rank *lead = &placement->rank[placement->lead];
    int64_t from, upto;

    if (rank->spans == 0 || !rank->measured[0] || strcmp(rank->host, lead->host) == 0)
        return;
    rank->clock_error_ns = clock_error(rank);
    from = rank->span[0].start_ns;
    upto = rank->span[rank->spans - 1].end_ns;
    for (int i = 0; i < rank->spans; i++) {
        double share = upto > from ? (double)(rank->span[i].start_ns - from) / (double)(upto - from) : 0;
        int64_t drift = rank->measured[1] ? (int64_t)(share * (double)(rank->offset_ns[1] - rank->offset_ns[0])) : 0;

        rank->span[i].start_ns -= rank->offset_ns[0] + drift;
        rank->span[i].end_ns -= rank->offset_ns[0] + drift;
    }
}

/* A rank whose trace is full keeps nothing of what follows: passes count as far as all ranks tell of them. */
static void mark_traced(struct run_placement *placement)
{
    int64_t upto = INT64_MAX;

    for (int i = 0; i < placement->ranks; i++) {
        const struct run_rank *rank = &placement->rank[i];

        if (rank->dropped > 0 && rank->spans > 0 && rank->span[rank->spans - 1].end_ns < upto)
            upto = rank->span[rank->spans - 1].end_ns;
    }
    for (int i = 0; i < placement->passes; i++)
        placement->pass[i].traced = placement->pass[i].start_ns + placement->pass[i].wall_ns <= upto;
}

enum status rank_file_read_clocks(struct run_placement *placement)
{
    TRY(read_offsets(placement));
    for (int i = 0; i < placement->ranks; i++)
        adjust_clock(placement, &placement->rank[i]);
    mark_traced(placement);
    return STATUS_OK;
}
