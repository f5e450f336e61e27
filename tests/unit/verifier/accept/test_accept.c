#include "common/sample/sparse_q.h"
#include "verifier/accept/accept.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const int32_t ids[] = {2, 5, 9};
static const uint32_t weights[] = {32768, 16384, 16384};
static const struct support q = {.count = 3, .id = ids, .weight = weights};
static const struct residual minus_q = {.of_p = 1, .of_q = 1};

static void test_accept__test_is_strict(void **state)
{
    (void)state;
    assert_false(accept_test(0.0, 0.5, 0.0));
    assert_true(accept_test(0.0, 0.5, 1e-300));
    assert_false(accept_test(0.5, 0.5, 0.25));
    assert_true(accept_test(nextafter(1.0, 0.0), 0.5, 0.5));
}

static void test_accept__q_is_the_weight_or_the_point_mass(void **state)
{
    const struct support point = {0};

    (void)state;
    assert_true(accept_q(&q, 2, 2) == 0.5);
    assert_true(accept_q(&q, 2, 9) == 0.25);
    assert_true(accept_q(&q, 2, 3) == 0.0);
    assert_true(accept_q(&point, 4, 4) == 1.0);
    assert_true(accept_q(&point, 4, 5) == 0.0);
}

static void test_accept__p_is_of_the_list_or_the_support(void **state)
{
    const struct scored_token best[] = {{1, 7}, {0, 2}};
    const double p[] = {0.75, 0.25};
    const float logit[] = {1.0f, -INFINITY, 0.0f};
    const struct target_row list = {.kind = TARGET_LIST, .count = 2, .best = best, .p = p};
    const struct target_row support = {.kind = TARGET_SUPPORT, .count = 3, .logit = logit, .log_z = 2.0};
    const struct support point = {0};

    (void)state;
    assert_true(accept_p(&list, &q, 2) == 0.25);
    assert_true(accept_p(&list, &q, 9) == 0.0);
    assert_true(accept_p(&support, &q, 2) == exp(-1.0));
    assert_true(accept_p(&support, &q, 5) == 0.0);
    assert_true(accept_p(&support, &q, 9) == exp(-2.0));
    assert_true(accept_p(&support, &point, 30) == exp(-1.0));
}

/* The first so many of a chain, in order; the next one, where there is one, was tested and is refused. */
static void assert_chain(const struct verdict *verdict, int accepted, int drafted)
{
    assert_int_equal(verdict->accepted, accepted);
    assert_int_equal(verdict->refused, accepted < drafted ? accepted : -1);
    assert_int_equal(verdict_row(verdict, 0), 0);
    for (int i = 0; i < accepted; i++) {
        assert_int_equal(verdict->node[i], i);
        assert_int_equal(verdict_row(verdict, i + 1), i + 1);
    }
}

static void test_accept__winners_stand_while_they_match(void **state)
{
    const struct target_row laws[] = {{.winner = 4}, {.winner = 6}, {.winner = 8}};
    struct proposal proposal = {.count = 2, .token = {4, 6}};
    struct sampling sampling = sampling_default;
    const struct rng_key key = {0};

    (void)state;
    for (int coupled = 0; coupled < 2; coupled++) {
        sampling.temperature = coupled ? 1.0 : 0.0;
        sampling.accept = coupled ? ACCEPT_COUPLED : ACCEPT_REJECTION;
        for (int wrong = 0; wrong <= 2; wrong++) {
            proposal.token[0] = wrong == 0 ? 5 : 4;
            proposal.token[1] = wrong == 1 ? 5 : 6;
            struct verdict verdict = accept_decide(&sampling, laws, &proposal, 2, &key);

            assert_chain(&verdict, wrong, 2);
            assert_int_equal(verdict.draw, DRAW_NONE);
            assert_int_equal(verdict.token, laws[wrong].winner);
        }
    }
}

