/* Memory of the device, and how what a step needs lies in it and in pinned memory of the host. */
#include "common/backend/cuda/context.h"

#include "common/base/log.h"
#include "common/base/try.h"

enum { FETCH_BYTES = 16 << 20 };

static size_t floats(int rows, int columns)
{
    return (size_t)rows * (size_t)columns * sizeof(float);
}

static size_t row_bytes(int rows)
{
    return arena_round((size_t)rows * sizeof(uint64_t)) + 5 * arena_round((size_t)rows * sizeof(int32_t));
}

static void lay_out_rows(struct row_arrays *arrays, struct arena *arena, int rows)
{
    size_t four = (size_t)rows * sizeof(int32_t);

    arrays->ancestors = arena_take(arena, (size_t)rows * sizeof(uint64_t));
    arrays->position = arena_take(arena, four);
    arrays->slot = arena_take(arena, four);
    arrays->place = arena_take(arena, four);
    arrays->base = arena_take(arena, four);
    arrays->asked = arena_take(arena, four);
}

enum status cuda_memory_check(struct backend_context *context, const char *what, size_t bytes)
{
    size_t left, all;

    TRY(device_memory_left(context->device, &left, &all));
    if (bytes <= left)
        return STATUS_OK;
    log_error("%s takes %.1f GiB, device %d (%s) has %.1f of %.1f GiB free: a smaller --context, fewer --max-sequences or more verifiers take less, "
              "and nvidia-smi shows who has the rest",
              what, (double)bytes / 0x1p30, device_index(context->device),
              device_name(context->device), (double)left / 0x1p30, (double)all / 0x1p30);
    return STATUS_INTERNAL;
}

enum status cuda_memory_open(struct backend_context *context, size_t bytes, const char *what, struct arena *arena)
{
    void *base;

    TRY(device_memory_open(context->device, bytes, what, &base));
    *arena = (struct arena){.base = base, .size = bytes};
    return STATUS_OK;
}

void cuda_memory_close(struct backend_context *context, struct arena *arena)
{
    replay_forget(context);
    if (arena->base != NULL)
        device_memory_close(context->device, arena->base);
    *arena = (struct arena){0};
}

void cuda_write(struct backend_context *context, void *to, const void *from, size_t bytes)
{
    device_write(context->device, to, from, bytes);
}

enum status cuda_open_scratch(struct backend_context *context)
{
    const struct backend_options *options = &context->options;
    size_t attend = attend_scratch_bytes(options->max_qkv, options->max_context);
    struct arena *arena = &context->scratch;

    size_t evidence = arena_round(evidence_scratch_bytes(options->max_outputs, options->max_vocab));
    size_t top = arena_round(top_scratch_bytes(KERNEL_ROWS, options->max_vocab));
    size_t rounded = arena_round(floats(options->max_rows, options->max_hidden) / 2), scales = arena_round(floats(options->max_rows, 1));

    TRY(cuda_memory_open(context,
                         row_bytes(options->max_rows) + arena_round(floats(options->max_rows, options->max_qkv)) + rounded + scales +
                             arena_round(floats(options->max_outputs, options->max_vocab)) + ask_bytes(options->max_outputs) + evidence + top +
                             draft_bytes() + one_shot_counter_bytes() + 256 + arena_round(attend),
                         "the scratch memory of a step", arena));
    context->attend_scratch = arena_take(arena, attend); /* first, so that it is aligned as the arena is */
    context->attend_scratch_bytes = attend;
    lay_out_rows(&context->rows, arena, options->max_rows);
    context->qkv = arena_take(arena, floats(options->max_rows, options->max_qkv));
    context->rounded = arena_take(arena, rounded);
    context->norm_scale = arena_take(arena, scales);
    context->logits = arena_take(arena, floats(options->max_outputs, options->max_vocab));
    ask_lay_out(&context->ask, arena, options->max_outputs);
    context->evidence_scratch = arena_take(arena, evidence);
    context->top_scratch = arena_take(arena, top);
    draft_lay_out(&context->draft.on_device, arena);
    context->one_shot.counters = arena_take(arena, one_shot_counter_bytes());
    return STATUS_OK;
}

/* Logits stay on the device, except for rows that penalties, biases or bans change. These are copied through this many rows of pinned memory, which
 * are reused. */
static int fetch_rows(const struct backend_options *options)
{
    size_t row = floats(1, options->max_vocab), rows = row > 0 ? FETCH_BYTES / row : 0;

    rows = rows > 0 ? rows : 1;
    return rows < (size_t)options->max_outputs ? (int)rows : options->max_outputs;
}

enum status cuda_open_pinned(struct backend_context *context)
{
    const struct backend_options *options = &context->options;
    size_t x = arena_round(floats(options->max_rows, options->max_hidden));
    int rows = fetch_rows(options);
    size_t logits = arena_round(floats(rows, options->max_vocab));
    size_t fetched = arena_round((size_t)rows * sizeof *context->fetched);
    struct arena *arena = &context->pinned;
    void *base;

    arena->size = row_bytes(options->max_rows) + x + logits + ask_bytes(options->max_outputs) + fetched + draft_bytes() + one_shot_counter_bytes();
    TRY(device_host_open(context->device, arena->size, "the pinned memory of a step", &base));
    arena->base = base;
    lay_out_rows(&context->pinned_rows, arena, options->max_rows);
    context->pinned_x = arena_take(arena, x);
    context->pinned_logits = arena_take(arena, logits);
    ask_lay_out(&context->pinned_ask, arena, options->max_outputs);
    draft_lay_out(&context->draft.pinned, arena);
    context->one_shot.stop = arena_take(arena, one_shot_counter_bytes());
    context->fetched = arena_take(arena, fetched);
    context->fetch_rows = rows;
    return STATUS_OK;
}
