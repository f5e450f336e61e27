/* A shard whose device keeps the logits and answers questions, against one whose logits all come to the host: the same evidence, draws, rows
 * and hash. Emulated, or on a device. */
#include "common/backend/cuda/context.h"
#include "tests/support/capture.h"
#include "tests/support/golden.h"
#include "verifier/team/shard.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SLOTS = 8, ROWS = 3, OUTPUTS = SLOTS * ROWS, SUPPORT = 5 };

static struct group self;
static struct model *model;
static struct backend to_the_host; /* the same, but that it keeps nothing */
static struct shard kept, here;
static struct step step;
static char *evidence[2]; /* of kept and of here */
static int asks, fetches;

static void count_asks(struct backend_context *context, int32_t first, struct kept_query *queries, int count)
{
    asks += count;
    backend_cuda.output.ask(context, first, queries, count);
}

static uint64_t count_begun(struct backend_context *context, int32_t first, struct kept_query *queries, int count, int padded)
{
    asks += count;
    return backend_cuda.output.ask_begin(context, first, queries, count, padded);
}

static void count_fetches(struct backend_context *context, int row, float *to)
{
    fetches++;
    backend_cuda.output.fetch(context, row, to);
}

static struct backend counted; /* the same, counting */

static struct slot_terms terms_of(int slot)
{
    struct slot_terms terms = {.sampling = sampling_default, .request = 40 + (uint32_t)slot, .prompt_count = 1, .slot = slot};
    struct sampling *sampling = &terms.sampling;

    bias_init(&terms.bias);
    sampling->seed = 9;
    sampling->temperature = slot == 0 || slot == 5 ? 0.0 : slot == 1 ? 1.0 : 0.7;
    sampling->accept = slot == 1 || slot == 4 ? ACCEPT_COUPLED : slot == 7 ? ACCEPT_TYPICAL : ACCEPT_REJECTION;
    if (slot == 3)
        sampling->top_p = 0.9;
    if (slot == 4 || slot == 6)
        sampling->repetition_penalty = 1.3;
    if (slot == 5) {
        terms.bias.tokens = 1;
        terms.bias.token[0] = 17;
        terms.bias.value[0] = 50.0;
    }
    return terms;
}

static int has_support(int slot)
{
    return slot == 2 || slot >= 6;
}

/* Three tokens of each slot, all asked; where it may be, each but the last with a support. */
static void build(void)
{
    int asked = 0, ids = 0;

    step.words = calloc(1, step_bytes(OUTPUTS, OUTPUTS, OUTPUTS * SUPPORT));
    assert_non_null(step.words);
    step_layout(&step, OUTPUTS, OUTPUTS, 3 * (ROWS - 1) * SUPPORT);
    for (int s = 0; s < SLOTS; s++) {
        const int32_t tokens[ROWS] = {3 + s, 40 - s, 7};
        int first = step_add_chain(&step, s, 0, tokens, ROWS);

        for (int r = 0; r < ROWS; r++) {
            for (int i = 0; i < SUPPORT && has_support(s) && r < ROWS - 1; i++)
                step.id[ids++] = s + 2 * r + i * 19;
            step.output_row[asked] = first + r;
            step.support_first[++asked] = ids;
        }
    }
}

static void open_all(void)
{
    char path[GOLDEN_PATH];

    counted = to_the_host = backend_cuda;
    counted.output.ask = count_asks;
    counted.output.ask_begin = count_begun;
    counted.output.fetch = count_fetches;
    to_the_host.output.ask = NULL;
    to_the_host.output.fetch = NULL;
    golden_path("tests/golden/models/qwen3", path);
    group_open_self(&self);
    assert_int_equal(model_open(path, &self, &(struct model_options){.threads = 1, .max_rows = OUTPUTS, .backend = &counted}, &model), STATUS_OK);
    assert_int_equal(shard_open(&kept, model, SLOTS, OUTPUTS), STATUS_OK);
    assert_int_equal(shard_open(&here, model, SLOTS, OUTPUTS), STATUS_OK);
    for (int s = 0; s < SLOTS; s++) {
        const struct slot_terms terms = terms_of(s);

        shard_open_slot(&kept, &terms);
        shard_open_slot(&here, &terms);
    }
    build();
    for (int i = 0; i < 2; i++)
        assert_non_null(evidence[i] = calloc(1, shard_evidence_bytes(&kept, &step)));
}

static void close_all(void)
{
    for (int i = 0; i < 2; i++)
        free(evidence[i]);
    shard_close(&kept);
    shard_close(&here);
    model_close(model);
    group_close(&self);
    free(step.words);
}

