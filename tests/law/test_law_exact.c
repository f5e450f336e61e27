/* Layer 0: the accept rule with dyadic p and q, every draft weighted by its integer weight and every coin of a grid enumerated. The counts
 * of the output law are integers and must equal the target's exactly. The checker itself is checked: each mutant must be caught. */
#include "verifier/accept.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 4, COINS = 16, CELLS = VOCAB * VOCAB * VOCAB };

/* Sixteenths. A row depends on the token before it; no two rows are alike, and each residual has a power of two for its mass. */
static const int p_row[3][2][VOCAB] = {{{8, 4, 2, 2}, {8, 4, 2, 2}}, {{8, 4, 4, 0}, {4, 4, 4, 4}}, {{4, 8, 2, 2}, {0, 4, 4, 8}}};
static const int q_row[3][2][VOCAB] = {{{2, 2, 8, 4}, {2, 2, 8, 4}}, {{4, 2, 2, 8}, {8, 4, 2, 2}}, {{8, 2, 2, 4}, {2, 2, 4, 8}}};

/* What is judged: the real functions, or a mutant of one of them. */
struct rule {
    const char *name;
    int (*stands)(double u, double q, double p);
    int (*residual)(int p, int q);
    int q_shift;   /* the q row that the test and the residual use, relative to the right one */
    int p_shift;
    int bonus_row; /* 2 */
    int same_coin; /* the residual's draw reuses the accept coin */
};

struct laws {
    struct law law;
    struct support q;
    struct scored_token best[VOCAB];
    double p[VOCAB];
    int32_t id[VOCAB];
    uint32_t weight[VOCAB];
};

static int residual(int p, int q)
{
    return p > q ? p - q : 0;
}

static void fill(struct laws *laws, const int *p, const int *q)
{
    *laws = (struct laws){.law = {.kind = LAW_LIST}};
    for (int v = 0; v < VOCAB; v++) {
        laws->best[v].token = v;
        laws->p[v] = p[v] / 16.0;
        if (q[v] == 0)
            continue;
        laws->id[laws->q.count] = v;
        laws->weight[laws->q.count++] = (uint32_t)q[v] * (MESSAGE_Q_SUM / 16);
    }
    laws->law.count = VOCAB;
    laws->law.best = laws->best;
    laws->law.p = laws->p;
    laws->q.id = laws->id;
    laws->q.weight = laws->weight;
}

static int stands(const struct rule *rule, int row, int before, int token, double u)
{
    const int *p = p_row[(row + rule->p_shift) % 3][before % 2], *q = q_row[(row + rule->q_shift + 3) % 3][before % 2];
    struct laws laws;

    fill(&laws, p, q);
    return rule->stands(u, accept_q(&laws.q, token, token), accept_p(&laws.law, &laws.q, token));
}

/* Adds `weight` sixteenths^3 to all completions of a prefix by the target's own rows. */
static void complete(int64_t *cells, int prefix, int length, int before, int64_t weight)
{
    if (length == 3) {
        cells[prefix] += weight;
        return;
    }
    for (int v = 0; v < VOCAB; v++)
        complete(cells, prefix * VOCAB + v, length + 1, v, weight * p_row[length][before % 2][v]);
}

/* Rejected at `row`: one token of the residual, then the target's. `coin` matters to the mutant that uses it again. */
static void reject(const struct rule *rule, int64_t *cells, int prefix, int row, int before, int coin, int64_t weight)
{
    const int *p = p_row[(row + rule->p_shift) % 3][before % 2], *q = q_row[(row + rule->q_shift + 3) % 3][before % 2];
    int mass = 0, upto = 0;

    for (int v = 0; v < VOCAB; v++)
        mass += rule->residual(p[v], q[v]);
    for (int v = 0; v < VOCAB; v++) {
        int share = rule->residual(p[v], q[v]), low = upto * COINS, own = share * 16;

        upto += share;
        if (rule->same_coin)
            own = coin * mass >= low && coin * mass < upto * COINS ? 16 * mass : 0;
        complete(cells, prefix * VOCAB + v, row + 1, v, weight * own * 15 / mass); /* 15: a mass of 3 or 5 divides too */
    }
}

/* One round of two drafts and the bonus on one grid of coins.  cells: [CELLS] in units of 16^7 x 15 */
static void run_round(const struct rule *rule, double offset, int64_t *cells)
{
    for (int d = 0; d < VOCAB * VOCAB; d++) {
        int draft[2] = {d / VOCAB, d % VOCAB};
        int64_t weight = q_row[0][0][draft[0]] * q_row[1][draft[0] % 2][draft[1]];

        for (int c = 0; c < COINS * COINS; c++) {
            int coin[2] = {c / COINS, c % COINS};

            if (!stands(rule, 0, 0, draft[0], (coin[0] + offset) / COINS))
                reject(rule, cells, 0, 0, 0, coin[0], weight);
            else if (!stands(rule, 1, draft[0], draft[1], (coin[1] + offset) / COINS))
                reject(rule, cells, draft[0], 1, draft[0], coin[1], weight * 16);
            else
                for (int v = 0; v < VOCAB; v++)
                    cells[d * VOCAB + v] += weight * 256 * 15 * p_row[rule->bonus_row][draft[1] % 2][v];
        }
    }
}

