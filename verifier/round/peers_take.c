/* What drafters say, and what it says of them: each frame is checked, a proposal goes to its sequence, times are counted. */
#include "verifier/round/peers_parts.h"

#include "common/base/log.h"
#include "common/base/trace.h"
#include "common/base/try.h"

#define LEAST_WAY_NS 1e3
#define FORGETS      1.1 /* a way that has become longer is known to be so after some proposals */

/* A proposal is there: was it drafted beforehand? By what came of the drafts before. */
void peers_count_hit(struct peers *peers, const struct draft_link *link, int is_hit)
{
    struct ahead_outcome *outcome = link->accepted < link->verified ? &peers->ahead.rejected[link->accepted] : &peers->ahead.all;

    peers->ahead.hits += is_hit && link->kind == 0; /* a round counts once, where several drafters are waited for */
    if (link->opened || link->verified == 0 || link->kind > 0)
        return;
    outcome->rounds++;
    outcome->hits += is_hit;
}

static struct peer *find(struct peers *peers, int name)
{
    for (int i = 0; i < peers->count; i++)
        if (peers->peer[i].name == name)
            return &peers->peer[i];
    return NULL;
}

static int has_q(const struct proposal *proposal)
{
    for (int i = 0; i < proposal->count; i++)
        if (proposal->q[i].count > 0)
            return 1;
    return 0;
}

static void mean(double *of, int64_t ns)
{
    *of = *of > 0 ? 0.9 * *of + 0.1 * (double)ns : (double)ns;
}

/* The least of late: what took longer lay there while the lead verified, or the drafter was at other sequences. */
static void least(double *of, int64_t ns)
{
    double next = ns < LEAST_WAY_NS ? LEAST_WAY_NS : (double)ns;

    *of = *of > 0 && next > FORGETS * *of ? FORGETS * *of : next;
}

/* Is no other proposal waited for? Drafters of several kinds work at the same time: the round's wait is that of the last one. */
static int is_last(const struct sequence *sequence)
{
    for (int i = 0; i < sequence->linked; i++)
        if (sequence->link[i].drafter >= 0 && sequence->link[i].wanted > 0 && !sequence->link[i].has_proposal)
            return 0;
    return 1;
}

static void measure(struct peers *peers, struct peer *peer, const struct sequence *sequence, const struct draft_link *link)
{
    const struct proposal *proposal = &link->proposal;
    int64_t whole = link->came_ns - link->asked_ns, own = (int64_t)proposal->draft_us * 1000;
    int is_hit = draft_link_is_hit(link);

    own = own < whole ? own : whole;
    peer->misses = 0;
    peer->vain_ns = 0;
    peers->taken++;
    if (is_last(sequence)) {
        clock_add(&peers->draft, own);
        clock_add(&peers->wire, whole - own);
    }
    if (has_q(proposal) && !is_hit) /* one that was sent beforehand may have been on its way already when it was asked for */
        least(&peer->wire_ns, whole - own);
    peers_count_hit(peers, link, is_hit);
    if (is_hit)
        clock_add(&peers->ahead.wait, whole);
    if (proposal->ahead > 0) /* that says nothing of how long the drafter takes */
        return;
    peer->usual_ns = peer->answers == 0 ? (double)whole : 0.9 * peer->usual_ns + 0.1 * (double)whole;
    peer->answers++;
}

static void take_proposal(struct peers *peers, struct peer *peer, const struct proposal *proposal, size_t bytes, struct sequence *sequences,
                          int count)
{
    for (int i = 0; i < count; i++) {
        struct sequence *sequence = &sequences[i];
        struct draft_link *link = &sequence->link[(peer - peers->peer) % peers->kinds];

        if (sequence->request == NULL || (uint32_t)sequence->ticket != proposal->request || proposal->run != peers->run)
            continue;
        if (proposal->base_length <= (uint32_t)sequence->length && link->drafter >= 0 && &peers->peer[link->drafter] == peer) {
            if (link->behind && proposal->base_length < (uint32_t)sequence->length)
                link->wanted = 0; /* this late proposal answers the last request; the next commit asks again */
            link->behind = 0;
            link->answered = (int)proposal->base_length;
        }
        switch (sequence_offer(sequence, link, proposal)) {
        case OFFER_TAKEN:
            measure(peers, peer, sequence, link);
            return;
        case OFFER_KEPT:
            peers->ahead.proposals++;
            peers->ahead.bytes += (int64_t)bytes;
            return;
        case OFFER_REFUSED:
            break;
        }
    }
    peers->stale++;
}

