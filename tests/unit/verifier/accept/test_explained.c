/* A round as it was decided: what is said of each draft is what the rule did with it. */
#include "common/sample/rule.h"
#include "common/sample/sparse_q.h"
#include "verifier/accept/explained.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { DRAFTS = 4 };

static const int32_t ids[] = {2, 5, 9};
static const uint32_t weights[] = {32768, 16384, 16384};
static const struct support q = {.count = 3, .id = ids, .weight = weights};
static const float logits[] = {0.0f, 1.0f, -INFINITY}; /* p of 2 is 0.2, of 5 a little more than a half, of 9 nothing */
static const struct target_row row = {.kind = TARGET_SUPPORT, .count = 3, .logit = logits, .log_z = 1.6094379124341003};

static struct sampling sampling_by(const char *rule)
{
    struct sampling sampling = sampling_default;

    sampling.temperature = 1;
    sampling.accept = (uint32_t)rule_find(rule, strlen(rule));
    return sampling;
}

/* Its own verdict explained. */
static struct verdict decide(const struct sampling *sampling, const struct target_row *targets, const struct proposal *proposal, uint32_t position,
                             struct explained *explained)
{
    const struct rng_key key = {.seed = 7, .position = position};
    struct verdict verdict = accept_decide(sampling, targets, proposal, proposal->count, &key);

    explained_fill(explained, sampling, targets, proposal, &verdict, &key);
    assert_string_equal(explained->rule, rule_of(sampling)->name);
    assert_int_equal(explained->count, proposal->count);
    assert_int_equal(explained->draw, verdict.draw);
    return verdict;
}

/* By Algorithm 1 the coin that is shown explains the draft's fate, and what comes behind the first that was rejected was not looked at. */
static void test_explained__a_coin_tells_each_draft_of_a_chain(void **state)
{
    static const int32_t drafts[DRAFTS] = {2, 5, 2, 9};
    const struct sampling sampling = sampling_by("rejection");
    struct target_row targets[DRAFTS + 1];
    struct proposal proposal = {.count = DRAFTS};
    int ends[DRAFTS + 1] = {0};

    (void)state;
    for (int i = 0; i <= DRAFTS; i++)
        targets[i] = row;
    for (int i = 0; i < DRAFTS; i++) {
        proposal.token[i] = drafts[i];
        proposal.q[i] = q;
    }
    for (uint32_t position = 0; position < 200; position++) {
        struct explained explained;
        struct verdict verdict = decide(&sampling, targets, &proposal, position, &explained);

        ends[verdict.accepted]++;
        for (int i = 0; i < DRAFTS; i++) {
            const struct explained_node *node = &explained.node[i];

            assert_int_equal(node->token, drafts[i]);
            assert_int_equal(node->parent, i - 1);
            assert_int_equal(node->depth, i);
            assert_true(node->q == (drafts[i] == 2 ? 0.5 : 0.25));
            assert_true(node->p == accept_p(&row, &q, drafts[i]));
            assert_int_equal(node->own, -1);
            assert_int_equal(node->fate, i < verdict.accepted ? EXPLAINED_ACCEPTED : i == verdict.accepted ? EXPLAINED_REJECTED : EXPLAINED_PASSED);
            if (node->fate == EXPLAINED_PASSED)
                assert_true(node->coin == -1);
            else
                assert_int_equal(node->coin * node->q < node->p, node->fate == EXPLAINED_ACCEPTED);
        }
    }
    assert_true(ends[0] > 0 && ends[2] > 0 && ends[3] > 0); /* 5 is accepted always and 9 never: each other end was met */
    assert_int_equal(ends[1] + ends[4], 0);
}