/* The path of a tree, found by asking at each token for the child that is the target's own, by those rules that decide about trees. */
static void test_accept__the_path_of_a_tree_is_that_of_the_targets_tokens(void **state)
{
    enum { NODES = 12, TRIALS = 2000, TOKENS = 3 };
    static const struct {
        double temperature;
        int accept;
    } rule[] = {{0, ACCEPT_REJECTION}, {1, ACCEPT_COUPLED}, {1, ACCEPT_WALK}};
    int longest = 0, aside = 0;
    uint32_t random = 5;

    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        struct proposal proposal = {.count = NODES, .is_tree = 1};
        struct target_row rows[NODES + 1] = {0};
        struct sampling sampling = sampling_default;
        const struct rng_key key = {.seed = 3};
        int at = -1, accepted = 0, refused;
        struct verdict verdict;

        for (int i = 0; i <= NODES; i++) {
            random = random * 1664525U + 1013904223U;
            rows[i].winner = (int32_t)(random >> 16) % TOKENS;
            if (i < NODES) {
                proposal.token[i] = (int32_t)(random >> 20) % TOKENS;
                proposal.parent[i] = (int8_t)((int)(random >> 8) % (i + 1) - 1);
            }
        }
        sampling.temperature = rule[trial % 3].temperature;
        sampling.accept = rule[trial % 3].accept;
        verdict = accept_decide(&sampling, rows, &proposal, NODES, &key);
        for (int next = 0; next >= 0; at = next >= 0 ? next : at) {
            next = refused = -1;
            for (int i = NODES - 1; i >= 0; i--)
                if (proposal.parent[i] == at) {
                    refused = i;
                    next = proposal.token[i] == rows[at + 1].winner ? i : next;
                }
            assert_true(next < 0 || verdict.node[accepted] == next);
            aside += next > accepted;
            accepted += next >= 0;
        }
        assert_int_equal(verdict.accepted, accepted);
        assert_int_equal(verdict.refused, refused); /* the first of those that followed, of which none stands */
        assert_int_equal(verdict.draw, DRAW_NONE);
        assert_int_equal(verdict.token, rows[at + 1].winner);
        assert_int_equal(verdict_row(&verdict, accepted), at + 1);
        longest = accepted > longest ? accepted : longest;
    }
    assert_true(longest > 3 && aside > TRIALS / 4);
}

/* At temperature 0 they know p of temperature 1, and the best token. */
static void test_accept__rules_that_are_not_greedy_at_temperature_0_look_at_p(void **state)
{
    static const struct {
        double lenience, threshold;
        int lenient, above;
    } bound[] = {{0.5, 0.29, 1, 1}, {0.59, 0.31, 1, 0}, {0.61, 0, 0, 1}, {1, 0.5, 0, 0}};
    const float logit[] = {logf(0.3f)};
    const struct target_row rows[2] = {{.kind = TARGET_SUPPORT, .count = 1, .logit = logit, .winner = 4, .most = 0.5},
                                       {.kind = TARGET_SUPPORT, .count = 1, .logit = logit, .winner = 5, .most = 0.5}};
    const struct target_row best[2] = {{.kind = TARGET_SUPPORT, .count = 1, .logit = logit, .winner = 2, .most = 0.3}, rows[1]};
    const struct proposal proposal = {.count = 1, .token = {2}};
    const struct rng_key key = {.seed = 3};
    struct sampling sampling = sampling_default;

    (void)state;
    for (size_t i = 0; i < sizeof bound / sizeof bound[0]; i++)
        for (int accept = ACCEPT_LENIENCE; accept <= ACCEPT_THRESHOLD; accept++) {
            int stands = accept == ACCEPT_LENIENCE ? bound[i].lenient : bound[i].above;
            struct verdict verdict;

            sampling.accept = accept;
            sampling.lenience = bound[i].lenience;
            sampling.threshold = bound[i].threshold;
            verdict = accept_decide(&sampling, rows, &proposal, 1, &key);
            assert_int_equal(verdict.accepted, stands);
            assert_int_equal(verdict.draw, DRAW_NONE);
            assert_int_equal(verdict.token, 4 + stands);
            assert_int_equal(accept_decide(&sampling, best, &proposal, 1, &key).accepted, 1); /* as greedy does, however small its p is */
        }
}

