/* The output itself: written from the journal in the order of the input, to a file beside its place, and renamed into it. Invariant: the output is
 * there whole or not at all. What it depends on (the terms of journal_terms.h) lies beside it, in FILE.terms, for a job that is sent again. Owns
 * nothing; for journal.c alone. It never removes the journal. */
#ifndef TANDEM_VERIFIER_RESULT_JOURNAL_PUBLISH_H
#define TANDEM_VERIFIER_RESULT_JOURNAL_PUBLISH_H

#include "verifier/result/journal.h"

/* place: [count]. Every line is checked as it is read back. STATUS_IO; then the journal has everything still. */
enum status journal_publish_write(const struct journal_file *file, const char *terms, const struct journal_place *place, int count);
/* Is `output` what these requests give: one result for each, in order, on these terms where those that made it are known? Says so; STATUS_DATA,
 * with what differs, when not. */
enum status journal_publish_check(const char *output, const struct request_list *requests, const char *terms);

#endif
