/* Some rounds of all ranks in time, as the paper's figure 5 has them: the target alone and with drafts, on one axis. */
#include "launch/bench/report/charts.h"

#include "launch/bench/report/summary.h"
#include "launch/bench/report/svg.h"
#include <string.h>

enum { WIDE = 940, TIMELINE_ROUNDS = 4, LANE = 46 };

static int colour_of(enum trace_phase phase)
{
    switch (phase) {
    case TRACE_DRAFT:
    case TRACE_PREFILL:
        return 1;
    case TRACE_PACK:
    case TRACE_UNPACK:
    case TRACE_TRUNCATE:
        return 4;
    case TRACE_VERIFY:
        return 0;
    case TRACE_ORDER:
    case TRACE_GATHER:
        return 6;
    case TRACE_DECIDE:
        return 3;
    case TRACE_BROADCAST:
        return 5;
    case TRACE_OUTPUT:
        return 7;
    default:
        return -1; /* waits, and rounds as a whole, are the ground */
    }
}

static void draw_lane(const struct svg *svg, const struct run_rank *rank, int lane, int64_t from, int64_t upto)
{
    double top = svg->top + lane * LANE;
    char text[128];

    snprintf(text, sizeof text, "rank %d %s", rank->rank, rank->role);
    svg_text(svg, svg->left - 8, top + LANE / 2.0 + 4, SVG_END, "tick", text);
    svg_box(svg, svg->left, top + 8, svg->width - svg->left - svg->right, LANE - 16, "ground", "idle");
    for (int i = 0; i < rank->spans; i++) {
        const struct trace_span *span = &rank->span[i];
        int colour = colour_of((enum trace_phase)span->phase);
        double left, right;
        char how[16];

        if (colour < 0 || span->end_ns < from || span->start_ns > upto)
            continue;
        left = svg_x(svg, (double)(span->start_ns < from ? 0 : span->start_ns - from) / 1000);
        right = svg_x(svg, (double)((span->end_ns > upto ? upto : span->end_ns) - from) / 1000);
        snprintf(how, sizeof how, "k%d", colour);
        snprintf(text, sizeof text, "%s %.1f us", trace_name((enum trace_phase)span->phase), (double)(span->end_ns - span->start_ns) / 1000);
        svg_box(svg, left, top + 8, right - left > 0.7 ? right - left : 0.7, LANE - 16, how, text);
    }
}

/* What was sent between the lead and a drafter: proposals as they arrived, and commits as they were taken up. */
static void draw_flows(const struct svg *svg, const struct run_placement *placement, int drafter, int64_t from, int64_t upto)
{
    const struct run_rank *lead = &placement->rank[placement->lead], *rank = &placement->rank[drafter];
    double lower = svg->top + placement->lead * LANE + (drafter < placement->lead ? 8 : LANE - 8);
    double upper = svg->top + drafter * LANE + (drafter < placement->lead ? LANE - 8 : 8);

    for (int i = 0; i < lead->spans; i++) {
        const struct trace_span *span = &lead->span[i];
        int pack;

        if (span->phase != TRACE_UNPACK || span->start_ns < from || span->end_ns > upto)
            continue;
        pack = rounds_find(rank, TRACE_PACK, span->request, span->length, span->end_ns, rank->clock_error_ns);
        if (pack >= 0 && rank->span[pack].end_ns >= from)
            svg_arrow(svg, svg_x(svg, (double)(rank->span[pack].end_ns - from) / 1000), upper, svg_x(svg, (double)(span->start_ns - from) / 1000),
                      lower, "flow");
    }
    for (int i = 0; i < rank->spans; i++) {
        const struct trace_span *span = &rank->span[i];
        int commit;

        if (span->phase != TRACE_TRUNCATE || span->start_ns < from || span->end_ns > upto)
            continue;
        commit = rounds_find(lead, TRACE_BROADCAST, span->request, span->length, span->end_ns, rank->clock_error_ns);
        if (commit >= 0 && lead->span[commit].end_ns >= from)
            svg_arrow(svg, svg_x(svg, (double)(lead->span[commit].start_ns - from) / 1000), lower, svg_x(svg, (double)(span->start_ns - from) / 1000),
                      upper, "flow");
    }
}

