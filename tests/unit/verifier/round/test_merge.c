/* Merging chains into one tree: what is one node, which nodes are taken, and what is learnt. */
#include "verifier/round/merge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h> /* needs those above */

enum { TURNS = 3000, LONGEST = 9, KINDS = 4 };

static struct proposal chain_of(const int32_t *token, int count)
{
    struct proposal chain = {.run = 3, .request = 4, .base_length = 5, .base_digest = 6, .sampling_digest = 7, .count = count};

    memcpy(chain.token, token, (size_t)count * sizeof *token);
    return chain;
}

/* Equal ones are equal: a linear congruence, by its upper bits. */
static int drawn(uint64_t *state, int below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((*state >> 33) % (uint64_t)below);
}

/* A kind whose first `depths` drafts were accepted in so many of a hundred rounds. */
static void teach(struct merge *merge, int kind, int depths, int hundredths)
{
    for (int turn = 0; turn < 100; turn++)
        merge_learn(merge, kind, depths, (turn * 37) % 100 < hundredths ? depths : 0);
}

static void test_what_agrees_from_the_front_is_one_node(void **state)
{
    const int32_t a[] = {10, 11, 12}, b[] = {10, 11, 20}, c[] = {11, 12};
    const struct proposal chain[] = {chain_of(a, 3), chain_of(b, 3), chain_of(c, 2)};
    const struct proposal *from[] = {&chain[0], &chain[1], &chain[2]};
    const int32_t token[] = {10, 11, 12, 20, 11, 12};
    const int8_t parent[] = {-1, 0, 1, 1, -1, 4};
    const uint8_t source[] = {3, 3, 1, 2, 4, 4};
    struct merge merge = {0};
    struct merged merged;

    (void)state;
    merge_chains(&merge, from, 3, MESSAGE_MAX_DRAFT, &merged);
    assert_true(merged.is_there && merged.proposal.is_tree);
    assert_int_equal(merged.proposal.count, 6);
    assert_memory_equal(merged.proposal.token, token, sizeof token);
    assert_memory_equal(merged.proposal.parent, parent, sizeof parent);
    assert_memory_equal(merged.source, source, sizeof source);
    assert_true(merged.proposal.run == 3 && merged.proposal.request == 4 && merged.proposal.base_length == 5 && merged.proposal.base_digest == 6 &&
                merged.proposal.sampling_digest == 7);
}

/* A chain costs what it costs without merging. */
static void test_one_chain_stays_one(void **state)
{
    const int32_t a[] = {10, 11, 12}, b[] = {10, 11};
    const int32_t id[] = {10, 30};
    const uint32_t weight[] = {1, MESSAGE_Q_SUM - 1};
    struct proposal chain[] = {chain_of(a, 3), chain_of(b, 2)}, empty = chain_of(a, 0);
    const struct proposal *from[] = {&chain[0], NULL, &chain[1], &empty};
    struct merge merge = {0};
    struct merged merged;

    (void)state;
    chain[0].q[1] = (struct support){2, id, weight};
    merge_chains(&merge, from, 4, MESSAGE_MAX_DRAFT, &merged);
    assert_true(merged.is_there && !merged.proposal.is_tree);
    assert_int_equal(merged.proposal.count, 3);
    assert_memory_equal(merged.proposal.token, a, sizeof a);
    for (int i = 0; i < 3; i++)
        assert_true(merged.proposal.q[i].count == 0 && merged.proposal.q[i].id == NULL); /* whose memory is another's */
    assert_true(merged.source[0] == 5 && merged.source[1] == 5 && merged.source[2] == 1);

    from[0] = from[2] = NULL;
    merge_chains(&merge, from, 4, MESSAGE_MAX_DRAFT, &merged);
    assert_true(merged.is_there && merged.proposal.count == 0); /* it was an answer */
    from[3] = NULL;
    merge_chains(&merge, from, 4, MESSAGE_MAX_DRAFT, &merged);
    assert_false(merged.is_there);
}

