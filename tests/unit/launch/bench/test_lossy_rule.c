/* Wherever it is said that something is lossless, an acceptance rule that is not is asked for its row: here the second of the table is none. */
#include "common/base/log.h"
#include "common/options/options.h"
#include "common/sample/rule.h"
#include "launch/bench/sweep/plan.h"
#include "tests/support/capture.h"
#include "verifier/job/stats.h"
#include "verifier/result/result.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* needs those above */

enum { LOSSY = 1 };

const struct rule *__real_rule_row(int accept);
const struct rule *__real_rule_of(const struct sampling *sampling);
const struct rule *__wrap_rule_row(int accept);
const struct rule *__wrap_rule_of(const struct sampling *sampling);

const struct rule *__wrap_rule_row(int accept)
{
    static const struct rule lossy = {.name = "lossy", .lossless = 0, .depends_on_drafts = 1, .usual = 1};

    return accept == LOSSY ? &lossy : __real_rule_row(accept);
}

const struct rule *__wrap_rule_of(const struct sampling *sampling)
{
    return sampling->temperature == 0.0 ? __real_rule_of(sampling) : __wrap_rule_row(sampling->accept);
}

static struct options asked(int accept, double temperature, double rate)
{
    struct options options = {.request.sampling = sampling_default, .rounds.synthetic_acceptance = rate, .rounds.draft_length = -1};

    options.request.sampling.accept = accept;
    options.request.sampling.temperature = temperature;
    options.ranks.drafters = 1;
    return options;
}

static void test_lossy_rule__options_name_what_is_not_lossless(void **state)
{
    const struct {
        struct options options;
        const char *option; /* NULL: lossless */
    } cases[] = {
        {asked(0, 1, -1), NULL},
        {asked(LOSSY, 0, -1), NULL}, /* greedy is */
        {asked(LOSSY, 1, -1), "--accept lossy"},
        {asked(LOSSY, 1, 0), "--synthetic-acceptance 0"},
        {asked(0, 0, 0.5), "--synthetic-acceptance 0.5"},
    };
    char option[OPTIONS_NOT_LOSSLESS];
    struct options undrafted = asked(LOSSY, 1, -1);

    (void)state;
    undrafted.rounds.draft_length = 0;
    assert_false(options_not_lossless(&undrafted, option));
    undrafted.rounds.draft_length = 4;
    assert_true(options_not_lossless(&undrafted, option));
    undrafted.rounds.solo = 1;
    assert_false(options_not_lossless(&undrafted, option));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(options_not_lossless(&cases[i].options, option), cases[i].option != NULL);
        if (cases[i].option != NULL)
            assert_string_equal(option, cases[i].option);
    }
}

/* It says how far its law is off; drawn verdicts have none. */
static void test_lossy_rule__a_check_takes_it_and_refuses_drawn_verdicts(void **state)
{
    char *line[] = {"test", "--check", "quick", "--accept", "coupled", "--synthetic-acceptance", "0.5", NULL}, text[256];
    struct options options;
    struct capture capture;

    (void)state;
    assert_int_equal(options_parse(5, line, &options), STATUS_OK);
    options_release(&options);
    capture_begin(&capture);
    assert_int_equal(options_parse(7, line, &options), STATUS_USAGE);
    capture_end(&capture, text, sizeof text);
    capture_assert_one_line(text, "--synthetic-acceptance 0.5 is not lossless by intent");
}

static void assert_result(struct request *request, enum result_verdicts verdicts, int is_marked)
{
    char none[] = "", *line;
    const struct sequence finished = {.request = request, .completion = {.text = none, .finish = FINISH_LENGTH}};

    for (int openai = 0; openai < 2; openai++) {
        request->openai = openai;
        assert_int_equal(result_line(request, request->error == NULL ? &finished : NULL, 1, verdicts, &line), STATUS_OK);
        assert_int_equal(strstr(line, "\"lossless\":false") != NULL, is_marked);
        assert_int_equal(strstr(line, "lossless") != NULL, is_marked);
        free(line);
    }
}

/* Each by the rule of its own request. */
static void test_lossy_rule__its_results_say_so(void **state)
{
    struct request request = {.sampling = sampling_default, .draft_length = 4};

    (void)state;
    request.sampling.temperature = 1;
    assert_result(&request, RESULT_BY_RULE, 0);
    assert_result(&request, RESULT_DRAWN, 1);
    request.sampling.accept = LOSSY;
    assert_result(&request, RESULT_BY_RULE, 1);
    assert_result(&request, RESULT_UNDRAFTED, 0);
    request.draft_length = 0;
    assert_result(&request, RESULT_BY_RULE, 0);
    assert_result(&request, RESULT_DRAWN, 1);
    request.adaptive = 1;
    assert_result(&request, RESULT_BY_RULE, 1);
    request.sampling.temperature = 0;
    assert_result(&request, RESULT_BY_RULE, 0);
    request.sampling.accept = 99; /* what is refused may ask for anything */
    request.error = "no";
    assert_result(&request, RESULT_BY_RULE, 0);
}

