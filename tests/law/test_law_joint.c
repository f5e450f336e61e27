/* Layer 1: the joint law of several committed tokens through the real code of both roles, against the exactly enumerated law. One request is
 * one independent sample. Three statistics with proven bounds (bounds.h): a cell of probability 0 is never hit; G over all cells; the
 * largest N KL of a cell. Every configuration first shows that two broken verifiers would be found. With TANDEM_LONG=1 in the environment:
 * 64 configurations of 1e7 requests. There are no retries, and the seeds are fixed. */
#include "common/base/bounds.h"
#include "tests/law/budget.h"
#include "tests/law/toy_exact.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { SEED = 20240607, MOST_CELLS = 65536, SHORT_CONFIGS = 32, LONG_CONFIGS = 64 };

struct setting {
    struct toy_terms terms;
    struct toy_run run;
    char name[160];
};

static struct toy_law law;
static double target[MOST_CELLS], broken[MOST_CELLS];
static int64_t counts[MOST_CELLS];

static int is_long(void)
{
    return getenv("TANDEM_LONG") != NULL;
}

static void count_end(void *user, uint32_t request, const int32_t *tokens)
{
    const struct toy_run *run = user;
    int index = 0;

    (void)request;
    for (int i = 0; i < run->length; i++)
        index = index * law.tokens + law.token_of[tokens[i]];
    counts[index]++;
}

static double divergence(const double *from, const double *to, int cells)
{
    double sum = 0;

    for (int i = 0; i < cells; i++)
        if (from[i] > 0)
            sum += to[i] > 0 ? from[i] * log(from[i] / to[i]) : INFINITY;
    return sum;
}

static int degrees(int cells)
{
    int df = -1;

    for (int i = 0; i < cells; i++)
        df += target[i] > 0;
    return df > 0 ? df : 1;
}

/* Enough requests to find at least two of the broken verifiers, twice over; `seen` is the second largest divergence of theirs. */
static int choose_count(const struct setting *setting, int cells, double *seen)
{
    static const enum toy_mutant mutants[] = {TOY_RESIDUAL_IS_P, TOY_ONE_Q_FOR_ALL, TOY_Q_IS_WARMER, TOY_RESIDUAL_IS_LARGEST};
    double need = bounds_noncentrality(degrees(cells), BUDGET_ALARM), largest = 0, wanted;

    *seen = 0;
    if (setting->run.sampling.accept == ACCEPT_COUPLED) { /* it equals solo token for token, below: no residual to be wrong */
        *seen = INFINITY;
        return BUDGET_SANITIZED ? 2000 : is_long() ? 10000000 : 150000;
    }
    for (int i = 0; i < 4; i++) {
        toy_exact_joint(&law, &setting->run, mutants[i], broken);
        double kl = divergence(broken, target, cells);

        *seen = fmin(largest, fmax(*seen, kl));
        largest = fmax(largest, kl);
    }
    wanted = fmax(1.5e5, 2 * need / (2 * *seen));
    return BUDGET_SANITIZED ? 2000 : is_long() ? 10000000 : wanted < 1e6 ? (int)wanted : 1000000;
}

struct statistics {
    int impossible;
    double g, cell;
};

static struct statistics compare(int cells, double n)
{
    struct statistics s = {0};

    for (int i = 0; i < cells; i++) {
        double o = (double)counts[i], e = n * target[i], kl;

        if (target[i] <= 0) {
            s.impossible += counts[i] > 0;
            continue;
        }
        s.g += o > 0 ? 2 * o * log(o / e) : 0;
        kl = (o > 0 ? o * log(o / e) : 0) + (n - o > 0 ? (n - o) * log((n - o) / (n - e)) : 0);
        s.cell = fmax(s.cell, kl);
    }
    return s;
}

