/* Charts of where time goes and of messages. */
#include "launch/bench/report/charts.h"

#include "launch/bench/report/summary.h"
#include "launch/bench/report/svg.h"
#include "launch/bench/report/table.h"
#include <math.h>
#include <string.h>

enum { WIDE = 940, LABEL = 190, BAR = 20, MOST_SERIES = 8, MOST_SIZES = 64 };

/* The colours of a round, each of one phase or of two that are small. */
static const struct {
    const char *name;
    enum round_phase first, second;
    int colour;
} shown[] = {
    {"draft", ROUND_DRAFT, ROUND_DRAFT, 1},
    {"pack, truncate", ROUND_PACK, ROUND_TRUNCATE, 4},
    {"wire", ROUND_WIRE, ROUND_WIRE, 2},
    {"verify", ROUND_VERIFY, ROUND_VERIFY, 0},
    {"order, reduce", ROUND_ORDER, ROUND_REDUCE, 6},
    {"decide", ROUND_DECIDE, ROUND_DECIDE, 3},
    {"broadcast", ROUND_BROADCAST, ROUND_BROADCAST, 5},
    {"output, other", ROUND_OUTPUT, ROUND_OTHER, 7},
};
enum { SHOWN = sizeof shown / sizeof *shown };

static double shown_us(const struct measured *measured, int at)
{
    double us = measured->phase_us[shown[at].first];

    return shown[at].second != shown[at].first ? us + measured->phase_us[shown[at].second] : us;
}

void charts_round(const struct run *run, const struct measured_placement *all, FILE *to)
{
    double longest = 1;
    struct svg svg;

    for (int i = 0; i < run->cells; i++)
        longest = fmax(longest, all->cell[i].round_us);
    charts_begin(to, "whole", "Where a round's time goes",
                 "1:draft|4:pack, truncate|2:wire|0:verify|6:order, reduce|3:decide|5:broadcast|7:output, other", "bbbbbbbb");
    svg_open(&svg, to, WIDE, 12 + 44 + run->cells * BAR, "Mean time of a round by phase, for each cell");
    svg.left = LABEL;
    svg.right = 60;
    svg_span(&svg, 0, longest, 0, 1);
    svg_frame(&svg, "microseconds (mean over rounds; the lead's clock)", NULL, 0);
    for (int i = 0; i < run->cells; i++) {
        double top = svg.top + i * BAR, us = 0;
        char name[128];

        summary_name(&run->cell[i], name, sizeof name);
        svg_text(&svg, svg.left - 8, top + 14, SVG_END, "tick", name);
        for (int p = 0; p < SHOWN; p++) {
            double here = shown_us(&all->cell[i], p);
            char how[16], about[96];

            snprintf(how, sizeof how, "k%d", shown[p].colour);
            snprintf(about, sizeof about, "%s %.1f us", shown[p].name, here);
            svg_box(&svg, svg_x(&svg, us), top + 2, svg_x(&svg, us + here) - svg_x(&svg, us), BAR - 5, how, about);
            us += here;
        }
        snprintf(name, sizeof name, "%.0f", all->cell[i].round_us);
        svg_text(&svg, svg_x(&svg, us) + 5, top + 14, SVG_START, "tick", name);
    }
    svg_close(&svg);
    charts_end(to, "A round of several sequences verifies all of them in one step.");
}

/* At equal distances: each nine is as far as the one before. */
static const struct {
    double x;
    const char *name;
} percentiles[] = {{0.30, "p50"}, {1, "p90"}, {2, "p99"}, {3, "p99.9"}, {4, "largest"}};

static void draw_percentiles(const struct measured_placement *all, const int *cells, int count, FILE *to)
{
    double lowest = INFINITY, highest = 1e-6;
    struct svg svg;

    for (int i = 0; i < count; i++) {
        lowest = fmin(lowest, all->cell[cells[i]].arrival_ms[0]);
        highest = fmax(highest, all->cell[cells[i]].arrival_ms[4]);
    }
    svg_open(&svg, to, 460, 300, "Percentiles of the time from one arrival of tokens to the next");
    svg.log_y = 1;
    svg_span(&svg, 0, 4.2, pow(10, floor(log10(lowest))), pow(10, ceil(log10(highest))));
    svg_frame(&svg, NULL, "milliseconds", 0);
    svg_text(&svg, (svg.left + svg.width - svg.right) / 2, svg.height - 8, SVG_MIDDLE, "name", "percentile of arrivals");
    for (size_t p = 0; p < sizeof percentiles / sizeof *percentiles; p++)
        svg_text(&svg, svg_x(&svg, percentiles[p].x), svg.height - svg.bottom + 16, p == 4 ? SVG_END : SVG_MIDDLE, "tick", percentiles[p].name);
    for (int i = 0; i < count; i++) {
        double x[5];
        char how[8];

        for (int p = 0; p < 5; p++)
            x[p] = percentiles[p].x;
        snprintf(how, sizeof how, "k%d", i);
        svg_line(&svg, x, all->cell[cells[i]].arrival_ms, 5, how);
        svg_dots(&svg, x, all->cell[cells[i]].arrival_ms, 5, how);
    }
    svg_close(&svg);
}

