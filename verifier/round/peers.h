/* The drafters as the lead sees them: who drafts for which sequence, how long they usually take, and who does not answer. A drafter that
 * misses a deadline is told everything anew, for it may have missed a message. One that misses several is not waited for any more, and asked
 * with a Heartbeat after a rest; when it answers its sequences are opened anew. One whose process is known to have ended is neither waited for nor
 * asked: its sequences go to the others. Every drafter is told a few times a second that the lead is there. */
#ifndef TANDEM_VERIFIER_ROUND_PEERS_H
#define TANDEM_VERIFIER_ROUND_PEERS_H

#include "common/wire/channel.h"
#include "verifier/round/sequence.h"

struct peer {
    int name;          /* on the channel: its world rank */
    int lost;          /* it missed its deadlines, or its outbox is full, or it has ended */
    int gone;          /* its process has ended */
    const char *why;   /* it was lost for the first time; NULL: never */
    int64_t told_ns;   /* when it was sent anything */
    int64_t heard_ns;  /* when it last sent anything */
    int misses;        /* rounds in a row with a missed deadline */
    int late;          /* this round is one */
    int sequences;
    int answers;       /* proposals so far */
    double usual_ns;   /* moving mean of request to answer */
    int reopen;        /* it was lost and is heard again */
    int context;       /* tokens that it has room for; 0: as many as anybody */
    int64_t vain_ns;   /* time that it was waited for in vain since it last answered */
    int64_t ask_ns;    /* when a lost one is asked whether it is there */
    int asked;         /* a Heartbeat was sent to it since it was lost: its next frame proves that it is alive */
    int losses;        /* how often it was lost */
};

struct peers {
    struct channel *channel; /* borrowed */
    struct message_space *space;
    struct peer *peer; /* [count] */
    int count;
    uint64_t run;
    int vocab;
    int64_t longest_ns; /* --draft-deadline */
    int64_t round_ns;   /* when the round's collecting began: it ends within longest_ns of it */
    int64_t began;      /* the same for the trace */
    int64_t looked_ns;  /* when it was last looked whether drafters are gone, whom nobody waits for */
    int asked_to_drain; /* by some rank */
    int patient;        /* every wait is that long: a check wants drafts, not speed */
    int64_t stale, refused;  /* proposals that matched nothing; messages that were none */
    struct span_sum draft, wire; /* time that a drafter took; request to arrival, less that */
};

enum status peers_open(struct peers *peers, struct channel *channel, const int *names, int count, uint64_t run, int vocab, double deadline_ms);
void peers_close(struct peers *peers);

/* Gives the sequence a drafter and sends it everything; -1 stays when all are lost. Point to point. */
enum status peers_assign(struct peers *peers, struct sequence *sequence);
/* Tells the sequence's drafter what was committed: tokens[0 .. count), of which `accepted` were drafted; `finish` ends it there. Point to point. */
enum status peers_commit(struct peers *peers, struct sequence *sequence, int old_length, const int32_t *tokens, int count, int accepted,
                         enum finish_reason finish);
/* Local. Its drafter is still reading, and its text should be the same however long that takes (its draft length is fixed): it takes part in no round
 * until the drafter has answered, or has not been heard for as long as it may be waited for. Other sequences go on plainly while theirs reads. */
int peers_holds(const struct sequence *sequence);
/* A round's collecting begins. sequences: [count], free ones included. Point to point. */
enum status peers_begin(struct peers *peers, struct sequence *sequences, int count);
/* Takes what has come, and never waits. wake: 0 when every sequence whose prompt is read and that expects a proposal has it or its deadline has passed
 * (one that is held is waited for, some time, where nobody else can go on); else until when waiting is worth while: then, or when a message came,
 * gather again. Point to point. */
enum status peers_gather(struct peers *peers, struct sequence *sequences, int count, int64_t *wake);
/* Waits for a message, at most until `wake`, and takes it; it may come back earlier, having looked whether the awaited drafters have ended. Point to
 * point. */
enum status peers_wait(struct peers *peers, struct sequence *sequences, int count, int64_t wake);
/* Takes what has come and waits for nothing: for runs that ask no drafter. sequences: [count]. Point to point. */
enum status peers_look(struct peers *peers, struct sequence *sequences, int count);
/* Local but for a Heartbeat now and then, which tells the drafters that the lead is there: to be called every round. Point to point. */
enum status peers_keep_in_touch(struct peers *peers);
/* Local. How many are lost now. */
int peers_absent(struct peers *peers);
/* The end of the run. Point to point. */
enum status peers_shutdown(struct peers *peers);

#endif
