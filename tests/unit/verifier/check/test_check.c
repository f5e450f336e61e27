/* The pure parts of `tandem check`: cells of a law, draws that are made again, the law of a row. */
#include "common/base/bounds.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/rng.h"
#include "common/sample/distribution.h"
#include "common/sample/rule.h"
#include "common/sample/sparse_q.h"
#include "tests/law/naive_law.h"
#include "tests/support/capture.h"
#include "verifier/check/check.h"
#include "verifier/check/check_draws.h"
#include "verifier/check/check_law.h"
#include "verifier/check/check_row.h"
#include "verifier/check/check_share.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 300 };

/* A law with some likely tokens, many unlikely ones, and some that cannot be. */
static void fill(uint32_t number, double spread, double *p)
{
    double sum = 0;

    for (uint32_t t = 0; t < VOCAB; t++) {
        const struct rng_key key = {.seed = 3, .request = number, .position = t};

        p[t] = t % 7 == number % 7 ? 0 : exp(spread * rng_uniform(&key, RNG_NOISE));
        sum += p[t];
    }
    for (int t = 0; t < VOCAB; t++)
        p[t] /= sum;
}

struct joint {
    struct check_law law;
    double p1[VOCAB], q1[VOCAB], p2[CHECK_LAW_FOLLOWED][VOCAB], q2[CHECK_LAW_FOLLOWED][VOCAB];
};

static void open_joint(struct joint *joint)
{
    assert_int_equal(check_law_open(&joint->law, VOCAB), STATUS_OK);
    fill(1, 40, joint->p1);
    fill(2, 30, joint->q1);
    check_law_begin(&joint->law, joint->p1);
    check_law_cut_first(&joint->law, joint->p1, joint->q1);
    for (int i = 0; i < joint->law.followed; i++) {
        fill(10 + (uint32_t)i, 8, joint->p2[i]);
        fill(30 + (uint32_t)i, 8, joint->q2[i]);
        check_law_cut_second(&joint->law, i, joint->p2[i], joint->q2[i]);
    }
}

static void test_check_law__cells_hold_exactly_their_tokens(void **state)
{
    static struct joint joint;
    double expected[CHECK_LAW_MOST] = {0}, sum = 0;
    struct check_law *law = &joint.law;

    (void)state;
    open_joint(&joint);
    assert_in_range(law->followed, 1, CHECK_LAW_FOLLOWED);
    for (int32_t x1 = 0; x1 < VOCAB; x1++) {
        int i = check_law_followed(law, x1);

        for (int32_t x2 = 0; i >= 0 && x2 < VOCAB; x2++)
            expected[law->second[i * VOCAB + x2]] += joint.p1[x1] * joint.p2[i][x2];
        if (i < 0)
            expected[law->first[x1]] += joint.p1[x1];
    }
    for (int c = 0; c < law->cells; c++) {
        assert_true(fabs(expected[c] - law->expected[c]) < 1e-12);
        assert_true(c == 0 ? expected[c] == 0 : expected[c] > 0);
        sum += law->expected[c];
    }
    assert_true(fabs(sum - 1) < 1e-12);
    assert_in_range(law->cells, CHECK_LAW_CELLS / 2, CHECK_LAW_MOST);
    check_law_close(law);
}

static void test_check_law__a_token_that_cannot_be_is_seen_at_once(void **state)
{
    static struct joint joint;
    struct check_law *law = &joint.law;
    int32_t likely, unlikely = 1;

    (void)state;
    open_joint(&joint);
    likely = law->token[0];
    while (joint.p1[unlikely] > 0)
        unlikely++;
    check_law_add(law, likely, law->token[1]);
    check_law_add(law, unlikely, 0);
    assert_int_equal(law->samples, 2);
    assert_int_equal(bounds_compare(law->count, law->expected, law->cells).impossible, 1);
    check_law_close(law);
}

static int32_t draw(const double *p, double u)
{
    int32_t token = -1;

    for (int32_t t = 0; t < VOCAB && u >= 0; t++)
        if (p[t] > 0) {
            u -= p[t];
            token = t;
        }
    return token;
}

/* `share` of the first tokens come from q instead of p. */
static struct bounds_fit sample(struct joint *joint, double share, double *lean)
{
    struct check_law *law = &joint->law;

