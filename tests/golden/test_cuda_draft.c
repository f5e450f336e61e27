/* Drafts that the device makes without the host against those of the host's rows: the same tokens from the same q, round after round, as steps
 * are recorded and played. Emulated, or on a device. */
#include "common/backend/cuda/context.h"
#include "common/base/digest.h"
#include "tests/support/capture.h"
#include "tests/support/draft_rig.h"
#include "tests/support/gguf_convert.h"
#include "tests/support/golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { SLOTS = 7, ROUNDS = 9 };

void emulation_order(unsigned seed) __attribute__((weak)); /* not there on a device, whose exp errs in its own way */
void emulation_refuse_recordings(int refuse) __attribute__((weak)); /* nor this */
int emulation_unprepared(void) __attribute__((weak));

static char model_path[GOLDEN_PATH];
static struct backend stepwise; /* the same, but that it does not draft by itself */

static int support; /* 0: that of the rig */

/* A q of as many tokens as one may have, of which the last are as good as the first, or nearly. */
static struct sampling flat_of(int slot)
{
    struct sampling sampling = sampling_default;

    sampling.seed = 78;
    sampling.temperature = 40 + slot;
    return sampling;
}

static struct sampling sampling_of(int slot)
{
    struct sampling sampling = sampling_default;

    sampling.seed = 77;
    sampling.temperature = slot == 0 ? 0.0 : slot == 1 ? 1.0 : 0.8;
    sampling.accept = slot == 1 || slot == 4 ? ACCEPT_COUPLED : slot == 2 || slot == 5 ? ACCEPT_BLOCK : slot == 6 ? ACCEPT_WALK : ACCEPT_REJECTION;
    if (slot == 3 || slot == 5)
        sampling.top_p = 0.9;
    if (slot == 4)
        sampling.top_k = 5;
    return sampling;
}

static void side_open(struct draft_rig *side, const struct backend *backend)
{
    side->support = support;
    draft_rig_open(side, model_path, backend, 1, SLOTS, support > 0 ? flat_of : sampling_of);
}

static void compare(const struct draft_output *device, const struct draft_output *host, int wanted)
{
    assert_int_equal(device->count, wanted);
    assert_int_equal(host->count, wanted);
    assert_memory_equal(device->token, host->token, (size_t)wanted * sizeof *host->token);
    for (int k = 0; k < wanted; k++) {
        int count = host->q[k].count;

        assert_int_equal(device->q[k].count, count);
        for (int i = 0; i < count; i++) {
            int64_t apart = (int64_t)device->q[k].weight[i] - (int64_t)host->q[k].weight[i];

            assert_int_equal(device->q[k].id[i], host->q[k].id[i]);
            assert_true(llabs(apart) <= (emulation_order != NULL ? 0 : 2));
        }
    }
}

/* What a sequence wants in the round after this: for some rounds other numbers, then the same ones until they are played, and then as many
 * in all, but differently spread. */
static int wanted_after(int round, int slot)
{
    return round < 2 ? 1 + (slot + round) % 4 : round < 6 ? (SLOTS + 1) / 2 : 1 + slot;
}

/* Some drafts are accepted, later none, and another token follows. */
static void commit(struct draft_rig *side, int round)
{
    for (int s = 0; s < SLOTS; s++)
        draft_rig_commit(side, s, round < 2 ? round % (side->output[s].count + 1) : 0, (11 * s + round) % 128, wanted_after(round, s));
}

/* Both sides draft the same rounds. Whether steps were played in the end */
static int draft_beside_the_host(int rounds)
{
    static struct draft_rig device, host;
    struct backend_context *context;
    int played;

    stepwise = backend_cuda;
    stepwise.draft.begin = NULL;
    stepwise.step.prompt_rows = BACKEND_MAX_ROWS; /* so the long prompt goes in parts */
    side_open(&device, &backend_cuda);
    side_open(&host, &stepwise);
    for (int round = 0; round < rounds; round++) {
        int wanted[SLOTS];

        for (int s = 0; s < SLOTS; s++)
            wanted[s] = device.mirror[s].wanted;
        draft_rig_propose(&device);
        draft_rig_propose(&host);
        for (int s = 0; s < SLOTS; s++)
            compare(&device.output[s], &host.output[s], wanted[s]);
        for (int s = 0; s < SLOTS; s++)
            assert_int_equal(device.mirror[s].cached, host.mirror[s].cached);
        commit(&device, round);
        commit(&host, round);
    }
    context = device.model->context;
    assert_true(context->steps < host.model->context->steps / 2); /* one for several tokens */
    played = context->replayed > 0;
    draft_rig_close(&device);
    draft_rig_close(&host);
    return played;
}

