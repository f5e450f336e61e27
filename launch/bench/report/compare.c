#include "launch/bench/report/compare.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "launch/bench/report/run_file.h"
#include "launch/bench/report/table.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double field(const json_t *cell, const char *key)
{
    return json_number_value(json_object_get(cell, key));
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value != NULL ? value : "";
}

/* The square of a median's standard error. */
static double variance(double spread, double repetitions)
{
    return 1.2533 * 1.2533 * spread * spread / (repetitions > 1 ? repetitions : 1);
}

double compare_bar(double spread_a, double repetitions_a, double spread_b, double repetitions_b)
{
    double bar = 3 * sqrt(variance(spread_a, repetitions_a) + variance(spread_b, repetitions_b));

    return bar > 0.01 ? bar : 0.01;
}

static const json_t *find(const json_t *list, const char *name)
{
    const json_t *found;
    size_t at;

    json_array_foreach ((json_t *)(uintptr_t)list, at, found)
        if (strcmp(text(found, "name"), name) == 0)
            return found;
    return NULL;
}

/* The change of a figure of a cell from run a to run b, and from where on it counts. 0 where one of them has none. */
static int change_of(const json_t *a, const json_t *b, const char *figure, const char *spread, double *change, double *bar)
{
    double before = field(a, figure), after = field(b, figure);

    if (before <= 0 || after <= 0)
        return 0;
    *change = after / before - 1;
    *bar = compare_bar(field(a, spread), field(a, "repetitions"), field(b, spread), field(b, "repetitions"));
    return 1;
}

/* One figure of a cell in both runs; returns 1 where it is worse beyond noise. Only one that has a verdict is called faster or slower. */
static int compare_figure(struct table *table, const char *placement, const json_t *a, const json_t *b, const char *figure, const char *spread,
                          int has_verdict)
{
    double change, bar;
    int worse, better;

    if (!change_of(a, b, figure, spread, &change, &bar))
        return 0;
    worse = has_verdict && change < -bar;
    better = has_verdict && change > bar;
    table_row(table, "%s\t%s\t%s\t%.4g\t%.4g\t%+.1f\t%.1f\t%s", placement, text(a, "name"), figure, field(a, figure), field(b, figure), 100 * change,
              100 * bar, better ? "faster" : worse ? "SLOWER" : has_verdict ? "" : "by speedup");
    return worse;
}

/* Drafts touch nothing of solo decoding: where it changed, the machine, the target or the prompts did, and the speeds of cells with drafts changed
 * with it. 1 where it did beyond noise. */
static int control_moved(const json_t *placement, const json_t *other, FILE *to)
{
    const json_t *cell;
    size_t c;
    int moved = 0;

    json_array_foreach (json_object_get(placement, "cells"), c, cell) {
        const json_t *same = other != NULL ? find(json_object_get(other, "cells"), text(cell, "name")) : NULL;
        double change, bar;

        if (same == NULL || !json_is_true(json_object_get(cell, "solo")) ||
            !change_of(cell, same, "output_throughput", "output_throughput_spread", &change, &bar) || fabs(change) <= bar)
            continue;
        fprintf(to, "Control: %s, %s, changed by %+.1f %% (noise %.1f): cells with drafts are compared by their speedup over it.\n",
                text(placement, "name"), text(cell, "name"), 100 * change, 100 * bar);
        moved = 1;
    }
    return moved;
}

static int is_solo(const json_t *cell)
{
    return json_is_true(json_object_get(cell, "solo"));
}

int compare_summaries(const json_t *a, const json_t *b, FILE *to)
{
    static struct table table;
    int moved[RUN_MOST_PLACEMENTS] = {0}, worse = 0, alone = 0;
    const json_t *placement, *cell;
    size_t p, c;

    json_array_foreach (json_object_get(a, "placements"), p, placement)
        if (p < RUN_MOST_PLACEMENTS)
            moved[p] = control_moved(placement, find(json_object_get(b, "placements"), text(placement, "name")), to);
    table_begin(&table, to, TABLE_TEXT, "<placement,<cell,<figure,A,B,change %,noise %,<beyond noise");
    json_array_foreach (json_object_get(a, "placements"), p, placement) {
        const json_t *other = find(json_object_get(b, "placements"), text(placement, "name"));

        json_array_foreach (json_object_get(placement, "cells"), c, cell) {
            const json_t *same = other != NULL ? find(json_object_get(other, "cells"), text(cell, "name")) : NULL;
            int has_verdict = is_solo(cell) || p >= RUN_MOST_PLACEMENTS || !moved[p];

            alone += same == NULL;
            if (same == NULL)
                continue;
            worse += compare_figure(&table, text(placement, "name"), cell, same, "output_throughput", "output_throughput_spread", has_verdict);
            if (!is_solo(cell))
                worse += compare_figure(&table, text(placement, "name"), cell, same, "speedup", "speedup_spread", 1);
        }
    }
    table_end(&table);
    if (alone > 0)
        fprintf(to, "%d cells of A are not in B.\n", alone);
    return worse;
}

