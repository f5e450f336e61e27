#include "launch/bench/report/set.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "launch/bench/report/run_file.h"
#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* -1 where it is null or not there. */
static double known(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_number(value) ? json_number_value(value) : -1;
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value != NULL ? value : "-";
}

int set_is_one(const char *folder)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%.4000s/set.json", folder);
    return access(path, F_OK) == 0;
}

enum status set_open(const char *folder, struct set *set)
{
    char path[PATH_MAX];
    json_t *parts;
    int wrong = 0;

    snprintf(path, sizeof path, "%.4000s/set.json", folder);
    TRY(run_read_json(path, 0, &set->json));
    parts = json_object_get(set->json, "parts");
    set->parts = (int)json_array_size(parts);
    for (int i = 0; i < set->parts; i++) {
        const char *part = json_string_value(json_array_get(parts, (size_t)i));

        wrong |= part == NULL || part[0] == '.' || strchr(part, '/') != NULL;
    }
    if (set->parts > 0 && set->parts <= SET_MOST_PARTS && !wrong)
        return STATUS_OK;
    log_error("%s: expected 1 to %d parts, each the name of a folder beside it", path, SET_MOST_PARTS);
    set->parts = 0;
    return STATUS_DATA;
}

const char *set_part(const struct set *set, int part)
{
    return json_string_value(json_array_get(json_object_get(set->json, "parts"), (size_t)part));
}

static int is_drafted(const json_t *cell)
{
    return !json_is_true(json_object_get(cell, "solo")) && json_is_string(json_object_get(cell, "accept"));
}

static const char *task_of(const struct set *set, int part)
{
    return json_is_string(json_object_get(set->summary[part], "task")) ? text(set->summary[part], "task") : "completion";
}

/* The row of these terms, a new one where there is none; NULL: there are too many. */
static struct set_row *row_of(struct set *set, int part, const json_t *cell)
{
    const char *accept = text(cell, "accept"), *folder = set_part(set, part);
    const json_t *draft = json_object_get(set->summary[part], "draft");

    for (int i = 0; i < set->rows; i++)
        if (set->row[i].folder == folder && set->row[i].temperature == number(cell, "temperature") && strcmp(set->row[i].accept, accept) == 0)
            return &set->row[i];
    if (set->rows == SET_MOST_ROWS)
        return NULL;
    set->row[set->rows] = (struct set_row){.folder = folder,
                                           .task = task_of(set, part),
                                           .tree = json_string_value(json_object_get(set->summary[part], "tree")),
                                           .draft = text(draft, "path"),
                                           .accept = accept,
                                           .temperature = number(cell, "temperature")};
    return &set->row[set->rows++];
}

static double solo_speed(const json_t *cells, const json_t *like)
{
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *cell = json_array_get(cells, i);

        if (json_is_true(json_object_get(cell, "solo")) && number(cell, "max_concurrency") == 1 &&
            number(cell, "temperature") == number(like, "temperature") && strcmp(text(cell, "accept"), text(like, "accept")) == 0)
            return number(cell, "output_throughput");
    }
    return 0;
}

static void add_shape(struct set *set, int part, const json_t *cell)
{
    const char *tree = json_string_value(json_object_get(set->summary[part], "tree"));

    set->has_trees |= tree != NULL;
    if (set->shapes < SET_MOST_SHAPES)
        set->shape[set->shapes++] = (struct set_shape){.task = task_of(set, part),
                                                       .draft = text(json_object_get(set->summary[part], "draft"), "path"),
                                                       .tree = tree != NULL ? tree : "chain",
                                                       .accept = text(cell, "accept"),
                                                       .temperature = number(cell, "temperature"),
                                                       .tokens_per_round = number(cell, "tokens_per_round"),
                                                       .speed = number(cell, "speedup"),
                                                       .tokens_per_second = number(cell, "output_throughput"),
                                                       .part = part,
                                                       .drafts = (int)number(cell, "draft_length"),
                                                       .noisy = json_is_true(json_object_get(cell, "beyond_noise_limit"))};
}

static int compare_shapes(const void *one, const void *other)
{
    const struct set_shape *a = one, *b = other;
    int by = strcmp(a->task, b->task);

    by = by != 0 ? by : strcmp(a->draft, b->draft);
    by = by != 0 ? by : (a->temperature > b->temperature) - (a->temperature < b->temperature);
    by = by != 0 ? by : strcmp(a->accept, b->accept);
    by = by != 0 ? by : a->drafts - b->drafts;
    return by != 0 ? by : a->part - b->part;
}

static void take_cell(struct set *set, int part, const json_t *cells, const json_t *cell)
{
    const json_t *theory = json_object_get(cell, "theory"), *before = json_object_get(cell, "predicted_before");
    struct set_row *row;

    if (!is_drafted(cell))
        return;
    if (before != NULL) {
        set->cells++;
        set->near += fabs(number(before, "measured_over_predicted") - 1) <= 0.1;
    }
    if (number(cell, "max_concurrency") != 1 || !json_is_integer(json_object_get(cell, "draft_length")) || number(cell, "draft_length") < 1)
        return;
    add_shape(set, part, cell);
    row = row_of(set, part, cell);
    if (row == NULL || number(cell, "speedup") <= row->speed)
        return;
    row->gamma = (int)number(cell, "draft_length");
    row->alpha = known(theory, "alpha");
    row->offline = known(before, "alpha");
    row->distance = known(theory, "d_lk");
    row->c = known(theory, "c");
    row->is_tree = row->tree != NULL && strcmp(row->tree, "chain") != 0;
    row->expected = row->is_tree ? -1 : known(theory, "theorem_3_8_improvement");
    row->predicted = number(before, "speedup");
    row->speed = number(cell, "speedup");
    row->tokens_per_second = number(cell, "output_throughput");
    row->tokens_per_round = number(cell, "tokens_per_round");
    row->solo = solo_speed(cells, cell);
    row->noisy = json_is_true(json_object_get(cell, "beyond_noise_limit"));
}

enum status set_read(const char *folder, struct set *set)
{
    char path[PATH_MAX];

    for (int i = 0; i < set->parts; i++) {
        const json_t *cells;

        snprintf(path, sizeof path, "%.3000s/%.200s/summary.json", folder, set_part(set, i));
        TRY(run_read_json(path, 0, &set->summary[i]));
        cells = json_object_get(json_array_get(json_object_get(set->summary[i], "placements"), 0), "cells");
        for (size_t at = 0; at < json_array_size(cells); at++)
            take_cell(set, i, cells, json_array_get(cells, at));
    }
    qsort(set->shape, (size_t)set->shapes, sizeof *set->shape, compare_shapes);
    return STATUS_OK;
}

void set_release(struct set *set)
{
    for (int i = 0; i < set->parts; i++)
        json_decref(set->summary[i]);
    json_decref(set->json);
    memset(set, 0, sizeof *set);
}
