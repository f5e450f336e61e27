#include "common/model/model.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/model/kv_cache.h"
#include "common/model/rope.h"
#include "common/model/weights.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The cache is made of whole panels; a sequence ends where it was asked to. */
static enum status choose_context(const struct config *config, int asked, int *longest, int *context)
{
    int tokens = asked > 0 ? asked : config->context < MODEL_DEFAULT_CONTEXT ? config->context : MODEL_DEFAULT_CONTEXT;

    if (tokens > config->context) {
        log_error("a context of %d tokens was asked for, the model has %d", tokens, config->context);
        return STATUS_USAGE;
    }
    *longest = tokens;
    *context = (tokens + BACKEND_PANEL - 1) / BACKEND_PANEL * BACKEND_PANEL;
    return STATUS_OK;
}

static enum status cut_shard(const char *path, struct model *model, const struct model_options *options)
{
    const struct config *config = &model->config;
    int size = model->group->size;
    char allowed[128];

    if (!config_allows_width(config, size, allowed, sizeof allowed)) {
        log_error("%d verifiers cannot share this model, %s (%d heads, %d kv heads, ffn %d), expected one of: %s", size, path, config->heads,
                  config->kv_heads, config->ffn, allowed);
        return STATUS_USAGE;
    }
    model->vocab = options->vocab > 0 && options->vocab < config->vocab ? options->vocab : config->vocab;
    model->shard = model_shard_of(config, model->vocab, model->group->rank, size);
    model->vocab_first = model->shard.vocab.first;
    model->vocab_count = model->shard.vocab.count;
    model->shape = (struct layer_shape){.hidden = config->hidden,
                                        .heads = model->shard.heads.count,
                                        .kv_heads = model->shard.kv_heads.count,
                                        .head_dim = config->head_dim,
                                        .ffn = model->shard.ffn.count,
                                        .norm_eps = config->norm_eps};
    TRY(choose_context(config, options->context, &model->longest, &model->shape.context));
    model->max_rows = options->max_rows;
    model->max_outputs = options->max_outputs > 0 ? options->max_outputs : options->max_rows;
    if (model->vocab_count == 0) {
        log_error("%d verifiers cannot share a vocabulary of %d, expected at least %d ids for each", size, model->vocab, BACKEND_PANEL);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

int model_own_width(const struct model *model)
{
    return weights_slices(&model->config) % model->group->size != 0 ? model->group->size : 0;
}

enum dtype model_quantise(int bits)
{
    return bits == 4 ? DTYPE_Q4_0 : bits == 8 ? DTYPE_Q8_0 : DTYPE_F32;
}

enum status model_open_tables(struct model *model)
{
    size_t half = (size_t)model->shape.head_dim / 2, bytes = (size_t)model->shape.context * half * sizeof(float);
    float *cosine = malloc(bytes), *sine = malloc(bytes);
    enum status status = STATUS_INTERNAL;

    if (cosine == NULL || sine == NULL) {
        log_error("no memory for the position tables of %d tokens", model->shape.context);
        goto free_tables;
    }
    TRY_TO(model->backend->memory.open(model->context, 2 * arena_round(bytes), "the position tables", &model->tables), free_tables);
    rope_fill(&model->config, model->longest, model->shape.context, cosine, sine);
    model->cosine = arena_take(&model->tables, bytes);
    model->sine = arena_take(&model->tables, bytes);
    model->backend->memory.write(model->context, model->cosine, cosine, bytes);
    model->backend->memory.write(model->context, model->sine, sine, bytes);

free_tables:
    free(cosine);
    free(sine);
    return status;
}

/* The first of the set's layers from `least` on, which it has. */
static int one_beyond(const struct layer_set *set, int least)
{
    while (!layer_set_has(set, least))
        least++;
    return least;
}

/* A model of the first layers alone, an early exit, or without some of them. */
static enum status cut_layers(const char *path, const struct model_options *options, struct config *config)
{
    int first = options->layers > 0 ? options->layers : config->layers;
    int left = first - layer_set_count(&options->skip, first), others = layer_set_count(&options->skip, LAYER_SET_LAYERS) - (first - left);

    if (first > config->layers)
        log_error("%s has %d layers, expected layers=1 to %d, not %d", path, config->layers, config->layers, first);
    else if (others > 0)
        log_error("--draft self: skip names layer %d, expected some of 0 to %d: %s has %d layers%s", one_beyond(&options->skip, first), first - 1,
                  path, config->layers, first < config->layers ? ", of which layers=.. leaves the first" : "");
    else if (left == 0)
        log_error("skip names all %d layers of %s, expected one or more to be left", first, path);
    else {
        config->layers = left;
        return STATUS_OK;
    }
    return STATUS_USAGE;
}

static enum status look(const char *path, const struct model_options *options, struct model *model)
{
    TRY(config_read(path, &model->config));
    TRY(cut_shard(path, model, options));
    TRY(checkpoint_open(path, &model->config, &model->checkpoint)); /* whose sizes are those of all layers */
    TRY(cut_layers(path, options, &model->config));
    model->skip = options->skip;
    model->layer = calloc((size_t)model->config.layers, sizeof *model->layer);
    if (model->layer == NULL) {
        log_error("no memory for %d layers", model->config.layers);
        return STATUS_INTERNAL;
    }
    return STATUS_OK;
}

static int widest(const struct layer_shape *shape)
{
    int attended = shape->heads * shape->head_dim, widest = shape->hidden > shape->ffn ? shape->hidden : shape->ffn;

    return widest > attended ? widest : attended;
}

static enum status check_quantise(const struct model *model)
{
    if (!dtype_is_quantised(model->quantise) || (model->backend->linear.rounds >> model->quantise & 1) != 0)
        return STATUS_OK;
    log_error("the %s backend rounds no weights to %s, as --quantise, --draft-quantise and --draft self:bits=N ask for, expected --backend cpu",
              model->backend->name, dtype_name(model->quantise));
    return STATUS_USAGE;
}

static enum status choose_cache(struct model *model, enum cache_choice asked)
{
    static const enum dtype dtypes[] = {[CACHE_F32] = DTYPE_F32, [CACHE_BF16] = DTYPE_BF16, [CACHE_E4M3] = DTYPE_E4M3};
    const struct backend *backend = model->backend;

    model->cache_dtype = asked == CACHE_AUTO ? backend->cache.dtype : dtypes[asked];
    if ((backend->cache.dtypes >> model->cache_dtype & 1) != 0)
        return STATUS_OK;
    log_error("the %s backend keeps no cache in %s, which --cache asks for, expected --cache auto or --backend cpu", backend->name,
              dtype_name(model->cache_dtype));
    return STATUS_USAGE;
}

struct model_activations model_activations(const struct model *model)
{
    const struct layer_shape *shape = &model->shape;
    size_t rows = (size_t)model->max_rows * sizeof(float);
    struct model_activations bytes = {.hidden = arena_round(rows * (size_t)shape->hidden),
                                      .heads = arena_round(rows * (size_t)(shape->heads * shape->head_dim)),
                                      .ffn = arena_round(rows * (size_t)shape->ffn)};

    bytes.all = 3 * bytes.hidden + 2 * bytes.heads + bytes.ffn;
    return bytes;
}

static enum status begin(const char *path, const struct model_options *options, struct model *model)
{
    TRY(look(path, options, model));
    TRY(check_quantise(model));
    TRY(choose_cache(model, (enum cache_choice)options->cache));
    const struct backend_options backend = {.threads = options->threads,
                                            .max_rows = options->max_rows,
                                            .max_outputs = options->max_outputs,
                                            .max_hidden = model->config.hidden,
                                            .max_qkv = (model->shape.heads + 2 * model->shape.kv_heads) * model->config.head_dim,
                                            .max_columns = widest(&model->shape),
                                            .max_context = model->shape.context,
                                            .max_vocab = model->vocab_count,
                                            .isa = options->isa,
                                            .device = options->device};
    TRY(model->backend->open(&backend, &model->context));
    if (model->backend->device.which != NULL) {
        const struct backend_device *device = model->backend->device.which(model->context);

        snprintf(model->computing, sizeof model->computing, "computing on device %d [%s] %s", device->number, device->place, device->name);
    }
    return STATUS_OK;
}

enum status model_load(struct model *model, const struct model_options *options)
{
    TRY(weights_pack(model, options, kv_cache_need(model, options->slots), model_activations(model).all));
    return model_open_tables(model);
}

static enum status measure(const char *path, const struct model_options *options, struct model *model, struct model_need *need)
{
    TRY(look(path, options, model));
    TRY(choose_cache(model, (enum cache_choice)options->cache));
    TRY(weights_check(model, &need->weights));
    need->cache = kv_cache_need(model, options->slots);
    need->activations = model_activations(model).all;
    return STATUS_OK;
}

enum status model_need(const char *path, int width, const struct model_options *options, struct model_need *need)
{
    struct group group = {.size = width};
    struct model *model = calloc(1, sizeof *model);
    enum status status;

    if (model == NULL) {
        log_error("no memory for a model");
        return STATUS_INTERNAL;
    }
    model->backend = options->backend != NULL ? options->backend : &backend_cpu;
    model->group = &group;
    model->drafts = options->drafts;
    model->quantise = options->quantise;
    status = measure(path, options, model, need);
    model_close(model);
    return status;
}

enum status model_check(const char *path, int width, const struct model_options *options)
{
    struct model_need unused;

    return model_need(path, width, options, &unused);
}

enum status model_begin(const char *path, struct group *group, const struct model_options *options, struct model **out)
{
    struct model *model = calloc(1, sizeof *model);
    enum status status;

    if (model == NULL) {
        log_error("no memory for a model");
        return STATUS_INTERNAL;
    }
    model->backend = options->backend != NULL ? options->backend : &backend_cpu;
    model->group = group;
    model->drafts = options->drafts;
    model->quantise = options->quantise;
    status = begin(path, options, model);
    if (status != STATUS_OK) {
        model_close(model);
        return status;
    }
    *out = model;
    return STATUS_OK;
}

enum status model_open(const char *path, struct group *group, const struct model_options *options, struct model **out)
{
    struct model *model;
    enum status status;

    TRY(model_begin(path, group, options, &model));
    status = model_load(model, options);
    if (status != STATUS_OK) {
        model_close(model);
        return status;
    }
    *out = model;
    return STATUS_OK;
}

void model_close(struct model *model)
{
    if (model == NULL)
        return;
    if (model->context != NULL) {
        model->backend->memory.close(model->context, &model->weights);
        model->backend->memory.close(model->context, &model->tables);
        model->backend->close(model->context);
    }
    if (model->loan.pid != 0)
        close(model->loan.descriptor);
    if (model->checkpoint != NULL)
        checkpoint_close(model->checkpoint);
    free(model->layer);
    free(model);
}

int model_prompt_rows(const struct model *model)
{
    return model->max_rows < model->backend->step.prompt_rows ? model->max_rows : model->backend->step.prompt_rows;
}

size_t model_bytes(const struct model *model)
{
    return model->weights.size + model->tables.size;
}
