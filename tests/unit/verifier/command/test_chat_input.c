/* Lines of a chat as they come out of a pipe, in one piece or in many. */
#include "verifier/command/chat_input.h"

#include "common/base/log.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct rig {
    int ends[2]; /* of a pipe; the second is -1 once it is closed */
    struct chat_input input;
};

static void open_rig(struct rig *rig)
{
    assert_int_equal(pipe(rig->ends), 0);
    chat_input_init(&rig->input, rig->ends[0]);
}

static void close_writer(struct rig *rig)
{
    assert_int_equal(close(rig->ends[1]), 0);
    rig->ends[1] = -1;
}

static void close_rig(struct rig *rig)
{
    chat_input_release(&rig->input);
    close(rig->ends[0]);
    if (rig->ends[1] >= 0)
        close(rig->ends[1]);
}

static void write_bytes(struct rig *rig, const char *text, size_t count)
{
    assert_int_equal(write(rig->ends[1], text, count), (ssize_t)count);
    assert_int_equal(chat_input_read(&rig->input, 0), STATUS_OK);
}

static void write_text(struct rig *rig, const char *text)
{
    write_bytes(rig, text, strlen(text));
}

static void assert_line(struct rig *rig, const char *expected)
{
    const char *line;
    size_t length;

    assert_int_equal(chat_input_next(&rig->input, &line, &length), 1);
    assert_int_equal(length, strlen(expected));
    assert_memory_equal(line, expected, length);
}

static void assert_none(struct rig *rig, int ended)
{
    const char *line;
    size_t length;

    assert_int_equal(chat_input_next(&rig->input, &line, &length), 0);
    assert_int_equal(rig->input.ended, ended);
}

static void test_chat_input__lines_come_whole_and_in_order(void **state)
{
    struct rig rig;

    (void)state;
    open_rig(&rig);
    assert_none(&rig, 0);
    write_text(&rig, "one\ntw");
    assert_line(&rig, "one");
    assert_none(&rig, 0);
    write_text(&rig, "o\r\n\nthree\n");
    assert_line(&rig, "two");
    assert_int_equal(rig.input.number, 2);
    write_text(&rig, "four\n"); /* while the line before is in use no longer */
    assert_line(&rig, "");
    assert_line(&rig, "three");
    assert_line(&rig, "four");
    assert_none(&rig, 0);
    assert_int_equal(rig.input.number, 5);
    close_rig(&rig);
}

static void test_chat_input__one_byte_at_a_time_is_the_same(void **state)
{
    static const char text[] = "a b\n\303\244\n";
    struct rig rig;

    (void)state;
    open_rig(&rig);
    for (size_t i = 0; text[i] != '\0'; i++)
        write_bytes(&rig, text + i, 1);
    assert_line(&rig, "a b");
    assert_line(&rig, "\303\244");
    assert_none(&rig, 0);
    close_rig(&rig);
}

static void test_chat_input__a_closed_pipe_ends_after_its_last_line(void **state)
{
    struct rig rig;

    (void)state;
    open_rig(&rig);
    write_text(&rig, "one\nlast");
    close_writer(&rig);
    assert_line(&rig, "one");
    assert_none(&rig, 0); /* it may go on */
    assert_int_equal(chat_input_read(&rig.input, 0), STATUS_OK);
    assert_line(&rig, "last");
    assert_none(&rig, 1);
    assert_none(&rig, 1);
    close_rig(&rig);
}

static void test_chat_input__a_line_of_eot_is_the_end(void **state)
{
    struct rig rig;

    (void)state;
    open_rig(&rig);
    write_text(&rig, "one\n\004 is no end\n\004\nmore\n");
    assert_line(&rig, "one");
    assert_line(&rig, "\004 is no end");
    assert_none(&rig, 1);
    assert_none(&rig, 1);
    close_rig(&rig);
}

static void test_chat_input__a_stop_drops_what_was_typed_before_it(void **state)
{
    struct rig rig;

    (void)state;
    open_rig(&rig);
    write_text(&rig, "one\ntwo\nthree");
    assert_line(&rig, "one");
    assert_int_equal(rig.input.stop, 0);
    write_text(&rig, "\n\003\nfour\n");
    assert_int_equal(rig.input.stop, 1);
    assert_line(&rig, "four");
    rig.input.stop = 0;
    write_text(&rig, "a\003\n"); /* within a line it is a byte as any */
    assert_int_equal(rig.input.stop, 0);
    assert_line(&rig, "a\003");
    write_text(&rig, "\003\n");
    assert_int_equal(rig.input.stop, 1);
    assert_none(&rig, 0);
    close_rig(&rig);
}

static void test_chat_input__a_stop_that_is_cut_leaves_no_line(void **state)
{
    struct rig rig;

    (void)state;
    open_rig(&rig);
    write_text(&rig, "x\n\003");
    assert_int_equal(rig.input.stop, 1);
    write_text(&rig, "\ny\n");
    assert_line(&rig, ""); /* which is no message */
    assert_line(&rig, "y");
    close_rig(&rig);
}

static void test_chat_input__what_cannot_be_read_ends_the_job(void **state)
{
    struct chat_input input;

    (void)state;
    log_init("test_chat_input", LOG_ERROR);
    chat_input_init(&input, open("/tmp", O_RDONLY | O_DIRECTORY));
    assert_true(input.fd >= 0);
    assert_int_equal(chat_input_read(&input, 0), STATUS_IO);
    close(input.fd);
    chat_input_release(&input);
}

static void test_chat_input__a_command_is_a_slash_and_a_word(void **state)
{
    static const struct {
        const char *line;
        int is_command;
    } cases[] = {{"", 0},           {"/", 0},        {"foo", 0},          {"/foo", 1},      {"/foo bar", 1},
                 {"/exit now", 1},  {"/Foo2", 1},    {"/a_b-c d", 1},     {"/foo\tbar", 1}, {"/usr/bin/x y", 0},
                 {"/etc/hosts", 0}, {"/2 of it", 0}, {"/ and a word", 0}, {" /foo", 0},     {"/foo.", 0},
                 {"/a", 1},         {"//foo", 0}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (chat_input_is_command(cases[i].line, strlen(cases[i].line)) != cases[i].is_command)
            fail_msg("'%s': expected %d", cases[i].line, cases[i].is_command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chat_input__lines_come_whole_and_in_order),
        cmocka_unit_test(test_chat_input__one_byte_at_a_time_is_the_same),
        cmocka_unit_test(test_chat_input__a_closed_pipe_ends_after_its_last_line),
        cmocka_unit_test(test_chat_input__a_line_of_eot_is_the_end),
        cmocka_unit_test(test_chat_input__a_stop_drops_what_was_typed_before_it),
        cmocka_unit_test(test_chat_input__a_stop_that_is_cut_leaves_no_line),
        cmocka_unit_test(test_chat_input__a_command_is_a_slash_and_a_word),
        cmocka_unit_test(test_chat_input__what_cannot_be_read_ends_the_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
