#include "launch/bench/report/page_md.h"

#include "launch/bench/report/forecast_table.h"
#include "launch/bench/report/summary.h"
#include "launch/bench/report/table.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char page_md_why_speed[] =
    "Tokens per second are those of all sequences together. `error %` is the speedup's standard error; `~` marks a "
    "speedup whose error is beyond the limit. `by TPOT` is the speedup by the time per token "
    "after the first, without prompts. `acceptance %` is accepted drafts over drafts that were made, those behind a rejected one included; alpha, "
    "below, leaves these out. `equal` counts outputs that are solo's, token for token.";
const char page_md_why_itl[] =
    "ITL, the time between tokens, misleads under speculation: the tokens of a round arrive together, so most gaps are 0 (the median often is) and "
    "the rest are whole rounds. Read TPOT (time per output token after the first) for speed, and `arrival`, the time from one bunch of tokens to the "
    "next, for how long a reader waits; of ITL only the p99 says something.";
const char page_md_why_theory[] =
    "Theorem 3.8 takes three things for granted: that each draft is accepted with the same probability alpha, independently; that the target's step "
    "over gamma + 1 rows costs what a step over one row costs; and that nothing else takes time. `with v, wire` keeps the first and measures the "
    "other two: drafting by tokens, verifying by rows, all else by tokens, from the rounds of all cells of a group, its own among them: it accounts "
    "for where the time went, and predicts nothing. A cell's figure is equation (1) with its alpha over the time that these say. `best K 3.8` and "
    "`best K with v and wire` are the draft lengths that by these two are the fastest, be they among those that were measured or not. `reads 3.4` is "
    "how often weights are read for a token, over how often the target alone reads its own (section 3.4; by parameters). `oracle 3.5` is what no "
    "draft length exceeds at this alpha and c: an oracle drafts just what will be accepted (section 3.5).";
const char page_md_why_paper_5[] = "What a rule that is not lossless buys: the share of tested drafts that stand, the draft length that was fastest, "
                                   "and its speed over solo, beside "
                                   "the lossless rules. How far its law is off, `tandem check --accept RULE` tells.";
const char page_md_why_residual[] =
    "Measured over `with v and wire` is the product of four: the tokens that a round gave over what equation (1) expects; the round's time as it is "
    "expected over what it was; what lies outside of rounds (prompts, between rounds); and noise, by which the median over repetitions differs from "
    "the mean over all.";
const char page_md_why_alpha[] =
    "Counted: accepted drafts over tested drafts. D_LK = 1 - sum min(p, q), by what p and q say. At temperature 0 both "
    "are one token each, so the first "
    "two estimators are one. Under `coupled` a draft is a point mass and is accepted where both models draw the same: "
    "the match rate is counted, a job "
    "sees no q, and so D_LK is that of the offline run, of other texts; what is counted is another number. `block`, `classic` and rules that are not "
    "lossless accept another share than sum min(p, q), which is not told of them.";
const char page_md_why_phases[] =
    "Means over rounds, microseconds of the lead's clock. `wire` is what is left of the lead's wait when truncating, drafting and packing are taken "
    "away: both ways through the network, and waking up. `overlap` is drafting that the lead did not wait for.";
const char page_md_why_by_rank[] =
    "Each rank's own time in a mean round, prompts included, microseconds: solo, and the draft length that was fastest. `verify` is without the "
    "group's sums (`reduce`). `idle` is waiting, and whatever no phase has.";
const char page_md_how_measured[] =
    "Every pass decodes the same prompts in the same job, on the same ranks and the same loaded models; solo passes leave the drafter idle. Cells "
    "take turns, forward in one repetition and backward in the next. A speedup is that of a pass over the solo pass of its repetition; shown are the "
    "median over repetitions with its standard error, from the sorted values around it, and the spread, 1.4826 times the median absolute deviation. "
    "Cells whose error is beyond the limit got further repetitions. Completions have a fixed length (EOS is ignored). A pass has four prompts for "
    "each "
    "of its sequences at least.";

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value != NULL ? value : "-";
}

/* A cell of a table from outside: a bar or a new line in a path would end it, and a tag would be one. */
static void write_told(const char *before, const char *told, FILE *to)
{
    fputs(before, to);
    for (; *told != '\0'; told++) {
        char one[2] = {*told, '\0'};

        if (*told == '|')
            fputs("\\|", to);
        else
            table_escape(to, *told == '\n' || *told == '\t' ? " " : one);
    }
}

