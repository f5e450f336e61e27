#include "launch/bench/report/page_html.h"

#include "launch/bench/report/charts.h"
#include "launch/bench/report/forecast_table.h"
#include "launch/bench/report/page_md.h"
#include "launch/bench/report/summary.h"
#include "launch/bench/report/table.h"
#include <string.h>

static const char style[] =
    ":root{--ground:#fff;--text:#1d2430;--soft:#5b6675;--line:#e3e7ec;--panel:#f7f9fb;--accent:#2f62c9;--warn:#b42318;"
    "--k0:#4269d0;--k1:#e08e0b;--k2:#2a9d8f;--k3:#d1495b;--k4:#8f63c9;--k5:#7a8b2f;--k6:#b07aa1;--k7:#9aa3ad}\n"
    "@media(prefers-color-scheme:dark){:root{--ground:#14181f;--text:#e4e8ee;--soft:#9aa5b4;--line:#2a313b;--panel:#1b212a;--accent:#8ab0ff;"
    "--warn:#ff9a8f;--k0:#7f9cf0;--k1:#f0b24a;--k2:#5cc5b6;--k3:#ee8591;--k4:#b795e6;--k5:#b3c46a;--k6:#d6a6c9;--k7:#77818d}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--ground);color:var(--text);font:15px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,"
    "sans-serif}\n"
    "main{max-width:1040px;margin:0 auto;padding:32px 24px 64px}h1{font-size:26px;margin:0 0 4px}h2{font-size:21px;margin:48px 0 8px;"
    "padding-top:16px;border-top:1px solid var(--line)}h3{font-size:16px;margin:28px 0 6px}p{margin:6px 0 12px;max-width:80ch}code,pre{font:13px/1.5 "
    "ui-monospace,Menlo,Consolas,monospace}pre{background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:10px 12px;"
    "white-space:pre-wrap;word-break:break-word}\n"
    ".soft{color:var(--soft)}.warn{color:var(--warn);font-weight:600;border:1px solid var(--warn);border-radius:6px;padding:8px 12px}\n"
    ".tiles{display:flex;flex-wrap:wrap;gap:12px;margin:18px 0}.tile{flex:1 1 220px;background:var(--panel);border:1px solid var(--line);"
    "border-radius:8px;padding:12px 14px}.tile b{display:block;font-size:26px;line-height:1.2}.tile span{color:var(--soft);font-size:13px}\n"
    ".figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(430px,100%),1fr));gap:18px}figure{margin:0;background:var(--panel);"
    "border:1px solid var(--line);border-radius:8px;padding:12px 14px}figure.whole{grid-column:1/-1}figcaption{font-weight:600;font-size:14px}"
    "svg{width:100%;height:auto;display:block}\n"
    ".legend{display:flex;flex-wrap:wrap;gap:2px 14px;color:var(--soft);font-size:12.5px;margin:4px 0 6px}.legend span{white-space:nowrap}"
    ".key{display:inline-block;width:18px;height:0;border-top:2.5px solid;vertical-align:middle;margin-right:6px}.key.dashed{border-top-style:dashed}"
    ".key.dotted{border-top-style:dotted}.key.block{width:11px;height:11px;border:0;border-radius:2px;background:currentColor}"
    ".below{color:var(--soft);font-size:12.5px;margin:4px 0 0}\n"
    ".line{fill:none;stroke-width:2;stroke-linejoin:round}.dashed{stroke-dasharray:7 4}.dotted{stroke-dasharray:2 4}.thin{stroke-width:1.2}"
    ".even{stroke:var(--soft);stroke-width:1;stroke-dasharray:1 3}.grid{stroke:var(--line);stroke-width:1}.axis{stroke:var(--soft);stroke-width:1}"
    ".tick,.name,.small{fill:var(--soft);font-size:11.5px;font-variant-numeric:tabular-nums}.name{fill:var(--text);font-size:12px}"
    ".small{font-size:10.5px}.soft.box{opacity:.75}.ground{fill:var(--line);opacity:.55}.flow{stroke:var(--text);stroke-width:1.1;opacity:.8}"
    ".pair{fill:var(--ground);stroke:var(--text);stroke-width:2}\n"
    "table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}th,td{padding:4px 10px;text-align:right;border-bottom:1px solid "
    "var(--line);white-space:nowrap}th{color:var(--soft);font-weight:600;white-space:normal;vertical-align:bottom;min-width:64px}"
    ".text{text-align:left}tbody tr:hover{background:var(--panel)}.wide{overflow-x:auto;margin:10px 0 18px}\n";

