#include "tests/support/few_bits.h"

#include "common/model/checkpoint.h"
#include "common/model/checkpoint_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH = 2048, GROUP = 32, BLOCK_ROWS = 64, BLOCK_COLUMNS = 32, LARGE = 128 };

const char *const few_bits_name[FEW_BITS_KINDS] = {"awq", "gptq", "gptq-zero", "fp8-block", "fp8-large", "fp8-row", "fp8-all"};

static const char *const configs[FEW_BITS_KINDS] = {
    "{\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 32, \"zero_point\": true, \"version\": \"gemm\"}",
    "{\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 32, \"desc_act\": false, \"sym\": true}",
    "{\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": -1, \"sym\": false, \"checkpoint_format\": \"gptq_v2\"}",
    "{\"quant_method\": \"fp8\", \"fmt\": \"e4m3\", \"activation_scheme\": \"dynamic\", \"weight_block_size\": [64, 32]}",
    "{\"quant_method\": \"fp8\", \"fmt\": \"e4m3\", \"activation_scheme\": \"dynamic\", \"weight_block_size\": [128, 128]}",
    "{\"quant_method\": \"compressed-tensors\", \"format\": \"float-quantized\", \"ignore\": [\"lm_head\"]}",
    "{\"quant_method\": \"fp8\", \"activation_scheme\": \"static\"}",
};

static void must(int is, const char *what)
{
    if (is)
        return;
    fprintf(stderr, "few_bits: %s\n", what);
    exit(1);
}

static void *room(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);

    must(memory != NULL, "no memory");
    return memory;
}

/* A safetensors file on its way: the header, and the data behind it. */
struct file {
    char path[PATH];
    json_t *header;
    FILE *data;
    long long at;
};

static void begin(struct file *file, const char *folder)
{
    *file = (struct file){.header = json_object(), .data = tmpfile()};
    must(mkdir(folder, 0700) == 0 && file->data != NULL, folder);
    snprintf(file->path, sizeof file->path, "%s/model.safetensors", folder);
}

static void add(struct file *file, const char *name, const char *dtype, int dims, int64_t first, int64_t second, const void *bytes, size_t size)
{
    json_t *shape = dims == 0   ? json_array()
                    : dims == 1 ? json_pack("[I]", (json_int_t)first)
                                : json_pack("[I, I]", (json_int_t)first, (json_int_t)second);

    must(fwrite(bytes, 1, size, file->data) == size, name);
    json_object_set_new(file->header, name,
                        json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype, "shape", shape, "data_offsets", (json_int_t)file->at,
                                  (json_int_t)(file->at + (long long)size)));
    file->at += (long long)size;
}

static void end(struct file *file)
{
    char *header = json_dumps(file->header, JSON_COMPACT);
    uint64_t length = strlen(header);
    FILE *to = fopen(file->path, "wb");
    char bytes[4096];
    size_t count;

    must(to != NULL && fwrite(&length, sizeof length, 1, to) == 1 && fwrite(header, 1, length, to) == length, file->path);
    rewind(file->data);
    while ((count = fread(bytes, 1, sizeof bytes, file->data)) > 0)
        must(fwrite(bytes, 1, count, to) == count, file->path);
    must(fclose(to) == 0 && fclose(file->data) == 0, file->path);
    free(header);
    json_decref(file->header);
}

/* config.json with or without what is said of the bits, and a link to the tokenizer's file. */
static void copy_others(const char *from, const char *folder, const char *quantised)
{
    char path[PATH], there[PATH], whole[PATH];
    json_t *config;

    snprintf(path, sizeof path, "%s/config.json", from);
    must(checkpoint_json_read(path, 1 << 20, &config) == STATUS_OK, path);
    if (quantised != NULL)
        json_object_set_new(config, "quantization_config", json_loads(quantised, 0, NULL));
    snprintf(there, sizeof there, "%s/config.json", folder);
    must(json_dump_file(config, there, JSON_INDENT(1)) == 0, there);
    json_decref(config);
    snprintf(path, sizeof path, "%s/tokenizer.json", from);
    snprintf(there, sizeof there, "%s/tokenizer.json", folder);
    must(realpath(path, whole) == NULL || symlink(whole, there) == 0, there); /* some have none */
}