static void test_cuda_draft__device_draws_what_the_host_would(void **state)
{
    (void)state;
    assert_true(draft_beside_the_host(ROUNDS));
}

/* The device looks the embedding of a drafted token up in a table of its own, which is widened where the file's is quantised. */
static void test_cuda_draft__quantised_embeddings_are_the_hosts(void **state)
{
    char folder[GOLDEN_PATH], file[] = "/tmp/test_cuda_draft.XXXXXX.gguf";
    int descriptor = mkstemps(file, 5);

    (void)state;
    assert_true(descriptor >= 0 && close(descriptor) == 0);
    golden_path("launch/demo/draft", folder);
    gguf_convert(folder, file, &(struct gguf_convert){.dtype = DTYPE_Q8_0});
    snprintf(model_path, sizeof model_path, "%s", file);
    draft_beside_the_host(4);
    golden_path("tests/golden/models/qwen3", model_path);
    assert_int_equal(unlink(file), 0);
}

/* Their sums go over all warps of a block. */
static void test_cuda_draft__a_q_of_many_tokens_is_the_hosts(void **state)
{
    (void)state;
    golden_path("launch/demo/draft", model_path);
    support = SPARSE_Q_MAX;
    draft_beside_the_host(2);
    support = 0;
    golden_path("tests/golden/models/qwen3", model_path);
}

/* For want of memory, say: then every round is asked for operation by operation. */
static void test_cuda_draft__rounds_that_cannot_be_recorded_are_drafted(void **state)
{
    struct capture capture;
    char text[2000];
    int told = 0;

    (void)state;
    if (emulation_refuse_recordings == NULL) {
        print_message("skipped: only the emulation refuses\n");
        skip();
    }
    emulation_refuse_recordings(1);
    capture_begin(&capture);
    assert_false(draft_beside_the_host(5)); /* of which two are of a shape that was met before */
    capture_end(&capture, text, sizeof text);
    emulation_refuse_recordings(0);
    for (const char *at = text; (at = strstr(at, "cannot record a step, for want of memory as a rule")) != NULL; at++)
        told++;
    assert_int_equal(told, 2); /* once by either side */
}

/* One sequence, always as many tokens: recorded when met again, then played. */
static void test_cuda_draft__a_round_is_played(void **state)
{
    enum { LONG = 8 };
    static struct draft_rig side;
    struct draft_output *output = &side.output[0];
    struct mirror_move move;
    int64_t steps, replayed;

    (void)state;
    side_open(&side, &backend_cuda);
    for (int round = 0; round < LONG; round++) {
        const int32_t token = 5;

        side.mirror[2].wanted = 3;
        side.batch[0] = &side.mirror[2];
        steps = side.model->context->steps;
        replayed = side.model->context->replayed;
        assert_int_equal(side.draft.kind->propose(side.draft.state, side.batch, 1, &output), STATUS_OK);
        const struct commit commit = {.old_length = (uint32_t)side.mirror[2].length,
                                      .tokens = &token,
                                      .count = 1,
                                      .keep = (uint32_t)side.mirror[2].length,
                                      .digest = digest_tokens(side.mirror[2].digest, &token, 1),
                                      .draft_length = 3};
        assert_true(mirror_commit(&side.mirror[2], &commit, &move));
        assert_int_equal(side.output[0].count, 3);
        assert_true(round == 0 || side.model->context->steps == steps + 1);
        assert_true(round < 3 || side.model->context->replayed == replayed + 1);
    }
    draft_rig_close(&side);
}

/* After all of the above: a kernel that is loaded by its first launch may find no memory. */
static void test_cuda_draft__kernels_are_loaded_at_open(void **state)
{
    (void)state;
    if (emulation_unprepared == NULL) {
        print_message("skipped: only the emulation counts them\n");
        skip();
    }
    assert_int_equal(emulation_unprepared(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_draft__device_draws_what_the_host_would),
        cmocka_unit_test(test_cuda_draft__quantised_embeddings_are_the_hosts),
        cmocka_unit_test(test_cuda_draft__a_q_of_many_tokens_is_the_hosts),
        cmocka_unit_test(test_cuda_draft__rounds_that_cannot_be_recorded_are_drafted),
        cmocka_unit_test(test_cuda_draft__a_round_is_played),
        cmocka_unit_test(test_cuda_draft__kernels_are_loaded_at_open),
    };
    struct device_lack lack;

    golden_path("tests/golden/models/qwen3", model_path);
    if (device_count(&lack) == 0) {
        printf("skipped: no CUDA device: %s\n", lack.why);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
