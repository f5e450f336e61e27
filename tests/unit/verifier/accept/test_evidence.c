/* Evidence from 1, 2 and 4 shards gives one and the same law, whatever the kind. */
#include "tests/law/naive_law.h"
#include "verifier/accept/evidence.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 2048, SHARDS = 4, SUPPORT = 5, ROOM = SHARDS * EVIDENCE_LIST_MOST };

struct joined {
    int known; /* evidence_join's answer */
    struct target_row law;
    struct scored_token best[ROOM];
    double p[ROOM];
    float logit[SUPPORT];
};

static struct backend_context *context;
static struct joined joined[3], whole;
static const int widths[3] = {1, 2, 4};

static double uniform(uint32_t at, uint32_t stream)
{
    return rng_uniform(&(struct rng_key){.seed = 11, .request = at, .position = stream}, RNG_TREE);
}

static void join(struct joined *to, int shards, const struct sampling *sampling, const float *logits, int vocab, const int32_t *support)
{
    const struct rng_key key = {.seed = sampling->seed, .request = 3, .position = 9};
    size_t bytes = evidence_bytes(sampling, SUPPORT);
    char *evidence = calloc((size_t)shards, bytes);
    const void *from[SHARDS];

    assert_non_null(evidence);
    for (int r = 0; r < shards; r++) {
        int first = vocab * r / shards;
        const struct evidence_row row = {logits + first, first, vocab / shards, key, support, SUPPORT};

        from[r] = evidence + (size_t)r * bytes;
        evidence_take(&backend_cpu, context, sampling, &row, evidence + (size_t)r * bytes);
    }
    to->known = evidence_join(sampling, &key, from, shards, SUPPORT, vocab, to->best, to->p, to->logit, &to->law);
    free(evidence);
}

static void join_all(const struct sampling *sampling, const float *logits, int vocab, const int32_t *support)
{
    for (int i = 0; i < 3; i++)
        join(&joined[i], widths[i], sampling, logits, vocab, support);
}

/* A law of p over all ids. */
static void spread(const struct joined *from, int vocab, double *p)
{
    memset(p, 0, (size_t)vocab * sizeof *p);
    for (int i = 0; i < from->law.count; i++)
        p[from->law.best[i].token] = from->law.p[i];
}

static void random_logits(uint32_t at, double width, float *logits, int vocab)
{
    for (int i = 0; i < vocab; i++)
        logits[i] = (float)(width * uniform(at, (uint32_t)i));
}

static void test_evidence__greedy_ties_go_to_the_lowest_id(void **state)
{
    static const int32_t support[SUPPORT];
    static const int places[][2] = {{15, 16}, {31, 32}, {47, 48}, {16, 63}, {0, 32}};
    struct sampling sampling = sampling_default;
    float logits[64];

    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        random_logits(1, 1, logits, 64);
        logits[places[i][0]] = logits[places[i][1]] = 2;
        join_all(&sampling, logits, 64, support);
        for (int s = 0; s < 3; s++)
            assert_int_equal(joined[s].law.winner, places[i][0]);
    }
}

static void test_evidence__coupled_winner_does_not_depend_on_shards(void **state)
{
    static const int32_t support[SUPPORT];
    struct sampling sampling = sampling_default;
    float logits[VOCAB];

    (void)state;
    sampling.temperature = 1;
    sampling.accept = ACCEPT_COUPLED;
    for (uint32_t i = 0; i < 300; i++) {
        struct rng_key key = {.seed = i, .request = 3, .position = 9};
        int32_t winner = 0;
        float best = -INFINITY;

        sampling.seed = i;
        random_logits(i, 6, logits, VOCAB);
        for (int32_t v = 0; v < VOCAB; v++)
            if (logits[v] + rng_gumbel(&key, RNG_NOISE, (uint32_t)v) > best) {
                best = logits[v] + rng_gumbel(&key, RNG_NOISE, (uint32_t)v);
                winner = v;
            }
        join_all(&sampling, logits, VOCAB, support);
        for (int s = 0; s < 3; s++)
            assert_int_equal(joined[s].law.winner, winner);
    }
}

static void test_evidence__support_has_the_normaliser_of_the_row(void **state)
{
    static const int32_t support[SUPPORT] = {0, 511, 512, 1024, 5000}; /* the last one is beyond the vocabulary */
    struct sampling sampling = sampling_default;
    float logits[VOCAB];

    (void)state;
    sampling.temperature = 1;
    for (uint32_t i = 0; i < 50; i++) {
        double sum = 0;

        random_logits(i, 20, logits, VOCAB);
        for (int v = 512; i % 2 && v < 1024; v++)
            logits[v] = -INFINITY; /* a shard of four has nothing */
        for (int v = 0; v < VOCAB; v++)
            sum += exp((double)logits[v]);
        join_all(&sampling, logits, VOCAB, support);
        for (int s = 0; s < 3; s++) {
            assert_int_equal(joined[s].law.kind, TARGET_SUPPORT);
            assert_true(fabs(joined[s].law.log_z - log(sum)) < 2e-6);
            for (int k = 0; k < 4; k++)
                assert_true(joined[s].logit[k] == logits[support[k]]);
            assert_true(joined[s].logit[4] == -INFINITY);
        }
    }
}

