/* A line that says how far something long is. It owns the decision when the next one is due, and how it leaves the terminal; the words are the
 * caller's. On a terminal the line stands there without an end, after a second or from the start, and is redrawn in place; elsewhere a new one comes
 * every five seconds; of what takes less nothing is said. Invariant: while a line stands, errors that come to the same terminal clear it first
 * (log_clear_lines). One thread; local. It never waits and has no clock of its own: it looks when its caller has something to say. */
#ifndef TANDEM_VERIFIER_JOB_PROGRESS_LINE_H
#define TANDEM_VERIFIER_JOB_PROGRESS_LINE_H

#include <stdint.h>
#include <stdio.h>

struct progress_line {
    FILE *to;          /* NULL: nowhere */
    int redrawn;       /* it is a terminal */
    int clears_errors; /* which come to the same terminal */
    int stands;
    int64_t said_ns;
};

/* Begins to count the time. The first three members are set up by the caller before. at_once: on a terminal the first line is due now. */
void progress_line_begin(struct progress_line *line, int at_once);
int progress_line_is_due(const struct progress_line *line);
/* Writes a line, due or not. write: puts the words there, without newline. */
void progress_line_tell(struct progress_line *line, void (*write)(const void *state, FILE *to), const void *state);
/* The seconds that are left where `done` of `all` took `seconds`; -1 where that says too little, before ten seconds and a hundredth of the work: what
 * is done first is not as fast as the rest, and a guess from it is hours off. */
double progress_line_left(double seconds, double done, double all);
/* Takes the line away where one stands. */
void progress_line_clear(struct progress_line *line);

#endif
