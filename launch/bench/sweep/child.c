#include "launch/bench/sweep/child.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum status child_add(struct child_words *words, const char *word)
{
    if (words->count == CHILD_MOST_WORDS) {
        log_error("more than %d words in a command", CHILD_MOST_WORDS);
        return STATUS_USAGE;
    }
    words->word[words->count++] = word;
    return STATUS_OK;
}

static volatile sig_atomic_t running; /* the job that signals are passed on to; 0: none yet */
static volatile sig_atomic_t told;    /* the last one */

static void pass_on(int number)
{
    told = number;
    if (running != 0)
        kill((pid_t)running, number);
}

int child_told(void)
{
    return told;
}

/* Whoever ends the bench ends its job, which knows how: a job on other hosts would go on else. */
static void heed_signals(void (*way)(int))
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1};
    struct sigaction action = {.sa_handler = way};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

static enum status start(const struct child_words *words, int stdout_to, pid_t *child)
{
    posix_spawn_file_actions_t actions;
    int code;

    told = running = 0;
    heed_signals(pass_on);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (stdout_to >= 0)
        posix_spawn_file_actions_adddup2(&actions, stdout_to, STDOUT_FILENO);
    code = posix_spawnp(child, words->word[0], &actions, NULL, (char *const *)(void *)words->word, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (code == 0)
        return STATUS_OK;
    heed_signals(SIG_DFL);
    log_error("cannot start %s: %s", words->word[0], strerror(code));
    return STATUS_INTERNAL;
}

/* A job that was about to end well when it was told to end has done so; what would come after it is not begun. */
static enum status wait_for(pid_t child, int *code)
{
    int state;

    running = child;
    if (told != 0) /* before it was there */
        kill(child, told);
    while (waitpid(child, &state, 0) < 0)
        if (errno != EINTR)
            return STATUS_INTERNAL;
    running = 0;
    heed_signals(SIG_DFL);
    *code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    if (*code == 0 && told != 0)
        *code = told == SIGUSR1 ? STATUS_DRAINED : 128 + told;
    return STATUS_OK;
}

enum status child_run(const struct child_words *words, const char *output, int *code)
{
    int to = output != NULL ? open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
    enum status status;
    pid_t child;

    if (output != NULL && to < 0) {
        log_error("%s: %s", output, strerror(errno));
        return STATUS_IO;
    }
    status = start(words, to, &child);
    if (to >= 0)
        close(to);
    return status == STATUS_OK ? wait_for(child, code) : status;
}

enum status child_ask(const struct child_words *words, char *line, size_t size, int *code)
{
    int ends[2];
    enum status status;
    pid_t child;
    FILE *file;

    line[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) != 0) {
        log_error("no pipe: %s", strerror(errno));
        return STATUS_INTERNAL;
    }
    status = start(words, ends[1], &child);
    close(ends[1]);
    file = fdopen(ends[0], "r");
    if (status == STATUS_OK && file != NULL && fgets(line, (int)size, file) != NULL)
        line[strcspn(line, "\n")] = '\0';
    if (file != NULL)
        fclose(file);
    else
        close(ends[0]);
    return status == STATUS_OK ? wait_for(child, code) : status;
}
