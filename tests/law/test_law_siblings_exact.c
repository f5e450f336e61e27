/* Layer 0 for rules that test several drafts of one text: of every hand of siblings that may be drawn, in every order, the coins at which the real
 * accept_decide changes its mind are found by halving, and what is left of p is read off its verdict. The law of the token must then be the target's,
 * on random rows of a few tokens, for both forms that a row has; and no sibling makes it accept less.
 *
 * The functions of common/base/rng.h are defined here, and the linker takes these: coins are dealt, not drawn. */
#include "common/sample/siblings.h"
#include "verifier/accept/accept.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { POINT_MASS = 2 /* the drafter that has no other q */ };
enum { VOCAB = 4, MOST = 4, ROWS_TRIED = 60, HALVINGS = 50 };
#define NEAR 1e-6 /* logits are floats */

static struct {
    double coin[MOST];
    int wrong;     /* coins of another purpose or another place */
    int favourite; /* token that has the most noise; -1: none is asked for */
} deal = {.favourite = -1};

double rng_coin(const struct rng_key *key, enum rng_purpose purpose, uint32_t index)
{
    deal.wrong += purpose != RNG_ACCEPT || key->position != 0 || index >= MOST;
    return deal.coin[index % MOST];
}

double rng_uniform(const struct rng_key *key, enum rng_purpose purpose)
{
    return rng_coin(key, purpose, 0);
}

float rng_gumbel(const struct rng_key *key, enum rng_purpose purpose, uint32_t token)
{
    (void)key;
    deal.wrong += deal.favourite < 0 || purpose != RNG_RESIDUAL;
    return token == (uint32_t)deal.favourite ? 1000 : 0;
}

/* Neither of these is asked for. */
uint32_t rng_coin16(const struct rng_key *key, enum rng_purpose purpose, uint32_t index)
{
    (void)key, (void)purpose, (void)index;
    deal.wrong++;
    return 0;
}

void rng_words(const struct rng_key *key, enum rng_purpose purpose, uint32_t index, uint32_t words[4])
{
    (void)key, (void)purpose, (void)index;
    words[0] = 0;
    deal.wrong++;
}

struct pair {
    double p[VOCAB];
    uint32_t q[VOCAB];
};

/* A row of the target, q, and the siblings drawn from it. */
struct hand {
    struct sampling sampling;
    struct target_row target[1 + MOST];
    struct proposal proposal;
    struct scored_token best[VOCAB];
    double p[VOCAB], law[VOCAB], accepted;
    float logit[VOCAB];
    int32_t id[VOCAB];
    uint32_t weight[VOCAB];
};

static uint32_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void fill_pair(struct pair *pair, uint64_t seed)
{
    uint32_t p[VOCAB], q[VOCAB], all_p = 0, all_q = 0, left = MESSAGE_Q_SUM;
    uint64_t state = seed;

    for (int v = 0; v < VOCAB; v++) {
        p[v] = next(&state) % 5 == 0 && v < VOCAB - 1 ? 0 : 1 + next(&state) % 1000;
        q[v] = next(&state) % 5 == 0 && v > 0 ? 0 : 1 + next(&state) % 1000;
        all_p += p[v];
        all_q += q[v];
    }
    for (int v = VOCAB - 1; v >= 0; v--) {
        pair->q[v] = v == 0 ? left : (uint32_t)((uint64_t)q[v] * MESSAGE_Q_SUM / all_q);
        left -= pair->q[v];
    }
    for (int v = 0; v < VOCAB; v++)
        pair->p[v] = seed % 7 == 6 ? (double)pair->q[v] / MESSAGE_Q_SUM : (double)p[v] / all_p;
}

