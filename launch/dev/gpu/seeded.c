#include "launch/dev/gpu/seeded.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/model/weights.h"
#include "launch/dev/gpu/seeded_numbers.h"
#include <stdlib.h>
#include <string.h>

enum {
    MATRICES_OF_LAYER = 8,
    EMBEDDING = 1 << 20,
    HEAD,
};
enum { QKV, OUT, GATE, UP, DOWN }; /* of a layer */

/* Gains over 1 / sqrt(columns): a branch adds a quarter of what the stream holds at first, and logits differ by about 2.5. */
#define GAIN_IN     1.0
#define GAIN_BRANCH 0.25
#define GAIN_HEAD   2.5

static const struct seeded_shape shapes[] = {
    {"1b", 16, 2048, 32, 8, 64, 8192, 128256},
    {"8b", 32, 4096, 32, 8, 128, 14336, 128256},
    {"tiny", 3, 64, 4, 2, 16, 88, 256},
};

struct seeding {
    struct model *model;
    const struct seeded_options *options;
    struct seeded_numbers numbers;
    const void **rows; /* [longest matrix] */
    int measuring;     /* first pass: only `bytes` grows */
    size_t bytes;
};

const struct seeded_shape *seeded_shape_find(const char *name)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (strcmp(shapes[i].name, name) == 0)
            return &shapes[i];
    log_error("there is no shape '%s', expected 1b, 8b or tiny", name);
    return NULL;
}

static enum status pack(struct seeding *seeding, const struct matrix_source *source, struct matrix **matrix)
{
    const struct model *model = seeding->model;

    if (seeding->measuring) {
        seeding->bytes += arena_round(model->backend->linear.matrix_bytes(source)) + ARENA_ALIGN;
        return STATUS_OK;
    }
    return model->backend->linear.matrix_pack(model->context, source, &seeding->model->weights, matrix);
}

static enum status pack_plain(struct seeding *seeding, int id, int outputs, double gain, struct matrix **matrix)
{
    int columns = seeding->model->shape.hidden;
    const uint16_t *numbers;

    TRY(seeded_numbers_find(&seeding->numbers, seeded_numbers_scale(gain, columns), &numbers));
    for (int o = 0; o < outputs; o++)
        seeding->rows[o] = seeded_numbers_row(numbers, id, o);
    const struct matrix_source source = {.rows = seeding->rows, .outputs = outputs, .columns = columns, .dtype = DTYPE_BF16, .slices = 1};
    return pack(seeding, &source, matrix);
}

static enum status pack_gate_up(struct seeding *seeding, int layer, struct matrix **matrix)
{
    int columns = seeding->model->shape.hidden, ffn = seeding->model->shape.ffn, count = 0;
    const uint16_t *numbers;

    TRY(seeded_numbers_find(&seeding->numbers, seeded_numbers_scale(GAIN_IN, columns), &numbers));
    for (int at = 0; at < ffn; at += BACKEND_PANEL)
        for (int part = GATE; part <= UP; part++)
            for (int i = at; i < at + BACKEND_PANEL; i++)
                seeding->rows[count++] = i < ffn ? seeded_numbers_row(numbers, layer * MATRICES_OF_LAYER + part, i) : NULL;
    const struct matrix_source source = {.rows = seeding->rows, .outputs = count, .columns = columns, .dtype = DTYPE_BF16, .slices = 1};
    return pack(seeding, &source, matrix);
}

/* A map whose result is added to the residual stream. */
static enum status pack_branch(struct seeding *seeding, int layer, int part, int columns, struct matrix **matrix)
{
    const struct model *model = seeding->model;
    const struct seeded_options *options = seeding->options;
    int is_further = options->first > 0 && layer >= options->first, bounds[BACKEND_MAX_SLICES + 1];
    struct matrix_source source = {.rows = seeding->rows, .columns = columns, .dtype = DTYPE_BF16, .slice_bounds = bounds};
    const uint16_t *numbers;

    TRY(seeded_numbers_find(&seeding->numbers, seeded_numbers_scale(GAIN_BRANCH, columns) * (is_further ? options->further : 1.0f),
                            &numbers));
    source.outputs = model->shape.hidden;
    for (int o = 0; o < source.outputs; o++)
        seeding->rows[o] = seeded_numbers_row(numbers, layer * MATRICES_OF_LAYER + part, o);
    source.slices = weights_slices(&model->config);
    for (int i = 0; i <= source.slices; i++)
        bounds[i] = (int)((int64_t)columns * i / source.slices);
    return pack(seeding, &source, matrix);
}

