#include "verifier/round/peers_parts.h"

#include "common/base/log.h"
#include "common/base/recorder.h"
#include "common/base/try.h"
#include <stdlib.h>

enum { REST_FACTOR = 8 };
#define LEAST_REST_NS ((int64_t)20 * 1000000)

enum status peers_open(struct peers *peers, struct channel *channel, const int *names, int count, uint64_t run, int vocab, double deadline_ms)
{
    enum status status;

    *peers = (struct peers){.channel = channel, .count = count, .kinds = 1, .run = run, .vocab = vocab, .longest_ns = (int64_t)(deadline_ms * 1e6)};
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

void peers_count_anew(struct peers *peers)
{
    peers->ahead = (struct ahead_figures){0};
    peers->bytes = (struct wire_figures){0};
    peers->merge = (struct merge){0};
    for (int kind = 0; kind < MERGE_MOST; kind++)
        peers->kind[kind] = (struct kind_figures){0};
    peers->taken = peers->fetched = peers->stale = peers->refused = 0;
    peers->draft = peers->wire = (struct span_sum){0};
    peers->pass++;
}

/* A lost drafter is asked again only after REST_FACTOR times the time that was spent on waiting for it in vain. So a drafter that is always too late
 * costs a small share of the time, and one that has recovered is found after that rest. */
void peers_rest(struct peer *peer)
{
    int64_t ns = REST_FACTOR * peer->vain_ns;

    peer->ask_ns = clock_ns() + (ns > LEAST_REST_NS ? ns : LEAST_REST_NS);
}

void peers_lose(struct peer *peer, const char *why, const char *advice)
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
    peers_rest(peer);
}

enum status peers_send(struct peers *peers, struct peer *peer, struct frame frame)
{
    int taken;

    if (peer->gone)
        return STATUS_OK;
    peer->told_ns = clock_ns();
    TRY(channel_send(peers->channel, peer->name, frame, &taken));
    if (!taken)
        peers_lose(peer, "takes no messages", "");
    peers->bytes.sent += taken;
    peers->bytes.sent_bytes += taken ? (int64_t)frame.count : 0;
    return STATUS_OK;
}

/* How many drafts to ask of a drafter of the sequence: at most what fits its context. */
static int wants(const struct peers *peers, const struct sequence *sequence, const struct draft_link *link)
{
    int wanted = sequence_wants(sequence), context = peers->peer[link->drafter].context;
    int room = context == 0 ? wanted : context - 1 - sequence->length;

    return wanted < room ? wanted : room > 0 ? room : 0;
}

enum status peers_send_open(struct peers *peers, struct sequence *sequence, struct draft_link *link)
{
    const struct open_message open = {.run = peers->run,
                                      .request = (uint32_t)sequence->ticket,
                                      .line = sequence->request->index,
                                      .pass = peers->pass,
                                      .prompt_count = (uint32_t)sequence->request->prompt_count,
                                      .tokens = sequence->tokens,
                                      .count = sequence->length,
                                      .sampling = sequence->sampling,
                                      .draft_length = (uint32_t)wants(peers, sequence, link),
                                      .shape = (uint32_t)sequence->shape,
                                      .limit = (uint32_t)sequence->limit,
                                      .bias = &sequence->bias};

    link->wanted = wants(peers, sequence, link);
    link->missed = 0;
    link->opened = 1;
    link->known = 1;
    link->asked_ns = clock_ns();
    link->behind = link->wanted > 0 && !peers->patient && sequence->length - link->answered > MESSAGE_LONG_TEXT;
    return peers_send(peers, &peers->peer[link->drafter], message_pack_open(peers->space, &open));
}

enum status peers_assign_link(struct peers *peers, struct sequence *sequence, struct draft_link *link)
{
    int best = -1;

    for (int i = link->kind; i < peers->count; i += peers->kinds)
        if (!peers->peer[i].lost && (best < 0 || peers->peer[i].sequences < peers->peer[best].sequences))
            best = i;
    link->drafter = best;
    link->known = 0;
    if (best < 0)
        return STATUS_OK;
    peers->peer[best].sequences++;
    if (wants(peers, sequence, link) > 0)
        return peers_send_open(peers, sequence, link);
    link->missed = 1; /* no draft is wanted yet, so the prompt is not sent: the first request will be an Open */
    return STATUS_OK;
}

enum status peers_assign(struct peers *peers, struct sequence *sequence)
{
    for (int i = 0; i < sequence->linked; i++)
        TRY(peers_assign_link(peers, sequence, &sequence->link[i]));
    return STATUS_OK;
}

/* From which probability on a text's drafts with a q are worth sending before it is committed: each costs its taking here and as much in the drafter,
 * and saves its way if it is the one that comes. */
static uint32_t worth(const struct peers *peers, const struct peer *peer)
{
    double share = peer->wire_ns > 0 ? MESSAGE_MOST_WORTH * 2 * peers->unpack_ns / peer->wire_ns : 0;

    return share <= 0 ? 0 : share < 1 ? 1 : share < MESSAGE_MOST_WORTH ? (uint32_t)share : MESSAGE_MOST_WORTH;
}

