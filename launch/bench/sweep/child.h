/* The jobs that a sweep starts, through `tandem run`, so that whatever that knows (schedulers, signals, exit codes, what it says of a failed rank)
 * holds here too. It owns the process that it started, and waits for it. One at a time. */
#ifndef TANDEM_LAUNCH_BENCH_SWEEP_CHILD_H
#define TANDEM_LAUNCH_BENCH_SWEEP_CHILD_H

#include "common/base/status.h"
#include <stddef.h>

enum { CHILD_MOST_WORDS = 256 };

/* A command in the making: words that live elsewhere. */
struct child_words {
    const char *word[CHILD_MOST_WORDS + 1]; /* NULL at the end */
    int count;
};

/* STATUS_USAGE, logged, when there are too many. */
enum status child_add(struct child_words *words, const char *word);
/* Runs it and waits, and passes on signals that would end us; its stdout goes to `output` (a file) or, when that is NULL, to ours. *code is its
 * exit code, 128 + signal where one ended it, or where one came and it ended well (STATUS_DRAINED for SIGUSR1). */
enum status child_run(const struct child_words *words, const char *output, int *code);
/* The signal that came while the last one ran and was passed on to it; 0: none. */
int child_told(void);
/* Runs it and takes the first line of its stdout. */
enum status child_ask(const struct child_words *words, char *line, size_t size, int *code);

#endif
