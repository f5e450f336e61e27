/* Which backend a program computes with, in a build with devices as in one without. */
#include "common/backend/choose.h"
#include "tests/backend/rig.h"
#include "tests/support/capture.h"

static void test_choose__cpu_is_always_there(void **state)
{
    const struct backend *backend = NULL;
    int device = -1;

    (void)state;
    assert_int_equal(backend_choose(BACKEND_CPU, &backend), STATUS_OK);
    assert_ptr_equal(backend, &backend_cpu);
    assert_int_equal(backend_choose_device(backend, NULL, 3, &device), STATUS_OK);
    assert_int_equal(device, 0);
    assert_int_equal(backend_choose_device(backend, "5,7", 3, &device), STATUS_OK);
    assert_int_equal(device, 0);
}

/* Auto and cuda agree on whether there is a device: cuda is refused, with one line, exactly where auto takes the CPU. */
static void test_choose__cuda_is_refused_where_auto_takes_the_cpu(void **state)
{
    const struct backend *automatic = NULL, *asked = NULL;
    struct capture capture;
    enum status status;
    char text[512];

    (void)state;
    assert_int_equal(backend_choose(BACKEND_AUTO, &automatic), STATUS_OK);
    capture_begin(&capture);
    status = backend_choose(BACKEND_CUDA, &asked);
    capture_end(&capture, text, sizeof text);
    if (automatic == &backend_cpu) {
        assert_int_equal(status, STATUS_USAGE);
        assert_null(asked);
        capture_assert_one_line(text, "--backend cuda cannot be had on this host: ");
    } else {
        assert_int_equal(status, STATUS_OK);
        assert_ptr_equal(asked, automatic);
        assert_string_equal(asked->name, "cuda");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choose__cpu_is_always_there),
        cmocka_unit_test(test_choose__cuda_is_refused_where_auto_takes_the_cpu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
