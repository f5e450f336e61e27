/* Predictions with known parts: equation (1), the ends of completions, waits that running ahead hides, and which assumption is named where one fails.
 */
#include "launch/bench/report/alpha_file.h"
#include "launch/bench/report/forecast.h"
#include "launch/bench/report/forecast_table.h"
#include "launch/bench/report/theory.h"
#include "tests/support/capture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int near(double value, double expected)
{
    return fabs(value - expected) <= 1e-9 * fabs(expected) + 1e-12;
}

/* Accepts each draft with the same probability; a step takes 5 us a row, and a message 10. */
static struct forecast_draft even_draft(double alpha)
{
    struct forecast_draft draft = {.alpha = alpha, .overlap = alpha, .proposals = 1};

    for (int k = 0; k < FORECAST_PLACES; k++)
        draft.place[k] = alpha;
    forecast_line_add(&draft.step, 1, 5);
    forecast_line_add(&draft.step, 2, 10);
    return draft;
}

/* The target's step takes 100 us, and 10 more for each row. */
static struct forecast_ranks ranks_of(void)
{
    struct forecast_ranks ranks = {.ahead = 0};

    forecast_line_add(&ranks.verify, 1, 100);
    forecast_line_add(&ranks.verify, 2, 110);
    forecast_line_add(&ranks.rest, 1, 7);
    forecast_line_add(&ranks.wire, 1, 10);
    ranks.outside = 50;
    return ranks;
}

static void test_forecast__a_line_goes_through_what_was_measured_and_on(void **state)
{
    struct forecast_line line = {0};

    (void)state;
    assert_true(forecast_line_at(&line, 3) == 0);
    forecast_line_add(&line, 1, 10);
    assert_true(near(forecast_line_at(&line, 9), 10));
    forecast_line_add(&line, 3, 30);
    forecast_line_add(&line, 5, 30);
    assert_true(near(forecast_line_at(&line, 0), 10) && near(forecast_line_at(&line, 2), 20) && near(forecast_line_at(&line, 4), 30));
    assert_true(near(forecast_line_at(&line, 9), 30));
}

static void test_forecast__the_target_alone_takes_its_steps(void **state)
{
    const struct forecast_ranks ranks = ranks_of();
    struct forecast f;

    (void)state;
    forecast_cell(NULL, &ranks, 0, 1, 10, &f);
    assert_true(near(f.tokens_per_second, 10 / (10 * 107e-6 + 50e-6)));
    assert_true(near(f.tokens_per_round, 1) && near(f.round_us, 107) && near(f.verify_us, 100) && near(f.rest_us, 7) && f.wait_us == 0);
}

/* Far from its end a completion has the tokens of equation (1) in a round. */
static void test_forecast__long_completions_follow_equation_1(void **state)
{
    const struct forecast_ranks ranks = ranks_of();
    const struct forecast_draft draft = even_draft(0.7);
    struct forecast f;

    (void)state;
    for (int k = 1; k <= 8; k++) {
        forecast_cell(&draft, &ranks, k, 1, 4000, &f);
        assert_true(fabs(f.tokens_per_round / theory_tokens(0.7, k) - 1) < 0.003);
        assert_true(fabs(f.verify_us / (100 + 10 * k) - 1) < 0.003 && fabs(f.wait_us / (5 * k + 10) - 1) < 0.003);
    }
}

/* Two tokens with one draft: a round that gives both, or one and then one without a draft. */
static void test_forecast__the_last_drafts_of_a_completion_are_cut(void **state)
{
    const struct forecast_ranks ranks = ranks_of();
    const struct forecast_draft draft = even_draft(0.5);
    struct forecast f;

    (void)state;
    forecast_cell(&draft, &ranks, 4, 1, 2, &f);
    assert_true(near(f.tokens_per_round, 2 / 1.5));
    assert_true(near(f.tokens_per_second, 2 / ((50 + (110 + 7 + 15) + 0.5 * 107) * 1e-6)));
}

static void test_forecast__places_beyond_the_last_are_as_the_last(void **state)
{
    const struct forecast_ranks ranks = ranks_of();
    struct forecast_draft draft = even_draft(1);
    struct forecast f;

    (void)state;
    forecast_cell(&draft, &ranks, 12, 1, 13, &f);
    assert_true(near(f.tokens_per_round, 13));
    draft.place[1] = 0;
    forecast_cell(&draft, &ranks, 12, 1, 2, &f);
    assert_true(near(f.tokens_per_round, 2));
    forecast_cell(&draft, &ranks, 12, 1, 4000, &f);
    assert_true(fabs(f.tokens_per_round - 2) < 0.01);
}

