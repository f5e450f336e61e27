/* Channels inside one process under a virtual clock. Each frame's fate is a function of the seed, its sender, its receiver and its
 * number between them, so a run repeats exactly, and a change at one pair does not change the faults of another. */
#include "common/wire/channel_kind.h"

#include "common/base/log.h"
#include <stdlib.h>
#include <string.h>

enum { USUAL_BYTES = 64 << 10 }; /* records hold this from the start, so that they need not grow */

/* What is drawn for a frame. */
enum fate { FATE_LOSE, FATE_REPEAT, FATE_REORDER, FATE_CORRUPT, FATE_BIT, FATE_DELAY, FATE_DELAY_OF_REPEAT, FATES };

struct loop_frame {
    struct loop_frame *next;
    int from;
    int64_t due_us;
    uint64_t order; /* of sending: decides between frames due at the same time */
    size_t count, capacity;
    unsigned char *bytes;
};

struct loop_pair {
    uint64_t sent;
    int waiting;             /* frames not yet received */
    int64_t last_due_us;     /* the frames of a pair fall due in order, whatever their delays */
    struct loop_frame *last; /* the newest frame, while it waits */
};

struct loop {
    int ends;
    int open; /* ends not yet closed */
    struct loop_faults faults;
    int64_t now_us;
    uint64_t order;
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
static double draw(const struct loop *loop, size_t pair, uint64_t number, enum fate fate)
{
    uint64_t x = mix(loop->faults.seed + UINT64_C(0x9e3779b97f4a7c15));

    x = mix(x ^ ((uint64_t)pair + 1) * UINT64_C(0x9e3779b97f4a7c15));
    x = mix(x ^ (number * FATES + (uint64_t)fate + 1) * UINT64_C(0x9e3779b97f4a7c15));
    return (double)(x >> 11) * 0x1p-53;
}

/* A record that holds `count` bytes: one that was used before where there is one, so that a long run allocates only at its start. */
static struct loop_frame *frame_take(struct loop *loop, size_t count)
{
    struct loop_frame *frame = loop->spare != NULL ? loop->spare : calloc(1, sizeof *frame);

    if (frame == NULL)
        return NULL;
    if (frame == loop->spare)
        loop->spare = frame->next;
    if (frame->capacity < count) {
        size_t capacity = count < USUAL_BYTES ? USUAL_BYTES : count;
        unsigned char *bytes = realloc(frame->bytes, capacity);

        if (bytes == NULL) {
            frame->next = loop->spare;
            loop->spare = frame;
            return NULL;
        }
        frame->bytes = bytes;
        frame->capacity = capacity;
    }
    frame->count = count;
    return frame;
}

static void frame_give_back(struct loop *loop, struct loop_frame *frame)
{
    if (frame == NULL)
        return;
    frame->next = loop->spare;
    loop->spare = frame;
}

static void frame_swap_content(struct loop_frame *a, struct loop_frame *b)
{
    struct loop_frame old = *a;

    a->count = b->count, a->capacity = b->capacity, a->bytes = b->bytes;
    b->count = old.count, b->capacity = old.capacity, b->bytes = old.bytes;
}

static enum status enqueue(struct loop *loop, int from, int to, struct frame frame, enum fate delay)
{
    size_t at = (size_t)from * (size_t)loop->ends + (size_t)to;
    struct loop_pair *pair = &loop->pair[at];
    struct loop_frame *queued = frame_take(loop, frame.count);

