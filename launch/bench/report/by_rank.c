#include "launch/bench/report/by_rank.h"

#include "common/base/try.h"
#include <stdlib.h>

/* Spans that no later one has taken in yet, and what they take: a stack, because spans nest and come in the order of their ends. */
struct open_span {
    int64_t start_ns, end_ns;
};

static double us_of(int64_t ns)
{
    return (double)ns / 1000;
}

static void add(const struct trace_span *span, int64_t own_ns, struct by_rank *sums)
{
    int64_t reduce = span->phase == TRACE_VERIFY ? span->value[1] : 0;

    sums->us[span->phase] += us_of(own_ns - reduce);
    sums->reduce_us += us_of(reduce);
}

/* The spans of one pass. stack: room for all of them. */
static void add_pass(const struct run_rank *rank, int *at, int64_t from, int64_t upto, struct open_span *stack, struct by_rank *sums)
{
    int depth = 0;
    int64_t known = 0;

    while (*at < rank->spans && rank->span[*at].end_ns < from)
        (*at)++;
    for (; *at < rank->spans && rank->span[*at].end_ns <= upto; (*at)++) {
        const struct trace_span *span = &rank->span[*at];
        int64_t start = span->start_ns > from ? span->start_ns : from, own = span->end_ns - start; /* a wait may have begun in the pass before */

        while (depth > 0 && stack[depth - 1].start_ns >= start) {
            depth--;
            own -= stack[depth].end_ns - stack[depth].start_ns;
        }
        add(span, own, sums);
        stack[depth++] = (struct open_span){start, span->end_ns};
    }
    for (int i = 0; i < depth; i++)
        known += stack[i].end_ns - stack[i].start_ns;
    sums->idle_us += us_of(upto - from - known);
}

enum status by_rank_sum(const struct run_placement *placement, const struct run_rank *rank, int cell, double steps, struct by_rank *means)
{
    struct open_span *stack = calloc((size_t)rank->spans + 1, sizeof *stack);
    struct by_rank sums = {.idle_us = 0};
    int at = 0;

    if (stack == NULL)
        return STATUS_INTERNAL;
    for (int i = 0; i < placement->passes; i++) {
        const struct run_pass *pass = &placement->pass[i];

        if (measured_counts(pass) && pass->cell == cell)
            add_pass(rank, &at, pass->start_ns, pass->start_ns + pass->wall_ns, stack, &sums);
    }
    free(stack);
    sums.idle_us += sums.us[TRACE_WAIT];
    sums.us[TRACE_WAIT] = 0;
    for (int p = 0; p < TRACE_PHASES && steps > 0; p++)
        means->us[p] = sums.us[p] / steps;
    means->reduce_us = steps > 0 ? sums.reduce_us / steps : 0;
    means->idle_us = steps > 0 ? sums.idle_us / steps : 0;
    return STATUS_OK;
}