/* Returns NULL, or why the frame is refused. Any rank may send a Drain, also a follower. */
static const char *take_drain(struct peers *peers, int name, struct frame frame)
{
    uint64_t run;
    const char *wrong = message_unpack_plain(peers->space, frame, &run);

    if (wrong != NULL)
        return wrong;
    if (run != ~peers->run)
        return "of another run";
    if (!peers->asked_to_drain)
        log_debug("rank %d was told to drain", name);
    peers->asked_to_drain = 1;
    return NULL;
}

/* Returns NULL, or why the frame is refused. */
static const char *take_heartbeat(struct peers *peers, struct frame frame)
{
    uint64_t run;
    const char *wrong = message_unpack_plain(peers->space, frame, &run);

    return wrong == NULL && run != peers->run ? "of another run" : wrong;
}

void peers_take(struct peers *peers, int name, struct frame frame, int refused, struct sequence *sequences, int count)
{
    struct peer *peer = find(peers, name);
    struct proposal proposal;
    struct failure failure;
    int64_t began = trace_begin(), came = clock_ns();
    int type = refused ? 0 : message_type(frame);
    const char *wrong = NULL;

    if (type == MESSAGE_DRAIN)
        wrong = take_drain(peers, name, frame);
    else if (refused || peer == NULL)
        wrong = "not a frame of a drafter";
    else if (type == MESSAGE_PROPOSAL)
        wrong = message_unpack_proposal(peers->space, frame, peers->vocab, &proposal);
    else if (type == MESSAGE_HEARTBEAT)
        wrong = take_heartbeat(peers, frame);
    else if (type == MESSAGE_FAILURE)
        wrong = message_unpack_failure(peers->space, frame, &failure);
    else
        wrong = "not a message for the lead";
    if (peer != NULL)
        peer->wrong = wrong;
    if (wrong != NULL) {
        peers->refused++;
        log_debug("dropped a message from rank %d: %s", name, wrong);
        return;
    }
    if (type == MESSAGE_DRAIN || peer == NULL)
        return;
    peers->bytes.received++;
    peers->bytes.received_bytes += (int64_t)frame.count;
    peer->heard_ns = clock_ns();
    if (type == MESSAGE_FAILURE) { /* a Failure is the last message of a drafter */
        peers_lose(peer, "cannot go on", "");
        return;
    }
    if (peer->lost && peer->asked) { /* a frame before it was asked is a late answer, and does not prove that it is alive now */
        peer->lost = 0;
        peer->misses = 0;
        peer->reopen = 1;
        log_debug("drafter rank %d is heard again", name);
    }
    if (type == MESSAGE_PROPOSAL) {
        take_proposal(peers, peer, &proposal, frame.count, sequences, count);
        if (has_q(&proposal))
            mean(&peers->unpack_ns, clock_ns() - came);
        trace_end(TRACE_UNPACK, began, proposal.request, (int)proposal.base_length, proposal.count, proposal.ahead, (int64_t)frame.count);
    }
}

/* Takes at most as many messages as all outboxes can hold: a drafter that never stops sending must not keep the lead from its round and its clock. */
enum status peers_look(struct peers *peers, struct sequence *sequences, int count)
{
    for (int left = (peers->count + 1) * CHANNEL_OUTBOX; left > 0; left--) {
        struct frame frame;
        int name, refused;

        TRY(channel_receive(peers->channel, &name, &frame, &refused));
        if (frame.count == 0 && !refused)
            return STATUS_OK;
        peers_take(peers, name, frame, refused, sequences, count);
    }
    return STATUS_OK;
}
