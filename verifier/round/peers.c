#include "verifier/round/peers.h"

#include "common/base/log.h"
#include "common/base/recorder.h"
#include "common/base/trace.h"
#include "common/base/try.h"
#include <stdlib.h>

enum { MISSES_TO_LOSE = 2, PATIENCE = 8, REST_FACTOR = 8 };
#define LEAST_DEADLINE_NS ((int64_t)20 * 1000000)
#define LEAST_REST_NS ((int64_t)20 * 1000000)
#define LOOK_NS ((int64_t)5 * 1000000)    /* a wait is interrupted this often to see whether the awaited drafters have ended */
#define TELL_NS ((int64_t)250 * 1000000)  /* a drafter that was sent nothing for this long is sent a Heartbeat */

enum status peers_open(struct peers *peers, struct channel *channel, const int *names, int count, uint64_t run, int vocab, double deadline_ms)
{
    enum status status;

    *peers = (struct peers){
        .channel = channel, .count = count, .run = run, .vocab = vocab, .longest_ns = (int64_t)(deadline_ms * 1e6)};
    peers->peer = calloc((size_t)count + 1, sizeof *peers->peer);
    if (peers->peer == NULL) {
        log_error("no memory for %d drafters", count);
        return STATUS_INTERNAL;
    }
    for (int i = 0; i < count; i++)
        peers->peer[i].name = names[i];
    status = message_space_open(&peers->space);
    if (status != STATUS_OK)
        free(peers->peer);
    return status;
}

void peers_close(struct peers *peers)
{
    message_space_close(peers->space);
    free(peers->peer);
}

/* A lost drafter is asked again only after REST_FACTOR times the time that was spent on waiting for it in vain. So a drafter that is always too late
 * costs a small share of the time, and one that has recovered is found after that rest. */
static void rest(struct peer *peer)
{
    int64_t ns = REST_FACTOR * peer->vain_ns;

    peer->ask_ns = clock_ns() + (ns > LEAST_REST_NS ? ns : LEAST_REST_NS);
}

static void lose(struct peer *peer, const char *why, const char *advice)
{
    if (peer->lost)
        return;
    if (peer->losses++ == 0) { /* a drafter that is lost again and again is reported once */
        peer->why = why;
        log_warn("drafter rank %d %s: decoding goes on without it%s", peer->name, why, advice);
    }
    recorder_note("loses drafter rank #", peer->name, 0, 0);
    peer->lost = 1;
    peer->asked = 0;
    rest(peer);
}

static enum status send(struct peers *peers, struct peer *peer, struct frame frame)
{
    int taken;

    if (peer->gone)
        return STATUS_OK;
    peer->told_ns = clock_ns();
    TRY(channel_send(peers->channel, peer->name, frame, &taken));
    if (!taken)
        lose(peer, "takes no messages", "");
    return STATUS_OK;
}

/* How many drafts to ask of the sequence's drafter: at most what fits its context. */
static int wants(const struct peers *peers, const struct sequence *sequence)
{
    int wanted = sequence_wants(sequence), context = peers->peer[sequence->link.drafter].context;
    int room = context == 0 ? wanted : context - 1 - sequence->length;

    return wanted < room ? wanted : room > 0 ? room : 0;
}

static enum status send_open(struct peers *peers, struct sequence *sequence)
{
    const struct open_message open = {.run = peers->run,
                                      .request = sequence->request->index,
                                      .prompt_count = (uint32_t)sequence->request->prompt_count,
                                      .tokens = sequence->tokens,
                                      .count = sequence->length,
                                      .sampling = sequence->request->sampling,
                                      .draft_length = (uint32_t)wants(peers, sequence),
                                      .limit = (uint32_t)sequence->limit,
                                      .bias = &sequence->bias};

    sequence->link.wanted = wants(peers, sequence);
    sequence->link.missed = 0;
    sequence->link.opened = 1;
    sequence->link.known = 1;
    sequence->link.asked_ns = clock_ns();
    sequence->link.behind = !peers->patient && sequence->length - sequence->link.answered > MESSAGE_LONG_TEXT;
    return send(peers, &peers->peer[sequence->link.drafter], message_pack_open(peers->space, &open));
}

