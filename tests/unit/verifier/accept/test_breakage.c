/* Faults put in on purpose: each does what its line says, and nothing else is touched. */
#include "common/base/breakage.h"
#include "common/options/options.h"
#include "common/sample/siblings.h"
#include "drafter/draft_broken.h"
#include "verifier/accept/accept_broken.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { TOKENS = 20 };

static const int32_t point_ids[] = {2, 5, 9};
static const uint32_t even[] = {21846, 21845, 21845}, steep[] = {60000, 5000, 536};
static const float logits[] = {0, 0, 0};

static struct proposal two_drafts(void)
{
    struct proposal proposal = {.count = 2, .token = {5, 9}};

    proposal.q[0] = (struct support){.count = 3, .id = point_ids, .weight = even};
    proposal.q[1] = (struct support){.count = 3, .id = point_ids, .weight = steep};
    return proposal;
}

static struct sampling warm(void)
{
    struct sampling sampling = sampling_default;

    sampling.temperature = 1;
    return sampling;
}

static void test_breakage__table_and_option_name_the_same_kinds(void **state)
{
    const char *at = BREAKAGE_NAMES;

    (void)state;
    for (int kind = 0; kind < BREAKAGE_COUNT; kind++) {
        const struct breakage_entry *entry = &breakage_table[kind];
        size_t width = strcspn(at, "|");

        assert_int_equal(width, strlen(entry->name));
        assert_memory_equal(at, entry->name, width);
        assert_true(kind == BREAKAGE_NONE || (entry->resembles != NULL && entry->seen_by != NULL));
        at += width + (at[width] == '|');
    }
    assert_int_equal(*at, '\0');
}

static void test_breakage__only_a_check_may_have_one(void **state)
{
    char *run[] = {"tandem", "--break", "q-row"}, *check[] = {"tandem", "--check", "quick", "--break", "q-row"};
    struct options options;

    (void)state;
    assert_int_equal(options_parse(3, run, &options), STATUS_USAGE);
    assert_int_equal(options_parse(5, check, &options), STATUS_OK);
    assert_int_equal(options.checks.breakage, BREAKAGE_Q_ROW);
    assert_int_equal(options.checks.size, CHECK_QUICK);
}

/* Total variation between q and the law that is drawn from, over all u. */
static double variation(const struct sparse_q *q, enum breakage breakage)
{
    int hits[TOKENS] = {0};
    double sum = 0;

    for (uint32_t u = 0; u < SPARSE_Q_SUM; u++)
        for (int i = 0, token = draft_broken_draw(q, breakage, u); i < q->count; i++)
            hits[i] += q->id[i] == token;
    for (int i = 0; i < q->count; i++)
        sum += fabs(hits[i] - (double)q->weight[i]);
    return sum / 2 / SPARSE_Q_SUM;
}

static void test_breakage__the_drafters_kinds_draw_from_another_law(void **state)
{
    struct sparse_q q;
    struct scored_token best[TOKENS];
    double p[TOKENS], sum = 0;

    (void)state;
    for (int i = 0; i < TOKENS; i++) {
        best[i] = (struct scored_token){.score = (float)-i, .token = 3 * i};
        sum += p[i] = exp(-0.2 * i);
    }
    sparse_q_fill(&q, best, p, TOKENS, sum, TOKENS);
    for (int kind = BREAKAGE_NONE; kind < BREAKAGE_COUNT; kind++) {
        double away = variation(&q, (enum breakage)kind);

        if (kind == BREAKAGE_Q_TEMPERATURE || kind == BREAKAGE_Q_TOP_K)
            assert_true(away > 0.02 && away < 0.5);
        else
            assert_true(away == 0);
    }
}

/* What a rule decides over many requests: how often each draft stood, and what came next. */
struct tally {
    int accepted[3], draws[3];
};

static struct tally decide(enum breakage breakage, const struct sampling *sampling, const struct target_row *laws)
{
    const struct proposal proposal = two_drafts();
    struct tally tally = {0};

