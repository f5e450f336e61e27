#include "common/base/digest.h"
#include "verifier/result/journal_scan.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RECORDS = 100, AGAIN_AT = 40 /* records before the second header */ };

/* A journal of a job that was started twice. */
struct rig {
    char *bytes;
    size_t count;
    size_t begins[RECORDS + 4]; /* where each line begins, and the end; room for one more line */
    int lines;
};

static void append_bytes(struct rig *rig, const char *bytes, size_t count)
{
    rig->bytes = realloc(rig->bytes, rig->count + count);
    assert_non_null(rig->bytes);
    memcpy(rig->bytes + rig->count, bytes, count);
    rig->begins[rig->lines++] = rig->count;
    rig->count += count;
    rig->begins[rig->lines] = rig->count;
}

static void append(struct rig *rig, struct journal_line line)
{
    size_t count;
    char *bytes = journal_line_write(&line, rig->count, &count);

    assert_non_null(bytes);
    append_bytes(rig, bytes, count);
    free(bytes);
}

/* Any bytes under the sum that belongs to them. */
static void append_sealed(struct rig *rig, const char *body, size_t count)
{
    char line[400];
    int seal;

    assert_in_range(count, 0, sizeof line - 100);
    memcpy(line, body, count);
    seal = snprintf(line + count, sizeof line - count, ",\"sum\":\"%016" PRIx64 "\"}\n", digest_line(body, count, rig->count));
    append_bytes(rig, line, count + (size_t)seal);
}

static struct journal_line header(uint32_t fence)
{
    const char *terms = "{\"seed\":1}";

    return (struct journal_line){
        .kind = JOURNAL_LINE_HEADER, .fence = fence, .run = 77, .pid = 4711, .host = "node 1", .results = RECORDS, .text = terms,
        .length = strlen(terms)};
}

static struct journal_line result(uint32_t index, const char *text)
{
    return (struct journal_line){.kind = JOURNAL_LINE_RESULT, .index = index, .request = 1000 + index, .text = text, .length = strlen(text)};
}

static int open_rig(void **state)
{
    struct rig *rig = calloc(1, sizeof *rig);
    char text[100];

    assert_non_null(rig);
    *state = rig;
    append(rig, header(1));
    for (uint32_t i = 0; i < RECORDS; i++) {
        if (i == AGAIN_AT)
            append(rig, header(2));
        snprintf(text, sizeof text, "{\"index\":%u,\"text\":\"%.*s\"}", i, (int)(i % 7), "a\\n{}\\\"");
        append(rig, result(i, text));
    }
    return 0;
}

static int close_rig(void **state)
{
    struct rig *rig = *state;

    free(rig->bytes);
    free(rig);
    return 0;
}

/* Results in the first `lines` lines. */
static size_t results_in(int lines)
{
    return (size_t)(lines == 0 ? 0 : lines <= AGAIN_AT + 1 ? lines - 1 : lines - 2);
}

static void assert_holds(const struct journal_scan *scan, const struct rig *rig, int lines)
{
    assert_int_equal(scan->entries, results_in(lines));
    assert_int_equal(scan->end, rig->begins[lines]);
    for (size_t i = 0; i < scan->entries; i++) {
        assert_int_equal(scan->entry[i].index, i);
        assert_int_equal(scan->entry[i].request, 1000 + i);
    }
}

static void test_journal_scan__reads_what_was_written(void **state)
{
    struct rig *rig = *state;
    struct journal_scan scan;

    assert_int_equal(journal_scan_open(&scan, rig->bytes, rig->count), STATUS_OK);
    assert_holds(&scan, rig, rig->lines);
    assert_int_equal(scan.torn, 0);
    assert_null(scan.wrong);
    assert_int_equal(scan.header.fence, 2);
    assert_int_equal(scan.header.run, 77);
    assert_int_equal(scan.header.pid, 4711);
    assert_string_equal(scan.header.host, "node_1");
    assert_int_equal(scan.header.results, RECORDS);
    assert_memory_equal(scan.header.text, "{\"seed\":1}", scan.header.length);
    journal_scan_close(&scan);
}

static void test_journal_scan__a_journal_cut_anywhere_holds_its_whole_lines(void **state)
{
    struct rig *rig = *state;
    int lines = 0;

    for (size_t count = 0; count <= rig->count; count++) {
        char *exact = malloc(count + 1); /* so that a sanitizer sees a look beyond the end */
        struct journal_scan scan;

        assert_non_null(exact);
        memcpy(exact, rig->bytes, count);
        exact = realloc(exact, count > 0 ? count : 1);
        lines += lines < rig->lines && rig->begins[lines + 1] <= count;
        assert_int_equal(journal_scan_open(&scan, exact, count), STATUS_OK);
        assert_null(scan.wrong);
        assert_holds(&scan, rig, lines);
        assert_int_equal(scan.torn, count - rig->begins[lines]);
        journal_scan_close(&scan);
        free(exact);
    }
}

