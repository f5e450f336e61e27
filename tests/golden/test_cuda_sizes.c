/* What a build without CUDA plans for a device is what the CUDA backend takes there. */
#include "common/backend/choose.h"
#include "common/model/model.h"
#include "tests/support/golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_cuda_sizes__are_those_of_the_backend(void **state)
{
    static const char *const folders[] = {"launch/demo/target", "tests/golden/models/llama2", "tests/golden/models/qwen2", "tests/golden/models/qwen3"};
    char path[GOLDEN_PATH];

    (void)state;
    assert_int_equal(backend_cuda_sizes.linear.packs, backend_cuda.linear.packs);
    assert_int_equal(backend_cuda_sizes.step.prompt_rows, backend_cuda.step.prompt_rows);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        for (int drafts = 0; drafts < 2; drafts++) {
            struct model_options options = {.backend = &backend_cuda, .drafts = drafts, .max_rows = 600, .slots = 3};
            struct model_need there, planned;

            golden_path(folders[i], path);
            assert_int_equal(model_need(path, 2 - drafts, &options, &there), STATUS_OK);
            options.backend = &backend_cuda_sizes;
            assert_int_equal(model_need(path, 2 - drafts, &options, &planned), STATUS_OK);
            assert_true(planned.weights == there.weights && planned.cache == there.cache && planned.activations == there.activations);
            assert_in_range(planned.weights, 1000, 1 << 30);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_sizes__are_those_of_the_backend),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
