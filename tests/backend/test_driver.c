/* What users are told of drivers and devices, for every answer that the runtime may give: none of it needs a device. */
#include "common/backend/cuda/driver.h"
#include "common/backend/cuda/switches.h"
#include "tests/backend/rig.h"
#include "tests/support/capture.h"

#include <string.h>

static const char hidden[] = "no device is visible (nvidia-smi -L lists those of the host; CUDA_VISIBLE_DEVICES or a container may hide them)";
static const char none[] = "no NVIDIA driver is installed, or none is passed into this container";

static void test_driver__says_why_there_is_no_device(void **state)
{
    static const struct {
        struct driver_answer answer;
        int is_fault;
        const char *why;
    } cases[] = {
        {{100, "no CUDA-capable device is detected", 12040, 12060}, 0, hidden},
        {{0, "no error", 12040, 12060}, 0, hidden},
        {{35, "CUDA driver version is insufficient for CUDA runtime version", 0, 12060}, 0, none},
        {{34, "stub library", 0, 12060}, 0, none},
        {{35, "CUDA driver version is insufficient for CUDA runtime version", 11040, 12060}, 1,
         "the NVIDIA driver serves CUDA 11.4 and this program is built with CUDA 12.6: install a newer driver, or build with a toolkit of the driver's "
         "version"},
        {{802, "system not yet initialized", 12040, 12060}, 1,
         "the NVIDIA driver (CUDA 12.4) says: system not yet initialized; nvidia-fabricmanager has to run on hosts with NVSwitch"},
        {{803, "system has unsupported display driver / cuda driver combination", 12040, 12060}, 1,
         "the NVIDIA driver (CUDA 12.4) says: system has unsupported display driver / cuda driver combination; the driver's library is not that of the "
         "driver which is loaded: reboot, or load it anew"},
        {{804, "forward compatibility was attempted on non supported HW", 12040, 13000}, 1,
         "the NVIDIA driver (CUDA 12.4) says: forward compatibility was attempted on non supported HW; a cuda-compat folder is on LD_LIBRARY_PATH, and "
         "this device does not take it: leave it out"},
        {{807, "the MPS server is not ready", 12040, 12060}, 1,
         "the NVIDIA driver (CUDA 12.4) says: the MPS server is not ready; MPS has the device: does nvidia-cuda-mps-control run, and for this user?"},
        {{999, "unknown error", 12040, 12060}, 1, "the NVIDIA driver (CUDA 12.4) says: unknown error; nvidia-smi tells more"},
    };
    char why[384];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(driver_explain(&cases[i].answer, why, sizeof why), cases[i].is_fault);
        assert_string_equal(why, cases[i].why);
    }
}

static void test_driver__says_which_devices_are_of_no_use(void **state)
{
    char why[384] = "";

    (void)state;
    assert_true(driver_allows(&(struct driver_device){8, 0, 0}, why, sizeof why));
    assert_true(driver_allows(&(struct driver_device){12, 1, 3}, why, sizeof why)); /* exclusive: for one process, which may be this one */
    assert_false(driver_allows(&(struct driver_device){7, 5, 0}, why, sizeof why));
    assert_string_equal(why, "its compute capability is 7.5, and the kernels are for 8.0 and later");
    assert_false(driver_allows(&(struct driver_device){9, 0, 2}, why, sizeof why));
    assert_string_equal(why, "its compute mode is Prohibited: nvidia-smi -c DEFAULT lets programs use it");
}

static void test_driver__names_the_compute_mode_where_a_device_is_taken(void **state)
{
    const struct driver_device exclusive = {9, 0, 3}, shared = {9, 0, 0};

    (void)state;
    assert_non_null(strstr(driver_advice(&exclusive, 46), "its compute mode is Exclusive_Process and another process has it"));
    assert_string_equal(driver_advice(&shared, 46), "");
    assert_string_equal(driver_advice(&exclusive, 2), "");
    assert_non_null(strstr(driver_advice(&shared, 805), "nvidia-cuda-mps-control"));
    assert_non_null(strstr(driver_advice(&shared, 810), "nvidia-cuda-mps-control"));
    assert_string_equal(driver_advice(&shared, 811), "");
    assert_non_null(strstr(driver_advice(&shared, 222), "install a newer driver, or build on this machine"));
    assert_non_null(strstr(driver_advice(&shared, 209), "install a newer driver, or build on this machine"));
}

static void test_switches__are_words_of_which_any_other_is_refused(void **state)
{
    static const struct {
        const char *words, *told;
        struct switches expected;
    } cases[] = {
        {NULL, "", {0, 0, 0, 0}},
        {"", "", {0, 0, 0, 0}},
        {"nooverlap", ", without overlapping kernels", {1, 0, 0, 0}},
        {"nograph,", ", without recorded steps", {0, 1, 0, 0}},
        {"noclusters", ", without clusters of blocks", {0, 0, 0, 1}},
        {"noclusters,nooneshot,nooverlap,nograph", ", without overlapping kernels, recorded steps, one-shot sums, clusters of blocks", {1, 1, 1, 1}},
    };
    static const char *const wrong[] = {"nooverlaps", "no", "nograph nooneshot", "nograph,,nooverlap", ",", "NOGRAPH"};
    struct switches switches;
    char text[512];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(switches_read(cases[i].words, &switches), STATUS_OK);
        assert_memory_equal(&switches, &cases[i].expected, sizeof switches);
        assert_string_equal(switches_describe(&switches, text), cases[i].told);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct capture capture;

        capture_begin(&capture);
        assert_int_equal(switches_read(wrong[i], &switches), STATUS_USAGE);
        capture_end(&capture, text, sizeof text);
        capture_assert_one_line(text, "expected some of nooverlap, nograph, nooneshot and noclusters, separated by commas");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_driver__says_why_there_is_no_device),
        cmocka_unit_test(test_driver__says_which_devices_are_of_no_use),
        cmocka_unit_test(test_driver__names_the_compute_mode_where_a_device_is_taken),
        cmocka_unit_test(test_switches__are_words_of_which_any_other_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
