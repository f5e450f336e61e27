/* A job from one rank's side: what is opened, in which order, and what runs on it. */
#ifndef TANDEM_VERIFIER_JOB_JOB_H
#define TANDEM_VERIFIER_JOB_JOB_H

#include "common/options/options.h"
#include "common/wire/roll_call.h"
#include "common/world/world_trace.h"
#include "verifier/round/lead.h"

struct job {
    const struct options *options;
    struct world world;
    char target[4096];
    struct tokenizer *tokenizer;
    struct group group;
    struct model *model;
    struct team team;
    int team_is_open;
    struct channel *channel;
    struct message_space *space;
    struct hello *hello; /* [world.size] */
    struct output output; /* the lead's */
    int follows;              /* this rank does what the lead orders: if it fails now, nobody knows */
    struct drain_relay relay; /* a follower's */
    struct world_trace trace;
};

/* Collective over all ranks of the job. */
enum status job_run(struct job *job);
/* One pass over requests with these drafters, or with `solo` beside them, unseen and unwritten but for the watch; `slots` sequences at once.
 * Collective over the group, on the lead. */
enum status job_pass(struct job *job, const struct request_list *requests, struct peers *drafters, int solo, int slots,
                     const struct lead_watch *watch, struct figures *figures);
/* The prompts that the options name, checked against the target, which is open. Local. STATUS_NOINPUT, STATUS_DATA, STATUS_USAGE, each with its line. */
enum status job_read_requests(struct job *job, struct request_list *requests);
/* What a pass is made with; the lead has what it borrows beside that. Closing closes both. */
enum status job_open_lead(struct job *job, struct peers *peers, struct verify *verify, struct lead *lead);
void job_close_lead(struct lead *lead);
void job_release(struct job *job);

#endif