static void fill_hand(struct hand *hand, const struct pair *pair, enum target_row_kind kind, int accept, int siblings)
{
    int named = 0, kept = 0;

    memset(hand, 0, sizeof *hand);
    hand->sampling = sampling_default;
    hand->sampling.temperature = 1;
    hand->sampling.accept = accept;
    for (int v = 0; v < VOCAB; v++) {
        if (pair->q[v] > 0) {
            hand->logit[named] = pair->p[v] > 0 ? (float)log(pair->p[v]) : -INFINITY;
            hand->id[named] = v;
            hand->weight[named++] = pair->q[v];
        }
        if (pair->p[v] > 0) {
            hand->best[kept].token = v;
            hand->p[kept++] = pair->p[v];
        }
    }
    hand->proposal = (struct proposal){.count = siblings, .is_tree = 1};
    memset(hand->proposal.parent, -1, sizeof hand->proposal.parent);
    hand->proposal.q[0] = (struct support){.count = named, .id = hand->id, .weight = hand->weight};
    hand->target[0] =
        (struct target_row){.kind = kind, .count = kind == TARGET_LIST ? kept : named, .best = hand->best, .p = hand->p, .logit = hand->logit};
    for (int i = 1; i <= MOST; i++)
        hand->target[i] = hand->target[0];
}

static struct verdict decide(const struct hand *hand)
{
    const struct rng_key key = {.seed = 1};

    return accept_decide(&hand->sampling, hand->target, &hand->proposal, hand->proposal.count, &key);
}

static int is_accepted(const struct verdict *verdict, int sibling)
{
    return verdict->accepted == 1 && verdict->node[0] == sibling;
}

/* The chance that a sibling stands, where none before it does: up to which coin. */
static double chance_of(const struct hand *hand, int sibling)
{
    double low = 0, high = 1;
    struct verdict verdict;

    for (int i = 0; i < MOST; i++)
        deal.coin[i] = nextafter(1, 0);
    for (int h = 0; h < HALVINGS; h++) {
        deal.coin[sibling] = (low + high) / 2;
        verdict = decide(hand);
        if (is_accepted(&verdict, sibling))
            low = deal.coin[sibling];
        else
            high = deal.coin[sibling];
    }
    return low;
}

/* All of this hand's tokens are drawn, with this weight. */
static void play(struct hand *hand, const struct pair *pair, double weight)
{
    double rejected = weight, left[VOCAB], sum = 0;
    struct verdict verdict;

    for (int i = 0; i < hand->proposal.count; i++) {
        double chance = chance_of(hand, i);

        hand->law[hand->proposal.token[i]] += rejected * chance;
        hand->accepted += rejected * chance;
        rejected *= 1 - chance;
        if (chance > 1 - 1e-12)
            return;
    }
    for (int i = 0; i < MOST; i++)
        deal.coin[i] = nextafter(1, 0);
    verdict = decide(hand);
    assert_int_equal(verdict.accepted, 0);
    assert_int_equal(verdict.refused, 0);
    assert_int_equal(verdict.draw, DRAW_RESIDUAL);
    for (int v = 0; v < VOCAB; v++) {
        double q = (double)pair->q[v] / MESSAGE_Q_SUM, most = verdict.residual.most > 0 ? verdict.residual.most * pair->p[v] : 1;

        left[v] = fmax(0, pair->p[v] - verdict.residual.of_q * fmin(q, most));
        sum += left[v];
    }
    for (int v = 0; v < VOCAB && sum > 1e-12; v++)
        hand->law[v] += rejected * left[v] / sum;
    if (sum <= 1e-12)
        assert_true(rejected < NEAR);
}

/* Every way to draw the siblings from `at` on. */
static void draw(struct hand *hand, const struct pair *pair, enum rule_siblings how, int at, double weight)
{
    const struct siblings_q q = {.count = hand->proposal.q[0].count, .id = hand->id, .weight = hand->weight};
    int drawn = 0, all = hand->proposal.count;
    uint32_t left = siblings_left(&q, how, hand->proposal.token, at);

    for (int v = 0; v < VOCAB && at < all && left > 0; v++) {
        int comes_again = 0;

        for (int i = 0; i < at && how == RULE_SIBLINGS_WITHOUT; i++)
            comes_again |= hand->proposal.token[i] == v;
        if (pair->q[v] == 0 || comes_again)
            continue;
        hand->proposal.token[at] = v;
        draw(hand, pair, how, at + 1, weight * pair->q[v] / left);
        drawn = 1;
    }
    if (drawn)
        return;
    hand->proposal.count = at; /* there are no more tokens */
    play(hand, pair, weight);
    hand->proposal.count = all;
}

