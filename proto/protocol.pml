/* The protocol between the lead and a drafter, for Spin (protocol.sh runs it). What is computed is nondeterministic; who says what when
 * is the code's, and so are the names.
 *
 * Tokens have contents (0 or 1), and so have caches: feeding a place writes the token that was fed there. A proposal carries, unseen by
 * the lead, what its drafter's cache held below the base when it was drafted. The guard compares digests; safety is about those
 * contents, so it does not follow from the guard.
 *
 * The channels delay without bound and hold ROOM messages each way. FAULTS is the budget of messages lost, repeated or overtaken,
 * RESTARTS that of drafters that lose all they know. A drafter may run ahead on any outcome of the round and may draft again unasked:
 * more than the one there is does. A proposal that waits in its channel until its time comes stands for one kept in a table. One request
 * at a time and no request numbers: they tell apart what the digest tells apart too.
 *
 * GUARD: DIGEST as the code has it; EPOCH, a number that the lead raises whenever a commit is not what the drafter ran ahead on; LENGTH
 * alone. REPEAT: requests without end, for liveness. FREE: faults without a budget, and a drafter that may stop. OBEDIENT: a drafter
 * that only drafts when told. KEEPING: a drafter that keeps what it drafts for an outcome beside its draft, sends it or not, and copies it into its place
 * when a Commit says that outcome; HASTY does so, by mistake, whatever the tokens of that outcome are. ADAPTIVE: a lead that may ask for nothing for some rounds. Two mistakes: BLIND, a mirror that does not compare
 * a Commit with what it fed; GREEDY, a lead that reads as long as something comes. WITNESS: the number of a thing that must be possible;
 * the run stops there. */
#define DIGEST 1
#define EPOCH  2
#define LENGTH 3

#ifndef GUARD
#define GUARD DIGEST
#endif
#ifndef LIMIT
#define LIMIT 4 /* tokens of a whole sequence; the prompt is one */
#endif
#ifndef DRAFT
#define DRAFT 2 /* draft length */
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef RESTARTS
#define RESTARTS 1
#endif
#ifndef ROOM
#define ROOM 2
#endif
#ifndef MISSES_TO_LOSE
#define MISSES_TO_LOSE 2
#endif
#ifndef WITNESS
#define WITNESS 0
#endif

#define FIRST(n)          ((1 << (n)) - 1) /* mask of the first n places */
#define TOKEN(tokens, at) (((tokens) >> (at)) & 1)
#define MIN(a, b)         ((a) < (b) -> (a) : (b))
#define WANTS(length)     ((length) < LIMIT - 1 -> MIN(DRAFT, LIMIT - 1 - (length)) : 0) /* sequence_wants: one less than may still come */
#define WANTED(length)    (quiet -> 0 : WANTS(length))
/* A digest is a name of tokens: no two names are alike. It is carried and extended as the code does, never computed from what is held. */
#define DIGEST_OF(tokens, length)              ((1 << (length)) | ((tokens) & FIRST(length)))
#define DIGEST_ADD(digest, length, new, count) (((digest) ^ (1 << (length))) | ((new) << (length)) | (1 << ((length) + (count))))
#define SEEN(number) assert(WITNESS != number)

mtype = { OPEN, COMMIT, HEARTBEAT, PROPOSAL };

/* Both lines have one shape.
 *   Open:     length, tokens, -, mark
 *   Commit:   old length, new tokens, their number, mark, finish
 *   Proposal: base length, drafts, their number, mark, the token it runs ahead on, what the cache held below the base, is it one ahead
 * The mark is the digest, or the epoch. */
chan down = [ROOM] of { mtype, byte, byte, byte, byte, bit, byte, bit };
chan up = [ROOM] of { mtype, byte, byte, byte, byte, bit, byte, bit };

byte faults = FAULTS, restarts = RESTARTS;

/* The lead's sequence, and the drafter as it sees it (struct sequence, struct peer). */
byte length, tokens, mark, cached, target_cache;
bit assigned, known, quiet, missed, has_proposal, lost, asked, reopen, expired;
byte wanted, misses, rest;
byte p_drafts, p_count, p_computed_on;
bit p_guess, p_ahead;
bit used, ended; /* for liveness: set for one state each */
bit restarted, was_lost; /* for the witnesses */

/* The drafter's mirror, and what its cache really holds. */
bit m_open;
byte m_length, m_tokens, m_mark, m_cached, m_wanted, m_drafted, m_cache;
bit m_guess;
byte b_new, b_text, b_what, b_many; /* a branch that it keeps: a text of so many new tokens (0: there is none), and what is drafted for it */
bit b_sent, copied;

/* A token. Where faults are free all are alike, for only whether requests end is asked. */
inline choose(token)
{
    if
    :: token = 0
#ifndef FREE
    :: token = 1
#endif
    fi
}

/* As channel_send: refuses when the outbox is full. The faults happen here. */
inline send(line, type, at, what, many, with, sign, held, is_ahead)
{
    if
    :: full(line) -> taken = 0
    :: nfull(line) ->
        taken = 1;
        if
        :: line!type, at, what, many, with, sign, held, is_ahead
#ifdef FREE
        :: skip
#else
        :: faults > 0 -> faults--
        :: faults > 0 && len(line) + 1 < ROOM ->
            faults--;
            line!type, at, what, many, with, sign, held, is_ahead;
            line!type, at, what, many, with, sign, held, is_ahead
#endif
        fi
    fi
}

/* The first message is late: those behind it come before. */
inline overtake(line)
{
    faults--;
    line?type, at, what, many, with, sign, held, ahead;
    line!type, at, what, many, with, sign, held, ahead;
    forget_message()
}

inline forget_message()
{
    type = 0; at = 0; what = 0; many = 0; with = 0; sign = 0; held = 0; ahead = 0
}

#include "protocol_lead.pml"
#include "protocol_drafter.pml"

#ifdef REPEAT
/* The deadline of what is expected. While there are faults to come it may pass before a drafter that is slow; else only in vain. */
active proctype clock()
{
end:
    do
#ifdef FREE
    :: EXPECTED && !expired -> expired = 1
#else
    :: atomic { EXPECTED && !expired && faults > 0 -> faults--; expired = 1 }
    :: atomic { EXPECTED && !expired && empty(up) && empty(down) && m_wanted == 0 -> expired = 1 }
#endif
    od
}

ltl every_request_ends { []<> ended }
ltl proposals_are_used_again { []<> used }
#endif
