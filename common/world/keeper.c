#include "common/world/keeper.h"

#include "common/base/log.h"
#include "common/base/recorder.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LAST_WORDS_NS = 700000000, /* time for a child that was told to end */
    /* mpirun tears a job down by SIGTERM, and sends SIGKILL to all as soon as the first rank has heeded it: a keeper lives on for so long,
     * so that the children of the others can write their last events. */
    PATIENCE_NS = 200000000,
    LAST_TURNS = 30,           /* half a second each: what a child may take to leave when all is done */
};

static int to_keeper = -1; /* in the child: the pipe's end; one per process, as MPI is */

enum stage { STARTING = 's', JOINED = 'j', ENDED = 'e' };

/* The last stage that the child reported. */
static enum stage stage_of(int from_child)
{
    static enum stage stage = STARTING;
    char said;

    while (read(from_child, &said, 1) == 1)
        stage = (enum stage)said;
    return stage;
}

static int exit_code(int how)
{
    return WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
}

static void leave(int code) __attribute__((noreturn));
static void leave(int code)
{
    if (code == 128 + SIGTERM)
        nanosleep(&(struct timespec){.tv_nsec = PATIENCE_NS}, NULL);
    _exit(code);
}

/* The launcher ends both with one signal to their group, and the child may want to write its last events first. */
static void end_with_child(pid_t child, int signal)
{
    const struct timespec nap = {.tv_nsec = 10000000};

    if (child > 0) {
        kill(child, SIGCONT);
        kill(child, signal);
        for (int i = 0; i < LAST_WORDS_NS / nap.tv_nsec && waitpid(child, NULL, WNOHANG) == 0; i++)
            nanosleep(&nap, NULL);
    }
    leave(128 + signal);
}

/* Passes the launcher's signals on to the child. SIGUSR1 and SIGUSR2 are sent to the process group as well; the child may get them twice, which does
 * no harm. */
static void pass_on(pid_t child, int signal)
{
    if (signal == SIGTERM || signal == SIGINT)
        end_with_child(child, signal);
    if (signal == SIGUSR1 || signal == SIGUSR2) {
        if (child > 0)
            kill(child, signal);
    }
}

static void give_up_on(pid_t child)
{
    log_let_go(0);
    log_error("a rank hangs at the very end of a job, whose results are complete");
    kill(child, SIGKILL);
    _exit(STATUS_WATCHDOG);
}

static void keep(pid_t child, pid_t launcher, int from_child, const sigset_t *heeded) __attribute__((noreturn));
static void keep(pid_t child, pid_t launcher, int from_child, const sigset_t *heeded)
{
    const struct timespec turn = {.tv_nsec = 500000000};
    int leaving = 0;

    for (;;) {
        int signal = sigtimedwait(heeded, NULL, &turn), how, ended = child > 0 && waitpid(child, &how, WNOHANG) == child;
        enum stage stage = stage_of(from_child);

        if (ended) {
            if (stage != JOINED)
                leave(exit_code(how));
            child = 0;
        }
        leaving += child > 0 && stage == ENDED && signal < 0;
        if (leaving > LAST_TURNS) /* the others are gone, and nobody else would notice */
            give_up_on(child);
        if (getppid() != launcher) /* nobody is left who would end this */
            end_with_child(child, SIGKILL);
        if (signal > 0)
            pass_on(child, signal);
    }
}

enum status keeper_open(void)
{
    pid_t launcher = getppid(), keeper = getpid(), child;
    sigset_t heeded, before;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        log_error("no pipe to the rank's keeper: %s", strerror(errno));
        return STATUS_INTERNAL;
    }
    signal(SIGCHLD, SIG_DFL); /* where it is ignored, nobody can wait for a child */
    sigemptyset(&heeded);
    for (size_t i = 0; i < 5; i++)
        sigaddset(&heeded, ((int[]){SIGCHLD, SIGTERM, SIGINT, SIGUSR1, SIGUSR2})[i]);
    sigprocmask(SIG_BLOCK, &heeded, &before); /* before the fork: no signal falls between */
    child = fork();
    if (child < 0) {
        log_error("cannot start the rank beside its keeper: %s", strerror(errno));
        return STATUS_INTERNAL;
    }
    if (child > 0) {
        prctl(PR_SET_NAME, "tandem-keeper");
        close(ends[1]);
        keep(child, launcher, ends[0], &heeded);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper)
        _exit(STATUS_INTERNAL);
    close(ends[0]);
    to_keeper = ends[1];
    return STATUS_OK;
}

static void say(enum stage stage)
{
    if (to_keeper >= 0 && write(to_keeper, &(char){(char)stage}, 1) < 0)
        log_debug("the keeper does not listen");
}

void keeper_joined(void)
{
    say(JOINED);
}

void keeper_leave(enum status status)
{
    log_let_go(1);
    recorder_dump("this rank cannot go on");
    _exit((int)status);
}

void keeper_close(void)
{
    say(ENDED);
}
