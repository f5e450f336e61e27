#include "drafter/drafter.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/patience.h"
#include "common/base/progress.h"
#include "common/base/recorder.h"
#include "common/base/trace.h"
#include "common/base/try.h"
#include "common/wire/drain_relay.h"
#include "drafter/drafter_take.h"

#define TURN_NS ((int64_t)250 * 1000000) /* longest wait of one turn */
#define PLACE_NS   ((int64_t)200 * 1000)    /* how often a draft that found no place on its way is tried again */
#define PARTING_NS ((int64_t)200 * 1000000)
#define TELL_NS ((int64_t)100 * 1000000) /* how often the lead gets a Heartbeat while a long text is read */
/* A lead that is there is heard this often (peers_keep_in_touch), but not to the millisecond; and who hangs is to say it first. */
#define SLACK_NS ((int64_t)800 * 1000000)

enum {
    FEW_ROWS = 16,                    /* rows read in one part while other sequences are open */
    LEAST_COPY = 16,                  /* tokens: reading fewer is as fast as copying them */
    MOST_WAITING = CHANNEL_OUTBOX / 2 /* frames on their way, from which on nothing is sent beforehand, so that what is asked for finds a place */
};

enum status drafter_open(struct drafter *drafter, const struct drafter_terms *terms)
{
    size_t slots = (size_t)terms->slots;
    enum status status;

    *drafter = (struct drafter){.terms = *terms};
    TRY(message_space_open(&drafter->space));
    TRY_TO(arena_open(&drafter->arena,
                      slots * mirror_bytes(terms->context) + arena_round(slots * sizeof(struct mirror)) +
                          arena_round(slots * sizeof(struct mirror *)) + arena_round(slots * sizeof(struct draft_output *)),
                      "the mirrors"),
           close_space);
    drafter->mirror = arena_take(&drafter->arena, slots * sizeof *drafter->mirror);
    drafter->batch = arena_take(&drafter->arena, slots * sizeof(struct mirror *));
    drafter->each = arena_take(&drafter->arena, slots * sizeof(struct draft_output *));
    for (int i = 0; i < terms->slots; i++)
        mirror_init(&drafter->mirror[i], &drafter->arena, i, terms->context);
    TRY_TO(run_ahead_open(&drafter->ahead, terms->draft, drafter->mirror, terms->slots, terms->run_ahead, terms->branches), close_arena);
    return STATUS_OK;

close_arena:
    arena_close(&drafter->arena);

close_space:
    message_space_close(drafter->space);
    return status;
}

void drafter_close(struct drafter *drafter)
{
    run_ahead_close(&drafter->ahead);
    message_space_close(drafter->space);
    arena_close(&drafter->arena);
}

/* A proposal for the committed text, or for that of a branch. */
static enum status send_proposal(struct drafter *drafter, struct mirror *mirror, struct branch *branch, const struct draft_output *output)
{
    struct proposal proposal = {.run = drafter->terms.run,
                                .request = mirror->request,
                                .base_length = (uint32_t)(mirror->length + (branch != NULL ? branch->after + 1 : 0)),
                                .base_digest = branch != NULL ? branch->digest : mirror->digest,
                                .sampling_digest = mirror->sampling_digest,
                                .count = output->count,
                                .is_tree = output->is_tree,
                                .ahead = (uint32_t)(branch != NULL ? output->count : mirror->begun),
                                .draft_us = (uint32_t)((clock_ns() - mirror->asked_ns) / 1000)};
    int64_t began = trace_begin();
    struct frame frame;
    int taken;

    for (int i = 0; i < output->count; i++) {
        proposal.token[i] = output->token[i];
        proposal.q[i] = output->q[i];
        proposal.parent[i] = output->parent[i];
    }
    frame = message_pack_proposal(drafter->space, &proposal);
    trace_end(TRACE_PACK, began, mirror->request, (int)proposal.base_length, output->count, (int64_t)frame.count, 0); /* its way begins */
    TRY(channel_send(drafter->terms.channel, drafter->terms.lead, frame, &taken));
    drafter->proposals += taken;
    if (branch != NULL)
        branch->is_sent = taken; /* else it is sent when its text is committed */
    else if (taken)
        mirror->wanted = 0; /* else it is sent in a turn that comes soon */
    return STATUS_OK;
}

/* Committed tokens that are not in the cache. */
static int lacking(const struct mirror *mirror)
{
    return mirror->length - mirror->cached;
}

/* Is so much missing that it is read in parts? */
static int is_long(const struct drafter *drafter, const struct mirror *mirror)
{
    return drafter->terms.draft->kind->read != NULL && lacking(mirror) > MESSAGE_LONG_TEXT;
}