/* p 0.3; entropy ln 8 makes exp(-H) 1 / 8. The lower bound holds, and the entropy of a list is that of its p. */
static void test_accept__typical_asks_less_where_the_target_is_unsure(void **state)
{
    static const struct {
        double epsilon, delta;
        int unsure, sure; /* accepted, with that entropy, and with that of {0.3, 0.7}: exp(-H) is 0.543 */
    } bound[] = {{0.29, 1, 1, 1}, {0.31, 1, 1, 0}, {1, 1, 1, 0}, {1, 0.54, 1, 1}, {1, 0.56, 1, 0}, {0, 0, 1, 1}};
    const float logit[] = {logf(0.3f)};
    const struct scored_token best[] = {{0, 3}, {0, 2}};
    const double p[] = {0.7, 0.3};
    const struct target_row unsure[2] = {{.kind = TARGET_SUPPORT, .count = 1, .logit = logit, .entropy = log(8)},
                                         {.kind = TARGET_SUPPORT, .count = 1, .logit = logit, .entropy = log(8)}};
    const struct target_row sure[2] = {{.kind = TARGET_LIST, .count = 2, .best = best, .p = p},
                                       {.kind = TARGET_LIST, .count = 2, .best = best, .p = p}};
    const struct target_row surest[2] = {{.kind = TARGET_SUPPORT, .count = 1, .logit = logit}, unsure[1]};
    const struct proposal proposal = {.count = 1, .token = {2}};
    const struct rng_key key = {.seed = 3};
    struct sampling sampling = sampling_default;

    (void)state;
    sampling.temperature = 1;
    sampling.accept = ACCEPT_TYPICAL;
    for (size_t i = 0; i < sizeof bound / sizeof bound[0]; i++) {
        struct verdict verdict;

        sampling.typical_epsilon = bound[i].epsilon;
        sampling.typical_delta = bound[i].delta;
        verdict = accept_decide(&sampling, unsure, &proposal, 1, &key);
        assert_int_equal(verdict.accepted, bound[i].unsure);
        assert_int_equal(verdict.draw, DRAW_PLAIN);
        assert_int_equal(accept_decide(&sampling, sure, &proposal, 1, &key).accepted, bound[i].sure);
        assert_int_equal(accept_decide(&sampling, surest, &proposal, 1, &key).accepted, fmin(bound[i].epsilon, bound[i].delta) < 0.3);
    }
}

/* The coin of each draft is that of its own position, and the first that falls short ends the run. */
static void test_accept__rejection_uses_the_coin_of_each_position(void **state)
{
    const struct scored_token best[] = {{0, 2}, {0, 3}};
    const double p[] = {0.25, 0.75};
    const struct target_row laws[4] = {{.kind = TARGET_LIST, .count = 2, .best = best, .p = p},
                                       {.kind = TARGET_LIST, .count = 2, .best = best, .p = p},
                                       {.kind = TARGET_LIST, .count = 2, .best = best, .p = p}};
    const struct proposal proposal = {.count = 3, .token = {2, 2, 2}, .q = {q, q, q}};
    struct sampling sampling = sampling_default;

    (void)state;
    sampling.temperature = 1.0;
    for (uint32_t r = 0; r < 2000; r++) {
        const struct rng_key key = {.seed = 3, .request = r, .position = 10};
        struct verdict verdict = accept_decide(&sampling, laws, &proposal, 3, &key);
        int accepted = 0;

        while (accepted < 3 && rng_uniform(&(struct rng_key){3, r, 10 + (uint32_t)accepted}, RNG_ACCEPT) * 0.5 < 0.25)
            accepted++;
        assert_chain(&verdict, accepted, 3);
        assert_int_equal(verdict.draw, accepted == 3 ? DRAW_PLAIN : DRAW_RESIDUAL);
    }
}

