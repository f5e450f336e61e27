/* The operations of a layer, and which thread does which part. Output channels are cut into runs of panels, one per thread and always the same one,
 * so that a thread's weights stay in its own cache. Every thread computes norms for itself, which is cheaper than a barrier. Steps of more than
 * SWEEP_ROWS rows are done sweep by sweep. */
#include "common/backend/cpu/context.h"

#include <string.h>

static int min(int a, int b)
{
    return a < b ? a : b;
}

/* One linear map of a step, perhaps with its norm before it. */
struct linear {
    struct backend_context *context;
    const struct matrix *matrix;
    int rows;
    const float *from; /* [rows][columns] */
    const float *norm; /* [columns], or NULL */
    float norm_eps;
    float *to; /* [rows][to_stride] */
    size_t to_stride;
};

/* Row r of the activations' first block. */
static struct activations *row_of(const struct backend_context *context, struct activations *activations, int r)
{
    return (struct activations *)((char *)activations + (size_t)r * context->kernels->activations_bytes);
}

struct linear_input cpu_linear_input(const struct backend_context *context, const struct matrix *matrix, const float *norm, float norm_eps,
                                     const float *x, const struct sweep *sweep, int thread)
{
    const struct scratch *scratch = &context->scratch[thread];
    size_t columns = (size_t)matrix->columns;
    int shares = dtype_is_quantised(matrix->dtype) && sweep->of >= SHARED_ROWS && pool_threads(context->pool) > 1;
    struct stretch mine = shares ? pool_stretch(context->pool, thread, sweep->count) : (struct stretch){0, sweep->count};
    struct linear_input input = {.rows = sweep->count};

    x += (size_t)sweep->first * columns;
    input.from = norm == NULL ? x : scratch->normed;
    for (int r = mine.first; r < mine.last && norm != NULL; r++)
        context->kernels->norm(x + (size_t)r * columns, norm, matrix->columns, norm_eps, scratch->normed + (size_t)r * columns);
    if (!dtype_is_quantised(matrix->dtype))
        return input;
    input.quantised = shares ? context->scratch[sweep->first / SWEEP_ROWS % 2].quantised : scratch->quantised;
    for (int r = mine.first; r < mine.last; r++)
        context->kernels->quantise(matrix, input.from + (size_t)r * columns, row_of(context, input.quantised, r), (size_t)sweep->count);
    if (shares)
        pool_meet(context->pool);
    return input;
}

void cpu_linear_run(const struct backend_context *context, const struct matrix *matrix, int first, int last,
                    const struct linear_input *input, float *to, size_t to_stride)
{
    if (input->quantised != NULL)
        context->kernels->matmul_quantised(matrix, first, last, input->rows, input->quantised, (size_t)input->rows, to, to_stride);
    else
        context->kernels->matmul(matrix, first, last, input->rows, input->from, (size_t)matrix->columns, to, to_stride);
}

struct sweep cpu_sweep(int first, int rows)
{
    return (struct sweep){.first = first, .count = min(SWEEP_ROWS, rows - first), .of = rows};
}

static struct linear_input linear_input(const struct linear *linear, const struct sweep *sweep, int thread)
{
    return cpu_linear_input(linear->context, linear->matrix, linear->norm, linear->norm_eps, linear->from, sweep, thread);
}

static void linear_part(void *argument, int thread)
{
    const struct linear *linear = argument;
    const struct backend_context *context = linear->context;
    struct stretch panels = pool_stretch(context->pool, thread, linear->matrix->panels);

    for (int first = 0; first < linear->rows; first += SWEEP_ROWS) {
        struct sweep sweep = cpu_sweep(first, linear->rows);
        struct linear_input input = linear_input(linear, &sweep, thread);

        cpu_linear_run(context, linear->matrix, panels.first, panels.last, &input,
                       linear->to + (size_t)first * linear->to_stride + (size_t)panels.first * BACKEND_PANEL, linear->to_stride);
    }
}

void cpu_embed(struct backend_context *context, const struct rows *rows, const int32_t *asked, int output_count, enum dtype dtype,
               const void *table, int hidden, float *x)
{
    const char *vectors = table;
    size_t columns = (size_t)hidden;

    (void)context, (void)asked, (void)output_count;
    for (int r = 0; r < rows->count; r++)
        dtype_widen(dtype, vectors + (size_t)rows->token[r] * dtype_row_bytes(dtype, columns), x + (size_t)r * columns, columns);
}

void cpu_pick(struct backend_context *context, int hidden, const int32_t *asked, int count, const float *x, float *to)
{
    size_t columns = (size_t)hidden;

    (void)context;
    for (int i = 0; i < count; i++)
        memcpy(to + (size_t)i * columns, x + (size_t)asked[i] * columns, columns * sizeof *to);
}

void cpu_matmul(struct backend_context *context, const struct matrix *matrix, int rows, const float *from, float *to)
{
    struct linear linear = {
        .context = context, .matrix = matrix, .rows = rows, .from = from, .to = to, .to_stride = (size_t)matrix->outputs};

    pool_run(context->pool, linear_part, &linear);
}

