/* The pages of a set: tables as the paper has them, once for both forms. */
#include "launch/bench/report/charts.h"
#include "launch/bench/report/page_html.h"
#include "launch/bench/report/set.h"
#include "launch/bench/report/theory.h"
#include <string.h>

static const char how[] =
    "Every task is measured with every draft in every shape, each in a folder of its own with a whole report. Mq is what drafts, as the paper calls "
    "it. gamma is the fixed draft length that was fastest for one sequence; alpha is counted there: accepted drafts over tested ones.";
static const char why_1[] =
    "Factors of arithmetic operations and of speed by theorems 3.11 and 3.8 at c = 0 and c_hat = 0, as the paper has them, for each alpha.";
static const char why_2[] =
    "What was measured. `~` marks a speed whose standard error is beyond the limit. Speed is the median over repetitions of a pass's speed over that "
    "of the target alone in the same repetition; tokens/s and alone are medians by themselves, so their quotient may be another.";
static const char why_3[] = "Counted in the job; offline, on the other prompts, with nothing drafted (tandem alpha); and D_LK = 1 - sum min(p, q).";
static const char why_shapes[] = "Tokens per round do not depend on the machine, speed does. Speed is over the target alone in turns with it; parts "
                                 "are measured one after another, so "
                                 "speed is what compares, not tokens/s. One sequence.";
static const char why_4[] =
    "Expected is theorem 3.8 with the measured alpha and c; predicted was said before anything was drafted; empirical was measured.";

static const char *short_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

enum { DRAFT_NAME = 160 };

/* A draft, and its shape where one was named. */
static const char *draft_name(const struct set_row *row, char *name)
{
    snprintf(name, DRAFT_NAME, "%.100s%s%.40s", short_name(row->draft), row->tree != NULL ? ", " : "", row->tree != NULL ? row->tree : "");
    return name;
}

static void heading(enum table_form form, const char *title, const char *below, FILE *to)
{
    fprintf(to, form == TABLE_TEXT ? "## %s\n\n%s\n\n" : "<h3>%s</h3>\n<p>%s</p>\n", title, below);
}

static void table_1(const struct set *set, struct table *table, enum table_form form, FILE *to)
{
    static const int gammas[] = {2, 3, 5, 10};

    heading(form, "Table 1: operations and speed by alpha", why_1, to);
    table_begin(table, to, form,
                "<task,<Mq,temp,<accept,alpha,operations 2,speed 2,operations 3,speed 3,operations 5,speed 5,operations 10,speed 10");
    for (int i = 0; i < set->rows; i++) {
        const struct set_row *row = &set->row[i];
        char factors[256] = "", draft[DRAFT_NAME];
        size_t used = 0;

        if (row->alpha < 0 || row->alpha > 1 || row->is_tree) /* not known, or of a file that was changed, or of no chain */
            continue;
        for (size_t g = 0; g < sizeof gammas / sizeof *gammas; g++)
            used += (size_t)snprintf(factors + used, sizeof factors - used, "\t%.2fX\t%.2fX", theory_operations(row->alpha, gammas[g], 0),
                                     theory_improvement(row->alpha, gammas[g], 0));
        table_row(table, "%s\t%s\t%g\t%s\t%.2f%s", row->task, draft_name(row, draft), row->temperature, run_rule_word(row->temperature, row->accept),
                  row->alpha, factors);
    }
    table_end(table);
}

/* Empty where it is not known. */
static const char *figure(double value, const char *format, char *text, size_t size)
{
    text[0] = '\0';
    if (value >= 0)
        snprintf(text, size, format, value);
    return text;
}

static void table_2(const struct set *set, struct table *table, enum table_form form, FILE *to)
{
    heading(form, "Table 2: speed by task, draft and temperature", why_2, to);
    table_begin(table, to, form, "<task,<Mq,temp,<accept,gamma,alpha,speed,tokens/s,alone");
    for (int i = 0; i < set->rows; i++) {
        const struct set_row *row = &set->row[i];
        char draft[DRAFT_NAME], alpha[32];

        table_row(table, "%s\t%s\t%g\t%s\t%d\t%s\t%s%.2fX\t%.0f\t%.0f", row->task, draft_name(row, draft), row->temperature,
                  run_rule_word(row->temperature, row->accept), row->gamma, figure(row->alpha, "%.2f", alpha, sizeof alpha), row->noisy ? "~" : "",
                  row->speed, row->tokens_per_second, row->solo);
    }
    table_end(table);
}

