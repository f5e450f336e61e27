/* A matrix to pack is a list of pointers to rows of tensors (packing.h). So fusing q, k and v, interleaving gate and up, cutting a shard, and turning
 * adjacent RoPE pairs (llama2.c's and GGUF's) into halves are all the same thing: another order of the list. The first pass adds up bytes, the second
 * packs. */
#include "common/model/weights.h"

#include "common/base/digest.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include "common/model/packing.h"
#include <stdio.h>
#include <string.h>

int weights_slices(const struct config *config)
{
    int power = 1;

    while (config->kv_heads % (2 * power) == 0 && 2 * power <= BACKEND_MAX_SLICES)
        power *= 2;
    if (power == 1 && config->kv_heads <= BACKEND_MAX_SLICES)
        return config->kv_heads;
    return power;
}

/* Adds this rank's heads of a projection to the list. */
static void add_heads(struct packing *packing, int *at, const struct tensor *tensor, struct model_part heads, int adjacent)
{
    const struct model *model = packing->model;
    int dim = model->config.head_dim;

    for (int h = heads.first; h < heads.first + heads.count; h++)
        for (int i = 0; i < dim; i++) {
            int within = !adjacent ? i : i < dim / 2 ? 2 * i : 2 * (i - dim / 2) + 1;

            packing_list_row(packing, (*at)++, tensor, (int64_t)h * dim + within);
        }
}

static enum status pack_qkv(struct packing *packing, struct layer_weights *layer)
{
    const struct model *model = packing->model;
    const struct config *config = &model->config;
    int64_t q_rows = (int64_t)config->heads * config->head_dim, kv_rows = (int64_t)config->kv_heads * config->head_dim;
    struct tensor q, k, v;
    int count = 0;

    TRY(packing_find(packing, FAMILY_Q, q_rows, config->hidden, &q));
    TRY(packing_find(packing, FAMILY_K, kv_rows, config->hidden, &k));
    TRY(packing_find(packing, FAMILY_V, kv_rows, config->hidden, &v));
    add_heads(packing, &count, &q, model->shard.heads, config->rope_adjacent);
    add_heads(packing, &count, &k, model->shard.kv_heads, config->rope_adjacent);
    add_heads(packing, &count, &v, model->shard.kv_heads, 0);
    struct matrix_source source = {.outputs = count, .columns = config->hidden, .slices = 1};

    return packing_matrix(packing, &source, &layer->qkv);
}

static enum status pack_qkv_bias(struct packing *packing, struct layer_weights *layer)
{
    const struct model *model = packing->model;
    const struct config *config = &model->config;
    int dim = config->head_dim, q = model->shard.heads.count * dim, kv = model->shard.kv_heads.count * dim;
    int64_t q_first = (int64_t)model->shard.heads.first * dim, kv_first = (int64_t)model->shard.kv_heads.first * dim;
    float *into = packing->vector;

    if (!family_has(config->family, FAMILY_Q_BIAS))
        return STATUS_OK;
    TRY(packing_widen(packing, FAMILY_Q_BIAS, (int64_t)config->heads * dim, q_first, q, into));
    TRY(packing_widen(packing, FAMILY_K_BIAS, (int64_t)config->kv_heads * dim, kv_first, kv, into + q));
    TRY(packing_widen(packing, FAMILY_V_BIAS, (int64_t)config->kv_heads * dim, kv_first, kv, into + q + kv));
    packing_give(packing, q + 2 * kv, &layer->qkv_bias);
    return STATUS_OK;
}

/* The slices of a reduced dimension that this rank owns, as bounds within its own columns. */
static int own_slices(const struct model *model, int64_t whole, int first_column, int columns, int bounds[BACKEND_MAX_SLICES + 1])
{
    int slices = weights_slices(&model->config), size = model->group->size;
    int own = slices / size;

    if (slices % size != 0) { /* results of such a width differ in their last bits from those of other widths */
        bounds[0] = 0;
        bounds[1] = columns;
        return 1;
    }
    for (int i = 0; i <= own; i++)
        bounds[i] = (int)(whole * (model->group->rank * own + i) / slices) - first_column;
    return own;
}

/* The columns of this rank's heads or channels, `each` of them for one. */
static enum status pack_partial(struct packing *packing, enum family_part part, struct model_part own, int each, struct matrix **matrix)
{
    const struct model *model = packing->model;
    int columns = own.count * each;
    int64_t whole = (int64_t)columns * model->group->size;
    int bounds[BACKEND_MAX_SLICES + 1];
    struct tensor tensor;

    TRY(packing_find(packing, part, model->config.hidden, whole, &tensor));
    for (int i = 0; i < model->config.hidden; i++)
        packing_list_row(packing, i, &tensor, i);
    struct matrix_source source = {
        .outputs = model->config.hidden, .columns = columns, .column_first = own.first * each, .slice_bounds = bounds};
    source.slices = own_slices(model, whole, source.column_first, columns, bounds);
    return packing_matrix(packing, &source, matrix);
}