static void test_accept__nothing_drafted_is_the_plain_draw(void **state)
{
    const struct target_row law = {.kind = TARGET_SUPPORT};
    const struct proposal none = {0};
    const struct rng_key key = {0};
    struct sampling sampling = sampling_default;

    (void)state;
    sampling.temperature = 1.0;
    struct verdict verdict = accept_decide(&sampling, &law, &none, 0, &key);
    assert_chain(&verdict, 0, 0);
    assert_int_equal(verdict.draw, DRAW_PLAIN);
}

static void test_accept__a_chain_of_any_length_is_its_own_path(void **state)
{
    (void)state;
    for (int drafted = 0; drafted <= MESSAGE_MAX_DRAFT; drafted++)
        for (int accepted = 0; accepted <= drafted; accepted++) {
            struct verdict verdict = verdict_of_chain(accepted, drafted, DRAW_PLAIN);

            assert_chain(&verdict, accepted, drafted);
            assert_int_equal(verdict.draw, DRAW_PLAIN);
        }
}

/* Each token follows the row of the node before it, whatever number that has. */
static void test_accept__the_rows_of_a_path_are_those_of_its_nodes(void **state)
{
    const struct verdict verdict = {.accepted = 3, .node = {1, 4, 31}};

    (void)state;
    assert_int_equal(verdict_row(&verdict, 0), 0);
    assert_int_equal(verdict_row(&verdict, 1), 2);
    assert_int_equal(verdict_row(&verdict, 2), 5);
    assert_int_equal(verdict_row(&verdict, 3), 32);
}

static void test_accept__race_over_the_support_has_the_residuals_scores(void **state)
{
    const float logit[] = {2.0f, 0.5f, -INFINITY};
    const double z = exp(2.0) + exp(0.5) + 1.0;
    const struct target_row law = {.kind = TARGET_SUPPORT, .count = 3, .logit = logit, .log_z = log(z)};

    (void)state;
    for (uint32_t r = 0; r < 2000; r++) {
        const struct rng_key key = {.seed = 4, .request = r};
        struct scored_token winner = accept_gumbel_max_support(&law, &q, 2, &minus_q, &key);
        double over = exp(2.0) / z - 0.5; /* the other two have p < q */

        assert_true(over > 0 && exp(0.5) / z < 0.25);
        assert_int_equal(winner.token, 2);
        assert_true(fabs((double)winner.score - (log(over * z) + (double)rng_gumbel(&key, RNG_RESIDUAL, 2))) < 1e-5);
    }
}

static void test_accept__race_of_an_empty_residual_has_no_winner(void **state)
{
    const float logit[] = {0.0f};
    const struct target_row law = {.kind = TARGET_SUPPORT, .count = 1, .logit = logit, .log_z = 0.5};
    const struct support point = {0};
    const struct rng_key key = {0};

    (void)state;
    assert_int_equal(accept_gumbel_max_support(&law, &point, 3, &minus_q, &key).token, -1);
    assert_true(accept_gumbel_max_support(&law, &point, 3, &minus_q, &key).score == -INFINITY);
}

static void test_accept__list_whose_residual_is_empty_is_drawn_from_p(void **state)
{
    const struct scored_token best[] = {{0, 2}, {0, 5}, {0, 9}};
    const double p[] = {0.5, 0.25, 0.25};
    const struct target_row law = {.kind = TARGET_LIST, .count = 3, .best = best, .p = p};

    (void)state;
    for (uint32_t r = 0; r < 500; r++) {
        const struct rng_key key = {.seed = 5, .request = r};

        assert_int_equal(accept_draw_list(&law, &q, 2, &minus_q, &key, RNG_RESIDUAL), accept_draw_list(&law, &q, 2, NULL, &key, RNG_RESIDUAL));
    }
}