/* A value as a line of text has it. */
static void write_value(const json_t *value, FILE *to)
{
    char *text = value != NULL ? json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6)) : NULL;

    fputs(text != NULL ? text : "nothing", to);
    free(text);
}

static int write_difference(const char *what, const json_t *a, const json_t *b, FILE *to)
{
    if (json_equal(a, b) || (a == NULL && b == NULL))
        return 0;
    fprintf(to, "  %-24s A ", what);
    write_value(a, to);
    fputs(", B ", to);
    write_value(b, to);
    fputc('\n', to);
    return 1;
}

/* What should be the same where two runs are compared, and is not: so many. */
static int write_differences_of(const json_t *a, const json_t *b, FILE *to)
{
    static const struct {
        const char *object, *key, *what; /* object NULL: of the summary itself */
    } values[] = {{NULL, "tandem", "tandem"},
                  {"machine", "git", "source"},
                  {"machine", "processor", "processor"},
                  {"machine", "host", "host"},
                  {"machine", "cores", "cores"},
                  {"machine", "driver", "driver"},
                  {"target", "path", "target"},
                  {"target", "parameters", "target's parameters"},
                  {"target", "context", "context"},
                  {"draft", "path", "draft"},
                  {"draft", "parameters", "draft's parameters"},
                  {NULL, "requests", "prompts"},
                  {NULL, "max_tokens", "max_tokens"},
                  {NULL, "repetitions", "repetitions"},
                  {NULL, "lossless", "lossless"},
                  {NULL, "synthetic_acceptance", "synthetic_acceptance"},
                  {NULL, "lenience", "lenience"},
                  {NULL, "threshold", "threshold"}};
    const json_t *placement;
    int differences = 0;
    size_t p;

    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const json_t *here = values[i].object != NULL ? json_object_get(a, values[i].object) : a;
        const json_t *there = values[i].object != NULL ? json_object_get(b, values[i].object) : b;

        differences += write_difference(values[i].what, json_object_get(here, values[i].key), json_object_get(there, values[i].key), to);
    }
    json_array_foreach (json_object_get(a, "placements"), p, placement) {
        const json_t *other = find(json_object_get(b, "placements"), text(placement, "name"));
        size_t here = json_array_size(json_object_get(placement, "ranks")), there = json_array_size(json_object_get(other, "ranks"));

        if (other != NULL && here != there)
            differences += fprintf(to, "  %-24s A %zu, B %zu\n", "ranks", here, there) > 0;
        if (other != NULL)
            differences += write_difference("group", json_object_get(placement, "group"), json_object_get(other, "group"), to);
    }
    return differences;
}

static void write_differences(const json_t *a, const json_t *b, FILE *to)
{
    char loss[RUN_LOSS];

    fputs("What differs in configuration:\n", to);
    if (write_differences_of(a, b, to) == 0)
        fputs("  nothing\n", to);
    if (*run_loss(a, loss) != '\0' || *run_loss(b, loss) != '\0')
        fprintf(to, "NOT LOSSLESS: %s.\n", loss);
    fputc('\n', to);
}

static enum status read_summary(const char *folder, json_t **summary)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%.4000s/summary.json", folder);
    TRY(run_read_json(path, 0, summary));
    if (json_is_array(json_object_get(*summary, "placements")))
        return STATUS_OK;
    log_error("%s: %s", path,
              json_is_array(json_object_get(*summary, "rows")) ? "it is of several tasks, drafts or shapes, expected the folder of one of its parts"
                                                               : "it has no placements, expected a summary of tandem bench");
    json_decref(*summary);
    return STATUS_DATA;
}

enum status compare_runs(const char *a, const char *b, FILE *to, int *code)
{
    json_t *before, *after;
    enum status status;
    int worse;

    TRY(read_summary(a, &before));
    status = read_summary(b, &after);
    if (status == STATUS_OK) {
        fprintf(to, "A %s (%s), B %s (%s)\n\n", a, text(before, "date"), b, text(after, "date"));
        write_differences(before, after, to);
        worse = compare_summaries(before, after, to);
        fprintf(to, worse > 0 ? "%d figures of B are worse beyond noise.\n" : "No figure of B is worse beyond noise.\n", worse);
        *code = worse > 0;
        json_decref(after);
    }
    json_decref(before);
    return status;
}
