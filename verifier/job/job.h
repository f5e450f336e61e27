/* A job from one rank's side. It owns what the rank holds while the job runs: the world, tokenizer, model, group, team, channel and the lead's
 * output. Invariant: parts are opened in one order on all ranks, and closed in the reverse order also where opening failed. Which command runs, the
 * caller chooses (struct job_command); the job never knows more of it. The main thread alone calls; collective where so said. */
#ifndef TANDEM_VERIFIER_JOB_JOB_H
#define TANDEM_VERIFIER_JOB_JOB_H

#include "common/options/options.h"
#include "common/wire/roll_call.h"
#include "common/world/world_trace.h"
#include "verifier/job/comparison.h"
#include "verifier/job/perplexity.h"
#include "verifier/job/times.h"
#include "verifier/result/output.h"
#include "verifier/round/lead.h"

struct job {
    const struct options *options;
    struct world world;
    char target[4096];
    struct tokenizer *tokenizer;
    struct group group;
    struct model *model;
    int threads; /* of this rank */
    struct team team;
    int team_is_open;
    struct channel *channel;
    struct message_space *space;
    struct hello *hello; /* [world.size] */
    struct output output; /* the lead's */
    const struct perplexity *perplexity; /* of the text that the job was about, for its report; NULL: of none */
    int depends_on_drafts;               /* the text of a request does, not only its distribution */
    const struct request *lossy;         /* the first one by a rule that is not lossless; NULL: none */
    double load;                         /* of this host in the minute before it began; 0 or less: not known */
    int learns;              /* passes are over the same requests, so that each begins with what the one before learnt of drafts: */
    struct adaptive learnt;
    struct adaptive_shape learnt_shape;
    int64_t load_ns;          /* that this rank's models took to load */
    struct times times;       /* as this job and earlier ones measured them */
    int has_times;            /* this one did, too */
    char kind_text[MERGE_MOST][OPTIONS_DRAFT_TEXT]; /* what the kinds of drafters are called, */
    const char *kind[MERGE_MOST];                   /* and where each begins */
    int follows;              /* this rank carries out the lead's orders. The lead is not told when it fails, so main ends the job then. */
    struct drain_relay relay; /* a follower's */
    struct world_trace trace;
};

/* What a job is asked to do, by its lead once everything is open. */
struct job_command {
    const char *name;
    int takes_prompts; /* those that the options name are read first */
    int is_patient;    /* every wait for a draft may take as long as the drafter is heard */
    int keeps_results; /* where it was told to drain, it says how far they are */
    /* requests: none where it takes none */
    enum status (*run)(struct job *job, struct peers *drafters, const struct request_list *requests);
};

/* Opens all parts, lets the command run, and tells the others that it is over. Collective over all ranks of the job. */
enum status job_run(struct job *job, const struct job_command *command);
/* A run's figures, for who is there to read them and to --stats. solo, comparison: NULL where nothing is compared; terms: of the drafts, NULL where
 * they are not known. Collective over the group, on the lead. */
enum status job_report(struct job *job, const struct peers *drafters, const struct figures *solo, const struct figures *figures,
                       const struct comparison *comparison, const struct adaptive_terms *terms);
/* Who drafts in a pass: the drafters; nobody; or nobody, and steps have as many rows as if the requests' draft lengths had been drafted. */
enum job_drafts { JOB_DRAFTED, JOB_SOLO, JOB_FILLED };
/* One pass over requests with these drafters, or without them beside it, unseen and unwritten but for the watch; `slots` sequences at once, 0:
 * all there are. Collective over the group, on the lead. */
enum status job_pass(struct job *job, const struct request_list *requests, struct peers *drafters, enum job_drafts drafts, int slots,
                     const struct lead_watch *watch, struct figures *figures);
/* The prompts that the options name, checked against the target, which is open. Local. STATUS_NOINPUT, STATUS_DATA, STATUS_USAGE, each with its
 * line. */
enum status job_read_requests(struct job *job, struct request_list *requests);
/* What a pass is made with; the lead has what it borrows beside that. Closing closes both. */
enum status job_open_lead(struct job *job, struct peers *peers, struct verify *verify, struct lead *lead);
void job_close_lead(struct job *job, struct lead *lead);
void job_release(struct job *job);

#endif
