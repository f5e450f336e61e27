/* Layer 2: one position of a real vocabulary, 32,000 and 128,256 ids, through the real code of both roles on 1, 2 and 4 shards. Tokens are
 * counted in 256 bins, 64 quantiles of log(p / q) by 4 of the rank under q: an error of the residual is a function of p / q, so these bins see
 * more of it than others of the same number. Padding has a bin of its own that must stay empty. Power as in the joint test. */
#include "common/base/bounds.h"
#include "common/sample/distribution.h"
#include "common/sample/sparse_q.h"
#include "tests/law/budget.h"
#include "tests/law/law_options.h"
#include "tests/law/toy_round.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { LARGEST = 128256, RATIOS = 64, RANKS = 4, BINS = RATIOS * RANKS, SUPPORT = 256, SHIPPED = 64, SHARDINGS = 3 };
enum {
    QUICK_REQUESTS = 3000,
    DEFAULT_REQUESTS = 10000,
    WIDE_REQUESTS = 20000,
    MOST_REQUESTS = 100000,
    LONG_REQUESTS = 10000000,
    SANITIZED_REQUESTS = 90
};

enum wrong { RESIDUAL_IS_P, RESIDUAL_IS_DISTANCE, Q_IS_WARMER, Q_IS_CUT, P_IS_WARMER, WRONGS };
static const char *const wrong_name[WRONGS] = {"residual = p", "residual = |p - q|", "q^(1/1.1)", "64 best of q", "p^(1/1.1)"};

struct place {
    const char *name;
    int ids;
    struct sampling sampling;
};

struct table {
    float p_logit[LARGEST], q_logit[LARGEST];
    double p[LARGEST], p_whole[LARGEST]; /* the processed law; the same before truncation */
    double q_whole[LARGEST], q[LARGEST]; /* the draft's law before its support is cut; what is sampled from */
    double wrong[LARGEST];
    int bin[LARGEST];
    struct scored_token order[LARGEST];
};

static struct law_options options;
static struct table *table;
static double law[BINS + 1], wrong_law[BINS + 1];
static int64_t first[BINS + 1], bonus[BINS + 1];

/* A number in [0, 1) that belongs to an id. */
static double hash(int id, uint32_t purpose)
{
    const struct rng_key key = {.seed = 99, .request = (uint32_t)id, .position = purpose};

    return rng_uniform(&key, RNG_TREE);
}

static double normal(int id, uint32_t purpose)
{
    return sqrt(-2 * log(1 - hash(id, purpose))) * cos(6.283185307179586 * hash(id, purpose + 1));
}

/* Logits that fall with the logarithm of a token's rank, as those of languages do; the draft's differ by noise. One id in fifty is padding,
 * and some are impossible for one of the two alone. */
static void fill_logits(int ids)
{
    for (int i = 0; i < ids; i++) {
        int rank = (int)((int64_t)i * 7919 % ids), kind = (int)(hash(i, 0) * 50);
        double logit = -1.3 * log(rank + 3.0) + 0.7 * normal(i, 1);

        table->p_logit[i] = kind == 0 || kind == 1 ? -INFINITY : (float)logit;
        table->q_logit[i] = kind == 0 || kind == 2 ? -INFINITY : (float)(logit + 0.6 * normal(i, 3));
    }
}

static int by_rank(const void *a, const void *b)
{
    const struct scored_token *x = a, *y = b;

    return x->score != y->score ? (x->score < y->score) - (x->score > y->score) : (x->token > y->token) - (x->token < y->token);
}

static void sort(int ids, const double *score)
{
    for (int i = 0; i < ids; i++)
        table->order[i] = (struct scored_token){.score = (float)score[i], .token = i};
    qsort(table->order, (size_t)ids, sizeof *table->order, by_rank);
}

static void normalise(double *p, int ids)
{
    double sum = 0;

    for (int i = 0; i < ids; i++)
        sum += p[i];
    for (int i = 0; i < ids; i++)
        p[i] /= sum;
}

/* softmax(logits / T), then top-k, then top-p, in double.  whole, p: [ids] */
static void process(const struct sampling *s, int ids, const float *logits, double *whole, double *p)
{
    double before = 0, sum = 0;

    for (int i = 0; i < ids; i++)
        sum += whole[i] = exp((double)(logits[i] * (float)(1 / s->temperature)));
    for (int i = 0; i < ids; i++)
        whole[i] /= sum;
    for (int i = 0; i < ids; i++)
        p[i] = (double)logits[i];
    sort(ids, p);
    memset(p, 0, (size_t)ids * sizeof *p);
    sum = 0;
    for (int i = 0; i < ids && (s->top_k == 0 || i < s->top_k); i++)
        sum += whole[table->order[i].token];
    for (int i = 0; i < ids && (s->top_k == 0 || i < s->top_k) && (i == 0 || before < s->top_p * sum); i++) {
        p[table->order[i].token] = whole[table->order[i].token];
        before += p[table->order[i].token];
    }
    normalise(p, ids);
}

