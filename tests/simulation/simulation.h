/* One schedule: the lead's own loop and the drafters' own loops in one process, under a pretended clock. The lead is the one that runs; when it
 * waits, or while the target computes, time passes, and the drafters take their turns at the moments that are theirs. A turn happens at once, with
 * a clock of its own: what it sends leaves when its drafts are done. */
#ifndef TANDEM_TESTS_SIMULATION_SIMULATION_H
#define TANDEM_TESTS_SIMULATION_SIMULATION_H

#include "launch/engine/engine.h"
#include "tests/simulation/hostile.h"
#include "tests/simulation/stage.h"
#include "verifier/job/audience.h"

enum { SIMULATION_RUN = 77, SIMULATION_AFTER = 64 };

/* A drafter's process. Its name on the channel is ENGINE_DRAFTER + its number. */
struct actor {
    struct simulation *simulation;
    int number;
    struct drafter *drafter; /* the engine's */
    int is_alive;
    int64_t busy_ns, stalled_ns; /* until then it takes no turn */
    double slowness;             /* 1 is its usual speed */
    enum incident incident;      /* what comes next to it, and when */
    int64_t incident_ns;
    int64_t return_ns;           /* when it is dead */
    int64_t refused, proposals;  /* of its earlier lives */
};

/* What a request came to. */
struct result {
    int times;
    enum finish_reason finish;
    int count;
    int32_t token[TOY_CONTEXT]; /* the prompt first */
    uint64_t text;              /* digest of it */
};

/* What happened, over one schedule or many. */
struct tally {
    int64_t schedules, rounds, tokens, drafted, accepted, fallbacks, fetched, stale, refused, losses, merged;
    int64_t frames[LOOP_FATES], incidents[INCIDENTS], hostile_frames, rounds_after, most_rounds_after;
};

struct simulation {
    struct stage *stage;
    const struct plan *plan;
    int verbose;
    int64_t now_ns;
    struct dice dice;

    struct stage_target *target;
    struct actor actor[PLAN_DRAFTERS];
    int actors; /* 0: solo */
    struct hostile hostile;
    struct request request[PLAN_REQUESTS + SIMULATION_AFTER]; /* those of the plan, then greedy ones for as long as it takes */
    struct request_list requests;
    struct output output;
    struct show show;
    struct audience audience;
    struct engine engine; /* its last end is nobody's */

    int round;
    int is_after;              /* faults have stopped */
    int is_over;               /* all requests are done */
    int64_t round_ns;          /* when this round began */
    int64_t verified_ns;       /* time of the target's forwards in this round */
    int used[PLAN_DRAFTERS];   /* proposals of each that were verified after the faults */
    int64_t damaged, proposals_received; /* frames: with faults inside; proposals at the lead */
    int64_t refusals_due;                /* frames that came and cannot be for their receiver */
    int losses_allowed[PLAN_DRAFTERS]; /* how often each may have been lost at the end; -1: as often as it likes */
    int64_t expected_fallbacks;
    struct result solo[PLAN_REQUESTS + 1], result[PLAN_REQUESTS + 1]; /* the last is for those after the plan's */
    unsigned char times_after[SIMULATION_AFTER];
    struct tally tally;
};

/* Runs the schedule, first without drafters and faults; what is wrong fails the test with the command that shows it again. Adds to the tally. */
void simulation_run(struct simulation *simulation, struct stage *stage, const struct plan *plan, int verbose, struct tally *tally);

/* For the other files of this folder. */
void simulation_tell(const struct simulation *simulation, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void simulation_fail(const struct simulation *simulation, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Lets time pass until then, or, where the lead listens, until a frame for it is due. */
void simulation_pass(struct simulation *simulation, int64_t until_ns, int listens);

#endif
