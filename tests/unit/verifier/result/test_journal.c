/* The journal on real files. Calls of the system can be made to fail at the n-th (the linker wraps them), and what was made durable is
 * noted, so that a lost power can be played: a file is cut to what the last sync covered. */
#include "verifier/result/journal.h"
#include "verifier/result/journal_terms.h"

#include "common/base/progress.h"
#include "common/sample/rule.h"
#include "tests/support/capture.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { RESULTS = 60 };
enum call { OPEN, WRITE, SHORT_WRITE, FDATASYNC, FSYNC, FTRUNCATE, RENAME, PREAD, CALLS };

static struct {
    int on;
    enum call call;
    int at;      /* which of these calls fails, from 1 */
    int error;
    int count;   /* so many there were */
    off_t durable; /* size of the journal at its last sync */
} fault;

static int fails(enum call call)
{
    if (!fault.on || call != fault.call)
        return 0;
    fault.count++;
    if (fault.count < fault.at)
        return 0;
    errno = fault.error;
    return 1; /* a disk that is full or broken stays so */
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    return fails(OPEN) ? -1 : __real_open(path, flags, 0600);
}

ssize_t __real_write(int fd, const void *bytes, size_t count);
ssize_t __wrap_write(int fd, const void *bytes, size_t count);
ssize_t __wrap_write(int fd, const void *bytes, size_t count)
{
    if (fd == STDERR_FILENO)
        return __real_write(fd, bytes, count);
    if (fails(SHORT_WRITE))
        return fault.count == fault.at && count > 1 ? __real_write(fd, bytes, count / 2) : -1;
    return fails(WRITE) ? -1 : __real_write(fd, bytes, count);
}

int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
    struct stat found;

    if (fails(FDATASYNC))
        return -1;
    assert_int_equal(fstat(fd, &found), 0);
    fault.durable = found.st_size;
    return 0; /* not really: thousands of them would take minutes */
}

int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    (void)fd;
    return fails(FSYNC) ? -1 : 0;
}

int __real_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size)
{
    return fails(FTRUNCATE) ? -1 : __real_ftruncate(fd, size);
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
    return fails(RENAME) ? -1 : __real_rename(from, to);
}

ssize_t __real_pread(int fd, void *bytes, size_t count, off_t at);
ssize_t __wrap_pread(int fd, void *bytes, size_t count, off_t at);
ssize_t __wrap_pread(int fd, void *bytes, size_t count, off_t at)
{
    return fails(PREAD) ? -1 : __real_pread(fd, bytes, count, at);
}

struct rig {
    char folder[64], output[96], path[112];
    struct request request[RESULTS];
    struct request_list requests;
    struct journal_job job;
    char *whole; /* what the output must be */
};

static struct journal *waited_for; /* the job that ends while another one waits for it */

int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)time;
    (void)left;
    assert_non_null(waited_for);
    assert_int_equal(journal_finish(waited_for), STATUS_OK);
    assert_int_equal(journal_close(waited_for), STATUS_OK);
    waited_for = NULL;
    return 0;
}

static void line_of(uint32_t index, char text[80])
{
    snprintf(text, 80, "{\"id\":%u,\"index\":%u,\"choices\":[{\"index\":0,\"text\":\"%.*s\"}]}", index, index, (int)(index % 11), "some words");
}

static int open_rig(void **state)
{
    struct rig *rig = calloc(1, sizeof *rig);
    char text[80];

    assert_non_null(rig);
    *state = rig;
    fault.on = 0;
    snprintf(rig->folder, sizeof rig->folder, "/tmp/test_journal.XXXXXX");
    assert_non_null(mkdtemp(rig->folder));
    snprintf(rig->output, sizeof rig->output, "%s/out.jsonl", rig->folder);
    snprintf(rig->path, sizeof rig->path, "%s.journal", rig->output);
    rig->whole = calloc(RESULTS, 80);
    for (uint32_t i = 0; i < RESULTS; i++) {
        rig->request[i] = (struct request){.index = 100 + i, .digest = 7 * i};
        line_of(100 + i, text);
        strcat(strcat(rig->whole, text), "\n");
    }
    rig->requests = (struct request_list){.request = rig->request, .count = RESULTS};
    rig->job = (struct journal_job){.requests = &rig->requests, .terms = "{\"seed\":7,\"target\":\"a\"}", .run = 5, .host = "here"};
    return 0;
}

static int close_rig(void **state)
{
    struct rig *rig = *state;
    char line[160];

    snprintf(line, sizeof line, "rm -rf '%s'", rig->folder);
    assert_int_equal(system(line), 0);
    free(rig->whole);
    free(rig);
    return 0;
}

/* A job that ends after it has added `most` results, out of order as they finish; *acknowledged: results that are durable. */
static enum status run(struct rig *rig, int resume, int most, int *acknowledged, int *resumed)
{
    struct journal journal;
    enum status status = journal_open(&journal, rig->output, resume), closed;
    char text[80];

    *acknowledged = 0;
    *resumed = 0;
    if (status == STATUS_OK)
        status = journal_begin(&journal, &rig->job);
    if (status == STATUS_OK)
        *resumed = *acknowledged = journal.resumed;
    for (int i = 0; i < RESULTS && most > 0 && status == STATUS_OK; i++) {
        int at = i * 7 % RESULTS;

        if (journal_has(&journal, at))
            continue;
        line_of(rig->request[at].index, text);
        status = journal_add(&journal, &rig->request[at], text);
        if (status == STATUS_OK && i % 3 == 0)
            status = journal_sync(&journal, 1);
        if (status == STATUS_OK && !journal.dirty)
            *acknowledged = journal.held;
        most--;
    }
    if (status == STATUS_OK)
        status = journal_finish(&journal);
    closed = journal_close(&journal);
    return status == STATUS_OK ? closed : status;
}