/* What the drafter ships: the best of `from`, quantised. */
static void quantise(int ids, const double *from)
{
    struct scored_token best[SUPPORT];
    double falling[SUPPORT];
    struct sparse_q sparse;

    sort(ids, from);
    for (int i = 0; i < SUPPORT; i++) {
        best[i] = table->order[i];
        falling[i] = from[best[i].token];
    }
    sparse_q_fill(&sparse, best, falling, SUPPORT, 1.0, SUPPORT);
    memset(table->q, 0, (size_t)ids * sizeof *table->q);
    for (int i = 0; i < sparse.count; i++)
        table->q[sparse.id[i]] = (double)sparse.weight[i] / SPARSE_Q_SUM;
}

/* Which of `parts` equal shares of the mass each id lies in, in the order of a falling score. */
static void place_quantiles(int ids, const double *score, int parts, int *part)
{
    double before = 0;

    sort(ids, score);
    for (int i = 0; i < ids; i++) {
        int id = table->order[i].token, at = (int)(parts * before);

        part[id] = at < parts ? at : parts - 1;
        before += table->p[id];
    }
}

static void place_bins(int ids)
{
    static int rank[LARGEST];

    for (int i = 0; i < ids; i++) /* where only one of the two is 0 the ratio is an end of the order */
        table->wrong[i] = table->p[i] <= 0 ? 1e30 : table->q_whole[i] <= 0 ? -1e30 : -log(table->p[i] / table->q_whole[i]);
    place_quantiles(ids, table->wrong, RATIOS, table->bin);
    place_quantiles(ids, table->q_whole, RANKS, rank);
    for (int i = 0; i < ids; i++)
        table->bin[i] = table->p[i] > 0 ? table->bin[i] * RANKS + rank[i] : BINS;
}

static void add_bins(int ids, const double *p, double *bins)
{
    memset(bins, 0, (BINS + 1) * sizeof *bins);
    for (int i = 0; i < ids; i++)
        bins[table->bin[i]] += p[i];
}

static void bend(int ids, const double *from, double power, double *to)
{
    for (int i = 0; i < ids; i++)
        to[i] = from[i] > 0 ? pow(from[i], power) : 0;
    normalise(to, ids);
}

/* What the drafter says it sampled from, where that is wrong. */
static void ship(enum wrong wrong, int ids, double *tested)
{
    memcpy(tested, table->q, (size_t)ids * sizeof *tested);
    if (wrong == Q_IS_WARMER)
        bend(ids, table->q, 1 / 1.1, tested);
    if (wrong == Q_IS_CUT) {
        sort(ids, table->q);
        for (int i = SHIPPED; i < ids; i++)
            tested[table->order[i].token] = 0;
        normalise(tested, ids);
    }
}

/* The law of the first token that a wrong verifier would give, in bins. */
static void break_law(enum wrong wrong, int ids)
{
    static double tested[LARGEST];
    double refused = 0, mass = 0;

    if (wrong == P_IS_WARMER) {
        bend(ids, table->p, 1 / 1.1, table->wrong);
        add_bins(ids, table->wrong, wrong_law);
        return;
    }
    ship(wrong, ids, tested);
    for (int i = 0; i < ids; i++) {
        double p = table->p[i], q = tested[i];

        mass += wrong == RESIDUAL_IS_P ? p : wrong == RESIDUAL_IS_DISTANCE ? fabs(p - q) : fmax(0, p - q);
        refused += table->q[i] * (q > p ? 1 - p / q : p <= 0);
    }
    for (int i = 0; i < ids; i++) {
        double p = table->p[i], q = tested[i];
        double residual = wrong == RESIDUAL_IS_P ? p : wrong == RESIDUAL_IS_DISTANCE ? fabs(p - q) : fmax(0, p - q);

        table->wrong[i] = table->q[i] * (q > p ? p / q : p > 0) + refused * residual / mass;
    }
    add_bins(ids, table->wrong, wrong_law);
}

static void count_outcome(void *user, const struct sequence *sequence, const struct outcome *outcome)
{
    (void)user;
    if (sequence->rounds > 0)
        return;
    first[table->bin[outcome->token[0]]]++;
    if (outcome->count == 2)
        bonus[table->bin[outcome->token[1]]]++;
}

/* Which wrong verifiers must be found: coupled tokens have no residual and no q. A q of another temperature, the most hidden one, takes five
 * times the requests of the others: the wide form asks for it, where a request is cheap. */
static int must_see(const struct place *place, enum wrong wrong)
{
    if (wrong == Q_IS_WARMER && (place->ids == LARGEST || !options.is_wide))
        return 0;
    if (wrong == Q_IS_CUT && place->sampling.top_k > 0) /* truncation leaves little beyond the 64 best */
        return 0;
    if (place->sampling.accept == ACCEPT_COUPLED)
        return wrong == P_IS_WARMER;
    return wrong != P_IS_WARMER || !options.is_quick;
}

