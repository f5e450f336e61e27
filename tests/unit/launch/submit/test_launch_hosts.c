/* Which ranks --hosts puts where, by the parts that mpirun is told: HOST:SLOTS ROLE xRANKS. */
#include "launch/submit/launch_hosts.h"
#include "tests/support/capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void put(struct launch_hosts *hosts, int count, char role, char *text, size_t size)
{
    while (count > 0) {
        struct launch_share share = launch_hosts_next(hosts, count);
        size_t used = strlen(text);

        assert_in_range(share.ranks, 1, count);
        snprintf(text + used, size - used, "%s%.*s:%d %cx%d", used > 0 ? ", " : "", share.length, share.name, share.slots, role, share.ranks);
        count -= share.ranks;
    }
}

static void assert_placed(const char *list, int drafters, int verifiers, const char *expected)
{
    struct launch_hosts hosts = {.list = list};
    char text[256] = "";

    put(&hosts, drafters, 'd', text, sizeof text);
    put(&hosts, verifiers, 'v', text, sizeof text);
    assert_string_equal(text, expected);
}

static void test_launch_hosts__fills_hosts_in_the_order_of_the_list(void **state)
{
    (void)state;
    assert_placed("a:1,b:2", 1, 2, "a:1 dx1, b:2 vx2");
    assert_placed("b:2,a:1", 1, 2, "b:2 dx1, b:2 vx1, a:1 vx1");
    assert_placed("a:1,b:4,c:4", 1, 8, "a:1 dx1, b:4 vx4, c:4 vx4");
    assert_placed("a:1,b:2,c:2", 2, 2, "a:1 dx1, b:2 dx1, b:2 vx1, c:2 vx1");
    assert_placed("a:3,b:9", 0, 2, "a:3 vx2");
    assert_placed("a", 0, 1, "a:1 vx1");
}

static void test_launch_hosts__a_host_that_is_named_twice_has_the_slots_of_both(void **state)
{
    (void)state;
    assert_placed("a,a,b", 1, 2, "a:2 dx1, a:2 vx1, b:1 vx1");
    assert_placed("a,b,b,b", 1, 3, "a:1 dx1, b:3 vx3");
    assert_placed("b:1,a,b:1", 1, 2, "b:2 dx1, a:1 vx1, b:2 vx1");
}

static void test_launch_hosts__what_finds_no_slot_goes_to_the_last_host(void **state)
{
    (void)state;
    assert_placed("a,b", 2, 2, "a:1 dx1, b:1 dx1, b:1 vx2");
}

static void assert_checked(const char *list, const char *mpirun_options, const char *expected)
{
    const struct options options = {.launch.hosts = list, .launch.mpirun_options = mpirun_options};
    struct capture capture;
    char said[512];
    enum status status;

    capture_begin(&capture);
    status = launch_hosts_check(&options, 1, 2);
    capture_end(&capture, said, sizeof said);
    assert_int_equal(status, expected == NULL ? STATUS_OK : STATUS_USAGE);
    if (expected == NULL)
        assert_string_equal(said, "");
    else
        capture_assert_one_line(said, expected);
}

static void test_launch_hosts__refuses_what_is_no_list_or_too_short(void **state)
{
    (void)state;
    assert_checked("a:1,b:2", NULL, NULL);
    assert_checked("a,a,a", NULL, NULL);
    assert_checked(NULL, NULL, NULL);
    assert_checked("a:1,b:1", NULL, "--hosts is 'a:1,b:1' with 2 slots, expected one for each of 1 drafters and 2 verifiers, as HOST:SLOTS,...\n");
    assert_checked("a", NULL, "--hosts is 'a' with 1 slot, expected one for each of 1 drafters and 2 verifiers, as a:3\n");
    assert_checked("a:2", NULL, "as a:3\n");
    assert_checked("a:1,b:1", "--mca x y --oversubscribe", NULL);
    for (size_t i = 0; i < 8; i++)
        assert_checked(((const char *const[]){"", "a:0,b:3", "a:x", ",a:3", "a:3,", "a:3x,b", "a:-3", "a:99999999999999999999"})[i], NULL,
                       "expected HOST[:SLOTS],...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launch_hosts__fills_hosts_in_the_order_of_the_list),
        cmocka_unit_test(test_launch_hosts__a_host_that_is_named_twice_has_the_slots_of_both),
        cmocka_unit_test(test_launch_hosts__what_finds_no_slot_goes_to_the_last_host),
        cmocka_unit_test(test_launch_hosts__refuses_what_is_no_list_or_too_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
