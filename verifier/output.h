/* Results, one JSON line each, in input order: a result that is ready early waits for those before it. */
#ifndef TANDEM_VERIFIER_OUTPUT_H
#define TANDEM_VERIFIER_OUTPUT_H

#include "verifier/sequence.h"
#include <stdio.h>

struct output {
    FILE *file; /* NULL: results are not written */
    const char *path;
    char **line; /* [count] */
    int count;
    int first; /* index of the first request */
    int next; /* the first that is not written yet */
    int failed; /* requests that ended with an error */
};

/* `path` may be NULL (nothing is written) or "-" (stdout). STATUS_IO. */
enum status output_open(struct output *output, const char *path, int first, int count);
/* STATUS_IO when what was written did not reach the file. */
enum status output_close(struct output *output);
/* The result of a finished sequence, or of a request that could not be run (sequence NULL, request->error says why). */
enum status output_add(struct output *output, const struct request *request, const struct sequence *sequence);

#endif
