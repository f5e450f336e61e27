/* The jobs that a sweep starts, through `tandem run`, so that whatever that knows (schedulers, signals, exit codes, stories) holds here too. */
#ifndef TANDEM_LAUNCH_BENCH_SWEEP_JOB_H
#define TANDEM_LAUNCH_BENCH_SWEEP_JOB_H

#include "common/base/status.h"
#include <stddef.h>

enum { JOB_MOST_WORDS = 256 };

/* A command in the making: words that live elsewhere. */
struct job_words {
    const char *word[JOB_MOST_WORDS + 1]; /* NULL at the end */
    int count;
};

/* STATUS_USAGE, logged, when there are too many. */
enum status job_add(struct job_words *words, const char *word);
/* Runs it and waits, and passes on signals that would end us; its stdout goes to `output` (a file) or, when that is NULL, to ours. *code is its exit code, 128 + signal where one ended it. */
enum status job_run(const struct job_words *words, const char *output, int *code);
/* Runs it and takes the first line of its stdout. */
enum status job_ask(const struct job_words *words, char *line, size_t size, int *code);

#endif