/* A copy that is found in half of the rounds. */
static void test_forecast__rounds_without_a_proposal_take_one_row(void **state)
{
    const struct forecast_ranks ranks = ranks_of();
    struct forecast_draft draft = even_draft(1);
    struct forecast f;

    (void)state;
    draft.proposals = 0.5;
    forecast_cell(&draft, &ranks, 1, 1, 2, &f);
    assert_true(near(f.tokens_per_round, 2 / (0.5 + 0.5 * 2)));
    assert_true(near(f.tokens_per_second, 2 / ((50 + 0.5 * 132 + 0.5 * 2 * 107) * 1e-6)));
}

/* All is accepted, and the first guess always follows: the drafter is never waited for but in the first round. */
static void test_forecast__what_is_drafted_ahead_is_not_waited_for(void **state)
{
    struct forecast_ranks ranks = ranks_of();
    struct forecast_draft draft = even_draft(1);
    struct forecast f;

    (void)state;
    draft.bonus[0] = 1;
    forecast_cell(&draft, &ranks, 1, 1, 20, &f);
    assert_true(f.hit_rate == 0 && near(f.wait_us, 15));
    ranks.ahead = 1;
    forecast_cell(&draft, &ranks, 1, 1, 20, &f);
    assert_true(fabs(f.hit_rate - 0.9) < 1e-6 && fabs(f.wait_us - (1.5 + 0.9 * 5)) < 1e-6 && fabs(f.cold_us - 15) < 1e-6);
    draft.bonus[0] = 0; /* nobody guesses what follows */
    forecast_cell(&draft, &ranks, 1, 1, 20, &f);
    assert_true(fabs(f.hit_rate) < 1e-6 && fabs(f.wait_us - 15) < 1e-6);
    draft.bonus[0] = draft.corrected[0] = 0.5;
    for (int k = 0; k < FORECAST_PLACES; k++)
        draft.place[k] = 0.5;
    forecast_cell(&draft, &ranks, 1, 1, 2000, &f);
    assert_true(fabs(f.hit_rate - 0.5) < 0.01 && near(f.hits_after[0], 0.5) && near(f.hits_after[1], 0.5));
    draft.bonus[0] = 0.6;
    forecast_cell(&draft, &ranks, 1, 1, 2000, &f);
    assert_true(fabs(f.hit_rate - 0.55) < 0.01 && near(f.hits_after[0], 0.5) && near(f.hits_after[1], 0.6));
    draft.bonus[0] = 0.5;
    forecast_line_add(&draft.step, 3, 1000); /* no time for a second text: the likelier one alone */
    draft.step.us[1] = 500;
    forecast_cell(&draft, &ranks, 1, 1, 2000, &f);
    assert_true(fabs(f.hit_rate - 0.25) < 0.01 && near(f.hits_after[0] + f.hits_after[1], 0.5) && f.hits_after[0] * f.hits_after[1] == 0);
    ranks.branches = 2; /* as many as were asked for, whatever the time */
    forecast_cell(&draft, &ranks, 1, 1, 2000, &f);
    assert_true(fabs(f.hit_rate - 0.5) < 0.01);
}

/* Steps of two sequences have twice the rows and wait for the later of both. */
static void test_forecast__several_sequences_share_a_step(void **state)
{
    const struct forecast_ranks ranks = ranks_of();
    const struct forecast_draft draft = even_draft(0);
    struct forecast f;

    (void)state;
    forecast_cell(&draft, &ranks, 1, 2, 2, &f); /* none is accepted: a round with a draft, then one without */
    assert_true(near(f.tokens_per_second, 2 / ((50 + ((130 + 7 + 10 + 10) + (110 + 7)) / 2.0) * 1e-6)));
}

static void test_forecast__the_best_length_is_the_fastest(void **state)
{
    const struct forecast_ranks ranks = ranks_of();
    const struct forecast_draft good = even_draft(0.9), bad = even_draft(0.01);
    struct forecast best, f;

    (void)state;
    forecast_best(&good, &ranks, 1, 100, &best);
    assert_true(best.draft_length > 2);
    for (int k = 0; k <= FORECAST_CHOSEN; k++) {
        forecast_cell(&good, &ranks, k, 1, 100, &f);
        assert_true(f.tokens_per_second <= best.tokens_per_second);
    }
    forecast_best(&bad, &ranks, 1, 100, &best);
    assert_int_equal(best.draft_length, 0);
}