void charts_latency(const struct run *run, const struct measured_placement *all, FILE *to)
{
    for (int b = 0; b < run->cells; b++) {
        int cells[MOST_SERIES], count = 0;
        char names[512] = "", name[128], title[160], terms[RUN_TERMS];
        size_t used = 0;

        if (!run->cell[b].solo || run->cell[b].sequences != 1)
            continue;
        for (int i = 0; i < run->cells && count < MOST_SERIES; i++) {
            const struct run_cell *cell = &run->cell[i];

            if (cell->baseline != b || all->cell[i].round.count == 0 ||
                (cell->draft_length > 0 && (cell->draft_length & (cell->draft_length - 1)) != 0))
                continue; /* of the draft lengths the powers of two: all would be too many lines */
            cells[count++] = i;
            snprintf(name, sizeof name, cell->solo ? "solo" : cell->draft_length < 0 ? "K auto" : "K %d", cell->draft_length);
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? "|" : "", name);
        }
        if (count == 0)
            continue;
        snprintf(title, sizeof title, "Time between arrivals of tokens, %s", run_terms(&run->cell[b], terms));
        charts_begin(to, "half", title, names, "");
        draw_percentiles(all, cells, count, to);
        charts_end(to, "");
    }
}

static double number(const json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key));
}

static int is_text(const json_t *row, const char *key, const char *wanted)
{
    const char *found = json_string_value(json_object_get(row, key));

    return found != NULL && strcmp(found, wanted) == 0;
}

/* Points of one series, by size. */
struct series {
    const char *name, *key, *value; /* the rows whose `key` is `value` */
    double support;                 /* and whose support this is; -1: any */
    double x[MOST_SIZES], y[MOST_SIZES];
    int count;
};

static void draw_sizes(const json_t *rows, struct series *series, int count, const char *size, const char *title, FILE *to)
{
    double low[2] = {INFINITY, INFINITY}, high[2] = {0, 0};
    char names[512] = "";
    size_t used = 0, at;
    const json_t *row;
    int drawn = 0;
    struct svg svg;

    for (int s = 0; s < count; s++) {
        json_array_foreach ((json_t *)(uintptr_t)rows, at, row) {
            double x = number(row, "bytes"), y = number(row, "avg_us");

            if (!is_text(row, series[s].key, series[s].value) || (series[s].support >= 0 && number(row, "support") != series[s].support) ||
                series[s].count == MOST_SIZES || x <= 0 || y <= 0)
                continue;
            series[s].x[series[s].count] = x;
            series[s].y[series[s].count++] = y;
            low[0] = fmin(low[0], x);
            low[1] = fmin(low[1], y);
            high[0] = fmax(high[0], x);
            high[1] = fmax(high[1], y);
        }
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", s > 0 ? "|" : "", series[s].name);
        drawn += series[s].count;
    }
    if (drawn == 0)
        return;
    charts_begin(to, size, title, names, "");
    svg_open(&svg, to, 460, 300, title);
    svg.log_x = svg.log_y = 1;
    svg_span(&svg, pow(10, floor(log10(low[0]))), pow(10, ceil(log10(high[0]))), pow(10, floor(log10(low[1]))), pow(10, ceil(log10(high[1]))));
    svg_frame(&svg, "bytes", "microseconds (mean)", 0);
    for (int s = 0; s < count; s++) {
        char how[8];

        snprintf(how, sizeof how, "k%d", s);
        svg_line(&svg, series[s].x, series[s].y, series[s].count, how);
        svg_dots(&svg, series[s].x, series[s].y, series[s].count, how);
    }
    svg_close(&svg);
    charts_end(to, "");
}

void charts_messages(const struct run_placement *placement, FILE *to)
{
    struct series messages[] = {{.name = "proposal, support 0", .key = "message", .value = "propose", .support = 0},
                                {.name = "support 16", .key = "message", .value = "propose", .support = 16},
                                {.name = "support 64", .key = "message", .value = "propose", .support = 64},
                                {.name = "support 256", .key = "message", .value = "propose", .support = 256},
                                {.name = "commit", .key = "message", .value = "commit", .support = -1}};
    struct series collectives[] = {{.name = "sum", .key = "operation", .value = "all_reduce", .support = -1},
                                   {.name = "broadcast", .key = "operation", .value = "broadcast", .support = -1},
                                   {.name = "gather", .key = "operation", .value = "gather", .support = -1}};

    if (placement->latency == NULL)
        return;
    draw_sizes(placement->latency, messages, 5, "half", "Message latency by size, one way, packing included", to);
    draw_sizes(placement->latency, collectives, 3, "half", "The group's operations by size", to);
}
