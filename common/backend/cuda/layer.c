/* The operations of a step: each asks for kernels and returns. Around the cache, steps of more than KERNEL_ROWS rows go part by part. */
#include "common/backend/cuda/context.h"

#include <string.h>

enum { LONGEST_STEP = 512 };

static int min(int a, int b)
{
    return a < b ? a : b;
}

/* The rows are copied as one block: the arrays lie one after the other, on both sides at the same distances. */
static void send_rows(struct backend_context *context, const struct rows *rows, const int32_t *asked, int output_count)
{
    const struct row_arrays *pinned = &context->pinned_rows;
    size_t count = (size_t)rows->count, four = count * sizeof(int32_t);

    memcpy(pinned->ancestors, rows->ancestors, count * sizeof *rows->ancestors);
    memcpy(pinned->position, rows->position, four);
    memcpy(pinned->slot, rows->slot, four);
    memcpy(pinned->place, rows->place, four);
    memcpy(pinned->base, rows->base, four);
    if (output_count > 0)
        memcpy(pinned->asked, asked, (size_t)output_count * sizeof *asked);
    device_copy_in(context->device, context->rows.ancestors, pinned->ancestors,
                   (size_t)((char *)(pinned->asked + output_count) - (char *)pinned->ancestors));
}

void cuda_embed(struct backend_context *context, const struct rows *rows, const int32_t *asked, int output_count, enum dtype dtype,
                const void *table, int hidden, float *x)
{
    context->head.told = context->asking.count = 0; /* of the step before */
    send_rows(context, rows, asked, output_count);
    backend_cpu.step.embed(context->host, rows, asked, output_count, dtype, table, hidden, context->pinned_x);
    device_copy_in(context->device, x, context->pinned_x, (size_t)rows->count * (size_t)hidden * sizeof *x);
}

void cuda_pick(struct backend_context *context, int hidden, const int32_t *asked, int count, const float *x, float *to)
{
    (void)asked;
    pick_start(context->rows.asked, count, hidden, x, to, device_stream(context->device));
    device_launched(context->device, "pick");
}

static enum kernel_numbers numbers_of(const struct matrix *matrix)
{
    return matrix->layout == DTYPE_F16 ? KERNEL_F16 : KERNEL_BF16;
}

static int has_clusters(const struct backend_context *context, const struct linear_launch *launch)
{
    return context_clusters(context) && launch->to != NULL && launch->rows >= KERNEL_CLUSTER_LEAST && launch->rows <= KERNEL_CLUSTER_ROWS;
}

/* Rows that no kernel has rounded have room to be, where they are of the residual stream. */
static int is_wide(const struct backend_context *context, const struct linear_launch *launch)
{
    return (launch->rows > KERNEL_ROWS || has_clusters(context, launch)) && launch->columns % 8 == 0 &&
           (launch->is_rounded || launch->columns <= context->options.max_hidden);
}

static void run_wide(struct backend_context *context, const struct linear_launch *launch, const char *what)
{
    struct CUstream_st *stream = device_stream(context->device);
    struct wide_launch wide = {.weights = launch->weights,
                               .layout = launch->layout,
                               .is_f16 = launch->is_f16,
                               .outputs = launch->outputs,
                               .columns = launch->columns,
                               .rows = launch->rows,
                               .from = launch->from,
                               .ffn = launch->ffn,
                               .to = launch->to,
                               .gives = launch->gives,
                               .adds = launch->adds,
                               .overlaps = launch->overlaps};

    if (!launch->is_rounded) {
        const struct round_launch round = {.is_f16 = launch->is_f16,
                                           .rows = launch->rows,
                                           .columns = launch->columns,
                                           .from = launch->from,
                                           .norm = launch->norm,
                                           .norm_eps = launch->norm_eps,
                                           .to = context->rounded,
                                           .scale = launch->norm != NULL && !launch->is_f16 ? context->norm_scale : NULL,
                                           .overlaps = launch->overlaps};

        round_start(&round, stream);
        device_launched(context->device, what);
        wide.from = round.to;
        wide.scale = round.scale;
    }
    if (has_clusters(context, launch))
        wide_clusters_start(&wide, stream);
    else
        wide_start(&wide, stream);
    device_launched(context->device, what);
}

