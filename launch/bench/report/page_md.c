#include "launch/bench/report/page_md.h"

#include "launch/bench/report/summary.h"
#include "launch/bench/report/table.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char page_md_why_itl[] =
    "ITL, the time between tokens, misleads under speculation: the tokens of a round arrive together, so most gaps are 0 (the median often is) and the "
    "rest are whole rounds. Read TPOT (time per output token after the first) for speed, and `arrival`, the time from one bunch of tokens to the next, "
    "for how long a reader waits; of ITL only the p99 says something.";
const char page_md_why_theory[] =
    "Theorem 3.8 takes three things for granted: that each draft stands with the same probability alpha, independently; that the target's step over "
    "gamma + 1 rows costs what a step over one row costs; and that nothing else takes time. `with v, wire` keeps the first and measures the other two: "
    "drafting by tokens, verifying by rows, all else by tokens, from the rounds of all cells of a group. A cell's prediction is equation (1) with its "
    "alpha over the time that these say.";
const char page_md_how_measured[] =
    "Every pass decodes the same prompts in the same job, on the same ranks and the same loaded models; solo passes leave the drafter idle. Cells take "
    "turns, forward in one repetition and backward in the next. A speedup is that of a pass over the solo pass of its repetition; shown are the median "
    "over repetitions and the spread, 1.4826 times the median absolute deviation. Completions have a fixed length (EOS is ignored).";

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value != NULL ? value : "-";
}

static void write_head(const struct run *run, const struct figures_of_placement *all, FILE *to)
{
    const json_t *machine = json_object_get(run->json, "machine"), *target = json_object_get(run->json, "target");
    const json_t *draft = json_object_get(run->json, "draft");
    double worst, noise = figures_noise(run, all, &worst);

    fprintf(to, "# Speculative decoding, measured\n\n");
    if (json_is_false(json_object_get(run->json, "lossless")))
        fprintf(to, "**NOT LOSSLESS.** Verdicts were drawn with rate %g (`--synthetic-acceptance`): times and messages are real, the text follows no model.\n\n",
                number(run->json, "synthetic_acceptance"));
    fprintf(to, "    %s\n\n", text(run->json, "command"));
    fprintf(to, "| | |\n|---|---|\n");
    fprintf(to, "| date | %s |\n| tandem | %s, source %s |\n", text(run->json, "date"), text(run->json, "tandem"), text(machine, "git"));
    fprintf(to, "| machine | %s, %g cores, %.0f GB, Linux %s, load %s |\n", text(machine, "processor"), number(machine, "cores"),
            number(machine, "memory_gb"), text(machine, "kernel"), text(machine, "load"));
    fprintf(to, "| driver | %s |\n", text(machine, "driver"));
    fprintf(to, "| target | %s, %s, %.3g parameters |\n", text(target, "path"), text(target, "architecture"), number(target, "parameters"));
    fprintf(to, "| draft | %s, %s, %.3g parameters |\n", text(draft, "path"), text(draft, "architecture"), number(draft, "parameters"));
    fprintf(to, "| passes | a warm-up, then %g repetitions of %d cells; %g prompts, %g tokens each |\n", number(run->json, "repetitions"), run->cells,
            number(run->json, "requests"), number(run->json, "max_tokens"));
    fprintf(to, "| noise | speedups spread by %.1f %% between repetitions (median of cells; worst %.1f %%), limit %.1f %% |\n\n", 100 * noise, 100 * worst,
            100 * number(run->json, "noise_limit"));
    fprintf(to, "%s\n\n", page_md_how_measured);
}

static void write_ranks(const struct run_placement *placement, FILE *to)
{
    const json_t *job = json_array_get(placement->job, 0);
    struct table table;

    fprintf(to, "%s, group over %s.\n\n", text(job, "mpi"), text(job, "group"));
    table_begin(&table, to, TABLE_TEXT, "rank,role,<host,<device,clock offset before us,after us,round trip us");
    for (int i = 0; i < placement->ranks; i++) {
        const struct run_rank *rank = &placement->rank[i];

        table_row(&table, "%d\t%s\t%s\t%s\t%.1f\t%.1f\t%.1f", rank->rank, rank->role, rank->host, rank->device, (double)rank->offset_ns[0] / 1000,
                  (double)rank->offset_ns[1] / 1000, (double)rank->round_trip_ns[0] / 1000);
    }
    table_end(&table);
    fprintf(to, "    %s\n\n", placement->line);
}

void page_md_write(const struct run *run, const struct figures_of_placement *all, FILE *to)
{
    write_head(run, all, to);
    for (int p = 0; p < run->placements; p++) {
        fprintf(to, "# %s\n\n", run->placement[p].name);
        table_speed(run, &all[p], TABLE_TEXT, to);
        fprintf(to, "`~` marks a speedup that spreads beyond the limit. `equal` counts outputs that are solo's, token for token.\n\n## The theory beside it\n\n%s\n\n",
                page_md_why_theory);
        table_theory(run, &all[p], TABLE_TEXT, to);
        fprintf(to, "Measured over predicted is the product of the last three: tokens a round gave over what equation (1) expects; the round's time as it is "
                    "expected over what it was; and what lies outside of rounds (prompts, first rounds of a request).\n\n");
        table_residual(run, &all[p], TABLE_TEXT, to);
        fprintf(to, "## Alpha\n\nCounted: drafts that stood over drafts that were judged. D_LK = 1 - alpha.\n\n");
        table_alpha(run, &all[p], TABLE_TEXT, to);
        fprintf(to, "## The paper's Table 1 with this pair's alpha\n\nFactors by theorems 3.11 and 3.8 at c = 0 and c_hat = 0, as there.\n\n");
        table_paper_1(run, &all[p], TABLE_TEXT, to);
        fprintf(to, "## The paper's Table 2 for this pair\n\nThe draft length that was fastest, at each temperature.\n\n");
        table_paper_2(run, &all[p], TABLE_TEXT, to);
        fprintf(to, "## Where a round's time goes\n\nMeans, microseconds of the lead's clock. `wire` is what is left of the lead's wait when truncating, drafting and packing are "
                    "taken away: both ways through the network, and waking up. `overlap` is drafting that the lead did not wait for.\n\n");
        table_phases(run, &all[p], TABLE_TEXT, to);
        fprintf(to, "## Latency\n\n%s\n\n", page_md_why_itl);
        table_latency(run, &all[p], TABLE_TEXT, to);
        table_messages(&run->placement[p], TABLE_TEXT, to);
        fprintf(to, "## Ranks\n\n");
        write_ranks(&run->placement[p], to);
    }
    fprintf(to, "Files beside this one: report.html (the same with figures), summary.json (all figures by name), rounds.csv (every round), trace.json (a timeline "
                "for ui.perfetto.dev), raw/ (what the ranks wrote).\n");
}