enum status peers_assign(struct peers *peers, struct sequence *sequence)
{
    int best = -1;

    for (int i = 0; i < peers->count; i++)
        if (!peers->peer[i].lost && (best < 0 || peers->peer[i].sequences < peers->peer[best].sequences))
            best = i;
    sequence->link.drafter = best;
    sequence->link.known = 0;
    if (best < 0)
        return STATUS_OK;
    peers->peer[best].sequences++;
    if (wants(peers, sequence) > 0)
        return send_open(peers, sequence);
    sequence->link.missed = 1; /* no draft is wanted yet, so the prompt is not sent: the first request will be an Open */
    return STATUS_OK;
}

/* A proposal for the sequence is there: was it drafted beforehand? By what came of the drafts before. */
static void count_hit(struct peers *peers, const struct sequence *sequence, int is_hit)
{
    const struct draft_link *link = &sequence->link;
    struct ahead_outcome *outcome = link->accepted < link->verified ? &peers->ahead.rejected[link->accepted] : &peers->ahead.all;

    peers->ahead.hits += is_hit;
    if (link->opened || link->verified == 0)
        return;
    outcome->rounds++;
    outcome->hits += is_hit;
}

enum status peers_commit(struct peers *peers, struct sequence *sequence, int old_length, const int32_t *tokens, int count, int accepted,
                         enum finish_reason finish)
{
    struct peer *peer = sequence->link.drafter >= 0 ? &peers->peer[sequence->link.drafter] : NULL;
    int wanted = peer != NULL && finish == FINISH_NOT ? wants(peers, sequence) : 0;
    struct commit commit = {.run = peers->run,
                            .request = sequence->request->index,
                            .old_length = (uint32_t)old_length,
                            .accepted = (uint32_t)accepted,
                            .tokens = tokens,
                            .count = count,
                            .keep = (uint32_t)(old_length + count - 1),
                            .digest = sequence->digest,
                            .finish = (uint32_t)finish,
                            .draft_length = (uint32_t)wanted};

    if (peer == NULL)
        return STATUS_OK;
    if (finish != FINISH_NOT)
        peer->sequences--;
    if (peer->lost && finish == FINISH_NOT)
        return STATUS_OK; /* when it is heard again, it gets an Open with all tokens */
    if (!sequence->link.known && finish != FINISH_NOT)
        return STATUS_OK;
    sequence->link.wanted = wanted;
    sequence->link.opened = 0;
    if (wanted == 0 && finish == FINISH_NOT) {
        /* No draft is wanted: the drafter is not woken, as it may share a core with the group. The next request will be an Open with all tokens. */
        sequence->link.missed = 1;
        return STATUS_OK;
    }
    if (sequence->link.behind && finish == FINISH_NOT) {
        sequence->link.missed = 1; /* it gets all tokens in an Open when it has read what it was sent */
        return STATUS_OK;
    }
    if (sequence->link.missed && finish == FINISH_NOT)
        return send_open(peers, sequence);
    sequence->link.asked_ns = clock_ns();
    TRY(send(peers, peer, message_pack_commit(peers->space, &commit)));
    sequence->link.accepted = accepted;
    if (finish == FINISH_NOT && draft_link_fetch(&sequence->link, sequence->length, sequence->digest)) {
        peers->fetched++;
        count_hit(peers, sequence, 1);
        clock_add(&peers->ahead.wait, 0);
    }
    return STATUS_OK;
}

static struct peer *find(struct peers *peers, int name)
{
    for (int i = 0; i < peers->count; i++)
        if (peers->peer[i].name == name)
            return &peers->peer[i];
    return NULL;
}