/* A linear map of some rows: what is the matrix's and the device's is filled in here. */
static void run_linear(struct backend_context *context, const struct matrix *matrix, const char *what, struct linear_launch launch)
{
    size_t outputs = (size_t)(launch.ffn > 0 ? launch.ffn : matrix->outputs);
    int rows = launch.rows, most = linear_rows(device_block_bytes(context->device));

    launch.weights = matrix->data;
    launch.layout = matrix->layout;
    launch.is_f16 = matrix->layout == DTYPE_F16;
    launch.outputs = matrix->outputs;
    launch.columns = matrix->columns;
    launch.processors = device_processors(context->device);
    launch.processor_bytes = device_shared_bytes(context->device);
    launch.block_bytes = device_block_bytes(context->device);
    launch.overlaps = context_overlaps(context);
    if (is_wide(context, &launch)) {
        run_wide(context, &launch, what);
        return;
    }
    for (int first = 0; first < rows; first += most) {
        launch.rows = min(most, rows - first);
        linear_start(&launch, device_stream(context->device));
        device_launched(context->device, what);
        launch.from = (const char *)launch.from + (size_t)launch.rows * (size_t)launch.columns * (launch.is_rounded ? 2 : sizeof(float));
        if (launch.to != NULL)
            launch.to = (char *)launch.to + (size_t)launch.rows * outputs * kernel_numbers_bytes(launch.gives);
    }
}

void cuda_matmul(struct backend_context *context, const struct matrix *matrix, int rows, const float *from, float *to)
{
    run_linear(context, matrix, "matmul", (struct linear_launch){.rows = rows, .from = from, .to = to});
}

void cuda_attend_out(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights, int rows,
                     const float *from, float *partial)
{
    (void)shape;
    run_linear(context, weights->out, "attend_out", (struct linear_launch){.rows = rows, .from = from, .is_rounded = 1, .to = partial});
}

void cuda_mlp_out(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights, int rows,
                  const float *from, float *partial)
{
    (void)shape;
    run_linear(context, weights->down, "mlp_out", (struct linear_launch){.rows = rows, .from = from, .is_rounded = 1, .to = partial});
}

void cuda_matmul_add(struct backend_context *context, const struct matrix *matrix, int rows, const float *from, float *x)
{
    run_linear(context, matrix, "matmul_add", (struct linear_launch){.rows = rows, .from = from, .is_rounded = 1, .to = x, .adds = 1});
}

void cuda_mlp_in(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights, int rows,
                 const float *x, float *to)
{
    run_linear(context, weights->gate_up, "mlp_in",
               (struct linear_launch){.rows = rows,
                                      .from = x,
                                      .norm = weights->mlp_norm,
                                      .norm_eps = shape->norm_eps,
                                      .ffn = shape->ffn,
                                      .to = to,
                                      .gives = numbers_of(weights->down)});
}

void cuda_add(struct backend_context *context, float *x, const float *sum, size_t count)
{
    add_start(x, sum, count, context_overlaps(context), device_stream(context->device));
    device_launched(context->device, "add");
}

void cuda_tree_sum(struct backend_context *context, const float *terms, int count, size_t size, float *to)
{
    tree_sum_start(terms, count, size, to, device_stream(context->device));
    device_launched(context->device, "tree_sum");
}

static struct kernel_rows part_of(const struct backend_context *context, const struct rows *rows, int first)
{
    const struct row_arrays *from = &context->rows;

    int at = context->draft.first_row + first;

    return (struct kernel_rows){.count = min(KERNEL_ROWS, rows->count - first),
                                .position = from->position + at,
                                .slot = from->slot + at,
                                .place = from->place + at,
                                .base = from->base + at,
                                .ancestors = from->ancestors + at};
}

static struct kernel_cache cache_of(const struct layer_shape *shape, const struct cache_layer *cache)
{
    return (struct kernel_cache){.keys = cache->keys,
                                 .values = cache->values,
                                 .is_e4m3 = cache->dtype == DTYPE_E4M3,
                                 .heads = shape->heads,
                                 .kv_heads = shape->kv_heads,
                                 .head_dim = shape->head_dim,
                                 .context = shape->context};
}

void cuda_attend_in(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights,
                    const struct rows *rows, const float *x, const float *cosine, const float *sine, const struct cache_layer *cache,
                    float *q)
{
    int width = (shape->heads + 2 * shape->kv_heads) * shape->head_dim;

    run_linear(context, weights->qkv, "attend_in",
               (struct linear_launch){.rows = rows->count, .from = x, .norm = weights->attn_norm, .norm_eps = shape->norm_eps, .to = context->qkv});
    for (int first = 0; first < rows->count; first += KERNEL_ROWS) {
        struct heads_launch launch = {.rows = part_of(context, rows, first),
                                      .cache = cache_of(shape, cache),
                                      .qkv = context->qkv + (size_t)first * (size_t)width,
                                      .bias = weights->qkv_bias,
                                      .q_norm = weights->q_norm,
                                      .k_norm = weights->k_norm,
                                      .norm_eps = shape->norm_eps,
                                      .cosine = cosine,
                                      .sine = sine,
                                      .q = q + (size_t)first * (size_t)(shape->heads * shape->head_dim),
                                      .overlaps = context_overlaps(context)};

        heads_start(&launch, device_stream(context->device));
        device_launched(context->device, "attend_in's heads");
    }
}

