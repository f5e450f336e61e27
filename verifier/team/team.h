/* The team is the verifier group at work: the lead broadcasts orders, every rank computes on its shard, the lead gathers. It owns the shard, the
 * step's block and the memory for evidence; the group is borrowed. Invariant: between calls no order is under way, and followers have done the same
 * orders as the lead, so nothing is decided twice. The lead's thread calls the orders, the other ranks call team_follow alone; all but open and close
 * is collective over the group. Allocates at open alone; never talks to drafters. */
#ifndef TANDEM_VERIFIER_TEAM_TEAM_H
#define TANDEM_VERIFIER_TEAM_TEAM_H

#include "common/wire/drain_relay.h"
#include "verifier/team/shard.h"

struct team {
    struct drain_relay *relay; /* borrowed; by it a follower that is told to drain tells the lead; may be NULL */
    struct group *group; /* borrowed */
    struct shard shard;
    struct step step;      /* the last step; its block is in the arena */
    struct arena arena;
    unsigned char *evidence; /* [evidence_room] this rank's */
    unsigned char *gathered; /* [ranks][evidence_room] on the lead */
    size_t evidence_room;
    float *whole;          /* [ranks][largest vocab_count] for whole rows */
    int vocab_width;       /* largest vocab_count of any rank */
};

/* Local. A step has at most model->max_rows rows, max_outputs output rows and max_ids ids of supports. */
enum status team_open(struct team *team, struct model *model, int slots, int max_outputs, int max_ids);
void team_close(struct team *team);

/* Collective over the group, down to team_end: called on the lead, carried out by team_follow on the others. */
enum status team_open_slot(struct team *team, const struct slot_terms *terms);
enum status team_copy(struct team *team, const struct copy_order *order);
/* In order: what was moved to a place is read there by none that comes after it.  orders: [count], at most max_outputs of team_open */
enum status team_keep(struct team *team, const struct keep_order *orders, int count);
/* Runs team->step. Afterwards rank r's evidence begins at team->gathered + r * *bytes. */
enum status team_step(struct team *team, size_t *bytes);
/* winners: [count] the best over all shards; token -1: none */
enum status team_draws(struct team *team, const struct draw_order *orders, int count, struct evidence_winner *winners);
/* logits: [model->vocab] of one output row, processed */
enum status team_whole_row(struct team *team, int output, float *logits);
enum status team_note(struct team *team, const struct commit_note *notes, int count);
/* log p of a token and of the most probable ones, by the logits as the model gave them: without temperature, penalties and biases. */
struct logprob {
    float logprob;
    int count;
    struct scored_token top[ROW_MAX_LOGPROBS]; /* [count], the most probable first; score: log p */
};
/* logprobs: [count], count at most max_outputs of team_open */
enum status team_logprobs(struct team *team, const struct logprob_order *orders, int count, struct logprob *logprobs);
/* Sum of the shards' hashes. */
enum status team_hash(struct team *team, uint64_t *hash);
/* Tells the followers that the lead is alive but idle, so that no watchdog ends the job. Collective over the group. */
enum status team_rest(struct team *team);
enum status team_end(struct team *team);

/* Collective over the group, on every rank but the lead: follows orders until the end. */
enum status team_follow(struct team *team);

#endif