/* Requests for twice the noncentrality that is needed, for each of the wrong verifiers. */
static int choose_count(const struct place *place)
{
    double wanted = options.is_quick ? QUICK_REQUESTS : options.is_wide ? WIDE_REQUESTS : DEFAULT_REQUESTS;

    if (BUDGET_SANITIZED || options.requests > 0 || options.is_long)
        return BUDGET_SANITIZED ? SANITIZED_REQUESTS : options.requests > 0 ? (int)options.requests : LONG_REQUESTS;
    for (enum wrong w = 0; w < WRONGS; w++) {
        if (!must_see(place, w))
            continue;
        break_law(w, place->ids);
        double asked = bounds_samples(wrong_law, law, BINS + 1, BUDGET_ALARM);

        print_message("%s: '%s' needs %.0f requests\n", place->name, wrong_name[w], asked);
        assert_true(asked <= MOST_REQUESTS);
        wanted = fmax(wanted, asked);
    }
    return (int)ceil(wanted);
}

static void expect_fit(const struct place *place, const char *what, const int64_t *counts)
{
    struct bounds_fit fit = bounds_compare(counts, law, BINS + 1);

    print_message("%s, %s: df %d, G %.0f < %.0f, cell %.1f < %.1f\n", place->name, what, fit.df, fit.g, bounds_g(fit.df, BUDGET_ALARM),
                  fit.cell, bounds_cell(fit.df, BUDGET_ALARM));
    assert_int_equal(fit.impossible, 0);
    assert_true(fit.g < bounds_g(fit.df, BUDGET_ALARM));
    assert_true(fit.cell < bounds_cell(fit.df, BUDGET_ALARM));
}

static void check(const struct place *place)
{
    static const int shards[SHARDINGS] = {1, 2, 4};
    static struct toy_law toy;
    int ids = place->ids, count;

    fill_logits(ids);
    process(&place->sampling, ids, table->q_logit, table->q_whole, table->q);
    quantise(ids, table->q);
    process(&place->sampling, ids, table->p_logit, table->p_whole, table->p);
    place_bins(ids);
    add_bins(ids, table->p, law);
    count = choose_count(place);
    toy_law_widen(&toy, ids, table->p_logit, table->q_logit);
    memset(first, 0, sizeof first);
    memset(bonus, 0, sizeof bonus);
    clock_t start = clock();
    for (int s = 0; s < SHARDINGS; s++) { /* the law is the same on all, so their counts are one sample */
        struct toy_run run = {.sampling = place->sampling,
                              .shards = shards[s],
                              .draft_length = 1,
                              .support = SUPPORT,
                              .length = 1,
                              .beyond = 1,
                              .first = (uint32_t)(s * count),
                              .count = (count + SHARDINGS - 1) / SHARDINGS};
        struct toy_round round = {.law = &toy, .run = &run, .on_outcome = count_outcome};

        run.sampling.seed = options.seed;
        toy_round_run(&round, NULL);
    }
    print_message("%s: N %d, %.0f us each\n", place->name, count, 1e6 * (double)(clock() - start) / CLOCKS_PER_SEC / count);
    expect_fit(place, "first token", first);
    expect_fit(place, "bonus", bonus);
}

static struct sampling sampling_of(double temperature, int top_k, double top_p, enum accept_mode accept)
{
    struct sampling s = sampling_default;

    s.temperature = temperature;
    s.top_k = top_k;
    s.top_p = top_p;
    s.accept = (int32_t)accept;
    return s;
}

static void test_law_vocabulary__tokens_follow_the_targets_law(void **state)
{
    const struct place places[] = {
        {"32,000, T 1", 32000, sampling_of(1, 0, 1, ACCEPT_REJECTION)},
        {"32,000, T 0.9, top-k 200, top-p 0.97", 32000, sampling_of(0.9, 200, 0.97, ACCEPT_REJECTION)},
        {"32,000, coupled", 32000, sampling_of(1, 0, 1, ACCEPT_COUPLED)},
        {"128,256, T 1", 128256, sampling_of(1, 0, 1, ACCEPT_REJECTION)},
    };
    enum { PLACES = sizeof places / sizeof places[0] };

    (void)state;
    _Static_assert(4 * PLACES <= BUDGET_VOCABULARY, "each compares four statistics with their bounds");
    for (int i = options.part; i < PLACES; i += options.parts)
        if (!options.is_quick || places[i].ids < LARGEST)
            check(&places[i]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_law_vocabulary__tokens_follow_the_targets_law)};
    int failed;

    options = law_options_read(argc, argv);
    table = calloc(1, sizeof *table);
    if (table == NULL)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(table);
    return failed;
}
