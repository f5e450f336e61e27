#include "common/base/progress.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MANY = 10000 };

static _Atomic uint64_t word;
static int told;

static void test_progress__what_is_made_is_counted_here_and_where_others_look(void **state)
{
    uint64_t before = progress_look().count;

    (void)state;
    progress_publish(&word);
    progress_made("sowing");
    progress_made(NULL);
    assert_true(progress_look().count == before + 2 && word == 2);
    assert_string_equal(progress_look().doing, "sowing");
    progress_publish(NULL);
    progress_made(NULL);
    assert_true(progress_look().count == before + 3 && word == 2);
}

static void test_progress__an_excuse_is_for_this_process_alone(void **state)
{
    uint64_t before = progress_look().count, others = word;

    (void)state;
    progress_publish(&word);
    progress_excused("resting");
    assert_true(progress_look().count == before + 1 && word == others);
    assert_string_equal(progress_look().doing, "resting");
    progress_publish(NULL);
}

static void test_progress__who_waits_does_so_until_something_is_made(void **state)
{
    (void)state;
    progress_awaits();
    progress_excused(NULL);
    assert_true(progress_look().awaits);
    progress_made(NULL);
    assert_false(progress_look().awaits);
}

static void test_progress__other_words_are_none(void **state)
{
    uint64_t before;
    const char *words;

    (void)state;
    progress_made("sowing");
    before = progress_look().count;
    words = progress_doing("reaping");
    assert_string_equal(words, "sowing");
    assert_string_equal(progress_look().doing, "reaping");
    assert_null(progress_doing(""));
    assert_null(progress_doing(NULL));
    (void)progress_doing(words);
    assert_string_equal(progress_look().doing, "sowing");
    assert_true(progress_look().count == before);
}

static void count(void *state)
{
    ++*(int *)state;
}

static void *make_some(void *unused)
{
    (void)unused;
    progress_made(NULL);
    return NULL;
}

/* MPI may be called by one thread alone. */
static void test_progress__is_told_by_the_thread_that_asked_and_not_each_time(void **state)
{
    pthread_t thread;

    (void)state;
    progress_tell(count, &told);
    assert_int_equal(pthread_create(&thread, NULL, make_some, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(told, 0);
    progress_excused(NULL);
    assert_int_equal(told, 0);
    for (int i = 0; i < MANY; i++)
        progress_made(NULL);
    assert_in_range(told, 1, MANY - 1);
    progress_tell(NULL, NULL);
    progress_made(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_progress__what_is_made_is_counted_here_and_where_others_look),
        cmocka_unit_test(test_progress__an_excuse_is_for_this_process_alone),
        cmocka_unit_test(test_progress__who_waits_does_so_until_something_is_made),
        cmocka_unit_test(test_progress__other_words_are_none),
        cmocka_unit_test(test_progress__is_told_by_the_thread_that_asked_and_not_each_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
