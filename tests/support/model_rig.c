#include "tests/support/model_rig.h"

#include "common/model/checkpoint_quantised.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void model_rig_open_with(struct model_rig *rig, const char *path, struct group *group, const struct model_options *options)
{
    memset(rig, 0, sizeof *rig);
    group_open_self(&rig->self);
    assert_int_equal(model_open(path, group != NULL ? group : &rig->self, options, &rig->model), STATUS_OK);
    assert_int_equal(kv_cache_open(&rig->cache, rig->model, MODEL_RIG_SLOTS), STATUS_OK);
    assert_int_equal(forward_open(&rig->forward, rig->model, &rig->cache), STATUS_OK);
}

void model_rig_open(struct model_rig *rig, const char *path, struct group *group, int threads, const char *isa)
{
    model_rig_open_with(rig, path, group, &(struct model_options){.threads = threads, .max_rows = MODEL_RIG_ROWS, .isa = isa});
}

void model_rig_open_quantised(struct model_rig *rig, const char *path, struct group *group, enum dtype quantise)
{
    model_rig_open_with(rig, path, group, &(struct model_options){.threads = 1, .max_rows = MODEL_RIG_ROWS, .quantise = quantise});
}

void model_rig_open_narrow(struct model_rig *rig, const char *path, int threads, const char *isa, enum cache_choice cache)
{
    model_rig_open_with(rig, path, NULL, &(struct model_options){.threads = threads, .max_rows = MODEL_RIG_ROWS, .isa = isa, .cache = cache});
}

void model_rig_open_on(struct model_rig *rig, const char *path, const struct backend *backend)
{
    model_rig_open_with(rig, path, NULL, &(struct model_options){.threads = 1, .max_rows = MODEL_RIG_ROWS, .backend = backend});
}

void model_rig_close(struct model_rig *rig)
{
    forward_close(&rig->forward);
    kv_cache_close(&rig->cache);
    model_close(rig->model);
    group_close(&rig->self);
}

static int longest_of(const struct chain *chains, int count)
{
    int longest = 0;

    for (int c = 0; c < count; c++)
        if (chains[c].count > longest)
            longest = chains[c].count;
    return longest;
}

void model_rig_step(struct model_rig *rig, const struct chain *chains, int count, float *logits)
{
    int32_t token[MODEL_RIG_ROWS], place[MODEL_RIG_ROWS], slot[MODEL_RIG_ROWS], base[MODEL_RIG_ROWS], asked[MODEL_RIG_ROWS];
    uint64_t ancestors[MODEL_RIG_ROWS];
    struct rows rows = {0, token, place, slot, place, base, ancestors};
    int before[MODEL_RIG_SLOTS + 1] = {0}; /* logits of earlier chains */

    assert_in_range(count, 1, MODEL_RIG_SLOTS);
    for (int c = 0; c < count; c++)
        before[c + 1] = before[c] + chains[c].count;
    assert_in_range(before[count], 1, MODEL_RIG_ROWS);
    for (int i = 0, longest = longest_of(chains, count); i < longest; i++)
        for (int c = 0; c < count; c++) {
            int row = rows.count;

            if (i >= chains[c].count)
                continue;
            token[row] = chains[c].tokens[i];
            place[row] = chains[c].first + i;
            slot[row] = chains[c].slot;
            backend_see_chain(&rows, row, chains[c].first, i);
            asked[before[c] + i] = row;
            rows.count++;
        }
    assert_int_equal(forward_run(&rig->forward, &rows, asked, logits != NULL ? rows.count : 0, logits), STATUS_OK);
}

void model_rig_feed(struct model_rig *rig, int slot, const int32_t *tokens, int count, int stride, float *logits)
{
    for (int at = 0; at < count; at += stride) {
        struct chain chain = {slot, at, count - at < stride ? count - at : stride, tokens + at};

        model_rig_step(rig, &chain, 1, logits != NULL ? logits + (size_t)at * (size_t)rig->model->vocab_count : NULL);
    }
}

void model_rig_poison(struct model_rig *rig, int slot, int first)
{
    const struct layer_shape *shape = &rig->model->shape;
    size_t dim = (size_t)shape->head_dim, context = (size_t)shape->context;

    for (int i = 0; i < rig->model->config.layers; i++)
        for (int h = 0; h < shape->kv_heads; h++) {
            size_t head = (size_t)(slot * shape->kv_heads + h) * context * dim;
            float *keys = (float *)rig->cache.layer[i].keys + head, *values = (float *)rig->cache.layer[i].values + head;

            for (size_t p = (size_t)first; p < context; p++)
                for (size_t d = 0; d < dim; d++) {
                    keys[p / BACKEND_PANEL * BACKEND_PANEL * dim + d * BACKEND_PANEL + p % BACKEND_PANEL] = NAN;
                    values[p * dim + d] = NAN;
                }
        }
}

void model_rig_assert_copied(struct model_rig *rig, const int32_t *tokens, int count, int kept)
{
    size_t vocab = (size_t)rig->model->vocab_count;
    float *expected = calloc((size_t)count * vocab, sizeof *expected), *found = calloc((size_t)(count - kept) * vocab, sizeof *found);
    int32_t other[MODEL_RIG_ROWS];
    struct chain rest = {2, kept, count - kept, tokens + kept};

    assert_true(expected != NULL && found != NULL);
    for (int i = 0; i < count; i++)
        other[i] = tokens[count - 1 - i];
    model_rig_feed(rig, 0, tokens, count, count, expected);
    model_rig_feed(rig, 2, other, count, count, NULL);
    kv_cache_copy(&rig->cache, (struct cache_place){0, 0}, (struct cache_place){2, 0}, kept / 2);
    kv_cache_copy(&rig->cache, (struct cache_place){0, kept / 2}, (struct cache_place){2, kept / 2}, kept - kept / 2);
    model_rig_step(rig, &rest, 1, found);
    assert_memory_equal(found, expected + (size_t)kept * vocab, (size_t)(count - kept) * vocab * sizeof *found);
    free(expected);
    free(found);
}

int32_t model_rig_argmax(const float *logits, int count, float *margin)
{
    int32_t best = 0;
    float second = -INFINITY;

    for (int i = 1; i < count; i++)
        if (logits[i] > logits[best])
            best = i;
    for (int i = 0; i < count; i++)
        if (i != best && logits[i] > second)
            second = logits[i];
    if (margin != NULL)
        *margin = logits[best] - second;
    return best;
}

void model_rig_map_row(const struct tensor *map, int row, float *values)
{
    size_t columns = (size_t)map->columns;
    int within = row % CHECKPOINT_QUANTISED_ROWS;
    char *bytes = calloc(columns, 4 * CHECKPOINT_QUANTISED_ROWS);

    assert_non_null(bytes);
    checkpoint_quantised_rows(map, row - within, bytes);
    dtype_widen(map->dtype, bytes + (size_t)within * dtype_row_bytes(map->dtype, columns), values, columns);
    free(bytes);
}
