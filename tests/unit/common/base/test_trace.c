#include "common/base/trace.h"

#include "common/base/clock.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/test_trace_XXXXXX";

/* The file of rank 7, whole. */
static void read_file(char *text, size_t size)
{
    char path[64];
    FILE *file;

    snprintf(path, sizeof path, "%s/rank-0007.csv", folder);
    file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
    unlink(path);
}

static void test_trace__costs_no_clock_and_writes_nothing_when_it_is_closed(void **state)
{
    (void)state;
    assert_int_equal(trace_begin(), 0);
    trace_end(TRACE_DRAFT, trace_begin(), 1, 2, 3, 4, 5);
    assert_int_equal(trace_write("lead", "host"), STATUS_OK);
}

static void test_trace__spans_come_back_as_they_were(void **state)
{
    int64_t now = 1000;
    char text[1024];

    (void)state;
    clock_pretend(&now);
    assert_int_equal(trace_open(8, folder, 7), STATUS_OK);
    int64_t began = trace_begin();
    now = 1750;
    trace_end(TRACE_VERIFY, began, 3, 40, 5, 1234, -1);
    trace_end(TRACE_PACK, began, 4, 41, INT64_MAX, INT64_MIN, 0); /* what is too large is cut, not wrapped */
    assert_int_equal(trace_write("lead", "node1"), STATUS_OK);
    read_file(text, sizeof text);
    assert_string_equal(text, "# rank 7\n# role lead\n# host node1\n# dropped 0\n" TRACE_COLUMNS "\n"
                              "verify,1000,1750,3,40,5,1234,-1\npack,1000,1750,4,41,2147483647,-2147483648,0\n");
    trace_close();
    clock_pretend(NULL);
}

static void test_trace__a_full_one_counts_what_it_drops(void **state)
{
    char text[4096];

    (void)state;
    assert_int_equal(trace_open(3, folder, 7), STATUS_OK);
    for (int i = 0; i < 10; i++)
        trace_end(TRACE_WAIT, trace_begin(), (uint32_t)i, 0, 0, 0, 0);
    assert_int_equal(trace_write("drafter", "h"), STATUS_OK);
    read_file(text, sizeof text);
    assert_non_null(strstr(text, "# dropped 7\n"));
    assert_non_null(strstr(text, ",2,0,0,0,0\n"));
    assert_null(strstr(text, ",3,0,0,0,0\n"));
    trace_close();
}

static void test_trace__phases_have_names(void **state)
{
    (void)state;
    for (int i = 0; i < TRACE_PHASES; i++)
        assert_int_equal(trace_phase_of(trace_name((enum trace_phase)i), (int)strlen(trace_name((enum trace_phase)i))), i);
    assert_int_equal(trace_phase_of("draf", 4), -1);
    assert_int_equal(trace_phase_of("", 0), -1);
}

static void test_trace__a_folder_that_is_not_there_is_told(void **state)
{
    (void)state;
    assert_int_equal(trace_open(3, "/nowhere/at/all", 7), STATUS_IO);
    assert_int_equal(trace_write("lead", "h"), STATUS_OK);
    trace_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trace__costs_no_clock_and_writes_nothing_when_it_is_closed),
        cmocka_unit_test(test_trace__spans_come_back_as_they_were),
        cmocka_unit_test(test_trace__a_full_one_counts_what_it_drops),
        cmocka_unit_test(test_trace__phases_have_names),
        cmocka_unit_test(test_trace__a_folder_that_is_not_there_is_told),
    };
    int failed;

    if (mkdtemp(folder) == NULL)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
