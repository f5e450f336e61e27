/* The figures of a run: of each cell in each placement what was measured, and what the theory says of it. Names are those of vLLM's bench where it
 * has one. It owns the rounds that it puts together; the run is borrowed. Invariant: a figure that was not measured is -1 or 0, as its line says, and
 * never a guess. */
#ifndef TANDEM_LAUNCH_BENCH_REPORT_MEASURED_H
#define TANDEM_LAUNCH_BENCH_REPORT_MEASURED_H

#include "launch/bench/report/forecast.h"
#include "launch/bench/report/rounds.h"
#include "launch/bench/report/statistics.h"

/* Of many times, milliseconds. */
struct times {
    double mean, median, deviation, p90, p99;
    int count;
};

struct measured {
    /* over repetitions */
    double tokens_per_second, tokens_per_second_spread; /* median; spread as a share of it */
    double speedup, speedup_spread, speedup_error;      /* over solo in the same repetition; median, spread and standard error as shares of it */
    double speedup_tpot;                                /* of the mean time per token after the first */
    int repetitions;
    /* over all requests of all repetitions */
    struct times ttft, tpot, itl, e2el, round; /* round: from one arrival of tokens to the next of the same request */
    double arrival_ms[5];                      /* the same at p50, p90, p99, p99.9, largest */
    double duration_s, completed, input_tokens, output_tokens;
    int outputs, outputs_equal; /* those of the first repetition that are solo's; -1: they need not be */
    /* counts, over all repetitions: each has the same */
    double rounds, drafted, accepted, all_tested, all_accepted, tested[RUN_MOST_DRAFT], accepted_at[RUN_MOST_DRAFT];
    double rounds_of[RUN_MOST_DRAFT + 1], tokens_of[RUN_MOST_DRAFT + 1]; /* by drafted tokens; of the spans that were kept */
    double fallback_rounds;
    struct run_hits hits, hits_after_all, hits_after[RUN_MOST_DRAFT]; /* as of a pass */
    /* alpha, three ways; -1 where it cannot be told */
    double alpha, alpha_overlap, alpha_tokens;
    int overlap_hidden; /* the rule accepts where noise agrees: a job sees no q, and sum min(p, q) is not what it counts */
    /* means over rounds of the lead, microseconds */
    double round_us, phase_us[ROUND_PHASES], wait_us, drafting_us, propose_us, commit_us, hidden_us;
    double reading_us; /* of a round's step, what those that begin a text take beyond the others: they read its prompt */
    double steps;
    double outside; /* share of the time of passes that no round has: prompts, and between rounds */
    /* theory; 0 where it says nothing */
    double c, v, rest;            /* of the solo round: one drafted token, the verifying step, all else */
    double tokens_expected;       /* equation (1) */
    double improvement;           /* theorem 3.8 */
    double improvement_measured;  /* with v and rest */
    double operations;            /* theorem 3.11 */
    int best, best_measured;      /* gamma by alpha and c; with v and rest */
    double by_tokens, by_round, by_outside, by_noise; /* measured / accounted, as factors */
    /* said before anything was measured; tokens_per_second is 0 where nothing was */
    struct forecast forecast;
    double forecast_speedup;
    double forecast_alpha, forecast_overlap; /* of other texts, without drafting; -1 */
};

struct measured_placement {
    struct rounds rounds;
    struct measured cell[RUN_MOST_CELLS];
};

/* From what was read. all: [run->placements], to be given to measured_release. STATUS_INTERNAL. */
enum status measured_compute(const struct run *run, struct measured_placement *all);
void measured_release(const struct run *run, struct measured_placement *all);
/* How well a run knows its speedups, of cells with drafts. */
struct measured_noise {
    double spread, spread_worst; /* as shares: the median over cells, and the largest */
    double error, error_worst;   /* standard errors, likewise */
    double limit;                /* of these, as the bench was told */
    int cells, beyond;           /* the limit */
    int least, most;             /* repetitions of a cell */
};

/* all: [placements] */
struct measured_noise measured_noise(const struct run *run, const struct measured_placement *all, int placements);
/* Are so many cells beyond the limit that no figure is to stand out from them? */
int measured_withholds(const struct measured_noise *noise);
/* Is this cell's speedup beyond the limit? */
int measured_is_noisy(const struct run *run, const struct measured *measured);
/* The cell of this baseline with drafts of a fixed length that was fastest; -1: there is none, or `baseline` is no solo cell of one sequence. */
int measured_best(const struct run *run, const struct measured_placement *all, int baseline);
/* Is it a measured pass whose rounds are all known? */
int measured_counts(const struct run_pass *pass);
/* Is a theory of one sequence about this cell? */
int measured_is_predicted(const struct run_cell *cell);

#endif