static void test_the_most_probable_are_taken(void **state)
{
    const int32_t a[] = {10, 11, 12, 13}, b[] = {20, 21, 22, 23};
    const struct proposal chain[] = {chain_of(a, 4), chain_of(b, 4)};
    const struct proposal *from[] = {&chain[0], &chain[1]};
    const int32_t even[] = {10, 11, 20, 21}, first[] = {10, 11, 12, 13}, second[] = {20, 21, 22, 23};
    struct merge merge = {0};
    struct merged merged;

    (void)state;
    merge_chains(&merge, from, 2, 4, &merged);
    assert_memory_equal(merged.proposal.token, even, sizeof even);
    teach(&merge, 0, 4, 80);
    merge_chains(&merge, from, 2, 4, &merged);
    assert_memory_equal(merged.proposal.token, first, sizeof first);
    memset(&merge, 0, sizeof merge);
    teach(&merge, 1, 4, 80);
    merge_chains(&merge, from, 2, 4, &merged);
    assert_memory_equal(merged.proposal.token, second, sizeof second);
    assert_false(merged.proposal.is_tree);
}

/* The value of a path by the definition: where several kinds propose the same, one of them is enough to be right. */
static double value_of(const struct merge *merge, const struct proposal *const *from, int kinds, const int32_t *path, int depth)
{
    double value = 1;

    for (int d = 0; d < depth; d++) {
        double wrong = 1;

        for (int k = 0; k < kinds; k++)
            if (from[k] != NULL && merge_agreed(from[k], path, d + 1) == d + 1)
                wrong *= 1 - merge_rate(merge, k, d);
        value *= 1 - wrong;
    }
    return value;
}

static int path_of(const struct proposal *proposal, int node, int32_t *path)
{
    int depth = node >= 0 ? path_of(proposal, proposal_parent(proposal, node), path) : 0;

    if (node >= 0)
        path[depth++] = proposal->token[node];
    return depth;
}

static int has_path(const struct proposal *proposal, const int32_t *path, int depth)
{
    int node = -1;

    for (int d = 0; d < depth; d++) {
        int child = proposal_child(proposal, node, node + 1);

        while (child >= 0 && proposal->token[child] != path[d])
            child = proposal_child(proposal, node, child + 1);
        if (child < 0)
            return 0;
        node = child;
    }
    return 1;
}

/* Random chains of few tokens: each draft of the tree is a draft of some chain and stands once, and none that was left out is better than one that
 * was taken. */
static void test_none_left_out_is_better(void **state)
{
    uint64_t dice = 1;

    (void)state;
    for (int turn = 0; turn < TURNS; turn++) {
        struct proposal chain[KINDS];
        const struct proposal *from[KINDS];
        struct merge merge = {0};
        struct merged merged;
        int32_t path[LONGEST];
        double least = 1, best = 0;
        int most = drawn(&dice, 12), distinct = 0;

        for (int k = 0; k < KINDS; k++) {
            int32_t token[LONGEST];

            for (int i = 0; i < LONGEST; i++)
                token[i] = drawn(&dice, 2);
            chain[k] = chain_of(token, drawn(&dice, LONGEST + 1));
            from[k] = drawn(&dice, 5) == 0 ? NULL : &chain[k];
            teach(&merge, k, LONGEST, drawn(&dice, 100));
        }
        merge_chains(&merge, from, KINDS, most, &merged);
        if (!merged.is_there)
            continue;
        for (int i = 0; i < merged.proposal.count; i++) {
            int depth = path_of(&merged.proposal, i, path), source = 0;
            double value = value_of(&merge, from, KINDS, path, depth);

            for (int k = 0; k < KINDS; k++)
                source |= (from[k] != NULL && merge_agreed(from[k], path, depth) == depth) << k;
            assert_true(source != 0 && source == merged.source[i]);
            for (int j = 0; j < i; j++)
                assert_false(proposal_parent(&merged.proposal, j) == proposal_parent(&merged.proposal, i) &&
                             merged.proposal.token[j] == merged.proposal.token[i]);
            least = value < least ? value : least;
        }
        for (int k = 0; k < KINDS; k++)
            for (int d = 1; from[k] != NULL && d <= from[k]->count; d++)
                if (!has_path(&merged.proposal, from[k]->token, d)) {
                    double value = value_of(&merge, from, KINDS, from[k]->token, d);

                    best = value > best ? value : best;
                    distinct++;
                }
        assert_true(merged.proposal.count <= most && (distinct == 0 || merged.proposal.count == most));
        assert_true(distinct == 0 || merged.proposal.count == 0 || best <= least * (1 + 1e-12));
    }
}

