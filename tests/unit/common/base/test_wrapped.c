/* Help in the columns of a narrow and of a wide terminal. */
#include "common/base/wrapped.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *text;
static size_t size;

static void assert_written(FILE *to, const char *expected)
{
    fclose(to);
    assert_string_equal(text, expected);
    free(text);
}

static void test_wrapped__choices_break_behind_a_bar(void **state)
{
    static const struct {
        int width;
        const char *expected;
    } cases[] = {{40, "one|two|three)\n"}, {12, "one|two|\n   three)\n"}, {1, "one|\n   two|\n   three)\n"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FILE *to = open_memstream(&text, &size);

        wrapped_put_choices(to, "one|two|three", 2, cases[i].width);
        assert_written(to, cases[i].expected);
    }
}

static void test_wrapped__help_has_names_beside_or_above_its_words(void **state)
{
    static const char help[] = "Usage: program\n\n  --name N   what it is, in words that are too many for a line of few columns\n  -x  short\n";
    static const struct {
        const char *columns, *expected;
    } cases[] = {{"90", help},
                 {"45", "Usage: program\n\n  --name N\n        what it is, in words that are too\n        many for a line of few columns\n  -x\n     "
                        "   short\n"},
                 {"72", "Usage: program\n\n  --name N   what it is, in words that are too many for a line of few\n             columns\n  -x  "
                        "short\n"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FILE *to = open_memstream(&text, &size);

        setenv("COLUMNS", cases[i].columns, 1);
        wrapped_put_help(to, help);
        assert_written(to, cases[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrapped__choices_break_behind_a_bar),
        cmocka_unit_test(test_wrapped__help_has_names_beside_or_above_its_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
