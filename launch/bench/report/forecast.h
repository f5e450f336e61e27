/* The speed of a cell, said before anything was drafted: from the offline acceptance of a draft (tandem alpha), the time of the target's steps by
 * rows, the time of the draft's, and that of messages. The law: each place of a proposal is accepted with a probability of its own, whatever was
 * accepted in the round before; a round takes its step, and its wait where the drafter had not run ahead. Completions have a fixed length, and the
 * last drafts of one are cut as in a job. Plain data; pure. Times are microseconds. */
#ifndef TANDEM_LAUNCH_BENCH_REPORT_FORECAST_H
#define TANDEM_LAUNCH_BENCH_REPORT_FORECAST_H

enum {
    FORECAST_PLACES = 8,
    FORECAST_GUESSES = 8,
    FORECAST_POINTS = 72,
    FORECAST_LONGEST = 63 /* draft */,
    FORECAST_CHOSEN = 12 /* that a lead chooses */
};

/* A time by a number: straight between those that were measured, and on beyond the last two. */
struct forecast_line {
    int count;
    double x[FORECAST_POINTS], us[FORECAST_POINTS]; /* x rises */
};

/* A draft at one temperature and rule, as tandem alpha has it. */
struct forecast_draft {
    double alpha, overlap;                                       /* what the rule accepts, and sum min(p, q) = 1 - D_LK */
    double proposals;                                            /* share of rounds with a proposal */
    double place[FORECAST_PLACES];                               /* accepted where those before were; the last holds beyond it, too */
    double corrected[FORECAST_GUESSES], bonus[FORECAST_GUESSES]; /* the target's token is this guess, after a rejection and after all */
    double support;                                              /* of a q; 0 of point masses */
    struct forecast_line step;                                   /* of the draft model, by rows; none: it runs no model */
    double choose_us;                                            /* a token from a row */
};

/* Ranks as they were timed without drafts, at one temperature and rule, and with so many sequences at once. */
struct forecast_ranks {
    struct forecast_line verify;  /* the target's step, sums included, by rows of all sequences */
    struct forecast_line rest;    /* all else of its round, by the same */
    double outside;               /* for each request: what no round has, and the reading of its prompt in the first */
    struct forecast_line wire;    /* a commit there and a proposal back, by draft length */
    int ahead;                    /* drafters run ahead: ranks have cores of their own */
    int branches;                 /* that they draft at most; 0: by time */
};

/* Of a round that waits or does not: means over the rounds of a completion. */
struct forecast {
    int draft_length;
    double tokens_per_second, tokens_per_round, round_us, verify_us, wait_us, rest_us, outside_us;
    double cold_us;  /* the wait of a round whose proposal was not drafted ahead */
    double hit_rate; /* rounds whose proposal was */
    double hits_after[FORECAST_LONGEST + 1]; /* the same of rounds behind one whose first so many drafts were accepted: [draft_length + 1] */
};

/* x must be larger than those before. More than FORECAST_POINTS are left out. */
void forecast_line_add(struct forecast_line *line, double x, double us);
/* 0 of none. */
double forecast_line_at(const struct forecast_line *line, double x);

/* So many drafts a round and sequences at once, completions of so many tokens. draft: NULL where draft_length is 0. */
void forecast_cell(const struct forecast_draft *draft, const struct forecast_ranks *ranks, int draft_length, int sequences, int tokens,
                   struct forecast *forecast);
/* The fastest draft length of 0 to FORECAST_CHOSEN, as a lead that chooses well would. */
void forecast_best(const struct forecast_draft *draft, const struct forecast_ranks *ranks, int sequences, int tokens, struct forecast *forecast);

#endif