static void write_style(FILE *to)
{
    fprintf(to, "<style>\n%s", style);
    for (int i = 0; i < 8; i++)
        fprintf(to, ".k%d{stroke:var(--k%d);color:var(--k%d)}.dot.k%d,.box.k%d{fill:var(--k%d);stroke:none}\n", i, i, i, i, i, i);
    fputs("</style>\n", to);
}

void page_html_begin(const char *title, FILE *to)
{
    fprintf(to,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
            "initial-scale=1\">\n<title>%s</title>\n",
            title);
    write_style(to);
    fputs("</head>\n<body><main>\n", to);
}

void page_html_end(FILE *to)
{
    fputs("</main></body>\n</html>\n", to);
}

static void write_paragraph(const char *tag, const char *text, FILE *to)
{
    char part[4096];
    int code = 0;

    fprintf(to, "<%s>", tag);
    for (const char *at = text; *at != '\0'; code = !code) { /* `this` is code */
        size_t length = strcspn(at, "`");

        snprintf(part, sizeof part, "%.*s", (int)length, at);
        fputs(code ? "<code>" : "", to);
        table_escape(to, part);
        fputs(code ? "</code>" : "", to);
        at += length + (at[length] == '`');
    }
    fprintf(to, "</%.*s>\n", (int)strcspn(tag, " "), tag);
}

/* As it stands, to be copied. */
static void write_command(const char *text, FILE *to)
{
    fputs("<pre>", to);
    table_escape(to, text);
    fputs("</pre>\n", to);
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value != NULL ? value : "-";
}

/* The fastest fixed draft length of each group, as a tile. */
static void write_tiles(const struct run *run, const struct measured_placement *all, FILE *to)
{
    char withheld[512];

    if (page_md_withholds(run, all, withheld, sizeof withheld)) {
        write_paragraph("p class=\"warn\"", withheld, to);
        return;
    }
    fputs("<div class=\"tiles\">\n", to);
    for (int b = 0; b < run->cells; b++) {
        int best = measured_best(run, all, b);
        char line[256], before[64] = "", terms[RUN_TERMS];

        if (best < 0)
            continue;
        if (all->cell[best].forecast.tokens_per_second > 0)
            snprintf(before, sizeof before, "predicted %.2fx, ", all->cell[best].forecast_speedup);
        snprintf(line, sizeof line, "%s at draft length %d: %.0f tokens/s, %.0f alone; %salpha %.2f", run_terms(&run->cell[b], terms),
                 run->cell[best].draft_length, all->cell[best].tokens_per_second, all->cell[b].tokens_per_second, before, all->cell[best].alpha);
        fprintf(to, "<div class=\"tile\"><b>%s%.2fx</b><span>", measured_is_noisy(run, &all->cell[best]) ? "~" : "", all->cell[best].speedup);
        table_escape(to, line);
        fputs("</span></div>\n", to);
    }
    fputs("</div>\n", to);
}

static void write_head(const struct run *run, const struct measured_placement *all, FILE *to)
{
    const json_t *machine = json_object_get(run->json, "machine");
    const struct measured_noise noise = measured_noise(run, all, run->placements);
    char line[512], loss[RUN_LOSS];

    page_html_begin("Tandem: speculative decoding, measured", to);
    fputs("<h1>Speculative decoding, measured</h1>\n", to);
    snprintf(line, sizeof line, "%.64s; %.128s, %g cores; tandem %.32s, source %.64s", text(run->json, "date"), text(machine, "processor"),
             json_number_value(json_object_get(machine, "cores")), text(run->json, "tandem"), text(machine, "git"));
    write_paragraph("p class=\"soft\"", line, to);
    if (*run_loss(run->json, loss) != '\0') {
        snprintf(line, sizeof line, "NOT LOSSLESS: %s.", loss);
        write_paragraph("p class=\"warn\"", line, to);
    }
    write_command(text(run->json, "command"), to);
    write_paragraph("p", page_md_how_measured, to);
    snprintf(line, sizeof line,
             "Speedups spread by %.1f %% between repetitions (median of cells; the worst by %.1f %%), of which there were %d to %d: a standard error "
             "of %.1f %% (the worst %.1f %%); the limit is %.1f %%.",
             100 * noise.spread, 100 * noise.spread_worst, noise.least, noise.most, 100 * noise.error, 100 * noise.error_worst, 100 * noise.limit);
    write_paragraph("p", line, to);
    if (run->has_rounds)
        fputs("<p><a href=\"rounds.html\">How the rounds of the first prompt were decided</a>, one after the other: p against q of each draft, and why it "
              "stood or did not. The keys left and right turn them.</p>\n",
              to);
}