static void test_rates_are_learnt_by_kind_and_depth(void **state)
{
    struct merge merge = {0};

    (void)state;
    assert_true(merge_rate(&merge, 1, 0) == 0.5 && merge_rate(&merge, 1, 7) == 0.5);
    for (int i = 0; i < 200; i++)
        merge_learn(&merge, 1, 3, 1); /* the second of three was another token: of the third nothing is known */
    assert_true(merge_rate(&merge, 1, 0) > 0.97);
    assert_true(merge_rate(&merge, 1, 1) < 0.05);
    assert_true(merge.tested[1][2] == 0);
    assert_true(merge_rate(&merge, 1, 2) == merge_rate(&merge, 1, 1)); /* as the one before it */
    assert_true(merge_rate(&merge, 0, 0) == 0.5);
    for (int i = 0; i < 200; i++)
        merge_learn(&merge, 1, 1, 0);
    assert_true(merge_rate(&merge, 1, 0) < 0.05); /* what was is forgotten */
}

static void test_first_drafts_are_learnt_together(void **state)
{
    struct merge merge = {0};

    (void)state;
    assert_true(merge_alone(&merge, 2) == 0.25);
    for (int i = 0; i < 200; i++)
        merge_learn_first(&merge, 7, i % 2 == 0 ? 3 : 4); /* both of the first two, or the third alone */
    assert_true(merge_alone(&merge, 0) < 0.02 && merge_alone(&merge, 1) < 0.02);
    assert_true(merge_alone(&merge, 2) > 0.45 && merge_alone(&merge, 2) < 0.55);
    assert_true(merge.compared[3] == 0 && merge_alone(&merge, 3) == 0.25);
}

static void test_sources_of_a_path(void **state)
{
    const int32_t a[] = {10, 11, 12}, b[] = {10, 20, 21}, path[] = {10, 20, 21, 30};
    const struct proposal chain[] = {chain_of(a, 3), chain_of(b, 3)};
    const struct proposal *from[] = {&chain[0], &chain[1]};
    struct merge merge = {0};
    struct merged merged;
    uint8_t source[4];

    (void)state;
    merge_chains(&merge, from, 2, 5, &merged);
    merge_sources(&merged, path, 3, source);
    assert_true(source[0] == 3 && source[1] == 2 && source[2] == 2);
    merge_sources(&merged, a, 3, source);
    assert_true(source[0] == 3 && source[1] == 1 && source[2] == 1);
    assert_int_equal(merge_agreed(&chain[1], path, 4), 3);
    assert_int_equal(merge_agreed(&chain[1], path, 2), 2);
    assert_int_equal(merge_agreed(&chain[0], path, 4), 1);
}

static void teach_depths(struct merge *merge, int kind, const int *hundredths, int depths)
{
    for (int depth = 0; depth < depths; depth++) {
        merge->tested[kind][depth] = 200;
        merge->agreed[kind][depth] = 2 * hundredths[depth];
    }
}

/* Where a rule asks for q: what two drew is there twice, each with the q that it was drawn from, and rows are asked about all ids for the newest
 * token. */
