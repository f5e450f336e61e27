/* What lives through all schedules: the toy pairs, the target's group of one and of two shards, a draft for each drafter, the tokenizer. One set in a
 * process, because the forward passes are the linker's choice. */
#ifndef TANDEM_TESTS_SIMULATION_STAGE_H
#define TANDEM_TESTS_SIMULATION_STAGE_H

#include "drafter/draft.h"
#include "tests/law/toy_hub.h"
#include "tests/simulation/plan.h"
#include "verifier/round/verify.h"

enum { STAGE_SHARDS = 2, STAGE_ASKED = PLAN_SLOTS * MESSAGE_MAX_COMMIT, STAGE_IDS = STAGE_ASKED * TOY_IDS };

/* The target as a group of so many shards. */
struct stage_target {
    struct toy_hub hub;
    struct group group[STAGE_SHARDS];
    struct toy_model model[STAGE_SHARDS];
    struct team team[STAGE_SHARDS];
};

struct stage {
    struct toy_law law[PLAN_LAWS];
    struct backend_context *context;
    struct group alone;
    struct tokenizer *tokenizer;
    struct stage_target target[STAGE_SHARDS]; /* [i] has i + 1 shards */
    struct toy_model draft_model[PLAN_DRAFTERS];
    struct draft draft[PLAN_DRAFTERS];
};

/* What goes wrong fails the test. */
void stage_open(struct stage *stage);
void stage_close(struct stage *stage);
/* Every model follows the plan's law from here on. */
void stage_set(struct stage *stage, const struct plan *plan);
/* The process of this drafter starts anew: nothing is in its cache. */
void stage_renew_draft(struct stage *stage, int drafter);

#endif