/* Copies the common prefix from another sequence's cache instead of reading it. */
static void share(struct drafter *drafter, struct mirror *mirror)
{
    const struct draft *draft = drafter->terms.draft;

    for (int i = 0; i < drafter->terms.slots; i++) {
        const struct mirror *other = &drafter->mirror[i];
        int common = other != mirror && other->cached >= mirror->cached + LEAST_COPY ? mirror_common(other, mirror->tokens, mirror->length - 1) : 0;

        if (common < mirror->cached + LEAST_COPY)
            continue;
        draft->kind->copy(draft->state, (struct cache_place){other->slot, mirror->cached}, (struct cache_place){mirror->slot, mirror->cached},
                          common - mirror->cached);
        drafter->reused += common - mirror->cached;
        mirror->cached = common;
    }
}

/* The mirror with a long text whose missing part is shortest; NULL: there is none. */
static struct mirror *next_to_read(const struct drafter *drafter)
{
    struct mirror *best = NULL;

    for (int i = 0; i < drafter->terms.slots; i++) {
        struct mirror *mirror = &drafter->mirror[i];

        if (mirror->open && mirror->wanted > 0 && is_long(drafter, mirror) && (best == NULL || lacking(mirror) < lacking(best)))
            best = mirror;
    }
    return best;
}

/* Reads part of a long text: few tokens at a time while other sequences are open, which may want drafts meanwhile. */
static enum status read_part(struct drafter *drafter, struct mirror *mirror)
{
    const struct draft *draft = drafter->terms.draft;
    int others = 0, taken, rows = mirror->length;
    int64_t now = clock_ns(), began = trace_begin();

    for (int i = 0; i < drafter->terms.slots; i++)
        others += drafter->mirror[i].open && !is_long(drafter, &drafter->mirror[i]);
    if (now - drafter->told_ns > TELL_NS) {
        drafter->told_ns = now;
        TRY(channel_send(drafter->terms.channel, drafter->terms.lead,
                         message_pack_plain(drafter->space, MESSAGE_HEARTBEAT, drafter->terms.run), &taken));
    }
    share(drafter, mirror);
    if (!is_long(drafter, mirror))
        return STATUS_OK;
    TRY(draft->kind->read(draft->state, mirror, others > 0 ? FEW_ROWS : rows));
    trace_end(TRACE_PREFILL, began, mirror->request, mirror->length, mirror->cached, 0, 0);
    return STATUS_OK;
}

/* Those that want tokens; `begun`: those whose drafts were begun ahead, and not sent. */
static int choose_batch(struct drafter *drafter, int begun)
{
    int count = 0;

    for (int i = 0; i < drafter->terms.slots; i++) {
        struct mirror *mirror = &drafter->mirror[i];
        int room = drafter->terms.context - mirror->length;

        mirror->wanted = mirror->wanted < room ? mirror->wanted : room;
        if (mirror->open && mirror->wanted > 0 && !is_long(drafter, mirror) && (mirror->drafted > 0) == begun)
            drafter->batch[count++] = mirror;
    }
    return count;
}

static enum status send_all(struct drafter *drafter, int count)
{
    for (int i = 0; i < count; i++)
        TRY(send_proposal(drafter, drafter->batch[i], NULL, drafter->each[i]));
    drafter->told_ns = clock_ns();
    if (drafter->terms.world != NULL)
        world_ring_verifiers(drafter->terms.world); /* followers sleep while drafts are made: they wake up while the lead unpacks the proposal */
    return STATUS_OK;
}

static enum status draft_batch(struct drafter *drafter, int begun)
{
    const struct draft *draft = drafter->terms.draft;
    int count = choose_batch(drafter, begun), wanted = 0;
    int64_t began = trace_begin();

    if (count == 0)
        return STATUS_OK;
    for (int i = 0; i < count; i++) {
        wanted += drafter->batch[i]->wanted;
        drafter->each[i] = run_ahead_output(&drafter->ahead, drafter->batch[i]);
        drafter->each[i]->is_tree = 0;
    }
    recorder_note("drafts for # sequences", count, 0, 0);
    TRY(draft->kind->propose(draft->state, drafter->batch, count, drafter->each));
    trace_end(TRACE_DRAFT, began, drafter->batch[0]->request, drafter->batch[0]->length, wanted, count, 0);
    return send_all(drafter, count);
}

static enum status draft(struct drafter *drafter)
{
    TRY(draft_batch(drafter, 1));
    return draft_batch(drafter, 0);
}

/* Takes a message, if one has come: what is drafted ahead may be for nothing then. */
static enum status take_one(struct drafter *drafter, int *took)
{
    struct frame frame;
    int peer, refused = 0;

    TRY(channel_receive(drafter->terms.channel, &peer, &frame, &refused));
    *took = frame.count > 0 || refused;
    if (*took)
        drafter_take(drafter, peer, frame, refused);
    return STATUS_OK;
}

static enum status send_whole(struct drafter *drafter)
{
    const struct draft_output *output;
    struct mirror *mirror;
    struct branch *branch;
    int64_t began = clock_ns();
    int count = 0, takes = 1;