/* Those that follow one text are tested in their order, up to the one that stands: what is behind it, or behind one that does not stand, was not. */
static void test_explained__siblings_are_tested_in_turns(void **state)
{
    static const float more[] = {1.0116009f, 0.8109302f, -INFINITY}; /* p of 2 is 0.55, of 5 0.45: behind 9 both may stand */
    const struct sampling sampling = sampling_by("multistep");
    struct target_row targets[6];
    struct proposal proposal = {.count = 5, .is_tree = 1, .token = {9, 2, 5, 2, 5}, .parent = {-1, -1, -1, 1, 1}};
    int first = 0, second = 0;

    (void)state;
    for (int i = 0; i < 6; i++) {
        targets[i] = row;
        targets[i].logit = more;
    }
    proposal.q[0] = proposal.q[3] = q; /* of those that follow one text the first has it */
    for (uint32_t position = 0; position < 200; position++) {
        struct explained explained;
        struct verdict verdict = decide(&sampling, targets, &proposal, position, &explained);
        const struct explained_node *node = explained.node;
        int stands = verdict.accepted > 0 ? verdict.node[0] : -1;

        assert_int_equal(node[0].fate, EXPLAINED_REJECTED); /* p of 9 is nothing */
        assert_int_equal(node[1].fate, stands == 1 ? EXPLAINED_ACCEPTED : EXPLAINED_REJECTED);
        assert_int_equal(node[2].fate, stands == 1 ? EXPLAINED_PASSED : stands == 2 ? EXPLAINED_ACCEPTED : EXPLAINED_REJECTED);
        assert_true(node[2].q == 0.25 && node[4].q == 0.25 && node[1].coin == -1);
        assert_int_equal(node[4].depth, 1);
        first += stands == 1;
        second += stands == 2;
        if (stands != 1) {
            assert_int_equal(node[3].fate, EXPLAINED_PASSED);
            assert_int_equal(node[4].fate, EXPLAINED_PASSED);
        } else {
            int next = verdict.accepted > 1 ? verdict.node[1] : -1;

            assert_int_equal(node[3].fate, next == 3 ? EXPLAINED_ACCEPTED : EXPLAINED_REJECTED);
            assert_int_equal(node[4].fate, next == 3 ? EXPLAINED_PASSED : next == 4 ? EXPLAINED_ACCEPTED : EXPLAINED_REJECTED);
        }
    }
    assert_true(first > 0 && second > 0);
}

/* A rule that looks on has looked at all before it says how many stand; one that asks for no q knows none. */
static void test_explained__what_a_rule_looks_at(void **state)
{
    const struct sampling block = sampling_by("block"), threshold = sampling_by("threshold");
    const struct target_row targets[] = {row, row, row};
    const struct proposal proposal = {.count = 2, .token = {9, 2}, .q = {q, q}}, alone = {.count = 2, .token = {5, 5}};
    struct explained explained;

    (void)state;
    decide(&block, targets, &proposal, 0, &explained);
    assert_int_equal(explained.node[0].fate, EXPLAINED_REJECTED);
    assert_int_equal(explained.node[1].fate, EXPLAINED_REJECTED);
    assert_true(explained.node[1].q == 0.5);
    decide(&threshold, targets, &alone, 0, &explained);
    assert_true(explained.node[0].q == -1 && explained.node[0].p > 0 && explained.node[0].coin == -1);
}

/* Where tokens are compared, the target's own one is what there is to say. */
static void test_explained__a_comparison_names_the_targets_own_token(void **state)
{
    const struct sampling sampling = sampling_by("coupled");
    const struct target_row targets[] = {{.winner = 4}, {.winner = 6}, {.winner = 8}};
    const struct proposal proposal = {.count = 2, .token = {4, 7}};
    struct explained explained;

    (void)state;
    decide(&sampling, targets, &proposal, 0, &explained);
    assert_int_equal(explained.node[0].fate, EXPLAINED_ACCEPTED);
    assert_int_equal(explained.node[0].own, 4);
    assert_int_equal(explained.node[1].fate, EXPLAINED_REJECTED);
    assert_int_equal(explained.node[1].own, 6);
    assert_true(explained.node[1].q == -1 && explained.node[1].p == -1 && explained.node[1].coin == -1);
    assert_int_equal(explained.token, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_explained__a_coin_tells_each_draft_of_a_chain),
        cmocka_unit_test(test_explained__siblings_are_tested_in_turns),
        cmocka_unit_test(test_explained__what_a_rule_looks_at),
        cmocka_unit_test(test_explained__a_comparison_names_the_targets_own_token),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