    for (uint32_t r = 0; r < 4000; r++) {
        const struct rng_key key = {.seed = 6, .request = r, .position = 10};
        struct verdict verdict = accept_broken_decide(breakage, sampling, laws, &proposal, 2, &key);

        tally.accepted[verdict.accepted]++;
        tally.draws[verdict.draw]++;
    }
    return tally;
}

static void test_breakage__the_leads_kinds_decide_otherwise(void **state)
{
    /* p = 1/6 for each of q's tokens, half of the mass elsewhere. */
    const struct target_row law = {.kind = TARGET_SUPPORT, .count = 3, .logit = logits, .log_z = log(6)};
    const struct target_row laws[3] = {law, law, law};
    const struct sampling sampling = warm();
    struct tally right = decide(BREAKAGE_NONE, &sampling, laws), wrong;

    (void)state;
    assert_true(right.draws[DRAW_RESIDUAL] > 1000 && right.draws[DRAW_NONE] == 0);
    wrong = decide(BREAKAGE_ACCEPT_ALL, &sampling, laws);
    assert_int_equal(wrong.accepted[2], 4000);
    wrong = decide(BREAKAGE_RESIDUAL_P, &sampling, laws);
    assert_int_equal(wrong.draws[DRAW_RESIDUAL], 0);
    assert_memory_equal(wrong.accepted, right.accepted, sizeof right.accepted);
    wrong = decide(BREAKAGE_DRAFTER_BONUS, &sampling, laws);
    assert_int_equal(wrong.draws[DRAW_NONE], right.accepted[2]);
    wrong = decide(BREAKAGE_Q_ROW, &sampling, laws); /* the second draft is 40 times as likely under the first one's q */
    assert_true(wrong.accepted[0] == right.accepted[0] && wrong.accepted[2] < right.accepted[2]);
    wrong = decide(BREAKAGE_SHARED_COIN, &sampling, laws);
    assert_memory_not_equal(wrong.accepted, right.accepted, sizeof right.accepted);
    wrong = decide(BREAKAGE_Q_TEMPERATURE, &sampling, laws); /* the drafter's: the lead decides rightly */
    assert_memory_equal(&wrong, &right, sizeof right);
}

static void test_breakage__greedy_feels_what_is_not_about_coins(void **state)
{
    const struct target_row laws[3] = {{.winner = 5}, {.winner = 9}, {.winner = 2}}, others[3] = {{.winner = 5}, {.winner = 2}, {.winner = 2}};
    const struct proposal proposal = two_drafts();
    const struct rng_key key = {0};
    struct verdict verdict = accept_broken_decide(BREAKAGE_ACCEPT_ALL, &sampling_default, others, &proposal, 2, &key);

    (void)state;
    assert_true(verdict.accepted == 2 && verdict.token == 2 && verdict.draw == DRAW_NONE);
    verdict = accept_broken_decide(BREAKAGE_SHARED_COIN, &sampling_default, others, &proposal, 2, &key);
    assert_true(verdict.accepted == 1 && verdict.token == 2);
    verdict = accept_broken_decide(BREAKAGE_DRAFTER_BONUS, &sampling_default, laws, &proposal, 2, &key);
    assert_true(verdict.accepted == 2 && verdict.draw == DRAW_NONE);
}

/* A law of six tokens and three siblings drawn from a q that is nearly one token. */
static const uint32_t q_weight[] = {40000, 12000, 8000, 3000, 1536, 1000};
static const double target_p[] = {0.15, 0.1, 0.25, 0.3, 0.05, 0.15};
static const int32_t ids[] = {0, 1, 2, 3, 4, 5};
enum { VOCAB = 6, SIBLINGS = 3, TRIALS = 60000 };