/* A line as it was typed, in a block of its own: behind a line break it would be text and tags again. */
static void write_block(const char *line, FILE *to)
{
    fputs("    ", to);
    for (; *line != '\0'; line++)
        fputc((unsigned char)*line < ' ' ? ' ' : *line, to);
    fputs("\n\n", to);
}

static void write_model(const char *name, const json_t *model, FILE *to)
{
    fprintf(to, "| %s", name);
    write_told(" | ", text(model, "path"), to);
    write_told(", ", text(model, "architecture"), to);
    fprintf(to, ", %.3g parameters |\n", number(model, "parameters"));
}

static void write_machine(const json_t *machine, FILE *to)
{
    write_told("| machine | ", text(machine, "processor"), to);
    fprintf(to, ", %g cores, %.0f GB, Linux", number(machine, "cores"), number(machine, "memory_gb"));
    write_told(" ", text(machine, "kernel"), to);
    write_told(", load ", text(machine, "load"), to);
    write_told(" |\n| driver | ", text(machine, "driver"), to);
    fputs(" |\n", to);
}

static void write_head(const struct run *run, const struct measured_placement *all, FILE *to)
{
    const json_t *machine = json_object_get(run->json, "machine");
    const struct measured_noise noise = measured_noise(run, all, run->placements);
    char loss[RUN_LOSS];

    fprintf(to, "# Speculative decoding, measured\n\n");
    if (*run_loss(run->json, loss) != '\0')
        fprintf(to, "**NOT LOSSLESS**: %s.\n\n", loss);
    write_block(text(run->json, "command"), to);
    fprintf(to, "| | |\n|---|---|\n");
    write_told("| date | ", text(run->json, "date"), to);
    write_told(" |\n| tandem | ", text(run->json, "tandem"), to);
    write_told(", source ", text(machine, "git"), to);
    fputs(" |\n", to);
    write_machine(machine, to);
    write_model("target", json_object_get(run->json, "target"), to);
    write_model("draft", json_object_get(run->json, "draft"), to);
    fprintf(to, "| passes | a warm-up, then %g repetitions of %d cells, and more of those that were noisy: %d to %d; %g prompts, %g tokens each |\n",
            number(run->json, "repetitions"), run->cells, noise.least, noise.most, number(run->json, "requests"), number(run->json, "max_tokens"));
    fprintf(to,
            "| noise | speedups spread by %.1f %% between repetitions (median of cells; worst %.1f %%): a standard error of %.1f %% "
            "(worst %.1f %%), limit %.1f %% |\n\n",
            100 * noise.spread, 100 * noise.spread_worst, 100 * noise.error, 100 * noise.error_worst, 100 * noise.limit);
    fprintf(to, "%s\n\n", page_md_how_measured);
}

/* Cells that differ from this one in their fixed draft length alone, and itself. */
static int is_like(const struct run_cell *cell, const struct run_cell *other)
{
    return measured_is_predicted(other) && other->draft_length > 0 && other->temperature == cell->temperature &&
           strcmp(other->accept, cell->accept) == 0;
}

/* Do the rounds of such cells miss their time by more the longer the drafts are, and in one direction? Noise does not. */
static int grows_with_length(const struct run *run, const struct measured_placement *all, int at)
{
    int pairs = 0;

    for (int i = 0; i < run->cells; i++)
        for (int j = 0; j < run->cells; j++) {
            double here = log(all->cell[i].by_round), there = log(all->cell[j].by_round);

            if (!is_like(&run->cell[at], &run->cell[i]) || !is_like(&run->cell[at], &run->cell[j]) ||
                run->cell[i].draft_length >= run->cell[j].draft_length)
                continue;
            if (here * there <= 0 || fabs(here) >= fabs(there))
                return 0;
            pairs++;
        }
    return run->cell[at].draft_length > 0 && pairs >= 3; /* of three lengths at least */
}

/* Which of the factors is farthest from 1, and what that means. */
static const char *blame(const struct run *run, const struct measured_placement *all, int at)
{
    const struct measured *f = &all->cell[at];
    double tokens = fabs(log(f->by_tokens)), round = fabs(log(f->by_round)), outside = fabs(log(f->by_outside)), noise = fabs(log(f->by_noise));

    if (noise >= tokens && noise >= round && noise >= outside)
        return "noise: the repetitions differ";
    if (tokens >= round && tokens >= outside)
        return "drafts are not accepted independently with one alpha, or rounds were cut at the end of completions";
    if (round >= outside && grows_with_length(run, all, at))
        return "its rounds took another time than those of the same size in other cells, the more so the more is drafted: what a draft costs, not "
               "noise";
    return round >= outside ? "its rounds took another time than those of the same size in other cells: noise, or waking up"
                            : "time outside of rounds: prompts";
}

