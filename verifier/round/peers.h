/* Peers are the drafters as the lead sees them: who drafts for which sequence (one of each kind, where proposals are merged), how long each usually
 * takes, who does not answer. It owns that table; the channel is borrowed. Invariant: no round waits for proposals longer than --draft-deadline,
 * whatever drafters do. A drafter that misses a deadline gets an Open with all tokens, as it may have lost a message; one that misses two in a row is
 * lost: not waited for, asked with a Heartbeat after a rest, reopened when it answers. One whose process has ended is neither waited for nor asked.
 * Only the lead's thread may call; point to point, never collective. Allocates at open alone, and commits nothing. */
#ifndef TANDEM_VERIFIER_ROUND_PEERS_H
#define TANDEM_VERIFIER_ROUND_PEERS_H

#include "common/wire/channel.h"
#include "verifier/round/figures.h"
#include "verifier/round/sequence.h"

struct peer {
    int name;          /* on the channel: its world rank */
    int lost;          /* it missed deadlines, takes no messages, or has ended: nobody waits for it */
    int gone;          /* its process has ended */
    const char *why;   /* why it was first lost; NULL: never */
    const char *wrong; /* why its last message was refused; NULL: it was not */
    int64_t told_ns;   /* when it was last sent anything */
    int64_t heard_ns;  /* when it last sent anything */
    int misses;        /* rounds in a row with a missed deadline */
    int late;          /* it missed a deadline in this round */
    int sequences;
    int answers;       /* proposals that it has sent so far */
    double usual_ns;   /* moving mean of the time from request to proposal */
    double wire_ns;    /* the least of late of the same less the drafter's own time, of proposals with a q; 0: not known */
    int reopen;        /* it was lost and is heard again: its sequences are to be opened again */
    int context;       /* tokens of a sequence that it has room for; 0: no limit */
    uint32_t draft_ns, draft_batch_ns; /* what it measured of a draft step: of one sequence, and of as many as there are slots */
    int64_t vain_ns;   /* total time that it was waited for in vain since it last answered */
    int64_t ask_ns;    /* when to ask a lost drafter again */
    int asked;         /* a Heartbeat was sent to it since it was lost: its next frame proves that it is alive */
    int losses;        /* how often it was lost */
};

struct peers {
    struct channel *channel; /* borrowed */
    struct message_space *space;
    struct peer *peer; /* [count] */
    int count;
    int kinds; /* drafter i is of kind i % kinds; a sequence has one of each */
    uint64_t run;
    uint32_t pass; /* times that peers_count_anew was called: leads that these drafters have had */
    int vocab;
    int64_t longest_ns; /* --draft-deadline */
    int64_t round_ns;   /* when collecting proposals for the round began; it ends longest_ns later at the latest */
    int64_t began;      /* the same for the trace */
    int64_t looked_ns;  /* when peers_begin last looked for drafters that have ended */
    int asked_to_drain; /* some rank has asked to drain the job */
    int patient;        /* every wait may last longest_ns: for `tandem check`, which wants drafts and not speed */
    double price;       /* [0, 1): of the row of one more draft, in tokens of the job (adaptive_price); 0: not known, or nobody asks */
    double unpack_ns;   /* moving mean of the time that taking a proposal with a q takes; 0: not known */
    struct merge merge; /* how often drafts of each kind were accepted */
    struct ahead_figures ahead; /* this and what follows: since peers_count_anew */
    struct wire_figures bytes;
    struct kind_figures kind[MERGE_MOST];
    int64_t taken;           /* proposals for the committed tokens, as they came */
    int64_t fetched;         /* proposals taken from a shelf when their tokens were committed */
    int64_t stale, refused;  /* proposals for other tokens than the committed ones; invalid messages */
    struct span_sum draft, wire; /* time that drafters took; the rest of the time from request to proposal */
};

enum status peers_open(struct peers *peers, struct channel *channel, const int *names, int count, uint64_t run, int vocab, double deadline_ms);
void peers_close(struct peers *peers);
/* Local. The figures of one lead are not those of the one before it, which had the same drafters. */
void peers_count_anew(struct peers *peers);

/* Gives the sequence the drafter with the fewest sequences of each kind, and sends it an Open if drafts are wanted; a link's drafter is -1 where all
 * of its kind are lost. Point to point. */
enum status peers_assign(struct peers *peers, struct sequence *sequence);
/* Tells the sequence's drafters what was committed: tokens[0 .. count), of which `accepted` were drafted. finish: why the request ends, if it does.
 * Point to point. */
enum status peers_commit(struct peers *peers, struct sequence *sequence, int old_length, const int32_t *tokens, int count, int accepted,
                         enum finish_reason finish);
/* Local. Is the sequence held out of rounds? With a fixed draft length the text must not depend on how long the drafter reads, so the sequence waits
 * until its drafter has answered or was silent for longest_ns. With an adaptive one it is decoded plainly meanwhile. */
int peers_holds(const struct sequence *sequence);
/* Starts collecting a round's proposals. sequences: [count], free ones included. Point to point. */
enum status peers_begin(struct peers *peers, struct sequence *sequences, int count);
/* Takes what has come, without waiting. wake: 0 when each sequence whose prompt is read and that expects a proposal has it or its deadline has
 * passed; else gather again at that time or when a message has come. Held sequences are waited for only where no other can go on, and not for ever.
 * Point to point. */
enum status peers_gather(struct peers *peers, struct sequence *sequences, int count, int64_t *wake);
/* Waits for a message until `wake` at most, and takes it; may return earlier, to see whether awaited drafters have ended. Point to point. */
enum status peers_wait(struct peers *peers, struct sequence *sequences, int count, int64_t wake);
/* Takes what has come, without waiting. sequences: [count]. Point to point. */
enum status peers_look(struct peers *peers, struct sequence *sequences, int count);
/* Sends a Heartbeat to drafters that were sent nothing for a while. To be called every round. Point to point. */
enum status peers_keep_in_touch(struct peers *peers);
/* Local. The number of drafters that are lost now; marks those that have ended. */
int peers_absent(struct peers *peers);
/* Tells all drafters that the run is over. Point to point. */
enum status peers_shutdown(struct peers *peers);

#endif