static void table_3(const struct set *set, struct table *table, enum table_form form, FILE *to)
{
    heading(form, "Table 3: alpha", why_3, to);
    table_begin(table, to, form, "<task,<Mq,temp,<accept,counted,offline,D_LK");
    for (int i = 0; i < set->rows; i++) {
        const struct set_row *row = &set->row[i];
        char counted[32], offline[32], distance[32], draft[DRAFT_NAME];

        table_row(table, "%s\t%s\t%g\t%s\t%s\t%s\t%s", row->task, draft_name(row, draft), row->temperature,
                  run_rule_word(row->temperature, row->accept), figure(row->alpha, "%.3f", counted, sizeof counted),
                  figure(row->offline, "%.3f", offline, sizeof offline), figure(row->distance, "%.3f", distance, sizeof distance));
    }
    table_end(table);
}

static void table_4(const struct set *set, struct table *table, enum table_form form, FILE *to)
{
    heading(form, "Table 4: expected and empirical speed", why_4, to);
    table_begin(table, to, form, "<task,<Mq,temp,<accept,gamma,alpha,c,expected,predicted,empirical,empirical / expected,empirical / predicted");
    for (int i = 0; i < set->rows; i++) {
        const struct set_row *row = &set->row[i];
        char alpha[32], c[32], expected[32], predicted[32], over[2][32], draft[DRAFT_NAME];

        table_row(table, "%s\t%s\t%g\t%s\t%d\t%s\t%s\t%s\t%s\t%.2fX\t%s\t%s", row->task, draft_name(row, draft), row->temperature,
                  run_rule_word(row->temperature, row->accept), row->gamma, figure(row->alpha, "%.2f", alpha, sizeof alpha),
                  figure(row->c, "%.3f", c, sizeof c), figure(row->expected, "%.2fX", expected, sizeof expected),
                  figure(row->predicted > 0 ? row->predicted : -1, "%.2fX", predicted, sizeof predicted), row->speed,
                  figure(row->expected > 0 ? row->speed / row->expected : -1, "%.2f", over[0], sizeof over[0]),
                  figure(row->predicted > 0 ? row->speed / row->predicted : -1, "%.2f", over[1], sizeof over[1]));
    }
    table_end(table);
}

static void table_of_shapes(const struct set *set, struct table *table, enum table_form form, FILE *to)
{
    heading(form, "Shapes: tokens per round at equal numbers of drafts", why_shapes, to);
    table_begin(table, to, form, "<task,<Mq,temp,<accept,drafts,<shape,tokens per round,speed,tokens/s");
    for (int i = 0; i < set->shapes; i++) {
        const struct set_shape *shape = &set->shape[i];

        table_row(table, "%s\t%s\t%g\t%s\t%d\t%s\t%.2f\t%s%.2fX\t%.0f", shape->task, short_name(shape->draft), shape->temperature,
                  run_rule_word(shape->temperature, shape->accept), shape->drafts, shape->tree, shape->tokens_per_round, shape->noisy ? "~" : "",
                  shape->speed, shape->tokens_per_second);
    }
    table_end(table);
}

void set_write_tables(const struct set *set, enum table_form form, FILE *to)
{
    static struct table table;

    table_2(set, &table, form, to);
    if (set->has_trees)
        table_of_shapes(set, &table, form, to);
    table_4(set, &table, form, to);
    table_3(set, &table, form, to);
    table_1(set, &table, form, to);
}

static void verdict(const struct set *set, const char *begin, const char *end, FILE *to)
{
    if (set->cells > 0)
        fprintf(to,
                "%sPredicted before any draft was made: tokens/s within 10 %% for %d of %d cells with drafts of all parts (%.0f %%); the report of a "
                "part says which assumption failed where it is off.%s",
                begin, set->near, set->cells, 100.0 * set->near / set->cells, end);
}

static const char *word(const struct set *set, const char *key)
{
    const char *value = json_string_value(json_object_get(set->json, key));

    return value != NULL ? value : "-";
}