/* Total variation between p and the law of the next token as it is decided about siblings that are drawn anew for each request. */
static double off_by(enum breakage breakage, int accept)
{
    struct sampling sampling = warm();
    struct scored_token best[VOCAB];
    const struct siblings_q q = {.count = VOCAB, .id = ids, .weight = q_weight};
    int hits[VOCAB] = {0};
    double sum = 0;

    sampling.accept = accept;
    for (int i = 0; i < VOCAB; i++)
        best[i] = (struct scored_token){.score = (float)log(target_p[i]), .token = i};
    for (uint32_t r = 0; r < TRIALS; r++) {
        const struct target_row row = {.kind = TARGET_LIST, .count = VOCAB, .best = best, .p = target_p}, rows[SIBLINGS + 1] = {row, row, row, row};
        const struct rng_key key = {.seed = 3, .request = r, .position = 10};
        struct proposal proposal = {.count = SIBLINGS, .is_tree = 1};
        struct verdict verdict;

        for (int i = 0; i < SIBLINGS; i++) {
            proposal.parent[i] = -1;
            proposal.token[i] = siblings_draw(&q, rule_of(&sampling)->siblings, proposal.token, i, 0, &key);
        }
        proposal.q[0] = (struct support){.count = VOCAB, .id = ids, .weight = q_weight};
        verdict = accept_broken_decide(breakage, &sampling, rows, &proposal, SIBLINGS, &key);
        hits[verdict.accepted > 0 ? proposal.token[verdict.node[0]]
                                  : accept_draw_list(&row, &proposal.q[0], proposal.token[0],
                                                     verdict.draw == DRAW_RESIDUAL ? &verdict.residual : NULL, &key, RNG_RESIDUAL)]++;
    }
    for (int i = 0; i < VOCAB; i++)
        sum += fabs(hits[i] / (double)TRIALS - target_p[i]);
    return sum / 2;
}

static void test_breakage__of_siblings_each_fault_is_off_and_what_it_is_put_into_is_not(void **state)
{
    static const enum breakage faults[] = {BREAKAGE_SIBLING_Q, BREAKAGE_SIBLING_P, BREAKAGE_SIBLING_ORDER};

    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        const char *rules = breakage_table[faults[i]].rules;

        assert_true(strstr(rules, rule_name(ACCEPT_WITHOUT_REPLACEMENT)) == NULL || off_by(faults[i], ACCEPT_WITHOUT_REPLACEMENT) > 0.02);
        assert_true(strstr(rules, rule_name(ACCEPT_MULTISTEP)) == NULL || off_by(faults[i], ACCEPT_MULTISTEP) > 0.02);
    }
    /* The drafter's is none of the lead, and of multistep's siblings each comes from all of q: the fault in what is left of it is none. */
    assert_true(off_by(BREAKAGE_SIBLING_TOP_K, ACCEPT_WITHOUT_REPLACEMENT) < 0.006);
    assert_true(off_by(BREAKAGE_SIBLING_Q, ACCEPT_MULTISTEP) < 0.006);
    assert_true(off_by(BREAKAGE_NONE, ACCEPT_MULTISTEP) < 0.006);
}

static void test_breakage__the_drafters_best_go_by_weight(void **state)
{
    struct sparse_q q = {.count = 3, .id = {2, 5, 9}, .weight = {5000, 60000, 536}};

    (void)state;
    assert_int_equal(draft_broken_best(&q, 0), 5);
    assert_int_equal(draft_broken_best(&q, 1), 2);
    assert_int_equal(draft_broken_best(&q, 2), 9);
    assert_int_equal(draft_broken_best(&q, 3), -1);
    assert_int_equal(draft_broken_likelier(&q, 2, 5), 5);
    assert_int_equal(draft_broken_likelier(&q, 5, 9), 5);
    assert_int_equal(draft_broken_likelier(&q, 9, 9), 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_breakage__table_and_option_name_the_same_kinds),
        cmocka_unit_test(test_breakage__only_a_check_may_have_one),
        cmocka_unit_test(test_breakage__the_drafters_kinds_draw_from_another_law),
        cmocka_unit_test(test_breakage__the_leads_kinds_decide_otherwise),
        cmocka_unit_test(test_breakage__greedy_feels_what_is_not_about_coins),
        cmocka_unit_test(test_breakage__of_siblings_each_fault_is_off_and_what_it_is_put_into_is_not),
        cmocka_unit_test(test_breakage__the_drafters_best_go_by_weight),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
