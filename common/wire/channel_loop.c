/* Each frame's fate is a function of the seed, its sender, its receiver and its number between them, so a run repeats exactly, and a change at
 * one pair does not change the faults of another. */
#include "common/wire/channel_loop.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include "common/wire/channel_kind.h"
#include "common/wire/loop_frame.h"
#include <stdlib.h>
#include <string.h>

/* The random draws made for each frame. */
enum draw { DRAW_LOSE, DRAW_REPEAT, DRAW_REORDER, DRAW_CORRUPT, DRAW_BIT, DRAW_TRUNCATE, DRAW_LENGTH, DRAW_DELAY, DRAW_DELAY_OF_REPEAT, DRAWS };

enum { END_ALIVE, END_DEAD, END_DEAD_PILES };

struct loop_pair {
    uint64_t sent;
    int waiting;             /* frames not yet received */
    int64_t last_due_ns;     /* keeps the frames of a pair in order, whatever their delays */
    struct loop_frame *last; /* the newest frame, while it waits */
};

struct loop {
    int ends;
    int open; /* ends not yet closed */
    struct loop_faults faults;
    struct loop_hooks hooks;
    uint64_t order;
    int *state;      /* [ends] */
    struct loop_frame *spare;
    struct loop_frame **waiting; /* [ends] by receiver */
    struct loop_pair *pair;      /* [ends][ends] by sender, receiver */
};

struct loop_channel {
    struct channel channel;
    struct loop *loop;
    int self;
    struct loop_frame *handed_out;
};

static uint64_t mix(uint64_t x) /* the finaliser of splitmix64 */
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Uniform in [0, 1). */
static double draw(const struct loop *loop, size_t pair, uint64_t number, enum draw which)
{
    uint64_t x = mix(loop->faults.seed + UINT64_C(0x9e3779b97f4a7c15));

    x = mix(x ^ ((uint64_t)pair + 1) * UINT64_C(0x9e3779b97f4a7c15));
    x = mix(x ^ (number * DRAWS + (uint64_t)which + 1) * UINT64_C(0x9e3779b97f4a7c15));
    return (double)(x >> 11) * 0x1p-53;
}

static void note(const struct loop *loop, enum loop_fate fate, int from, int to, struct frame frame)
{
    if (loop->hooks.note != NULL)
        loop->hooks.note(loop->hooks.user, fate, from, to, frame);
}

/* Faults in a frame's bytes; both copies of a repeated frame get the same ones. */
static void damage(const struct loop *loop, size_t at, int to, struct loop_frame *frame)
{
    uint64_t number = loop->pair[at].sent;

    if (draw(loop, at, number, DRAW_CORRUPT) < loop->faults.corrupt) {
        size_t bit = (size_t)(draw(loop, at, number, DRAW_BIT) * (double)(frame->count * 8));

        frame->bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        note(loop, LOOP_CORRUPTED, frame->from, to, loop_frame_content(frame));
    }
    if (draw(loop, at, number, DRAW_TRUNCATE) < loop->faults.truncate) {
        frame->count = (size_t)(draw(loop, at, number, DRAW_LENGTH) * (double)frame->count);
        note(loop, LOOP_TRUNCATED, frame->from, to, loop_frame_content(frame));
    }
}

static enum status enqueue(struct loop *loop, int from, int to, struct frame frame, enum draw delay)
{
    size_t at = (size_t)from * (size_t)loop->ends + (size_t)to;
    struct loop_pair *pair = &loop->pair[at];
    struct loop_frame *queued = loop_frame_take(&loop->spare, frame.count);