/* Each part of a round is blamed for what it took more than was predicted. */
static void test_forecast__what_failed_is_named_by_its_part(void **state)
{
    const struct measured as_said = {.tokens_per_second = 1e4,
                                     .rounds = 100,
                                     .output_tokens = 200,
                                     .completed = 1,
                                     .hits = {100, 50},
                                     .round_us = 200,
                                     .wait_us = 20,
                                     .phase_us = {[ROUND_VERIFY] = 140, [ROUND_REDUCE] = 10},
                                     .forecast = {.tokens_per_second = 1e4,
                                                  .tokens_per_round = 2,
                                                  .round_us = 200,
                                                  .verify_us = 150,
                                                  .wait_us = 20,
                                                  .rest_us = 30,
                                                  .cold_us = 40,
                                                  .hit_rate = 0.5}};
    double part[FORECAST_PARTS];
    struct measured f = as_said;

    (void)state;
    forecast_blame(&f, part);
    for (int i = 0; i < FORECAST_PARTS; i++)
        assert_true(fabs(part[i]) < 1e-12);
    f.output_tokens = 150;
    forecast_blame(&f, part);
    assert_true(near(part[FORECAST_ACCEPTANCE], -0.25) && part[FORECAST_STEP] == 0);
    f = as_said;
    f.phase_us[ROUND_VERIFY] += 50;
    f.round_us += 50;
    forecast_blame(&f, part);
    assert_true(near(part[FORECAST_STEP], -0.25) && fabs(part[FORECAST_REST]) < 1e-12);
    f = as_said; /* no proposal was there: half of the rounds wait 40 us more, as predicted of one that is not */
    f.hits.hits = 0;
    f.wait_us += 20;
    f.round_us += 20;
    forecast_blame(&f, part);
    assert_true(near(part[FORECAST_HITS], -0.1) && fabs(part[FORECAST_WAIT]) < 1e-12);
    f = as_said;
    f.wait_us += 60;
    f.round_us += 60;
    forecast_blame(&f, part);
    assert_true(near(part[FORECAST_WAIT], -0.3) && fabs(part[FORECAST_HITS]) < 1e-12);
    f = as_said;
    f.round_us += 40;
    forecast_blame(&f, part);
    assert_true(near(part[FORECAST_REST], -0.2));
    f = as_said; /* prompts are read in a round's step, and are predicted with what is outside */
    f.phase_us[ROUND_VERIFY] += 40;
    f.reading_us = 40;
    f.round_us += 40;
    forecast_blame(&f, part);
    assert_true(near(part[FORECAST_OUTSIDE], -0.2) && fabs(part[FORECAST_STEP]) < 1e-12 && fabs(part[FORECAST_REST]) < 1e-12);
    f = as_said;
    f.outside = 0.5;
    forecast_blame(&f, part);
    assert_true(near(part[FORECAST_OUTSIDE], -1));
}