static void add_part(void *argument, int thread)
{
    const struct linear *linear = argument;
    const struct backend_context *context = linear->context;
    struct stretch panels = pool_stretch(context->pool, thread, linear->matrix->panels);
    size_t outputs = (size_t)linear->matrix->outputs, stride = CHUNK_PANELS * BACKEND_PANEL;
    float *chunk = context->scratch[thread].chunk;

    for (int row = 0; row < linear->rows; row += SWEEP_ROWS) {
        struct sweep sweep = cpu_sweep(row, linear->rows);
        struct linear_input input = linear_input(linear, &sweep, thread);

        for (int p = panels.first, last; p < panels.last; p = last) {
            size_t channel = (size_t)p * BACKEND_PANEL, end;

            last = min(p + CHUNK_PANELS, panels.last);
            end = (size_t)last * BACKEND_PANEL < outputs ? (size_t)last * BACKEND_PANEL : outputs;
            cpu_linear_run(context, linear->matrix, p, last, &input, chunk, stride);
            for (int r = 0; r < input.rows; r++)
                context->kernels->add(linear->to + (size_t)(row + r) * outputs + channel, chunk + (size_t)r * stride, end - channel);
        }
    }
}

/* Each thread adds the channels that it has computed, while they are in its cache. */
void cpu_matmul_add(struct backend_context *context, const struct matrix *matrix, int rows, const float *from, float *x)
{
    struct linear linear = {.context = context, .matrix = matrix, .rows = rows, .from = from, .to = x};

    pool_run(context->pool, add_part, &linear);
}

void cpu_attend_out(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights, int rows,
                    const float *from, float *partial)
{
    (void)shape;
    cpu_matmul(context, weights->out, rows, from, partial);
}

void cpu_mlp_out(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights, int rows,
                 const float *from, float *partial)
{
    (void)shape;
    cpu_matmul(context, weights->down, rows, from, partial);
}

/* Each thread answers queries about the logits that it has computed, while they are in its cache. */
static void asked_part(void *argument, int thread)
{
    const struct linear *linear = argument;
    const struct backend_context *context = linear->context;
    struct stretch panels = pool_stretch(context->pool, thread, linear->matrix->panels);

    cpu_ask_clear(context, thread);
    for (int row = 0; row < linear->rows; row += SWEEP_ROWS) {
        struct sweep sweep = cpu_sweep(row, linear->rows);
        struct linear_input input = linear_input(linear, &sweep, thread);

        for (int p = panels.first, last; p < panels.last; p = last) {
            int channel = p * BACKEND_PANEL;

            last = min(p + CHUNK_PANELS, panels.last);
            cpu_linear_run(context, linear->matrix, p, last, &input, linear->to + (size_t)row * linear->to_stride + channel, linear->to_stride);
            cpu_ask_look(context, &sweep, channel, min(last * BACKEND_PANEL, linear->matrix->outputs), thread);
        }
    }
}

void cpu_head(struct backend_context *context, int hidden, float norm_eps, const float *norm, const struct matrix *head, int rows,
              const float *x, float *logits)
{
    struct linear linear = {.context = context,
                            .matrix = head,
                            .rows = rows,
                            .from = x,
                            .norm = norm,
                            .norm_eps = norm_eps,
                            .to = logits,
                            .to_stride = (size_t)head->outputs};

    (void)hidden;
    context->logits = logits;
    context->logits_columns = head->outputs;
    context->asking.found = context->asking.count > 0;
    pool_run(context->pool, context->asking.found ? asked_part : linear_part, &linear);
}

void cpu_add(struct backend_context *context, float *x, const float *sum, size_t count)
{
    context->kernels->add(x, sum, count);
}

void cpu_tree_sum(struct backend_context *context, const float *terms, int count, size_t size, float *to)
{
    float term[BACKEND_MAX_TERMS];

    (void)context;
    for (size_t i = 0; i < size; i++) {
        for (int t = 0; t < count; t++)
            term[t] = terms[(size_t)t * size + i];
        to[i] = backend_tree_sum(term, count);
    }
}

/* Gate and up channels of panels [first, last), an even number that fits a chunk, and what silu makes of them.
 * to: [rows of input][to_stride] */
static void mlp_chunk(const struct linear *linear, int ffn, int first, int last, const struct linear_input *input, float *to, int thread)
{
    const struct kernels *kernels = linear->context->kernels;
    float *chunk = linear->context->scratch[thread].chunk;
    size_t stride = CHUNK_PANELS * BACKEND_PANEL;
    int channel = first / 2 * BACKEND_PANEL;

    cpu_linear_run(linear->context, linear->matrix, first, last, input, chunk, stride);
    for (int r = 0; r < input->rows; r++)
        kernels->swiglu(chunk + (size_t)r * stride, min((last - first) / 2 * BACKEND_PANEL, ffn - channel),
                        to + (size_t)r * linear->to_stride + channel);
}

static void mlp_part(void *argument, int thread)
{
    const struct linear *linear = argument;
    int ffn = (int)linear->to_stride;
    struct stretch pairs = pool_stretch(linear->context->pool, thread, linear->matrix->panels / 2);

    for (int row = 0; row < linear->rows; row += SWEEP_ROWS) {
        struct sweep sweep = cpu_sweep(row, linear->rows);
        struct linear_input input = linear_input(linear, &sweep, thread);

        for (int p = 2 * pairs.first; p < 2 * pairs.last; p += CHUNK_PANELS)
            mlp_chunk(linear, ffn, p, min(p + CHUNK_PANELS, 2 * pairs.last), &input, linear->to + (size_t)row * linear->to_stride, thread);
    }
}

void cpu_mlp_in(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights, int rows,
                const float *x, float *to)
{
    struct linear linear = {.context = context,
                            .matrix = weights->gate_up,
                            .rows = rows,
                            .from = x,
                            .norm = weights->mlp_norm,
                            .norm_eps = shape->norm_eps,
                            .to = to,
                            .to_stride = (size_t)shape->ffn};

    pool_run(context->pool, mlp_part, &linear);
}