    if (queued == NULL) {
        log_error("no memory for a frame of %zu bytes", frame.count);
        return STATUS_INTERNAL;
    }
    memcpy(queued->bytes, frame.bytes, frame.count);
    queued->from = from;
    queued->order = loop->order++;
    queued->due_ns = clock_ns() + (int64_t)(draw(loop, at, pair->sent, delay) * (double)loop->faults.delay_us * 1000);
    if (queued->due_ns < pair->last_due_ns)
        queued->due_ns = pair->last_due_ns;
    damage(loop, at, to, queued);
    if (pair->last != NULL && draw(loop, at, pair->sent, DRAW_REORDER) < loop->faults.reorder) {
        loop_frame_swap(queued, pair->last);
        note(loop, LOOP_OVERTOOK, from, to, frame);
    }
    pair->last_due_ns = queued->due_ns;
    pair->last = queued;
    pair->waiting++;
    queued->next = loop->waiting[to];
    loop->waiting[to] = queued;
    return STATUS_OK;
}

static enum status send_frame(struct channel *channel, int peer, struct frame frame, int *taken)
{
    struct loop_channel *end = (struct loop_channel *)channel;
    struct loop *loop = end->loop;
    size_t at = (size_t)end->self * (size_t)loop->ends + (size_t)peer;
    struct loop_pair *pair = &loop->pair[at];
    enum status status = STATUS_OK;

    *taken = pair->waiting < (loop->faults.outbox > 0 ? loop->faults.outbox : CHANNEL_OUTBOX);
    note(loop, *taken ? LOOP_SENT : LOOP_FULL, end->self, peer, frame);
    if (!*taken)
        return STATUS_OK;
    if (loop->state[peer] == END_DEAD || draw(loop, at, pair->sent, DRAW_LOSE) < loop->faults.lose)
        note(loop, LOOP_LOST, end->self, peer, frame);
    else
        status = enqueue(loop, end->self, peer, frame, DRAW_DELAY);
    if (status == STATUS_OK && loop->state[peer] == END_ALIVE && draw(loop, at, pair->sent, DRAW_REPEAT) < loop->faults.repeat) {
        note(loop, LOOP_REPEATED, end->self, peer, frame);
        status = enqueue(loop, end->self, peer, frame, DRAW_DELAY_OF_REPEAT);
    }
    pair->sent++;
    return status;
}

