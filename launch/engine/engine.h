/* The whole engine in one process: it owns a lead and some drafters, whose messages are packed, checked and unpacked over a loop channel in memory.
 * Either the caller gives each its turn, and no wait blocks, so that results do not depend on a clock; or the lead runs as in a job, and drafters
 * take their turns where it waits for them; or the caller lets time pass in such a wait (hooks) and chooses whose turn comes when. One thread; local.
 * For tests and measurements; no program of a job uses it, and it starts no MPI. */
#ifndef TANDEM_LAUNCH_ENGINE_ENGINE_H
#define TANDEM_LAUNCH_ENGINE_ENGINE_H

#include "common/wire/channel_loop.h"
#include "drafter/drafter.h"
#include "verifier/round/lead.h"

/* Names on the loop: the lead, the drafters from ENGINE_DRAFTER on, and behind the last of them one that is nobody's. */
enum { ENGINE_LEAD, ENGINE_DRAFTER, ENGINE_DRAFTERS = 4, ENGINE_ENDS = ENGINE_DRAFTER + ENGINE_DRAFTERS + 1 };

struct engine_draft {
    struct draft *draft; /* what drafts */
    int vocab, context;  /* its own */
};

/* All of it borrowed until engine_close. */
struct engine_terms {
    struct team *team;              /* the lead's */
    struct engine_draft draft[ENGINE_DRAFTERS];
    int drafters; /* so many of them; 0: the lead decodes solo */
    int kinds;    /* as of peers; 0 is 1 */
    const struct tokenizer *tokenizer;
    const struct request_list *requests;
    const struct lead_watch *watch;   /* or NULL */
    const struct loop_faults *faults; /* of the loop, or NULL */
    const struct loop_hooks *hooks;   /* of the loop; NULL: where there is a deadline the drafters take their turns while the lead waits */
    uint64_t run;
    int slots;
    int outputs, ids; /* as for verify_open */
    int hash_logits;
    int run_ahead, branches; /* as of the drafters */
    int prefill_chunk;  /* as of the lead */
    double deadline_ms; /* how long the lead waits for drafts; 0: not at all */
    int patient;        /* as of peers: every wait may take all of it */
};

struct engine {
    struct channel *end[ENGINE_ENDS];
    struct peers peers;
    struct verify verify;
    struct lead lead;
    struct drafter drafter[ENGINE_DRAFTERS];
    struct drafter_terms terms[ENGINE_DRAFTERS];
    int is_there[ENGINE_DRAFTERS]; /* the drafter is open */
    int drafters;
    enum status status; /* of the turns that they took while the lead waited: the first that failed */
};

/* All drafters are there. Nothing is open where it fails. */
enum status engine_open(struct engine *engine, const struct engine_terms *terms);
/* The whole run, of a lead that waits. A drafter that fails fails it. */
enum status engine_run(struct engine *engine);
/* The first half of a round: free slots are filled and, where one runs (engine->lead.slots.actives), the drafters take their turns. lead_round is the
 * other. Of a lead that waits for nobody. */
enum status engine_begin(struct engine *engine);
/* The lead's turn, then the drafters'; none waits, so that several engines may take turns in one process. wake: as of lead_turn. engine->lead.is_over
 * says when all is done. */
enum status engine_turn(struct engine *engine, int64_t now, int64_t *wake);
/* A turn of drafter `i`, which is there, for callers that say whose turn it is. */
enum status engine_turn_drafter(struct engine *engine, int i, int64_t now);
/* The life of drafter `i` ends, and another begins that knows nothing. What becomes of its end of the loop meanwhile is the caller's
 * (channel_loop_kill). */
void engine_stop_drafter(struct engine *engine, int i);
enum status engine_start_drafter(struct engine *engine, int i);
void engine_close(struct engine *engine);

#endif
