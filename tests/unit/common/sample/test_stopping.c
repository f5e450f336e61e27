/* When a draft stops: by the statistics of a row, and as it was asked for. */
#include "common/sample/stopping.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_stopping__texts_are_read(void **state)
{
    static const struct {
        const char *text;
        struct stopping stopping;
    } told[] = {{"never", {STOPPING_NEVER, 0}},
                {"heuristic", {STOPPING_HEURISTIC, 0}},
                {"confidence", {STOPPING_CONFIDENCE, 0.4}},
                {"confidence=0.75", {STOPPING_CONFIDENCE, 0.75}},
                {"confidence=0", {STOPPING_CONFIDENCE, 0}},
                {"entropy", {STOPPING_ENTROPY, 0.3}},
                {"entropy=1", {STOPPING_ENTROPY, 1}},
                {"entropy=1e-2", {STOPPING_ENTROPY, 0.01}},
                {"batch", {STOPPING_BATCH, 0}}};
    static const char *const wrong[] = {"",
                                        "confidence=",
                                        "confidence=x",
                                        "confidence=1.1",
                                        "confidence=-0.1",
                                        "entropy=nan",
                                        "entropy=0.3 ",
                                        "entropy= 0.3",
                                        "never=1",
                                        "heuristic=2",
                                        "conf",
                                        "confidences",
                                        "=0.4"};
    struct stopping stopping;

    (void)state;
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        assert_true(stopping_read(told[i].text, &stopping));
        assert_true(stopping.kind == told[i].stopping.kind && stopping.bound == told[i].stopping.bound);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        stopping = (struct stopping){STOPPING_ENTROPY, 0.7};
        assert_false(stopping_read(wrong[i], &stopping));
        assert_true(stopping.kind == STOPPING_ENTROPY && stopping.bound == 0.7);
    }
}

/* Of n equal tokens the most probable one has 1 / n, and the entropy is ln n. */
static void test_stopping__is_where_the_row_says(void **state)
{
    (void)state;
    for (int n = 1; n < 60; n++) {
        const struct row_stats stats = {.sum = n};
        double entropy = 1 - sqrt(0.2 * log(n));

        for (int side = -1; side <= 1; side += 2) {
            const struct stopping by_confidence = {STOPPING_CONFIDENCE, 1.0 / n + side * 1e-6},
                                  by_entropy = {STOPPING_ENTROPY, entropy + side * 1e-6};

            assert_int_equal(stopping_ends(&by_confidence, &stats, 0, NULL), side > 0);
            assert_int_equal(stopping_ends(&by_entropy, &stats, 0, NULL), side > 0);
        }
        assert_false(stopping_ends(&(struct stopping){STOPPING_NEVER, 1}, &stats, 0, NULL));
        assert_false(stopping_ends(&(struct stopping){STOPPING_HEURISTIC, 1}, &stats, 0, NULL));
    }
    /* Two tokens, one e times as probable as the other: H = log(1 + 1 / e) + (1 / e) / (1 + 1 / e) = 0.582. */
    const struct row_stats two = {.sum = 1 + exp(-1), .below = exp(-1)};

    assert_true(stopping_ends(&(struct stopping){STOPPING_ENTROPY, 0.660}, &two, 0, NULL));
    assert_false(stopping_ends(&(struct stopping){STOPPING_ENTROPY, 0.658}, &two, 0, NULL));
    assert_false(stopping_ends(&(struct stopping){STOPPING_CONFIDENCE, 1}, &(struct row_stats){.max = -INFINITY}, 0, NULL)); /* nothing is known */
}

/* Rows whose most probable tokens have 0.8, 0.5, 0.9, 0.9: 0.8, 0.4, 0.36, 0.324. */
static void test_stopping__by_price_goes_by_all_rows_of_the_proposal(void **state)
{
    static const double sums[] = {1 / 0.8, 1 / 0.5, 1 / 0.9, 1 / 0.9};
    static const struct {
        double price;
        int drafts;
    } cases[] = {{0, 4}, {0.32, 4}, {0.33, 3}, {0.37, 2}, {0.41, 1}, {0.79, 1}, {0.81, 0}, {1, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct stopping stopping = {STOPPING_BATCH, cases[i].price};
        double reach = 0.001; /* of another proposal */
        int drafted = 0;

        while (drafted < 4 && !stopping_ends(&stopping, &(struct row_stats){.sum = sums[drafted]}, drafted, &reach))
            drafted++;
        assert_int_equal(drafted, cases[i].drafts);
    }
}

static void test_stopping__asks_for_what_it_looks_at(void **state)
{
    static const enum row_sums sums[] = {ROW_SUMS_NONE, ROW_SUMS_NONE, ROW_SUMS_MASS, ROW_SUMS_BELOW, ROW_SUMS_MASS};

    (void)state;
    for (int kind = 0; kind < STOPPING_KINDS; kind++) {
        const struct stopping stopping = {.kind = (enum stopping_kind)kind};
        struct row_query query = {.gumbel = 1};

        stopping_ask(&stopping, &query);
        assert_true(query.scans == stopping_looks(&stopping) && query.scans == (sums[kind] != ROW_SUMS_NONE) && query.sums == sums[kind] &&
                    query.gumbel);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stopping__texts_are_read),
        cmocka_unit_test(test_stopping__is_where_the_row_says),
        cmocka_unit_test(test_stopping__by_price_goes_by_all_rows_of_the_proposal),
        cmocka_unit_test(test_stopping__asks_for_what_it_looks_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
