/* Models in few bits on the CUDA backend, emulated or on a device: GGUF files of each kind of block, a published mixture, and folders in AWQ and
 * GPTQ. The reference is the CPU backend with their values in float32: both know each weight exactly, and differ by what test_cuda_forward.c says of
 * activations, keys and values. */
#include "common/backend/cuda/context.h"
#include "common/base/log.h"
#include "tests/support/capture.h"
#include "tests/support/few_bits.h"
#include "tests/support/gguf_convert.h"
#include "tests/support/golden.h"
#include "tests/support/model_rig.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { TOKENS = 12 };
#define TYPICAL_ERROR 0.005 /* root mean square of the errors, of that of the logits; up to 0.0032 is measured */

static char work[] = "/tmp/test_cuda_gguf.XXXXXX", file[64];
static struct backend float32_alone; /* the CPU's, which gets all else widened */

static int make_folder(void **state)
{
    (void)state;
    float32_alone = backend_cpu;
    float32_alone.linear.packs = 1u << DTYPE_F32;
    if (mkdtemp(work) == NULL)
        return 1;
    snprintf(file, sizeof file, "%s/model.gguf", work);
    return 0;
}

static int remove_folder(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", work);
    return system(command); /* NOLINT: a path of mkdtemp */
}

/* The small model has rows of 96 and 256 columns; the larger one has 256 and 704, and those of 704 are in blocks of 32. */
static void write_file(const struct gguf_convert *how)
{
    char folder[GOLDEN_PATH];

    golden_path(how->dtype >= DTYPE_Q2_K ? "launch/demo/target" : "launch/demo/draft", folder);
    gguf_convert(folder, file, how);
}

/* Of a walk through the vocabulary, `stride` tokens a step; the caller frees. */
static float *logits_of(const char *path, const struct backend *backend, int stride, int *vocab)
{
    struct model_rig rig;
    int32_t walk[TOKENS];
    float *logits;

    model_rig_open_on(&rig, path, backend);
    *vocab = rig.model->vocab_count;
    for (int i = 0; i < TOKENS; i++)
        walk[i] = (i * 37 + 5) % *vocab;
    logits = calloc((size_t)(TOKENS * *vocab), sizeof *logits);
    assert_non_null(logits);
    model_rig_feed(&rig, 0, walk, TOKENS, stride, logits);
    model_rig_close(&rig);
    return logits;
}

static void assert_near(const char *name, const char *path)
{
    int vocab;
    float *got = logits_of(path, &backend_cuda, TOKENS, &vocab), *expected = logits_of(path, &float32_alone, TOKENS, &vocab);
    double errors = 0.0, squares = 0.0;

    for (int i = 0; i < TOKENS * vocab; i++) {
        double error = (double)got[i] - (double)expected[i];

        errors += error * error;
        squares += (double)expected[i] * (double)expected[i];
    }
    print_message("%s: apart by %.4f of the logits' size\n", name, sqrt(errors / squares));
    assert_true(errors <= TYPICAL_ERROR * TYPICAL_ERROR * squares);
    free(got);
    free(expected);
}

static void test_cuda_gguf__logits_are_those_of_the_blocks_values(void **state)
{
    (void)state;
    for (int i = DTYPE_Q8_0; i <= DTYPES; i++) { /* the last one is Q4_K with v in Q6_K */
        if (i == DTYPE_Q4_Z)
            continue; /* which no such file has */
        enum dtype dtype = i == DTYPES ? DTYPE_Q4_K : (enum dtype)i;

        write_file(&(struct gguf_convert){.dtype = dtype, .mixed = i == DTYPES});
        assert_near(i == DTYPES ? "Q4_K and Q6_K" : dtype_name(dtype), file);
    }
}

