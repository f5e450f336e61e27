/* What a check found: a table and one line for a person, one JSON object for a program. Owns nothing, and judges only by what the three checks say of
 * themselves; the lead alone calls; local. */
#ifndef TANDEM_VERIFIER_CHECK_CHECK_REPORT_H
#define TANDEM_VERIFIER_CHECK_CHECK_REPORT_H

#include "verifier/check/check.h"

enum { CHECK_KINDS = 3 };

struct check_result {
    const char *name; /* equality, law, draws */
    int holds;
    int is_blind;     /* it held, and would have whatever the law is: too few samples were asked for */
    int is_starved;   /* it held, and too few drafts came for that to say anything */
    char what[160];   /* what was compared */
    char found[320];  /* and what came out */
};

/* Prints the table and the verdict, writes --json. STATUS_OK, STATUS_CHECK when something does not hold or was not seen for want of drafts,
 * STATUS_IO. */
enum status check_report(const struct check *check);

/* One JSON object with every figure. `path` may be "-". STATUS_IO. */
enum status check_report_json(const struct check *check, const struct check_result results[CHECK_KINDS], const char *verdict,
                              const char *path);

#endif