    if (queued == NULL) {
        log_error("no memory for a frame of %zu bytes", frame.count);
        return STATUS_INTERNAL;
    }
    memcpy(queued->bytes, frame.bytes, frame.count);
    if (draw(loop, at, pair->sent, FATE_CORRUPT) < loop->faults.corrupt) {
        size_t bit = (size_t)(draw(loop, at, pair->sent, FATE_BIT) * (double)(frame.count * 8));

        queued->bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    queued->from = from;
    queued->order = loop->order++;
    queued->due_us = loop->now_us + (int64_t)(draw(loop, at, pair->sent, delay) * (double)loop->faults.delay_us);
    if (queued->due_us < pair->last_due_us)
        queued->due_us = pair->last_due_us;
    if (pair->last != NULL && draw(loop, at, pair->sent, FATE_REORDER) < loop->faults.reorder)
        frame_swap_content(queued, pair->last);
    pair->last_due_us = queued->due_us;
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

    *taken = pair->waiting < CHANNEL_OUTBOX;
    if (!*taken)
        return STATUS_OK;
    if (draw(loop, at, pair->sent, FATE_LOSE) >= loop->faults.lose)
        status = enqueue(loop, end->self, peer, frame, FATE_DELAY);
    if (status == STATUS_OK && draw(loop, at, pair->sent, FATE_REPEAT) < loop->faults.repeat)
        status = enqueue(loop, end->self, peer, frame, FATE_DELAY_OF_REPEAT);
    pair->sent++;
    return status;
}

static int is_before(const struct loop_frame *a, const struct loop_frame *b)
{
    return a->due_us != b->due_us ? a->due_us < b->due_us : a->order < b->order;
}

static enum status receive(struct channel *channel, int *peer, struct frame *frame, int *refused)
{
    struct loop_channel *end = (struct loop_channel *)channel;
    struct loop *loop = end->loop;
    struct loop_frame **first = NULL, *found;

    (void)refused; /* channel_send lets no frame through that is too long */
    frame_give_back(loop, end->handed_out);
    end->handed_out = NULL;
    for (struct loop_frame **at = &loop->waiting[end->self]; *at != NULL; at = &(*at)->next)
        if ((*at)->due_us <= loop->now_us && (first == NULL || is_before(*at, *first)))
            first = at;
    if (first == NULL)
        return STATUS_OK;
    found = *first;
    *first = found->next;
    struct loop_pair *pair = &loop->pair[(size_t)found->from * (size_t)loop->ends + (size_t)end->self];
    pair->waiting--;
    if (pair->last == found)
        pair->last = NULL;
    end->handed_out = found;
    *peer = found->from;
    *frame = (struct frame){.bytes = found->bytes, .count = found->count};
    return STATUS_OK;
}

static enum status receive_at_once(struct channel *channel, int64_t deadline_ns, int *peer, struct frame *frame, int *refused)
{
    (void)deadline_ns;
    return channel_receive(channel, peer, frame, refused);
}

static int pending(struct channel *channel, int peer)
{
    const struct loop_channel *end = (const struct loop_channel *)channel;

    return end->loop->pair[(size_t)end->self * (size_t)end->loop->ends + (size_t)peer].waiting;
}

static void free_frames(struct loop_frame *frame)
{
    while (frame != NULL) {
        struct loop_frame *next = frame->next;

        free(frame->bytes);
        free(frame);
        frame = next;
    }
}

static void loop_free(struct loop *loop)
{
    if (loop->waiting != NULL)
        for (int i = 0; i < loop->ends; i++)
            free_frames(loop->waiting[i]);
    free_frames(loop->spare);
    free(loop->waiting);
    free(loop->pair);
    free(loop);
}

static void close_loop(struct channel *channel)
{
    struct loop_channel *end = (struct loop_channel *)channel;

    frame_give_back(end->loop, end->handed_out);
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
    if (loop->waiting != NULL && loop->pair != NULL)
        return loop;
    loop_free(loop);
    return NULL;
}

enum status channel_open_loop(int ends, const struct loop_faults *faults, struct channel **channel)
{
    static const struct channel_kind kind = {
        .send = send_frame, .receive = receive, .wait = receive_at_once, .pending = pending, .close = close_loop};
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

void channel_loop_advance(struct channel *channel, int64_t us)
{
    ((struct loop_channel *)channel)->loop->now_us += us;
}