/* Rounds without the proposal that they asked for are slower than a draft length is. */
static void write_fallbacks(const struct run *run, const struct measured_placement *all, const char *begin, const char *end, FILE *to)
{
    int told = 0;

    for (int i = 0; i < run->cells; i++) {
        char name[128];

        if (all->cell[i].fallback_rounds <= 0)
            continue;
        summary_name(&run->cell[i], name, sizeof name);
        if (told++ == 0)
            fprintf(to, "%sRounds that went without the proposal that they asked for, for a drafter missed its deadline: ", begin);
        fprintf(to, "%s%.0f of %.0f in %s", told > 1 ? "; " : "", all->cell[i].fallback_rounds, all->cell[i].rounds, name);
    }
    if (told > 0)
        fprintf(to, ".%s", end);
}

/* What the account leaves open by more than a tenth, each with its reason. */
static void write_misses(const struct run *run, const struct measured_placement *all, const char *begin, const char *end, FILE *to)
{
    int told = 0;

    for (int i = 0; i < run->cells; i++) {
        const struct measured *f = &all->cell[i];
        char name[128];

        if (!measured_is_predicted(&run->cell[i]) || f->improvement_measured <= 0 || fabs(f->speedup / f->improvement_measured - 1) <= 0.1)
            continue;
        summary_name(&run->cell[i], name, sizeof name);
        fprintf(to, "%s%s is off by %+.1f %% (%s)", told++ == 0 ? begin : "; ", name, 100 * (f->speedup / f->improvement_measured - 1),
                blame(run, all, i));
    }
    if (told > 0)
        fprintf(to, ".%s", end);
}

/* Of the cells that are compared with this solo cell the one of the largest speedup, or `surely` of those that are above 1 by more than twice their
 * error; -1: there is none. */
static int fastest_of(const struct run *run, const struct measured_placement *all, int baseline, int surely)
{
    int best = -1;

    for (int i = 0; i < run->cells; i++) {
        const struct measured *cell = &all->cell[i];

        if (i != baseline && run->cell[i].baseline == baseline && cell->repetitions > 0 &&
            (!surely || cell->speedup * (1 - 2 * cell->speedup_error) > 1) && (best < 0 || cell->speedup > all->cell[best].speedup))
            best = i;
    }
    return best;
}

/* Of each group the fastest of those that are surely faster than solo; where none is, solo, with what comes nearest to it or may be above. */
static void write_fastest(const struct run *run, const struct measured_placement *all, const char *begin, const char *end, FILE *to)
{
    int told = 0;

    for (int b = 0; b < run->cells; b++) {
        int best = fastest_of(run, all, b, 1), near = fastest_of(run, all, b, 0);
        char name[128];

        if (!run->cell[b].solo || near < 0)
            continue;
        summary_name(&run->cell[best >= 0 ? best : b], name, sizeof name);
        fprintf(to, "%s%s%s", told == 0 ? begin : "; ", told == 0 ? "The fastest of each group: " : "", name);
        told++;
        if (best >= 0)
            fprintf(to, ", %.2fx", all->cell[best].speedup);
        else if (run->cell[near].draft_length < 0)
            fprintf(to, " (K auto %s%.2fx)", measured_is_noisy(run, &all->cell[near]) ? "~" : "", all->cell[near].speedup);
        else
            fprintf(to, " (K %d %s%.2fx)", run->cell[near].draft_length, measured_is_noisy(run, &all->cell[near]) ? "~" : "", all->cell[near].speedup);
    }
    if (told > 0)
        fprintf(to, ".%s", end);
}

int page_md_withholds(const struct run *run, const struct measured_placement *all, char *line, size_t size)
{
    const struct measured_noise noise = measured_noise(run, all, 1);

    if (!measured_withholds(&noise))
        return 0;
    snprintf(line, size,
             "No headline: the machine was too noisy. %d of %d speedups have a standard error beyond the limit of %.1f %% "
             "(median %.1f %%, the worst %.1f %%) after %d to %d repetitions; ~ marks them. An idle machine or a longer --extra-time would tell.",
             noise.beyond, noise.cells, 100 * noise.limit, 100 * noise.error, 100 * noise.error_worst, noise.least, noise.most);
    return 1;
}