/* The channels [at, at + BACKEND_PANEL) of this rank's `ffn`, which begin at row `first`; those beyond are zeros. */
static void list_panel(struct packing *packing, int *count, const struct tensor *tensor, int first, int at, int ffn)
{
    for (int i = at; i < at + BACKEND_PANEL; i++) {
        if (i < ffn)
            packing_list_row(packing, *count, tensor, first + i);
        else
            packing->rows[*count] = NULL;
        ++*count;
    }
}

static enum status pack_gate_up(struct packing *packing, struct layer_weights *layer)
{
    const struct model *model = packing->model;
    int ffn = model->shard.ffn.count, first = model->shard.ffn.first, count = 0;
    struct tensor gate, up;

    TRY(packing_find(packing, FAMILY_GATE, model->config.ffn, model->config.hidden, &gate));
    TRY(packing_find(packing, FAMILY_UP, model->config.ffn, model->config.hidden, &up));
    for (int at = 0; at < ffn; at += BACKEND_PANEL) {
        list_panel(packing, &count, &gate, first, at, ffn);
        list_panel(packing, &count, &up, first, at, ffn);
    }
    struct matrix_source source = {.outputs = count, .columns = model->config.hidden, .slices = 1};

    return packing_matrix(packing, &source, &layer->gate_up);
}

static enum status pack_self(struct packing *packing, struct layer_weights *layer)
{
    const struct model *model = packing->model;

    TRY(packing_vector(packing, FAMILY_SELF_NORM, model->config.hidden, &layer->attn_norm));
    TRY(pack_qkv(packing, layer));
    TRY(pack_qkv_bias(packing, layer));
    if (family_has(model->config.family, FAMILY_Q_NORM)) {
        TRY(packing_vector(packing, FAMILY_Q_NORM, model->config.head_dim, &layer->q_norm));
        TRY(packing_vector(packing, FAMILY_K_NORM, model->config.head_dim, &layer->k_norm));
    }
    return pack_partial(packing, FAMILY_SELF_OUT, model->shard.heads, model->config.head_dim, &layer->out);
}

static enum status pack_mlp(struct packing *packing, struct layer_weights *layer)
{
    const struct model *model = packing->model;

    TRY(packing_vector(packing, FAMILY_MLP_NORM, model->config.hidden, &layer->mlp_norm));
    TRY(pack_gate_up(packing, layer));
    return pack_partial(packing, FAMILY_DOWN, model->shard.ffn, 1, &layer->down);
}

/* Block by block, as the forward pass reads them. */
static enum status pack_layer(struct packing *packing, struct layer_weights *layer)
{
    for (const enum family_block *block = packing->model->config.family->block; *block != FAMILY_END; block++)
        TRY(*block == FAMILY_SELF ? pack_self(packing, layer) : pack_mlp(packing, layer));
    return STATUS_OK;
}

/* The embeddings as the file has them, or widened where they are quantised, for a device that drafts by itself. */
static void give_table(struct packing *packing)
{
    struct model *model = packing->model;
    size_t columns = (size_t)model->config.hidden, row_bytes, bytes;
    char *into;

    model->table_dtype = dtype_is_quantised(model->embedding.dtype) ? DTYPE_F32 : model->embedding.dtype;
    row_bytes = dtype_row_bytes(model->table_dtype, columns);
    bytes = (size_t)model->config.vocab * row_bytes;
    if (packing->measuring) {
        packing->bytes += arena_round(bytes);
        return;
    }
    into = arena_take(&model->weights, bytes);
    model->table = into;
    if (model->table_dtype == model->embedding.dtype) {
        model->backend->memory.write(model->context, into, model->embedding.data, bytes);
        return;
    }
    for (int64_t row = 0; row < model->config.vocab; row++) {
        progress_made("copying the embeddings");
        dtype_widen(model->embedding.dtype, checkpoint_row(&model->embedding, row), packing->vector, columns);
        model->backend->memory.write(model->context, into + (size_t)row * row_bytes, packing->vector, row_bytes);
    }
}

static enum status pack_head(struct packing *packing)
{
    struct model *model = packing->model;
    struct tensor head;

    TRY(packing_vector(packing, FAMILY_FINAL_NORM, model->config.hidden, &model->final_norm));
    TRY(packing_find(packing, FAMILY_EMBEDDING, model->config.vocab, model->config.hidden, &model->embedding));
    if (model->drafts && model->backend->draft.needs_table)
        give_table(packing);
    head = model->embedding;
    if (!model->config.tied)
        TRY(packing_find(packing, FAMILY_HEAD, model->config.vocab, model->config.hidden, &head));
    for (int i = 0; i < model->vocab_count; i++)
        packing_list_row(packing, i, &head, model->vocab_first + i);
    struct matrix_source source = {.outputs = model->vocab_count, .columns = model->config.hidden, .slices = 1};

