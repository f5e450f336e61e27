/* Rounds, put together from the spans of all ranks: what the lead did between the begin of waiting and the last result, with its wait split into what
 * its drafters did meanwhile. Times are microseconds of the lead's clock. It owns the list of rounds; the spans are borrowed.
 *
 * Invariant: a round's phases add up to its length. While the lead waits a drafter truncates, drafts and packs; what is left of the wait is `wire`:
 * both ways through the network, and waking up. So `wire` needs no clocks to agree; the ways one by one do. */
#ifndef TANDEM_LAUNCH_BENCH_REPORT_ROUNDS_H
#define TANDEM_LAUNCH_BENCH_REPORT_ROUNDS_H

#include "launch/bench/report/run_file.h"

enum round_phase {
    ROUND_TRUNCATE, /* drafters: a commit is read and the cache cut */
    ROUND_DRAFT,
    ROUND_PACK,
    ROUND_WIRE,
    ROUND_ORDER,  /* the lead tells its followers */
    ROUND_VERIFY, /* forward pass and evidence, without the group's sums */
    ROUND_REDUCE, /* the group's sums, and evidence to the lead */
    ROUND_DECIDE,
    ROUND_BROADCAST, /* commits to the drafters */
    ROUND_OUTPUT,
    ROUND_OTHER,
    ROUND_PHASES,
};

#define ROUND_UNKNOWN (-1.0)

struct round {
    int pass;         /* index in the placement's passes */
    int64_t start_ns;
    double us;
    double phase_us[ROUND_PHASES];
    double wait_us;     /* the lead was idle */
    double drafting_us; /* what drafting took, also where the lead did not wait for all of it */
    double propose_us, commit_us; /* one way, of the last proposal, as far as clocks agree: negative where they do not; or ROUND_UNKNOWN */
    int sequences, rows, drafted, accepted, tokens;
    int proposals, hits; /* sequences with a proposal, and with one that was drafted before it was asked for */
    int opens; /* some sequence's first round: its drafter read the prompt */
};

struct rounds {
    struct round *round; /* [count] in time */
    int count, room;
};

const char *rounds_phase(enum round_phase phase);
/* What a step of the target takes, its sums included.  phase_us: [ROUND_PHASES] */
double rounds_step_us(const double *phase_us);
/* The rounds of a placement. STATUS_INTERNAL. */
enum status rounds_build(const struct run_placement *placement, struct rounds *rounds);
void rounds_release(struct rounds *rounds);

/* Of the spans of `phase` about this sequence at this length that ended by end_ns, as far as a clock that may be off by error_ns tells, the one that
 * ended nearest to it: passes may lie closer together than clocks are right. -1 when there is none near. */
int rounds_find(const struct run_rank *rank, enum trace_phase phase, uint32_t request, int length, int64_t end_ns, int64_t error_ns);
/* Writes all rounds of a placement as lines of rounds.csv; `head` writes its first line. Returns whether it could. */
int rounds_write(const struct run *run, const struct run_placement *placement, const struct rounds *rounds, int head, FILE *to);

#endif
