/* Running ahead: while the lead verifies a draft, the texts that are likely to come of it are drafted for. It owns the outputs of
 * all drafts and what was learned of times and outcomes; mirrors and draft are borrowed. Invariant: a branch is sent whole or not at all, so how much
 * is drafted for a text never depends on when a message came; which branches there are depends on drafts and verdicts before them and on time, never
 * on what they draw. The drafter's thread alone calls; local: never sends or waits. Allocates at open alone. */
#ifndef TANDEM_DRAFTER_RUN_AHEAD_H
#define TANDEM_DRAFTER_RUN_AHEAD_H

#include "drafter/draft.h"
#include "drafter/outcomes.h"

enum { AHEAD_SIZES = 7 }; /* of steps: 1, 2, 4, ... 64 rows */

struct run_ahead {
    const struct draft *draft;
    struct mirror *mirror; /* [slots] */
    int slots;
    int is_on;
    int branches; /* of a draft; 0: as many as time allows */
    struct arena arena;
    struct draft_output *output; /* [slots][outputs] */
    int outputs;                 /* of a slot */
    struct draft_job *job;       /* [most_jobs] */
    int most_jobs;
    struct outcomes outcomes;
    double row_ns[AHEAD_SIZES]; /* of a step of so many rows, for each; 0: not known */
    double send_ns;             /* for the sending of a branch */
    double worth;               /* probability from which a branch with a q is sent beforehand */
    double window_ns;           /* from a plan until the Commit */
    int64_t planned_ns;
    int64_t planned, steps; /* branches and steps so far */
};

/* branches: as above */
enum status run_ahead_open(struct run_ahead *ahead, const struct draft *draft, struct mirror *mirrors, int slots, int is_on, int branches);
/* A line for --verbose: how much was drafted ahead, and what it took. */
void run_ahead_describe(const struct run_ahead *ahead);
void run_ahead_close(struct run_ahead *ahead);

/* Where the mirror's draft is. */
struct draft_output *run_ahead_output(const struct run_ahead *ahead, const struct mirror *mirror);
/* One step for all mirrors whose drafts are with the lead. Returns 0 in *did when there is nothing left to do. */
enum status run_ahead_step(struct run_ahead *ahead, int *did);
/* A branch that is whole and shall be sent now; NULL: there is none. */
struct branch *run_ahead_whole(struct run_ahead *ahead, struct mirror **mirror, const struct draft_output **output);
/* To be told how long the sending of so many branches took. */
void run_ahead_sent(struct run_ahead *ahead, int count, int64_t ns);
/* To be told of each Commit before the mirror is. */
void run_ahead_learn(struct run_ahead *ahead, const struct mirror *mirror, const struct commit *commit);

#endif
