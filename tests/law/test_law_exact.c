/* Layer 0: no statistics. p and q are dyadic; every draft is weighted by its integer weight, every accept coin of a grid is dealt to the real
 * accept_decide, and the weights of the last token's draw are read off the real draws as integers. The counts of all committed sequences must
 * then equal the target's law exactly, for proposals of 0 to 3 tokens and for each form that a law takes. Two grids: midpoints, and edges,
 * where u = 0 shows a test that is not strict. The checker is checked: each mutant must be caught.
 *
 * The functions of common/base/rng.h are defined here, and the linker takes these: coins and noise are dealt, not drawn. */
#include "tests/law/dealt_draw.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 4, COINS = 16, MOST_DRAFT = 3, ROWS = MOST_DRAFT + 1, CELLS = 256, WHOLE = 16 };
enum { RESIDUAL_UNIT = 840 }; /* any residual mass from 1 to 8 divides it */
static const struct residual minus_q = {.of_p = 1, .of_q = 1};
#define ABSENT 1e6f           /* noise that no token wins against */
#define NOTHING 10.0          /* what loses with this much more noise has no weight but for the rounding of p to float, 1e-8 */

/* Sixteenths. A row depends on the token before it, and no two rows are alike. Where q is 0 and p is not, a residual has tokens both inside
 * and outside the support. */
static const int p_row[ROWS][2][VOCAB] = {
    {{8, 4, 2, 2}, {8, 4, 2, 2}}, {{8, 4, 4, 0}, {4, 4, 4, 4}}, {{4, 8, 2, 2}, {0, 4, 4, 8}}, {{2, 2, 4, 8}, {8, 0, 8, 0}}};
static const int q_row[MOST_DRAFT][2][VOCAB] = {
    {{2, 2, 8, 4}, {2, 2, 8, 4}}, {{4, 0, 4, 8}, {8, 4, 2, 2}}, {{8, 2, 2, 4}, {8, 0, 4, 4}}};

static struct {
    double coin[ROWS];  /* by position */
    float noise[VOCAB]; /* by token, of the last draw */
    int coins_taken, wrong_purpose;
} deal;

double rng_uniform(const struct rng_key *key, enum rng_purpose purpose)
{
    deal.coins_taken++;
    deal.wrong_purpose += purpose != RNG_ACCEPT;
    return deal.coin[key->position];
}

double rng_coin(const struct rng_key *key, enum rng_purpose purpose, uint32_t index)
{
    deal.wrong_purpose += index != key->position; /* the first draft stands at 0 here */
    return rng_uniform(key, purpose);
}

float rng_gumbel(const struct rng_key *key, enum rng_purpose purpose, uint32_t token)
{
    (void)key;
    deal.wrong_purpose += purpose != RNG_RESIDUAL;
    return deal.noise[token];
}

/* One row as the lead has it. */
struct row {
    struct target_row law;
    struct support q;
    struct scored_token best[VOCAB];
    double p[VOCAB];
    float logit[VOCAB];
    int32_t id[VOCAB];
    uint32_t weight[VOCAB];
};

/* What is judged: the real functions, or a mutant of theirs. */
enum mutant {
    REAL,
    NOT_STRICT,
    IGNORES_Q,
    RESIDUAL_IS_P,
    RESIDUAL_IS_DISTANCE,
    Q_OF_NEXT_ROW,
    Q_OF_ROW_BEFORE,
    P_OF_NEXT_ROW,
    BONUS_OF_ROW_BEFORE,
    BONUS_FROM_DRAFT,
    SAME_COIN,
    MUTANTS,
};
static const char *const mutant_name[MUTANTS] = {"real",
                                                 "u q <= p",
                                                 "u < p",
                                                 "residual = p",
                                                 "residual = |p - q|",
                                                 "q of the next row",
                                                 "q of the row before",
                                                 "p of the next row",
                                                 "bonus of the row before",
                                                 "bonus from the draft",
                                                 "one coin for both"};

/* A round of `drafts` drafts on one kind of law and one grid; a sequence has one token more. */
struct run {
    enum mutant mutant;
    enum target_row_kind kind;
    int point;    /* q is a point mass */
    int drafts;
    int is_edge;  /* coins j/16, else (j + 1/2)/16 */
    int64_t cells[CELLS], hands;
    int weights[ROWS][2][VOCAB]; /* of the last token's draw at a row: the residual's, and p's at the bonus row */
};

static int point_token(int row, int before)
{
    return (row + 2 * before + 1) % VOCAB;
}

/* Sixteenths of q. */
static int q_at(const struct run *run, int row, int before, int token)
{
    return run->point ? token == point_token(row, before) ? WHOLE : 0 : q_row[row][before][token];
}

