#include "verifier/job/times.h"

#include "common/base/log.h"
#include "common/base/new_file.h"
#include "common/base/plain_file.h"
#include "common/file/json_text.h"
#include "common/sample/sampling.h"
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FILE_BYTES = 1 << 20,
    DEPTH = 8,
    VALUES_OF = 4 * (ADAPTIVE_KNOTS + 8),
    VALUES_BY = 8 * (ADAPTIVE_MOST + 4),
    VALUES = TIMES_MOST * (VALUES_OF + TIMES_BY_MOST * VALUES_BY),
    MOST_ROWS = 1 << 16,
};
#define LONGEST_US  1e9
#define SHORTEST_US 1e-3 /* so that one time over another is a number */
#define LONGEST_REST_US 1e10
#define MOST_VERDICTS   1e6
#define LATEST_S        1e12
#define LEAST_RATIO     0.0625
#define MOST_RATIO      1e3

/* The list in the file; an empty one where there is none, for what the file holds may be lost. NULL without memory. */
static json_t *read_list(const char *path)
{
    static const struct json_text_limits limits = {.depth = DEPTH, .values = VALUES};
    char *text = malloc(FILE_BYTES), fault[JSON_TEXT_FAULT];
    FILE *file = text != NULL ? plain_file_read(path) : NULL;
    size_t size = file != NULL ? fread(text, 1, FILE_BYTES, file) : 0;
    json_t *list = NULL;

    if (file != NULL)
        fclose(file);
    if (size > 0 && json_text_read(text, size, 0, &limits, &list, fault) == STATUS_DATA)
        log_debug("%s: %s; it is written anew", path, fault);
    free(text);
    if (json_is_array(list))
        return list;
    json_decref(list);
    return json_array();
}

/* name: as json_text_string writes it, which escapes what is no text */
static int has(const json_t *entry, const char *key, const json_t *name)
{
    return name != NULL && json_equal(json_object_get(entry, key), name);
}

/* The one of the list that has this name. */
static json_t *find(const json_t *list, const char *key, const json_t *name)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (has(json_array_get(list, i), key, name))
            return json_array_get(list, i);
    return NULL;
}

/* A number that lies within these; 0 where it is none. */
static int within(const json_t *value, double least, double most, double *x)
{
    *x = json_number_value(value);
    return json_is_number(value) && *x >= least && *x <= most;
}

/* [rows, us] of each number of rows. */
static int take_steps(const json_t *entry, struct adaptive_times *times)
{
    const json_t *steps = json_object_get(entry, "step_us");

    *times = (struct adaptive_times){0};
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *of = json_array_get(steps, i);
        double rows, us;

        if (!within(json_array_get(of, 0), 1, MOST_ROWS, &rows) || !within(json_array_get(of, 1), SHORTEST_US, LONGEST_US, &us))
            return 0;
        times->us[adaptive_work_knot((int)rows)] = us;
    }
    return times->us[0] > 0;
}

/* [tested, accepted] of each place of a chain, or [rounds, accepted] of each size of a tree. */
static int take_verdicts(const json_t *list, struct adaptive_tokens *tokens)
{
    size_t places = json_array_size(list);
    int right = places >= 1 && places <= ADAPTIVE_MOST;

    for (size_t i = 0; right && i < places; i++) {
        const json_t *place = json_array_get(list, i);

        right = within(json_array_get(place, 0), 0, MOST_VERDICTS, &tokens->tested[i]) &&
                within(json_array_get(place, 1), 0, SAMPLING_MAX_DRAFT * tokens->tested[i], &tokens->accepted[i]);
    }
    return right;
}

/* [length, rounds, us] of each length that was waited for. */
static int take_waits(const json_t *list, struct adaptive_wait *wait)
{
    int right = json_is_array(list);

    for (size_t i = 0; right && i < json_array_size(list); i++) {
        const json_t *of = json_array_get(list, i);
        double length, rounds, us;

        right = within(json_array_get(of, 0), 1, ADAPTIVE_MOST, &length) && within(json_array_get(of, 1), 1, MOST_VERDICTS, &rounds) &&
                within(json_array_get(of, 2), 0, LONGEST_US, &us);
        if (right) {
            wait->us[(int)length] = us;
            wait->rounds[(int)length] = (int)rounds;
        }
    }
    return right;
}

/* [rows without drafts, rows with, of their times]; an empty list where no round had any. */
static int take_ratio(const json_t *list, struct adaptive_ratio *ratio)
{
    double without, with;

    if (json_is_array(list) && json_array_size(list) == 0)
        return 1;
    if (!within(json_array_get(list, 0), 1, MOST_ROWS, &without) || !within(json_array_get(list, 1), 1, MOST_ROWS, &with) ||
        !within(json_array_get(list, 2), LEAST_RATIO, MOST_RATIO, &ratio->of_time))
        return 0;
    ratio->rows[0] = (int)without;
    ratio->rows[1] = (int)with;
    return 1;
}

static void take_drafts(const json_t *entry, int64_t now_s, struct adaptive_past *past)
{
    double rests, left, meanwhile;

    *past = (struct adaptive_past){0};
    if (take_verdicts(json_object_get(entry, "accepted"), &past->tokens) && take_waits(json_object_get(entry, "wait_us"), &past->wait) &&
        take_ratio(json_object_get(entry, "ratio"), &past->ratio) && within(json_object_get(entry, "rest_us"), 0, LONGEST_REST_US, &past->rest_us) &&
        within(json_object_get(entry, "alone_us"), 0, LONGEST_REST_US, &past->alone_us) &&
        within(json_object_get(entry, "rests"), 0, ADAPTIVE_RESTS, &rests))
        past->rests = (int)rests;
    else
        *past = (struct adaptive_past){0};
    if (!within(json_object_get(entry, "left"), 0, LATEST_S, &left))
        return; /* an earlier version's */
    meanwhile = (double)now_s - left;
    past->alone_us = fmin(past->rest_us, past->alone_us + (meanwhile > 0 ? TIMES_MEANWHILE * 1e6 * meanwhile : 0));
}