/* A map on its way: its values, and what is made of them. */
struct map {
    const char *name; /* without .weight */
    int rows, columns;
    float *value; /* [rows][columns]; in the end what the numbers stand for */
    struct file *to;
    enum few_bits_kind kind;
};

static void add_part(const struct map *map, const char *ending, const char *dtype, int dims, int first, int second, const void *bytes, size_t size)
{
    char name[PATH];

    snprintf(name, sizeof name, "%s%s", map->name, ending);
    add(map->to, name, dtype, dims, first, second, bytes, size);
}

static uint16_t bf16_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float of_bf16(uint16_t half)
{
    float value;

    dtype_widen(DTYPE_BF16, &half, &value, 1);
    return value;
}

/* A power of two times 1 to 1.75: what F16 and BF16 have, so that a scale is the same in any of them. */
static float scale_near(float value)
{
    int exponent;
    float fraction = frexpf(value > 0x1p-12f ? value : 0x1p-12f, &exponent);

    return ldexpf(ceilf(fraction * 8) / 8, exponent);
}

static uint16_t f16_of(float scale)
{
    int exponent;
    float fraction = frexpf(scale, &exponent);

    must(exponent + 14 > 0 && exponent < 16, "a scale that is not for F16");
    return (uint16_t)((exponent + 14) << 10 | (int)(fraction * 2048 - 1024));
}

enum { EDGE = 61 /* of so many groups one has the least, and one the greatest zero point that there is */ };

/* Numbers of 4 bits, and what belongs to each group.  q: [rows][columns]  zero, scale: [groups][rows] */
static void round_groups(struct map *map, int group, int plain, int *q, int *zero, float *scale)
{
    for (int row = 0; row < map->rows; row++)
        for (int first = 0; first < map->columns; first += group) {
            float *value = map->value + row * map->columns + first, least = 0, most = 0;
            int at = first / group * map->rows + row;

            for (int i = 0; i < group; i++) {
                least = fminf(least, value[i]);
                most = fmaxf(most, value[i]);
            }
            scale[at] = scale_near(plain ? fmaxf(most, -least) / 7 : (most - least) / 15);
            zero[at] = at % EDGE < 2 ? 15 * (at % EDGE) : plain ? 8 : (int)fminf(15, rintf(-least / scale[at]));
            for (int i = 0; i < group; i++) {
                int number = (int)fmaxf(0, fminf(15, rintf(value[i] / scale[at]) + (float)zero[at]));

                q[row * map->columns + first + i] = number;
                value[i] = (float)(number - zero[at]) * scale[at];
            }
        }
}

/* Puts a number into a word of eight, in AWQ's order or in that of the numbers. */
static void put(uint32_t *words, int64_t word, int within, int number, int is_awq)
{
    static const int order[8] = {0, 2, 4, 6, 1, 3, 5, 7}; /* nibble k of AWQ's words is this number */
    int nibble = 0;

    while ((is_awq ? order[nibble] : nibble) != within)
        nibble++;
    words[word] |= ((uint32_t)number & 15) << 4 * nibble; /* the first version of GPTQ has a zero point of 0 as 15 */
}

static void add_4_bits(struct map *map)
{
    must(map->columns % GROUP == 0 && map->rows % 8 == 0, map->name);
    int is_awq = map->kind == FEW_BITS_AWQ, group = map->kind == FEW_BITS_GPTQ_ZERO ? map->columns : GROUP, groups = map->columns / group;
    int rows = map->rows, columns = map->columns, less = map->kind == FEW_BITS_GPTQ; /* the first version's zero points */
    size_t size = (size_t)rows * (size_t)columns, count = (size_t)groups * (size_t)rows;
    int *q = room(size, sizeof *q), *zero = room(count, sizeof *zero), *places = room((size_t)columns, sizeof *places);
    uint32_t *words = room(size / 8, sizeof *words), *zeros = room(count / 8, sizeof *zeros);
    float *scale = room(count, sizeof *scale);
    uint16_t *scales = room(count, sizeof *scales);

    round_groups(map, group, map->kind == FEW_BITS_GPTQ, q, zero, scale);
    for (int row = 0; row < rows; row++)
        for (int i = 0; i < columns; i++)
            if (is_awq)
                put(words, (int64_t)i * (rows / 8) + row / 8, row % 8, q[row * columns + i], 1);
            else
                put(words, (int64_t)(i / 8) * rows + row, i % 8, q[row * columns + i], 0);
    for (int g = 0; g < groups; g++)
        for (int row = 0; row < rows; row++) {
            put(zeros, (int64_t)g * (rows / 8) + row / 8, row % 8, zero[g * rows + row] - less, is_awq);
            scales[g * rows + row] = f16_of(scale[g * rows + row]);
        }
    add_part(map, ".qweight", "I32", 2, is_awq ? columns : columns / 8, is_awq ? rows / 8 : rows, words, size / 2);
    add_part(map, ".qzeros", "I32", 2, groups, rows / 8, zeros, count / 2);
    add_part(map, ".scales", "F16", 2, groups, rows, scales, count * 2);
    for (int i = 0; i < columns; i++)
        places[i] = i / group;
    if (!is_awq)
        add_part(map, ".g_idx", "I32", 1, columns, 0, places, (size_t)columns * sizeof *places);
    free(q);
    free(zero);
    free(places);
    free(words);
    free(zeros);
    free(scale);
    free(scales);
}

