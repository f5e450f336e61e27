/* The CUDA row of the table: open, close, memory and packing. It knows no CUDA: that is behind device.h and kernels.h. */
#include "common/backend/cuda/context.h"

#include "common/base/log.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PACK_BYTES = 16 << 20, FETCH_BYTES = 16 << 20 };

static const char *cuda_describe(const struct backend_context *context)
{
    return context->description;
}

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

static enum status cuda_memory_check(struct backend_context *context, const char *what, size_t bytes)
{
    size_t left, all;

    TRY(device_memory_left(context->device, &left, &all));
    if (bytes <= left)
        return STATUS_OK;
    log_error("%s takes %.1f GiB, device %d (%s) has %.1f of %.1f GiB free: a smaller --context, fewer --max-sequences or more verifiers take less, and "
              "nvidia-smi shows who has the rest",
              what, (double)bytes / 0x1p30, device_index(context->device),
              device_name(context->device), (double)left / 0x1p30, (double)all / 0x1p30);
    return STATUS_INTERNAL;
}

static enum status cuda_memory_open(struct backend_context *context, size_t bytes, const char *what, struct arena *arena)
{
    void *base;

    TRY(device_memory_open(context->device, bytes, what, &base));
    *arena = (struct arena){.base = base, .size = bytes};
    return STATUS_OK;
}

static void cuda_memory_close(struct backend_context *context, struct arena *arena)
{
    replay_forget(context);
    if (arena->base != NULL)
        device_memory_close(context->device, arena->base);
    *arena = (struct arena){0};
}

static enum status open_scratch(struct backend_context *context)
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

static enum status open_pinned(struct backend_context *context)
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

static void cuda_close(struct backend_context *context)
{
    if (context == NULL)
        return;
    for (struct matrix *matrix = context->matrices, *next; matrix != NULL; matrix = next) {
        next = matrix->next;
        free(matrix);
    }
    if (context->device != NULL) {
        (void)device_finish(context->device); /* no kernel may still use memory that is freed */
        cuda_memory_close(context, &context->scratch);
        if (context->pinned.base != NULL)
            device_host_close(context->device, context->pinned.base);
        for (int i = 0; i < PACK_HALVES; i++)
            if (context->pack[i] != NULL)
                device_host_close(context->device, context->pack[i]);
    }
    device_close(context->device);
    backend_cpu.close(context->host);
    if (context->pool != NULL)
        pool_close(context->pool);
    free(context);
}

/* Loads all kernels now. CUDA would load each when it is first launched, and weights and caches may leave no memory for that. Where the driver has to
 * compile them first, a family takes many seconds. */
static int prepare_families(int block_bytes)
{
    static int (*const prepare[])(void) = {wide_prepare, attend_prepare, heads_prepare,   evidence_prepare,
                                           top_prepare,  choose_prepare, one_shot_prepare};
    int error;

    progress_made("loading the device's kernels");
    error = linear_prepare(block_bytes);
    for (size_t i = 0; error == 0 && i < sizeof prepare / sizeof prepare[0]; i++) {
        progress_made(NULL);
        error = prepare[i]();
    }
    return error;
}

static enum status prepare_kernels(const struct backend_context *context)
{
    int bytes = device_block_bytes(context->device), error;

    if (linear_rows(bytes) == 0) {
        log_error("device %d (%s) gives a block %d KiB of shared memory, too little for these kernels: devices of compute capability 8.0 and later have "
                  "enough; choose another device, or --backend cpu",
                  device_index(context->device), device_name(context->device), bytes / 1024);
        return STATUS_USAGE;
    }
    error = prepare_families(bytes);
    if (error == 0)
        return STATUS_OK;
    log_error("device %d (%s) refuses the kernels of this build: CUDA's error %d", device_index(context->device),
              device_name(context->device), error);
    return STATUS_INTERNAL;
}

