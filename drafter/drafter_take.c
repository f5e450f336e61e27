#include "drafter/drafter_take.h"

#include "common/base/log.h"
#include "common/base/trace.h"
#include "common/sample/rule.h"

static struct mirror *find(struct drafter *drafter, uint32_t request)
{
    for (int i = 0; i < drafter->terms.slots; i++)
        if (drafter->mirror[i].open && drafter->mirror[i].request == request)
            return &drafter->mirror[i];
    return NULL;
}

/* The free mirror whose cache has the longest common prefix with the text. Where none is free, the message that ended a request was lost: takes the
 * one that was not mentioned for longest. */
static struct mirror *find_free(struct drafter *drafter, const struct open_message *open)
{
    struct mirror *oldest = &drafter->mirror[0], *best = NULL;
    int held = -1;

    for (int i = 0; i < drafter->terms.slots; i++) {
        struct mirror *mirror = &drafter->mirror[i];
        int common = mirror->open ? -1 : mirror_common(mirror, open->tokens, open->count);

        if (common > held) {
            held = common;
            best = mirror;
        }
        if (mirror->asked_ns < oldest->asked_ns)
            oldest = mirror;
    }
    if (best != NULL)
        return best;
    mirror_close(oldest);
    return oldest;
}

static int is_any_open(const struct drafter *drafter)
{
    for (int i = 0; i < drafter->terms.slots; i++)
        if (drafter->mirror[i].open)
            return 1;
    return 0;
}

static const char *take_open(struct drafter *drafter, struct frame frame)
{
    struct open_message open;
    struct mirror *mirror;
    const char *wrong = message_unpack_open(drafter->space, frame, drafter->terms.vocab, &open);

    if (wrong != NULL)
        return wrong;
    if (open.run != drafter->terms.run)
        return "of another run";
    mirror = find(drafter, open.request);
    if (!is_any_open(drafter))
        draft_price(drafter->terms.draft, 0); /* what is known is of another pass */
    if (mirror == NULL)
        mirror = find_free(drafter, &open);
    if (!mirror_open(mirror, &open))
        drafter->unfitting++; /* too long for this context: the lead decodes it without drafts */
    mirror->sampling.drafter = drafter->terms.kind;
    if (drafter->terms.draft_temperature != NULL && rule_draw(&open.sampling) == RULE_DRAWS_Q)
        mirror->sampling.temperature = *drafter->terms.draft_temperature; /* its digest stays that of the request */
    return NULL;
}

static void copy(const struct drafter *drafter, const struct mirror *mirror, const struct mirror_move *move)
{
    drafter->terms.draft->kind->copy(drafter->terms.draft->state, (struct cache_place){mirror->slot, move->from},
                                     (struct cache_place){mirror->slot, move->to}, move->count);
}

static const char *take_commit(struct drafter *drafter, struct frame frame)
{
    struct mirror_move move, path[MESSAGE_MAX_COMMIT];
    struct commit commit;
    struct mirror *mirror;
    int paths = 0;
    int64_t began = trace_begin();
    const char *wrong = message_unpack_commit(drafter->space, frame, drafter->terms.vocab, &commit);

    if (wrong != NULL)
        return wrong;
    if (commit.run != drafter->terms.run)
        return "of another run";
    draft_price(drafter->terms.draft, (double)commit.price / MESSAGE_MOST_WORTH);
    mirror = find(drafter, commit.request);
    if (mirror != NULL) {
        run_ahead_learn(&drafter->ahead, mirror, &commit);
        draft_learn(drafter->terms.draft, mirror, &commit);
        paths = mirror_path(mirror, &commit, path);
    }
    if (mirror == NULL || !mirror_commit(mirror, &commit, &move))
        drafter->unfitting++; /* a message was lost: waits for an Open with all tokens */
    else if (move.count > 0) /* of a text that ends, too: the next one in the slot may begin with the same tokens */
        copy(drafter, mirror, &move);
    for (int i = 0; i < paths; i++)
        copy(drafter, mirror, &path[i]);
    if (mirror != NULL && commit.finish != 0)
        mirror_close(mirror);
    trace_end(TRACE_TRUNCATE, began, commit.request, (int)commit.old_length, commit.count, 0, 0);
    return NULL;
}

static const char *take_close(struct drafter *drafter, struct frame frame)
{
    struct close_message close;
    struct mirror *mirror;
    const char *wrong = message_unpack_close(drafter->space, frame, &close);

    if (wrong != NULL)
        return wrong;
    if (close.run != drafter->terms.run)
        return "of another run";
    mirror = find(drafter, close.request);
    if (mirror != NULL)
        mirror_close(mirror);
    return NULL;
}

static const char *take_shutdown(struct drafter *drafter, struct frame frame)
{
    uint64_t run;
    const char *wrong = message_unpack_plain(drafter->space, frame, &run);

    if (wrong != NULL)
        return wrong;
    if (run != drafter->terms.run)
        return "of another run";
    drafter->ended = 1;
    return NULL;
}

static const char *take_heartbeat(struct drafter *drafter, struct frame frame)
{
    uint64_t run;
    int taken;
    const char *wrong = message_unpack_plain(drafter->space, frame, &run);

    if (wrong == NULL && run != drafter->terms.run)
        return "of another run";
    if (wrong == NULL && !drafter->terms.silent)
        channel_send(drafter->terms.channel, drafter->terms.lead,
                     message_pack_plain(drafter->space, MESSAGE_HEARTBEAT, drafter->terms.run), &taken);
    return wrong;
}

void drafter_take(struct drafter *drafter, int peer, struct frame frame, int refused)
{
    const char *wrong = "not a frame";

    if (refused || peer != drafter->terms.lead) {
        drafter->refused++;
        return;
    }
    switch (message_type(frame)) {
    case MESSAGE_OPEN:
        wrong = take_open(drafter, frame);
        break;
    case MESSAGE_COMMIT:
        wrong = take_commit(drafter, frame);
        break;
    case MESSAGE_CLOSE:
        wrong = take_close(drafter, frame);
        break;
    case MESSAGE_HEARTBEAT:
        wrong = take_heartbeat(drafter, frame);
        break;
    case MESSAGE_SHUTDOWN:
        wrong = take_shutdown(drafter, frame);
        break;
    default:
        break;
    }
    if (wrong != NULL) {
        drafter->refused++;
        log_debug("dropped a message from rank %d: %s", peer, wrong);
        return;
    }
    drafter->heard++;
}