static void measure(struct peers *peers, struct peer *peer, const struct sequence *sequence)
{
    const struct proposal *proposal = &sequence->link.proposal;
    int64_t whole = sequence->link.came_ns - sequence->link.asked_ns, own = (int64_t)proposal->draft_us * 1000;
    int is_hit = proposal->count > 0 && proposal->ahead == (uint32_t)proposal->count;

    own = own < whole ? own : whole;
    peer->misses = 0;
    peer->vain_ns = 0;
    clock_add(&peers->draft, own);
    clock_add(&peers->wire, whole - own);
    count_hit(peers, sequence, is_hit);
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

        if (sequence->request == NULL || sequence->request->index != proposal->request || proposal->run != peers->run)
            continue;
        if (proposal->base_length <= (uint32_t)sequence->length && sequence->link.drafter >= 0 && &peers->peer[sequence->link.drafter] == peer) {
            if (sequence->link.behind && proposal->base_length < (uint32_t)sequence->length)
                sequence->link.wanted = 0; /* this late proposal answers the last request; the next commit asks again */
            sequence->link.behind = 0;
            sequence->link.answered = (int)proposal->base_length;
        }
        switch (sequence_offer(sequence, proposal)) {
        case OFFER_TAKEN:
            measure(peers, peer, sequence);
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

int peers_holds(const struct sequence *sequence)
{
    return sequence->link.behind && !sequence->request->adaptive;
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

static void take(struct peers *peers, int name, struct frame frame, int refused, struct sequence *sequences, int count)
{
    struct peer *peer = find(peers, name);
    struct proposal proposal;
    struct failure failure;
    int64_t began = trace_begin();
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
    if (wrong != NULL) {
        peers->refused++;
        log_debug("dropped a message from rank %d: %s", name, wrong);
        return;
    }
    if (type == MESSAGE_DRAIN || peer == NULL)
        return;
    peer->heard_ns = clock_ns();
    if (type == MESSAGE_FAILURE) { /* a Failure is the last message of a drafter */
        lose(peer, "cannot go on", "");
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
        trace_end(TRACE_UNPACK, began, proposal.request, (int)proposal.base_length, proposal.count, 0, 0);
    }
}

/* Sends an Open for the sequences of drafters that were found again, and gives these drafters to sequences that have none. */
static enum status reopen(struct peers *peers, struct sequence *sequences, int count)
{
    for (int i = 0; i < peers->count; i++) {
        if (!peers->peer[i].reopen)
            continue;
        peers->peer[i].reopen = 0;
        for (int s = 0; s < count; s++) {
            if (sequences[s].request == NULL)
                continue;
            if (sequences[s].link.drafter == i)
                TRY(send_open(peers, &sequences[s]));
            else if (sequences[s].link.drafter < 0)
                TRY(peers_assign(peers, &sequences[s]));
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
        rest(peer);
        if (channel_pending(peers->channel, peer->name) == 0)
            TRY(send(peers, peer, message_pack_plain(peers->space, MESSAGE_HEARTBEAT, peers->run)));
    }
    return STATUS_OK;
}

/* PATIENCE times the drafter's usual time; --draft-deadline before its first answers and at the start of a request, where it counts from the round:
 * the target may have read its prompt before. Never later than the round's own deadline, so a drafter that is found again during a round gets what is
 * left of it. */
static int64_t deadline_of(const struct peers *peers, const struct peer *peer, const struct sequence *sequence)
{
    int64_t usual = (int64_t)(PATIENCE * peer->usual_ns), latest = peers->round_ns + peers->longest_ns;
    int64_t wait = peers->patient || peer->answers < 4 || sequence->rounds == 0 ? peers->longest_ns : usual > LEAST_DEADLINE_NS ? usual : LEAST_DEADLINE_NS;
    int64_t asked = sequence->rounds == 0 && sequence->link.asked_ns < peers->round_ns ? peers->round_ns : sequence->link.asked_ns;

    wait = asked + (wait < peers->longest_ns ? wait : peers->longest_ns);
    return wait < latest ? wait : latest;
}

/* A drafter that reads a long text sends Heartbeats: the deadline counts from the last one. */
static int64_t deadline_of_held(const struct peers *peers, const struct peer *peer, const struct sequence *sequence)
{
    int64_t from = peer->heard_ns > sequence->link.asked_ns ? peer->heard_ns : sequence->link.asked_ns;

    return from + peers->longest_ns;
}

/* Is a proposal still to be waited for? */
static int is_awaited(const struct sequence *sequence)
{
    return sequence->request != NULL && sequence_is_read(sequence) && sequence->link.wanted > 0 && !sequence->link.has_proposal && sequence->link.drafter >= 0 &&
           (!sequence->link.behind || peers_holds(sequence));
}

static void miss(struct peers *peers, struct peer *peer, struct sequence *sequence, int64_t now)
{
    sequence->link.wanted = 0; /* this round goes on without its proposal */
    sequence->link.missed = 1;
    sequence->link.behind = 0;
    recorder_note("misses a proposal of rank # for request #", peer->name, sequence->request->index, 0);
    if (!peer->late) { /* one delay may hit many of its sequences: it counts once a round */
        peer->misses++;
        peer->vain_ns += now - peers->round_ns;
    }
    peer->late = 1;
    if (peer->misses >= MISSES_TO_LOSE)
        lose(peer, "does not answer in time", "; a slow draft model needs a longer --draft-deadline");
}

/* The time until which to wait for proposals; 0: no longer. Counts missed deadlines. idle: only sequences that are held (peers_holds) are left. */
static int64_t next_deadline(struct peers *peers, struct sequence *sequences, int count, int idle)
{
    int64_t now = clock_ns(), latest = 0, look = peers->round_ns + TELL_NS;

    for (int i = 0; i < count; i++) {
        struct sequence *sequence = &sequences[i];
        struct peer *peer;
        int64_t deadline;

        if (!is_awaited(sequence))
            continue;
        peer = &peers->peer[sequence->link.drafter];
        if (peer->lost) {
            sequence->link.behind = 0;
            continue;
        }
        deadline = sequence->link.behind ? deadline_of_held(peers, peer, sequence) : deadline_of(peers, peer, sequence);
        if (deadline <= now)
            miss(peers, peer, sequence, now);
        else if (!sequence->link.behind)
            latest = deadline > latest ? deadline : latest;
        else if (idle && look > now && latest == 0)
            latest = deadline < look ? deadline : look;
    }
    return latest;
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
        take(peers, name, frame, refused, sequences, count);
    }
    return STATUS_OK;
}

/* Gives sequences whose drafter has ended to other drafters; where there are none, they are decoded plainly. */
static enum status look_for_gone(struct peers *peers, struct sequence *sequences, int count)
{
    for (int s = 0; s < count; s++) {
        struct sequence *sequence = &sequences[s];
        struct peer *peer;

        if (sequence->request == NULL || sequence->link.has_proposal || sequence->link.drafter < 0)
            continue;
        peer = &peers->peer[sequence->link.drafter];
        if (!peer->gone && !channel_is_gone(peers->channel, peer->name))
            continue;
        lose(peer, "has ended", "");
        peer->gone = 1;
        peer->sequences--;
        sequence->link.wanted = 0;
        sequence->link.behind = 0;
        TRY(peers_assign(peers, sequence));
    }
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
    if (peers->round_ns - peers->looked_ns > TELL_NS) { /* also in rounds that wait for no proposal */
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
        take(peers, name, frame, refused, sequences, count);
    else
        TRY(look_for_gone(peers, sequences, count));
    return STATUS_OK;
}

enum status peers_keep_in_touch(struct peers *peers)
{
    int64_t now = clock_ns();

    for (int i = 0; i < peers->count; i++) {
        struct peer *peer = &peers->peer[i];

        if (now - peer->told_ns > TELL_NS && channel_pending(peers->channel, peer->name) == 0)
            TRY(send(peers, peer, message_pack_plain(peers->space, MESSAGE_HEARTBEAT, peers->run)));
    }
    return STATUS_OK;
}

int peers_absent(struct peers *peers)
{
    int absent = 0;

    for (int i = 0; i < peers->count; i++) {
        if (channel_is_gone(peers->channel, peers->peer[i].name)) {
            lose(&peers->peer[i], "has ended", "");
            peers->peer[i].why = "has ended"; /* even if it was lost for another reason before */
        }
        absent += peers->peer[i].lost;
    }
    return absent;
}

enum status peers_shutdown(struct peers *peers)
{
    for (int i = 0; i < peers->count; i++)
        TRY(send(peers, &peers->peer[i], message_pack_plain(peers->space, MESSAGE_SHUTDOWN, peers->run)));
    return STATUS_OK;
}