static void test_apart__each_chain_stays_a_branch(void **state)
{
    static const int32_t a[] = {10, 11, 12}, b[] = {10, 20}, c[] = {7};
    static const int32_t id[] = {3, 10, 30}, other[] = {10, 11}, deep[] = {11, 12};
    static const uint32_t weight[] = {1, 1, MESSAGE_Q_SUM - 2}, half[] = {MESSAGE_Q_SUM / 2, MESSAGE_Q_SUM / 2};
    static const int32_t token[] = {10, 11, 12, 10, 20, 7}, asked[] = {3, 7, 10, 11, 30};
    static const int8_t parent[] = {-1, 0, 1, -1, 3, -1};
    static const uint8_t source[] = {1, 1, 1, 2, 2, 4};
    struct proposal chain[] = {chain_of(a, 3), chain_of(b, 2), chain_of(c, 1)};
    const struct proposal *from[] = {&chain[0], &chain[1], &chain[2]};
    struct merge merge = {0};
    static struct merged merged;
    int32_t drawn;

    (void)state;
    chain[0].q[0] = (struct support){3, id, weight};
    chain[0].q[1] = (struct support){2, deep, half};
    chain[1].q[0] = (struct support){2, other, half}; /* the third is a point mass */
    merge_apart(&merge, from, 3, MESSAGE_MAX_DRAFT, &merged);
    assert_true(merged.is_there && merged.proposal.is_tree && merged.proposal.count == 6);
    assert_memory_equal(merged.proposal.token, token, sizeof token);
    assert_memory_equal(merged.proposal.parent, parent, sizeof parent);
    assert_memory_equal(merged.source, source, sizeof source);
    assert_int_equal(merged.proposal.asked.count, 5);
    assert_memory_equal(merged.proposal.asked.id, asked, sizeof asked);
    assert_ptr_equal(proposal_q(&merged.proposal, 0, &drawn)->id, id);
    assert_ptr_equal(proposal_q(&merged.proposal, 1, &drawn)->id, deep);
    assert_ptr_equal(proposal_q(&merged.proposal, 3, &drawn)->id, other);
    assert_true(proposal_q(&merged.proposal, 5, &drawn)->count == 0 && drawn == 7);
    assert_ptr_equal(proposal_asked(&merged.proposal, 5, &drawn), &merged.proposal.asked);
    assert_ptr_equal(proposal_asked(&merged.proposal, 1, &drawn)->id, deep);

    from[0] = from[2] = NULL; /* one alone is its chain */
    merge_apart(&merge, from, 3, MESSAGE_MAX_DRAFT, &merged);
    assert_true(merged.is_there && !merged.proposal.is_tree && merged.proposal.count == 2 && merged.proposal.asked.count == 0);
    assert_true(merged.source[0] == 2 && merged.source[1] == 2);
    assert_ptr_equal(proposal_asked(&merged.proposal, 0, &drawn)->id, other);
    from[1] = NULL;
    merge_apart(&merge, from, 3, MESSAGE_MAX_DRAFT, &merged);
    assert_false(merged.is_there);
}