/* Every byte of the last three lines, changed to every other byte. */
static void test_journal_scan__no_changed_byte_is_taken(void **state)
{
    struct rig *rig = *state;
    int checked = 0;

    for (int line = rig->lines - 3; line < rig->lines; line++)
        for (size_t at = rig->begins[line]; at < rig->begins[line + 1]; at++)
            for (int change = 1; change < 256; change++) {
                struct journal_scan scan;

                rig->bytes[at] = (char)(rig->bytes[at] ^ change);
                assert_int_equal(journal_scan_open(&scan, rig->bytes, rig->count), STATUS_OK);
                rig->bytes[at] = (char)(rig->bytes[at] ^ change);
                assert_holds(&scan, rig, line);
                if (line < rig->lines - 1)
                    assert_non_null(scan.wrong); /* damage, told with its place, which is scan.end */
                else
                    assert_true(scan.wrong != NULL || scan.torn == rig->count - rig->begins[line]);
                journal_scan_close(&scan);
                checked++;
            }
    assert_true(checked > 3 * 60 * 255);
}

static void test_journal_scan__lines_hold_in_their_place_alone(void **state)
{
    struct rig *rig = *state;
    size_t one = rig->begins[11] - rig->begins[10], rest = rig->count - rig->begins[11];
    char *moved = malloc(rig->count + one);
    struct journal_scan scan;

    assert_non_null(moved);
    memcpy(moved, rig->bytes, rig->begins[10]); /* line 10 is gone */
    memcpy(moved + rig->begins[10], rig->bytes + rig->begins[11], rest);
    assert_int_equal(journal_scan_open(&scan, moved, rig->count - one), STATUS_OK);
    assert_holds(&scan, rig, 10);
    assert_non_null(scan.wrong);
    journal_scan_close(&scan);

    memcpy(moved, rig->bytes, rig->begins[11]); /* line 10 is there twice */
    memcpy(moved + rig->begins[11], rig->bytes + rig->begins[10], rest + one);
    assert_int_equal(journal_scan_open(&scan, moved, rig->count + one), STATUS_OK);
    assert_holds(&scan, rig, 11);
    assert_non_null(scan.wrong);
    journal_scan_close(&scan);
    free(moved);
}

/* Its sum holds, so it is no torn line though it is the last. */
static void test_journal_scan__a_last_line_that_holds_and_does_not_fit_is_damage(void **state)
{
    struct rig *rig = *state;
    const struct journal_line bad[] = {header(2), result(7, "no object")};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct journal_scan scan;
        int lines = rig->lines;

        append(rig, bad[i]);
        assert_int_equal(journal_scan_open(&scan, rig->bytes, rig->count), STATUS_OK);
        assert_holds(&scan, rig, lines);
        assert_non_null(scan.wrong);
        journal_scan_close(&scan);
        rig->count = rig->begins[--rig->lines];
    }
}

/* Seals without end, one after the other, in a last line that a forger made. One sum of the whole line for each of them would be some 90 TB to read:
 * hours. */
static void test_journal_scan__a_last_line_of_seals_is_read_once(void **state)
{
    enum { SEALS = 2600000 };
    static const char seal[] = ",\"sum\":\"0123456789abcdef\"}";
    const size_t one = sizeof seal - 1, count = SEALS * one;
    struct rig *rig = *state;
    struct journal_scan scan;
    const int lines = rig->lines;
    char *forged = malloc(count), right[sizeof seal];

    assert_non_null(forged);
    for (size_t i = 0; i < SEALS; i++)
        memcpy(forged + i * one, seal, one);
    append_bytes(rig, forged, count);
    assert_int_equal(journal_scan_open(&scan, rig->bytes, rig->count), STATUS_OK);
    assert_holds(&scan, rig, lines);
    assert_null(scan.wrong);
    assert_int_equal(scan.torn, count);
    journal_scan_close(&scan);

    /* The last but one is right: there was a line, and something else than its newline follows. */
    snprintf(right, sizeof right, ",\"sum\":\"%016" PRIx64 "\"}", digest_line(forged, count - 2 * one, rig->begins[lines]));
    memcpy(rig->bytes + rig->count - 2 * one, right, one);
    assert_int_equal(journal_scan_open(&scan, rig->bytes, rig->count), STATUS_OK);
    assert_holds(&scan, rig, lines);
    assert_non_null(scan.wrong);
    assert_int_equal(scan.torn, 0);
    journal_scan_close(&scan);
    free(forged);
}

static void assert_sealed_is_wrong(struct rig *rig, const char *body, size_t count, const char *wrong)
{
    const int lines = rig->lines;
    struct journal_scan scan;

    append_sealed(rig, body, count);
    assert_int_equal(journal_scan_open(&scan, rig->bytes, rig->count), STATUS_OK);
    assert_holds(&scan, rig, lines);
    assert_non_null(scan.wrong);
    assert_string_equal(scan.wrong, wrong);
    assert_int_equal(scan.torn, 0);
    journal_scan_close(&scan);
    rig->count = rig->begins[--rig->lines];
}