/* Row number `at` of a round after a token: the support holds q's tokens, and a LIST the tokens that p keeps. The bonus row has no q. */
static void fill(struct row *row, const struct run *run, int at, int before)
{
    const int *p = p_row[at][before];

    *row = (struct row){.law = {.kind = run->kind, .best = row->best, .p = row->p, .logit = row->logit, .log_z = log(WHOLE)},
                        .q = {.id = row->id, .weight = row->weight}};
    for (int v = 0; v < VOCAB && at < run->drafts; v++) {
        if (q_at(run, at, before, v) == 0)
            continue;
        row->logit[row->q.count] = p[v] > 0 ? (float)log(p[v]) : -INFINITY;
        row->id[row->q.count] = v;
        row->weight[row->q.count++] = (uint32_t)q_at(run, at, before, v) * (MESSAGE_Q_SUM / WHOLE);
    }
    row->law.count = row->q.count;
    if (run->point)
        row->q.count = 0; /* the wire's form of it */
    if (run->kind == TARGET_SUPPORT)
        return;
    row->law.count = 0;
    for (int v = 0; v < VOCAB; v++) {
        if (p[v] == 0)
            continue;
        row->best[row->law.count].token = v;
        row->p[row->law.count++] = (double)p[v] / WHOLE;
    }
}

/* The token that wins with the dealt noise.  p: in sixteenths */
static int32_t draw(const struct row *row, enum draw_kind kind, int32_t drawn, const int *p)
{
    double sixteenths[VOCAB];

    for (int v = 0; v < VOCAB; v++)
        sixteenths[v] = p[v];
    return dealt_draw(&row->law, &row->q, drawn, kind == DRAW_RESIDUAL ? &minus_q : NULL, sixteenths, deal.noise, VOCAB);
}

/* Does `token` win against `other` alone, with `ahead` more noise? */
static int wins(const struct row *row, enum draw_kind kind, int32_t drawn, const int *p, int token, int other, double ahead)
{
    for (int v = 0; v < VOCAB; v++)
        deal.noise[v] = -ABSENT;
    deal.noise[other] = 0;
    deal.noise[token] = (float)ahead;
    return draw(row, kind, drawn, p) == token;
}

/* The weights of a draw, as integers up to a common factor: token v has n / m times the weight of the reference when it wins with noise just
 * above log(m / n) and loses with noise just below. */
static void read_weights(const struct row *row, enum draw_kind kind, int32_t drawn, const int *p, int *weights)
{
    int reference = 0, most = 0;

    for (int v = 0; v < VOCAB; v++)
        deal.noise[v] = 0;
    reference = draw(row, kind, drawn, p); /* it has the largest weight */
    for (int m = 1; m <= WHOLE && most == 0; m++) {
        int fits = 1;

        for (int v = 0; v < VOCAB && fits; v++) {
            weights[v] = v == reference ? m : 0;
            for (int n = 1; n <= m && v != reference && weights[v] == 0; n++)
                if (wins(row, kind, drawn, p, v, reference, log((double)m / n) + 1e-3) &&
                    !wins(row, kind, drawn, p, v, reference, log((double)m / n) - 1e-3))
                    weights[v] = n;
            fits = weights[v] > 0 || !wins(row, kind, drawn, p, v, reference, NOTHING);
        }
        most = fits ? m : 0;
    }
    assert_true(most > 0); /* some m up to 16 makes all of them integers */
}

static int wrong_residual(enum mutant mutant, int p, int q)
{
    if (mutant == RESIDUAL_IS_P)
        return p;
    return mutant == RESIDUAL_IS_DISTANCE && q > p ? q - p : p > q ? p - q : 0;
}

/* The rows that a mutant looks at instead of row `at`. */
static int p_seen(const struct run *run, int at)
{
    if (at == run->drafts)
        return run->mutant == BONUS_OF_ROW_BEFORE ? at - 1 : at;
    return run->mutant == P_OF_NEXT_ROW ? at + 1 : at;
}

static int q_seen(const struct run *run, int at)
{
    int next = run->mutant == Q_OF_NEXT_ROW ? at + 1 : run->mutant == Q_OF_ROW_BEFORE ? at - 1 : at;

    return next < 0 || next >= run->drafts ? at : next;
}

/* Weights of the last token's draw at every row. */
static void fill_weights(struct run *run)
{
    for (int at = 0; at <= run->drafts; at++)
        for (int before = 0; before < 2; before++) {
            int *weights = run->weights[at][before];
            struct row row;

            if (run->mutant == REAL) {
                fill(&row, run, at, before);
                read_weights(&row, at < run->drafts ? DRAW_RESIDUAL : DRAW_PLAIN, point_token(at, before), p_row[at][before], weights);
                continue;
            }
            for (int v = 0; v < VOCAB; v++) {
                int p = p_row[p_seen(run, at)][before][v];

                weights[v] = at < run->drafts                    ? wrong_residual(run->mutant, p, q_at(run, q_seen(run, at), before, v))
                             : run->mutant == BONUS_FROM_DRAFT ? q_at(run, at - 1, before, v)
                                                                 : p;
            }
        }
}

