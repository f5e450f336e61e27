/* What somebody hears who ended a job: what is kept of it, and how to go on. */
#include "verifier/result/journal_tell.h"

#include "common/base/try.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64], path[128];

static void write_file(const char *name, const char *text)
{
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

static int open_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/test_journal_tell_XXXXXX");
    return mkdtemp(folder) == NULL || chdir(folder) != 0;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"in", "half.journal", "out.journal", "whole", "all"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(names[i]);
    return chdir("/") != 0 || rmdir(folder) != 0;
}

static void assert_told(const struct options *options, const char *expected)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    journal_tell(options, to);
    fclose(to);
    assert_string_equal(text, expected);
    free(text);
}

static void test_journal_tell__one_line_for_what_there_is(void **state)
{
    static const char lost[] = "results that were not written yet are lost; with --output FILE they are kept in FILE.journal, and --resume goes on\n";
    static const struct {
        const char *prompts, *output, *shard, *told;
    } cases[] = {
        {"in", NULL, NULL, lost},
        {"in", "-", NULL, lost},
        {"in", "none", NULL, "nothing was finished: there is no none.journal\n"},
        {"in", "whole", NULL, "no journal is beside whole, which is whole or was there before\n"},
        {"in", "all", NULL, "all 5 results are in all\n"},
        {"-", "all", NULL, "no journal is beside all, which is whole or was there before\n"},
        {"in", "half", NULL, "2 of 5 results are in half.journal; the same command with --resume goes on\n"},
        {"in", "half", "1/2", "2 of 3 results are in half.journal; the same command with --resume goes on\n"},
        {"-", "half", NULL, "2 results are in half.journal; the same command with --resume goes on\n"},
        {NULL, NULL, NULL, ""}, /* nothing was to be kept */
    };

    (void)state;
    write_file("in", "{}\n{}\n\n{}\n{}\n \n{}\n");
    write_file("whole", "{}\n");
    write_file("all", "{}\n{}\n{}\n{}\n{}\n");
    write_file("half.journal", "{\"header\": 1}\n{\"index\": 0}\n{\"index\": 3}\n{\"index\": 4"); /* the last has no end */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct options options = {.input.prompts = cases[i].prompts, .results.path = cases[i].output, .input.part = cases[i].shard};

        assert_told(&options, cases[i].told);
    }
}

static void test_journal_tell__a_check_and_a_sweep_keep_nothing(void **state)
{
    const struct options check = {.input.prompts = "in", .results.path = "half", .checks.size = CHECK_QUICK},
                         sweep = {.input.prompts = "in", .results.path = "half", .report.sweep = "plan"};

    (void)state;
    assert_told(&check, "");
    assert_told(&sweep, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_journal_tell__one_line_for_what_there_is),
        cmocka_unit_test(test_journal_tell__a_check_and_a_sweep_keep_nothing),
    };

    return cmocka_run_group_tests(tests, open_folder, remove_folder);
}