/* Everything is the same to the bit but sums, which the host and the device add in orders of their own. */
static void compare_evidence(const char *a, const char *b)
{
    for (int i = 0; i < OUTPUTS; i++) {
        const struct sampling *sampling = &kept.terms[i / ROWS].sampling;
        size_t bytes = evidence_bytes(sampling, step.support_first[i + 1] - step.support_first[i]);
        enum evidence_kind kind = evidence_kind(sampling);
        size_t head = 0, end = bytes;

        if (kind == EVIDENCE_ENTROPY_SUPPORT) { /* the last double of its block is one, too */
            double mine, other;

            end -= sizeof mine;
            memcpy(&mine, a + end, sizeof mine);
            memcpy(&other, b + end, sizeof other);
            assert_true(other > 0 && fabs(mine - other) <= 1e-5 * other);
        }
        if (kind == EVIDENCE_LIST || kind == EVIDENCE_SUPPORT || kind == EVIDENCE_ENTROPY_SUPPORT) {
            const struct evidence_mass *mine = (const struct evidence_mass *)(const void *)a, *other = (const struct evidence_mass *)(const void *)b;

            head = offsetof(struct evidence_mass, max);
            assert_true(mine->sum > 0 && fabs(mine->sum - other->sum) <= 1e-5 * other->sum);
        }
        assert_memory_equal(a + head, b + head, end - head);
        a += bytes;
        b += bytes;
    }
}

static void compare_draws(void)
{
    struct draw_order orders[OUTPUTS];
    struct evidence_winner winners[2][OUTPUTS];

    for (int i = 0; i < OUTPUTS; i++)
        orders[i] = (struct draw_order){.output = OUTPUTS - 1 - i, .residual = i % 2};
    model->backend = &counted;
    asks = 0;
    assert_int_equal(shard_draws(&kept, &step, orders, OUTPUTS, winners[0]), STATUS_OK);
    /* Of the 5 ROWS rows that are kept, three were drawn with the step: the first of slot 2 and the second of slot 7, outside their support, and the
     * last of slot 7. */
    assert_int_equal(asks, 5 * ROWS - 3);
    model->backend = &to_the_host;
    assert_int_equal(shard_draws(&here, &step, orders, OUTPUTS, winners[1]), STATUS_OK);
    assert_memory_equal(winners[0], winners[1], sizeof winners[0]);
}

static void compare_rows(void)
{
    for (int i = 0; i < OUTPUTS; i++) {
        const float *a, *b;

        model->backend = &counted;
        assert_int_equal(shard_row(&kept, &step, i, &a), STATUS_OK);
        model->backend = &to_the_host;
        assert_int_equal(shard_row(&here, &step, i, &b), STATUS_OK);
        assert_memory_equal(a, b, (size_t)model->vocab_count * sizeof *a);
    }
}

static void compare_hashes(void)
{
    struct commit_note notes[OUTPUTS];

    for (int i = 0; i < OUTPUTS; i++)
        notes[i] = (struct commit_note){.output = i, .token = 3 * i + 1};
    model->backend = &counted;
    assert_int_equal(shard_note(&kept, &step, notes, OUTPUTS), STATUS_OK);
    model->backend = &to_the_host;
    assert_int_equal(shard_note(&here, &step, notes, OUTPUTS), STATUS_OK);
    assert_true(kept.hash != 0 && kept.hash == here.hash);
}

static void test_cuda_shard__answers_are_those_of_the_hosts_rows(void **state)
{
    (void)state;
    open_all();
    model->backend = &counted;
    assert_int_equal(shard_step(&kept, &step, evidence[0]), STATUS_OK);
    assert_int_equal(asks, 5 * ROWS); /* penalties and biases are the host's */
    assert_int_equal(fetches, 3 * ROWS);
    model->backend = &to_the_host;
    assert_int_equal(shard_step(&here, &step, evidence[1]), STATUS_OK);
    compare_evidence(evidence[0], evidence[1]);
    model->backend = &counted; /* whose head's logits the device is to have */
    assert_int_equal(shard_step(&kept, &step, evidence[0]), STATUS_OK);
    compare_draws();
    compare_hashes();
    compare_rows();
    close_all();
}

static void open_slot(const struct slot_terms *terms)
{
    shard_open_slot(&kept, terms);
    shard_open_slot(&here, terms);
}

/* Steps of one shape, whose questions have other ids, keys and scales each time, and then of as many rows with fewer questions. */
static void test_cuda_shard__a_recorded_step_answers_what_is_asked_now(void **state)
{
    enum { STEPS = 5 };

    (void)state;
    open_all();
    for (int n = 0; n < STEPS; n++) {
        for (int s = 0; s < SLOTS; s++) {
            struct slot_terms terms = terms_of(s);

            terms.sampling.seed += (uint64_t)n;
            if (s == 1 || s == 2)
                terms.sampling.temperature += 0.1 * n;
            if (s == 1 && n == STEPS - 1)
                terms.sampling.repetition_penalty = 1.1;
            open_slot(&terms);
        }
        for (int i = 0; i < 3 * (ROWS - 1) * SUPPORT; i++)
            step.id[i]++;
        model->backend = &counted;
        assert_int_equal(shard_step(&kept, &step, evidence[0]), STATUS_OK);
        assert_int_equal(model->context->replayed, n < 2 ? 0 : n < STEPS - 1 ? n - 1 : STEPS - 3);
        model->backend = &to_the_host;
        assert_int_equal(shard_step(&here, &step, evidence[1]), STATUS_OK);
        compare_evidence(evidence[0], evidence[1]);
    }
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_shard__answers_are_those_of_the_hosts_rows),
        cmocka_unit_test(test_cuda_shard__a_recorded_step_answers_what_is_asked_now),
    };
    struct device_lack lack;

    if (device_count(&lack) == 0) {
        printf("skipped: no CUDA device: %s\n", lack.why);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