static void test_cuda_gguf__folders_in_few_bits_have_their_values(void **state)
{
    char from[GOLDEN_PATH], folder[80];

    (void)state;
    golden_path("launch/demo/draft", from);
    for (int kind = FEW_BITS_AWQ; kind < FEW_BITS_KINDS; kind++) {
        snprintf(folder, sizeof folder, "%s/%s", work, few_bits_name[kind]);
        few_bits_write(from, folder, NULL, (enum few_bits_kind)kind);
        assert_near(few_bits_name[kind], folder);
    }
}

static void test_cuda_gguf__a_row_has_the_same_bits_in_any_company(void **state)
{
    static const struct gguf_convert ways[] = {{.dtype = DTYPE_Q8_0}, {.dtype = DTYPE_Q5_1}, {.dtype = DTYPE_Q4_K, .mixed = 1}};

    (void)state;
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        int vocab;
        float *together, *apart;

        write_file(&ways[w]);
        together = logits_of(file, &backend_cuda, TOKENS, &vocab);
        apart = logits_of(file, &backend_cuda, w == 2 ? 9 : 1, &vocab); /* a step of the larger model takes a second in the emulation */
        assert_memory_equal(apart, together, (size_t)(TOKENS * vocab) * sizeof *apart);
        free(together);
        free(apart);
    }
}

static size_t weight_bytes(const struct gguf_convert *how)
{
    struct model_rig rig;
    size_t bytes;

    write_file(how);
    model_rig_open_on(&rig, file, &backend_cuda);
    bytes = rig.model->weights.used;
    model_rig_close(&rig);
    return bytes;
}

/* Panels of this model are full, and its norms are next to nothing. */
static void test_cuda_gguf__weights_take_the_bytes_of_the_file(void **state)
{
    static const enum dtype dtypes[] = {DTYPE_Q8_0, DTYPE_Q4_0, DTYPE_Q5_1};
    double of_bf16 = (double)weight_bytes(&(struct gguf_convert){.as_stored = 1});

    (void)state;
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
        double bits = 8.0 * (double)dtype_row_bytes(dtypes[d], DTYPE_BLOCK) / DTYPE_BLOCK;
        double got = 16.0 * (double)weight_bytes(&(struct gguf_convert){.dtype = dtypes[d]}) / of_bf16;

        print_message("%s: %.2f bits of the device's memory for a weight, %.2f in the file\n", dtype_name(dtypes[d]), got, bits);
        assert_true(got < 1.02 * bits);
    }
}

/* Heads of 24 columns: a rank's two of four end within a block of 32, and that matrix of each layer is widened. */
static void test_cuda_gguf__what_a_shard_cuts_is_widened_and_said(void **state)
{
    const struct model_options options = {.threads = 1, .max_rows = 1, .backend = &backend_cuda};
    struct group group = {.rank = 0, .size = 2};
    struct model *model = NULL;
    struct capture capture;
    char text[2048];

    (void)state;
    write_file(&(struct gguf_convert){.dtype = DTYPE_Q8_0});
    log_init("test", LOG_DEBUG);
    capture_begin(&capture);
    assert_int_equal(model_open(file, &group, &options, &model), STATUS_OK);
    capture_end(&capture, text, sizeof text);
    log_init("test", LOG_INFO);
    assert_non_null(strstr(text, "2 matrices have rows of several dtypes, or of one that the backend does not take, or their columns cut blocks"));
    model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_gguf__logits_are_those_of_the_blocks_values),
        cmocka_unit_test(test_cuda_gguf__folders_in_few_bits_have_their_values),
        cmocka_unit_test(test_cuda_gguf__a_row_has_the_same_bits_in_any_company),
        cmocka_unit_test(test_cuda_gguf__weights_take_the_bytes_of_the_file),
        cmocka_unit_test(test_cuda_gguf__what_a_shard_cuts_is_widened_and_said),
    };
    struct device_lack lack;

    if (device_count(&lack) == 0) {
        printf("skipped: no CUDA device: %s\n", lack.why);
        return 77;
    }
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
