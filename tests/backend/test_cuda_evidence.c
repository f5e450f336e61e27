/* Evidence taken on the device against the CPU's row_scan and row_race. */
#include "tests/backend/device_rig.h"

#include "common/backend/cuda/kernels.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 7, MOST = 12301, ASKED = 9 };

struct evidence {
    int rows, count;
    float *logits; /* [rows][count] */
    float scale[ROWS];
    struct rng_key key[ROWS];
    uint32_t *excluded; /* [rows][(count + 31) / 32] */
    int32_t asked_first[ROWS + 1], asked[ROWS * ASKED];
    int32_t first_token;
};

struct outcome {
    struct row_stats stats[ROWS];
    struct scored_token winner[ROWS];
    float asked[ROWS * ASKED];
};

static size_t words_of(int count)
{
    return ((size_t)count + 31) / 32;
}

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

static void evidence_init(struct evidence *evidence, int count)
{
    struct random random = {.state = (uint32_t)count};

    *evidence = (struct evidence){.rows = ROWS, .count = count, .first_token = 32000};
    evidence->logits = zeroed((size_t)(ROWS * count), sizeof(float));
    evidence->excluded = zeroed(ROWS * words_of(count), sizeof(uint32_t));
    for (int r = 0; r < ROWS; r++) {
        for (int i = 0; i < count; i++)
            evidence->logits[r * count + i] = logit_of(r, i, &random);
        for (size_t w = 0; w < words_of(count); w++)
            evidence->excluded[(size_t)r * words_of(count) + w] = r == 6 ? 0xffffffffu : random_word(&random) & random_word(&random);
        evidence->scale[r] = r % 2 == 0 ? 1.0f : 1.0f / 0.7f;
        evidence->key[r] =
            (struct rng_key){.seed = UINT64_C(0x123456789abcdef) + (uint64_t)r, .request = 5 + (uint32_t)r, .position = 1000};
        for (int i = 0; i < ASKED; i++)
            evidence->asked[r * ASKED + i] = i == 0 ? -3 : i == 1 ? count : (int32_t)(random_word(&random) % (uint32_t)count);
        evidence->asked_first[r + 1] = r % 3 == 1 ? evidence->asked_first[r] : evidence->asked_first[r] + ASKED - r;
    }
}

static void evidence_release(struct evidence *evidence)
{
    free(evidence->logits);
    free(evidence->excluded);
}

