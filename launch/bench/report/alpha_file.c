#include "launch/bench/report/alpha_file.h"

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/try.h"
#include "launch/bench/report/run_file.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MOST_US 1e11

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static double mean(const json_t *share)
{
    return number(share, "mean");
}

static int is_time(const json_t *us)
{
    return us == NULL || (json_number_value(us) >= 0 && json_number_value(us) <= MOST_US);
}

static int has_times(const json_t *draft)
{
    const json_t *steps = json_object_get(draft, "step_us");
    int has = is_time(json_object_get(draft, "choose_us"));

    for (size_t i = 0; i < json_array_size(steps); i++)
        has = has && is_time(json_object_get(json_array_get(steps, i), "us"));
    return has;
}

/* What is read of a draft is there, a probability is one, and a time is none of days. */
static const char *fault_of(const json_t *draft)
{
    static const char *const lists[] = {"accepted_at_place", "guessed_after_rejection", "guessed_after_all", "step_us"};

    if (!json_is_string(json_object_get(draft, "draft")))
        return "a draft without a name";
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (!json_is_array(json_object_get(draft, lists[i])))
            return "a draft lacks accepted_at_place, guessed_after_rejection, guessed_after_all or step_us";
    if (!(number(draft, "alpha") >= 0 && number(draft, "alpha") <= 1 && mean(json_object_get(draft, "proposals")) <= 1))
        return "an alpha that is no probability";
    if (!has_times(draft))
        return "a time that is none";
    return NULL;
}

enum status alpha_file_read(const char *path, json_t **json)
{
    const char *fault = NULL;
    size_t at;
    json_t *drafts, *draft;

    TRY(run_read_json(path, 0, json));
    drafts = json_object_get(*json, "drafts");
    if (!json_is_string(json_object_get(*json, "target")) || !json_is_string(json_object_get(*json, "accept")) ||
        !json_is_number(json_object_get(*json, "temperature")) || json_array_size(drafts) == 0)
        fault = "there is no target, temperature, accept or draft";
    json_array_foreach(drafts, at, draft) fault = fault != NULL ? fault : fault_of(draft);
    if (fault == NULL)
        return STATUS_OK;
    log_error("%s: %s, expected what tandem alpha --json writes", path, fault);
    json_decref(*json);
    *json = NULL;
    return STATUS_DATA;
}

/* Where a model lies: its path, or what `tandem fetch` made of its name. Is there something?  file: [PATH_MAX] */
static int find_file(const char *model, char *file)
{
    char path[PATH_MAX];

    return paths_model(model, path, sizeof path) && realpath(path, file) != NULL;
}

/* The same name, or another one of the same file: a bench knows a fetched model by its path. */
static int is_same(const char *a, const char *b)
{
    char one[PATH_MAX], other[PATH_MAX];

    return strcmp(a, b) == 0 || (find_file(a, one) && find_file(b, other) && strcmp(one, other) == 0);
}

static const json_t *find(const json_t *json, const char *draft)
{
    size_t at;
    json_t *each;

    json_array_foreach(json_object_get(json, "drafts"), at, each) if (is_same(json_string_value(json_object_get(each, "draft")), draft)) return each;
    return NULL;
}

enum status alpha_file_check(const char *path, const json_t *json, const char *target, const char *draft)
{
    const char *own = json_string_value(json_object_get(json, "target"));

    if (!is_same(own, target)) {
        log_error("--alpha %s is of the target '%s', expected one of '%s'", path, own, target);
        return STATUS_USAGE;
    }
    if (find(json, draft) != NULL)
        return STATUS_OK;
    log_error("--alpha %s says nothing of the draft '%s'", path, draft);
    return STATUS_USAGE;
}

int alpha_file_is_of(const json_t *json, double temperature, const char *accept)
{
    const char *own = json_string_value(json_object_get(json, "accept"));

    return number(json, "temperature") == temperature && strcmp(run_rule_word(temperature, own), run_rule_word(temperature, accept)) == 0;
}

/* A place that no text came to is as the one before it. */
static void read_places(const json_t *list, struct forecast_draft *figures)
{
    double last = figures->alpha;

    for (size_t k = 0; k < FORECAST_PLACES; k++) {
        const json_t *share = json_object_get(json_array_get(list, k), "mean");

        last = json_is_number(share) && json_number_value(share) >= 0 && json_number_value(share) <= 1 ? json_number_value(share) : last;
        figures->place[k] = last;
    }
}

int alpha_file_draft(const json_t *json, const char *draft, struct forecast_draft *figures)
{
    const json_t *from = find(json, draft), *steps = json_object_get(from, "step_us");

    *figures = (struct forecast_draft){0};
    if (from == NULL)
        return 0;
    figures->alpha = number(from, "alpha");
    figures->overlap = 1 - number(from, "divergence");
    figures->proposals = mean(json_object_get(from, "proposals"));
    figures->support = number(from, "support");
    figures->choose_us = number(from, "choose_us");
    read_places(json_object_get(from, "accepted_at_place"), figures);
    for (size_t n = 0; n < FORECAST_GUESSES; n++) {
        figures->corrected[n] = json_number_value(json_array_get(json_object_get(from, "guessed_after_rejection"), n));
        figures->bonus[n] = json_number_value(json_array_get(json_object_get(from, "guessed_after_all"), n));
    }
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);

        if (number(step, "us") > 0 && (figures->step.count == 0 || number(step, "rows") > figures->step.x[figures->step.count - 1]))
            forecast_line_add(&figures->step, number(step, "rows"), number(step, "us"));
    }
    return 1;
}