    memset(law->count, 0, sizeof law->count);
    law->samples = law->leaning = 0;
    for (uint32_t n = 0; n < 4000; n++) {
        const struct rng_key key = {.seed = 4, .request = n};
        const double *from = rng_uniform(&key, RNG_ACCEPT) < share ? joint->q1 : joint->p1;
        int32_t x1 = draw(from, rng_uniform(&key, RNG_DRAFT)), i = check_law_followed(law, x1);

        check_law_add(law, x1, i >= 0 ? draw(joint->p2[i], rng_uniform(&key, RNG_NOISE)) : 0);
    }
    *lean = (double)law->leaning / (double)law->samples - law->lean_expected;
    return bounds_compare(law->count, law->expected, law->cells);
}

static void test_check_law__the_law_itself_passes_and_a_lean_is_seen(void **state)
{
    static struct joint joint;
    struct bounds_fit fit;
    double lean, found, by_chance;

    (void)state;
    open_joint(&joint);
    for (int t = 0; t < VOCAB; t++) /* tokens without p would be seen for that alone */
        joint.q1[t] = joint.p1[t] > 0 ? joint.q1[t] : 0;
    fit = sample(&joint, 0, &lean);
    assert_int_equal(fit.impossible, 0);
    assert_true(fit.g < bounds_g(fit.df, 1e-6) && fabs(lean) < bounds_mean(1, 4000, 1e-6));
    check_law_distance(&joint.law, &found, &by_chance);
    assert_true(by_chance > 0.01 && by_chance < 0.1 && fabs(found - by_chance) < 0.4 * by_chance);
    fit = sample(&joint, 0.3, &lean);
    assert_true(fit.g > bounds_g(fit.df, 1e-6));
    assert_true(lean < -bounds_mean(1, 4000, 1e-6)); /* it leans to q */
    check_law_distance(&joint.law, &found, &by_chance);
    assert_true(found > -lean && found < 0.3 + by_chance); /* no less than of any one set of tokens */
    check_law_close(&joint.law);
}

/* A proposal whose tokens are drawn as a drafter does. */
static void draft(struct proposal *proposal, struct sparse_q *q, const struct rng_key *first)
{
    struct scored_token best[4] = {{4, 11}, {3, 5}, {2, 40}, {1, 2}};
    const double p[] = {0.4, 0.3, 0.2, 0.1};

    sparse_q_fill(q, best, p, 4, 1, 4);
    *proposal = (struct proposal){.count = 3};
    for (int i = 0; i < 3; i++) {
        const struct rng_key key = {.seed = first->seed, .request = first->request, .position = first->position + (uint32_t)i};

        proposal->q[i] = (struct support){.count = q->count, .id = q->id, .weight = q->weight};
        proposal->token[i] = sparse_q_draw(q, rng_coin16(&key, RNG_DRAFT, 0));
    }
}

static void test_check_draws__a_draft_is_the_draw_from_its_q(void **state)
{
    struct check_draws draws = {0};
    struct sampling sampling = sampling_default;
    struct proposal proposal;
    struct sparse_q q;

    (void)state;
    sampling.temperature = 1;
    sampling.seed = 77;
    for (uint32_t r = 0; r < 500; r++) {
        const struct rng_key key = {.seed = 77, .request = r, .position = 9};

        draft(&proposal, &q, &key);
        check_draws_add(&draws, &sampling, r, 9, &proposal, NULL);
    }
    assert_int_equal(draws.drawn, 1500);
    assert_int_equal(draws.wrong, 0);
    proposal.token[1] = proposal.token[1] == 5 ? 11 : 5;
    check_draws_add(&draws, &sampling, 499, 9, &proposal, NULL);
    assert_int_equal(draws.wrong, 1);
    assert_int_equal(draws.request, 499);
    assert_int_equal(draws.position, 10);
    assert_int_equal(draws.sent, proposal.token[1]);
    check_draws_add(&draws, &sampling, 499, 10, &proposal, NULL); /* drawn for other positions */
    assert_true(draws.wrong > 1);
}

static void test_check_draws__what_was_not_drawn_is_not_judged(void **state)
{
    struct check_draws draws = {0};
    struct sampling sampling = sampling_default;
    struct proposal proposal = {.count = 2, .token = {4, 5}};

    (void)state;
    check_draws_add(&draws, &sampling, 0, 3, &proposal, NULL); /* greedy */
    sampling.temperature = 1;
    check_draws_add(&draws, &sampling, 0, 3, &proposal, NULL); /* point masses */
    sampling.accept = ACCEPT_COUPLED;
    check_draws_add(&draws, &sampling, 0, 3, &proposal, NULL);
    assert_int_equal(draws.drawn, 0);
    assert_int_equal(draws.certain, 6);
}

