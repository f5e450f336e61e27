#include "launch/bench/sweep/plan.h"

#include "common/base/log.h"
#include "common/file/json_text.h"
#include "common/sample/rule.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)ACCEPT_MODES <= (int)PLAN_MOST, "a list may have every rule");

void plan_defaults(int quick, struct plan_options *options)
{
    *options = (struct plan_options){
        .quick = quick,
        .repetitions = quick ? 7 : 11,
        .prompts = quick ? 8 : 24,
        .max_tokens = quick ? 64 : 128,
        .noise_limit = 0.02,
        .extra_s = quick ? 20 : 300,
        .draft_lengths = {.count = 7, .value = {1, 2, 3, 4, 6, 8, PLAN_AUTO}},
        .temperatures = {.count = 2, .value = {0, 1}},
        .batches = {.count = 3, .value = {1, 2, 4}},
        .length_for_batches = 4,
        .fill = 4,
    };
    for (int i = 0; rule_row(i) != NULL; i++)
        if (rule_row(i)->lossless && rule_row(i)->usual)
            options->accepts.value[options->accepts.count++] = i;
    if (!quick)
        options->draft_lengths = (struct plan_list){.count = 9, .value = {1, 2, 3, 4, 5, 6, 8, 12, PLAN_AUTO}};
}

enum status plan_read_list(const char *name, const char *text, double low, double high, int whole, int may_be_auto, struct plan_list *list)
{
    struct plan_list found = {0};

    for (const char *at = text; found.count < PLAN_MOST;) {
        size_t length = strcspn(at, ",");
        char *end;
        double value = strtod(at, &end);

        if (may_be_auto && length == 4 && strncmp(at, "auto", 4) == 0)
            value = PLAN_AUTO;
        else if (length == 0 || end != at + length || !(value >= low && value <= high) || (whole && value != floor(value)))
            break;
        found.value[found.count++] = value;
        if (at[length] == '\0') {
            *list = found;
            return STATUS_OK;
        }
        at += length + 1;
    }
    log_error("--%s is '%s', expected at most %d %snumbers from %g to %g%s, with commas between", name, text, PLAN_MOST, whole ? "whole " : "", low,
              high, may_be_auto ? " or auto" : "");
    return STATUS_USAGE;
}

static void add(struct plan *plan, struct plan_cell cell)
{
    if (plan->cells < PLAN_MOST_CELLS)
        plan->cell[plan->cells] = cell;
    plan->cells++;
}

/* Solo, then the draft lengths, under the same terms. */
static void add_group(struct plan *plan, double temperature, int accept, int sequences, const struct plan_list *lengths)
{
    int baseline = plan->cells;

    add(plan, (struct plan_cell){.solo = 1, .temperature = temperature, .accept = accept, .sequences = sequences, .baseline = baseline});
    for (int i = 0; i < lengths->count; i++)
        add(plan, (struct plan_cell){.draft_length = (int)lengths->value[i],
                                     .temperature = temperature,
                                     .accept = accept,
                                     .sequences = sequences,
                                     .baseline = baseline});
}

/* Several sequences at once, under one temperature and rule. */
static void add_batches(struct plan *plan, double temperature, int accept, const struct plan_list *lengths)
{
    const struct plan_list *batches = &plan->options.batches;

    for (int b = 0; b < batches->count; b++)
        if (batches->value[b] > 1)
            add_group(plan, temperature, accept, (int)batches->value[b], lengths);
}

static const struct rule *rule_at(const struct plan_options *options, int t, int a)
{
    const struct sampling sampling = {.temperature = options->temperatures.value[t], .accept = (int32_t)options->accepts.value[a]};

    return rule_of(&sampling);
}

/* At temperature 0 most rules coincide, and drawn verdicts are of no rule. */
static int is_another(const struct plan_options *options, int t, int a)
{
    for (int before = 0; before < a; before++)
        if (options->synthetic || rule_at(options, t, before) == rule_at(options, t, a))
            return 0;
    return 1;
}

enum status plan_make(const struct plan_options *options, struct plan *plan)
{
    const struct plan_list few = {.count = 2, .value = {options->length_for_batches, PLAN_AUTO}};

    plan->options = *options;
    plan->cells = 0;
    for (int t = 0; t < options->temperatures.count; t++)
        for (int a = 0; a < options->accepts.count; a++)
            if (is_another(options, t, a))
                add_group(plan, options->temperatures.value[t], (int)options->accepts.value[a], 1,
                          a > 0 && options->quick ? &few : &options->draft_lengths);
    for (int t = 0; t < options->temperatures.count; t++)
        for (int a = 0; a < options->accepts.count; a++)
            if ((t == 0 && a == 0) || (options->batch_everywhere && is_another(options, t, a)))
                add_batches(plan, options->temperatures.value[t], (int)options->accepts.value[a], &few);
    if (plan->cells <= PLAN_MOST_CELLS)
        return STATUS_OK;
    log_error("the lists make %d cells, expected at most %d", plan->cells, PLAN_MOST_CELLS);
    return STATUS_USAGE;
}