static void test_law_siblings_exact__the_token_follows_the_targets_law(void **state)
{
    static const struct {
        int accept;
        enum rule_siblings how;
    } rule[] = {
        {ACCEPT_MULTISTEP, RULE_SIBLINGS_AGAIN}, {ACCEPT_WITHOUT_REPLACEMENT, RULE_SIBLINGS_WITHOUT}, {ACCEPT_K_SEQUENTIAL, RULE_SIBLINGS_AGAIN}};
    enum { RULES = sizeof rule / sizeof *rule };
    static struct hand hand;
    double sum[RULES][MOST + 1] = {{0}};
    struct pair pair;

    (void)state;
    for (int seed = 0; seed < ROWS_TRIED; seed++)
        for (int r = 0; r < RULES; r++)
            for (int siblings = 1; siblings <= MOST - (rule[r].how == RULE_SIBLINGS_AGAIN); siblings++) {
                double before = 0;

                fill_pair(&pair, (uint64_t)seed);
                for (int kind = TARGET_LIST; kind <= TARGET_SUPPORT; kind++) {
                    fill_hand(&hand, &pair, (enum target_row_kind)kind, rule[r].accept, siblings);
                    draw(&hand, &pair, rule[r].how, 0, 1);
                    for (int v = 0; v < VOCAB; v++)
                        assert_true(fabs(hand.law[v] - pair.p[v]) < NEAR);
                    assert_true(kind == TARGET_LIST || fabs(hand.accepted - before) < NEAR);
                    before = hand.accepted;
                }
                sum[r][siblings] += hand.accepted / ROWS_TRIED;
            }
    for (int siblings = 1; siblings < MOST; siblings++)
        print_message("%d siblings: one is accepted with %.3f drawn again, %.3f without replacement, %.3f against all of p\n", siblings,
                      sum[0][siblings], sum[1][siblings], sum[2][siblings]);
    assert_true(fabs(sum[0][1] - sum[1][1]) < NEAR && fabs(sum[0][1] - sum[2][1]) < NEAR);
    for (int siblings = 2; siblings < MOST; siblings++) {
        assert_true(sum[0][siblings] > sum[0][siblings - 1] && sum[1][siblings] > sum[0][siblings]);
        assert_true(sum[2][siblings] > sum[2][siblings - 1]);
    }
    assert_int_equal(deal.wrong, 0);
}

/* Drafters that draw from a q each: the siblings' own, and the ids of all of them. */
static void fill_drafters(struct hand *hand, const struct pair *pair, enum target_row_kind kind, uint64_t seed, int drafters, int32_t id[][VOCAB],
                          uint32_t weight[][VOCAB])
{
    int named = 0, is_named[VOCAB] = {0};

    fill_hand(hand, pair, kind, ACCEPT_MULTISTEP, drafters);
    for (int d = 0; d < drafters; d++) {
        struct pair own = *pair;
        int count = 0;

        if (d > 0)
            fill_pair(&own, seed + 1000 * (uint64_t)d);
        for (int v = 0; v < VOCAB; v++)
            if (d == POINT_MASS ? v == (int)(seed % VOCAB) : own.q[v] > 0) {
                is_named[v] = 1;
                id[d][count] = v;
                weight[d][count++] = d == POINT_MASS ? MESSAGE_Q_SUM : own.q[v];
            }
        hand->proposal.q[d] = (struct support){.count = d == POINT_MASS ? 0 : count, .id = id[d], .weight = weight[d]};
    }
    for (int v = 0; v < VOCAB; v++)
        if (is_named[v]) {
            hand->logit[named] = pair->p[v] > 0 ? (float)log(pair->p[v]) : -INFINITY;
            hand->id[named++] = v;
        }
    hand->proposal.asked = (struct support){.count = named, .id = hand->id};
    hand->target[0].count = kind == TARGET_LIST ? hand->target[0].count : named;
}

