/* A result as a line of output: JSON, without newline. Owns nothing: a line is made of a request and its sequence, and given to the caller. Local;
 * never writes it anywhere. */
#ifndef TANDEM_VERIFIER_RESULT_RESULT_H
#define TANDEM_VERIFIER_RESULT_RESULT_H

#include "verifier/round/sequence.h"

/* Whose verdicts a result has. */
enum result_verdicts {
    RESULT_BY_RULE,   /* the request's rule's, where it drafts */
    RESULT_DRAWN,     /* no rule's: they were drawn */
    RESULT_UNDRAFTED, /* none: nothing is drafted */
};

/* The result of a request whose sequence has finished, of one that asks for several (sequences: [request_completions], the best first; it has the
 * first request->choices of them, and all are counted), or of one that could not be run (NULL, request->error says why). `plain` leaves out what
 * differs from run to run: timing and speculation. Where verdicts were drawn, or drafts decided by a rule that says so of
 * itself, it has "lossless": false. *line is to be freed. STATUS_INTERNAL without memory. */
enum status result_line(const struct request *request, const struct sequence *sequences, int plain, enum result_verdicts verdicts, char **line);
/* Does text[0 .. length) begin as the line of output of this request does, with its id and index? 0 also without memory. */
int result_is_of(const struct request *request, const char *text, size_t length);
/* Can text[0 .. length) be the line of output of this request? Its beginning tells which one it is of, and it is JSON: nobody can tell more without
 * computing it anew. *wrong: NULL, or a static text that says what it is instead. STATUS_INTERNAL without memory. */
enum status result_look_at(const struct request *request, const char *text, size_t length, const char **wrong);

#endif
