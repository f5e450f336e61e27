#include "verifier/check/check_report.h"

#include "common/base/log.h"
#include "common/base/visible.h"
#include "common/file/json_text.h"
#include "common/sample/rule.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* JSON has no infinity. */
static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *parameters_of(const struct check *check)
{
    const struct options *options = check->job->options;
    const struct sampling *sampling = &options->request.sampling;
    const char *draft = roll_call_draft(check->job->hello, check->job->world.size);
    json_t *object = json_pack("{s:f, s:f, s:i, s:f, s:f, s:f, s:f, s:f}", "temperature", sampling->temperature, "temperature_of_the_law",
                               sampling->temperature > 0 ? sampling->temperature : check->temperature, "top_k", sampling->top_k, "top_p",
                               sampling->top_p, "min_p", sampling->min_p, "repetition_penalty", sampling->repetition_penalty,
                               "presence_penalty", sampling->presence_penalty, "frequency_penalty", sampling->frequency_penalty);

    json_object_set_new(object, "accept_of_equality", json_string(rule_name(check_rule(check, 0))));
    json_object_set_new(object, "accept_of_the_law", json_string(rule_name(check_rule(check, 1))));
    json_object_set_new(object, "seed", json_text_u64(sampling->seed));
    json_object_set_new(object, "support", json_integer(options->rounds.support));
    json_object_set_new(object, "max_sequences", json_integer(options->rounds.max_sequences));
    json_object_set_new(object, "prompts", json_integer(check->prompts));
    json_object_set_new(object, "drafters", json_integer(check->peers->count));
    json_object_set_new(object, "lost_drafters", json_integer(peers_absent(check->peers)));
    json_object_set_new(object, "verifiers", json_integer(check->job->world.verifiers));
    json_object_set_new(object, "target", json_text_string(check->job->target));
    json_object_set_new(object, "draft", draft != NULL ? json_text_string(draft) : json_null());
    return object;
}

static json_t *differences_of(const struct check_equal *equal)
{
    json_t *array = json_array();

    for (int i = 0; i < equal->differences; i++) {
        const struct check_difference *difference = &equal->difference[i];

        json_array_append_new(array, json_pack("{s:i, s:s, s:i, s:i, s:i, s:i, s:[i,i], s:o, s:s*, s:s*}", "prompt", difference->prompt, "mode",
                                               difference->rule, "draft_length", difference->draft_length, "position",
                                               difference->position, "solo", difference->solo, "drafted", difference->drafted, "best",
                                               difference->best[0], difference->best[1], "margin", real(difference->margin), "solo_text",
                                               difference->solo_text, "drafted_text", difference->drafted_text));
    }
    return array;
}

static void put_share(json_t *object, const struct check_share *share)
{
    json_object_set_new(object, "asked_rounds", json_integer((json_int_t)share->asked));
    json_object_set_new(object, "answered_rounds", json_integer((json_int_t)share->answered));
    json_object_set_new(object, "drafted_rounds", json_integer((json_int_t)share->drafted));
    json_object_set_new(object, "least_answered", json_real(share->least));
}

static json_t *equality_of(const struct check_equal *equal, int holds)
{
    json_t *lengths = json_array(), *object;

    for (int i = 0; i < equal->lengths; i++)
        json_array_append_new(lengths, json_integer(equal->draft_length[i]));
    object = json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "holds", holds, "outputs", (json_int_t)equal->outputs,
                     "unequal", (json_int_t)equal->unequal, "tokens", (json_int_t)equal->tokens, "drafted", (json_int_t)equal->drafted,
                     "accepted", (json_int_t)equal->accepted, "draft_lengths", lengths, "differences", differences_of(equal));
    put_share(object, &equal->share);
    return object;
}

static json_t *contexts_of(const struct check_sample *sample)
{
    json_t *array = json_array();

    for (int i = 0; i < sample->contexts; i++) {
        const struct check_context *context = &sample->context[i];

        json_array_append_new(array, json_pack("{s:i, s:i, s:i, s:f, s:o, s:o, s:i}", "prompt", context->prompt, "tokens", context->tokens,
                                               "cells", context->cells, "most_probable", context->top_p, "g", real(context->fit.g), "log_p_bound",
                                               real(bounds_log_p(context->fit.g, context->fit.df)), "impossible", context->fit.impossible));
    }
    return array;
}

/* [tested, excess] by the draft's place. */
static json_t *places_of(const struct check_sample *sample)
{
    json_t *array = json_array();

    for (int i = 0; i < sample->draft_length[1]; i++)
        json_array_append_new(array, json_pack("[I, f]", (json_int_t)sample->place[i].tested, sample->place[i].excess));
    return array;
}