static void check(struct setting *setting)
{
    struct toy_round round = {.law = &law, .run = &setting->run, .on_end = count_end, .user = &setting->run};
    struct statistics found;
    double seen, need;
    int cells, df;

    toy_law_fill(&law, &setting->terms);
    cells = toy_exact_cells(&law, &setting->run);
    toy_exact_joint(&law, &setting->run, TOY_RIGHT, target);
    df = degrees(cells);
    setting->run.count = choose_count(setting, cells, &seen);
    need = bounds_noncentrality(df, BUDGET_ALARM);
    memset(counts, 0, sizeof counts);
    clock_t start = clock();
    toy_round_run(&round, NULL);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    found = compare(cells, setting->run.count);
    print_message("%s: N %d, df %d, G %.0f < %.0f, cell %.1f < %.1f, smallest KL seen %.1e, mutants %.1e, %.1f s\n", setting->name,
                  setting->run.count, df, found.g, bounds_g(df, BUDGET_ALARM), found.cell, bounds_cell(df, BUDGET_ALARM), need / 2 / setting->run.count, seen,
                  seconds);
    assert_true(2.0 * setting->run.count * seen >= 2 * need || BUDGET_SANITIZED);
    assert_int_equal(found.impossible, 0);
    assert_true(found.g < bounds_g(df, BUDGET_ALARM));
    assert_true(found.cell < bounds_cell(df, BUDGET_ALARM));
}

/* The ways of sampling, in turn. */
static struct sampling sampling_of(int way, const char **name)
{
    static const char *const names[] = {"T 1",   "T 0.7",         "top-k 3", "top-p 0.85", "min-p 0.2", "repetition 1.4",
                                        "penalties", "all, T 0.7", "T 1, loss", "top-p, loss", "coupled",   "penalties, T 0.7"};
    struct sampling s = sampling_default;

    s.seed = SEED + (uint64_t)way;
    s.temperature = way == 1 || way == 7 || way == 11 ? 0.7 : 1.0;
    s.top_k = way == 2 ? 3 : way == 7 ? 10 : 0;
    s.top_p = way == 3 || way == 9 ? 0.85 : way == 7 ? 0.95 : 1.0;
    s.min_p = way == 4 ? 0.2 : way == 7 ? 0.05 : 0.0;
    s.repetition_penalty = way == 5 || way == 7 ? 1.4 : 1.0;
    s.presence_penalty = way == 6 || way == 11 ? 0.4 : 0.0;
    s.frequency_penalty = way == 6 || way == 11 ? 0.3 : 0.0;
    s.accept = way == 10 ? ACCEPT_COUPLED : ACCEPT_REJECTION;
    *name = names[way];
    return s;
}

/* Configuration number i: all values of each choice occur with all ways of sampling. */
static void set_up(int i, struct setting *setting)
{
    static const int drafts[] = {1, 2, 3, 5}, shards[] = {1, 2, 4};
    static const double overlaps[] = {0, 0.5, 0.95};
    int way = i % 12, large = i % 8 == 5;
    const char *name;

    setting->run = (struct toy_run){.sampling = sampling_of(way, &name),
                                   .shards = shards[(i + i / 3) % 3],
                                   .draft_length = drafts[(i + i / 4) % 4],
                                   .support = i % 5 == 1 ? 2 : i % 5 == 3 ? 3 : TOY_IDS,
                                   .length = large ? 2 : 4,
                                   .beyond = i % 2 == 0 ? 6 : 0,
                                   .loss = way == 8 || way == 9 ? 0.3 : 0};
    if (large && setting->run.beyond == 0)
        setting->run.beyond = 2; /* so that more than one token is drafted */
    setting->terms = (struct toy_terms){
        .tokens = large ? 16 : 4, .overlap = overlaps[(i + i / 12) % 3], .zeros = i % 4 == 2, .seed = SEED + 1000 + (uint64_t)i};
    snprintf(setting->name, sizeof setting->name, "%2d: %s, V %d, L %d, K %d, m %.2f, %d shards, support %d%s%s, seed %d", i, name,
             setting->terms.tokens, setting->run.length, setting->run.draft_length, setting->terms.overlap, setting->run.shards,
             setting->run.support, setting->terms.zeros ? ", zeros" : "", setting->run.beyond > 0 ? ", cut" : "", SEED);
}

