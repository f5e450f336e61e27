#include "common/model/checkpoint_llama2c.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIM, HIDDEN_DIM, LAYERS, HEADS, KV_HEADS, VOCAB, CONTEXT, FIELDS };
enum { HEADER_BYTES = FIELDS * 4 };

static const struct {
    const char *name;
    int32_t least;
    int32_t most;
} fields[FIELDS] = {
    {"dim", 2, 1 << 17},        {"hidden_dim", 1, 1 << 20}, {"n_layers", 1, 1 << 10}, {"n_heads", 1, 1 << 10},
    {"n_kv_heads", 1, 1 << 10}, {"vocab_size", 3, 1 << 22}, {"seq_len", 1, 1 << 26},
};

static enum status header_check(const char *path, const int32_t *header /* [FIELDS] */)
{
    for (int i = 0; i < FIELDS; i++) {
        int64_t value = i == VOCAB ? llabs(header[i]) : header[i];

        if (value < fields[i].least || value > fields[i].most) {
            log_error("%s: %s is %lld in the llama2.c header, expected %d to %d", path, fields[i].name, (long long)header[i],
                      fields[i].least, fields[i].most);
            return STATUS_DATA;
        }
    }
    if (header[HEADS] % header[KV_HEADS] != 0) {
        log_error("%s: n_heads is %d, expected a multiple of n_kv_heads, which is %d", path, header[HEADS], header[KV_HEADS]);
        return STATUS_DATA;
    }
    if (header[DIM] % (2 * header[HEADS]) != 0) {
        log_error("%s: dim is %d, expected an even multiple of n_heads, which is %d", path, header[DIM], header[HEADS]);
        return STATUS_DATA;
    }
    return STATUS_OK;
}

enum status checkpoint_llama2c_config(const char *path, struct config *config)
{
    struct file_map file;
    int32_t header[FIELDS];
    enum status status;

    TRY(file_map_open(path, &file));
    if (file.size < HEADER_BYTES) {
        log_error("%s: %zu bytes long, expected a llama2.c header of %d", path, file.size, HEADER_BYTES);
        status = STATUS_DATA;
        goto close_file;
    }
    memcpy(header, file.bytes, sizeof header);
    TRY_TO(header_check(path, header), close_file);
    *config = (struct config){
        .family = &model_families[FAMILY_LLAMA2C],
        .hidden = header[DIM],
        .layers = header[LAYERS],
        .heads = header[HEADS],
        .kv_heads = header[KV_HEADS],
        .head_dim = header[DIM] / header[HEADS],
        .ffn = header[HIDDEN_DIM],
        .vocab = abs(header[VOCAB]),
        .context = header[CONTEXT],
        .norm_eps = 1e-5f,
        .tied = header[VOCAB] > 0,
        .rope_theta = 10000,
        .rope = ROPE_PLAIN,
        .rope_factor = 1,
        .rope_adjacent = 1,
        .bos = 1,
        .eos = {1, 2}, /* llama2.c stops at either of them */
        .eos_count = 2,
    };
close_file:
    file_map_close(&file);
    return status;
}

/* One kind of tensor, for all layers in a row; layers is 1 for those outside them. FAMILY_PARTS is stored but not used: the
 * tables of RoPE, which are computed. */
struct kind {
    enum family_part part;
    int layers;
    int64_t rows;
    int64_t columns; /* 0 for a vector */
};

enum { KINDS = 14 };

static int kinds_of(const struct config *config, struct kind *kinds /* [KINDS] */)
{
    int layers = config->layers;
    int64_t hidden = config->hidden, ffn = config->ffn, kv = (int64_t)config->kv_heads * config->head_dim;
    int64_t turns = (int64_t)config->context * (config->head_dim / 2);
    const struct kind all[KINDS] = {
        {FAMILY_EMBEDDING, 1, config->vocab, hidden},
        {FAMILY_SELF_NORM, layers, hidden, 0},
        {FAMILY_Q, layers, hidden, hidden},
        {FAMILY_K, layers, kv, hidden},
        {FAMILY_V, layers, kv, hidden},
        {FAMILY_SELF_OUT, layers, hidden, hidden},
        {FAMILY_MLP_NORM, layers, hidden, 0},
        {FAMILY_GATE, layers, ffn, hidden},
        {FAMILY_DOWN, layers, hidden, ffn},
        {FAMILY_UP, layers, ffn, hidden},
        {FAMILY_FINAL_NORM, 1, hidden, 0},
        {FAMILY_PARTS, 1, turns, 0},
        {FAMILY_PARTS, 1, turns, 0},
        {FAMILY_HEAD, 1, config->vocab, hidden},
    };

    memcpy(kinds, all, sizeof all);
    return config->tied ? KINDS - 1 : KINDS;
}

static int64_t kind_bytes(const struct kind *kind)
{
    return kind->rows * (kind->columns == 0 ? 1 : kind->columns) * (int64_t)sizeof(float);
}

static enum status kind_add(const struct kind *kind, const struct file_map *file, const unsigned char *data,
                            struct checkpoint_table *table)
{
    for (int layer = 0; layer < kind->layers; layer++, data += kind_bytes(kind)) {
        char name[FAMILY_NAME_MAX];
        struct checkpoint_entry entry = {
            .name = name, .file = file->path, .data = data, .dtype = "F32", .dims = kind->columns == 0 ? 1 : 2};

        family_tensor(&model_families[FAMILY_LLAMA2C], kind->part, layer, name);
        entry.shape[0] = kind->rows;
        entry.shape[1] = kind->columns;
        TRY(checkpoint_table_add(table, &entry));
    }
    return STATUS_OK;
}

enum status checkpoint_llama2c_read(const struct file_map *file, const struct config *config, struct checkpoint_table *table)
{
    struct kind kinds[KINDS];
    int count = kinds_of(config, kinds);
    int64_t expected = HEADER_BYTES, at = HEADER_BYTES;

    /* At most 2^10 layers of three matrices of 2^39 bytes: no overflow. */
    for (int i = 0; i < count; i++)
        expected += kinds[i].layers * kind_bytes(&kinds[i]);
    if ((int64_t)file->size != expected) {
        log_error("%s: %zu bytes long, expected %lld by its header", file->path, file->size, (long long)expected);
        return STATUS_DATA;
    }
    for (int i = 0; i < count; i++) {
        if (kinds[i].part != FAMILY_PARTS)
            TRY(kind_add(&kinds[i], file, file->bytes + at, table));
        at += kinds[i].layers * kind_bytes(&kinds[i]);
    }
    return STATUS_OK;
}