/* Of E4M3: (8 + fraction) 2^(exponent - 10), or fraction 2^-9 where the exponent is 0. */
static float of_fp8(int code)
{
    int exponent = code >> 3 & 15, fraction = code & 7;

    return exponent == 0 ? ldexpf((float)fraction, -9) : ldexpf((float)(8 + fraction), exponent - 10);
}

static unsigned char fp8_of(float value)
{
    int code = 0;

    while (code < 0x7e && fabsf(of_fp8(code + 1) - fabsf(value)) <= fabsf(of_fp8(code) - fabsf(value)))
        code++;
    return (unsigned char)(code | (value < 0 ? 0x80 : 0));
}

int few_bits_is_f8(enum few_bits_kind kind, int columns)
{
    return kind > FEW_BITS_FP8_BLOCK && columns % 128 == 0;
}

static void add_fp8(struct map *map)
{
    int rows = map->rows, columns = map->columns, is_large = map->kind == FEW_BITS_FP8_LARGE, is_block = map->kind == FEW_BITS_FP8_BLOCK || is_large;
    int is_row = map->kind == FEW_BITS_FP8_ROW, is_f8 = few_bits_is_f8(map->kind, columns);
    int each = is_large ? LARGE : is_block ? BLOCK_ROWS : is_row ? 1 : rows, wide = is_large ? LARGE : is_block ? BLOCK_COLUMNS : columns;
    int down = (rows + each - 1) / each, across = (columns + wide - 1) / wide;
    unsigned char *bytes = room((size_t)rows * (size_t)columns, 1);
    float *scale = room((size_t)(down * across), sizeof *scale);
    uint16_t *halves = room((size_t)(down * across), sizeof *halves);

    for (int row = 0; row < rows; row++)
        for (int i = 0; i < columns; i++)
            scale[row / each * across + i / wide] = fmaxf(scale[row / each * across + i / wide], fabsf(map->value[row * columns + i]));
    for (int i = 0; i < down * across; i++) {
        scale[i] = of_bf16(bf16_of(scale[i] / 448 + 0x1p-20f));
        halves[i] = bf16_of(scale[i]);
    }
    for (int row = 0; row < rows; row++)
        for (int i = 0; i < columns; i++) {
            float *value = &map->value[row * columns + i], by = scale[row / each * across + i / wide];
            unsigned char code = fp8_of(*value / by);

            bytes[row * columns + i] = code;
            *value = (code & 0x80 ? -of_fp8(code & 0x7f) : of_fp8(code)) * by;
            *value = is_f8 ? *value : of_bf16(bf16_of(*value));
        }
    add_part(map, ".weight", "F8_E4M3", 2, rows, columns, bytes, (size_t)rows * (size_t)columns);
    if (is_block)
        add_part(map, ".weight_scale_inv", "F32", 2, down, across, scale, (size_t)(down * across) * sizeof *scale);
    else if (is_row)
        add_part(map, ".weight_scale", "BF16", 2, rows, 1, halves, (size_t)rows * sizeof *halves);
    else
        add_part(map, ".weight_scale", "F32", 0, 0, 0, scale, sizeof *scale);
    free(bytes);
    free(scale);
    free(halves);
}

