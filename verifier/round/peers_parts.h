/* What the files of the peers tell each other: peers.c has the table and tells drafters, peers_take.c takes what they say, peers_wait.c waits for it
 * and finds who does not answer. Owns nothing: all of it is in struct peers. Invariant: a drafter is lost by peers_lose alone and found by peers_take
 * alone. Nobody outside these files may include it; what others may call is in peers.h. */
#ifndef TANDEM_VERIFIER_ROUND_PEERS_PARTS_H
#define TANDEM_VERIFIER_ROUND_PEERS_PARTS_H

#include "verifier/round/peers.h"

#define PEERS_TELL_NS ((int64_t)250 * 1000000) /* a drafter that was sent nothing for this long is sent a Heartbeat */

/* peers.c */
/* Nobody waits for it from now on. why: said once, with the advice behind it. Local. */
void peers_lose(struct peer *peer, const char *why, const char *advice);
/* Begins the rest of a lost drafter, after which it is asked. Local. */
void peers_rest(struct peer *peer);
/* To a drafter that has not ended; one that takes no messages is lost. Point to point. */
enum status peers_send(struct peers *peers, struct peer *peer, struct frame frame);
/* All tokens of the sequence to the drafter of this link, which then drafts. Point to point. */
enum status peers_send_open(struct peers *peers, struct sequence *sequence, struct draft_link *link);
/* Gives the link the drafter of its kind with the fewest sequences. Point to point. */
enum status peers_assign_link(struct peers *peers, struct sequence *sequence, struct draft_link *link);

/* peers_take.c */
/* A proposal is there: was it drafted beforehand? Local. */
void peers_count_hit(struct peers *peers, const struct draft_link *link, int is_hit);
/* What came from `name`: a frame of any rank, or one that the channel has refused. sequences: [count]. Local. */
void peers_take(struct peers *peers, int name, struct frame frame, int refused, struct sequence *sequences, int count);

#endif
