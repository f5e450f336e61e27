/* What the files of the lead tell each other: lead_queue.c admits, lead_round.c takes a round up to where it waits, lead_commit.c ends it,
 * lead_pacing.c chooses draft lengths, lead_drain.c looks after others between rounds; lead.c makes turns of these. Owns nothing: all of it is in
 * struct lead. Nobody outside these files may include it; what others may call is in lead.h. */
#ifndef TANDEM_VERIFIER_ROUND_LEAD_PARTS_H
#define TANDEM_VERIFIER_ROUND_LEAD_PARTS_H

#include "verifier/round/lead.h"

/* lead_queue.c */
void lead_count_active(struct lead *lead);
/* Are there requests without a result, running or not? */
int lead_is_unfinished(const struct lead *lead);
/* How many sequences will run at once, at first: as many as there are completions, and slots for them. */
int lead_count_next(const struct lead *lead);
/* The first request that has no result yet; NULL: there is none. */
const struct request *lead_find_first(const struct lead *lead);

/* lead_round.c */
/* Takes the round as far as it goes without blocking. wake: 0 when it is over, else the time until which it waits for messages. */
enum status lead_go_on(struct lead *lead, int64_t *wake);
/* Tells the watch how many prompt tokens were read since it was last told, and `more` on top. */
void lead_tell_read(struct lead *lead, int more);

/* lead_commit.c */
/* Commits the outcomes of the ready sequences. Those that end with this have their results told and free their slots. */
enum status lead_commit_all(struct lead *lead);
/* The sequence has ended: tells the watch and frees the slot. */
enum status lead_finish(struct lead *lead, struct sequence *sequence);
/* The same for one whose request asks for no token. */
enum status lead_finish_empty(struct lead *lead, struct sequence *sequence);
/* Ends those of them whose prompts are read. */
enum status lead_finish_read(struct lead *lead);

/* lead_pacing.c */
/* Times steps of 1 row up to the rows of a round with drafts, before anything is decoded, so that no drafter is asked where drafts cannot pay. */
enum status lead_warm_up(struct lead *lead);
/* The shape of the drafts that are to be asked for now, where the job leaves it to the lead: of a request with a draft length of its own a tree,
 * which says nothing of what pays. */
enum tree_kind lead_shape(const struct lead *lead, const struct sequence *sequence);
/* Gives the round's measurements to `adaptive` and takes the next draft length from it. wait_ns: waiting for proposals; decided_ns: verifying. */
void lead_choose_length(struct lead *lead, int64_t wait_ns, int64_t decided_ns);
/* Where lengths go by verdicts: each sequence's next one, after every round with drafters. */
void lead_follow_verdicts(struct lead *lead);

/* lead_drain.c */
/* Heartbeats to all drafters, and a look whether the job was told to drain. doing: what the watchdog says was going on. */
enum status lead_keep_in_touch(struct lead *lead, int64_t now, const char *doing);

#endif
