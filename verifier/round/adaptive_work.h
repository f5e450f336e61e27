/* How long a round takes without its wait for drafts, by the rows of its step. It owns a table of what was measured, at some numbers of rows, and two
 * scales that it is taken times: of rounds without drafts, and with. Never reads a clock: times come in as numbers. */
#ifndef TANDEM_VERIFIER_ROUND_ADAPTIVE_WORK_H
#define TANDEM_VERIFIER_ROUND_ADAPTIVE_WORK_H

enum { ADAPTIVE_KNOTS = 40, ADAPTIVE_LOOK = 3 };

/* The speed of one kind of round: its time is `scale` times what the table says. */
struct adaptive_speed {
    double scale;
    int rounds; /* measured */
};

struct adaptive_work {
    double shape[ADAPTIVE_KNOTS];   /* the table: microseconds of a round by its rows (knots: adaptive_work.c), before the scale; 0: not known */
    int known[ADAPTIVE_KNOTS];      /* rounds measured at the knot, */
    int last[ADAPTIVE_KNOTS];       /* and the number of the last of them */
    struct adaptive_speed speed[2]; /* of rounds without drafts, and with */
    int rounds;
    int rows[2];                 /* of the last round without drafts, and with */
    double step[ADAPTIVE_KNOTS]; /* what the warm-up itself measured; 0: nothing */
};

/* What warm-ups with the same model, machine and ranks measured: microseconds of a step by its rows; 0: not known. */
struct adaptive_times {
    double us[ADAPTIVE_KNOTS];
};

/* The rows of a knot of the table, and the knot nearest to some rows. */
int adaptive_work_knot_rows(int knot);
int adaptive_work_knot(int rows);

/* Numbers of rows that a warm-up times, i = 0, 1, ...: 1, 2, 3, 4, 6, 8, 12, ... */
int adaptive_work_warm_up_rows(int i);
/* Records that a warm-up step of `rows` rows took `us`. */
void adaptive_work_add_step(struct adaptive_work *work, int rows, double us);
/* Was any warm-up step or round recorded? */
int adaptive_work_is_known(const struct adaptive_work *work);
/* Takes over from an earlier warm-up what this one, which has timed one row, had no time for: what that takes now, over what it took then, is how
 * much slower the machine is. */
void adaptive_work_recall(struct adaptive_work *work, const struct adaptive_times *earlier);
/* Puts what this warm-up measured into what earlier ones did. 0: there was none. */
int adaptive_work_leave(const struct adaptive_work *work, struct adaptive_times *times);
/* Expected microseconds of a round of so many rows; 0: not known. */
double adaptive_work_us(const struct adaptive_work *work, int rows, int drafted);
/* Microseconds of a step of so many rows by what the warm-up timed, while nobody drafted; 0: it timed no two numbers of rows. */
double adaptive_work_alone(const struct adaptive_work *work, int rows);
/* A round took so long: that corrects the scale, which holds for all rows, and its nearest knot, the more the longer that knot was not measured. The
 * scale of the other kind follows, as the machine may have become faster or slower as a whole, except in a probe, whose first rounds show what
 * drafting costs the verifiers. Returns the time as it counts. */
double adaptive_work_add(struct adaptive_work *work, int rows, int drafted, int in_probe, double us);
/* Rounds without drafts took so many times what was expected. The median counts, because in the first one the drafter has only just stopped.
 * looked: [ADAPTIVE_LOOK] */
void adaptive_work_look(struct adaptive_work *work, const double *looked);
/* How many times as long as one without drafts a round with drafts takes, of as many rows as the last one of either kind. */
struct adaptive_ratio {
    int rows[2];
    double of_time; /* 0: not known */
};
struct adaptive_ratio adaptive_work_ratio(const struct adaptive_work *work);
/* So it is taken to be before the first round, as earlier jobs had it: the warm-up cannot know what drafting costs the verifiers. */
void adaptive_work_expect_ratio(struct adaptive_work *work, const struct adaptive_ratio *ratio);
/* The speed of this kind of round was measured too long ago to tell an outlier by it. */
void adaptive_work_doubt(struct adaptive_work *work, int drafted);

#endif
