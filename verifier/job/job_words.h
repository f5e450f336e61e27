/* What the lead says of a job when it begins and when it was drained, and what kind of job it is. Borrows the job; the lead's main thread calls.
 * Local. */
#ifndef TANDEM_VERIFIER_JOB_JOB_WORDS_H
#define TANDEM_VERIFIER_JOB_JOB_WORDS_H

#include "verifier/job/job.h"

void job_words_begin(const struct job *job);
/* What is to be said of the requests, and noted in the job. */
void job_words_requests(struct job *job, const struct request_list *requests);
/* count: of its prompts. */
void job_words_drained(const struct job *job, int count);
/* All that the times of its rounds depend on, as far as it does not change within a job. */
void job_words_kind(const struct job *job, char *text, size_t size);
/* What its drafts depend on besides, as far as the job's options say it. */
void job_words_terms(const struct job *job, char *text, size_t size);

#endif