/* Both folders on their way. */
struct pair {
    const struct checkpoint *from;
    const struct config *config;
    struct file *to, *values; /* NULL: none */
    enum few_bits_kind kind;
};

static void add_tensor(const struct pair *pair, enum family_part part, int layer, int rows, int columns, int is_map)
{
    size_t count = (size_t)rows * (size_t)columns;
    float *value = room(count, sizeof *value);
    char name[FAMILY_NAME_MAX];
    struct tensor tensor;

    family_tensor(pair->config->family, part, layer, name);
    must(checkpoint_find(pair->from, name, rows, columns, &tensor) == STATUS_OK, name);
    dtype_widen(tensor.dtype, tensor.data, value, count);
    if (is_map) {
        char plain[FAMILY_NAME_MAX];
        struct map map = {.name = plain, .rows = rows, .columns = columns, .value = value, .to = pair->to, .kind = pair->kind};

        snprintf(plain, sizeof plain, "%.*s", (int)(strlen(name) - strlen(".weight")), name);
        if (pair->kind < FEW_BITS_FP8_BLOCK)
            add_4_bits(&map);
        else
            add_fp8(&map);
    } else {
        add(pair->to, name, "F32", columns > 1 ? 2 : 1, rows, columns, value, count * sizeof *value);
    }
    if (pair->values != NULL)
        add(pair->values, name, "F32", columns > 1 ? 2 : 1, rows, columns, value, count * sizeof *value);
    free(value);
}

static void add_layer(const struct pair *pair, int layer)
{
    const struct config *config = pair->config;
    int q = config->heads * config->head_dim, kv = config->kv_heads * config->head_dim;

    add_tensor(pair, FAMILY_SELF_NORM, layer, config->hidden, 1, 0);
    add_tensor(pair, FAMILY_Q, layer, q, config->hidden, 1);
    add_tensor(pair, FAMILY_K, layer, kv, config->hidden, 1);
    add_tensor(pair, FAMILY_V, layer, kv, config->hidden, 1);
    if (family_has(config->family, FAMILY_Q_BIAS)) {
        add_tensor(pair, FAMILY_Q_BIAS, layer, q, 1, 0);
        add_tensor(pair, FAMILY_K_BIAS, layer, kv, 1, 0);
        add_tensor(pair, FAMILY_V_BIAS, layer, kv, 1, 0);
    }
    if (family_has(config->family, FAMILY_Q_NORM)) {
        add_tensor(pair, FAMILY_Q_NORM, layer, config->head_dim, 1, 0);
        add_tensor(pair, FAMILY_K_NORM, layer, config->head_dim, 1, 0);
    }
    add_tensor(pair, FAMILY_SELF_OUT, layer, config->hidden, q, 1);
    add_tensor(pair, FAMILY_MLP_NORM, layer, config->hidden, 1, 0);
    add_tensor(pair, FAMILY_GATE, layer, config->ffn, config->hidden, 1);
    add_tensor(pair, FAMILY_UP, layer, config->ffn, config->hidden, 1);
    add_tensor(pair, FAMILY_DOWN, layer, config->hidden, config->ffn, 1);
}

void few_bits_write(const char *from, const char *to, const char *values, enum few_bits_kind kind)
{
    struct checkpoint *checkpoint = NULL;
    struct config config;
    struct file file[2];
    struct pair pair = {.config = &config, .to = &file[0], .values = values != NULL ? &file[1] : NULL, .kind = kind};

    must(config_read(from, &config) == STATUS_OK && checkpoint_open(from, &config, &checkpoint) == STATUS_OK, from);
    pair.from = checkpoint;
    begin(&file[0], to);
    if (values != NULL)
        begin(&file[1], values);
    add_tensor(&pair, FAMILY_EMBEDDING, 0, config.vocab, config.hidden, 0);
    add_tensor(&pair, FAMILY_FINAL_NORM, 0, config.hidden, 1, 0);
    if (!config.tied)
        add_tensor(&pair, FAMILY_HEAD, 0, config.vocab, config.hidden, 0);
    for (int layer = 0; layer < config.layers; layer++)
        add_layer(&pair, layer);
    end(&file[0]);
    copy_others(from, to, configs[kind]);
    if (values != NULL) {
        end(&file[1]);
        copy_others(from, values, NULL);
    }
    checkpoint_close(checkpoint);
}