static void test_law_joint__committed_tokens_follow_the_targets_law(void **state)
{
    (void)state;
    for (int i = 0; i < (is_long() ? LONG_CONFIGS : SHORT_CONFIGS); i++) {
        struct setting setting;

        set_up(i, &setting);
        check(&setting);
    }
}

/* The same statistics must refuse a law that is slightly another: one row of the target with two tokens exchanged. */
static void test_law_joint__another_law_is_refused(void **state)
{
    struct setting setting;
    struct statistics found;
    int cells;

    (void)state;
    set_up(2, &setting);
    setting.run.count = BUDGET_SANITIZED ? 10000 : 100000;
    toy_law_fill(&law, &setting.terms);
    struct toy_round round = {.law = &law, .run = &setting.run, .on_end = count_end, .user = &setting.run};

    memset(counts, 0, sizeof counts);
    toy_round_run(&round, NULL);
    cells = toy_exact_cells(&law, &setting.run);
    toy_exact_joint(&law, &setting.run, TOY_RESIDUAL_IS_P, target);
    found = compare(cells, setting.run.count);
    assert_true(found.g > bounds_g(degrees(cells), BUDGET_ALARM));
}

enum { COUPLED_REQUESTS = BUDGET_SANITIZED ? 100 : 1500, COUPLED_LENGTH = 6 };
static int32_t solo[COUPLED_REQUESTS][COUPLED_LENGTH];

static void keep_solo(void *user, uint32_t request, const int32_t *tokens)
{
    (void)user;
    memcpy(solo[request], tokens, sizeof solo[request]);
}

static void compare_with_solo(void *user, uint32_t request, const int32_t *tokens)
{
    (void)user;
    assert_memory_equal(solo[request], tokens, sizeof solo[request]);
}

/* Runs solo on one shard, then with every draft length, shard count and loss. */
static void expect_solo(const struct toy_terms *terms, const struct sampling *sampling)
{
    static const int shards[] = {1, 2, 4};
    struct toy_run run = {
        .sampling = *sampling, .shards = 1, .support = TOY_IDS, .length = COUPLED_LENGTH, .beyond = 3, .count = COUPLED_REQUESTS};
    struct toy_round round = {.law = &law, .run = &run, .on_end = keep_solo};

    toy_law_fill(&law, terms);
    toy_round_run(&round, NULL);
    round.on_end = compare_with_solo;
    for (int k = 0; k <= 5; k++)
        for (int s = 0; s < 3; s++) {
            run.draft_length = k;
            run.shards = shards[s];
            run.loss = k == 3 ? 0.4 : 0;
            toy_round_run(&round, NULL);
        }
}

static void test_law_joint__coupled_gives_the_solo_tokens(void **state)
{
    static const double overlaps[] = {0, 0.5, 0.95};

    (void)state;
    for (int i = 0; i < 12; i++) {
        const struct toy_terms terms = {.tokens = i % 4 == 3 ? 16 : 4, .overlap = overlaps[i % 3], .zeros = i % 2, .seed = 77 + (uint64_t)i};
        const char *name;
        struct sampling sampling = sampling_of(i, &name);

        sampling.accept = ACCEPT_COUPLED;
        expect_solo(&terms, &sampling);
    }
}

static void test_law_joint__greedy_gives_the_solo_tokens(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const struct toy_terms terms = {.tokens = 16, .overlap = 0.9, .zeros = i % 2, .seed = 177 + (uint64_t)i};
        struct sampling sampling = sampling_default;

        sampling.repetition_penalty = i < 2 ? 1.0 : 1.7;
        expect_solo(&terms, &sampling);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_law_joint__committed_tokens_follow_the_targets_law),
        cmocka_unit_test(test_law_joint__another_law_is_refused),
        cmocka_unit_test(test_law_joint__coupled_gives_the_solo_tokens),
        cmocka_unit_test(test_law_joint__greedy_gives_the_solo_tokens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