/* The drafters' tokens are these. */
static void play_drafters(struct hand *hand, const struct pair *pair, int drafters, double weight)
{
    double rejected = weight, left[VOCAB], sum = 0;
    struct verdict verdict;

    for (int i = 0; i < drafters; i++) {
        double chance = chance_of(hand, i);

        hand->law[hand->proposal.token[i]] += rejected * chance;
        hand->accepted += rejected * chance;
        rejected *= 1 - chance;
        if (chance > 1 - 1e-12)
            return;
    }
    for (int i = 0; i < MOST; i++)
        deal.coin[i] = nextafter(1, 0);
    verdict = decide(hand);
    assert_true(verdict.accepted == 0 && verdict.refused == 0 && verdict.draw == DRAW_RESIDUAL && verdict.residual.several > 0);
    for (int v = 0; v < VOCAB; v++) {
        left[v] = fmax(0, pair->p[v] - accept_several(&verdict.residual, v));
        sum += left[v];
    }
    for (int v = 0; v < VOCAB && sum > 1e-12; v++)
        hand->law[v] += rejected * left[v] / sum;
    if (sum <= 1e-12)
        assert_true(rejected < NEAR);
}

static void draw_drafters(struct hand *hand, const struct pair *pair, int drafters, int at, double weight)
{
    if (at == drafters) {
        play_drafters(hand, pair, drafters, weight);
        return;
    }
    for (int i = 0; i < (at == POINT_MASS ? 1 : hand->proposal.q[at].count); i++) {
        hand->proposal.token[at] = hand->proposal.q[at].id[i];
        draw_drafters(hand, pair, drafters, at + 1, weight * hand->proposal.q[at].weight[i] / MESSAGE_Q_SUM);
    }
}

/* Several drafters for one text, whose q's differ: the law is the target's, and one more of them makes it accept no less. */
static void test_law_siblings_exact__several_drafters_leave_the_targets_law(void **state)
{
    static struct hand hand;
    static int32_t id[MOST][VOCAB];
    static uint32_t weight[MOST][VOCAB];
    double sum[MOST + 1] = {0};
    struct pair pair;

    (void)state;
    for (int seed = 0; seed < ROWS_TRIED; seed++) {
        double fewer = 0;

        fill_pair(&pair, (uint64_t)seed);
        for (int drafters = 1; drafters <= MOST; drafters++) {
            double of_list = 0;

            for (int kind = TARGET_LIST; kind <= TARGET_SUPPORT; kind++) {
                fill_drafters(&hand, &pair, (enum target_row_kind)kind, (uint64_t)seed, drafters, id, weight);
                draw_drafters(&hand, &pair, drafters, 0, 1);
                for (int v = 0; v < VOCAB; v++)
                    assert_true(fabs(hand.law[v] - pair.p[v]) < NEAR);
                assert_true(kind == TARGET_LIST || fabs(hand.accepted - of_list) < NEAR);
                of_list = hand.accepted;
            }
            assert_true(hand.accepted > fewer - NEAR);
            fewer = hand.accepted;
            sum[drafters] += hand.accepted / ROWS_TRIED;
        }
    }
    print_message("1, 2, 3, 4 drafters: one of their drafts is accepted with %.3f, %.3f, %.3f, %.3f\n", sum[1], sum[2], sum[3], sum[4]);
    assert_true(sum[2] > sum[1] && sum[3] > sum[2] && sum[4] > sum[3]);
    assert_int_equal(deal.wrong, 0);
}

/* What is drawn where none stands is what is left: with noise that favours each token in turn it is that one where anything of it is left. */
static void test_law_siblings_exact__what_several_leave_is_drawn(void **state)
{
    static struct hand hand;
    static int32_t id[MOST][VOCAB];
    static uint32_t weight[MOST][VOCAB];
    const struct rng_key key = {.seed = 1};
    struct pair pair;
    int left = 0, gone = 0;

    (void)state;
    for (int seed = 0; seed < ROWS_TRIED; seed++)
        for (int kind = TARGET_LIST; kind <= TARGET_SUPPORT; kind++) {
            struct verdict verdict;
            double most = 0;

            fill_pair(&pair, (uint64_t)seed);
            fill_drafters(&hand, &pair, (enum target_row_kind)kind, (uint64_t)seed, 3, id, weight);
            for (int i = 0; i < 3; i++)
                hand.proposal.token[i] = id[i][0];
            for (int i = 0; i < MOST; i++)
                deal.coin[i] = nextafter(1, 0);
            verdict = decide(&hand);
            for (int v = 0; v < VOCAB && verdict.accepted == 0; v++)
                most = fmax(most, pair.p[v] - accept_several(&verdict.residual, v));
            for (int v = 0; v < VOCAB && most > NEAR; v++) { /* of nothing p is drawn */
                const struct support *asked = &hand.proposal.asked;
                double of_it = accept_p(&hand.target[0], asked, v) - accept_several(&verdict.residual, v);
                int32_t token;

                deal.favourite = v;
                token = kind == TARGET_LIST ? accept_draw_list(&hand.target[0], asked, -1, &verdict.residual, &key, RNG_RESIDUAL)
                                            : accept_gumbel_max_support(&hand.target[0], asked, -1, &verdict.residual, &key).token;
                if (of_it > NEAR)
                    assert_int_equal(token, v);
                else if (of_it < -NEAR)
                    assert_int_not_equal(token, v);
                left += of_it > NEAR;
                gone += of_it < -NEAR;
            }
        }
    deal.favourite = -1;
    assert_true(left > 20 && gone > 20);
    assert_int_equal(deal.wrong, 0);
}