/* Cells whose count is not the target's, over both grids. */
static int count_wrong(const struct rule *rule)
{
    static const double offsets[] = {0.5, 0.0};
    int wrong = 0;

    for (int g = 0; g < 2; g++) {
        int64_t cells[CELLS] = {0}, target[CELLS] = {0};

        run_round(rule, offsets[g], cells);
        complete(target, 0, 0, 0, INT64_C(15) << 16);
        for (int i = 0; i < CELLS; i++)
            wrong += cells[i] != target[i];
    }
    return wrong;
}

static const struct rule real = {"real", accept_test, residual, 0, 0, 2, 0};

static void test_law_exact__counts_equal_the_targets_law(void **state)
{
    (void)state;
    assert_int_equal(count_wrong(&real), 0);
}

static int stands_at_equal(double u, double q, double p)
{
    return u * q <= p;
}

static int stands_without_q(double u, double q, double p)
{
    (void)q;
    return u < p;
}

static int residual_is_p(int p, int q)
{
    (void)q;
    return p;
}

static int residual_is_distance(int p, int q)
{
    return p > q ? p - q : q - p;
}

static void test_law_exact__every_mutant_is_caught(void **state)
{
    static const struct rule mutants[] = {
        {"<=", stands_at_equal, residual, 0, 0, 2, 0},
        {"u < p", stands_without_q, residual, 0, 0, 2, 0},
        {"residual = p", accept_test, residual_is_p, 0, 0, 2, 0},
        {"residual = |p - q|", accept_test, residual_is_distance, 0, 0, 2, 0},
        {"q of the next row", accept_test, residual, 1, 0, 2, 0},
        {"q of the row before", accept_test, residual, -1, 0, 2, 0},
        {"p of the next row", accept_test, residual, 0, 1, 2, 0},
        {"bonus of the row before", accept_test, residual, 0, 0, 1, 0},
        {"one coin for both", accept_test, residual, 0, 0, 2, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof mutants / sizeof mutants[0]; i++) {
        int wrong = count_wrong(&mutants[i]);

        print_message("%s: %d of %d cells wrong\n", mutants[i].name, wrong, 2 * CELLS);
        assert_true(wrong > 0);
    }
}

/* The Gumbel race over these weights is the residual's law: each draw must be the argmax of log(max(0, p - q)) + noise. */
static int32_t race(const int *p, const int *q, const struct rng_key *key, enum rng_purpose purpose)
{
    double best = -INFINITY;
    int32_t winner = -1;

    for (int v = 0; v < VOCAB; v++) {
        int weight = q == NULL ? p[v] : residual(p[v], q[v]);
        double score = log(weight / 16.0) + (double)rng_gumbel(key, purpose, (uint32_t)v);

        if (weight > 0 && score > best) {
            best = score;
            winner = v;
        }
    }
    return winner;
}

static void test_law_exact__last_token_wins_the_race_of_its_weights(void **state)
{
    struct laws laws;

    (void)state;
    for (uint32_t i = 0; i < 30000; i++) {
        const struct rng_key key = {.seed = 5, .request = i, .position = i % 7};
        const int *p = p_row[i % 3][i % 2], *q = q_row[i % 3][i % 2];

        fill(&laws, p, q);
        assert_int_equal(accept_draw_list(&laws.law, &laws.q, 0, DRAW_RESIDUAL, &key, RNG_RESIDUAL), race(p, q, &key, RNG_RESIDUAL));
        assert_int_equal(accept_draw_list(&laws.law, &laws.q, 0, DRAW_PLAIN, &key, RNG_RESIDUAL), race(p, NULL, &key, RNG_RESIDUAL));
    }
}

static void test_law_exact__point_mass_leaves_p_without_its_token(void **state)
{
    const struct support point = {0};
    struct laws laws;

    (void)state;
    for (uint32_t i = 0; i < 3000; i++) {
        const struct rng_key key = {.seed = 6, .request = i};
        const int32_t drawn = (int32_t)(i % VOCAB);
        int q[VOCAB] = {0};

        q[drawn] = 16;
        fill(&laws, p_row[0][0], q_row[0][0]);
        assert_int_equal(accept_draw_list(&laws.law, &point, drawn, DRAW_RESIDUAL, &key, RNG_RESIDUAL),
                         race(p_row[0][0], q, &key, RNG_RESIDUAL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_law_exact__counts_equal_the_targets_law),
        cmocka_unit_test(test_law_exact__every_mutant_is_caught),
        cmocka_unit_test(test_law_exact__last_token_wins_the_race_of_its_weights),
        cmocka_unit_test(test_law_exact__point_mass_leaves_p_without_its_token),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
