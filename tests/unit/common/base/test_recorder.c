#include "common/base/recorder.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { LINES = RECORDER_EVENTS + 8, LINE_BYTES = 256 };

struct rig {
    char folder[64], file[96];
    char line[LINES][LINE_BYTES]; /* of the last dump */
    int lines;
};

static int set_up(void **state)
{
    struct rig *rig = calloc(1, sizeof *rig);
    char root[] = "/tmp/test_recorder_XXXXXX";

    if (rig == NULL || mkdtemp(root) == NULL)
        return -1;
    rmdir(root); /* its name is free now, and ours */
    snprintf(rig->folder, sizeof rig->folder, "%s", root);
    snprintf(rig->file, sizeof rig->file, "%s/rank-0003", root);
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;

    unlink(rig->file);
    if (rmdir(rig->folder) != 0)
        unlink(rig->folder);
    free(rig);
    return 0;
}

/* The lines of the file without their times. */
static void read_lines(struct rig *rig)
{
    FILE *file = fopen(rig->file, "r");
    char line[LINE_BYTES];

    rig->lines = 0;
    while (file != NULL && rig->lines < LINES && fgets(line, sizeof line, file) != NULL) {
        assert_int_equal(strcspn(line, " "), 20); /* seconds.nanoseconds, of one width: they sort as texts */
        snprintf(rig->line[rig->lines++], LINE_BYTES, "%s", line + 21);
    }
    if (file != NULL)
        fclose(file);
}

static void test_recorder__a_dump_tells_the_last_events_and_why(void **state)
{
    struct rig *rig = *state;

    recorder_open(rig->folder, 3, "drafter", 0);
    for (int i = 0; i < 1000; i++)
        recorder_note("event # of #", i, 1000, 0);
    recorder_dump("a test");
    read_lines(rig);
    assert_int_equal(rig->lines, RECORDER_EVENTS + 1);
    assert_string_equal(rig->line[0], "rank 3 drafter: event 744 of 1000\n");
    assert_string_equal(rig->line[RECORDER_EVENTS - 1], "rank 3 drafter: event 999 of 1000\n");
    assert_string_equal(rig->line[RECORDER_EVENTS], "rank 3 drafter: ends: a test\n");
}

static void test_recorder__numbers_take_the_places_of_their_signs(void **state)
{
    struct rig *rig = *state;

    recorder_open(rig->folder, 3, "drafter", 0);
    recorder_note("none, # and # and # and #", 0, -17, INT64_MIN);
    recorder_dump("a test");
    read_lines(rig);
    assert_string_equal(rig->line[rig->lines - 2], "rank 3 drafter: none, 0 and -17 and -9223372036854775808 and #\n");
}

static void test_recorder__only_the_first_dump_is_written(void **state)
{
    struct rig *rig = *state;

    recorder_open(rig->folder, 3, "drafter", 0);
    recorder_dump("the reason");
    recorder_dump("what followed from it");
    read_lines(rig);
    assert_string_equal(rig->line[rig->lines - 1], "rank 3 drafter: ends: the reason\n");
}

static void test_recorder__nothing_is_written_when_all_went_well(void **state)
{
    struct rig *rig = *state;
    struct stat found;
    _Atomic uint32_t over = 1;

    recorder_open(rig->folder, 3, "drafter", 0);
    recorder_close();
    recorder_dump("a test");
    recorder_open(rig->folder, 3, "drafter", 0);
    recorder_heed(&over); /* the lead of this host says so */
    recorder_dump("a test");
    recorder_heed(NULL);
    assert_int_equal(stat(rig->folder, &found), -1);
}

static void test_recorder__a_link_in_the_place_of_the_folder_is_not_followed(void **state)
{
    struct rig *rig = *state;

    assert_int_equal(symlink("/tmp", rig->folder), 0);
    recorder_open(rig->folder, 3, "drafter", 0);
    recorder_dump("a test");
    assert_int_equal(access("/tmp/rank-0003", F_OK), -1);
}

/* A link in the place of the file goes, and what it points to stays as it is. */
static void test_recorder__the_file_is_a_new_one(void **state)
{
    struct rig *rig = *state;
    struct stat found;
    char other[80];
    FILE *victim;

    snprintf(other, sizeof other, "%s/other", rig->folder);
    assert_int_equal(mkdir(rig->folder, 0700), 0);
    victim = fopen(other, "w");
    assert_non_null(victim);
    fputs("kept", victim);
    fclose(victim);
    assert_int_equal(link(other, rig->file), 0); /* a second name of the same file, which O_NOFOLLOW would open */
    recorder_open(rig->folder, 3, "drafter", 0);
    recorder_dump("a test");
    read_lines(rig);
    assert_true(rig->lines > 0);
    assert_int_equal(lstat(rig->file, &found), 0);
    assert_true(S_ISREG(found.st_mode));
    assert_int_equal(found.st_mode & 0777, 0600);
    assert_int_equal(stat(other, &found), 0);
    assert_int_equal(found.st_size, 4);
    assert_int_equal(unlink(other), 0);
}

static void ends_by(struct rig *rig, int signal, const char *told)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        struct sigaction usual = {.sa_handler = SIG_DFL};

        sigaction(signal, &usual, NULL); /* cmocka has handlers of its own */
        recorder_open(rig->folder, 3, "drafter", 0);
        recorder_catch_signals();
        recorder_note("before it", 0, 0, 0);
        raise(signal);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), signal);
    read_lines(rig);
    assert_true(rig->lines >= 2);
    assert_string_equal(rig->line[rig->lines - 2], "rank 3 drafter: before it\n");
    assert_string_equal(rig->line[rig->lines - 1], told);
}

static void test_recorder__a_signal_is_told_and_takes_its_course(void **state)
{
    ends_by(*state, SIGTERM, "rank 3 drafter: ends: SIGTERM: the job is torn down, or somebody asked for it\n");
    ends_by(*state, SIGFPE, "rank 3 drafter: ends: SIGFPE\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_recorder__a_dump_tells_the_last_events_and_why, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_recorder__numbers_take_the_places_of_their_signs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_recorder__only_the_first_dump_is_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_recorder__nothing_is_written_when_all_went_well, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_recorder__a_link_in_the_place_of_the_folder_is_not_followed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_recorder__the_file_is_a_new_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_recorder__a_signal_is_told_and_takes_its_course, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