static enum status run_quietly(struct rig *rig, int resume, int most, char said[2048])
{
    struct capture capture;
    enum status status;
    int acknowledged, resumed;

    capture_begin(&capture);
    status = run(rig, resume, most, &acknowledged, &resumed);
    capture_end(&capture, said, 2048);
    return status;
}

static int exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static char *read_all(const char *path, size_t *count)
{
    FILE *file = fopen(path, "r");
    char *bytes = calloc(1, 1 << 20);

    assert_non_null(file);
    assert_non_null(bytes);
    *count = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

static void assert_whole(const struct rig *rig)
{
    size_t count;
    char *bytes = read_all(rig->output, &count), partial[128];

    assert_string_equal(bytes, rig->whole);
    assert_false(exists(rig->path));
    snprintf(partial, sizeof partial, "%s.partial", rig->output);
    assert_false(exists(partial));
    free(bytes);
}

static void put(const char *path, const char *bytes, size_t count)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    fclose(file);
}

static void test_journal__output_is_in_order_and_the_journal_goes(void **state)
{
    struct rig *rig = *state;
    struct stat found;
    char said[2048];

    assert_int_equal(run_quietly(rig, 0, RESULTS, said), STATUS_OK);
    assert_string_equal(said, "");
    assert_whole(rig);
    assert_int_equal(stat(rig->output, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600);
}

static void test_journal__output_is_not_there_before_all_results_are(void **state)
{
    struct rig *rig = *state;
    struct stat found;
    char said[2048];

    assert_int_equal(run_quietly(rig, 0, RESULTS - 1, said), STATUS_OK);
    assert_false(exists(rig->output));
    assert_int_equal(stat(rig->path, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600);
    assert_int_equal(run_quietly(rig, 1, RESULTS, said), STATUS_OK);
    assert_whole(rig);
}

/* Cut at every byte, the journal is gone on from, and the output is the same each time. */
static void test_journal__goes_on_from_wherever_it_was_cut(void **state)
{
    struct rig *rig = *state;
    size_t count;
    char said[2048], *bytes;

    assert_int_equal(run_quietly(rig, 0, 20, said), STATUS_OK);
    assert_int_equal(run_quietly(rig, 1, RESULTS - 21, said), STATUS_OK);
    bytes = read_all(rig->path, &count);
    for (size_t cut = 0; cut <= count; cut++) {
        put(rig->path, bytes, cut);
        assert_int_equal(run_quietly(rig, 1, RESULTS, said), STATUS_OK);
        assert_whole(rig);
        unlink(rig->output);
    }
    free(bytes);
}

static int last_byte(const char *path)
{
    FILE *file = fopen(path, "rb");
    int byte;

    assert_non_null(file);
    assert_int_equal(fseek(file, -1, SEEK_END), 0);
    byte = fgetc(file);
    fclose(file);
    return byte;
}

/* Every call that can fail, failing from the n-th on, for n = 1, 2, 3 ... until the job needs no more of them. Then the power is lost, too.
 * What was acknowledged is there, and a job that goes on ends with the whole output. */
static void fail_from_every_call(struct rig *rig, enum call call, int error)
{
    char said[2048];
    int at = 1, acknowledged, resumed, unused;
    enum status status;
    struct capture capture;

    do {
        unlink(rig->output);
        unlink(rig->path);
        assert_int_equal(run_quietly(rig, 0, 10, said), STATUS_OK); /* some results of an earlier job */
        fault.on = 1;
        fault.call = call;
        fault.at = at;
        fault.error = error;
        fault.count = 0;
        capture_begin(&capture);
        status = run(rig, 1, RESULTS, &acknowledged, &resumed);
        capture_end(&capture, said, sizeof said);
        fault.on = 0;
        assert_int_equal(status, fault.count < at ? STATUS_OK : STATUS_IO);
        if (status != STATUS_OK)
            assert_non_null(strstr(said, error == EIO ? "Input/output error" : "No space left"));
        if (exists(rig->path) && call != FDATASYNC) {
            struct stat found;

            assert_int_equal(stat(rig->path, &found), 0);
            assert_true(found.st_size >= fault.durable);
            if (call == SHORT_WRITE)
                assert_int_equal(last_byte(rig->path), '\n'); /* the part that was written is taken back */
            assert_int_equal(truncate(rig->path, fault.durable), 0);
        }
        capture_begin(&capture);
        assert_int_equal(run(rig, 1, RESULTS, &unused, &resumed), STATUS_OK);
        capture_end(&capture, said, sizeof said);
        if (exists(rig->path))
            assert_true(resumed >= acknowledged);
        assert_whole(rig);
        at++;
    } while (status != STATUS_OK);
    assert_true(at > 2); /* there was such a call */
}

static void test_journal__loses_nothing_when_calls_fail(void **state)
{
    for (int call = 0; call < CALLS; call++) {
        fail_from_every_call(*state, (enum call)call, ENOSPC);
        fail_from_every_call(*state, (enum call)call, EIO);
    }
}

static void test_journal__an_existing_one_is_refused_without_resume(void **state)
{
    struct rig *rig = *state;
    char said[2048];

    assert_int_equal(run_quietly(rig, 0, 12, said), STATUS_OK);
    assert_int_equal(run_quietly(rig, 0, RESULTS, said), STATUS_USAGE);
    capture_assert_one_line(said, "holds 12 results of 60: add --resume to go on, or remove it");
    assert_int_equal(run_quietly(rig, 1, RESULTS, said), STATUS_OK);
    assert_whole(rig);
}

static void test_journal__another_job_is_refused_by_what_differs(void **state)
{
    struct rig *rig = *state;
    char said[2048];

    assert_int_equal(run_quietly(rig, 0, 12, said), STATUS_OK);
    rig->job.terms = "{\"seed\":8,\"target\":\"a\"}";
    assert_int_equal(run_quietly(rig, 1, RESULTS, said), STATUS_DATA);
    capture_assert_one_line(said, "seed is 7 there and 8 here");
    rig->job.terms = "{\"seed\":7,\"target\":\"b\"}";
    assert_int_equal(run_quietly(rig, 1, RESULTS, said), STATUS_DATA);
    capture_assert_one_line(said, "their target model was another one");
    rig->job.terms = "{\"seed\":7,\"target\":\"a\",\"more\":1}";
    assert_int_equal(run_quietly(rig, 1, RESULTS, said), STATUS_DATA);
    capture_assert_one_line(said, "more is not given there and 1 here");
    rig->job.terms = "{\"seed\":7,\"target\":\"a\",\"accept\":1}"; /* a choice has its name */
    assert_int_equal(run_quietly(rig, 1, RESULTS, said), STATUS_DATA);
    capture_assert_one_line(said, "accept is not given there and coupled here");
    rig->job.terms = "{\"target\":\"a\",\"seed\":7}"; /* the same, in another order */
    assert_int_equal(run_quietly(rig, 1, RESULTS, said), STATUS_OK);
    assert_whole(rig);
}

static void test_journal__damage_is_told_with_its_place_and_left_alone(void **state)
{
    struct rig *rig = *state;
    char said[2048], part[64], *bytes, *after;
    size_t count, half;

    assert_int_equal(run_quietly(rig, 0, 30, said), STATUS_OK);
    bytes = read_all(rig->path, &count);
    half = (size_t)((char *)memchr(bytes + count / 2, '\n', count / 2) - bytes) + 1; /* where a line begins */
    bytes[half + 20] ^= 1;
    put(rig->path, bytes, count);
    assert_int_equal(run_quietly(rig, 1, RESULTS, said), STATUS_IO);
    snprintf(part, sizeof part, "is damaged at byte %zu", half);
    capture_assert_one_line(said, part);
    after = read_all(rig->path, &half);
    assert_int_equal(half, count);
    assert_memory_equal(after, bytes, count);
    free(bytes);
    free(after);
}

static void test_journal__a_torn_line_is_told_once_and_dropped(void **state)
{
    struct rig *rig = *state;
    char said[2048], *bytes;
    size_t count;

    assert_int_equal(run_quietly(rig, 0, 30, said), STATUS_OK);
    bytes = read_all(rig->path, &count);
    put(rig->path, bytes, count - 5);
    free(bytes);
    assert_int_equal(run_quietly(rig, 1, 0, said), STATUS_OK);
    assert_non_null(strstr(said, "its last line was cut off at byte"));
    assert_int_equal(run_quietly(rig, 1, RESULTS, said), STATUS_OK);
    assert_null(strstr(said, "cut off"));
    assert_whole(rig);
}

static void test_journal__a_result_that_is_there_twice_is_damage(void **state)
{
    struct rig *rig = *state;
    struct journal journal;
    struct capture capture;
    char said[2048], text[80];

    line_of(103, text);
    capture_begin(&capture);
    assert_int_equal(journal_open(&journal, rig->output, 0), STATUS_OK);
    assert_int_equal(journal_begin(&journal, &rig->job), STATUS_OK);
    assert_int_equal(journal_add(&journal, &rig->request[3], text), STATUS_OK);
    assert_int_equal(journal_add(&journal, &rig->request[3], text), STATUS_OK);
    assert_int_equal(journal_close(&journal), STATUS_OK);
    capture_end(&capture, said, sizeof said);
    assert_int_equal(run_quietly(rig, 1, RESULTS, said), STATUS_IO);
    capture_assert_one_line(said, "result 103 is there twice");
}

/* The input was changed between two jobs without its terms showing it. */
static void test_journal__a_result_of_another_request_is_damage(void **state)
{
    struct rig *rig = *state;
    struct journal journal;
    struct capture capture;
    char said[2048];

    capture_begin(&capture);
    assert_int_equal(journal_open(&journal, rig->output, 0), STATUS_OK);
    assert_int_equal(journal_begin(&journal, &rig->job), STATUS_OK);
    rig->request[3].digest++;
    assert_int_equal(journal_add(&journal, &rig->request[3], "{}"), STATUS_OK);
    rig->request[3].digest--;
    assert_int_equal(journal_close(&journal), STATUS_OK);
    capture_end(&capture, said, sizeof said);
    assert_int_equal(run_quietly(rig, 1, RESULTS, said), STATUS_IO);
    capture_assert_one_line(said, "result 103 is of no request");
}

#define TERMS "{\"seed\":7,\"target\":\"a\"}"

static struct journal_line header_of(uint32_t fence, uint32_t results, const char *terms)
{
    return (struct journal_line){
        .kind = JOURNAL_LINE_HEADER, .fence = fence, .run = 5, .pid = 1, .host = "here", .results = results, .text = terms, .length = strlen(terms)};
}

static struct journal_line result_of(uint32_t index, uint64_t request, const char *text)
{
    return (struct journal_line){.kind = JOURNAL_LINE_RESULT, .index = index, .request = request, .text = text, .length = strlen(text)};
}

/* A journal of lines[count], each under its own sum. */
static void write_lines(const struct rig *rig, const struct journal_line *lines, int count)
{
    FILE *file = fopen(rig->path, "w");
    uint64_t offset = 0;

    assert_non_null(file);
    for (int i = 0; i < count; i++) {
        size_t size;
        char *bytes = journal_line_write(&lines[i], offset, &size);

        assert_non_null(bytes);
        assert_int_equal(fwrite(bytes, 1, size, file), size);
        offset += size;
        free(bytes);
    }
    fclose(file);
}

/* Refused with a line that has `part`, and left as it was. */
static void assert_refused(struct rig *rig, enum status expected, const char *part)
{
    char said[2048], *before, *after;
    size_t count, later;
    enum status status;

    before = read_all(rig->path, &count);
    status = run_quietly(rig, 1, RESULTS, said);
    if (status != expected)
        fail_msg("'%s' was expected with %d, and it ended with %d: %s", part, expected, status, said);
    capture_assert_one_line(said, part);
    assert_false(exists(rig->output));
    after = read_all(rig->path, &later);
    assert_int_equal(later, count);
    assert_memory_equal(before, after, count);
    free(before);
    free(after);
}

/* Two headers of two jobs, or one header alone that is not what it says; a result behind each, for without one a journal is begun anew. */
static void test_journal__a_header_that_lies_is_refused(void **state)
{
    static const struct {
        struct journal_line first, second;
        enum status status;
        const char *part;
    } lies[] = {
#define HEADER(number, of, words) \
    {.kind = JOURNAL_LINE_HEADER, .fence = (number), .run = 5, .host = "here", .results = (of), .text = (words), .length = sizeof(words) - 1}
        {HEADER(1, RESULTS, "{\"seed\":8,\"target\":\"a\"}"), HEADER(2, RESULTS, TERMS), STATUS_IO, "it is of another job than the header before it"},
        {HEADER(1, RESULTS, TERMS), HEADER(2, RESULTS + 1, TERMS), STATUS_IO, "it is of another job than the header before it"},
        {HEADER(1, RESULTS, TERMS), HEADER(2, RESULTS, "{\"seed\":7,\"target\":\"b\"}"), STATUS_IO, "it is of another job than the header before it"},
        {HEADER(1, UINT32_MAX, TERMS), HEADER(2, UINT32_MAX, TERMS), STATUS_IO, "its header is of 4294967295 results, and there are to be 60"},
        {HEADER(1, 0, TERMS), HEADER(2, 0, TERMS), STATUS_IO, "its header is of 0 results, and there are to be 60"},
        {HEADER(1, RESULTS, TERMS), HEADER(UINT32_MAX, RESULTS, TERMS), STATUS_IO, "no fencing number is above its own"},
        {HEADER(1, RESULTS, "{}"), HEADER(2, RESULTS, "{}"), STATUS_DATA, "seed is not given there and 7 here"},
        {HEADER(1, RESULTS, "{,}"), HEADER(2, RESULTS, "{,}"), STATUS_DATA, "what they depend on cannot be read"},
        {HEADER(1, RESULTS, "{\"seed\":-7}"), HEADER(2, RESULTS, "{\"seed\":-7}"), STATUS_DATA, "seed is not given there and 7 here"},
        {HEADER(1, RESULTS, "{\"seed\":7,\"target\":\"a\",\"accept\":9223372036854775807}"),
         HEADER(2, RESULTS, "{\"seed\":7,\"target\":\"a\",\"accept\":9223372036854775807}"), STATUS_DATA,
         "accept is 9223372036854775807 there and not given here"},
    };
    struct rig *rig = *state;
    char text[2][80];

    line_of(100, text[0]);
    line_of(101, text[1]);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        const struct journal_line lines[] = {lies[i].first, result_of(100, 0, text[0]), lies[i].second, result_of(101, 7, text[1])};

        write_lines(rig, lines, 4);
        assert_refused(rig, lies[i].status, lies[i].part);
    }
}

static void test_journal__a_result_that_lies_is_refused(void **state)
{
    struct rig *rig = *state;
    static const struct {
        uint32_t index;
        uint64_t request;
        const char *text, *part;
    } lies[] = {
        {102, 14, "{}", "what is kept as result 102 is of another id or index"},
        {102, 14, "{\"id\":101,\"index\":102,\"text\":\"\"}", "of another id or index"},
        {102, 14, "{\"id\":102,\"index\":101,\"text\":\"\"}", "of another id or index"},
        {102, 14, "{\"id\":102,\"index\":1020,\"text\":\"\"}", "of another id or index"},
        {102, 14, "{\"id\":\"102\",\"index\":102,\"text\":\"\"}", "of another id or index"},
        {102, 14, "{\"id\":\"batch_req_102\",\"custom_id\":102,\"error\":null}", "of another id or index"},
        {102, 14, "{\"id\":102,\"index\":102,\"text\":\"}", "what is kept as result 102 is not valid JSON"},
        {102, 14, "{\"id\":102,\"index\":102,}", "not valid JSON"},
        {102, 14, "{\"id\":102,\"index\":102,\"text\":\"\"}{}", "not valid JSON"},
        {102, 14, "{\"id\":102,\"index\":102,\"text\":\"\xff\"}", "not valid JSON"},
        {102, 14, "{\"id\":102,\"index\":102,\"index\":103}", "not valid JSON"},
        {102, 15, "{\"id\":102,\"index\":102,\"text\":\"\"}", "result 102 is of no request"},
        {99, 0, "{\"id\":99,\"index\":99,\"text\":\"\"}", "result 99 is of no request"},
        {0, 0, "{\"id\":0,\"index\":0,\"text\":\"\"}", "result 0 is of no request"},
        {160, 420, "{\"id\":160,\"index\":160,\"text\":\"\"}", "result 160 is of no request"},
        {UINT32_MAX, 0, "{\"id\":4294967295,\"index\":4294967295,\"text\":\"\"}", "result 4294967295 is of no request"},
        {100, 0, "{\"id\":100,\"index\":100,\"text\":\"\"}", "result 100 is there twice"},
    };
    char text[80];

    line_of(100, text);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        const struct journal_line lines[] = {header_of(1, RESULTS, TERMS), result_of(100, 0, text),
                                             result_of(lies[i].index, lies[i].request, lies[i].text)};

        write_lines(rig, lines, 3);
        assert_refused(rig, STATUS_IO, lies[i].part);
    }
}