/* Tells the drafter of one link. `accepted`: of its own drafts. */
static enum status commit_link(struct peers *peers, struct sequence *sequence, struct draft_link *link, struct commit *commit)
{
    struct peer *peer = link->drafter >= 0 ? &peers->peer[link->drafter] : NULL;
    enum finish_reason finish = (enum finish_reason)commit->finish;
    int wanted = peer != NULL && finish == FINISH_NOT ? wants(peers, sequence, link) : 0;

    link->opened = 0; /* also where nobody is left who reads it */
    if (peer == NULL)
        return STATUS_OK;
    if (finish != FINISH_NOT)
        peer->sequences--;
    if (peer->lost && finish == FINISH_NOT)
        return STATUS_OK; /* when it is heard again, it gets an Open with all tokens */
    if (!link->known && finish != FINISH_NOT)
        return STATUS_OK;
    link->wanted = wanted;
    if (wanted == 0 && finish == FINISH_NOT) {
        /* No draft is wanted: the drafter is not woken, as it may share a core with the group. The next request will be an Open with all tokens. */
        link->missed = 1;
        return STATUS_OK;
    }
    if (link->behind && finish == FINISH_NOT) {
        link->missed = 1; /* it gets all tokens in an Open when it has read what it was sent */
        return STATUS_OK;
    }
    if (link->missed && finish == FINISH_NOT)
        return peers_send_open(peers, sequence, link);
    commit->draft_length = (uint32_t)wanted;
    commit->shape = (uint32_t)sequence->shape;
    commit->worth = worth(peers, peer);
    commit->price = (uint32_t)(MESSAGE_MOST_WORTH * peers->price);
    link->asked_ns = clock_ns();
    TRY(peers_send(peers, peer, message_pack_commit(peers->space, commit)));
    link->accepted = (int)commit->accepted;
    if (finish == FINISH_NOT && draft_link_fetch(link, sequence->length, sequence->digest)) {
        peers->fetched++;
        peers_count_hit(peers, link, 1);
        clock_add(&peers->ahead.wait, 0);
    }
    return STATUS_OK;
}

/* What a kind proposed beside others is held against what was committed, whether or not it was verified: the merged proposal is made by that. */
static int learn(struct peers *peers, struct draft_link *link, const int32_t *tokens, int count)
{
    struct kind_figures *figures = &peers->kind[link->kind];
    int compared = link->verified < count ? link->verified : count, agreed = 0;

    if (link->verified > 0)
        agreed = merge_agreed(&link->proposal, tokens, compared);
    merge_learn(&peers->merge, link->kind, compared, agreed);
    figures->proposals += link->verified > 0;
    figures->drafted += link->verified;
    figures->agreed += agreed;
    if (agreed == compared && compared < link->verified)
        link->verified = 0; /* what would have become of the next one is not known */
    return agreed;
}

enum status peers_commit(struct peers *peers, struct sequence *sequence, int old_length, const int32_t *tokens, int count, int accepted,
                         enum finish_reason finish)
{
    struct commit commit = {.run = peers->run,
                            .request = (uint32_t)sequence->ticket,
                            .old_length = (uint32_t)old_length,
                            .accepted = (uint32_t)accepted,
                            .tokens = tokens,
                            .count = count,
                            .keep = (uint32_t)(old_length + count - 1),
                            .digest = sequence->digest,
                            .finish = (uint32_t)finish,
                            .own = sequence->own,
                            .owns = sequence->owns};
    unsigned compared = 0, agreed = 0;

    for (int i = 0; i < sequence->linked; i++) {
        struct draft_link *link = &sequence->link[i];

        compared |= (unsigned)(link->verified > 0 && count > 0) << link->kind;
        if (sequence->linked > 1)
            commit.accepted = (uint32_t)learn(peers, link, tokens, count);
        agreed |= (unsigned)(sequence->linked > 1 && commit.accepted > 0) << link->kind;
        TRY(commit_link(peers, sequence, link, &commit));
    }
    if (sequence->linked > 1)
        merge_learn_first(&peers->merge, compared, agreed);
    return STATUS_OK;
}

enum status peers_keep_in_touch(struct peers *peers)
{
    int64_t now = clock_ns();

    for (int i = 0; i < peers->count; i++) {
        struct peer *peer = &peers->peer[i];

        if (now - peer->told_ns > PEERS_TELL_NS && channel_pending(peers->channel, peer->name) == 0)
            TRY(peers_send(peers, peer, message_pack_plain(peers->space, MESSAGE_HEARTBEAT, peers->run)));
    }
    return STATUS_OK;
}

int peers_absent(struct peers *peers)
{
    int absent = 0;

    for (int i = 0; i < peers->count; i++) {
        if (channel_is_gone(peers->channel, peers->peer[i].name)) {
            peers_lose(&peers->peer[i], "has ended", "");
            peers->peer[i].why = "has ended"; /* even if it was lost for another reason before */
        }
        absent += peers->peer[i].lost;
    }
    return absent;
}

enum status peers_shutdown(struct peers *peers)
{
    for (int i = 0; i < peers->count; i++)
        TRY(peers_send(peers, &peers->peer[i], message_pack_plain(peers->space, MESSAGE_SHUTDOWN, peers->run)));
    return STATUS_OK;
}
