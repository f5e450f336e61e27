/* A round's wait for proposals: how long each drafter has, who has missed it, who has ended, who is found again. */
#include "verifier/round/peers_parts.h"

#include "common/base/recorder.h"
#include "common/base/trace.h"
#include "common/base/try.h"
#include <stdio.h>

enum { MISSES_TO_LOSE = 2, PATIENCE = 8 };
#define LEAST_DEADLINE_NS ((int64_t)20 * 1000000)
#define LOOK_NS ((int64_t)5 * 1000000) /* a wait is interrupted this often to see whether the awaited drafters have ended */

int peers_holds(const struct sequence *sequence)
{
    for (int i = 0; i < sequence->linked; i++)
        if (sequence->link[i].behind && !sequence->request->adaptive)
            return 1;
    return 0;
}

/* Sends an Open for the sequences of drafters that were found again, and gives these drafters to sequences that have none of their kind. */
static enum status reopen(struct peers *peers, struct sequence *sequences, int count)
{
    for (int i = 0; i < peers->count; i++) {
        if (!peers->peer[i].reopen)
            continue;
        peers->peer[i].reopen = 0;
        for (int s = 0; s < count; s++) {
            struct draft_link *link = &sequences[s].link[i % peers->kinds];

            if (sequences[s].request == NULL || link->kind >= sequences[s].linked)
                continue;
            if (link->drafter == i)
                TRY(peers_send_open(peers, &sequences[s], link));
            else if (link->drafter < 0)
                TRY(peers_assign_link(peers, &sequences[s], link));
        }
    }
    return STATUS_OK;
}

/* Sends a Heartbeat to lost drafters whose rest is over; any frame in return proves that they are alive. */
static enum status ask_lost(struct peers *peers)
{
    for (int i = 0; i < peers->count; i++) {
        struct peer *peer = &peers->peer[i];

        if (!peer->lost || peer->gone || clock_ns() < peer->ask_ns)
            continue;
        peer->asked = 1;
        peers_rest(peer);
        if (channel_pending(peers->channel, peer->name) == 0)
            TRY(peers_send(peers, peer, message_pack_plain(peers->space, MESSAGE_HEARTBEAT, peers->run)));
    }
    return STATUS_OK;
}

/* Time of the steps of a proposal of so many tokens, as the drafter measured them: many proposals in a row may have taken none. */
static int64_t steps_ns(const struct peer *peer, int tokens)
{
    uint32_t step = peer->draft_batch_ns > peer->draft_ns ? peer->draft_batch_ns : peer->draft_ns;

    return ((int64_t)tokens + 1) * step;
}

/* PATIENCE times the drafter's usual time, or that of its steps; --draft-deadline before its first answers and at the start of a request, where it
 * counts from the round: the target may have read its prompt before. So it is where the text depends on what is drafted and the length is one that
 * was asked for: another proposal less would be another text. Never later than the round's own deadline, so a drafter that is found again during a
 * round gets what is left of it. */
static int64_t deadline_of(const struct peers *peers, const struct peer *peer, const struct sequence *sequence, const struct draft_link *link)
{
    int64_t steps = (int64_t)(PATIENCE * (double)steps_ns(peer, link->wanted));
    int64_t usual = (int64_t)(PATIENCE * peer->usual_ns), latest = peers->round_ns + peers->longest_ns;
    int64_t wait = usual > LEAST_DEADLINE_NS ? usual : LEAST_DEADLINE_NS;
    int64_t asked = sequence->rounds == 0 && link->asked_ns < peers->round_ns ? peers->round_ns : link->asked_ns;

    wait = wait > steps ? wait : steps;
    if (peers->patient || peer->answers < 4 || sequence->rounds == 0 || sequence->repeats)
        wait = peers->longest_ns;
    wait = asked + (wait < peers->longest_ns ? wait : peers->longest_ns);
    return wait < latest ? wait : latest;
}

/* A drafter that reads a long text sends Heartbeats: the deadline counts from the last one. */
static int64_t deadline_of_held(const struct peers *peers, const struct peer *peer, const struct draft_link *link)
{
    int64_t from = peer->heard_ns > link->asked_ns ? peer->heard_ns : link->asked_ns;

    return from + peers->longest_ns;
}

/* Is a proposal still to be waited for? */
static int is_awaited(const struct sequence *sequence, const struct draft_link *link)
{
    return sequence_is_read(sequence) && link->wanted > 0 && !link->has_proposal && link->drafter >= 0 && (!link->behind || peers_holds(sequence));
}

/* It is too slow, or nothing that it says can be taken. */
static void lose_late(struct peer *peer)
{
    char advice[160];

    if (peer->wrong == NULL) {
        peers_lose(peer, "does not answer in time", peer->draft_ns > 0 ? "; a slow draft model needs a longer --draft-deadline" : "");
        return;
    }
    snprintf(advice, sizeof advice, "; its last message was refused: %s", peer->wrong);
    peers_lose(peer, "sends what is refused", advice);
}