/* As of a part of the input that has none. */
static void test_journal__results_for_no_requests_are_refused(void **state)
{
    struct rig *rig = *state;
    const struct journal_line lines[] = {header_of(1, 0, TERMS), result_of(0, 0, "{\"id\":0,\"index\":0,\"text\":\"\"}")};
    struct journal journal;
    struct capture capture;
    char said[2048];

    rig->requests = (struct request_list){0};
    write_lines(rig, lines, 2);
    capture_begin(&capture);
    assert_int_equal(journal_open(&journal, rig->output, 1), STATUS_OK);
    assert_int_equal(journal_begin(&journal, &rig->job), STATUS_IO);
    assert_int_equal(journal_close(&journal), STATUS_OK);
    capture_end(&capture, said, sizeof said);
    capture_assert_one_line(said, "result 0 is of no request");
}

/* Terms that mean the same, in another order: the headers behind keep to the words of the first. */
static void test_journal__headers_of_one_job_have_the_same_words(void **state)
{
    struct rig *rig = *state;
    char said[2048];

    assert_int_equal(run_quietly(rig, 0, 12, said), STATUS_OK);
    rig->job.terms = "{\"target\":\"a\",\"seed\":7}";
    assert_int_equal(run_quietly(rig, 1, 12, said), STATUS_OK);
    assert_int_equal(run_quietly(rig, 1, RESULTS, said), STATUS_OK);
    assert_whole(rig);
}