/* Norms scale by one. */
static void give_ones(struct seeding *seeding, const float *ones, const float **norm)
{
    struct model *model = seeding->model;
    size_t bytes = (size_t)model->shape.hidden * sizeof(float);
    float *into;

    if (seeding->measuring) {
        seeding->bytes += arena_round(bytes);
        return;
    }
    into = arena_take(&model->weights, bytes);
    model->backend->memory.write(model->context, into, ones, bytes);
    *norm = into;
}

static enum status pass(struct seeding *seeding, const float *ones)
{
    struct model *model = seeding->model;
    const struct layer_shape *shape = &model->shape;

    for (int i = 0; i < model->config.layers; i++) {
        struct layer_weights *layer = &model->layer[i];

        give_ones(seeding, ones, &layer->attn_norm);
        give_ones(seeding, ones, &layer->mlp_norm);
        TRY(pack_plain(seeding, i * MATRICES_OF_LAYER + QKV, (shape->heads + 2 * shape->kv_heads) * shape->head_dim, GAIN_IN, &layer->qkv));
        TRY(pack_branch(seeding, i, OUT, shape->heads * shape->head_dim, &layer->out));
        TRY(pack_gate_up(seeding, i, &layer->gate_up));
        TRY(pack_branch(seeding, i, DOWN, shape->ffn, &layer->down));
    }
    give_ones(seeding, ones, &model->final_norm);
    return pack_plain(seeding, HEAD, model->vocab, GAIN_HEAD, &model->head);
}

static enum status pack_all(struct seeding *seeding)
{
    struct model *model = seeding->model;
    size_t longest = (size_t)(model->vocab > 2 * model->shape.ffn + 32 ? model->vocab : 2 * model->shape.ffn + 32);
    float *ones = malloc((size_t)model->shape.hidden * sizeof *ones);
    enum status status = STATUS_INTERNAL;

    seeding->rows = calloc(longest, sizeof *seeding->rows);
    if (seeding->rows == NULL || ones == NULL) {
        log_error("no memory for the list of rows of a matrix");
        goto free_list;
    }
    for (int i = 0; i < model->shape.hidden; i++)
        ones[i] = 1.0f;
    seeding->measuring = 1;
    TRY_TO(pass(seeding, ones), free_list);
    TRY_TO(model->backend->memory.open(model->context, seeding->bytes, "the weights", &model->weights), free_list);
    seeding->measuring = 0;
    TRY_TO(pass(seeding, ones), free_list);

free_list:
    seeded_numbers_release(&seeding->numbers);
    free(seeding->rows);
    free(ones);
    return status;
}

static enum status fill_embedding(struct seeded_model *seeded)
{
    int vocab = seeded->model.vocab, hidden = seeded->model.shape.hidden;
    struct seeded_numbers all = {0};
    const uint16_t *numbers;

    seeded->embedding = malloc((size_t)vocab * (size_t)hidden * sizeof *seeded->embedding);
    if (seeded->embedding == NULL) {
        log_error("no memory for an embedding of %d tokens", vocab);
        return STATUS_INTERNAL;
    }
    TRY(seeded_numbers_find(&all, seeded_numbers_scale(1.0, 1), &numbers));
    for (int token = 0; token < vocab; token++)
        memcpy(seeded->embedding + (size_t)token * (size_t)hidden, seeded_numbers_row(numbers, EMBEDDING, token),
               (size_t)hidden * sizeof *numbers);
    seeded_numbers_release(&all);
    seeded->model.embedding = (struct tensor){.data = seeded->embedding, .dtype = DTYPE_BF16, .rows = vocab, .columns = hidden};
    return STATUS_OK;
}

static enum status give_table(struct seeded_model *seeded)
{
    struct model *model = &seeded->model;
    size_t bytes = (size_t)model->vocab * (size_t)model->shape.hidden * sizeof *seeded->embedding;
    void *table;

