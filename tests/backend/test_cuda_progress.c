/* What takes long on a device reports as it goes. */
#include "common/backend/cuda/context.h"
#include "common/base/progress.h"
#include "tests/backend/cuda_rig.h"

#include <stdlib.h>

enum {
    FLOATS = 2,
    OTHERS = 7,
    FAMILIES = 2 * FLOATS + OTHERS,
    PANEL = 16,
    PANELS = 5
}; /* of weights that are floats there are kernels for few rows and for many */

static uint64_t counted(void)
{
    return progress_look().count;
}

/* Where the driver compiles them, each takes seconds. And one report is of the device itself. */
static void test_cuda_progress__each_family_of_kernels_that_is_loaded(void **state)
{
    uint64_t before = counted();
    struct cuda_rig rig;

    (void)state;
    cuda_rig_open(&rig, RIG_HIDDEN, RIG_QKV, RIG_CONTEXT, RIG_VOCAB);
    assert_true(counted() - before >= 1 + FAMILIES);
    cuda_rig_close(&rig);
}

static void test_cuda_progress__each_panel_that_is_packed(void **state)
{
    struct random random = {7};
    struct weights weights;
    const void *rows[PANEL * PANELS];
    const struct matrix_source source = {.rows = rows, .outputs = PANEL * PANELS, .columns = RIG_HIDDEN, .dtype = DTYPE_BF16, .slices = 1};
    struct matrix *matrix;
    struct arena arena;
    struct cuda_rig rig;
    uint64_t before;

    (void)state;
    cuda_rig_open(&rig, RIG_HIDDEN, RIG_QKV, RIG_CONTEXT, RIG_VOCAB);
    weights_init(&weights, &random, DTYPE_BF16, PANEL * PANELS, RIG_HIDDEN);
    for (int o = 0; o < PANEL * PANELS; o++)
        rows[o] = (const char *)weights.data + (size_t)o * RIG_HIDDEN * dtype_bytes(DTYPE_BF16);
    assert_int_equal(backend_cuda.memory.open(rig.cuda, backend_cuda.linear.matrix_bytes(&source), "a test's matrix", &arena), STATUS_OK);
    before = counted();
    assert_int_equal(backend_cuda.linear.matrix_pack(rig.cuda, &source, &arena, &matrix), STATUS_OK);
    assert_true(counted() - before >= PANELS);
    backend_cuda.memory.close(rig.cuda, &arena);
    weights_release(&weights);
    cuda_rig_close(&rig);
}

/* At the second time that a step of its shape comes. */
static void test_cuda_progress__each_step_that_is_recorded(void **state)
{
    int32_t zero = 0;
    uint64_t none = 0;
    const struct rows rows = {1, &zero, &zero, &zero, &zero, &zero, &none};
    struct cuda_rig rig;
    uint64_t before;

    (void)state;
    cuda_rig_open(&rig, RIG_HIDDEN, RIG_QKV, RIG_CONTEXT, RIG_VOCAB);
    assert_int_equal(backend_cuda.step.replay(rig.cuda, state, &rows, 1), 0);
    assert_int_equal(backend_cuda.step.replay(rig.cuda, state, &rows, 1), 0);
    before = counted();
    assert_int_equal(backend_cuda.step.replayed(rig.cuda), 1);
    assert_true(counted() > before);
    assert_int_equal(backend_cuda.step.replay(rig.cuda, state, &rows, 1), 1);
    cuda_rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_progress__each_family_of_kernels_that_is_loaded),
        cmocka_unit_test(test_cuda_progress__each_panel_that_is_packed),
        cmocka_unit_test(test_cuda_progress__each_step_that_is_recorded),
    };
    int skip = cuda_rig_skip();

    return skip != 0 ? skip : cmocka_run_group_tests(tests, NULL, NULL);
}
