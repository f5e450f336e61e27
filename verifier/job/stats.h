/* Reports: the JSON object of --stats, and the table that a person sees. All that a report is made of is borrowed, and nothing is computed here that
 * a figure does not say already (verifier/round/figures.h). The lead alone calls, when the job is over; local. */
#ifndef TANDEM_VERIFIER_JOB_STATS_H
#define TANDEM_VERIFIER_JOB_STATS_H

#include "common/options/options.h"
#include "common/wire/message.h"
#include "verifier/job/comparison.h"
#include "verifier/job/perplexity.h"
#include "verifier/request/request.h"
#include "verifier/round/adaptive.h"
#include "verifier/round/figures.h"
#include "verifier/round/peers.h"
#include <stdio.h>

struct stats {
    const struct options *options;
    const char *target;
    const struct hello *hello; /* [ranks] */
    int ranks, crowded; /* crowded: more threads of theirs on the lead's host than it has cores; of stats_job alone */
    const struct figures *solo; /* NULL unless both were measured */
    const struct figures *figures;
    const struct request *lossy;         /* the first one by a rule that is not lossless; NULL: none */
    const struct perplexity *perplexity; /* NULL unless a text was scored */
    const struct comparison *comparison; /* of passes like these two; NULL unless both were measured */
    const struct adaptive_terms *terms; /* what drafts cost and give; NULL: not known */
    int drafters, threads; /* ranks, and threads of the lead */
    const struct peers *peers; /* the drafters as they were at the end */
    double load;               /* of the lead's host in the minute before; 0 or less: not known */
    uint64_t hash;
};

/* STATUS_IO. */
enum status stats_write(const struct stats *stats, const char *path);
/* The job as one JSON object: who runs where, versions, the group, what was asked for. NULL without memory. */
struct json_t *stats_job(const struct stats *stats, const char *group, int lead);
/* What running ahead gave, as `run_ahead` of the report. NULL without memory. */
struct json_t *stats_ahead(const struct figures *figures);
/* Solo against speculative, by the medians of all passes, and where a round's time goes, in the first of each. */
void stats_table(const struct stats *stats, FILE *to);
/* One line about a run without comparison. */
void stats_line(const struct stats *stats, FILE *to);

#endif
