/* Who is told how a run goes: lines are counted when they are done, also those that ask for several completions. */
#include "verifier/job/audience.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct request asked[] = {{.index = 0, .prompt_count = 1, .max_tokens = 4, .choices = 2, .best_of = 3},
                                 {.index = 1, .prompt_count = 1, .max_tokens = 4}};
static const struct request_list requests = {.request = asked, .count = 2};

struct rig {
    struct audience audience;
    struct output output; /* none: nothing is written */
    struct show show;
};

static void open_rig(struct rig *rig)
{
    memset(rig, 0, sizeof *rig);
    audience_init(&rig->audience, &rig->output, &rig->show, NULL);
    show_begin(&rig->show, &requests, NULL);
}

/* A completion of the line has ended. */
static void end(struct rig *rig, int line, int choice)
{
    int32_t tokens[] = {1, 2, 3};
    char text[] = "a";
    const struct sequence sequence = {.request = &asked[line],
                                      .choice = choice,
                                      .tokens = tokens,
                                      .length = 3,
                                      .completion = {.text = text, .length = 1, .count = 2, .finish = FINISH_STOP}};

    assert_int_equal(rig->audience.watch.end(&rig->audience, &asked[line], &sequence), STATUS_OK);
}

static void test_audience__a_line_is_done_when_all_of_it_is(void **state)
{
    struct rig rig;

    (void)state;
    open_rig(&rig);
    assert_int_equal(rig.show.total, 2);
    assert_int_equal(rig.show.reads, 4); /* what is taken over counts as read */
    assert_int_equal(rig.show.whole, 4 + 16);
    end(&rig, 0, 2);
    end(&rig, 0, 0);
    assert_int_equal(rig.show.done, 0);
    end(&rig, 1, 0);
    assert_int_equal(rig.show.done, 1);
    end(&rig, 0, 1);
    assert_int_equal(rig.show.done, 2);
    assert_null(rig.audience.gathering.first);
    audience_release(&rig.audience);
}

static void test_audience__a_line_that_is_wrong_is_over_at_once(void **state)
{
    struct rig rig;

    (void)state;
    open_rig(&rig);
    assert_int_equal(rig.audience.watch.end(&rig.audience, &asked[0], NULL), STATUS_OK);
    assert_int_equal(rig.show.done, 1);
    assert_int_equal(rig.show.reads, 1);
    assert_int_equal(rig.show.whole, 1 + 4);
    assert_int_equal(rig.audience.watch.end(&rig.audience, &asked[1], NULL), STATUS_OK);
    assert_int_equal(rig.show.done, 2);
}

/* A job that was drained. */
static void test_audience__what_is_left_of_lines_is_forgotten(void **state)
{
    struct rig rig;

    (void)state;
    open_rig(&rig);
    end(&rig, 0, 1);
    assert_non_null(rig.audience.gathering.first);
    audience_release(&rig.audience);
    assert_null(rig.audience.gathering.first);
    assert_int_equal(rig.show.done, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_audience__a_line_is_done_when_all_of_it_is),
        cmocka_unit_test(test_audience__a_line_that_is_wrong_is_over_at_once),
        cmocka_unit_test(test_audience__what_is_left_of_lines_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
