/* Charts of speed; those of theory are in charts_theory.c, of time and messages in charts_time.c. */
#include "launch/bench/report/charts.h"

#include "launch/bench/report/summary.h"
#include "launch/bench/report/svg.h"
#include "launch/bench/report/table.h"
#include <math.h>
#include <string.h>

enum { CHART_WIDTH = 460, CHART_HEIGHT = 300, MOST_LENGTHS = 64 };

void charts_begin(FILE *to, const char *size, const char *title, const char *names, const char *how)
{
    int at = 0;

    fprintf(to, "<figure class=\"%s\"><figcaption>", size);
    table_escape(to, title);
    fputs("</figcaption>\n<div class=\"legend\">", to);
    for (const char *name = names; *name != '\0'; at++) {
        size_t length = strcspn(name, "|");
        int coloured = length > 2 && name[1] == ':';
        char text[96], kind = how[0] != '\0' && strlen(how) > (size_t)at ? how[at] : '-';

        snprintf(text, sizeof text, "%.*s", (int)length - (coloured ? 2 : 0), name + (coloured ? 2 : 0));
        fprintf(to, "<span><i class=\"key k%d%s\"></i>", coloured ? name[0] - '0' : at,
                kind == 'd' ? " dashed" : kind == 't' ? " dotted" : kind == 'b' ? " block" : "");
        table_escape(to, text);
        fputs("</span>", to);
        name += length + (name[length] == '|');
    }
    fputs("</div>\n", to);
}

void charts_end(FILE *to, const char *below)
{
    if (below[0] != '\0') {
        fputs("<p class=\"below\">", to);
        table_escape(to, below);
        fputs("</p>", to);
    }
    fputs("</figure>\n", to);
}

/* The cells of a group with fixed lengths, by draft length. */
static int list_lengths(const struct run *run, const struct measured_placement *all, int baseline, int cells[MOST_LENGTHS])
{
    int count = 0;

    for (int length = 1; length <= RUN_MOST_DRAFT; length++)
        for (int i = 0; i < run->cells && count < MOST_LENGTHS; i++)
            if (run->cell[i].baseline == baseline && !run->cell[i].solo && run->cell[i].draft_length == length && all->cell[i].repetitions > 0)
                cells[count++] = i;
    return count;
}

static int find_auto(const struct run *run, int baseline)
{
    for (int i = 0; i < run->cells; i++)
        if (run->cell[i].baseline == baseline && !run->cell[i].solo && run->cell[i].draft_length < 0)
            return i;
    return -1;
}

/* One scale for all groups, so that they can be compared. */
static double highest_speedup(const struct run *run, const struct measured_placement *all)
{
    double highest = 1;

    for (int i = 0; i < run->cells; i++) {
        const struct measured *f = &all->cell[i];

        if (run->cell[i].solo || run->cell[i].sequences > 1)
            continue;
        highest = fmax(highest, fmax(f->speedup * (1 + f->speedup_spread), fmax(f->improvement, f->improvement_measured)));
    }
    return 1.08 * highest;
}

static void draw_speedup(const struct run *run, const struct measured_placement *all, int baseline, const int *cells, int count, FILE *to)
{
    double length[MOST_LENGTHS], measured[MOST_LENGTHS], theorem[MOST_LENGTHS], with[MOST_LENGTHS];
    int chosen = find_auto(run, baseline);
    double longest = run->cell[cells[count - 1]].draft_length + 0.5;
    struct svg svg;

    for (int i = 0; i < count; i++) {
        const struct measured *f = &all->cell[cells[i]];

        length[i] = run->cell[cells[i]].draft_length;
        measured[i] = f->speedup;
        theorem[i] = f->improvement > 0 ? f->improvement : NAN;
        with[i] = f->improvement_measured > 0 ? f->improvement_measured : NAN;
    }
    svg_open(&svg, to, CHART_WIDTH, CHART_HEIGHT, "Speedup against draft length, measured and predicted");
    svg_span(&svg, 0, longest, 0, highest_speedup(run, all));
    svg_frame(&svg, "draft length K (tokens)", "speedup over solo (x)", 1);
    svg_line(&svg, (double[]){0, longest}, (double[]){1, 1}, 2, "even");
    svg_line(&svg, length, theorem, count, "k1 dotted");
    svg_line(&svg, length, with, count, "k2 dashed");
    svg_line(&svg, length, measured, count, "k0");
    for (int i = 0; i < count; i++)
        svg_error(&svg, length[i], measured[i], measured[i] * all->cell[cells[i]].speedup_spread, "k0");
    if (chosen >= 0) {
        double y = all->cell[chosen].speedup;

        svg_line(&svg, (double[]){0, longest}, (double[]){y, y}, 2, "k3 thin");
    }
    svg_close(&svg);
}

