#include "tests/fault/fail_nth.h"

#include "common/base/log.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h> /* needs those above */

#ifdef FAIL_NTH_SANITIZED
#include <sanitizer/lsan_interface.h>
#endif

enum { HANG_SECONDS = 120, TEXT = 4096 };

/* What a child leaves for its parent. */
static struct report {
    int done;
    enum status status;
    uint64_t output;
    long calls, leaks;
    char call[32]; /* the one that failed */
} *report;

static atomic_long calls; /* 0 while nothing is counted */
static long fail_at;
static int counting;

volatile long fail_live;

int fail_now(const char *call)
{
    if (!counting || atomic_fetch_add(&calls, 1) + 1 != fail_at)
        return 0;
    snprintf(report->call, sizeof report->call, "%s", call);
    return 1;
}

static long leaks_since(long before)
{
#ifdef FAIL_NTH_SANITIZED
    (void)before;
    return __lsan_do_recoverable_leak_check();
#else
    return fail_live - before;
#endif
}

/* One run, whose n-th call fails. */
static void work(const struct fail_scenario *scenario, long n)
{
    long before;

    if (scenario->prepare != NULL)
        scenario->prepare();
    before = fail_live;
    fail_at = n;
    calls = 0;
    counting = 1;
    report->status = scenario->run(&report->output);
    counting = 0;
    report->calls = calls;
    report->leaks = leaks_since(before);
    if (report->status == STATUS_OK && scenario->collect != NULL)
        report->output ^= scenario->collect();
    report->done = 1;
}

/* Runs once in a process of its own; what it says on stderr goes to text. Returns what waitpid says of its end. */
static int run_apart(const struct fail_scenario *scenario, long n, char text[TEXT])
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    int said = memfd_create("stderr", MFD_CLOEXEC), ended = -1;
    ssize_t count;
    pid_t child;

    assert_true(said >= 0);
    memset(report, 0, sizeof *report);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(HANG_SECONDS);
        for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
            signal(crashes[i], SIG_DFL); /* cmocka would go on with its next test */
        if (dup2(said, STDERR_FILENO) == STDERR_FILENO)
            work(scenario, n);
        exit(0); /* with its counters, where they are taken */
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    count = pread(said, text, TEXT - 1, 0);
    text[count > 0 ? count : 0] = '\0';
    close(said);
    return ended;
}

/* Lines of error that an undisturbed run does not have. */
static int new_errors(const char *text, const char *usual)
{
    int count = 0;

    for (const char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        char one[TEXT];

        snprintf(one, sizeof one, "%.*s", (int)(end - line), line);
        count += strstr(one, "error: ") != NULL && strstr(usual, one) == NULL;
    }
    return count;
}

/* NULL, or what is wrong with a run one of whose calls failed. */
static const char *fault_of(int ended, const char *text, const char *usual, uint64_t expected)
{
    if (WIFSIGNALED(ended))
        return WTERMSIG(ended) == SIGALRM ? "it hung" : "it crashed";
    if (WEXITSTATUS(ended) != 0 || !report->done)
        return "the process ended early";
    if (report->leaks != 0)
        return "it kept what it had taken";
    if (report->status == STATUS_OK)
        return report->output == expected ? NULL : "it was OK, with another output";
    return new_errors(text, usual) == 1 ? NULL : "it failed without exactly one line that says why";
}

void fail_nth(const struct fail_scenario *scenario, int all)
{
    char text[TEXT], usual[TEXT];
    uint64_t expected;
    long total, stride, tried = 0, failed = 0, broken = 0;

    if (report == NULL)
        report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(report, MAP_FAILED);
    work(scenario, 0); /* what libraries make once is made here, before any fork */
    assert_int_equal(report->status, STATUS_OK);
    expected = report->output;
    fflush(stdout);
    assert_int_equal(run_apart(scenario, 0, usual), 0);
    assert_int_equal(report->status, STATUS_OK);
    assert_int_equal(report->leaks, 0);
    assert_int_equal(report->output, expected);
    total = report->calls;
    assert_true(total > 0);
    stride = getenv("TANDEM_LONG") != NULL || total <= 2 * all ? 1 : (total - all) / all;
    for (long n = 1; n <= total; n += n < all ? 1 : stride, tried++) {
        int ended = run_apart(scenario, n, text);
        const char *fault = fault_of(ended, text, usual, expected);

        failed += report->status != STATUS_OK;
        if (fault != NULL && broken++ < 8)
            print_error("%s: call %ld of %ld, %s: %s (status %d, leaks %ld)\n%s", scenario->name, n, total, report->call, fault, report->status,
                        report->leaks, text);
    }
    print_message("%s: %ld of %ld calls tried, %ld ended with an error, %ld wrongly\n", scenario->name, tried, total, failed, broken);
    assert_int_equal(broken, 0);
    assert_true(failed > 0); /* the failures were felt */
}