static void tell_device(struct backend_context *context)
{
    struct backend_device *told = &context->told;

    told->number = device_index(context->device);
    told->stream = device_stream(context->device);
    snprintf(told->name, sizeof told->name, "%.63s", device_name(context->device));
    snprintf(told->place, sizeof told->place, "%.31s", device_place(context->device));
    snprintf(context->description, sizeof context->description, "cuda, device %d, %s", told->number, device_name(context->device));
}

static const struct backend_device *cuda_device(const struct backend_context *context)
{
    return &context->told;
}

static int cuda_idle(struct backend_context *context)
{
    return device_idle(context->device);
}

static enum status open_parts(struct backend_context *context)
{
    const struct backend_options *options = &context->options;

    progress_made("opening a device"); /* may take seconds where no other process has the device open */
    TRY(device_open(options->device, &context->device));
    TRY(prepare_kernels(context));
    TRY(pool_open(options->threads, &context->pool));
    TRY(backend_cpu.open(&(struct backend_options){.threads = 1}, &context->host));
    TRY(open_scratch(context));
    TRY(open_pinned(context));
    tell_device(context);
    return STATUS_OK;
}

static enum status cuda_open(const struct backend_options *options, struct backend_context **context)
{
    struct backend_context *new;
    enum status status;

    if (options->threads < 1) {
        log_error("%d threads, expected at least 1", options->threads);
        return STATUS_USAGE;
    }
    if (options->max_hidden > KERNEL_MAX_HIDDEN) {
        log_error("the CUDA backend takes models of up to %d hidden channels, this one has %d", KERNEL_MAX_HIDDEN, options->max_hidden);
        return STATUS_DATA;
    }
    new = calloc(1, sizeof *new);
    if (new == NULL) {
        log_error("no memory for the CUDA backend");
        return STATUS_INTERNAL;
    }
    new->options = *options;
    if (new->options.max_outputs == 0)
        new->options.max_outputs = options->max_rows;
    status = open_parts(new);
    if (status != STATUS_OK) {
        cuda_close(new);
        return status;
    }
    *context = new;
    return STATUS_OK;
}

static void cuda_write(struct backend_context *context, void *to, const void *from, size_t bytes)
{
    device_write(context->device, to, from, bytes);
}

struct pack {
    struct pool *pool;
    const struct matrix *matrix;
    const struct matrix_source *source;
    int first, last; /* panels */
    char *to;
};

static void pack_part(void *argument, int thread)
{
    const struct pack *pack = argument;
    struct stretch own = pool_stretch(pack->pool, thread, pack->last - pack->first);

    cuda_matrix_fill(pack->matrix, pack->source, pack->first + own.first, pack->first + own.last,
                     pack->to + (size_t)own.first * pack->matrix->panel_bytes);
}

/* Two halves, each of at least one panel. */
static enum status open_pack(struct backend_context *context, size_t panel_bytes)
{
    size_t bytes = panel_bytes > PACK_BYTES ? panel_bytes : PACK_BYTES;

    if (bytes <= context->pack_bytes)
        return STATUS_OK;
    for (int i = 0; i < PACK_HALVES; i++) {
        void *half;

        if (context->pack[i] != NULL)
            device_host_close(context->device, context->pack[i]);
        context->pack[i] = NULL;
        TRY(device_host_open(context->device, bytes, "the pinned memory for loading", &half));
        context->pack[i] = half;
    }
    context->pack_bytes = bytes;
    return STATUS_OK;
}

/* Packs one half while the other is being copied. */
static enum status pack_panels(struct backend_context *context, const struct matrix_source *source, const struct matrix *matrix)
{
    struct pack pack = {.pool = context->pool, .matrix = matrix, .source = source};
    int stride = (int)(context->pack_bytes / matrix->panel_bytes), half = 0;