/* Results of every form go on as what they are: other ids, and lines of OpenAI's. */
static void test_journal__results_of_any_id_go_on(void **state)
{
    static const struct {
        char *id;
        int openai;
        const char *text;
    } rows[] = {{"\"a\\u0000\\\"\"", 0, "{\"id\":\"a\\u0000\\\"\",\"index\":100,\"text\":\"\\u0000\"}"},
                {"1.2345678901234", 0, "{\"id\":1.2345678901234,\"index\":100,\"text\":\"\"}"},
                {"{\"b\":[1,{}],\"a\":null}", 0, "{\"id\":{\"b\":[1,{}],\"a\":null},\"index\":100,\"text\":\"\"}"},
                {"\"r-1\"", 1, "{\"id\":\"batch_req_100\",\"custom_id\":\"r-1\",\"error\":null}"},
                {NULL, 1, "{\"id\":\"batch_req_100\",\"custom_id\":null,\"error\":null}"}};
    struct rig *rig = *state;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct journal_line lines[] = {header_of(1, RESULTS, TERMS), result_of(100, 0, rows[i].text)};
        char said[2048];

        rig->request[0].id = rows[i].id;
        rig->request[0].openai = rows[i].openai;
        write_lines(rig, lines, 2);
        assert_int_equal(run_quietly(rig, 1, RESULTS, said), STATUS_OK);
        assert_true(exists(rig->output));
        unlink(rig->output);
    }
}