static void test_evidence__entropy_is_that_of_the_row(void **state)
{
    static const int32_t support[SUPPORT] = {0, 511, 512, 1024, 5000};
    struct sampling sampling = sampling_default;
    float logits[VOCAB];

    (void)state;
    sampling.temperature = 1;
    sampling.accept = ACCEPT_TYPICAL;
    for (uint32_t i = 0; i < 50; i++) {
        double sum = 0, mean = 0;

        random_logits(i, i % 5 * 10, logits, VOCAB); /* of all equal ones, too */
        for (int v = 512; i % 2 && v < 1024; v++)
            logits[v] = -INFINITY; /* a shard of four has nothing */
        for (int v = 0; v < VOCAB; v++)
            sum += exp((double)logits[v]);
        for (int v = 0; v < VOCAB; v++)
            mean += logits[v] > -INFINITY ? (double)logits[v] * exp((double)logits[v]) / sum : 0;
        join_all(&sampling, logits, VOCAB, support);
        for (int s = 0; s < 3; s++) {
            assert_int_equal(joined[s].law.kind, TARGET_SUPPORT);
            assert_true(fabs(joined[s].law.log_z - log(sum)) < 2e-6);
            assert_true(fabs(joined[s].law.entropy - (log(sum) - mean)) < 1e-5);
            for (int k = 0; k < 4; k++)
                assert_true(joined[s].logit[k] == logits[support[k]]);
        }
    }
}

/* A rule that is not greedy at temperature 0 knows what greedy does, and p at temperature 1: of drafts, and of the best. */
static void test_evidence__cold_rules_know_the_best_token_and_p(void **state)
{
    static const int32_t support[SUPPORT] = {0, 511, 512, 1024, 5000};
    struct sampling sampling = sampling_default;
    float logits[VOCAB];

    (void)state;
    sampling.accept = ACCEPT_THRESHOLD;
    sampling.top_k = 3; /* keeps the best, as always at temperature 0, and leaves p alone */
    for (uint32_t i = 0; i < 50; i++) {
        int32_t first = (int32_t)(i * 40 + 17), second = first + (i % 2 ? 1 : 24); /* on one shard, and on two of 1024 or 512 */
        double sum = 0;

        random_logits(i, 6, logits, VOCAB);
        logits[first] = logits[second] = 7;
        for (int v = 0; v < VOCAB; v++)
            sum += exp((double)logits[v]);
        join_all(&sampling, logits, VOCAB, support);
        for (int s = 0; s < 3; s++) {
            assert_int_equal(joined[s].law.kind, TARGET_SUPPORT);
            assert_int_equal(joined[s].law.winner, first);
            assert_true(fabs(joined[s].law.most - exp(7) / sum) < 1e-6);
            assert_true(fabs(joined[s].law.log_z - log(sum)) < 2e-6);
            for (int k = 0; k < 4; k++)
                assert_true(joined[s].logit[k] == logits[support[k]]);
        }
    }
}

/* Random ways of truncating. */
static struct sampling random_sampling(uint32_t at)
{
    struct sampling s = sampling_default;
    static const int ks[] = {0, 1, 2, 40, 700, 1024, 1500, 5000};

    s.temperature = 1;
    s.top_k = ks[(int)(8 * uniform(at, 1))];
    s.top_p = uniform(at, 2) < 0.3 ? 1 : uniform(at, 3);
    s.top_p = s.top_p > 0 ? s.top_p : 1;
    s.min_p = uniform(at, 4) < 0.5 ? 0 : uniform(at, 5) * 0.5;
    if (s.top_k == 0 && s.top_p == 1 && s.min_p == 0)
        s.min_p = 0.1;
    return s;
}

static void test_evidence__lists_give_the_law_of_the_whole_row(void **state)
{
    static const int32_t support[SUPPORT];
    static double p[VOCAB], q[VOCAB];
    float logits[VOCAB];
    int compared = 0;

    (void)state;
    for (uint32_t i = 0; i < 400; i++) {
        const struct sampling sampling = random_sampling(i);
        const struct rng_key key = {.seed = 0, .request = 3, .position = 9};

        random_logits(i, i % 3 == 0 ? 30 : 6, logits, VOCAB);
        if (i % 4 == 0) /* ties over the borders of shards */
            for (int v = 0; v < VOCAB; v++)
                logits[v] = floorf(logits[v]);
        if (naive_law(&sampling, logits, VOCAB, NULL, 0, 0, p) < 1e-5)
            continue; /* so near a cut that the rounding of the mass decides */
        join_all(&sampling, logits, VOCAB, support);
        evidence_join_whole(&sampling, &key, logits, VOCAB, whole.best, whole.p, &whole.law);
        for (int s = 0; s < 4; s++) {
            const struct joined *one = s < 3 ? &joined[s] : &whole;

            if (s < 3 && !one->known)
                continue;
            compared += s < 3;
            spread(one, VOCAB, q);
            for (int v = 0; v < VOCAB; v++)
                assert_true(fabs(p[v] - q[v]) < 1e-9);
        }
    }
    assert_true(compared > 500);
}

