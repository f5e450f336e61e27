/* The whole engine in one process: it owns a lead and a drafter, whose messages are packed, checked and unpacked over a loop channel in memory.
 * Either the caller gives each its turn, and no wait blocks, so that results do not depend on a clock; or the lead runs as in a job, and the drafter
 * takes its turns where the lead waits for it. One thread; local. For tests and measurements; no program of a job uses it, and it starts no MPI. */
#ifndef TANDEM_LAUNCH_ENGINE_ENGINE_H
#define TANDEM_LAUNCH_ENGINE_ENGINE_H

#include "common/wire/channel_loop.h"
#include "drafter/drafter.h"
#include "verifier/round/lead.h"

enum { ENGINE_LEAD, ENGINE_DRAFTER, ENGINE_ENDS }; /* names on the loop */

/* All of it borrowed until engine_close. */
struct engine_terms {
    struct team *team;              /* the lead's */
    struct draft *draft;            /* what drafts; NULL: nothing, the lead decodes solo */
    int draft_vocab, draft_context; /* its own */
    const struct tokenizer *tokenizer;
    const struct request_list *requests;
    const struct lead_watch *watch;   /* or NULL */
    const struct loop_faults *faults; /* of the loop, or NULL */
    uint64_t run;
    int slots;
    int outputs, ids; /* as for verify_open */
    int hash_logits;
    int prefill_chunk;  /* as of the lead */
    double deadline_ms; /* how long the lead waits for each draft, in which the drafter takes its turns; 0: not at all */
};

struct engine {
    struct channel *end[ENGINE_ENDS];
    struct peers peers;
    struct verify verify;
    struct lead lead;
    struct drafter drafter;
    int drafts;         /* the drafter is open */
    enum status status; /* of the turns that it took while the lead waited: the first that failed */
};

/* Nothing is open where it fails. */
enum status engine_open(struct engine *engine, const struct engine_terms *terms);
/* The whole run, of a lead that waits. A drafter that fails fails it. */
enum status engine_run(struct engine *engine);
/* The first half of a round: free slots are filled and, where one runs (engine->lead.slots.actives), the drafter takes its turn. lead_round is the other. Of a lead that waits for nobody. */
enum status engine_begin(struct engine *engine);
/* The lead's turn, then the drafter's; neither waits, so that several engines may take turns in one process. wake: as of lead_turn. engine->lead.is_over
 * says when all is done. */
enum status engine_turn(struct engine *engine, int64_t now, int64_t *wake);
void engine_close(struct engine *engine);

#endif
