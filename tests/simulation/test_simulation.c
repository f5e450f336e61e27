/* Deterministic simulation: thousands of schedules of faults, each from a seed.
 *
 *     test_simulation [--first N] [--count N] [--seed N] [--verbose]
 *
 * --seed runs one schedule, --verbose tells its story, event by event. In the environment, TANDEM_WIDE=1: four times as many, TANDEM_LONG=1:
 * eighty times. */
#include "common/base/log.h"
#include "tests/simulation/simulation.h"

#include <getopt.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include <cmocka.h>

#ifdef __SANITIZE_ADDRESS__
enum { USUAL = 2500 };
#else
enum { USUAL = 6250 };
#endif
enum { MANY = 1000, WIDE_FACTOR = 4, LONG_FACTOR = 80 };

static struct stage stage;
static struct simulation simulation;
static struct tally tally;
static uint64_t first = 1, count = USUAL, seed;
static int verbose, whole;

static int open_stage(void **state)
{
    (void)state;
    log_init("test_simulation", LOG_ERROR);
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* a schedule opens regions of megabytes and touches a page or two of each */
    stage_open(&stage);
    return 0;
}

static int close_stage(void **state)
{
    (void)state;
    stage_close(&stage);
    return 0;
}

static int say_how_to_see_it(void **state)
{
    (void)state;
    if (!whole)
        print_error("again, with its story: build/cpu/tests/test_simulation --seed %" PRIu64 " --verbose\n", seed);
    return 0;
}

static void print_tally(void)
{
    print_message("%" PRId64 " schedules, %" PRId64 " rounds, %" PRId64 " tokens; %" PRId64 " drafts, %" PRId64 " accepted; %" PRId64
                  " rounds without a proposal\n",
                  tally.schedules, tally.rounds, tally.tokens, tally.drafted, tally.accepted, tally.fallbacks);
    print_message("frames: %" PRId64 " sent, %" PRId64 " lost, %" PRId64 " repeated, %" PRId64 " overtook, %" PRId64 " corrupted, %" PRId64
                  " cut, %" PRId64 " without a place; %" PRId64 " hostile\n",
                  tally.frames[LOOP_SENT], tally.frames[LOOP_LOST], tally.frames[LOOP_REPEATED], tally.frames[LOOP_OVERTOOK],
                  tally.frames[LOOP_CORRUPTED], tally.frames[LOOP_TRUNCATED], tally.frames[LOOP_FULL], tally.hostile_frames);
    print_message("drafters: %" PRId64 " killed, %" PRId64 " stalled, %" PRId64 " slow; %" PRId64 " proposals fetched from the shelf, %" PRId64
                  " stale, %" PRId64 " messages refused; %" PRId64 " rounds until all were used again, at most %" PRId64 " in one\n",
                  tally.incidents[INCIDENT_KILL], tally.incidents[INCIDENT_STALL], tally.incidents[INCIDENT_SLOW], tally.fetched, tally.stale,
                  tally.refused, tally.rounds_after, tally.most_rounds_after);
}

static void test_simulation__faults_cost_only_speed(void **state)
{
    struct plan plan;

    (void)state;
    for (seed = first; seed < first + count; seed++) {
        plan_draw(&plan, seed, stage.law);
        if (verbose) {
            char text[1024];

            plan_describe(&plan, text, sizeof text);
            printf("seed %" PRIu64 ": %s\n", seed, text);
        }
        simulation_run(&simulation, &stage, &plan, verbose, &tally);
    }
    whole = 1;
    print_tally();
}

/* All that can go wrong did, so the schedules are what they seem. */
static void test_simulation__everything_that_can_go_wrong_did(void **state)
{
    (void)state;
    if (count < MANY || !whole) {
        print_message("skipped: %" PRIu64 " schedules are too few to meet every fault\n", count);
        skip();
    }
    for (int fate = 0; fate < LOOP_FATES; fate++)
        assert_true(tally.frames[fate] > 0);
    for (int incident = 1; incident < INCIDENTS; incident++)
        assert_true(tally.incidents[incident] > 0);
    assert_true(tally.fallbacks > 0 && tally.stale > 0 && tally.refused > 0 && tally.fetched > 0 && tally.merged > 0);
    assert_true(2 * tally.accepted > tally.drafted && tally.accepted > tally.rounds / 4); /* and drafting went on */
}

static int is_asked(const char *name)
{
    const char *word = getenv(name);

    return word != NULL && strcmp(word, "1") == 0;
}

static void parse(int argc, char **argv)
{
    static const struct option options[] = {{"first", required_argument, NULL, 'f'},
                                            {"count", required_argument, NULL, 'c'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"verbose", no_argument, NULL, 'v'},
                                            {0}};
    int option;

    if (is_asked("TANDEM_LONG") || is_asked("TANDEM_WIDE"))
        count *= is_asked("TANDEM_LONG") ? LONG_FACTOR : WIDE_FACTOR;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        switch (option) {
        case 'f':
            first = strtoull(optarg, NULL, 10);
            break;
        case 'c':
            count = strtoull(optarg, NULL, 10);
            break;
        case 's':
            first = strtoull(optarg, NULL, 10);
            count = 1;
            break;
        case 'v':
            verbose = 1;
            break;
        default:
            exit(64);
        }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_simulation__faults_cost_only_speed, say_how_to_see_it),
        cmocka_unit_test(test_simulation__everything_that_can_go_wrong_did),
    };

    parse(argc, argv);
    return cmocka_run_group_tests(tests, open_stage, close_stage);
}
