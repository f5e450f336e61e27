#include "launch/bench/report/compare.h"

#include "common/base/check.h"
#include "common/base/log.h"
#include "launch/bench/report/run_file.h"
#include "launch/bench/report/table.h"
#include <limits.h>
#include <math.h>
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

/* One figure of a cell in both runs; returns 1 where it is worse beyond noise. */
static int compare_figure(struct table *table, const char *placement, const json_t *a, const json_t *b, const char *figure, const char *spread)
{
    double before = field(a, figure), after = field(b, figure), change = before > 0 ? after / before - 1 : 0;
    double bar = compare_bar(field(a, spread), field(a, "repetitions"), field(b, spread), field(b, "repetitions"));
    const char *verdict = change > bar ? "faster" : change < -bar ? "SLOWER" : "";

    if (before <= 0 || after <= 0)
        return 0;
    table_row(table, "%s\t%s\t%s\t%.4g\t%.4g\t%+.1f\t%.1f\t%s", placement, text(a, "name"), figure, before, after, 100 * change, 100 * bar, verdict);
    return change < -bar;
}

int compare_summaries(const json_t *a, const json_t *b, FILE *to)
{
    static struct table table;
    const json_t *placement, *cell;
    size_t p, c;
    int worse = 0, alone = 0;

    table_begin(&table, to, TABLE_TEXT, "<placement,<cell,<figure,A,B,change %,noise %,<beyond noise");
    json_array_foreach (json_object_get(a, "placements"), p, placement) {
        const json_t *other = find(json_object_get(b, "placements"), text(placement, "name"));

        json_array_foreach (json_object_get(placement, "cells"), c, cell) {
            const json_t *same = other != NULL ? find(json_object_get(other, "cells"), text(cell, "name")) : NULL;

            alone += same == NULL;
            if (same == NULL)
                continue;
            worse += compare_figure(&table, text(placement, "name"), cell, same, "output_throughput", "output_throughput_spread");
            if (!json_is_true(json_object_get(cell, "solo")))
                worse += compare_figure(&table, text(placement, "name"), cell, same, "speedup", "speedup_spread");
        }
    }
    table_end(&table);
    if (alone > 0)
        fprintf(to, "%d cells of A are not in B.\n", alone);
    return worse;
}

/* What should be the same where two runs are compared, and is not. */
static void write_differences(const json_t *a, const json_t *b, FILE *to)
{
    static const char *const keys[] = {"lossless", "synthetic_acceptance", "requests", "max_tokens"};
    static const char *const of_machine[] = {"processor", "host", "cores"};
    const json_t *here = json_object_get(a, "machine"), *there = json_object_get(b, "machine");

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!json_equal(json_object_get(a, keys[i]), json_object_get(b, keys[i])))
            fprintf(to, "The runs differ in %s.\n", keys[i]);
    for (size_t i = 0; i < sizeof of_machine / sizeof *of_machine; i++)
        if (!json_equal(json_object_get(here, of_machine[i]), json_object_get(there, of_machine[i])))
            fprintf(to, "The machines differ in %s.\n", of_machine[i]);
    if (json_is_false(json_object_get(a, "lossless")) || json_is_false(json_object_get(b, "lossless")))
        fprintf(to, "NOT LOSSLESS: verdicts were drawn (--synthetic-acceptance).\n");
}

static enum status read_summary(const char *folder, json_t **summary)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%.4000s/summary.json", folder);
    TRY(run_read_json(path, 0, summary));
    if (json_is_array(json_object_get(*summary, "placements")))
        return STATUS_OK;
    log_error("%s: it has no placements, expected a summary of tandem bench", path);
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
