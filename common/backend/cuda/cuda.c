/* The CUDA row of the table: open, close and what it is. It knows no CUDA: that is behind device.h and kernels.h. */
#include "common/backend/cuda/context.h"

#include "common/base/log.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include <stdio.h>
#include <stdlib.h>

int context_overlaps(const struct backend_context *context)
{
    return device_overlaps(context->device) && !context->switches.no_overlap;
}

int context_clusters(const struct backend_context *context)
{
    return device_clusters(context->device) && !context->switches.no_clusters;
}

static const char *cuda_describe(const struct backend_context *context)
{
    return context->description;
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

/* Loads all kernels now, but for those of weights in blocks, which a model needs few of. CUDA would load each when it is first launched, and weights
 * and caches may leave no memory for that. Where the driver has to compile them first, a family takes many seconds. */
static int prepare_families(void)
{
    static int (*const prepare[])(void) = {round_prepare, attend_prepare, heads_prepare,   evidence_prepare,
                                           top_prepare,   choose_prepare, one_shot_prepare};
    int error = 0;

    for (size_t i = 0; error == 0 && i < sizeof prepare / sizeof prepare[0]; i++) {
        progress_made(NULL);
        error = prepare[i]();
    }
    return error;
}

static enum status tell_refusal(const struct backend_context *context, int error)
{
    if (error == 0)
        return STATUS_OK;
    log_error("device %d (%s) refuses the kernels of this build: CUDA's error %d", device_index(context->device), device_name(context->device),
              error);
    return STATUS_INTERNAL;
}

enum status cuda_prepare_layout(struct backend_context *context, int layout)
{
    int error;

    if ((context->prepared >> layout & 1) != 0)
        return STATUS_OK;
    progress_made("loading the device's kernels");
    error = linear_prepare(layout, device_block_bytes(context->device));
    error = error != 0 ? error : wide_prepare(layout);
    error = error != 0 || !context_clusters(context) ? error : wide_clusters_prepare(layout);
    progress_made(NULL);
    context->prepared |= 1u << layout;
    return tell_refusal(context, error);
}

static enum status prepare_kernels(struct backend_context *context)
{
    int bytes = device_block_bytes(context->device);

    if (linear_rows(bytes) == 0) {
        log_error("device %d (%s) gives a block %d KiB of shared memory, too little for these kernels: devices of compute capability 8.0 and later "
                  "have enough; choose another device, or --backend cpu",
                  device_index(context->device), device_name(context->device), bytes / 1024);
        return STATUS_USAGE;
    }
    TRY(cuda_prepare_layout(context, DTYPE_BF16));
    TRY(cuda_prepare_layout(context, DTYPE_F16));
    return tell_refusal(context, prepare_families());
}

static void tell_device(struct backend_context *context)
{
    struct backend_device *told = &context->told;
    char left_out[96];

    told->number = device_index(context->device);
    told->stream = device_stream(context->device);
    snprintf(told->name, sizeof told->name, "%.63s", device_name(context->device));
    snprintf(told->place, sizeof told->place, "%.31s", device_place(context->device));
    snprintf(told->uuid, sizeof told->uuid, "%.47s", device_uuid(context->device));
    snprintf(context->description, sizeof context->description, "cuda, device %d, %s%s", told->number, device_name(context->device),
             switches_describe(&context->switches, left_out));
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

    TRY(switches_read(getenv("TANDEM_CUDA"), &context->switches));
    progress_made("opening a device"); /* may take seconds where no other process has the device open */
    TRY(device_open(options->device, &context->device));
    TRY(prepare_kernels(context));
    TRY(pool_open(options->threads, &context->pool));
    TRY(backend_cpu.open(&(struct backend_options){.threads = 1}, &context->host));
    TRY(cuda_open_scratch(context));
    TRY(cuda_open_pinned(context));
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

static void cuda_row_scan(struct backend_context *context, const float *logits, int count, enum row_sums sums, struct row_stats *stats)
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
        .packs = CUDA_PACKS,
        .matrix_bytes = cuda_matrix_bytes,
        .matrix_pack = cuda_matrix_pack,
        .matmul = cuda_matmul,
        .matmul_add = cuda_matmul_add,
        .add = cuda_add,
        .tree_sum = cuda_tree_sum,
    },
    .step = {
        .prompt_rows = CUDA_PROMPT_ROWS,
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
        .dtype = CUDA_CACHE,
        .dtypes = CUDA_CACHES,
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
        .needs_table = 1,
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
