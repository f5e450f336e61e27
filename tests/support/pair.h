/* The embedded pair at work in one process: the lead's and the drafter's own loops, in turns, over a loop channel; the target on one shard or on
 * several (threads). With a deadline of nothing the lead waits for nobody, so no clock counts. What a request comes to is taken from the
 * audience's call of output_add, which the linker wraps (-Wl,--wrap=output_add). What goes wrong ends the test. */
#ifndef TANDEM_TESTS_SUPPORT_PAIR_H
#define TANDEM_TESTS_SUPPORT_PAIR_H

#include "launch/engine/engine.h"
#include "tests/support/thread_group.h"

enum { PAIR_SLOTS = 4, PAIR_SHARDS = 2, PAIR_OUTPUTS = PAIR_SLOTS * MESSAGE_MAX_COMMIT, PAIR_IDS = PAIR_SLOTS * MESSAGE_MAX_DRAFT * 256 };

/* What a request came to. */
struct pair_result {
    int32_t *tokens; /* [count] after the prompt */
    int count;
    char *text;
    size_t length;
    enum finish_reason finish; /* FINISH_ERROR: text is the reason */
    size_t before;             /* bytes of text when its last round began */
    int64_t rounds, drafted, accepted;
};

struct pair {
    int shards;
    struct tokenizer *tokenizer;
    struct thread_group threads;
    struct group group[PAIR_SHARDS], self;
    struct model *target[PAIR_SHARDS], *draft_model;
    struct team team[PAIR_SHARDS];
    struct draft draft;
    pthread_t follower;
};

/* draft: the folder of launch/demo that drafts, "draft" or "target". */
void pair_open(struct pair *pair, int shards, const char *draft);
/* From now on what drafts are copies of what followed before (--draft lookup). */
void pair_copy(struct pair *pair);
void pair_close(struct pair *pair);

/* What requests for the target are checked against. */
struct request_terms pair_terms(const struct pair *pair, const struct options *options);

/* What an engine of the pair is opened with, patient, with as many slots as the pair has; the caller changes what is to be otherwise. */
struct engine_terms pair_engine(struct pair *pair, const struct request_list *requests, const struct lead_watch *watch, int with_drafter);

/* Completes all requests, solo or with the drafter.  results: [requests->count], filled; figures may be NULL. */
void pair_run(struct pair *pair, const struct request_list *requests, int with_drafter, struct pair_result *results, struct figures *figures);
void pair_release(struct pair_result *results, int count);

#endif