    TRY(model->backend->memory.open(model->context, arena_round(bytes), "the embedding", &seeded->table));
    table = arena_take(&seeded->table, bytes);
    model->backend->memory.write(model->context, table, seeded->embedding, bytes);
    model->table = table;
    model->table_dtype = DTYPE_BF16;
    return STATUS_OK;
}

static void set_shape(const struct seeded_options *options, struct model *model)
{
    const struct seeded_shape *shape = options->shape;
    int layers = options->layers > 0 && options->layers < shape->layers ? options->layers : shape->layers;

    model->config = (struct config){.family = &model_families[FAMILY_LLAMA],
                                    .hidden = shape->hidden,
                                    .layers = layers,
                                    .heads = shape->heads,
                                    .kv_heads = shape->kv_heads,
                                    .head_dim = shape->head_dim,
                                    .ffn = shape->ffn,
                                    .vocab = shape->vocab,
                                    .context = options->context,
                                    .norm_eps = 1e-5f,
                                    .rope_theta = 500000.0};
    model->shape = (struct layer_shape){.hidden = shape->hidden,
                                        .heads = shape->heads,
                                        .kv_heads = shape->kv_heads,
                                        .head_dim = shape->head_dim,
                                        .ffn = shape->ffn,
                                        .context = (options->context + BACKEND_PANEL - 1) / BACKEND_PANEL * BACKEND_PANEL,
                                        .norm_eps = 1e-5f};
    model->vocab = model->vocab_count = shape->vocab;
    model->max_rows = options->max_rows;
    model->max_outputs = options->max_outputs > 0 ? options->max_outputs : options->max_rows;
}

static enum status fill(const struct seeded_options *options, struct seeded_model *seeded)
{
    struct model *model = &seeded->model;
    struct seeding seeding = {.model = model, .options = options};
    const struct backend_options backend = {.threads = options->threads,
                                            .max_rows = options->max_rows,
                                            .max_outputs = options->max_outputs,
                                            .max_hidden = model->shape.hidden,
                                            .max_qkv = (model->shape.heads + 2 * model->shape.kv_heads) * model->shape.head_dim,
                                            .max_context = model->shape.context,
                                            .max_vocab = model->vocab_count};

    model->layer = calloc((size_t)model->config.layers, sizeof *model->layer);
    if (model->layer == NULL) {
        log_error("no memory for %d layers", model->config.layers);
        return STATUS_INTERNAL;
    }
    TRY(model->backend->open(&backend, &model->context));
    TRY(fill_embedding(seeded));
    TRY(pack_all(&seeding));
    if (options->drafts && model->backend->draft.needs_table)
        TRY(give_table(seeded));
    return model_open_tables(model);
}

enum status seeded_model_open(const struct seeded_options *options, const struct backend *backend, struct group *group,
                              struct seeded_model **out)
{
    struct seeded_model *seeded = calloc(1, sizeof *seeded);
    enum status status;

    if (seeded == NULL) {
        log_error("no memory for a model");
        return STATUS_INTERNAL;
    }
    seeded->model.backend = backend;
    seeded->model.cache_dtype = backend->cache.dtype;
    seeded->model.group = group;
    set_shape(options, &seeded->model);
    status = fill(options, seeded);
    if (status != STATUS_OK) {
        seeded_model_close(seeded);
        return status;
    }
    *out = seeded;
    return STATUS_OK;
}

void seeded_model_close(struct seeded_model *seeded)
{
    struct model *model;

    if (seeded == NULL)
        return;
    model = &seeded->model;
    if (model->context != NULL) {
        model->backend->memory.close(model->context, &model->weights);
        model->backend->memory.close(model->context, &model->tables);
        model->backend->memory.close(model->context, &seeded->table);
        model->backend->close(model->context);
    }
    free(model->layer);
    free(seeded->embedding);
    free(seeded);
}

double seeded_model_step_bytes(const struct seeded_model *seeded, int context)
{
    const struct layer_shape *shape = &seeded->model.shape;
    double hidden = shape->hidden, inner = (double)shape->heads * shape->head_dim, kv = (double)shape->kv_heads * shape->head_dim;
    double layer = hidden * (inner + 2 * kv) + inner * hidden + 3 * hidden * shape->ffn;
    double cache = 2 * kv * context * (double)dtype_bytes(seeded->model.cache_dtype);

    return seeded->model.config.layers * (2 * layer + cache) + 2 * hidden * seeded->model.vocab;
}
