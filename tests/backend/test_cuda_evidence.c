/* Evidence taken on the device, and the largest logits, against the CPU's row operations. */
#include "tests/backend/device_rig.h"

#include "common/backend/cuda/kernels.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 7, MOST = 12301, FIRST = 32000, LISTED = ROW_MAX_ASKED };

struct evidence {
    int rows, count;
    float *logits; /* [rows][count] */
    float scale[ROWS];
    struct rng_key key[ROWS];
    int32_t token_first[ROWS + 1], token[ROWS * LISTED]; /* ids, some of other shards */
    int32_t best_first[ROWS + 1];
};

struct outcome {
    struct row_stats stats[ROWS];
    struct scored_token winner[ROWS];
    float logit[ROWS * LISTED];
    struct scored_token best[ROWS * LISTED];
};

/* Row 0 is on a coarse grid, so that its largest is there several times; row 1 has many that are minus infinity, row 2 nothing else; row 3
 * is flat; row 4 has no noise to speak of (one logit far above); rows 5 and 6 are ordinary. */
static float logit_of(int row, int i, struct random *random)
{
    float value = random_float(random) * 9.0f;

    switch (row) {
    case 0:
        return roundf(value);
    case 1:
        return random_word(random) % 3 == 0 ? value : -INFINITY;
    case 2:
        return -INFINITY;
    case 3:
        return i % 2 == 0 ? 0.0f : -0.0f;
    case 4:
        return i == 3 ? 80.0f : value;
    default:
        return value;
    }
}

/* Row 1 lists nothing, row 6 all that there is where there is room for it, others here and there. Returns how many. */
static int list_tokens(int row, int count, struct random *random, int32_t *token)
{
    uint32_t step = row == 6 && count < LISTED - 2 ? 1 : (uint32_t)count / 100 + 2;
    int listed = 0;

    for (int32_t at = -3; row != 1 && at < count + 2 && listed < LISTED; at += 1 + (int32_t)(random_word(random) % step))
        token[listed++] = FIRST + at;
    return listed;
}

static void evidence_init(struct evidence *evidence, int count)
{
    static const int wanted[ROWS] = {40, 1024, 3, 300, 0, 1, 64};
    struct random random = {.state = (uint32_t)count};

    *evidence = (struct evidence){.rows = ROWS, .count = count};
    evidence->logits = zeroed((size_t)(ROWS * count), sizeof(float));
    for (int r = 0; r < ROWS; r++) {
        for (int i = 0; i < count; i++)
            evidence->logits[r * count + i] = logit_of(r, i, &random);
        evidence->scale[r] = r % 2 == 0 ? 1.0f : 1.0f / 0.7f;
        evidence->key[r] =
            (struct rng_key){.seed = UINT64_C(0x123456789abcdef) + (uint64_t)r, .request = 5 + (uint32_t)r, .position = 1000};
        evidence->token_first[r + 1] = evidence->token_first[r] + list_tokens(r, count, &random, evidence->token + evidence->token_first[r]);
        evidence->best_first[r + 1] = evidence->best_first[r] + wanted[r];
    }
}

static void evidence_release(struct evidence *evidence)
{
    free(evidence->logits);
}

/* Rows of one launch have noise of their own, or none. */
static int purpose_of(int row)
{
    return row % 3 == 0 ? RNG_NOISE : row % 3 == 1 ? RNG_RESIDUAL : -1;
}

