/* An output writes results, one JSON line each. To stdout, a device, a pipe or a link it writes in input order: it owns the results that wait for
 * earlier ones. To a file it writes a journal as requests finish, and the file itself, in input order, when all are there. Invariant: each result is
 * written once, and the file is there whole or not at all. The lead's thread alone calls; local; it blocks on the file, and never talks to other
 * ranks. */
#ifndef TANDEM_VERIFIER_RESULT_OUTPUT_H
#define TANDEM_VERIFIER_RESULT_OUTPUT_H

#include "verifier/result/journal.h"
#include "verifier/result/journal_terms.h"
#include "verifier/result/result.h"
#include "verifier/round/sequence.h"
#include <stdio.h>

struct output {
    const char *path; /* NULL: results are not written; borrowed */
    int plain;        /* results without timing and speculation */
    enum result_verdicts verdicts;
    int is_terminal;  /* stdout is one: what it would obey in a result is shown */
    int journaled;
    struct journal journal;
    FILE *file; /* where results go in order, when there is no journal */
    char **line; /* [count] those that wait for one before them */
    int first;   /* index of the first request */
    int count;
    int next; /* the first that is not written yet */
};

/* As soon as the job starts: `path` may be NULL (nothing is written) or "-" (stdout). Claims the journal of a file and sees whether this job
 * may go on from it. STATUS_USAGE, STATUS_IO. */
enum status output_open(struct output *output, const char *path, int resume, int plain);
/* When the requests are known. STATUS_DATA when the journal is of another job; STATUS_IO. */
enum status output_begin(struct output *output, const struct journal_job *job);
/* The same under these terms, which are about the job's requests; those of `job` are not looked at. */
enum status output_begin_under(struct output *output, const struct journal_terms *terms, const struct journal_job *job);
/* At the end of a job that did not fail: STATUS_IO when what was written did not reach the file. With a journal, puts the file in its place
 * when every result is there. */
enum status output_finish(struct output *output);
/* At the end of any job: results in a journal become durable. */
enum status output_close(struct output *output);
/* Is the result of request `at` there since an earlier job? */
int output_has(const struct output *output, int at);
/* The result of a request: of its sequence that has finished, or all of them where it asks for several ([request_completions], the best first); or
 * of one that could not be run (NULL, request->error says why). */
enum status output_add(struct output *output, const struct request *request, const struct sequence *sequences);
/* For every round: makes durable what is due. */
enum status output_sync(struct output *output);

#endif