void times_read(const char *path, const char *of, const char *by, int64_t now_s, struct times *times)
{
    json_t *list = read_list(path), *name = json_text_string(of), *terms = json_text_string(by);
    const json_t *entry = find(list, "of", name);

    *times = (struct times){0};
    if (take_steps(entry, &times->steps))
        take_drafts(find(json_object_get(entry, "drafts"), "by", terms), now_s, &times->drafts);
    else
        times->steps = (struct adaptive_times){0};
    json_decref(terms);
    json_decref(name);
    json_decref(list);
}

static json_t *steps_of(const struct adaptive_times *times)
{
    json_t *steps = json_array();
    int failed = steps == NULL;

    for (int i = 0; i < ADAPTIVE_KNOTS; i++)
        if (times->us[i] > 0)
            failed |= json_array_append_new(steps, json_pack("[i, f]", adaptive_work_knot_rows(i), times->us[i]));
    return json_text_whole(steps, failed);
}

/* terms: borrowed */
static json_t *drafts_of(json_t *terms, int64_t now_s, const struct adaptive_past *past)
{
    json_t *accepted = json_array(), *waits = json_array();
    json_t *ratio = past->ratio.of_time > 0 ? json_pack("[i, i, f]", past->ratio.rows[0], past->ratio.rows[1], past->ratio.of_time) : json_array();
    int failed = accepted == NULL || waits == NULL, places = ADAPTIVE_MOST;

    while (places > 1 && past->tokens.tested[places - 1] == 0)
        places--;
    for (int i = 0; i < places; i++)
        failed |= json_array_append_new(accepted, json_pack("[f, f]", past->tokens.tested[i], past->tokens.accepted[i]));
    for (int i = 1; i <= ADAPTIVE_MOST; i++)
        if (past->wait.rounds[i] > 0)
            failed |= json_array_append_new(waits, json_pack("[i, i, f]", i, past->wait.rounds[i], past->wait.us[i]));
    return json_text_whole(json_pack("{s:O, s:I, s:o, s:o, s:o, s:f, s:f, s:i}", "by", terms, "left", (json_int_t)now_s, "accepted", accepted,
                                     "wait_us", waits, "ratio", ratio, "rest_us", past->rest_us, "alone_us", past->alone_us, "rests", past->rests),
                           failed);
}

/* Appends what the list has under other names, to `most` entries in all. Returns whether that failed. */
static int append_others(json_t *list, const json_t *before, const char *key, const json_t *name, size_t most)
{
    int failed = 0;

    for (size_t i = 0; i < json_array_size(before) && json_array_size(list) < most; i++)
        if (json_is_object(json_array_get(before, i)) && !has(json_array_get(before, i), key, name))
            failed |= json_array_append(list, json_array_get(before, i));
    return failed;
}

/* before: the kind's own drafts, by all terms */
static json_t *drafts_with(const json_t *before, const char *by, int64_t now_s, const struct adaptive_past *past)
{
    json_t *list = json_array(), *terms = json_text_string(by);
    int is_known = adaptive_tokens_known(&past->tokens) || past->rest_us > 0;
    int failed = is_known && json_array_append_new(list, drafts_of(terms, now_s, past)) != 0;

    failed |= append_others(list, before, "by", is_known ? terms : NULL, TIMES_BY_MOST);
    json_decref(terms);
    return json_text_whole(list, failed);
}

/* This kind first, and behind it what there was of others. */
static json_t *list_with(const json_t *before, const char *of, const char *by, int64_t now_s, const struct times *times)
{
    json_t *list = json_array(), *name = json_text_string(of);
    json_t *drafts = drafts_with(json_object_get(find(before, "of", name), "drafts"), by, now_s, &times->drafts);
    int failed = json_array_append_new(list, json_pack("{s:O, s:o, s:o}", "of", name, "step_us", steps_of(&times->steps), "drafts", drafts));

    failed |= append_others(list, before, "of", name, TIMES_MOST);
    json_decref(name);
    return json_text_whole(list, failed);
}

/* The folder, and the one that it is in, where they are not there yet. */
static void make_folder(const char *path)
{
    char folder[PATH_MAX], above[PATH_MAX];

    snprintf(folder, sizeof folder, "%s", path);
    dirname(folder);
    snprintf(above, sizeof above, "%s", folder);
    (void)!mkdir(dirname(above), 0700);
    (void)!mkdir(folder, 0700);
}

/* Beside the file first, under a name that no other job has, of this host or of another one with the same home. */
static int replace(const char *path, const char *text)
{
    char beside[PATH_MAX], host[64] = "";
    FILE *file;

    (void)gethostname(host, sizeof host - 1);
    if (snprintf(beside, sizeof beside, "%s.%s.%ld", path, host, (long)getpid()) >= (int)sizeof beside)
        return 0;
    file = new_file_open(beside, path, 0600);
    return file != NULL && new_file_put(file, fprintf(file, "%s\n", text) > 0, beside, path);
}

void times_write(const char *path, const char *of, const char *by, int64_t now_s, const struct times *times)
{
    json_t *before = read_list(path), *list = list_with(before, of, by, now_s, times);
    char *text = json_text_write(list, JSON_REAL_PRECISION(6));

    make_folder(path);
    if (text == NULL || !replace(path, text))
        log_debug("%s: what steps took is not kept: %s", path, strerror(errno));
    free(text);
    json_decref(list);
    json_decref(before);
}