/* The sum says that a line is what was written, not that a journal was written. */
static void test_journal_scan__a_sum_does_not_make_a_result(void **state)
{
#define ID     ",\"request\":\"00000000000003e9\",\"result\":"
#define RESULT "{\"index\":1" ID
    static const char nuls[] = "{\"index\":1,\"request\":\"0000000000\0\0\0\0\0\0\",\"result\":{}";
    static const char *const bodies[] = {
        "",
        "{",
        "{\"index\"",
        "{\"index\":",
        "{\"index\":12",
        "{\"index\":a" ID "{}",
        "{\"index\":-1" ID "{}",
        "{\"index\":01" ID "{}",
        "{\"index\":4294967296" ID "{}",
        "{\"index\":99999999999999999999" ID "{}",
        "{\"index\":1,\"request\":\"123",
        "{\"index\":1,\"request\":\"00000000000003E9\",\"result\":{}",
        "{\"index\":1,\"request\":\"00000000000003e90\",\"result\":{}",
        RESULT,
        RESULT "{",
        RESULT "[}",
        RESULT "{]",
    };

    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        assert_sealed_is_wrong(*state, bodies[i], strlen(bodies[i]), "it is neither a header nor a result");
    assert_sealed_is_wrong(*state, nuls, sizeof nuls - 1, "it is neither a header nor a result");
}

static void test_journal_scan__a_sum_does_not_make_a_header(void **state)
{
#define BEGIN  "{\"tandem_journal\":"
#define HEADER BEGIN "1,\"fence\":3,\"run\":\"000000000000004d\",\"pid\":7,\"host\":\""
#define TERMS  "\",\"results\":1,\"terms\":"
    static const char *const bodies[] = {
        BEGIN "x",
        BEGIN "1",
        BEGIN "01,\"fence\":3",
        HEADER,
        HEADER "node",
        HEADER "no de" TERMS "{}",
        HEADER "no{de" TERMS "{}",
        HEADER "0123456789012345678901234567890123456789012345678901234567890123" TERMS "{}",
        HEADER "node\",\"results\":,\"terms\":{}",
        HEADER "node" TERMS "7",
        HEADER "node" TERMS "{]",
    };

    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        assert_sealed_is_wrong(*state, bodies[i], strlen(bodies[i]), "its header is not one of a journal");
    assert_sealed_is_wrong(*state, BEGIN "2,\"more\":3", strlen(BEGIN "2,\"more\":3"), "it is a journal of another version of tandem");
}

static void test_journal_scan__a_host_is_kept_as_far_as_its_name_is_plain(void **state)
{
    struct rig *rig = *state;
    struct journal_line line = header(3);
    struct journal_scan scan;

    strcpy(line.host, "Az09.-_{}~ \xC3\xA9\"");
    append(rig, line);
    assert_int_equal(journal_scan_open(&scan, rig->bytes, rig->count), STATUS_OK);
    assert_null(scan.wrong);
    assert_string_equal(scan.header.host, "Az09.-________");
    journal_scan_close(&scan);
}

static void test_journal_line__no_bytes_are_no_line(void **state)
{
    struct journal_line line;

    (void)state;
    assert_string_equal(journal_line_read("", 0, 0, &line), "its end is missing");
}

static void test_journal_scan__a_result_needs_a_header(void **state)
{
    struct rig *rig = *state;
    struct journal_scan scan;

    rig->count = 0;
    rig->lines = 0;
    append(rig, result(0, "{}"));
    assert_int_equal(journal_scan_open(&scan, rig->bytes, rig->count), STATUS_OK);
    assert_non_null(scan.wrong);
    assert_int_equal(scan.end, 0);
    journal_scan_close(&scan);
}

static void test_journal_scan__what_was_never_a_journal_is_damage(void **state)
{
    static const char *const texts[] = {"{\"index\":0,\"text\":\"a\"}\n{\"index\":1,\"text\":\"b\"}\n", "notes\n", "notes", "{\"tandem\":1}\n"};
    struct journal_scan scan;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(journal_scan_open(&scan, texts[i], strlen(texts[i])), STATUS_OK);
        assert_non_null(scan.wrong);
        assert_int_equal(scan.end, 0);
        assert_int_equal(scan.entries, 0);
        journal_scan_close(&scan);
    }
}

int main(void)
{
#define RIGGED(test) cmocka_unit_test_setup_teardown(test, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        RIGGED(test_journal_scan__reads_what_was_written),
        RIGGED(test_journal_scan__a_journal_cut_anywhere_holds_its_whole_lines),
        RIGGED(test_journal_scan__no_changed_byte_is_taken),
        RIGGED(test_journal_scan__lines_hold_in_their_place_alone),
        RIGGED(test_journal_scan__a_last_line_that_holds_and_does_not_fit_is_damage),
        RIGGED(test_journal_scan__a_last_line_of_seals_is_read_once),
        RIGGED(test_journal_scan__a_sum_does_not_make_a_result),
        RIGGED(test_journal_scan__a_sum_does_not_make_a_header),
        RIGGED(test_journal_scan__a_host_is_kept_as_far_as_its_name_is_plain),
        RIGGED(test_journal_scan__a_result_needs_a_header),
        cmocka_unit_test(test_journal_line__no_bytes_are_no_line),
        cmocka_unit_test(test_journal_scan__what_was_never_a_journal_is_damage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