static json_t *law_of(const struct check *check, int holds)
{
    const struct check_sample *sample = &check->sample;
    json_t *object = json_pack("{s:b, s:i, s:I, s:i, s:i, s:o, s:f, s:f}", "holds", holds, "contexts", sample->contexts,
                               "samples", (json_int_t)sample->samples, "cells", sample->cells, "df", sample->df, "g", real(sample->g), "g_bar",
                               sample->g_bar, "p_bound", exp(sample->log_p));

    json_object_set_new(object, "log_p_bound", real(sample->log_p));
    json_object_set_new(object, "p_chi_square", real(sample->p_chi_square));
    json_object_set_new(object, "alarm", json_real(CHECK_ALARM));
    json_object_set_new(object, "worst_text", json_integer(sample->worst));
    json_object_set_new(object, "worst_g_bar", json_real(sample->worst_bar));
    json_object_set_new(object, "impossible", json_integer(sample->impossible));
    json_object_set_new(object, "lean", real(sample->lean));
    json_object_set_new(object, "lean_bar", json_real(sample->lean_bar));
    json_object_set_new(object, "accepted_beyond_overlap", places_of(sample));
    json_object_set_new(object, "worst_place", json_integer(sample->worst_place));
    json_object_set_new(object, "place_bar", json_real(sample->place_bar));
    json_object_set_new(object, "smallest_variation", json_real(sample->variation));
    json_object_set_new(object, "smallest_lean", json_real(sample->lean_seen));
    json_object_set_new(object, "total_variation", json_real(sample->distance));
    json_object_set_new(object, "total_variation_by_chance", json_real(sample->by_chance));
    json_object_set_new(object, "draft_lengths", json_pack("[i,i]", sample->draft_length[0], sample->draft_length[1]));
    json_object_set_new(object, "drafted", json_integer(sample->drafted));
    json_object_set_new(object, "tested", json_integer((json_int_t)sample->tested));
    put_share(object, &sample->share);
    json_object_set_new(object, "texts", contexts_of(sample));
    return object;
}

static json_t *draws_of(const struct check_draws *draws, int holds)
{
    json_t *object = json_pack("{s:b, s:I, s:I, s:I}", "holds", holds, "drawn", (json_int_t)draws->drawn, "certain",
                               (json_int_t)draws->certain, "wrong", (json_int_t)draws->wrong);

    if (draws->wrong > 0)
        json_object_set_new(object, "first",
                            json_pack("{s:I, s:I, s:i, s:i}", "request", (json_int_t)draws->request, "position", (json_int_t)draws->position,
                                      "sent", draws->sent, "expected", draws->expected));
    return object;
}

/* Names in it are a file's, which a terminal may obey. */
static int write_to_stdout(const json_t *object, size_t flags, int is_terminal)
{
    char *text = json_text_write(object, flags);

    if (text == NULL)
        return -1;
    if (is_terminal)
        visible_put(text, strlen(text), "\n", stdout);
    else
        fputs(text, stdout);
    fputc('\n', stdout);
    free(text);
    return fflush(stdout) != 0 || ferror(stdout) ? -1 : 0;
}

enum status check_report_json(const struct check *check, const struct check_result results[CHECK_KINDS], const char *verdict, const char *path)
{
    int breakage = check->job->options->checks.breakage, all = 1, failed;
    int holds[CHECK_KINDS]; /* and was seen to */
    size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(9);
    int is_lossless = rule_row(check->job->options->request.sampling.accept)->lossless;
    json_t *object;

    for (int i = 0; i < CHECK_KINDS; i++) {
        holds[i] = results[i].holds && !results[i].is_starved;
        all &= holds[i];
    }
    object = json_pack("{s:b, s:s, s:o, s:o, s:o, s:o, s:o, s:f}", "lossless", all && breakage == BREAKAGE_NONE && is_lossless, "verdict", verdict,
                       "break", breakage == BREAKAGE_NONE ? json_null() : json_string(breakage_table[breakage].name), "parameters",
                       parameters_of(check), "equality", equality_of(&check->equal, holds[0]), "law", law_of(check, holds[1]), "draws",
                       draws_of(&check->draws, holds[2]), "seconds", check->seconds);

    failed = object == NULL || (strcmp(path, "-") == 0 ? write_to_stdout(object, flags, check->job->options->launch.terminal & TERMINAL_STDOUT) != 0
                                                       : json_dump_file(object, path, flags) != 0);
    json_decref(object);
    if (!failed)
        return STATUS_OK;
    log_error("--json %s: %s", path, strerror(errno));
    return STATUS_IO;
}
