#include "common/backend/cuda/context.h"

#include <string.h>

_Static_assert(sizeof(struct backend_handle) == DEVICE_HANDLE_BYTES, "a backend's handle is a device's");

size_t one_shot_counter_bytes(void)
{
    return arena_round(2 * sizeof(unsigned));
}

static int open_inbox(struct backend_context *context, int rank, int size, size_t most, struct backend_handle *handle, const char **reason)
{
    struct one_shot *one_shot = &context->one_shot;

    if (context->switches.no_one_shot) {
        *reason = "TANDEM_CUDA has nooneshot";
        return 0;
    }
    one_shot->rank = rank;
    one_shot->size = size;
    one_shot->most = most;
    *one_shot->stop = 0;
    device_write(context->device, one_shot->counters, (const unsigned[2]){0}, 2 * sizeof(unsigned));
    return device_share(context->device, one_shot_bytes(size, most), &one_shot->inbox[rank], handle, reason);
}

static int connect_inboxes(struct backend_context *context, const struct backend_handle *handles, const char **reason)
{
    struct one_shot *one_shot = &context->one_shot;

    for (int r = 0; r < one_shot->size; r++)
        if (r != one_shot->rank && !device_reach(context->device, handles[r].bytes, &one_shot->inbox[r], reason))
            return 0;
    return 1;
}

static void sum(struct backend_context *context, const float *partial, size_t count, float *x, int adds)
{
    const struct one_shot *one_shot = &context->one_shot;
    struct one_shot_launch launch = {.rank = one_shot->rank,
                                     .size = one_shot->size,
                                     .most = one_shot->most,
                                     .counters = one_shot->counters,
                                     .stop = one_shot->stop,
                                     .partial = partial,
                                     .count = count,
                                     .adds = adds,
                                     .x = x,
                                     .processors = device_processors(context->device),
                                     .overlaps = context_overlaps(context)};

    memcpy(launch.inbox, one_shot->inbox, sizeof launch.inbox);
    one_shot_start(&launch, device_stream(context->device));
    device_launched(context->device, "the one-shot sum");
}

static enum status read_back(struct backend_context *context, const float *from, size_t count, float *to)
{
    device_copy_out(context->device, to, from, count * sizeof *to);
    return device_finish(context->device);
}

static void stop(struct backend_context *context)
{
    __atomic_store_n(context->one_shot.stop, 1, __ATOMIC_RELEASE);
}

static void leave(struct backend_context *context)
{
    struct one_shot *one_shot = &context->one_shot;

    for (int r = 0; r < one_shot->size; r++)
        if (r != one_shot->rank && one_shot->inbox[r] != NULL) {
            device_leave(context->device, one_shot->inbox[r]);
            one_shot->inbox[r] = NULL;
        }
}

static void close_inbox(struct backend_context *context)
{
    struct one_shot *one_shot = &context->one_shot;

    leave(context);
    if (one_shot->inbox[one_shot->rank] != NULL)
        device_share_close(context->device, one_shot->inbox[one_shot->rank]);
    one_shot->inbox[one_shot->rank] = NULL;
}

const struct backend_one_shot cuda_one_shot = {
    .most_ranks = ONE_SHOT_RANKS,
    .open = open_inbox,
    .connect = connect_inboxes,
    .sum = sum,
    .read_back = read_back,
    .stop = stop,
    .leave = leave,
    .close = close_inbox,
};