/* A check is by the rule that is asked for, where it may be, and else by another: equality by one whose text is free of the drafts. */
static void test_check__is_by_the_rule_that_is_asked_for(void **state)
{
    struct options options = {.request.sampling = sampling_default};
    struct job job = {.options = &options};
    const struct check check = {.job = &job};

    (void)state;
    for (int asked = 0; rule_row(asked) != NULL; asked++) {
        options.request.sampling.accept = asked;
        for (int depends = 0; depends < 2; depends++) {
            const struct rule *rule = rule_row(check_rule(&check, depends));

            assert_int_equal(rule->depends_on_drafts, depends);
            if (rule_row(asked)->depends_on_drafts == depends)
                assert_ptr_equal(rule, rule_row(asked));
            else
                assert_true(rule->lossless);
        }
    }
}

/* Against the law that is written out in tests/law. */
static void test_check_row__law_is_the_naive_one(void **state)
{
    static const struct {
        double top_p, min_p;
        int top_k;
    } cuts[] = {{1, 0, 0}, {0.7, 0, 0}, {1, 0.05, 0}, {1, 0, 20}, {0.8, 0.01, 50}};
    float logits[VOCAB], processed[VOCAB];
    double p[VOCAB], kept[VOCAB], naive[VOCAB];
    struct scored_token order[VOCAB];
    struct sampling sampling = sampling_default;

    (void)state;
    for (uint32_t t = 0; t < VOCAB; t++) {
        const struct rng_key key = {.seed = 5, .position = t};

        logits[t] = (float)(6 * rng_uniform(&key, RNG_NOISE));
    }
    for (int c = 0; c < 5; c++) {
        double margin;
        int is_sure;

        sampling.temperature = 0.7;
        sampling.top_p = cuts[c].top_p;
        sampling.min_p = cuts[c].min_p;
        sampling.top_k = cuts[c].top_k;
        margin = naive_law(&sampling, logits, VOCAB, NULL, 0, 0, naive);
        naive_process(&sampling, logits, VOCAB, NULL, 0, 0, processed);
        is_sure = check_row_law(&sampling, processed, VOCAB, order, kept, p);
        for (int t = 0; t < VOCAB; t++)
            assert_true(fabs(p[t] - naive[t]) < 1e-6);
        assert_true(is_sure || margin < 1e-3);
    }
}

/* Two tokens of half the mass each: whether top-p 0.5 keeps the second is a matter of the last bit. */
static void test_check_row__a_cut_at_the_edge_is_no_measure(void **state)
{
    const float logits[4] = {2, 2, -50, -50};
    struct sampling sampling = sampling_default;
    struct scored_token order[4];
    double p[4], kept[4];

    (void)state;
    sampling.temperature = 1;
    sampling.top_p = 0.5;
    assert_false(check_row_law(&sampling, logits, 4, order, kept, p));
    sampling.top_p = 0.6;
    assert_true(check_row_law(&sampling, logits, 4, order, kept, p));
    assert_true(p[0] == 0.5 && p[1] == 0.5 && p[2] == 0);
}

/* What one pass lacks no other makes up for. */
static void test_check_share__each_pass_needs_its_drafts(void **state)
{
    struct check_share share = {0};

    (void)state;
    assert_false(check_share_suffices(&share)); /* nothing was asked for */
    check_share_add(&share, 0, 0, 0);
    assert_false(check_share_suffices(&share));
    check_share_add(&share, 1000, 990, 900);
    check_share_add(&share, 100, 50, 50);
    assert_true(check_share_suffices(&share));
    check_share_add(&share, 100, 49, 49);
    assert_false(check_share_suffices(&share));
    check_share_add(&share, 100000, 100000, 100000);
    assert_false(check_share_suffices(&share));
    assert_int_equal(share.asked, 101200);
    assert_int_equal(share.answered, 101089);
    assert_true(fabs(share.least - 0.49) < 1e-12);
}

/* Proposals that say there is nothing to copy are answers, and no drafts. */
static void test_check_share__answers_without_a_draft_show_nothing(void **state)
{
    struct check_share share = {0};

    (void)state;
    check_share_add(&share, 500, 500, 24);
    assert_false(check_share_suffices(&share));
    check_share_add(&share, 500, 500, 75);
    assert_false(check_share_suffices(&share));
    check_share_add(&share, 500, 500, 51);
    assert_true(check_share_suffices(&share));
}