static struct verdict wrong_decide(const struct run *run, const int32_t *tokens)
{
    for (int i = 0; i < run->drafts; i++) {
        int before = i == 0 ? 0 : tokens[i - 1] % 2;
        double q = (double)q_at(run, q_seen(run, i), before, tokens[i]) / WHOLE, p = (double)p_row[p_seen(run, i)][before][tokens[i]] / WHOLE;
        int stands = run->mutant == NOT_STRICT ? deal.coin[i] * q <= p : run->mutant == IGNORES_Q ? deal.coin[i] < p : deal.coin[i] * q < p;

        if (!stands)
            return verdict_of_chain(i, run->drafts, DRAW_RESIDUAL);
    }
    return verdict_of_chain(run->drafts, run->drafts, DRAW_PLAIN);
}

static struct verdict decide(const struct run *run, const int32_t *tokens)
{
    static const struct sampling sampling = {.temperature = 1, .top_p = 1, .repetition_penalty = 1};
    const struct rng_key key = {.seed = 3};
    struct proposal proposal = {.count = run->drafts};
    struct row rows[ROWS];
    struct target_row laws[ROWS];
    struct verdict verdict;

    if (run->mutant != REAL)
        return wrong_decide(run, tokens);
    for (int i = 0; i <= run->drafts; i++) {
        fill(&rows[i], run, i, i == 0 ? 0 : tokens[i - 1] % 2);
        laws[i] = rows[i].law;
        if (i < run->drafts) {
            proposal.token[i] = tokens[i];
            proposal.q[i] = rows[i].q;
        }
    }
    deal.coins_taken = 0;
    verdict = accept_decide(&sampling, laws, &proposal, run->drafts, &key);
    assert_int_equal(deal.coins_taken, verdict.accepted < run->drafts ? verdict.accepted + 1 : run->drafts);
    assert_int_equal(verdict_row(&verdict, verdict.accepted), verdict.accepted);
    assert_int_equal(verdict.refused, verdict.accepted < run->drafts ? verdict.accepted : -1);
    assert_int_equal(verdict.draw, verdict.accepted < run->drafts ? DRAW_RESIDUAL : DRAW_PLAIN);
    return verdict;
}

/* Adds `weight` to the completions of a prefix of `count` tokens, shared out by the target's own rows. */
static void complete(int64_t *cells, int drafts, int32_t *tokens, int count, int64_t weight)
{
    int cell = 0;

    if (count > drafts || count >= ROWS) {
        for (int i = 0; i < count; i++)
            cell = cell * VOCAB + tokens[i];
        cells[cell] += weight;
        return;
    }
    for (int32_t v = 0; v < VOCAB; v++) {
        int share = p_row[count][count == 0 ? 0 : tokens[count - 1] % 2][v];

        tokens[count] = v;
        if (share > 0)
            complete(cells, drafts, tokens, count + 1, weight * share);
    }
}

static int64_t power16(int exponent)
{
    return INT64_C(1) << (4 * exponent);
}

/* One dealt hand: what was drafted, with its weight, and the coins. All hands weigh the same unit: 16^drafts for the drafts, 16 x 840 for the
 * last draw, 16^drafts for completions, of which a round that accepts i drafts leaves i factors unused. */
static void play(struct run *run, const int32_t *drafted, int64_t weight, const int *coins)
{
    struct verdict verdict = decide(run, drafted);
    int row = verdict_row(&verdict, verdict.accepted);
    const int *weights = run->weights[row][row == 0 ? 0 : drafted[row - 1] % 2];
    int64_t unit = weight * power16(verdict.accepted) * WHOLE * RESIDUAL_UNIT;
    int mass = 0, upto = 0;

    for (int v = 0; v < VOCAB; v++)
        mass += weights[v];
    for (int32_t v = 0; v < VOCAB; v++) {
        int32_t tokens[ROWS];
        int64_t own = unit / mass * weights[v];

        if (run->mutant == SAME_COIN && verdict.draw == DRAW_RESIDUAL) {
            int coin = coins[row] * mass;

            own = coin >= upto * COINS && coin < (upto + weights[v]) * COINS ? unit : 0;
        }
        upto += weights[v];
        memcpy(tokens, drafted, (size_t)verdict.accepted * sizeof *tokens);
        tokens[verdict.accepted] = v;
        if (own > 0)
            complete(run->cells, run->drafts, tokens, verdict.accepted + 1, own);
    }
}

/* Coins of the grid. Where p is the exponential of a logit it is a dyadic number but for rounding, so that an edge is not hit exactly but by
 * u = 0: the others lie just beyond. */