/* Rows of the steps of all cells under these terms. rows: [PLAN_MOST_ROWS + 1], set where there are steps of so many */
static void find_rows(const struct plan *plan, const struct plan_cell *terms, char *rows)
{
    memset(rows, 0, PLAN_MOST_ROWS + 1);
    for (int i = 0; i < plan->cells; i++) {
        const struct plan_cell *cell = &plan->cell[i];
        int length = cell->draft_length > 0 ? cell->draft_length : 0, all = cell->sequences * (length + 1);

        if (cell->temperature == terms->temperature && cell->accept == terms->accept)
            rows[all < PLAN_MOST_ROWS ? all : PLAN_MOST_ROWS] = 1;
    }
}

void plan_calibration(const struct plan *plan, struct plan *calibration)
{
    enum { REPETITIONS = 3, TOKENS = 64 };

    *calibration = (struct plan){.options = plan->options};
    calibration->options.repetitions = REPETITIONS;
    calibration->options.extra_s = 0;
    calibration->options.fill = 1;
    if (calibration->options.max_tokens > TOKENS)
        calibration->options.max_tokens = TOKENS;
    for (int i = 0; i < plan->cells; i++) {
        char rows[PLAN_MOST_ROWS + 1];

        if (!plan->cell[i].solo || plan->cell[i].sequences != 1)
            continue;
        find_rows(plan, &plan->cell[i], rows);
        for (int r = 1; r <= PLAN_MOST_ROWS && calibration->cells < PLAN_MOST_CELLS; r++)
            if (rows[r])
                add(calibration, (struct plan_cell){.solo = 1,
                                                    .temperature = plan->cell[i].temperature,
                                                    .accept = plan->cell[i].accept,
                                                    .sequences = r,
                                                    .baseline = calibration->cells});
    }
}

int plan_most_sequences(const struct plan *plan)
{
    int most = 1;

    for (int i = 0; i < plan->cells; i++)
        most = plan->cell[i].sequences > most ? plan->cell[i].sequences : most;
    return most;
}

int plan_is_lossless(const struct plan *plan)
{
    int all = !plan->options.synthetic;

    for (int i = 0; i < plan->cells; i++) {
        const struct sampling sampling = {.temperature = plan->cell[i].temperature, .accept = plan->cell[i].accept};

        all &= plan->cell[i].solo || rule_of(&sampling)->lossless;
    }
    return all;
}

json_t *plan_cells(const struct plan *plan)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = 0; i < plan->cells; i++) {
        const struct plan_cell *cell = &plan->cell[i];

        failed |= json_array_append_new(array, json_pack("{s:b, s:i, s:f, s:s, s:i, s:i}", "solo", cell->solo, "draft_length",
                                                         cell->draft_length, "temperature", cell->temperature, "accept", rule_name(cell->accept),
                                                         "sequences", cell->sequences, "baseline", cell->baseline));
    }
    return json_text_whole(array, failed);
}

static json_t *pass_of(const struct plan *plan, int at, int repetition, int warm_up)
{
    const struct plan_cell *cell = &plan->cell[at];
    int prompts = plan->options.prompts;

    /* A pass with many sequences gets more prompts, so that it lasts as long as the others and its slots are seldom empty. */
    prompts = prompts < plan->options.fill * cell->sequences ? plan->options.fill * cell->sequences : prompts;
    return json_pack("{s:i, s:i, s:i, s:b, s:b, s:i, s:f, s:s, s:i, s:i}", "cell", at, "baseline", cell->baseline, "repetition", repetition,
                     "warm_up", warm_up, "solo", cell->solo, "draft_length", cell->draft_length, "temperature", cell->temperature, "accept",
                     rule_name(cell->accept), "sequences", cell->sequences, "prompts", warm_up ? (prompts + 3) / 4 : prompts);
}

json_t *plan_passes(const struct plan *plan, const char *results)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = 0; i < plan->cells; i++)
        failed |= json_array_append_new(array, pass_of(plan, i, 0, 1));
    for (int r = 0; r < plan->options.repetitions; r++)
        for (int i = 0; i < plan->cells; i++)
            failed |= json_array_append_new(array, pass_of(plan, r % 2 == 0 ? i : plan->cells - 1 - i, r, 0));
    return json_text_whole(json_pack("{s:s, s:o, s:{s:f, s:f}}", "results", results, "passes", json_text_whole(array, failed), "more", "noise_limit",
                                     plan->options.noise_limit, "seconds", plan->options.extra_s), 0);
}