/* No more than a part of p was taken, where q has more: a fifth, three tenths and a half of what is left, within six deviations. */
static void test_accept__a_residual_takes_no_more_than_its_part_of_p(void **state)
{
    enum { KEYS = 20000 };
    static const struct scored_token best[] = {{0, 2}, {0, 5}, {0, 9}};
    static const double p[] = {0.2, 0.3, 0.5};
    static const struct residual half = {.of_p = 1, .of_q = 1.5, .most = 0.5};
    const struct target_row list = {.kind = TARGET_LIST, .count = 3, .best = best, .p = p};
    const float logit[] = {(float)log(0.2), (float)log(0.3), (float)log(0.5)};
    const struct target_row support = {.kind = TARGET_SUPPORT, .count = 3, .logit = logit};
    int counts[2][10] = {{0}};

    (void)state;
    for (uint32_t r = 0; r < KEYS; r++) {
        const struct rng_key key = {.seed = 6, .request = r};

        counts[0][accept_draw_list(&list, &q, 2, &half, &key, RNG_RESIDUAL)]++;
        counts[1][accept_gumbel_max_support(&support, &q, 2, &half, &key).token]++;
    }
    for (int i = 0; i < 6; i++) {
        double share = p[i % 3], off = counts[i / 3][ids[i % 3]] - KEYS * share;

        assert_true(off * off <= 36 * KEYS * share * (1 - share));
    }
}

static void test_accept__overlap_is_the_sum_of_the_smaller(void **state)
{
    const struct scored_token best[] = {{0, 2}, {0, 3}};
    const double p[] = {0.75, 0.25};
    const float logit[] = {0.0f, -INFINITY, 0.0f};
    const struct target_row list = {.kind = TARGET_LIST, .count = 2, .best = best, .p = p};
    const struct target_row support = {.kind = TARGET_SUPPORT, .count = 3, .logit = logit, .log_z = log(4.0)};
    const struct target_row winner = {.kind = TARGET_WINNER, .winner = 5};

    (void)state;
    assert_true(fabs(accept_overlap(&list, &q, 2) - 0.5) < 1e-12);
    assert_true(fabs(accept_overlap(&support, &q, 2) - 0.5) < 1e-12);
    assert_true(accept_overlap(&winner, &q, 5) == 1.0);
    assert_true(accept_overlap(&winner, &q, 2) == 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accept__test_is_strict),
        cmocka_unit_test(test_accept__q_is_the_weight_or_the_point_mass),
        cmocka_unit_test(test_accept__p_is_of_the_list_or_the_support),
        cmocka_unit_test(test_accept__winners_stand_while_they_match),
        cmocka_unit_test(test_accept__the_path_of_a_tree_is_that_of_the_targets_tokens),
        cmocka_unit_test(test_accept__rules_that_are_not_greedy_at_temperature_0_look_at_p),
        cmocka_unit_test(test_accept__typical_asks_less_where_the_target_is_unsure),
        cmocka_unit_test(test_accept__rejection_uses_the_coin_of_each_position),
        cmocka_unit_test(test_accept__nothing_drafted_is_the_plain_draw),
        cmocka_unit_test(test_accept__a_chain_of_any_length_is_its_own_path),
        cmocka_unit_test(test_accept__the_rows_of_a_path_are_those_of_its_nodes),
        cmocka_unit_test(test_accept__race_over_the_support_has_the_residuals_scores),
        cmocka_unit_test(test_accept__race_of_an_empty_residual_has_no_winner),
        cmocka_unit_test(test_accept__list_whose_residual_is_empty_is_drawn_from_p),
        cmocka_unit_test(test_accept__a_residual_takes_no_more_than_its_part_of_p),
        cmocka_unit_test(test_accept__overlap_is_the_sum_of_the_smaller),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