void page_md_verdict(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to)
{
    const char *begin = form == TABLE_HTML ? "<p>" : "", *end = form == TABLE_HTML ? "</p>\n" : "\n\n";
    int cells = 0, near = 0;
    double farthest = 0;
    char withheld[512];

    for (int i = 0; i < run->cells; i++)
        if (measured_is_predicted(&run->cell[i]) && all->cell[i].improvement_measured > 0) {
            double off = fabs(all->cell[i].speedup / all->cell[i].improvement_measured - 1);

            cells++;
            near += off <= 0.1;
            farthest = off > farthest ? off : farthest;
        }
    write_fallbacks(run, all, begin, end, to);
    if (page_md_withholds(run, all, withheld, sizeof withheld)) {
        fprintf(to, "%s%s%s", begin, withheld, end);
        return;
    }
    write_fastest(run, all, begin, end, to);
    forecast_verdict(run, all, begin, end, to);
    if (cells == 0)
        return;
    fprintf(
        to,
        "%sThe account of where time went, equation (1) with v and wire of the cells' own rounds: within 10 %% for %d of %d cells, the farthest off "
        "by %.1f %%. The theory does not speak of several sequences at once.%s",
        begin, near, cells, 100 * farthest, end);
    write_misses(run, all, begin, end, to);
}

void page_md_write(const struct run *run, const struct measured_placement *all, FILE *to)
{
    write_head(run, all, to);
    for (int p = 0; p < run->placements; p++) {
        fprintf(to, "# %s\n\n", run->placement[p].name);
        page_md_verdict(run, &all[p], TABLE_TEXT, to);
        table_speed(run, &all[p], TABLE_TEXT, to);
        fprintf(to, "%s\n\n", page_md_why_speed);
        if (*forecast_prompts(run) != '\0') {
            fprintf(to, "## Predicted, then measured\n\n%s\n\n", forecast_why);
            table_forecast(run, &all[p], TABLE_TEXT, to);
        }
        if (table_has_hits(run, &all[p])) {
            fprintf(to, "## Running ahead\n\n%s\n\n", forecast_hits_why);
            table_hits(run, &all[p], TABLE_TEXT, to);
        }
        fprintf(to, "## The theory beside it: an account\n\n%s\n\n", page_md_why_theory);
        table_theory(run, &all[p], TABLE_TEXT, to);
        fprintf(to, "%s\n\n", page_md_why_residual);
        table_residual(run, &all[p], TABLE_TEXT, to);
        fprintf(to, "## Alpha\n\n%s\n\n", page_md_why_alpha);
        table_alpha(run, &all[p], TABLE_TEXT, to);
        fprintf(to, "## The paper's Table 1 with this pair's alpha\n\nFactors by theorems 3.11 and 3.8 at c = 0 and c_hat = 0, as there.\n\n");
        table_paper_1(run, &all[p], TABLE_TEXT, to);
        fprintf(to, "## The paper's Table 2 for this pair\n\nThe draft length that was fastest, at each temperature.\n\n");
        table_paper_2(run, &all[p], TABLE_TEXT, to);
        if (table_has_paper_5(run)) {
            fprintf(to, "## The paper's Table 5 for this pair\n\n%s\n\n", page_md_why_paper_5);
            table_paper_5(run, &all[p], TABLE_TEXT, to);
        }
        fprintf(to, "## Where a round's time goes\n\n%s\n\n", page_md_why_phases);
        table_phases(run, &all[p], TABLE_TEXT, to);
        fprintf(to, "### By rank\n\n%s\n\n", page_md_why_by_rank);
        table_by_rank(run, &run->placement[p], &all[p], TABLE_TEXT, to);
        fprintf(to, "## Latency\n\n%s\n\n", page_md_why_itl);
        table_latency(run, &all[p], TABLE_TEXT, to);
        table_messages(&run->placement[p], TABLE_TEXT, to);
        fprintf(to, "## Ranks\n\n");
        fprintf(to, "%s, group over %s.\n\n", text(json_array_get(run->placement[p].job, 0), "mpi"),
                text(json_array_get(run->placement[p].job, 0), "group"));
        table_ranks(&run->placement[p], TABLE_TEXT, to);
        write_block(run->placement[p].line, to);
    }
    if (run->placements > 1)
        fprintf(to, "# What the network costs\n\n");
    table_placements(run, all, TABLE_TEXT, to);
    fprintf(to, "Files beside this one: report.html (the same with measured), summary.json (all figures by name), rounds.csv (every round), "
                "trace.json (a timeline for ui.perfetto.dev), raw/ (what the ranks wrote).\n");
}