void set_write_md(const struct set *set, FILE *to)
{
    fprintf(to, "# Speculative decoding, measured: tasks and drafts\n\n    ");
    for (const char *at = word(set, "command"); *at != '\0'; at++)
        fputc((unsigned char)*at < ' ' ? ' ' : *at, to);
    fprintf(to, "\n\n%s\n\n", how);
    verdict(set, "", "\n\n", to);
    set_write_tables(set, TABLE_TEXT, to);
    fprintf(to, "## Parts\n\n");
    for (int i = 0; i < set->parts; i++) {
        fputs("- ", to);
        table_escape(to, set_part(set, i));
        fputs("/report.md\n", to);
    }
}

/* Every row is the fastest of its task, draft, temperature and rule. */
static void draw_theory(const struct set *set, FILE *to)
{
    static struct charts_point points[SET_MOST_ROWS];
    int count = 0;

    for (int i = 0; i < set->rows; i++) {
        const struct set_row *row = &set->row[i];

        if (!row->is_tree && row->alpha >= 0 && row->alpha <= 1 && row->c >= 0)
            points[count++] =
                (struct charts_point){row->alpha, row->tokens_per_round, row->speed, theory_best_gamma(row->alpha, row->c, THEORY_MOST_GAMMA), 1};
    }
    fputs("<div class=\"figures\">\n", to);
    charts_theory(points, count, to);
    fputs("</div>\n", to);
}

void set_write_html(const struct set *set, FILE *to)
{
    page_html_begin("Speculative decoding, measured: tasks and drafts", to);
    fprintf(to, "<h1>Speculative decoding, measured: tasks and drafts</h1>\n<pre>");
    table_escape(to, word(set, "command"));
    fprintf(to, "</pre>\n<p>%s</p>\n", how);
    verdict(set, "<p>", "</p>\n", to);
    draw_theory(set, to);
    set_write_tables(set, TABLE_HTML, to);
    fputs("<h3>Parts</h3>\n<ul>\n", to);
    for (int i = 0; i < set->parts; i++) {
        fputs("<li><a href=\"", to);
        table_escape(to, set_part(set, i));
        fputs("/report.html\">", to);
        table_escape(to, set_part(set, i));
        fputs("</a></li>\n", to);
    }
    fputs("</ul>\n", to);
    page_html_end(to);
}

static json_t *known(double value)
{
    return value >= 0 ? json_real(value) : json_null();
}

void set_write_json(const struct set *set, FILE *to)
{
    json_t *rows = json_array(), *shapes = json_array(), *object;

    for (int i = 0; i < set->rows; i++) {
        const struct set_row *row = &set->row[i];

        json_array_append_new(rows,
                              json_pack("{s:s, s:s, s:s, s:s?, s:s, s:f, s:i, s:o, s:o, s:o, s:o, s:f, s:o, s:o, s:f, s:f, s:b}", "folder",
                                        row->folder, "task", row->task, "draft", row->draft, "tree", row->tree, "accept", row->accept, "temperature",
                                        row->temperature, "gamma", row->gamma, "alpha", known(row->alpha), "alpha_offline", known(row->offline),
                                        "d_lk", known(row->distance), "c", known(row->c), "speedup", row->speed, "theorem_3_8_improvement",
                                        known(row->expected), "predicted_speedup", known(row->predicted > 0 ? row->predicted : -1),
                                        "output_throughput", row->tokens_per_second, "solo_throughput", row->solo, "beyond_noise_limit", row->noisy));
    }
    for (int i = 0; set->has_trees && i < set->shapes; i++) {
        const struct set_shape *shape = &set->shape[i];

        json_array_append_new(shapes, json_pack("{s:s, s:s, s:s, s:s, s:f, s:i, s:f, s:f, s:f, s:b}", "task", shape->task, "draft", shape->draft,
                                                "tree", shape->tree, "accept", shape->accept, "temperature", shape->temperature, "drafts",
                                                shape->drafts, "tokens_per_round", shape->tokens_per_round, "speedup", shape->speed,
                                                "output_throughput", shape->tokens_per_second, "beyond_noise_limit", shape->noisy));
    }
    object = json_pack("{s:i, s:s, s:s, s:i, s:i, s:o, s:o}", "tandem_bench_set", 1, "command", word(set, "command"), "date", word(set, "date"),
                       "predicted_cells", set->cells, "predicted_within_10_percent", set->near, "rows", rows, "shapes", shapes);
    json_dumpf(object, to, JSON_INDENT(1) | JSON_REAL_PRECISION(7));
    fputc('\n', to);
    json_decref(object);
}