void charts_speedup(const struct run *run, const struct measured_placement *all, FILE *to)
{
    for (int b = 0; b < run->cells; b++) {
        int cells[MOST_LENGTHS], count = run->cell[b].solo && run->cell[b].sequences == 1 ? list_lengths(run, all, b, cells) : 0;
        char title[192], terms[RUN_TERMS];

        if (count < 2)
            continue;
        snprintf(title, sizeof title, "Speedup against draft length, %s", run_terms(&run->cell[b], terms));
        charts_begin(to, "half", title,
                     find_auto(run, b) >= 0 ? "measured|theorem 3.8|with v and wire|chosen by the lead (auto)"
                                            : "measured|theorem 3.8|with v and wire",
                     "-td-");
        draw_speedup(run, all, b, cells, count, to);
        charts_end(to, "");
    }
}

void charts_acceptance(const struct run *run, const struct measured_placement *all, FILE *to)
{
    for (int b = 0; b < run->cells; b++) {
        int cells[MOST_LENGTHS], count = run->cell[b].solo && run->cell[b].sequences == 1 ? list_lengths(run, all, b, cells) : 0;
        const struct measured *f = count > 0 ? &all->cell[cells[count - 1]] : NULL;
        double place[RUN_MOST_DRAFT], whole[RUN_MOST_DRAFT], theory[RUN_MOST_DRAFT];
        char title[160], name[96];
        struct svg svg;
        int places = 0;

        if (f == NULL || f->all_tested <= 0)
            continue;
        for (; places < RUN_MOST_DRAFT && f->tested[places] > 0; places++) {
            place[places] = places + 1;
            whole[places] = f->accepted_at[places] / f->tested[0];
            theory[places] = pow(f->alpha, places + 1);
        }
        summary_name(&run->cell[cells[count - 1]], name, sizeof name);
        snprintf(title, sizeof title, "Acceptance by position, %s", name);
        charts_begin(to, "half", title, "accepted once it is tested|accepted at all (vLLM's rate)|alpha to the power of the position", "b-t");
        svg_open(&svg, to, CHART_WIDTH, CHART_HEIGHT, title);
        svg_span(&svg, 0.4, places + 0.6, 0, 1);
        svg_frame(&svg, "position in the proposal", "share of drafts", 1);
        for (int i = 0; i < places; i++) {
            double share = f->accepted_at[i] / f->tested[i], top = svg_y(&svg, share), left = svg_x(&svg, i + 0.7);
            char about[64];

            snprintf(about, sizeof about, "%.3f of %.0f tested", share, f->tested[i] / f->repetitions);
            svg_box(&svg, left, top, svg_x(&svg, i + 1.3) - left, svg_y(&svg, 0) - top, "k0 soft", about);
        }
        svg_line(&svg, place, theory, places, "k2 dotted");
        svg_line(&svg, place, whole, places, "k1");
        svg_dots(&svg, place, whole, places, "k1");
        svg_close(&svg);
        charts_end(to, "");
    }
}

void charts_batch(const struct run *run, const struct measured_placement *all, FILE *to)
{
    double sequences[3][MOST_LENGTHS], speed[3][MOST_LENGTHS], most = 1, highest = 1;
    int count[3] = {0};
    const struct run_cell *first = &run->cell[0];
    struct svg svg;

    for (int s = 1; s <= 256; s++)
        for (int i = 0; i < run->cells; i++) {
            const struct run_cell *cell = &run->cell[i];
            int kind = cell->solo ? 0 : cell->draft_length < 0 ? 2 : 1;

            if (cell->sequences != s || cell->temperature != first->temperature || strcmp(cell->accept, first->accept) != 0 ||
                (kind == 1 && cell->draft_length != 4) || count[kind] == MOST_LENGTHS)
                continue;
            sequences[kind][count[kind]] = s;
            speed[kind][count[kind]++] = all->cell[i].tokens_per_second;
            most = fmax(most, s);
            highest = fmax(highest, all->cell[i].tokens_per_second);
        }
    if (count[0] < 2)
        return;
    charts_begin(to, "half", "Throughput by sequences at once", "solo|K 4|chosen by the lead (auto)", "");
    svg_open(&svg, to, CHART_WIDTH, CHART_HEIGHT, "Tokens a second by sequences at once");
    svg_span(&svg, 0, most + 0.5, 0, 1.08 * highest);
    svg_frame(&svg, "sequences at once", "output tokens per second", 1);
    for (int kind = 0; kind < 3; kind++) {
        static const char *const how[] = {"k0", "k1", "k2"};

        svg_line(&svg, sequences[kind], speed[kind], count[kind], how[kind]);
        svg_dots(&svg, sequences[kind], speed[kind], count[kind], how[kind]);
    }
    svg_close(&svg);
    charts_end(to, "");
}
