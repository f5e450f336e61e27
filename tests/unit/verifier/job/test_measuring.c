/* What is said while a pass is measured whose text goes nowhere, by a clock that the test moves. */
#include "common/base/clock.h"
#include "verifier/job/measuring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND ((int64_t)1000000000)
#define CLEARED "\r\033[K"

static struct request asked[] = {
    {.prompt_count = 4000, .max_tokens = 50}, {.error = (char *)"wrong", .max_tokens = 9}, {.prompt_count = 7, .max_tokens = 0}};
static const struct request_list requests = {.request = asked, .count = 3};

/* A pass that reads 4,000 tokens in so many ms and then generates 50 in as many. */
static char *said_of(int bar, int ms)
{
    struct measuring measuring = {.line.redrawn = bar};
    struct figures figures = {0};
    char *said = NULL;
    size_t size;
    int64_t now = SECOND;

    clock_pretend(&now);
    assert_non_null(measuring.line.to = open_memstream(&said, &size));
    measuring_begin(&measuring, "solo", &requests);
    for (int i = 0; i < 4; i++) {
        now += ms * SECOND / 4000;
        measuring.watch.read(measuring.watch.state, 1000);
    }
    for (int i = 0; i < 2; i++) {
        now += ms * SECOND / 2000;
        figures.tokens += 25;
        measuring.watch.turn(measuring.watch.state, &figures);
    }
    measuring_end(&measuring);
    fclose(measuring.line.to);
    clock_pretend(NULL);
    return said;
}

static void assert_said(int bar, int ms, const char *expected)
{
    char *said = said_of(bar, ms);

    if (strcmp(said, expected) != 0)
        fail_msg("got \"%s\", expected \"%s\"", said, expected);
    free(said);
}

static void test_measuring__what_takes_less_than_a_second_is_not_said(void **state)
{
    (void)state;
    assert_said(1, 450, "");
    assert_said(0, 2400, "");
}

static void test_measuring__a_line_is_redrawn_and_taken_away(void **state)
{
    (void)state;
    assert_said(1, 1600,
                CLEARED "measuring solo: 3000 of 4000 prompt tokens read, 0 of at most 50 tokens" CLEARED
                        "measuring solo: 0 of at most 50 tokens" CLEARED "measuring solo: 25 of at most 50 tokens" CLEARED
                        "measuring solo: 50 of at most 50 tokens" CLEARED);
}

static void test_measuring__off_a_terminal_a_line_comes_every_five_seconds(void **state)
{
    (void)state;
    assert_said(0, 12000,
                "measuring solo: 2000 of 4000 prompt tokens read, 0 of at most 50 tokens\n"
                "measuring solo: 0 of at most 50 tokens\n"
                "measuring solo: 25 of at most 50 tokens\n"
                "measuring solo: 50 of at most 50 tokens\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measuring__what_takes_less_than_a_second_is_not_said),
        cmocka_unit_test(test_measuring__a_line_is_redrawn_and_taken_away),
        cmocka_unit_test(test_measuring__off_a_terminal_a_line_comes_every_five_seconds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