static void test_journal__one_job_at_a_time(void **state)
{
    struct rig *rig = *state;
    struct journal journal;
    struct journal_file second;
    struct capture capture;
    char said[2048], part[64];

    capture_begin(&capture);
    assert_int_equal(journal_open(&journal, rig->output, 0), STATUS_OK);
    assert_int_equal(journal_begin(&journal, &rig->job), STATUS_OK);
    capture_end(&capture, said, sizeof said);
    capture_begin(&capture);
    assert_int_equal(journal_file_claim(&second, rig->output, 0), STATUS_IO);
    capture_end(&capture, said, sizeof said);
    snprintf(part, sizeof part, "out.jsonl is being written by another job, process %d on here", (int)getpid());
    capture_assert_one_line(said, part);
    journal_file_close(&second);
    assert_true(exists(rig->path));
    assert_int_equal(journal_close(&journal), STATUS_OK);
    assert_int_equal(journal_file_claim(&second, rig->output, 0), STATUS_OK);
    journal_file_close(&second);
}

/* One that was just begun, say: there is no line of it yet that says who it is, or that would be read. */
static void test_journal__each_look_at_another_jobs_lock_is_progress(void **state)
{
    struct rig *rig = *state;
    struct journal_file file;
    struct capture capture;
    char said[2048];
    uint64_t before;
    int other = open(rig->path, O_RDWR | O_CREAT, 0600);

    assert_true(other >= 0 && flock(other, LOCK_EX) == 0);
    before = progress_look().count;
    capture_begin(&capture);
    assert_int_equal(journal_file_claim(&file, rig->output, 0), STATUS_IO);
    capture_end(&capture, said, sizeof said);
    assert_true(progress_look().count > before);
    assert_string_equal(progress_look().doing, "waiting for another job to end");
    journal_file_close(&file);
    close(other);
}