/* One that is wrong is not completed, by no rule. */
static void test_lossy_rule__the_first_line_that_asks_for_it_is_found(void **state)
{
    char error[] = "no";
    struct request request[4] = {{.line = 1}, {.line = 2, .error = error}, {.line = 3}, {.line = 4}};
    struct request_list list = {.request = request};

    (void)state;
    for (int i = 0; i < 4; i++) {
        request[i].sampling.temperature = 1;
        request[i].adaptive = 1;
    }
    request[1].sampling.accept = request[2].sampling.accept = request[3].sampling.accept = LOSSY;
    for (list.count = 0; list.count <= 4; list.count++)
        assert_ptr_equal(request_lossy(&list), list.count < 3 ? NULL : &request[2]);
    request[2].adaptive = 0; /* nor does it draft */
    assert_ptr_equal(request_lossy(&(struct request_list){.request = request, .count = 4}), &request[3]);
    request[2].adaptive = 1;
    request[2].sampling.temperature = 0; /* where this one is greedy */
    assert_ptr_equal(request_lossy(&(struct request_list){.request = request, .count = 4}), &request[3]);
}

static void test_lossy_rule__the_last_line_of_a_job_says_so(void **state)
{
    const struct options options = asked(LOSSY, 1, -1), lossless = asked(LOSSY, 0, -1);
    const struct figures figures = {.tokens = 4};
    const struct request line = {.line = 7, .sampling = options.request.sampling};
    const char *const said[] = {"; NOT LOSSLESS, by --accept lossy\n", NULL, "; NOT LOSSLESS, by line 7, accept lossy\n"};
    struct stats stats = {.options = &options, .figures = &figures};
    char text[512] = "";

    (void)state;
    for (int i = 0; i < 3; i++) {
        FILE *to = fmemopen(text, sizeof text, "w");

        assert_non_null(to);
        stats_line(&stats, to);
        fclose(to);
        assert_int_equal(strstr(text, "NOT LOSSLESS") != NULL, said[i] != NULL);
        assert_true(said[i] == NULL || strstr(text, said[i]) != NULL);
        stats.options = &lossless;
        stats.lossy = i == 1 ? &line : NULL;
    }
}

static void test_lossy_rule__a_bench_has_it_where_it_is_asked_for_and_says_so(void **state)
{
    static struct plan plan;
    struct plan_options options;

    (void)state;
    plan_defaults(1, &options);
    for (int accept = 0; accept < ACCEPT_MODES; accept++) {
        int has = 0;

        for (int i = 0; i < options.accepts.count; i++)
            has += options.accepts.rule[i].accept == accept;
        assert_int_equal(has, __wrap_rule_row(accept)->lossless && __wrap_rule_row(accept)->usual);
    }
    assert_int_equal(plan_make(&options, &plan), STATUS_OK);
    assert_true(plan_is_lossless(&plan));
    options.accepts = (struct plan_rules){.count = 2, .rule = {{.accept = 0, .number = -1}, {.accept = LOSSY, .number = -1}}};
    assert_int_equal(plan_make(&options, &plan), STATUS_OK);
    assert_false(plan_is_lossless(&plan));
    options.temperatures = (struct plan_list){.count = 1, .value = {0}};
    assert_int_equal(plan_make(&options, &plan), STATUS_OK);
    assert_true(plan_is_lossless(&plan));
    plan.options.synthetic = 1;
    assert_false(plan_is_lossless(&plan));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lossy_rule__options_name_what_is_not_lossless),
        cmocka_unit_test(test_lossy_rule__a_check_takes_it_and_refuses_drawn_verdicts),
        cmocka_unit_test(test_lossy_rule__its_results_say_so),
        cmocka_unit_test(test_lossy_rule__the_first_line_that_asks_for_it_is_found),
        cmocka_unit_test(test_lossy_rule__the_last_line_of_a_job_says_so),
        cmocka_unit_test(test_lossy_rule__a_bench_has_it_where_it_is_asked_for_and_says_so),
    };

    log_init("test_lossy_rule", LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