    return packing_matrix(packing, &source, &model->head);
}

/* The first layer of the file, from this one on, that the model has. */
static int next_layer(const struct model *model, int layer)
{
    while (layer_set_has(&model->skip, layer))
        layer++;
    return layer;
}

static enum status pass(struct packing *packing)
{
    struct model *model = packing->model;

    packing->layer = -1;
    for (int i = 0; i < model->config.layers; i++) {
        packing->layer = next_layer(model, packing->layer + 1);
        TRY(pack_layer(packing, &model->layer[i]));
    }
    return pack_head(packing);
}

static int longest_list(const struct model *model)
{
    int qkv = (model->shape.heads + 2 * model->shape.kv_heads) * model->config.head_dim;
    int gate_up = 2 * (model->shape.ffn + BACKEND_PANEL), longest = model->vocab_count;

    longest = qkv > longest ? qkv : longest;
    longest = gate_up > longest ? gate_up : longest;
    return model->config.hidden > longest ? model->config.hidden : longest;
}

static enum status first_pass(struct packing *packing, struct model *model, const struct model_options *options)
{
    TRY(packing_open(packing, model, options, longest_list(model)));
    TRY(pass(packing));
    checkpoint_warn_unread(model->checkpoint); /* where all that it takes is there: else a name in error would be told twice */
    return STATUS_OK;
}

enum status weights_check(struct model *model, size_t *bytes)
{
    struct packing packing;
    enum status status = first_pass(&packing, model, NULL);

    *bytes = packing.bytes;
    packing_release(&packing);
    return status;
}

/* At the root of weights that are lent: of all layers. */
struct lent {
    const float *final_norm;
    struct matrix *head;
    struct layer_weights layer[];
};

static size_t lent_bytes(const struct model *model)
{
    return sizeof(struct lent) + (size_t)model->config.layers * sizeof(struct layer_weights);
}

/* Of what a matrix of any layer, and the head, depend on beside the files. */
static uint64_t lent_key(const struct model *model)
{
    const struct layer_shape *shape = &model->shape;
    const int32_t terms[] = {shape->hidden, shape->heads,       shape->kv_heads,    shape->head_dim,      shape->ffn,
                             model->vocab,  model->vocab_first, model->vocab_count, (int)model->quantise, model->group->size};

    return digest_tokens(DIGEST_EMPTY, terms, (int)(sizeof terms / sizeof *terms));
}

static void lend(struct model *model)
{
    struct lent *lent = arena_take(&model->weights, lent_bytes(model));

    lent->final_norm = model->final_norm;
    lent->head = model->head;
    memcpy(lent->layer, model->layer, (size_t)model->config.layers * sizeof *model->layer);
    model->loan.root = (size_t)((char *)lent - model->weights.base);
    model->loan.key = lent_key(model);
}

/* Takes the layers that the model has from those that are lent, unless they are others, or cannot be had. */
static void borrow(struct model *model, const struct arena_loan *loan)
{
    const struct lent *lent;

    if (loan == NULL || loan->key != lent_key(model) || model->backend->memory.borrow == NULL ||
        !model->backend->memory.borrow(model->context, loan, &model->weights))
        return;
    lent = (const struct lent *)(model->weights.base + loan->root);
    for (int i = 0, layer = -1; i < model->config.layers; i++) {
        layer = next_layer(model, layer + 1);
        model->layer[i] = lent->layer[layer];
    }
    model->final_norm = lent->final_norm;
    model->head = lent->head;
    model->borrows = 1;
}

/* Memory for the weights: such as can be lent, if that is asked for and there is any. */
static enum status open_weights(struct model *model, const struct model_options *options, size_t bytes)
{
    if (options->lends && model->backend->memory.lend != NULL &&
        model->backend->memory.lend(model->context, bytes + arena_round(lent_bytes(model)), &model->weights, &model->loan))
        return STATUS_OK;
    return model->backend->memory.open(model->context, bytes, "the weights", &model->weights);
}

enum status weights_pack(struct model *model, const struct model_options *options, size_t cache, size_t activations)
{
    struct packing packing;
    enum status status;
    char what[192];

    snprintf(what, sizeof what, "this rank's share of the weights, with a cache of %.1f GiB (--context times --max-sequences, --cache) and %.1f GiB "
                                "of activations,",
             (double)cache / 0x1p30, (double)activations / 0x1p30);
    TRY_TO(first_pass(&packing, model, options), release);
    borrow(model, options->loan);
    TRY_TO(model->backend->memory.check(model->context, what, (model->borrows ? 0 : packing.bytes) + cache + activations), release);
    if (model->borrows)
        goto release;
    TRY_TO(open_weights(model, options, packing.bytes), release);
    TRY_TO(packing_begin(&packing), release);
    TRY_TO(pass(&packing), release);
    if (model->loan.pid != 0)
        lend(model);

release:
    packing_release(&packing);
    return status;
}