static void test_evidence__flat_row_wants_the_whole_row(void **state)
{
    static const int32_t support[SUPPORT];
    struct sampling sampling = sampling_default;
    float logits[VOCAB];

    (void)state;
    sampling.temperature = 1;
    sampling.top_p = 0.9;
    random_logits(5, 0.5, logits, VOCAB);
    join_all(&sampling, logits, VOCAB, support);
    for (int s = 0; s < 3; s++)
        assert_int_equal(joined[s].known, 0);
    sampling.top_k = 50;
    join_all(&sampling, logits, VOCAB, support);
    for (int s = 0; s < 3; s++)
        assert_int_equal(joined[s].known, 1);
}

/* In coupled mode a truncated row's winner is the same from lists and from the whole row. */
static void test_evidence__coupled_lists_have_one_winner(void **state)
{
    static const int32_t support[SUPPORT];
    float logits[VOCAB];

    (void)state;
    for (uint32_t i = 0; i < 300; i++) {
        struct sampling sampling = random_sampling(i);
        const struct rng_key key = {.seed = i, .request = 3, .position = 9};
        static double p[VOCAB];

        sampling.accept = ACCEPT_COUPLED;
        sampling.seed = i;
        random_logits(i, 10, logits, VOCAB);
        if (naive_law(&sampling, logits, VOCAB, NULL, 0, 0, p) < 1e-5)
            continue;
        join_all(&sampling, logits, VOCAB, support);
        evidence_join_whole(&sampling, &key, logits, VOCAB, whole.best, whole.p, &whole.law);
        for (int s = 0; s < 3; s++)
            assert_true(!joined[s].known || (joined[s].law.kind == TARGET_WINNER && joined[s].law.winner == whole.law.winner));
        assert_true(p[whole.law.winner] > 0);
    }
}

static int open_backend(void **state)
{
    const struct backend_options options = {.threads = 1, .max_rows = 1};

    (void)state;
    return backend_cpu.open(&options, &context) != STATUS_OK;
}

static int close_backend(void **state)
{
    (void)state;
    backend_cpu.close(context);
    return 0;
}

/* The logits of q's support are told where the size follows the support's; and there alone what follows a rejection is drawn from the row. */
static void test_evidence__only_what_needs_q_tells_of_it(void **state)
{
    const struct {
        double temperature;
        int accept, top_k;
        const char *name;
        int tells;
    } rows[] = {{0, ACCEPT_REJECTION, 0, "best", 0},    {1, ACCEPT_COUPLED, 0, "gumbel-max", 0}, {1, ACCEPT_COUPLED, 7, "list", 0},
                {1, ACCEPT_REJECTION, 7, "list", 0},    {1, ACCEPT_WALK, 0, "gumbel-max", 0},    {1, ACCEPT_WALK, 7, "list", 0},
                {1, ACCEPT_REJECTION, 0, "support", 1}, {1, ACCEPT_BLOCK, 0, "support", 1},      {1, ACCEPT_BLOCK, 7, "list", 0},
                {1, ACCEPT_CLASSIC, 0, "support", 1}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sampling sampling = sampling_default;
        const struct evidence_facts *facts;

        sampling.temperature = rows[i].temperature;
        sampling.accept = rows[i].accept;
        sampling.top_k = rows[i].top_k;
        facts = evidence_facts(&sampling);
        assert_string_equal(facts->name, rows[i].name);
        assert_int_equal(facts->tells_support, rows[i].tells);
        assert_int_equal(facts->leaves_draw, rows[i].tells);
        assert_int_equal(evidence_bytes(&sampling, 4) > evidence_bytes(&sampling, 0), rows[i].tells);
        for (int ids = 0; ids < 4; ids++)
            assert_true(evidence_bytes(&sampling, ids) <= evidence_room(1, ids));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_evidence__greedy_ties_go_to_the_lowest_id),
        cmocka_unit_test(test_evidence__coupled_winner_does_not_depend_on_shards),
        cmocka_unit_test(test_evidence__support_has_the_normaliser_of_the_row),
        cmocka_unit_test(test_evidence__entropy_is_that_of_the_row),
        cmocka_unit_test(test_evidence__cold_rules_know_the_best_token_and_p),
        cmocka_unit_test(test_evidence__lists_give_the_law_of_the_whole_row),
        cmocka_unit_test(test_evidence__flat_row_wants_the_whole_row),
        cmocka_unit_test(test_evidence__coupled_lists_have_one_winner),
        cmocka_unit_test(test_evidence__only_what_needs_q_tells_of_it),
    };

    return cmocka_run_group_tests(tests, open_backend, close_backend);
}
