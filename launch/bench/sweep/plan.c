#include "launch/bench/sweep/plan.h"

#include "common/base/log.h"
#include "common/file/json_text.h"
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
            options->accepts.rule[options->accepts.count++] = (struct rule_asked){.accept = i, .number = -1};
    if (!quick)
        options->draft_lengths = (struct plan_list){.count = 9, .value = {1, 2, 3, 4, 5, 6, 8, 12, PLAN_AUTO}};
}

static int has_value(const struct plan_list *list, double value)
{
    for (int i = 0; i < list->count; i++)
        if (list->value[i] == value)
            return 1;
    return 0;
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
        if (!has_value(&found, value)) /* measured twice it would be two cells of one name */
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

enum status plan_read_rules(const char *name, const char *text, struct plan_rules *rules)
{
    struct plan_rules found = {0};

    for (const char *at = text; found.count < PLAN_MOST;) {
        size_t length = strcspn(at, ",");

        if (!rule_read(at, length, &found.rule[found.count]))
            break;
        found.count++;
        if (at[length] == '\0') {
            *rules = found;
            return STATUS_OK;
        }
        at += length + 1;
    }
    log_error("--%s is '%s', expected at most %d of " RULE_NAMES " with commas between, lenience=L with " SAMPLING_LENIENCE
              ", threshold=P with " SAMPLING_THRESHOLD " and typical=E with a number from 0 to 1",
              name, text, PLAN_MOST);
    return STATUS_USAGE;
}

static struct sampling sampling_of(double temperature, const struct rule_asked *rule)
{
    struct sampling sampling = {.temperature = temperature};

    rule_set(rule, &sampling);
    return sampling;
}

static void add(struct plan *plan, struct plan_cell cell)
{
    if (plan->cells < PLAN_MOST_CELLS)
        plan->cell[plan->cells] = cell;
    plan->cells++;
}

/* Solo, then the draft lengths, under the same terms. */
static void add_group(struct plan *plan, double temperature, const struct rule_asked *rule, int sequences, const struct plan_list *lengths)
{
    int baseline = plan->cells;

    add(plan, (struct plan_cell){.solo = 1, .temperature = temperature, .rule = *rule, .sequences = sequences, .baseline = baseline});
    for (int i = 0; i < lengths->count; i++)
        if (lengths->value[i] != PLAN_AUTO || plan->options.shape == TREE_CHAIN)
            add(plan,
                (struct plan_cell){
                    .draft_length = (int)lengths->value[i], .temperature = temperature, .rule = *rule, .sequences = sequences, .baseline = baseline});
}

/* Several sequences at once, under one temperature and rule. */
static void add_batches(struct plan *plan, double temperature, const struct rule_asked *rule, const struct plan_list *lengths)
{
    const struct plan_list *batches = &plan->options.batches;

    for (int b = 0; b < batches->count; b++)
        if (batches->value[b] > 1)
            add_group(plan, temperature, rule, (int)batches->value[b], lengths);
}

/* At temperature 0 most rules coincide, whatever their numbers, and drawn verdicts are of no rule. */
static int is_another(const struct plan_options *options, int t, int a)
{
    const struct rule_asked *asked = &options->accepts.rule[a];
    const struct sampling own = sampling_of(options->temperatures.value[t], asked);

    if (!rule_takes_shape(rule_of(&own), options->shape))
        return 0;
    for (int before = 0; before < a; before++) {
        const struct rule_asked *other = &options->accepts.rule[before];
        const struct sampling sampling = sampling_of(options->temperatures.value[t], other);

        if (options->synthetic || (rule_of(&sampling) == rule_of(&own) && (rule_of(&own)->number == 0 || other->number == asked->number)))
            return 0;
    }
    return 1;
}

static int has_numbers(const struct plan_list *lengths)
{
    for (int i = 0; i < lengths->count; i++)
        if (lengths->value[i] != PLAN_AUTO)
            return 1;
    return 0;
}

/* The lengths of cells that have few, of those that were asked for: auto, and of the fixed ones the usual one, or the longest that is no longer, or
 * the first. */
static struct plan_list few_of(const struct plan_options *options)
{
    const struct plan_list *lengths = &options->draft_lengths;
    int best = PLAN_AUTO, first = PLAN_AUTO, has_auto = 0; /* which is below any number */
    struct plan_list few = {0};

    for (int i = 0; i < lengths->count; i++) {
        int length = (int)lengths->value[i];

        has_auto |= lengths->value[i] == PLAN_AUTO;
        first = first < 0 ? length : first;
        if (length >= 1 && length <= options->length_for_batches && length > best)
            best = length;
    }
    if (first >= 0)
        few.value[few.count++] = best >= 1 ? best : first;
    if (has_auto)
        few.value[few.count++] = PLAN_AUTO;
    return few;
}

void plan_left_out(const struct plan *plan, char *text)
{
    const struct plan_options *options = &plan->options;
    size_t used = 0;

    text[0] = '\0';
    for (int t = 0; t < options->temperatures.count; t++)
        for (int a = 0; a < options->accepts.count && used < PLAN_TEXT; a++) {
            const struct sampling sampling = sampling_of(options->temperatures.value[t], &options->accepts.rule[a]);

            if (!rule_takes_shape(rule_of(&sampling), options->shape))
                used += (size_t)snprintf(text + used, PLAN_TEXT - used, "%s%s at %g", used > 0 ? ", " : "",
                                         rule_name(options->accepts.rule[a].accept), options->temperatures.value[t]);
        }
}

enum status plan_make(const struct plan_options *options, struct plan *plan)
{
    const struct plan_list few = few_of(options);
    int is_first = 0;

    plan->options = *options;
    plan->cells = 0;
    for (int t = 0; t < options->temperatures.count; t++)
        for (int a = 0, rules = 0; a < options->accepts.count; a++)
            if (is_another(options, t, a))
                add_group(plan, options->temperatures.value[t], &options->accepts.rule[a], 1,
                          rules++ > 0 && options->quick ? &few : &options->draft_lengths);
    for (int t = 0; t < options->temperatures.count; t++)
        for (int a = 0; a < options->accepts.count; a++)
            if (is_another(options, t, a) && (is_first++ == 0 || options->batch_everywhere))
                add_batches(plan, options->temperatures.value[t], &options->accepts.rule[a], &few);
    if (options->shape != TREE_CHAIN && !has_numbers(&options->draft_lengths)) {
        log_error("--draft-lengths has auto alone, and of a tree no length is chosen; expected numbers");
        return STATUS_USAGE;
    }
    if (plan->cells == 0) {
        log_error("none of --accepts decides about the shape of drafts that --tree or --draft asks for at any of --temperatures; expected others");
        return STATUS_USAGE;
    }
    if (plan->cells <= PLAN_MOST_CELLS)
        return STATUS_OK;
    log_error("the lists make %d cells, expected at most %d", plan->cells, PLAN_MOST_CELLS);
    return STATUS_USAGE;
}

static int is_same(const struct rule_asked *one, const struct rule_asked *other)
{
    return one->accept == other->accept && one->number == other->number;
}

/* Do they differ in what drafts alone? */
static int is_like(const struct plan_cell *one, const struct plan_cell *other)
{
    return one->temperature == other->temperature && is_same(&one->rule, &other->rule) && one->sequences == other->sequences;
}

/* Draft lengths of all cells under a solo cell's terms. lengths: [SAMPLING_MAX_DRAFT + 1], set where there are some */
static void find_lengths(const struct plan *plan, const struct plan_cell *solo, char *lengths)
{
    static const int chosen[] = {1, 2, 4, 8};

    memset(lengths, 0, SAMPLING_MAX_DRAFT + 1);
    for (int i = 0; i < plan->cells; i++) {
        const struct plan_cell *cell = &plan->cell[i];

        if (!is_like(cell, solo))
            continue;
        for (size_t c = 0; cell->draft_length == PLAN_AUTO && c < sizeof chosen / sizeof *chosen; c++)
            lengths[chosen[c]] = 1;
        if (cell->draft_length >= 0 && cell->draft_length <= SAMPLING_MAX_DRAFT)
            lengths[cell->draft_length] = 1;
    }
}

/* Is an earlier solo cell under the same terms, as where a list has a value twice? */
static int is_known(const struct plan *plan, int at)
{
    for (int i = 0; i < at; i++)
        if (plan->cell[i].solo && is_like(&plan->cell[i], &plan->cell[at]))
            return 1;
    return 0;
}

void plan_calibration(const struct plan *plan, struct plan *calibration)
{
    enum { REPETITIONS = 3, TOKENS = 64, FULL_ROUNDS = 16 };

    *calibration = (struct plan){.options = plan->options};
    calibration->options.repetitions = REPETITIONS;
    calibration->options.extra_s = 0;
    calibration->options.fill = 1;
    calibration->options.max_tokens = TOKENS;
    for (int i = 0; i < plan->cells; i++) /* a round has all of its rows while so many tokens are left */
        if (plan->cell[i].draft_length + FULL_ROUNDS > calibration->options.max_tokens)
            calibration->options.max_tokens = plan->cell[i].draft_length + FULL_ROUNDS;
    for (int i = 0; i < plan->cells; i++) {
        char lengths[SAMPLING_MAX_DRAFT + 1];
        struct plan_cell cell = plan->cell[i];

        if (!cell.solo || is_known(plan, i))
            continue;
        find_lengths(plan, &plan->cell[i], lengths);
        for (int length = 0; length <= SAMPLING_MAX_DRAFT && calibration->cells < PLAN_MOST_CELLS; length++)
            if (lengths[length]) {
                cell.draft_length = length;
                cell.baseline = calibration->cells;
                add(calibration, cell);
            }
    }
}

int plan_prompts(const struct plan *plan, int sequences)
{
    int filled = plan->options.fill * sequences;

    return filled > plan->options.prompts ? filled : plan->options.prompts;
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
        const struct sampling sampling = sampling_of(plan->cell[i].temperature, &plan->cell[i].rule);

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
        char rule[RULE_TEXT];

        rule_write(&cell->rule, rule);
        failed |= json_array_append_new(array, json_pack("{s:b, s:i, s:f, s:s, s:i, s:i}", "solo", cell->solo, "draft_length", cell->draft_length,
                                                         "temperature", cell->temperature, "accept", rule, "sequences", cell->sequences, "baseline",
                                                         cell->baseline));
    }
    return json_text_whole(array, failed);
}

static json_t *pass_of(const struct plan *plan, int at, int repetition, int warm_up)
{
    const struct plan_cell *cell = &plan->cell[at];
    int prompts = plan_prompts(plan, cell->sequences);
    char rule[RULE_TEXT];

    rule_write(&cell->rule, rule);
    return json_pack("{s:i, s:i, s:i, s:b, s:b, s:i, s:f, s:s, s:i, s:i}", "cell", at, "baseline", cell->baseline, "repetition", repetition,
                     "warm_up", warm_up, "solo", cell->solo, "draft_length", cell->draft_length, "temperature", cell->temperature, "accept", rule,
                     "sequences", cell->sequences, "prompts", warm_up ? (prompts + 3) / 4 : prompts);
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
