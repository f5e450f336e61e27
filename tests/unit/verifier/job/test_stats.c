#include "verifier/job/stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_stats__a_host_that_was_busy_is_told_of_beside_what_is_compared(void **state)
{
    const double cores = (double)sysconf(_SC_NPROCESSORS_ONLN);
    const struct {
        double load;
        int is_told;
    } cases[] = {{-1, 0}, {0, 0}, {0.9 * cores, 0}, {1.5 * cores, 1}};
    const struct options options = {.rounds.synthetic_acceptance = -1};
    const struct figures figures = {.tokens = 7, .rounds = 3, .wall_ns = 1000};
    const struct comparison comparison = {.passes = 1, .solo = {10}, .drafted = {20}};
    char text[4096] = "", told[64];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct stats stats = {.options = &options,
                                    .ranks = 2,
                                    .drafters = 1,
                                    .threads = 1,
                                    .solo = &figures,
                                    .figures = &figures,
                                    .comparison = &comparison,
                                    .load = cases[i].load};
        FILE *to = fmemopen(text, sizeof text, "w");

        assert_non_null(to);
        stats_table(&stats, to);
        fclose(to);
        snprintf(told, sizeof told, "\nThis host was busy in the minute before: a load of %.1f on ", cases[i].load);
        assert_int_equal(strstr(text, told) != NULL, cases[i].is_told);
        assert_int_equal(strstr(text, "busy") != NULL, cases[i].is_told);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stats__a_host_that_was_busy_is_told_of_beside_what_is_compared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