static void test_journal__each_line_of_the_output_is_progress(void **state)
{
    struct rig *rig = *state;
    struct journal journal;
    uint64_t before;
    char text[80];

    assert_int_equal(journal_open(&journal, rig->output, 0), STATUS_OK);
    assert_int_equal(journal_begin(&journal, &rig->job), STATUS_OK);
    for (int i = 0; i < RESULTS; i++) {
        line_of(rig->request[i].index, text);
        assert_int_equal(journal_add(&journal, &rig->request[i], text), STATUS_OK);
    }
    before = progress_look().count;
    assert_int_equal(journal_finish(&journal), STATUS_OK);
    assert_true(progress_look().count - before >= RESULTS);
    assert_int_equal(journal_close(&journal), STATUS_OK);
    assert_whole(rig);
}

/* A first job that adds `most` results, and ends while the second waits. */
static enum status run_second(struct rig *rig, int most, const char *terms, int resume, char said[2048])
{
    struct journal first;
    char text[80];

    assert_int_equal(journal_open(&first, rig->output, 0), STATUS_OK);
    assert_int_equal(journal_begin(&first, &rig->job), STATUS_OK);
    for (int i = 0; i < most; i++) {
        line_of(rig->request[i].index, text);
        assert_int_equal(journal_add(&first, &rig->request[i], text), STATUS_OK);
    }
    waited_for = &first;
    rig->job.terms = terms;
    return run_quietly(rig, resume, 0, said);
}

/* What was found when the wait began does not count. */
static void test_journal__who_waited_judges_what_the_other_job_left(void **state)
{
    struct rig *rig = *state;
    const char *same = rig->job.terms, *other = "{\"seed\":8,\"target\":\"a\"}";
    char said[2048];

    assert_int_equal(run_second(rig, RESULTS, other, 1, said), STATUS_DATA);
    assert_non_null(strstr(said, "is complete, but of another job: seed is 7 there and 8 here"));
    assert_whole(rig);
    assert_int_equal(unlink(rig->output), 0);
    rig->job.terms = same;
    assert_int_equal(run_second(rig, RESULTS, same, 1, said), STATUS_OK);
    assert_non_null(strstr(said, "is complete (60 results): nothing to do"));
    assert_whole(rig);
    assert_int_equal(unlink(rig->output), 0);
    assert_int_equal(run_second(rig, 12, same, 0, said), STATUS_USAGE);
    assert_non_null(strstr(said, "holds 12 results of 60: add --resume to go on, or remove it"));
    assert_int_equal(run_quietly(rig, 1, RESULTS, said), STATUS_OK);
    assert_whole(rig);
}

/* Where locks do not hold, a writer sees that the journal has grown under it. */
static void test_journal__a_fenced_writer_stops(void **state)
{
    struct rig *rig = *state;
    struct journal journal;
    struct capture capture;
    char said[2048], text[80], *bytes, *after;
    size_t count, later;

    capture_begin(&capture);
    line_of(100, text);
    assert_int_equal(journal_open(&journal, rig->output, 0), STATUS_OK);
    assert_int_equal(journal_begin(&journal, &rig->job), STATUS_OK);
    assert_int_equal(journal_add(&journal, &rig->request[0], text), STATUS_OK);
    assert_int_equal(flock(journal.file.fd, LOCK_UN), 0); /* as on a file system without locks */
    assert_int_equal(run_quietly(rig, 1, 10, said), STATUS_OK);
    bytes = read_all(rig->path, &count);
    assert_int_equal(journal_add(&journal, &rig->request[1], "{}"), STATUS_IO);
    assert_int_equal(journal_close(&journal), STATUS_OK);
    capture_end(&capture, said, sizeof said);
    capture_assert_one_line(said, "changed by another job");
    after = read_all(rig->path, &later);
    assert_int_equal(later, count);
    assert_non_null(strstr(bytes, "\"fence\":1,"));
    assert_non_null(strstr(bytes, "\"fence\":2,"));
    free(bytes);
    free(after);
}

static void test_journal__a_removed_one_ends_the_job(void **state)
{
    struct rig *rig = *state;
    struct journal journal;
    struct capture capture;
    char said[2048];

    capture_begin(&capture);
    assert_int_equal(journal_open(&journal, rig->output, 0), STATUS_OK);
    assert_int_equal(journal_begin(&journal, &rig->job), STATUS_OK);
    assert_int_equal(unlink(rig->path), 0);
    assert_int_equal(journal_add(&journal, &rig->request[0], "{}"), STATUS_IO);
    journal_close(&journal);
    capture_end(&capture, said, sizeof said);
    capture_assert_one_line(said, "was removed");
}

/* Where drafts begin to matter by other prompts, these are the difference and not what drafts depend on. */
static void test_journal__other_prompts_are_told_before_what_follows_from_them(void **state)
{
    struct options options = {.rounds.synthetic_acceptance = -1, .rounds.draft_length = -1};
    struct request greedy = {.digest = 1}, drawn = {.digest = 2, .sampling = {.temperature = 1}};
    struct request_list lists[] = {{.request = &greedy, .count = 1}, {.request = &drawn, .count = 1}};
    char *terms[3], reason[256];

    (void)state;
    for (int i = 0; i < 2; i++)
        assert_non_null(terms[i] = journal_terms_write(&(struct journal_terms){.options = &options, .requests = &lists[i]}));
    assert_int_equal(journal_terms_compare(terms[0], strlen(terms[0]), terms[1], reason, sizeof reason), STATUS_DATA);
    assert_string_equal(reason, "their prompts were others");
    options.rounds.draft_length = 3;
    assert_non_null(terms[2] = journal_terms_write(&(struct journal_terms){.options = &options, .requests = &lists[1]}));
    assert_int_equal(journal_terms_compare(terms[1], strlen(terms[1]), terms[2], reason, sizeof reason), STATUS_DATA);
    assert_string_equal(reason, "draft-length is not given there and 3 here");
    for (int i = 0; i < 3; i++)
        free(terms[i]);
}

