#include "verifier/job/times.h"

#include "common/base/log.h"
#include "common/base/new_file.h"
#include "common/base/plain_file.h"
#include "common/file/json_text.h"
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES = 256 << 10, DEPTH = 8, VALUES = TIMES_MOST * 4 * (ADAPTIVE_KNOTS + 8), MOST_ROWS = 1 << 16 };
#define LONGEST_US  1e9
#define SHORTEST_US 1e-3 /* so that one time over another is a number */

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
static int is_of(const json_t *entry, const json_t *name)
{
    return name != NULL && json_equal(json_object_get(entry, "of"), name);
}

/* A time; 0 where it is none. */
static double number(const json_t *value)
{
    double x = json_number_value(value);

    return x >= SHORTEST_US && x < LONGEST_US ? x : 0;
}

/* [rows, us]. Returns the rows, or 0 where it is something else. */
static int take_pair(const json_t *pair, double *us)
{
    double n = json_number_value(json_array_get(pair, 0));

    *us = number(json_array_get(pair, 1));
    return n >= 1 && n <= MOST_ROWS && *us > 0 ? (int)n : 0;
}

static int take(const json_t *entry, struct adaptive_times *times)
{
    const json_t *steps = json_object_get(entry, "step_us");

    *times = (struct adaptive_times){0};
    for (size_t i = 0; i < json_array_size(steps); i++) {
        double us;
        int rows = take_pair(json_array_get(steps, i), &us);

        if (rows == 0)
            return 0;
        times->us[adaptive_work_knot(rows)] = us;
    }
    return times->us[0] > 0;
}

void times_read(const char *path, const char *of, struct adaptive_times *times)
{
    json_t *list = read_list(path), *name = json_text_string(of);
    int taken = 0;

    for (size_t i = 0; !taken && i < json_array_size(list); i++)
        taken = is_of(json_array_get(list, i), name) && take(json_array_get(list, i), times);
    if (!taken)
        *times = (struct adaptive_times){0};
    json_decref(name);
    json_decref(list);
}

/* name: borrowed */
static json_t *entry_of(json_t *name, const struct adaptive_times *times)
{
    json_t *steps = json_array();
    int failed = steps == NULL;

    for (int i = 0; i < ADAPTIVE_KNOTS; i++)
        if (times->us[i] > 0)
            failed |= json_array_append_new(steps, json_pack("[i, f]", adaptive_work_knot_rows(i), times->us[i]));
    return json_pack("{s:O, s:o}", "of", name, "step_us", json_text_whole(steps, failed));
}

/* This kind first, and behind it what there was of others. */
static json_t *list_with(json_t *before, const char *of, const struct adaptive_times *times)
{
    json_t *list = json_array(), *name = json_text_string(of);
    int failed = json_array_append_new(list, entry_of(name, times));

    for (size_t i = 0; i < json_array_size(before) && json_array_size(list) < TIMES_MOST; i++)
        if (json_is_object(json_array_get(before, i)) && !is_of(json_array_get(before, i), name))
            failed |= json_array_append(list, json_array_get(before, i));
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

void times_write(const char *path, const char *of, const struct adaptive_times *times)
{
    json_t *before = read_list(path), *list = list_with(before, of, times);
    char *text = json_text_write(list, JSON_REAL_PRECISION(6));

    make_folder(path);
    if (text == NULL || !replace(path, text))
        log_debug("%s: what steps took is not kept: %s", path, strerror(errno));
    free(text);
    json_decref(list);
    json_decref(before);
}