static int is_before(const struct loop_frame *a, const struct loop_frame *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

/* The place of the frame that is due first for this end, or NULL. */
static struct loop_frame **find_first(const struct loop_channel *end)
{
    struct loop_frame **first = NULL;

    for (struct loop_frame **at = &end->loop->waiting[end->self]; *at != NULL; at = &(*at)->next)
        if (first == NULL || is_before(*at, *first))
            first = at;
    return end->loop->state[end->self] == END_ALIVE ? first : NULL;
}

static struct loop_frame *take_out(struct loop *loop, int to, struct loop_frame **at)
{
    struct loop_frame *frame = *at;
    struct loop_pair *pair = &loop->pair[(size_t)frame->from * (size_t)loop->ends + (size_t)to];

    *at = frame->next;
    pair->waiting--;
    if (pair->last == frame)
        pair->last = NULL;
    return frame;
}

static enum status receive(struct channel *channel, int *peer, struct frame *frame, int *refused)
{
    struct loop_channel *end = (struct loop_channel *)channel;
    struct loop_frame **first;

    loop_frame_give_back(&end->loop->spare, end->handed_out);
    end->handed_out = NULL;
    first = find_first(end);
    if (first == NULL || (*first)->due_ns > clock_ns())
        return STATUS_OK;
    end->handed_out = take_out(end->loop, end->self, first);
    *peer = end->handed_out->from;
    *frame = loop_frame_content(end->handed_out);
    *refused = frame->count == 0; /* channel_send lets no frame through that is too long, but one may have been cut to nothing */
    note(end->loop, LOOP_RECEIVED, *peer, end->self, *frame);
    return STATUS_OK;
}

static enum status wait_for_frame(struct channel *channel, int64_t deadline_ns, int *peer, struct frame *frame, int *refused)
{
    const struct loop_channel *end = (const struct loop_channel *)channel;

    for (;;) {
        TRY(channel_receive(channel, peer, frame, refused));
        if (frame->count > 0 || *refused || end->loop->hooks.wait == NULL || clock_ns() >= deadline_ns)
            return STATUS_OK;
        end->loop->hooks.wait(end->loop->hooks.user, end->self, deadline_ns);
    }
}

static int pending(struct channel *channel, int peer)
{
    const struct loop_channel *end = (const struct loop_channel *)channel;

    return end->loop->pair[(size_t)end->self * (size_t)end->loop->ends + (size_t)peer].waiting;
}

static void loop_free(struct loop *loop)
{
    if (loop->waiting != NULL)
        for (int i = 0; i < loop->ends; i++)
            loop_frame_free(loop->waiting[i]);
    loop_frame_free(loop->spare);
    free(loop->waiting);
    free(loop->pair);
    free(loop->state);
    free(loop);
}

static void close_loop(struct channel *channel)
{
    struct loop_channel *end = (struct loop_channel *)channel;

    loop_frame_give_back(&end->loop->spare, end->handed_out);
    if (--end->loop->open == 0)
        loop_free(end->loop);
    free(end);
}

static struct loop *loop_new(int ends, const struct loop_faults *faults)
{
    struct loop *loop = calloc(1, sizeof *loop);

    if (loop == NULL)
        return NULL;
    loop->ends = ends;
    if (faults != NULL)
        loop->faults = *faults;
    loop->waiting = calloc((size_t)ends, sizeof(struct loop_frame *));
    loop->pair = calloc((size_t)ends * (size_t)ends, sizeof *loop->pair);
    loop->state = calloc((size_t)ends, sizeof *loop->state);
    if (loop->waiting != NULL && loop->pair != NULL && loop->state != NULL)
        return loop;
    loop_free(loop);
    return NULL;
}

enum status channel_loop_open(int ends, const struct loop_faults *faults, struct channel **channel)
{
    static const struct channel_kind kind = {
        .send = send_frame, .receive = receive, .wait = wait_for_frame, .pending = pending, .close = close_loop};
    struct loop *loop = loop_new(ends, faults);

    for (int i = 0; loop != NULL && i < ends; i++) {
        struct loop_channel *end = calloc(1, sizeof *end);

        if (end == NULL) {
            for (int opened = 0; opened < i; opened++)
                free(channel[opened]);
            loop_free(loop);
            loop = NULL;
            break;
        }
        *end = (struct loop_channel){.channel = {.kind = &kind, .peers = ends}, .loop = loop, .self = i};
        channel[i] = &end->channel;
        loop->open++;
    }
    if (loop == NULL)
        log_error("no memory for a loop of %d ends", ends);
    return loop == NULL ? STATUS_INTERNAL : STATUS_OK;
}

void channel_loop_hook(struct channel *channel, const struct loop_hooks *hooks)
{
    ((struct loop_channel *)channel)->loop->hooks = *hooks;
}

void channel_loop_set_faults(struct channel *channel, const struct loop_faults *faults)
{
    ((struct loop_channel *)channel)->loop->faults = *faults;
}

int64_t channel_loop_due_ns(const struct channel *channel)
{
    struct loop_frame **first = find_first((const struct loop_channel *)channel);

    return first == NULL ? INT64_MAX : (*first)->due_ns;
}

static void forget_waiting(struct loop_channel *end)
{
    while (end->loop->waiting[end->self] != NULL)
        loop_frame_give_back(&end->loop->spare, take_out(end->loop, end->self, &end->loop->waiting[end->self]));
}

void channel_loop_kill(struct channel *channel, int piles)
{
    struct loop_channel *end = (struct loop_channel *)channel;

    forget_waiting(end);
    end->loop->state[end->self] = piles ? END_DEAD_PILES : END_DEAD;
}

void channel_loop_return(struct channel *channel)
{
    struct loop_channel *end = (struct loop_channel *)channel;

    forget_waiting(end);
    end->loop->state[end->self] = END_ALIVE;
}