/* Of 4,000 samples 1,000 were drafted: where 1 % is seen over all, 4 % is over those; where nothing was, nothing. */
static void test_check_share__what_is_found_is_of_what_was_drafted(void **state)
{
    (void)state;
    assert_true(fabs(check_share_found(0.01, 1000, 4000) - 0.04) < 1e-12);
    assert_true(check_share_found(0.01, 4000, 4000) == 0.01);
    assert_true(check_share_found(0.5, 1000, 4000) == 1);
    assert_true(check_share_found(0.01, 0, 4000) == 1);
}

/* Lines of progress where no terminal is, at pretended times: the first, one each five seconds within a step and between two, and none in between. */
static void test_check__a_long_pass_tells_how_far_it_is(void **state)
{
    static const struct {
        double at_s;
        int is_begin, is_law, at, tokens; /* of check_progress, or of check_progress_within */
        const char *told;
    } rows[] = {{0, 1, 0, 0, 0, "checking equality: 1 of 4\n"},
                {4.9, 0, 0, 0, 10, NULL},
                {5, 0, 0, 0, 20, "checking equality: 1 of 4, 20 of 100 tokens\n"}, /* it is too soon to say what is left */
                {9, 0, 0, 0, 40, NULL},
                {10, 0, 0, 0, 40, "checking equality: 1 of 4, 40 of 100 tokens, about 2 min left\n"},
                {20, 0, 0, 0, 0, "checking equality: 1 of 4\n"}, /* prompts are read */
                {21, 1, 0, 1, 0, NULL},
                {25, 0, 0, 0, 100, "checking equality: 2 of 4, 100 of 100 tokens, about 55 s left\n"},
                {40, 1, 1, 0, 0, "checking law and draws: 1 of 2, about 24 s left\n"},
                {46, 0, 0, 0, 60, "checking law and draws: 1 of 2, 60 of 120 tokens, about 18 s left\n"},
                {50, 0, 0, 0, 900, NULL},
                {52, 0, 0, 0, 900, "checking law and draws: 1 of 2, 120 of 120 tokens, about 12 s left\n"}};
    static struct request prompt = {.max_tokens = 100};
    struct options options = {.rounds.draft_length = 3};
    struct job job = {.options = &options};
    struct check check = {.job = &job, .sizes = {.contexts = 2, .samples = 40}, .prompt = &prompt, .prompts = 1, .equal.lengths = 1};
    int64_t now = 1;

    (void)state;
    log_init("test_check", LOG_INFO);
    clock_pretend(&now);
    check.started_ns = now;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct capture capture;
        char text[400];

        now = 1 + (int64_t)(rows[i].at_s * 1e9);
        capture_begin(&capture);
        if (rows[i].is_begin)
            check_progress(&check, rows[i].is_law, rows[i].at);
        else
            check_progress_within(&check, rows[i].tokens);
        capture_end(&capture, text, sizeof text);
        if (rows[i].told == NULL ? *text != '\0' : strstr(text, rows[i].told) == NULL)
            fail_msg("row %zu: expected '%s', found '%s'", i, rows[i].told != NULL ? rows[i].told : "", text);
    }
    clock_pretend(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check__a_long_pass_tells_how_far_it_is),
        cmocka_unit_test(test_check_law__cells_hold_exactly_their_tokens),
        cmocka_unit_test(test_check_law__a_token_that_cannot_be_is_seen_at_once),
        cmocka_unit_test(test_check_law__the_law_itself_passes_and_a_lean_is_seen),
        cmocka_unit_test(test_check_draws__a_draft_is_the_draw_from_its_q),
        cmocka_unit_test(test_check_draws__what_was_not_drawn_is_not_judged),
        cmocka_unit_test(test_check__is_by_the_rule_that_is_asked_for),
        cmocka_unit_test(test_check_row__law_is_the_naive_one),
        cmocka_unit_test(test_check_share__each_pass_needs_its_drafts),
        cmocka_unit_test(test_check_share__answers_without_a_draft_show_nothing),
        cmocka_unit_test(test_check_share__what_is_found_is_of_what_was_drafted),
        cmocka_unit_test(test_check_row__a_cut_at_the_edge_is_no_measure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