/* How many of each: by what was accepted before, whatever was drafted. */
static void test_apart__the_better_kind_has_more_rows(void **state)
{
    static const int32_t a[] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const int good[] = {90, 90, 90, 90, 20, 20, 20, 20}, bad[] = {50, 50, 50, 50, 50, 50, 50, 50};
    struct proposal chain[] = {chain_of(a, 8), chain_of(a, 8)};
    const struct proposal *from[] = {&chain[0], &chain[1]};
    struct merge merge = {0};
    static struct merged merged;

    (void)state;
    merge_apart(&merge, from, 2, 6, &merged); /* of which nothing is known */
    assert_true(merged.proposal.count == 6 && merged.source[3] == 1 && merged.source[4] == 2);
    merge_apart(&merge, from, 2, 2, &merged);
    assert_true(merged.source[0] == 1 && merged.source[1] == 2); /* each has one before any has two that are worth no more */
    teach_depths(&merge, 0, bad, 8);
    teach_depths(&merge, 1, good, 8); /* 0.9, 0.81, 0.73, 0.66, 0.13 beside, where the first of these is wrong, 0.3, 0.15 */
    merge.compared[0] = 200;
    merge.alone[0] = 60;
    for (int shift = 0; shift < 2; shift++) {
        int of_first = 0;

        merge_apart(&merge, from, 2, 6, &merged);
        for (int i = 0; i < merged.proposal.count; i++)
            of_first += merged.source[i] == 1;
        assert_true(merged.proposal.count == 6 && of_first == 2 && merged.source[0] == 2 && merged.source[4] == 1);
        for (int i = 0; i < 8; i++)
            chain[1].token[i] += 100; /* the same, whether or not they agree */
    }
    for (int length = 8; length >= 1; length--) { /* nor does it matter to the other where one ends, which may follow from what was drawn */
        int of_first = 0, of_second = 0;

        chain[1].count = length;
        merge_apart(&merge, from, 2, 6, &merged);
        for (int i = 0; i < merged.proposal.count; i++) {
            of_first += merged.source[i] == 1;
            of_second += merged.source[i] == 2;
        }
        assert_true(of_first == 2 && of_second == (length < 4 ? length : 4));
    }
    merge.alone[0] = 2; /* whenever it is right the other one is */
    chain[1].count = 8;
    merge_apart(&merge, from, 2, 5, &merged);
    assert_true(merged.proposal.count == 5 && !merged.proposal.is_tree && merged.source[4] == 2);
    from[1] = NULL; /* who is alone has all rows */
    merge_apart(&merge, from, 2, 5, &merged);
    assert_true(merged.proposal.count == 5 && !merged.proposal.is_tree && merged.source[4] == 1);
    merge_apart(&merge, from, 2, 0, &merged);
    assert_true(merged.is_there && merged.proposal.count == 0 && merged.proposal.asked.count == 0);
}

/* q's that no row can be asked about together. */
static void test_apart__kinds_without_room_are_left_out(void **state)
{
    static const int32_t a[] = {0}, b[] = {1};
    static int32_t id[2][MESSAGE_MAX_SUPPORT];
    static uint32_t weight[MESSAGE_MAX_SUPPORT];
    struct proposal chain[] = {chain_of(a, 1), chain_of(b, 1)};
    const struct proposal *from[] = {&chain[0], &chain[1]};
    struct merge merge = {0};
    static struct merged merged;

    (void)state;
    for (int i = 0; i < MESSAGE_MAX_SUPPORT; i++) {
        id[0][i] = 2 * i;
        id[1][i] = i < MESSAGE_MAX_SUPPORT - 1 ? 2 * i : 2 * i + 1;
        weight[i] = MESSAGE_Q_SUM / MESSAGE_MAX_SUPPORT;
    }
    chain[0].q[0] = (struct support){MESSAGE_MAX_SUPPORT, id[0], weight};
    chain[1].q[0] = (struct support){MESSAGE_MAX_SUPPORT, id[1], weight};
    merge_apart(&merge, from, 2, 8, &merged);
    assert_true(merged.proposal.count == 1 && merged.source[0] == 1 && merged.proposal.asked.count == 0);
    chain[1].q[0].count--;
    merge_apart(&merge, from, 2, 8, &merged);
    assert_true(merged.proposal.count == 2 && merged.proposal.asked.count == MESSAGE_MAX_SUPPORT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_agrees_from_the_front_is_one_node),
        cmocka_unit_test(test_one_chain_stays_one),
        cmocka_unit_test(test_the_most_probable_are_taken),
        cmocka_unit_test(test_none_left_out_is_better),
        cmocka_unit_test(test_rates_are_learnt_by_kind_and_depth),
        cmocka_unit_test(test_first_drafts_are_learnt_together),
        cmocka_unit_test(test_sources_of_a_path),
        cmocka_unit_test(test_apart__each_chain_stays_a_branch),
        cmocka_unit_test(test_apart__the_better_kind_has_more_rows),
        cmocka_unit_test(test_apart__kinds_without_room_are_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