/* Some rounds in the middle of a pass of the cell: its usual ones. */
static int find_rounds(const struct run_placement *placement, const struct rounds *rounds, int cell)
{
    for (int i = 0; i + TIMELINE_ROUNDS < rounds->count; i++)
        if (!placement->pass[rounds->round[i].pass].warm_up && placement->pass[rounds->round[i].pass].cell == cell) {
            int at = i + 20;

            while (at + TIMELINE_ROUNDS < rounds->count &&
                   rounds->round[at].opens + rounds->round[at + 1].opens + rounds->round[at + 2].opens + rounds->round[at + 3].opens > 0)
                at++;
            return at + TIMELINE_ROUNDS < rounds->count && rounds->round[at + TIMELINE_ROUNDS].pass == rounds->round[i].pass ? at : i;
        }
    return -1;
}

/* How long the rounds of a cell's picture take; 0: there is none. */
static int64_t long_ns(const struct run_placement *placement, const struct rounds *rounds, int cell)
{
    int at = find_rounds(placement, rounds, cell);

    return at >= 0 ? rounds->round[at + TIMELINE_ROUNDS].start_ns - rounds->round[at].start_ns : 0;
}

/* Rounds of the same pass that begin before `upto`. */
static int rounds_until(const struct rounds *rounds, int at, int64_t upto)
{
    int count = 0;

    while (at + count < rounds->count && rounds->round[at + count].start_ns < upto && rounds->round[at + count].pass == rounds->round[at].pass)
        count++;
    return count;
}

/* wide_ns: the axis, which all pictures share */
static void draw_timeline(const struct run *run, const struct run_placement *placement, const struct rounds *rounds, int cell, int64_t wide_ns,
                          FILE *to)
{
    int at = find_rounds(placement, rounds, cell), solo = run->cell[cell].solo, count;
    char title[192], name[128];
    int64_t from, upto;
    struct svg svg;

    if (at < 0)
        return;
    from = rounds->round[at].start_ns;
    upto = from + wide_ns;
    count = rounds_until(rounds, at, upto);
    summary_name(&run->cell[cell], name, sizeof name);
    snprintf(title, sizeof title, "%d rounds in time, %s", count, name);
    charts_begin(to, "whole", title, "1:draft, prompt|4:pack, unpack, truncate|0:verify|6:order, gather|3:decide|5:broadcast|7:output", "bbbbbbb");
    svg_open(&svg, to, WIDE, 12 + 44 + placement->ranks * LANE, title);
    svg.left = 120;
    svg_span(&svg, 0, (double)(upto - from) / 1000, 0, 1);
    svg_frame(&svg, "microseconds of the lead's clock", NULL, 0);
    for (int i = 0; i < placement->ranks; i++)
        draw_lane(&svg, &placement->rank[i], i, from, upto);
    for (int i = 0; i < placement->ranks && !solo; i++)
        if (strcmp(placement->rank[i].role, "drafter") == 0)
            draw_flows(&svg, placement, i, from, upto);
    for (int i = 0; i < count; i++) {
        const struct round *round = &rounds->round[at + i];
        char text[64];

        if (round->start_ns + (int64_t)(500 * round->us) > upto)
            continue; /* its middle, where the words stand, is outside */
        if (solo)
            snprintf(text, sizeof text, "%d token", round->tokens);
        else
            snprintf(text, sizeof text, "%d token%s: %d of %d drafts", round->tokens, round->tokens == 1 ? "" : "s", round->accepted, round->drafted);
        svg_text(&svg, svg_x(&svg, ((double)(round->start_ns - from) / 1000) + round->us / 2), svg.top - 1, SVG_MIDDLE, "small", text);
    }
    svg_close(&svg);
    charts_end(to, "");
}

/* The target alone, and four drafts a round, under the first terms. */
static int is_drawn(const struct run *run, int cell)
{
    return run->cell[cell].temperature == run->cell[0].temperature && run->cell[cell].sequences == 1 &&
           (run->cell[cell].draft_length == 4 || (run->cell[cell].solo && cell == 0));
}

void charts_timeline(const struct run *run, const struct run_placement *placement, const struct measured_placement *all, FILE *to)
{
    int64_t wide_ns = 0;

    for (int i = 0; i < run->cells; i++)
        if (is_drawn(run, i) && long_ns(placement, &all->rounds, i) > wide_ns)
            wide_ns = long_ns(placement, &all->rounds, i);
    for (int i = 0; i < run->cells; i++)
        if (is_drawn(run, i))
            draw_timeline(run, placement, &all->rounds, i, wide_ns, to);
}
