/* What a shell makes of a word is the text that it was, and nothing else happens. */
#include "common/base/shell_word.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_shell_word__a_shell_gets_the_text(void **state)
{
    static const char *const texts[] = {"",        "plain-word_1.0/=:,+@%", "two words", "it's $(touch touched)", "`touch touched`;touch touched",
                                        "a\nb\tc", "''\\'\"",               "*",         "~",                     "#x",
                                        "!!",      "{a,b}",                 "<b>&|",      "\x1b]0;it's\a\xc2\x9b" "1\x9b"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char command[256] = "printf '%s.' ", said[256];
        FILE *to = fmemopen(command + strlen(command), sizeof command - strlen(command), "w"), *shell;
        size_t count;

        assert_non_null(to);
        shell_word_put(texts[i], to);
        fclose(to);
        assert_int_equal(setenv("COMMAND", command, 1), 0);
        shell = popen("exec bash -c \"$COMMAND\"", "r");
        assert_non_null(shell);
        count = fread(said, 1, sizeof said - 1, shell);
        assert_int_equal(pclose(shell), 0);
        assert_int_equal(count, strlen(texts[i]) + 1);
        said[count - 1] = '\0';
        assert_string_equal(said, texts[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shell_word__a_shell_gets_the_text)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