int cuda_longest(const struct backend_context *context, const struct rows *rows, int first, int count)
{
    int longest = context->least_longest;

    for (int r = first; r < first + count; r++) {
        int own = rows->base[r] + (rows->ancestors[r] == 0 ? 0 : 64 - __builtin_clzll(rows->ancestors[r]));

        longest = own > longest ? own : longest;
    }
    return min((longest + LONGEST_STEP - 1) / LONGEST_STEP * LONGEST_STEP, context->options.max_context);
}

/* Runs of rows of one slot in a part of a step. A step that is recorded is played with other rows, so it is not looked at. */
static int runs_of(const struct rows *rows, int first, int count)
{
    int runs = 1;

    if (rows->count <= KERNEL_ROWS)
        return count;
    for (int r = first + 1; r < first + count; r++)
        runs += rows->slot[r] != rows->slot[r - 1];
    return runs;
}

void cuda_attend(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights,
                 const struct rows *rows, const float *q, const struct cache_layer *cache, float *to)
{
    enum kernel_numbers gives = numbers_of(weights->out);

    for (int first = 0; first < rows->count; first += KERNEL_ROWS) {
        size_t skipped = (size_t)first * (size_t)(shape->heads * shape->head_dim);
        struct attend_launch launch = {.rows = part_of(context, rows, first),
                                       .cache = cache_of(shape, cache),
                                       .q = q + skipped,
                                       .to = (char *)to + skipped * kernel_numbers_bytes(gives),
                                       .gives = gives,
                                       .scratch = context->attend_scratch,
                                       .scratch_bytes = context->attend_scratch_bytes,
                                       .processors = device_processors(context->device),
                                       .overlaps = context_overlaps(context)};

        launch.longest = cuda_longest(context, rows, first, launch.rows.count);
        launch.runs = runs_of(rows, first, launch.rows.count);
        attend_start(&launch, device_stream(context->device));
        device_launched(context->device, "attend");
    }
}

void cuda_cache_copy(struct backend_context *context, const struct layer_shape *shape, const struct cache_layer *cache, struct cache_place from,
                     struct cache_place to, int count)
{
    size_t place = (size_t)shape->head_dim * dtype_bytes(cache->dtype), head = (size_t)shape->context * place, slot = (size_t)shape->kv_heads * head;
    size_t source = (size_t)from.slot * slot + (size_t)from.place * place, target = (size_t)to.slot * slot + (size_t)to.place * place;
    size_t bytes = (size_t)count * place, heads = (size_t)shape->kv_heads;

    if (count == 0)
        return;
    device_copy(context->device, (char *)cache->keys + target, (const char *)cache->keys + source, head, bytes, heads);
    device_copy(context->device, (char *)cache->values + target, (const char *)cache->values + source, head, bytes, heads);
}

/* The head tells what was asked of its rows: their logits are not kept. */
static void give_evidence(struct backend_context *context)
{
    struct linear_launch launch = context->head.launch;

    launch.to = NULL;
    launch.evidence = ask_launch(context, context->asking.first, 0, context->asking.count, context->asking.gumbel);
    run_linear(context, context->head.matrix, "head", launch);
    context->head.told = 1;
}

void context_keep_logits(struct backend_context *context)
{
    if (!context->head.told)
        return;
    context->head.told = 0;
    run_linear(context, context->head.matrix, "head", context->head.launch);
}

void cuda_head(struct backend_context *context, int hidden, float norm_eps, const float *norm, const struct matrix *head, int rows,
               const float *x, float *logits)
{
    (void)hidden;
    if (context->fetches > 0 || context->asked > 0)
        (void)cuda_finish(context); /* a second head in a step: what was asked of the first leaves the room; a failure stays */
    context->logits_columns = head->outputs;
    context->logits_layout = head->layout;
    context->head = (struct head_step){
        .matrix = head, .launch = {.rows = rows, .from = x, .norm = norm, .norm_eps = norm_eps, .to = context->logits}, .told = 0};
    if (logits == NULL && rows <= linear_rows(device_block_bytes(context->device)) && ask_is_of_all(&context->asking, rows)) {
        give_evidence(context);
        return;
    }
    run_linear(context, head, "head", context->head.launch);
    if (logits != NULL)
        ask_fetch(context, 0, rows, logits);
}

enum status cuda_finish(struct backend_context *context)
{
    enum status status = device_finish(context->device);

    if (status == STATUS_OK) {
        draft_answer(context);
        ask_answer(context);
    }
    ask_take_rows(context, status);
    context->asked = 0;
    context->least_longest = 0;
    context->draft.entries = 0;
    return status;
}