    for (pack.first = 0; pack.first < matrix->panels; pack.first = pack.last, half = !half) {
        pack.last = stride < matrix->panels - pack.first ? pack.first + stride : matrix->panels;
        pack.to = context->pack[half];
        pool_run(context->pool, pack_part, &pack);
        TRY(device_finish(context->device));
        device_copy_in(context->device, (char *)matrix->data + (size_t)pack.first * matrix->panel_bytes, pack.to,
                       (size_t)(pack.last - pack.first) * matrix->panel_bytes);
    }
    return device_finish(context->device);
}

static enum status cuda_matrix_pack(struct backend_context *context, const struct matrix_source *source, struct arena *arena,
                                    struct matrix **matrix)
{
    struct matrix packed, *new;

    TRY(cuda_matrix_init(&packed, source));
    TRY(open_pack(context, packed.panel_bytes));
    if (source->dtype == DTYPE_F32 && !context->told_rounding) {
        log_warn("weights of dtype F32 are rounded to BF16 for the device");
        context->told_rounding = 1;
    }
    packed.data = arena_take(arena, cuda_matrix_bytes(source));
    TRY(pack_panels(context, source, &packed));
    new = malloc(sizeof *new);
    if (new == NULL) {
        log_error("no memory for a matrix");
        return STATUS_INTERNAL;
    }
    *new = packed;
    new->next = context->matrices;
    context->matrices = new;
    *matrix = new;
    return STATUS_OK;
}

static void cuda_row_scan(struct backend_context *context, const float *logits, int count, int sums, struct row_stats *stats)
{
    backend_cpu.row.scan(context->host, logits, count, sums, stats);
}

static void cuda_row_gumbel_max(struct backend_context *context, const float *logits, int count, int32_t first_token, const struct rng_key *key,
                          enum rng_purpose purpose, const uint32_t *excluded, struct scored_token *winner)
{
    backend_cpu.row.gumbel_max(context->host, logits, count, first_token, key, purpose, excluded, winner);
}

static int cuda_row_top(struct backend_context *context, const float *logits, int count, int wanted, struct scored_token *best)
{
    return backend_cpu.row.top(context->host, logits, count, wanted, best);
}

const struct backend backend_cuda = {
    .name = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .memory = {
        .check = cuda_memory_check,
        .open = cuda_memory_open,
        .close = cuda_memory_close,
        .write = cuda_write,
    },
    .linear = {
        .packs = 1u << DTYPE_F32 | 1u << DTYPE_F16 | 1u << DTYPE_BF16,
        .matrix_bytes = cuda_matrix_bytes,
        .matrix_pack = cuda_matrix_pack,
        .matmul = cuda_matmul,
        .matmul_add = cuda_matmul_add,
        .add = cuda_add,
        .tree_sum = cuda_tree_sum,
    },
    .step = {
        .prompt_rows = 512,
        .embed = cuda_embed,
        .replay = cuda_replay,
        .replayed = cuda_replayed,
        .pick = cuda_pick,
        .finish = cuda_finish,
    },
    .layer = {
        .attend_in = cuda_attend_in,
        .attend = cuda_attend,
        .attend_out = cuda_attend_out,
        .mlp_in = cuda_mlp_in,
        .mlp_out = cuda_mlp_out,
    },
    .cache = {
        .dtype = DTYPE_BF16,
        .dtypes = 1u << DTYPE_BF16,
        .copy = cuda_cache_copy,
    },
    .output = {
        .head = cuda_head,
        .ask = cuda_ask,
        .ask_begin = cuda_ask_begin,
        .ask_run = cuda_ask_run,
        .ask_end = cuda_ask_end,
        .fetch = cuda_fetch,
    },
    .draft = {
        .begin = cuda_draft_begin,
        .step = cuda_draft_step,
        .end = cuda_draft_end,
    },
    .device = {
        .which = cuda_device,
        .idle = cuda_idle,
        .one_shot = &cuda_one_shot,
    },
    .row = {
        .scan = cuda_row_scan,
        .gumbel_max = cuda_row_gumbel_max,
        .top = cuda_row_top,
    },
};