static void draw_theory(const struct run *run, const struct measured_placement *all, FILE *to)
{
    struct charts_point points[RUN_MOST_CELLS];
    int count = 0;

    for (int i = 0; i < run->cells; i++) {
        const struct measured *measured = &all->cell[i];

        if (!run->cell[i].solo && run->cell[i].sequences == 1 && run->cell[i].draft_length > 0 && measured->improvement > 0 && measured->rounds > 0)
            points[count++] = (struct charts_point){measured->alpha, measured->output_tokens / measured->rounds, measured->speedup, measured->best,
                                                    measured_best(run, all, run->cell[i].baseline) == i};
    }
    charts_theory(points, count, to);
}

static void write_placement(const struct run *run, const struct run_placement *placement, const struct measured_placement *all, FILE *to)
{
    write_paragraph("h2", placement->name, to);
    write_tiles(run, all, to);
    page_md_verdict(run, all, TABLE_HTML, to);
    fputs("<div class=\"figures\">\n", to);
    charts_speedup(run, all, to);
    charts_batch(run, all, to);
    draw_theory(run, all, to);
    charts_acceptance(run, all, to);
    charts_round(run, all, to);
    charts_timeline(run, placement, all, to);
    charts_latency(run, all, to);
    charts_messages(placement, to);
    fputs("</div>\n<h3>Speed</h3>\n", to);
    table_speed(run, all, TABLE_HTML, to);
    write_paragraph("p", page_md_why_speed, to);
    if (*forecast_prompts(run) != '\0') {
        write_paragraph("h3", "Predicted, then measured", to);
        write_paragraph("p", forecast_why, to);
        table_forecast(run, all, TABLE_HTML, to);
    }
    if (table_has_hits(run, all)) {
        write_paragraph("h3", "Running ahead", to);
        write_paragraph("p", forecast_hits_why, to);
        table_hits(run, all, TABLE_HTML, to);
    }
    write_paragraph("h3", "The theory beside it: an account", to);
    write_paragraph("p", page_md_why_theory, to);
    table_theory(run, all, TABLE_HTML, to);
    write_paragraph("p", page_md_why_residual, to);
    table_residual(run, all, TABLE_HTML, to);
    write_paragraph("h3", "Alpha, three ways", to);
    write_paragraph("p", page_md_why_alpha, to);
    table_alpha(run, all, TABLE_HTML, to);
    write_paragraph("h3", "The paper's Table 1 with this pair's alpha", to);
    table_paper_1(run, all, TABLE_HTML, to);
    write_paragraph("h3", "The paper's Table 2 for this pair", to);
    table_paper_2(run, all, TABLE_HTML, to);
    if (table_has_paper_5(run)) {
        write_paragraph("h3", "The paper's Table 5 for this pair", to);
        write_paragraph("p", page_md_why_paper_5, to);
        table_paper_5(run, all, TABLE_HTML, to);
    }
    write_paragraph("h3", "Where a round's time goes (microseconds)", to);
    write_paragraph("p", page_md_why_phases, to);
    table_phases(run, all, TABLE_HTML, to);
    write_paragraph("p", page_md_why_by_rank, to);
    table_by_rank(run, placement, all, TABLE_HTML, to);
    write_paragraph("h3", "Latency (milliseconds)", to);
    write_paragraph("p", page_md_why_itl, to);
    table_latency(run, all, TABLE_HTML, to);
    table_messages(placement, TABLE_HTML, to);
    write_paragraph("h3", "Ranks", to);
    table_ranks(placement, TABLE_HTML, to);
    write_command(placement->line, to);
}

void page_html_write(const struct run *run, const struct measured_placement *all, FILE *to)
{
    write_head(run, all, to);
    for (int p = 0; p < run->placements; p++)
        write_placement(run, &run->placement[p], &all[p], to);
    if (run->placements > 1)
        write_paragraph("h2", "What the network costs", to);
    table_placements(run, all, TABLE_HTML, to);
    page_html_end(to);
}