static void deal_coins(const struct run *run, int hand, int *coins)
{
    for (int i = 0; i < run->drafts; i++, hand /= COINS) {
        double beyond = run->kind == TARGET_SUPPORT && hand % COINS > 0 ? 0x1p-20 : 0;

        coins[i] = hand % COINS;
        deal.coin[i] = (coins[i] + (run->is_edge ? beyond : 0.5)) / COINS;
    }
}

/* All drafts with all coins; returns the number of cells whose count is not the target's. */
static int count_wrong(struct run *run)
{
    int64_t target[CELLS] = {0};
    int32_t tokens[ROWS];
    int wrong = 0;

    memset(run->cells, 0, sizeof run->cells);
    fill_weights(run);
    for (int d = 0; d < 1 << (2 * run->drafts); d++) {
        int64_t weight = 1;

        for (int i = 0; i < run->drafts; i++) {
            tokens[i] = d >> (2 * i) & 3;
            weight *= q_at(run, i, i == 0 ? 0 : tokens[i - 1] % 2, tokens[i]);
        }
        for (int hand = 0; weight > 0 && hand < power16(run->drafts); hand++) {
            int coins[ROWS] = {0};

            run->hands++;
            deal_coins(run, hand, coins);
            play(run, tokens, weight, coins);
        }
    }
    complete(target, run->drafts, tokens, 0, power16(2 * run->drafts) * RESIDUAL_UNIT);
    for (int i = 0; i < CELLS; i++)
        wrong += run->cells[i] != target[i];
    return wrong;
}

static void test_law_exact__counts_equal_the_targets_law(void **state)
{
    int64_t hands = 0;

    (void)state;
    deal.wrong_purpose = 0;
    for (int form = 0; form < 16 * (MOST_DRAFT + 1) / 2; form++) {
        struct run run = {
            .kind = form % 2 ? TARGET_SUPPORT : TARGET_LIST, .is_edge = form / 2 % 2, .point = form / 4 % 2, .drafts = form / 8};

        assert_int_equal(count_wrong(&run), 0);
        hands += run.hands;
    }
    assert_int_equal(deal.wrong_purpose, 0);
    print_message("0 cells wrong in %lld dealt hands\n", (long long)hands);
}

static void test_law_exact__every_mutant_is_caught(void **state)
{
    (void)state;
    for (int m = REAL + 1; m < MUTANTS; m++) {
        int wrong = 0;

        for (int form = 0; form < 4; form++) {
            struct run run = {.mutant = m, .kind = TARGET_LIST, .is_edge = form % 2, .point = form / 2, .drafts = 2};

            wrong += count_wrong(&run);
        }
        print_message("%s: %d of %d cells wrong\n", mutant_name[m], wrong, 4 * 64);
        assert_true(wrong > 0);
    }
}

/* Greedy and coupled: what is emitted is the target's own tokens up to the first that was drafted otherwise, and that one. */
static void test_law_exact__winners_are_emitted(void **state)
{
    static const struct sampling greedy = {.temperature = 0}, coupled = {.temperature = 1, .accept = ACCEPT_COUPLED};
    const struct rng_key key = {.seed = 3};

    (void)state;
    for (int drafts = 0; drafts <= MOST_DRAFT; drafts++)
        for (int hand = 0; hand < 1 << (2 * (2 * drafts + 1)); hand++) {
            struct proposal proposal = {.count = drafts};
            struct target_row laws[ROWS];
            int stand = 0;

            for (int i = 0; i <= drafts; i++)
                laws[i] = (struct target_row){.kind = TARGET_WINNER, .winner = hand >> (2 * i) & 3};
            for (int i = 0; i < drafts; i++)
                proposal.token[i] = hand >> (2 * (drafts + 1 + i)) & 3;
            while (stand < drafts && proposal.token[stand] == laws[stand].winner)
                stand++;
            for (int mode = 0; mode < 2; mode++) {
                struct verdict verdict = accept_decide(mode ? &coupled : &greedy, laws, &proposal, drafts, &key);

                assert_int_equal(verdict.accepted, stand);
                assert_int_equal(verdict.draw, DRAW_NONE);
                assert_int_equal(verdict.token, laws[stand].winner);
            }
        }
}

/* A token of p = 0 never stands, even at u = 0. */
static void test_law_exact__impossible_drafts_never_stand(void **state)
{
    (void)state;
    for (int q = 1; q <= WHOLE; q++)
        assert_false(accept_test(0, (double)q / WHOLE, 0));
    assert_true(accept_test(0, 1, 0x1p-60));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_law_exact__counts_equal_the_targets_law),
        cmocka_unit_test(test_law_exact__every_mutant_is_caught),
        cmocka_unit_test(test_law_exact__winners_are_emitted),
        cmocka_unit_test(test_law_exact__impossible_drafts_never_stand),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