static void test_journal__all_that_differs_is_named(void **state)
{
    static const struct {
        const char *there, *here, *reason;
    } cases[] = {
        {"{\"context\":8,\"seed\":\"7\",\"prompts\":2}", "{\"context\":8,\"seed\":\"8\",\"prompts\":2}", "seed is \"7\" there and \"8\" here"},
        {"{\"context\":8,\"top-k\":1,\"prompts\":2,\"input\":\"a\"}", "{\"context\":9,\"top-k\":2,\"prompts\":2,\"input\":\"b\",\"draft\":\"c\"}",
         "context is 8 there and 9 here; others, too: top-k, prompts"},
        {"{\"top-k\":1,\"prompts\":2,\"input\":\"a\"}", "{\"top-k\":1,\"prompts\":3,\"input\":\"b\"}", "prompts is 2 there and 3 here"},
    };
    char reason[256];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(journal_terms_compare(cases[i].there, strlen(cases[i].there), cases[i].here, reason, sizeof reason), STATUS_DATA);
        assert_string_equal(reason, cases[i].reason);
    }
    assert_int_equal(journal_terms_compare(cases[1].there, strlen(cases[1].there), cases[1].here, reason, 20), STATUS_DATA);
    assert_string_equal(reason, "context is 8 there ");
}

/* What results of `requests` depend on, by a command line of one option. */
static char *terms_of(const char *option, const struct request_list *requests)
{
    char program[] = "program", word[128], *argv[] = {program, word, NULL}, *terms;
    struct options options;

    snprintf(word, sizeof word, "%s", option);
    assert_int_equal(options_parse(2, argv, &options), STATUS_OK);
    assert_non_null(terms = journal_terms_write(&(struct journal_terms){.options = &options, .requests = requests}));
    options_release(&options);
    return terms;
}

enum { OF_NONE, OF_LENIENT, OF_DRAWN, OF_ALL }; /* requests whose results depend on it: the last so many */