/* On a chain all are Algorithm 1: the same verdict by the same coins. */
static void test_law_siblings_exact__a_chain_is_that_of_rejection(void **state)
{
    static struct hand hand;
    uint64_t random = 11;
    struct pair pair;

    (void)state;
    for (int seed = 0; seed < 4 * ROWS_TRIED; seed++)
        for (int accept = ACCEPT_MULTISTEP; accept <= ACCEPT_K_SEQUENTIAL; accept++) {
            struct verdict verdict, expected;

            fill_pair(&pair, (uint64_t)seed);
            fill_hand(&hand, &pair, TARGET_SUPPORT, accept, 1);
            hand.proposal.is_tree = 0;
            hand.proposal.token[0] = hand.id[next(&random) % (uint32_t)hand.proposal.q[0].count];
            deal.coin[0] = (double)next(&random) / 0x1p31;
            verdict = decide(&hand);
            hand.sampling.accept = ACCEPT_REJECTION;
            expected = decide(&hand);
            assert_int_equal(verdict.accepted, expected.accepted);
            assert_int_equal(verdict.refused, expected.refused);
            assert_int_equal(verdict.draw, expected.draw);
            assert_true(verdict.draw != DRAW_RESIDUAL || (verdict.residual.of_p == 1 && fabs(verdict.residual.of_q - 1) < 1e-12));
        }
    assert_int_equal(deal.wrong, 0);
}

/* No drafter that is in order proposes them; the coin would let any token stand that has a p. */
static void test_law_siblings_exact__a_sibling_that_q_lacks_is_passed_over(void **state)
{
    static const struct pair pair = {.p = {0.01, 0.98, 0.01}, .q = {MESSAGE_Q_SUM / 2, MESSAGE_Q_SUM / 2}};
    static struct hand hand;

    (void)state;
    for (int accept = ACCEPT_MULTISTEP; accept <= ACCEPT_K_SEQUENTIAL; accept++)
        for (int kind = TARGET_LIST; kind <= TARGET_SUPPORT; kind++)
            for (int point = 0; point < 2; point++) {
                struct verdict verdict;

                fill_hand(&hand, &pair, (enum target_row_kind)kind, accept, 2);
                hand.proposal.token[1] = 2;
                if (point) { /* the first is all that there is of q */
                    hand.proposal.q[0] = (struct support){0};
                    hand.target[0].count = kind == TARGET_SUPPORT ? 1 : hand.target[0].count;
                }
                deal.coin[0] = nextafter(1, 0);
                deal.coin[1] = deal.coin[2] = deal.coin[3] = 0;
                verdict = decide(&hand);
                assert_int_equal(verdict.accepted, 0);
                assert_int_equal(verdict.refused, 0);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_law_siblings_exact__the_token_follows_the_targets_law),
        cmocka_unit_test(test_law_siblings_exact__several_drafters_leave_the_targets_law),
        cmocka_unit_test(test_law_siblings_exact__what_several_leave_is_drawn),
        cmocka_unit_test(test_law_siblings_exact__a_chain_is_that_of_rejection),
        cmocka_unit_test(test_law_siblings_exact__a_sibling_that_q_lacks_is_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
