#include "common/base/grouped.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_grouped__has_commas_between_threes(void **state)
{
    char text[GROUPED_TEXT];

    (void)state;
    assert_string_equal(grouped_write(0, text), "0");
    assert_string_equal(grouped_write(999, text), "999");
    assert_string_equal(grouped_write(1000, text), "1,000");
    assert_string_equal(grouped_write(21934, text), "21,934");
    assert_string_equal(grouped_write(-123456, text), "-123,456");
    assert_string_equal(grouped_write(INT64_MIN, text), "-9,223,372,036,854,775,808");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_grouped__has_commas_between_threes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