/* Rows first .. first + rows - 1 on the device, of whose logits they are the last. */
static void take(const struct evidence *evidence, int first, int rows, int excludes, struct outcome *outcome)
{
    size_t size = (size_t)(rows + 1) * sizeof(int32_t);
    int32_t token_first[ROWS + 1] = {0}, best_first[ROWS + 1] = {0}, excluding[ROWS], purpose[ROWS], row[ROWS];

    for (int r = 0; r <= rows; r++) {
        token_first[r] = evidence->token_first[first + r] - evidence->token_first[first];
        best_first[r] = evidence->best_first[first + r] - evidence->best_first[first];
    }
    for (int r = 0; r < rows; r++) {
        excluding[r] = excludes;
        purpose[r] = purpose_of(first + r);
        row[r] = first + r;
    }
    size_t tokens = (size_t)token_first[rows], bests = (size_t)best_first[rows];
    void *given[] = {device_put(evidence->logits, (size_t)ROWS * (size_t)evidence->count * sizeof(float)),
                     device_put(row, (size_t)rows * sizeof *row),
                     device_put(evidence->scale + first, (size_t)rows * sizeof(float)),
                     device_put(evidence->key + first, (size_t)rows * sizeof(struct rng_key)),
                     device_put(excluding, (size_t)rows * sizeof *excluding),
                     device_put(token_first, size),
                     device_put(evidence->token + evidence->token_first[first], tokens * sizeof(int32_t)),
                     device_put(best_first, size),
                     device_blank(tokens * sizeof(float)),
                     device_blank(sizeof outcome->stats),
                     device_blank(sizeof outcome->winner),
                     device_blank(bests * sizeof(struct scored_token)),
                     device_blank(evidence_scratch_bytes(rows, evidence->count)),
                     device_blank(top_scratch_bytes(rows, evidence->count)),
                     device_put(purpose, (size_t)rows * sizeof *purpose)};
    const struct kernel_logits from = {.logits = given[0], .rows = rows, .count = evidence->count, .row = given[1], .scale = given[2]};
    const struct evidence_launch launch = {.from = from,
                                           .key = given[3],
                                           .purpose = given[14],
                                           .first_token = FIRST,
                                           .excludes = given[4],
                                           .token_first = given[5],
                                           .token = given[6],
                                           .logit = given[8],
                                           .stats = given[9],
                                           .winner = given[10],
                                           .below = excludes,
                                           .scratch = given[12]};
    const struct top_launch top = {.from = from, .best_first = given[7], .best = given[11], .scratch = given[13]};

    evidence_start(&launch, device_stream(device_rig_open()));
    device_launched(device_rig_open(), "evidence");
    top_start(&top, device_stream(device_rig_open()));
    device_launched(device_rig_open(), "the largest logits");
    device_get(outcome->stats, launch.stats, (size_t)rows * sizeof *outcome->stats);
    device_get(outcome->winner, launch.winner, (size_t)rows * sizeof *outcome->winner);
    device_get(outcome->logit, launch.logit, tokens * sizeof(float));
    device_get(outcome->best, top.best, bests * sizeof *outcome->best);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        device_free(given[i]);
}

/* How far the sum may be from the CPU's. On the device a term is exp(l - m) exp(m - M) with the largest m of its part, on the CPU exp(l -
 * M); exp errs by 3 2^-24 of its value on either side, and a difference by 2^-24 of itself, which counts as much in exp. Below -87 exp is
 * 0. */
static double sum_error(const float *scaled, int count, float max)
{
    double error = 0;

    for (int i = 0; i < count; i++)
        if (scaled[i] > -INFINITY) {
            double below = (double)max - (double)scaled[i];

            error += exp(-below) * (7 + 2 * below) * 0x1p-24 + 1e-37;
        }
    return error + 1e-12;
}

/* logit, best: what the device says of this row alone. */
static void check_lists(const struct evidence *evidence, int row, struct row_query *expected, const float *logit, const struct scored_token *best)
{
    int wanted = evidence->best_first[row + 1] - evidence->best_first[row];

    assert_int_equal(expected->best_count, wanted < evidence->count ? wanted : evidence->count);
    for (int i = 0; i < expected->best_count; i++) {
        assert_int_equal(best[i].token, expected->best[i].token);
        assert_same_bits(&best[i].score, &expected->best[i].score, 1);
    }
    for (int i = expected->best_count; i < wanted; i++)
        assert_int_equal(best[i].token, -1); /* not written */
    assert_same_bits(logit, expected->logit, (size_t)expected->tokens);
}

/* As sum_error, of terms that have the distance as a factor. */
static double below_error(const float *scaled, int count, float max)
{
    double error = 0;

    for (int i = 0; i < count; i++)
        if (scaled[i] > -INFINITY) {
            double below = (double)max - (double)scaled[i];

            error += exp(-below) * (1 + below) * (9 + 2 * below) * 0x1p-24 + 1e-35;
        }
    return error + 1e-12;
}

/* It is 0 where it was not asked for. */
static void check_below(const float *scaled, const struct evidence *evidence, int asked, double below, const struct row_stats *expected)
{
    if (!asked && below != 0)
        fail_msg("%.17g is below, and nobody asked", below);
    if (asked && !(fabs(below - expected->below) <= below_error(scaled, evidence->count, expected->max)))
        fail_msg("of %d: below by %.17g is too far from %.17g", evidence->count, below, expected->below);
}