static void test_journal__terms_have_what_results_depend_on(void **state)
{
    static const struct {
        const char *one, *other;
        int of;
    } rows[] = {
        {"--seed=1", "--seed=2", OF_ALL},
        {"--temperature=1", "--temperature=0.5", OF_ALL},
        {"--accept=rejection", "--accept=coupled", OF_ALL},
        {"--max-tokens=1", "--max-tokens=2", OF_ALL},
        {"--stop=a", "--stop=b", OF_ALL},
        {"--stop-token-id=1", "--stop-token-id=2", OF_ALL},
        {"--logit-bias=1:2", "--logit-bias=1:3", OF_ALL},
        {"--template=llama2", "--template=chatml", OF_ALL},
        {"--first-index=1", "--first-index=2", OF_ALL},
        {"--quantise=none", "--quantise=q8_0", OF_ALL},
        {"--cache=f32", "--cache=bf16", OF_ALL},
        {"--cache=f32", "--cache=auto", OF_NONE},
        {"--synthetic-acceptance=0", "--seed=0", OF_ALL},
        {"--lenience=0.2", "--lenience=0.4", OF_LENIENT}, /* the number of a rule that nothing else is decided by */
        {"--typical-delta=0.2", "--typical-delta=0.4", OF_NONE},
        {"--draft-length=1", "--draft-length=2", OF_DRAWN},
        {"--support=1", "--support=2", OF_DRAWN},
        {"--draft-vocabulary=10", "--draft-vocabulary=20", OF_DRAWN},
        {"--draft-quantise=none", "--draft-quantise=q4_0", OF_DRAWN},
        {"--draft-temperature=1", "--draft-temperature=0", OF_DRAWN},
        {"--prompts=a", "--prompts=b", OF_NONE}, /* the requests of both are compared */
        {"--output=a", "--output=b", OF_NONE},
        {"--drain-seconds=1", "--drain-seconds=2", OF_NONE},
        {"--max-sequences=1", "--max-sequences=2", OF_NONE},
        {"--trace=a", "--trace=b", OF_NONE},
        {"--verbose", "--quiet", OF_NONE},
    };
    struct request requests[] = {{.digest = 1}, {.digest = 2, .sampling = {.temperature = 1}}, {.digest = 3, .sampling = {.temperature = 1}}};
    static const char *const are[] = {"greedy", "drawn", "lenient"};

    (void)state;
    requests[2].sampling.accept = (enum accept_mode)rule_find("lenience", strlen("lenience"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int of = 0; of < 3; of++) {
            struct request_list list = {.request = &requests[of], .count = 1};
            char *one = terms_of(rows[i].one, &list), *other = terms_of(rows[i].other, &list);

            if ((strcmp(one, other) != 0) != (of >= OF_ALL - rows[i].of))
                fail_msg("%s and %s, %s: %s and %s", rows[i].one, rows[i].other, are[of], one, other);
            free(one);
            free(other);
        }
}

static void test_journal__a_complete_output_is_left_alone(void **state)
{
    struct rig *rig = *state;
    char said[2048], terms[sizeof rig->output + sizeof ".terms"];
    struct stat before, after;

    assert_int_equal(run_quietly(rig, 0, RESULTS, said), STATUS_OK);
    assert_int_equal(stat(rig->output, &before), 0);
    assert_int_equal(run_quietly(rig, 1, RESULTS, said), STATUS_OK);
    capture_assert_one_line(said, "is complete (60 results): nothing to do\n");
    assert_int_equal(stat(rig->output, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    rig->requests.count = RESULTS - 1;
    assert_int_equal(run_quietly(rig, 1, RESULTS, said), STATUS_DATA);
    capture_assert_one_line(said, "is not the result of these 59 prompts");
    rig->requests.count = RESULTS;
    rig->job.terms = "{\"seed\":8,\"target\":\"a\"}";
    assert_int_equal(run_quietly(rig, 1, RESULTS, said), STATUS_DATA);
    capture_assert_one_line(said, "is complete, but of another job: seed is 7 there and 8 here");
    assert_int_equal(stat(rig->output, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    snprintf(terms, sizeof terms, "%s.terms", rig->output);
    assert_int_equal(unlink(terms), 0);
    assert_int_equal(run_quietly(rig, 1, RESULTS, said), STATUS_OK);
    capture_assert_one_line(said, "whether prompts and options are those that made it is not known without");
    rig->request[7].index++; /* its line is of another one */
    assert_int_equal(run_quietly(rig, 1, RESULTS, said), STATUS_DATA);
    capture_assert_one_line(said, "is not the result of these 60 prompts");
    rig->request[7].index--;
    assert_int_equal(run_quietly(rig, 0, RESULTS, said), STATUS_OK); /* without --resume it is replaced */
    assert_whole(rig);
}

static void test_journal__is_for_files_alone(void **state)
{
    struct rig *rig = *state;

    assert_true(journal_is_for(rig->output));
    assert_false(journal_is_for("-"));
    assert_false(journal_is_for(NULL));
    assert_false(journal_is_for("/dev/full"));
    assert_false(journal_is_for("/dev/stdout"));
    assert_false(journal_is_for(rig->folder));
    put(rig->output, "", 0);
    assert_true(journal_is_for(rig->output));
    assert_int_equal(symlink(rig->output, rig->path), 0);
    assert_false(journal_is_for(rig->path));
}

/* What somebody else put in the way is not followed. */
static void test_journal__links_in_its_place_are_refused(void **state)
{
    struct rig *rig = *state;
    char said[2048], target[128], partial[128];

    snprintf(target, sizeof target, "%s/other", rig->folder);
    snprintf(partial, sizeof partial, "%s.partial", rig->output);
    put(target, "precious", 8);
    assert_int_equal(symlink(target, rig->path), 0);
    assert_int_equal(run_quietly(rig, 0, RESULTS, said), STATUS_IO);
    capture_assert_one_line(said, "cannot open");
    assert_int_equal(unlink(rig->path), 0);
    assert_int_equal(symlink(target, partial), 0);
    assert_int_equal(run_quietly(rig, 0, RESULTS, said), STATUS_OK);
    assert_whole(rig);
    size_t count;
    char *bytes = read_all(target, &count);
    assert_string_equal(bytes, "precious");
    free(bytes);
}

static void test_journal__a_folder_that_takes_no_files_is_told_at_once(void **state)
{
    struct journal journal;
    struct capture capture;
    char said[2048];

    (void)state;
    capture_begin(&capture);
    assert_int_equal(journal_open(&journal, "/proc/out.jsonl", 0), STATUS_IO);
    journal_close(&journal);
    capture_end(&capture, said, sizeof said);
    capture_assert_one_line(said, "/proc/out.jsonl.journal");
}

int main(void)
{
#define RIGGED(test) cmocka_unit_test_setup_teardown(test, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        RIGGED(test_journal__output_is_in_order_and_the_journal_goes),
        RIGGED(test_journal__output_is_not_there_before_all_results_are),
        RIGGED(test_journal__goes_on_from_wherever_it_was_cut),
        RIGGED(test_journal__loses_nothing_when_calls_fail),
        RIGGED(test_journal__an_existing_one_is_refused_without_resume),
        RIGGED(test_journal__another_job_is_refused_by_what_differs),
        RIGGED(test_journal__damage_is_told_with_its_place_and_left_alone),
        RIGGED(test_journal__a_torn_line_is_told_once_and_dropped),
        RIGGED(test_journal__a_result_that_is_there_twice_is_damage),
        RIGGED(test_journal__a_result_of_another_request_is_damage),
        RIGGED(test_journal__a_header_that_lies_is_refused),
        RIGGED(test_journal__a_result_that_lies_is_refused),
        RIGGED(test_journal__results_for_no_requests_are_refused),
        RIGGED(test_journal__headers_of_one_job_have_the_same_words),
        RIGGED(test_journal__results_of_any_id_go_on),
        RIGGED(test_journal__one_job_at_a_time),
        RIGGED(test_journal__each_look_at_another_jobs_lock_is_progress),
        RIGGED(test_journal__each_line_of_the_output_is_progress),
        RIGGED(test_journal__who_waited_judges_what_the_other_job_left),
        RIGGED(test_journal__a_fenced_writer_stops),
        RIGGED(test_journal__a_removed_one_ends_the_job),
        RIGGED(test_journal__other_prompts_are_told_before_what_follows_from_them),
        RIGGED(test_journal__all_that_differs_is_named),
        cmocka_unit_test(test_journal__terms_have_what_results_depend_on),
        RIGGED(test_journal__a_complete_output_is_left_alone),
        RIGGED(test_journal__is_for_files_alone),
        RIGGED(test_journal__links_in_its_place_are_refused),
        RIGGED(test_journal__a_folder_that_takes_no_files_is_told_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
