/* A plan is what a seed stands for: who takes part, what is asked for, how fast everybody is, and what goes wrong until when. Two plans of one seed
 * are equal, so a seed is all that is needed to see a run again. */
#ifndef TANDEM_TESTS_SIMULATION_PLAN_H
#define TANDEM_TESTS_SIMULATION_PLAN_H

#include "common/wire/channel_loop.h"
#include "tests/law/toy_model.h"
#include "verifier/request/request.h"

enum { PLAN_DRAFTERS = 3, PLAN_SLOTS = 3, PLAN_REQUESTS = 8, PLAN_LAWS = 12, PLAN_SUPPORT = 16 };

/* A stream of random numbers (splitmix64). */
struct dice {
    uint64_t state;
};

uint64_t dice_next(struct dice *dice);
/* Uniform in [0, 1). */
double dice_uniform(struct dice *dice);
/* 0 .. count - 1 */
int dice_below(struct dice *dice, int count);
int dice_chance(struct dice *dice, double probability);
/* Between the two, uniform in the logarithm. */
int64_t dice_ns(struct dice *dice, int64_t least, int64_t most);

/* What befalls a drafter beside the faults of its wire. */
enum incident { INCIDENT_NONE, INCIDENT_KILL, INCIDENT_STALL, INCIDENT_SLOW, INCIDENT_HOSTILE, INCIDENTS };

struct plan {
    uint64_t seed;
    int law, shards, slots, drafters, requests;
    int kinds; /* of drafters, whose proposals are merged: the first knows less than the target, others as much */
    struct request request[PLAN_REQUESTS];
    int32_t prompt[PLAN_REQUESTS][TOY_CONTEXT];
    char *stop[PLAN_REQUESTS][1];
    char stop_text[PLAN_REQUESTS][8];
    int64_t arrival_ns[PLAN_REQUESTS];
    int eos;                      /* index into the law's tokens, or -1 */
    int context[PLAN_DRAFTERS];   /* room of each drafter */
    double deadline_ms;
    int64_t verify_ns, draft_ns;  /* of a forward */
    int is_peaceful;              /* nothing goes wrong */
    int run_ahead;                /* drafters do */
    int rounds_of_faults;
    struct loop_faults faults;    /* until then */
    struct loop_faults peace;     /* and from then on: small delays */
    double incident[INCIDENTS];   /* chance of each, by drafter and round */
};

void plan_draw(struct plan *plan, uint64_t seed, const struct toy_law *laws /* [PLAN_LAWS] */);
/* One line for people. text: [size] */
void plan_describe(const struct plan *plan, char *text, size_t size);

/* Is the request's output a function of the seed and the target alone? */
int plan_is_determined(const struct request *request);

#endif