static void check_row(const struct evidence *evidence, int row, int excludes, struct backend_context *context, const struct outcome *outcome)
{
    float *scaled = zeroed((size_t)evidence->count, sizeof *scaled), logit[LISTED];
    uint32_t *excluded = zeroed((size_t)evidence->count / 32 + 1, sizeof *excluded);
    struct scored_token best[LISTED];
    struct row_query query = {.scans = 1,
                              .sums = ROW_SUMS_BELOW,
                              .gumbel = purpose_of(row) >= 0,
                              .excludes = excludes,
                              .key = evidence->key[row],
                              .purpose = (enum rng_purpose)purpose_of(row),
                              .token = evidence->token + evidence->token_first[row],
                              .tokens = evidence->token_first[row + 1] - evidence->token_first[row],
                              .top = evidence->best_first[row + 1] - evidence->best_first[row],
                              .logit = logit,
                              .best = best};

    for (int i = 0; i < evidence->count; i++)
        scaled[i] = evidence->logits[row * evidence->count + i] * evidence->scale[row];
    backend_answer(&backend_cpu, context, scaled, FIRST, evidence->count, excluded, &query);
    assert_int_equal(outcome->stats[row].argmax, query.stats.argmax);
    assert_same_bits(&outcome->stats[row].max, &query.stats.max, 1);
    if (!(fabs(outcome->stats[row].sum - query.stats.sum) <= sum_error(scaled, evidence->count, query.stats.max)))
        fail_msg("row %d of %d: a sum of %.17g is too far from %.17g", row, evidence->count, outcome->stats[row].sum, query.stats.sum);
    check_below(scaled, evidence, excludes, outcome->stats[row].below, &query.stats);
    if (purpose_of(row) < 0)
        query.winner.token = -1;
    assert_int_equal(outcome->winner[row].token, query.winner.token);
    if (query.winner.token >= 0)
        assert_same_bits(&outcome->winner[row].score, &query.winner.score, 1);
    check_lists(evidence, row, &query, outcome->logit + evidence->token_first[row], outcome->best + evidence->best_first[row]);
    if (row == 6 && excludes && evidence->count < LISTED - 2)
        assert_int_equal(query.winner.token, -1);
    free(excluded);
    free(scaled);
}

static void check_count(int count)
{
    struct backend_context *context = rig_open(0);
    static struct evidence evidence;
    static struct outcome outcome;

    evidence_init(&evidence, count);
    for (int excludes = 0; excludes < 2; excludes++) {
        take(&evidence, 0, ROWS, excludes, &outcome);
        for (int r = 0; r < ROWS; r++)
            check_row(&evidence, r, excludes, context, &outcome);
    }
    evidence_release(&evidence);
    backend_cpu.close(context);
}

static void test_cuda_evidence__is_the_cpus(void **state)
{
    static const int counts[] = {1, 2, 31, 1000, 1027, 4095, 4096, 4097, MOST};

    (void)state;
    for (int i = 0; i < 9; i++)
        check_count(counts[i]);
}

static void test_cuda_evidence__of_a_row_has_the_same_bits_in_any_company_and_order(void **state)
{
    static struct evidence evidence;
    static struct outcome first, alone;

    (void)state;
    evidence_init(&evidence, MOST);
    memset(&first, 0, sizeof first);
    take(&evidence, 0, ROWS, 1, &first);
    for (unsigned seed = 0; seed < 4; seed++) {
        device_rig_order(seed);
        for (int r = 0; r < ROWS; r++) {
            take(&evidence, r, 1, 1, &alone);
            assert_memory_equal(&alone.stats[0].sum, &first.stats[r].sum, sizeof alone.stats[0].sum);
            assert_memory_equal(&alone.stats[0].below, &first.stats[r].below, sizeof alone.stats[0].below);
            assert_same_bits(&alone.stats[0].max, &first.stats[r].max, 1);
            assert_int_equal(alone.stats[0].argmax, first.stats[r].argmax);
            assert_same_bits(&alone.winner[0].score, &first.winner[r].score, 1);
            assert_int_equal(alone.winner[0].token, first.winner[r].token);
            assert_memory_equal(alone.best, first.best + evidence.best_first[r],
                                (size_t)(evidence.best_first[r + 1] - evidence.best_first[r]) * sizeof *alone.best);
        }
    }
    device_rig_order(0);
    evidence_release(&evidence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_evidence__is_the_cpus),
        cmocka_unit_test(test_cuda_evidence__of_a_row_has_the_same_bits_in_any_company_and_order),
    };

    device_rig_open();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
