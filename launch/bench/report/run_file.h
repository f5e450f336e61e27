/* A bench's folder, read: what was asked (bench.json), and for each placement the passes, the ranks, their spans, the clocks, and the latencies of
 * messages. It owns all of it until run_release. The files are untrusted: whatever is wrong is one line that names the file. */
#ifndef TANDEM_LAUNCH_BENCH_REPORT_RUN_FILE_H
#define TANDEM_LAUNCH_BENCH_REPORT_RUN_FILE_H

#include "common/base/status.h"
#include "common/base/trace.h"
#include "common/sample/rule.h"
#include <jansson.h>

enum { RUN_VERSION = 1 /* of bench.json */, RUN_MOST_DRAFT = 63, RUN_MOST_PLACEMENTS = 2, RUN_MOST_CELLS = 1024 };
enum { RUN_MOST_SEQUENCES = 1 << 16, RUN_LOSS = 160, RUN_TERMS = 96 };
#define RUN_MOST_NS (INT64_C(1) << 60) /* 36 years: such times can be added and subtracted */

struct run_cell {
    int solo, draft_length; /* -1: chosen by the lead */
    double temperature;
    const char *accept;
    int sequences, baseline;
};

/* Rounds with a proposal, and those of them whose proposal was drafted before it was asked for. */
struct run_hits {
    int64_t rounds, hits;
};

struct run_end {
    int64_t started_ns, first_ns, ended_ns;
    int prompt_tokens, tokens;
    const char *digest;
};

struct run_pass {
    int cell, repetition, warm_up;
    int traced; /* no rank's trace was full before it ended */
    int64_t start_ns, wall_ns, tokens, rounds, steps, drafted, accepted, full_rounds, full_tokens, fallback_rounds;
    struct run_hits hits, hits_after_all, hits_after[RUN_MOST_DRAFT]; /* all; all drafts of the round before accepted; the first so many of them */
    int64_t tested[RUN_MOST_DRAFT], accepted_at[RUN_MOST_DRAFT];
    double overlap; /* mean of sum min(p, q) over tested drafts */
    struct run_end *end; /* [ends] */
    int ends;
};

struct run_rank {
    int rank;
    char role[16], host[64];
    const char *device; /* of the job's line; "" */
    int64_t dropped;
    struct trace_span *span; /* [spans] times of the lead's clock, in the order of their ends */
    int spans;
    int measured[2]; /* before, after */
    int64_t offset_ns[2], round_trip_ns[2];
    int64_t clock_error_ns; /* its times may be off the lead's clock by so much; 0 on the lead's host */
};

struct run_placement {
    const char *name, *line;
    char folder[4096];
    json_t *job;
    int lead; /* index in rank */
    struct run_pass *pass;
    int passes;
    struct run_rank *rank;
    int ranks;
    json_t *latency; /* array of what the latency program measured; NULL: it did not run */
};

struct run {
    int timeline_rounds; /* of each cell in trace.json; 0: the default */
    json_t *json; /* bench.json */
    json_t *prediction; /* prediction.json, made before anything was measured; NULL: there is none */
    struct run_cell cell[RUN_MOST_CELLS];
    int cells;
    struct run_placement placement[RUN_MOST_PLACEMENTS];
    int placements;
    int has_rounds; /* rounds.html lies there: the rounds of a prompt */
};

/* What was asked for alone: bench.json and its cells. */
enum status run_read_plan(const char *folder, struct run *run);
/* STATUS_NOINPUT, STATUS_DATA; what was read until then is given back by run_release in any case. */
enum status run_read(const char *folder, struct run *run);
void run_release(struct run *run);
/* Were verdicts drawn, by no rule? `from` is bench.json or a summary. */
int run_is_drawn(const json_t *from);
/* The row of the rule that a cell is of, as "rejection" or "lenience=0.5"; greedy's at temperature 0, but for those that are others there. NULL: it
 * is not known here. */
const struct rule *run_rule(double temperature, const char *accept);
/* What the cell is of beside its lengths, as "T 1 rejection", "T 0".  text: [RUN_TERMS] */
const char *run_terms(const struct run_cell *cell, char *text);
/* The rule as a column has it; "any" at temperature 0, where all lossless rules are one. */
const char *run_rule_word(double temperature, const char *accept);
/* Why what was measured is not lossless, as a sentence without its end; "" where it is. text: [RUN_LOSS] */
const char *run_loss(const json_t *from, char *text);
/* One JSON value from a file, or a list of them when `lines` (one a line). */
enum status run_read_json(const char *path, int lines, json_t **value);

#endif