static void miss(struct peers *peers, struct peer *peer, const struct sequence *sequence, struct draft_link *link, int64_t now)
{
    link->wanted = 0; /* this round goes on without its proposal */
    link->missed = 1;
    link->behind = 0;
    peers->kind[link->kind].missed++;
    recorder_note("misses a proposal of rank # for request #", peer->name, sequence->request->index, 0);
    if (!peer->late) { /* one delay may hit many of its sequences: it counts once a round */
        peer->misses++;
        peer->vain_ns += now - peers->round_ns;
    }
    peer->late = 1;
    if (peer->misses >= MISSES_TO_LOSE)
        lose_late(peer);
}

/* What a link's wait is to end by; 0: it is not waited for, or its deadline has passed, which is counted. */
static int64_t link_deadline(struct peers *peers, struct sequence *sequence, struct draft_link *link, int64_t now)
{
    struct peer *peer;
    int64_t deadline;

    if (!is_awaited(sequence, link))
        return 0;
    peer = &peers->peer[link->drafter];
    if (peer->lost) {
        link->behind = 0;
        return 0;
    }
    deadline = link->behind ? deadline_of_held(peers, peer, link) : deadline_of(peers, peer, sequence, link);
    if (deadline > now)
        return deadline;
    miss(peers, peer, sequence, link, now);
    return 0;
}

/* The time until which to wait for proposals; 0: no longer. Counts missed deadlines. idle: only sequences that are held (peers_holds) are left. */
static int64_t next_deadline(struct peers *peers, struct sequence *sequences, int count, int idle)
{
    int64_t now = clock_ns(), latest = 0, look = peers->round_ns + PEERS_TELL_NS;

    for (int i = 0; i < count; i++)
        for (int k = 0; sequences[i].request != NULL && k < sequences[i].linked; k++) {
            struct draft_link *link = &sequences[i].link[k];
            int64_t deadline = link_deadline(peers, &sequences[i], link, now);

            if (!link->behind)
                latest = deadline > latest ? deadline : latest;
            else if (deadline > 0 && idle && look > now && latest == 0)
                latest = deadline < look ? deadline : look;
        }
    return latest;
}

/* Gives the link of a drafter that has ended to another one of its kind; where there is none, it is left alone. */
static enum status look_at_link(struct peers *peers, struct sequence *sequence, struct draft_link *link)
{
    struct peer *peer;

    if (link->has_proposal || link->drafter < 0)
        return STATUS_OK;
    peer = &peers->peer[link->drafter];
    if (!peer->gone && !channel_is_gone(peers->channel, peer->name))
        return STATUS_OK;
    peers_lose(peer, "has ended", "");
    peer->gone = 1;
    peer->sequences--;
    link->wanted = 0;
    link->behind = 0;
    return peers_assign_link(peers, sequence, link);
}

/* Where a sequence has no drafter left, it is decoded plainly. */
static enum status look_for_gone(struct peers *peers, struct sequence *sequences, int count)
{
    for (int s = 0; s < count; s++)
        for (int k = 0; sequences[s].request != NULL && k < sequences[s].linked; k++)
            TRY(look_at_link(peers, &sequences[s], &sequences[s].link[k]));
    return STATUS_OK;
}

static int nobody_goes_on(const struct sequence *sequences, int count)
{
    for (int i = 0; i < count; i++)
        if (sequences[i].request != NULL && sequence_is_read(&sequences[i]) && !peers_holds(&sequences[i]))
            return 0;
    return 1;
}

enum status peers_begin(struct peers *peers, struct sequence *sequences, int count)
{
    if (peers->count == 0)
        return STATUS_OK;
    peers->began = trace_begin();
    peers->round_ns = clock_ns();
    for (int i = 0; i < peers->count; i++)
        peers->peer[i].late = 0;
    TRY(ask_lost(peers));
    if (peers->round_ns - peers->looked_ns > PEERS_TELL_NS) { /* also in rounds that wait for no proposal */
        peers->looked_ns = peers->round_ns;
        TRY(look_for_gone(peers, sequences, count));
    }
    return STATUS_OK;
}

enum status peers_gather(struct peers *peers, struct sequence *sequences, int count, int64_t *wake)
{
    *wake = 0;
    if (peers->count == 0)
        return STATUS_OK;
    TRY(peers_look(peers, sequences, count));
    TRY(reopen(peers, sequences, count));
    *wake = next_deadline(peers, sequences, count, nobody_goes_on(sequences, count));
    if (*wake == 0)
        trace_end(TRACE_WAIT, peers->began, 0, 0, 0, 0, 0);
    return STATUS_OK;
}

enum status peers_wait(struct peers *peers, struct sequence *sequences, int count, int64_t wake)
{
    int64_t looked = clock_ns() + LOOK_NS;
    struct frame frame;
    int name, refused;

    TRY(channel_wait(peers->channel, wake < looked ? wake : looked, &name, &frame, &refused));
    if (frame.count > 0 || refused)
        peers_take(peers, name, frame, refused, sequences, count);
    else
        TRY(look_for_gone(peers, sequences, count));
    return STATUS_OK;
}