    while (takes && (branch = run_ahead_whole(&drafter->ahead, &mirror, &output)) != NULL) {
        takes = channel_pending(drafter->terms.channel, drafter->terms.lead) < MOST_WAITING;
        if (takes)
            TRY(send_proposal(drafter, mirror, branch, output));
        takes &= branch->is_sent;
        count += takes;
    }
    run_ahead_sent(&drafter->ahead, count, clock_ns() - began);
    return STATUS_OK;
}

/* While the lead verifies, until a message comes. */
static enum status run_ahead(struct drafter *drafter, int *interrupted)
{
    int64_t began = trace_begin();
    int steps = 0, did = 1;

    *interrupted = 0;
    while (did && !*interrupted) {
        TRY(run_ahead_step(&drafter->ahead, &did));
        steps += did;
        if (did) {
            TRY(send_whole(drafter));
            if (!drafter->terms.unhurried)
                TRY(take_one(drafter, interrupted));
        }
    }
    if (steps > 0)
        trace_end(TRACE_DRAFT, began, 0, 0, steps, 0, 0);
    return STATUS_OK;
}

/* Is there a draft that found no place on its way? */
static int is_kept_waiting(const struct drafter *drafter)
{
    for (int i = 0; i < drafter->terms.slots; i++)
        if (drafter->mirror[i].open && drafter->mirror[i].wanted > 0 && !is_long(drafter, &drafter->mirror[i]))
            return 1;
    return 0;
}

enum status drafter_turn(struct drafter *drafter, int64_t deadline_ns)
{
    struct mirror *unread;
    struct frame frame;
    int64_t began = trace_begin();
    int peer, refused = 0, interrupted;

    if (!drafter->terms.silent && is_kept_waiting(drafter) && deadline_ns > clock_ns() + PLACE_NS)
        deadline_ns = clock_ns() + PLACE_NS;
    if (drafter->terms.silent || next_to_read(drafter) == NULL)
        TRY(channel_wait(drafter->terms.channel, deadline_ns, &peer, &frame, &refused));
    else
        TRY(channel_receive(drafter->terms.channel, &peer, &frame, &refused));
    trace_end(TRACE_WAIT, began, 0, 0, 0, 0, 0);
    while (frame.count > 0 || refused) {
        drafter_take(drafter, peer, frame, refused);
        TRY(channel_receive(drafter->terms.channel, &peer, &frame, &refused));
    }
    if (drafter->terms.silent)
        return STATUS_OK;
    do { /* what a message asks for that came meanwhile is done in this turn, too */
        interrupted = 0;
        TRY(draft(drafter));
        unread = next_to_read(drafter); /* messages may have changed that */
        if (unread == NULL)
            TRY(run_ahead(drafter, &interrupted));
    } while (interrupted);
    if (unread == NULL)
        return STATUS_OK;
    TRY(read_part(drafter, unread));
    return is_long(drafter, unread) ? STATUS_OK : draft(drafter); /* the text is read: drafts at once, as the next turn may begin by waiting */
}

/* A counter that changes when other ranks get something done. A lead that loads weights or reads a long prompt sends no messages; it is alive as long
 * as it, or a rank that it computes with, makes progress. */
static uint64_t done_by_others(const struct drafter *drafter)
{
    return drafter->terms.world != NULL ? world_progress(drafter->terms.world) : 0;
}

enum status drafter_run(struct drafter *drafter)
{
    struct drain_relay relay = {
        .channel = drafter->terms.channel, .space = drafter->space, .lead = drafter->terms.lead, .run = drafter->terms.run};
    struct patience patience = patience_begin(2 * TURN_NS);
    int64_t limit = (int64_t)(drafter->terms.patience_s * 1e9);

    while (!drafter->ended) {
        int64_t heard = drafter->heard, silent;
        uint64_t done = done_by_others(drafter);

        TRY(drain_relay_look(&relay));
        progress_excused("drafting"); /* waiting for the lead is no hang of this rank */
        TRY(drafter_turn(drafter, clock_ns() + TURN_NS));
        if (drafter->heard != heard || done_by_others(drafter) != done)
            patience_renew(&patience);
        silent = patience_spent(&patience);
        if (limit > 0 && silent > limit + SLACK_NS) {
            if (!channel_is_gone(drafter->terms.channel, drafter->terms.lead)) /* if it has ended, so does the job: no second message */
                log_error("the lead (rank %d) is silent for %.0f s: ending the job", drafter->terms.lead, (double)silent / 1e9);
            return STATUS_WATCHDOG;
        }
    }
    return STATUS_OK;
}

void drafter_fail(struct drafter *drafter, enum status status)
{
    const struct failure failure = {.code = (uint32_t)status, .text = "see its own lines"};
    int64_t deadline = clock_ns() + PARTING_NS;
    int taken;

    if (channel_send(drafter->terms.channel, drafter->terms.lead, message_pack_failure(drafter->space, &failure), &taken) != STATUS_OK)
        return;
    while (taken && channel_pending(drafter->terms.channel, drafter->terms.lead) > 0 && clock_ns() < deadline)
        ;
}