/* A file of tandem alpha, or what somebody takes for one. */
static void write_alpha(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static const char whole[] =
    "{\"target\": \"t\", \"temperature\": 0.5, \"accept\": \"rejection\", \"drafts\": [{\"draft\": \"d\", \"alpha\": 0.75, \"divergence\": 0.3, "
    "\"proposals\": {\"mean\": 1.0}, \"support\": 12.0, \"choose_us\": 2.0, \"accepted_at_place\": [{\"mean\": 0.7}, {\"mean\": 0.8}, {\"mean\": "
    "null}], "
    "\"guessed_after_rejection\": [0.5, 0.25], \"guessed_after_all\": [0.6], \"step_us\": [{\"rows\": 1, \"us\": 5.0}, {\"rows\": 2, \"us\": "
    "8.0}]}]}";

static void test_forecast__an_alpha_file_is_read(void **state)
{
    char path[] = "/tmp/test_forecast_XXXXXX", line[4096];
    struct capture capture;
    struct forecast_draft draft;
    json_t *json;

    (void)state;
    close(mkstemp(path));
    write_alpha(path, whole);
    assert_int_equal(alpha_file_read(path, &json), STATUS_OK);
    assert_true(alpha_file_is_of(json, 0.5, "rejection") && !alpha_file_is_of(json, 0.5, "coupled") && !alpha_file_is_of(json, 1, "rejection"));
    assert_true(alpha_file_draft(json, "d", &draft) && !alpha_file_draft(json, "e", &(struct forecast_draft){0}));
    assert_true(draft.alpha == 0.75 && near(draft.overlap, 0.7) && draft.proposals == 1 && draft.support == 12 && draft.choose_us == 2);
    assert_true(draft.place[0] == 0.7 && draft.place[1] == 0.8 && draft.place[2] == 0.8 && draft.place[FORECAST_PLACES - 1] == 0.8);
    assert_true(draft.corrected[1] == 0.25 && draft.corrected[2] == 0 && draft.bonus[0] == 0.6);
    assert_true(draft.step.count == 2 && draft.step.us[1] == 8);
    assert_int_equal(alpha_file_check(path, json, "t", "d"), STATUS_OK);
    capture_begin(&capture);
    assert_int_equal(alpha_file_check(path, json, "u", "d"), STATUS_USAGE);
    capture_end(&capture, line, sizeof line);
    capture_assert_one_line(line, "is of the target 't', expected one of 'u'");
    capture_begin(&capture);
    assert_int_equal(alpha_file_check(path, json, "t", "x"), STATUS_USAGE);
    capture_end(&capture, line, sizeof line);
    capture_assert_one_line(line, "says nothing of the draft 'x'");
    json_decref(json);
    unlink(path);
}

/* tandem alpha writes the name that it was given, a bench asks for the path that the name stands for. */
static void test_forecast__a_fetched_model_is_known_by_its_path(void **state)
{
    char path[] = "/tmp/test_forecast_XXXXXX", cache[] = "/tmp/test_forecast_cache_XXXXXX", folder[64], model[80];
    struct forecast_draft draft;
    json_t *json;

    (void)state;
    close(mkstemp(path));
    assert_non_null(mkdtemp(cache));
    snprintf(folder, sizeof folder, "%s/tandem", cache);
    snprintf(model, sizeof model, "%s/smollm2.gguf", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    write_alpha(model, "");
    write_alpha(path, "{\"target\": \"smollm2\", \"temperature\": 0.0, \"accept\": \"rejection\", \"drafts\": [{\"draft\": \"smollm2\", "
                      "\"alpha\": 0.75, \"divergence\": 0.3, \"proposals\": {\"mean\": 1.0}, \"support\": 0.0, \"choose_us\": 2.0, "
                      "\"accepted_at_place\": [], \"guessed_after_rejection\": [], \"guessed_after_all\": [], \"step_us\": []}]}");
    setenv("XDG_CACHE_HOME", cache, 1);
    assert_int_equal(alpha_file_read(path, &json), STATUS_OK);
    assert_true(alpha_file_draft(json, model, &draft) && draft.alpha == 0.75);
    assert_int_equal(alpha_file_check(path, json, model, model), STATUS_OK);
    unsetenv("XDG_CACHE_HOME");
    json_decref(json);
    unlink(model);
    rmdir(folder);
    rmdir(cache);
    unlink(path);
}

static void test_forecast__what_is_no_alpha_file_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "[]",
        "{}",
        "{\"target\": \"t\", \"temperature\": 0, \"accept\": \"rejection\", \"drafts\": []}",
        "{\"target\": \"t\", \"temperature\": 0, \"accept\": \"rejection\", \"drafts\": [{\"draft\": \"d\", \"alpha\": 0.5}]}",
        "{\"target\": \"t\", \"temperature\": 0, \"accept\": \"rejection\", \"drafts\": [{\"draft\": \"d\", \"alpha\": 1.5, \"accepted_at_place\": "
        "[], "
        "\"guessed_after_rejection\": [], \"guessed_after_all\": [], \"step_us\": []}]}",
        "{\"target\": \"t\", \"temperature\": 0, \"accept\": \"rejection\", \"drafts\": [{\"draft\": \"d\", \"alpha\": 0.5, \"accepted_at_place\": "
        "[], "
        "\"guessed_after_rejection\": [], \"guessed_after_all\": [], \"step_us\": [{\"rows\": 1, \"us\": 1e308}]}]}"};
    char path[] = "/tmp/test_forecast_XXXXXX", line[4096];
    struct capture capture;
    json_t *json = NULL;

    (void)state;
    close(mkstemp(path));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_alpha(path, wrong[i]);
        capture_begin(&capture);
        assert_int_equal(alpha_file_read(path, &json), STATUS_DATA);
        capture_end(&capture, line, sizeof line);
        capture_assert_one_line(line, path);
    }
    unlink(path);
    capture_begin(&capture);
    assert_int_equal(alpha_file_read(path, &json), STATUS_NOINPUT);
    capture_end(&capture, line, sizeof line);
    capture_assert_one_line(line, path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forecast__a_line_goes_through_what_was_measured_and_on),
        cmocka_unit_test(test_forecast__the_target_alone_takes_its_steps),
        cmocka_unit_test(test_forecast__long_completions_follow_equation_1),
        cmocka_unit_test(test_forecast__the_last_drafts_of_a_completion_are_cut),
        cmocka_unit_test(test_forecast__places_beyond_the_last_are_as_the_last),
        cmocka_unit_test(test_forecast__rounds_without_a_proposal_take_one_row),
        cmocka_unit_test(test_forecast__what_is_drafted_ahead_is_not_waited_for),
        cmocka_unit_test(test_forecast__several_sequences_share_a_step),
        cmocka_unit_test(test_forecast__the_best_length_is_the_fastest),
        cmocka_unit_test(test_forecast__what_failed_is_named_by_its_part),
        cmocka_unit_test(test_forecast__an_alpha_file_is_read),
        cmocka_unit_test(test_forecast__a_fetched_model_is_known_by_its_path),
        cmocka_unit_test(test_forecast__what_is_no_alpha_file_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