/* Rows first .. first + rows - 1 on the device. */
static void take(const struct evidence *evidence, int first, int rows, int with_excluded, struct outcome *outcome)
{
    size_t count = (size_t)evidence->count, words = words_of(evidence->count);
    int32_t asked_first[ROWS + 1];
    int asked = evidence->asked_first[first + rows] - evidence->asked_first[first];

    for (int r = 0; r <= rows; r++)
        asked_first[r] = evidence->asked_first[first + r] - evidence->asked_first[first];
    void *given[] = {device_put(evidence->logits + (size_t)first * count, (size_t)rows * count * sizeof(float)),
                     device_put(evidence->scale + first, (size_t)rows * sizeof(float)),
                     device_put(evidence->key + first, (size_t)rows * sizeof(struct rng_key)),
                     device_put(evidence->excluded + (size_t)first * words, (size_t)rows * words * sizeof(uint32_t)),
                     device_put(asked_first, (size_t)(rows + 1) * sizeof(int32_t)),
                     device_put(evidence->asked + evidence->asked_first[first], (size_t)asked * sizeof(int32_t)),
                     device_blank((size_t)asked * sizeof(float)),
                     device_blank(sizeof outcome->stats),
                     device_blank(sizeof outcome->winner),
                     device_blank(evidence_scratch_bytes(rows, evidence->count))};
    struct evidence_launch launch = {.rows = rows,
                                     .count = evidence->count,
                                     .logits = given[0],
                                     .scale = given[1],
                                     .key = given[2],
                                     .purpose = RNG_NOISE,
                                     .first_token = evidence->first_token,
                                     .excluded = with_excluded ? given[3] : NULL,
                                     .asked_first = given[4],
                                     .asked = given[5],
                                     .asked_logits = given[6],
                                     .stats = given[7],
                                     .winner = given[8],
                                     .scratch = given[9]};

    evidence_start(&launch, device_stream(device_rig_open()));
    device_launched(device_rig_open(), "evidence");
    device_get(outcome->stats, launch.stats, (size_t)rows * sizeof *outcome->stats);
    device_get(outcome->winner, launch.winner, (size_t)rows * sizeof *outcome->winner);
    device_get(outcome->asked, launch.asked_logits, (size_t)asked * sizeof(float));
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

static void check_row(const struct evidence *evidence, int row, int with_excluded, struct backend_context *context,
                      const struct outcome *outcome, int at)
{
    float *scaled = zeroed((size_t)evidence->count, sizeof *scaled);
    const uint32_t *excluded = with_excluded ? evidence->excluded + (size_t)row * words_of(evidence->count) : NULL;
    struct row_stats stats;
    struct scored_token winner;

    for (int i = 0; i < evidence->count; i++)
        scaled[i] = evidence->logits[row * evidence->count + i] * evidence->scale[row];
    backend_cpu.row_scan(context, scaled, evidence->count, &stats);
    backend_cpu.row_race(context, scaled, evidence->count, evidence->first_token, &evidence->key[row], RNG_NOISE, excluded, &winner);
    assert_int_equal(outcome->stats[at].argmax, stats.argmax);
    assert_same_bits(&outcome->stats[at].max, &stats.max, 1);
    if (!(fabs(outcome->stats[at].sum - stats.sum) <= sum_error(scaled, evidence->count, stats.max)))
        fail_msg("row %d of %d: a sum of %.17g is too far from %.17g", row, evidence->count, outcome->stats[at].sum, stats.sum);
    assert_int_equal(outcome->winner[at].token, winner.token);
    if (winner.token >= 0)
        assert_same_bits(&outcome->winner[at].score, &winner.score, 1);
    for (int i = evidence->asked_first[row]; i < evidence->asked_first[row + 1]; i++) {
        int token = evidence->asked[i];
        float expected = token >= 0 && token < evidence->count ? scaled[token] : -INFINITY;

        assert_same_bits(&outcome->asked[i - evidence->asked_first[row - at]], &expected, 1);
    }
    free(scaled);
}

static void check_count(int count)
{
    struct backend_context *context = rig_open(0);
    struct evidence evidence;
    struct outcome outcome;

    evidence_init(&evidence, count);
    for (int with_excluded = 0; with_excluded < 2; with_excluded++) {
        take(&evidence, 0, ROWS, with_excluded, &outcome);
        for (int r = 0; r < ROWS; r++)
            check_row(&evidence, r, with_excluded, context, &outcome, r);
    }
    evidence_release(&evidence);
    backend_cpu.close(context);
}

static void test_cuda_evidence__is_the_cpus(void **state)
{
    static const int counts[] = {1, 2, 31, 1027, 4095, 4096, 4097, MOST};

    (void)state;
    for (int i = 0; i < 8; i++)
        check_count(counts[i]);
}

static void test_cuda_evidence__of_a_row_has_the_same_bits_in_any_company_and_order(void **state)
{
    struct evidence evidence;
    struct outcome first, alone;

    (void)state;
    evidence_init(&evidence, MOST);
    memset(&first, 0, sizeof first);
    take(&evidence, 0, ROWS, 1, &first);
    for (unsigned seed = 0; seed < 4; seed++) {
        device_rig_order(seed);
        for (int r = 0; r < ROWS; r++) {
            take(&evidence, r, 1, 1, &alone);
            assert_memory_equal(&alone.stats[0].sum, &first.stats[r].sum, sizeof alone.stats[0].sum);
            assert_same_bits(&alone.stats[0].max, &first.stats[r].max, 1);
            assert_int_equal(alone.stats[0].argmax, first.stats[r].argmax);
            assert_same_bits(&alone.winner[0].score, &first.winner[r].score, 1);
            assert_int_equal(alone.winner[0].token, first.winner[r].token);
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
