#include "common/file/gguf.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <stdlib.h>
#include <string.h>

enum {
    VERSION = 3,
    DEFAULT_ALIGNMENT = 32,
    KEY_BYTES = 13,    /* of the shortest key with its value: length, type, one byte of value */
    TENSOR_BYTES = 33, /* of the shortest entry: length, a letter, dims, one size, type, offset */
};

/* ggml's number of a type; a block of `block` values takes `bytes`. */
static const struct tensor_type {
    uint32_t number;
    const char *name;
    int block;
    int bytes;
} tensor_types[] = {
    {0, "F32", 1, 4},        {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},    {3, "Q4_1", 32, 20},    {6, "Q5_0", 32, 22},
    {7, "Q5_1", 32, 24},     {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},    {10, "Q2_K", 256, 84},  {11, "Q3_K", 256, 110},
    {12, "Q4_K", 256, 144},  {13, "Q5_K", 256, 176},   {14, "Q6_K", 256, 210}, {15, "Q8_K", 256, 292}, {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74}, {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50}, {20, "IQ4_NL", 32, 18}, {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},  {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},       {25, "I16", 1, 2},      {26, "I32", 1, 4},
    {27, "I64", 1, 8},       {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56}, {30, "BF16", 1, 2},     {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},  {39, "MXFP4", 32, 17},
};

struct cursor {
    const struct gguf *gguf;
    size_t at;
};

static enum status cut_off(const struct gguf *gguf, const char *what)
{
    log_error("%s: %zu bytes long, it ends within %s", gguf->name, gguf->size, what);
    return STATUS_DATA;
}

static enum status take(struct cursor *cursor, const char *what, void *to, size_t bytes)
{
    if (cursor->gguf->size - cursor->at < bytes)
        return cut_off(cursor->gguf, what);
    memcpy(to, cursor->gguf->bytes + cursor->at, bytes);
    cursor->at += bytes;
    return STATUS_OK;
}

static enum status take_text(struct cursor *cursor, const char *what, struct gguf_text *text)
{
    uint64_t length = 0;

    TRY(take(cursor, what, &length, sizeof length));
    if (cursor->gguf->size - cursor->at < length)
        return cut_off(cursor->gguf, what);
    *text = (struct gguf_text){(const char *)cursor->gguf->bytes + cursor->at, (size_t)length};
    cursor->at += (size_t)length;
    return STATUS_OK;
}

/* A name that can stand in a line of the log. */
static enum status take_name(struct cursor *cursor, const char *what, struct gguf_text *name)
{
    int plain;

    TRY(take_text(cursor, what, name));
    plain = name->length > 0 && name->length <= GGUF_NAME_MAX;
    for (size_t i = 0; plain && i < name->length; i++)
        plain = name->bytes[i] > ' ' && name->bytes[i] <= '~';
    if (plain)
        return STATUS_OK;
    log_error("%s: the name of %s is empty, longer than %d bytes or has other characters than printable ASCII", cursor->gguf->name, what,
              GGUF_NAME_MAX);
    return STATUS_DATA;
}

static size_t value_bytes(enum gguf_type type)
{
    static const size_t bytes[GGUF_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

    return bytes[type];
}

static enum status take_type(struct cursor *cursor, const struct gguf_value *value, int in_list, enum gguf_type *type)
{
    uint32_t number = 0;

    TRY(take(cursor, "the type of a value", &number, sizeof number));
    if (number < GGUF_TYPES && !(in_list && number == GGUF_LIST)) {
        *type = (enum gguf_type)number;
        return STATUS_OK;
    }
    log_error("%s: key %.*s has a%s of type %u, expected a GGUF type below %d%s", cursor->gguf->name, (int)value->key.length,
              value->key.bytes, in_list ? " list" : " value", (unsigned)number, GGUF_TYPES, in_list ? " that is no list" : "");
    return STATUS_DATA;
}

static enum status pass_texts(struct cursor *cursor, uint64_t count)
{
    struct gguf_text text;

    while (count-- > 0) /* each takes 8 bytes at least, so a count that is too large runs into the file's end */
        TRY(take_text(cursor, "a list of texts", &text));
    return STATUS_OK;
}

static enum status take_value(struct cursor *cursor, struct gguf_value *value)
{
    TRY(take_name(cursor, "a key", &value->key));
    TRY(take_type(cursor, value, 0, &value->type));
    value->count = 1;
    value->is_list = value->type == GGUF_LIST;
    if (value->is_list) {
        TRY(take_type(cursor, value, 1, &value->type));
        TRY(take(cursor, "the length of a list", &value->count, sizeof value->count));
    }
    value->data = cursor->gguf->bytes + cursor->at;
    if (value->type == GGUF_TEXT)
        return pass_texts(cursor, value->count);
    if (value->count > (cursor->gguf->size - cursor->at) / value_bytes(value->type))
        return cut_off(cursor->gguf, "the value of a key");
    cursor->at += (size_t)value->count * value_bytes(value->type);
    return STATUS_OK;
}

static int by_key(const void *left, const void *right)
{
    const struct gguf_text *a = &((const struct gguf_value *)left)->key, *b = &((const struct gguf_value *)right)->key;
    int order = memcmp(a->bytes, b->bytes, a->length < b->length ? a->length : b->length);

    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

static enum status sort_values(struct gguf *gguf)
{
    if (gguf->value_count > 1)
        qsort(gguf->values, (size_t)gguf->value_count, sizeof *gguf->values, by_key);
    for (int i = 1; i < gguf->value_count; i++)
        if (by_key(&gguf->values[i - 1], &gguf->values[i]) == 0) {
            log_error("%s: key %.*s is there twice", gguf->name, (int)gguf->values[i].key.length, gguf->values[i].key.bytes);
            return STATUS_DATA;
        }
    return STATUS_OK;
}

static enum status tensor_refuse(const struct gguf *gguf, const struct gguf_tensor *tensor, const char *what)
{
    log_error("%s: tensor %.*s %s", gguf->name, (int)tensor->name.length, tensor->name.bytes, what);
    return STATUS_DATA;
}

static enum status take_type_of(struct cursor *cursor, struct gguf_tensor *tensor, const struct tensor_type **found)
{
    uint32_t number = 0;

    TRY(take(cursor, "the directory of tensors", &number, sizeof number));
    for (size_t i = 0; i < sizeof tensor_types / sizeof *tensor_types; i++)
        if (tensor_types[i].number == number) {
            *found = &tensor_types[i];
            tensor->type = tensor_types[i].name;
            return STATUS_OK;
        }
    log_error("%s: tensor %.*s has type %u, which is not known", cursor->gguf->name, (int)tensor->name.length, tensor->name.bytes,
              (unsigned)number);
    return STATUS_DATA;
}

/* Bytes of the whole tensor: rows of whole blocks. */
static enum status measure(const struct gguf *gguf, const struct tensor_type *type, struct gguf_tensor *tensor)
{
    int64_t bytes = type->bytes;
    int overflow = __builtin_mul_overflow(bytes, tensor->shape[0] / type->block, &bytes);

    for (int i = 1; i < tensor->dims; i++)
        overflow |= __builtin_mul_overflow(bytes, tensor->shape[i], &bytes);
    if (overflow)
        return tensor_refuse(gguf, tensor, "has a shape whose product overflows 64 bits");
    if (tensor->shape[0] % type->block != 0)
        return tensor_refuse(gguf, tensor, "has rows that are not whole blocks of its type");
    tensor->bytes = (size_t)bytes;
    return STATUS_OK;
}

/* An entry of the directory. Its offset is kept until the place of the data is known. */
static enum status take_tensor(struct cursor *cursor, struct gguf_tensor *tensor, uint64_t *offset)
{
    static const char directory[] = "the directory of tensors";
    const struct tensor_type *type = NULL;
    uint32_t dims = 0;

    TRY(take_name(cursor, "a tensor", &tensor->name));
    TRY(take(cursor, directory, &dims, sizeof dims));
    if (dims < 1 || dims > GGUF_DIMS_MAX)
        return tensor_refuse(cursor->gguf, tensor, "must have 1 to 4 dimensions");
    tensor->dims = (int)dims;
    for (int i = 0; i < tensor->dims; i++) {
        TRY(take(cursor, directory, &tensor->shape[i], sizeof tensor->shape[i]));
        if (tensor->shape[i] < 1)
            return tensor_refuse(cursor->gguf, tensor, "has a size below 1 or over 2^63");
    }
    TRY(take_type_of(cursor, tensor, &type));
    TRY(take(cursor, directory, offset, sizeof *offset));
    return measure(cursor->gguf, type, tensor);
}

static enum status alignment_of(const struct gguf *gguf, size_t *alignment)
{
    int64_t asked = DEFAULT_ALIGNMENT;

    TRY(gguf_integer(gguf, "general.alignment", GGUF_OPTIONAL, 1, GGUF_ALIGNMENT_MAX, &asked));
    if ((asked & (asked - 1)) != 0)
        return gguf_refuse(gguf, "general.alignment", "a power of two");
    *alignment = (size_t)asked;
    return STATUS_OK;
}

static int by_place(const void *left, const void *right)
{
    const struct gguf_tensor *a = *(const struct gguf_tensor *const *)left, *b = *(const struct gguf_tensor *const *)right;

    return (a->data > b->data) - (a->data < b->data);
}

static enum status check_apart(const struct gguf *gguf)
{
    const struct gguf_tensor **sorted = malloc(((size_t)gguf->tensor_count + 1) * sizeof *sorted);
    enum status status = STATUS_OK;

    if (sorted == NULL) {
        log_error("%s: no memory to sort %d tensors", gguf->name, gguf->tensor_count);
        return STATUS_INTERNAL;
    }
    for (int i = 0; i < gguf->tensor_count; i++)
        sorted[i] = &gguf->tensors[i];
    if (gguf->tensor_count > 1)
        qsort(sorted, (size_t)gguf->tensor_count, sizeof *sorted, by_place);
    for (int i = 1; status == STATUS_OK && i < gguf->tensor_count; i++)
        if ((size_t)(sorted[i]->data - sorted[i - 1]->data) < sorted[i - 1]->bytes)
            status = tensor_refuse(gguf, sorted[i], "overlaps another one");
    free(sorted);
    return status;
}

/* offsets: [tensor_count], from where the data begin: behind the directory, aligned. */
static enum status place_tensors(struct gguf *gguf, size_t directory_end, const uint64_t *offsets)
{
    size_t alignment = 0, begin, room;

    TRY(alignment_of(gguf, &alignment));
    begin = (directory_end + alignment - 1) / alignment * alignment;
    room = begin < gguf->size ? gguf->size - begin : 0;
    for (int i = 0; i < gguf->tensor_count; i++) {
        struct gguf_tensor *tensor = &gguf->tensors[i];

        if (offsets[i] % alignment != 0)
            return tensor_refuse(gguf, tensor, "does not begin at a multiple of general.alignment");
        if (offsets[i] > room || tensor->bytes > room - (size_t)offsets[i]) {
            log_error("%s: tensor %.*s has %zu bytes from byte %llu of the data on, the file has %zu bytes of data", gguf->name,
                      (int)tensor->name.length, tensor->name.bytes, tensor->bytes, (unsigned long long)offsets[i], room);
            return STATUS_DATA;
        }
        tensor->data = gguf->bytes + begin + (size_t)offsets[i];
    }
    return check_apart(gguf);
}

static enum status take_count(struct cursor *cursor, const char *what, int most, size_t least_bytes, int *count)
{
    const size_t room = cursor->gguf->size / least_bytes;
    uint64_t found = 0;

    TRY(take(cursor, "the header", &found, sizeof found));
    if (found > (uint64_t)most || found > room) {
        log_error("%s: the header claims %llu %s, expected at most %zu in a file of %zu bytes", cursor->gguf->name, (unsigned long long)found,
                  what, room < (size_t)most ? room : (size_t)most, cursor->gguf->size);
        return STATUS_DATA;
    }
    *count = (int)found;
    return STATUS_OK;
}

static enum status take_header(struct cursor *cursor, int *tensors, int *values)
{
    char magic[4] = "";
    uint32_t version = 0;

    TRY(take(cursor, "the header", magic, sizeof magic));
    if (memcmp(magic, "GGUF", sizeof magic) != 0) {
        log_error("%s: it does not begin with \"GGUF\"", cursor->gguf->name);
        return STATUS_DATA;
    }
    TRY(take(cursor, "the header", &version, sizeof version));
    if (version != VERSION) {
        log_error("%s: GGUF version %u, expected %d, little-endian", cursor->gguf->name, (unsigned)version, VERSION);
        return STATUS_DATA;
    }
    TRY(take_count(cursor, "tensors", GGUF_TENSORS_MAX, TENSOR_BYTES, tensors));
    return take_count(cursor, "keys", GGUF_KEYS_MAX, KEY_BYTES, values);
}

static enum status read_all(struct gguf *gguf, uint64_t **offsets)
{
    struct cursor cursor = {.gguf = gguf};
    int tensors = 0, values = 0;

    TRY(take_header(&cursor, &tensors, &values));
    gguf->values = calloc((size_t)values + 1, sizeof *gguf->values);
    gguf->tensors = calloc((size_t)tensors + 1, sizeof *gguf->tensors);
    *offsets = calloc((size_t)tensors + 1, sizeof **offsets);
    if (gguf->values == NULL || gguf->tensors == NULL || *offsets == NULL) {
        log_error("%s: no memory for %d keys and %d tensors", gguf->name, values, tensors);
        return STATUS_INTERNAL;
    }
    for (; gguf->value_count < values; gguf->value_count++)
        TRY(take_value(&cursor, &gguf->values[gguf->value_count]));
    TRY(sort_values(gguf));
    for (; gguf->tensor_count < tensors; gguf->tensor_count++)
        TRY(take_tensor(&cursor, &gguf->tensors[gguf->tensor_count], &(*offsets)[gguf->tensor_count]));
    return place_tensors(gguf, cursor.at, *offsets);
}

enum status gguf_read(const char *name, const void *bytes, size_t size, struct gguf *gguf)
{
    struct gguf read = {.name = name, .bytes = bytes, .size = size};
    uint64_t *offsets = NULL;
    enum status status = read_all(&read, &offsets);

    free(offsets);
    if (status != STATUS_OK)
        gguf_release(&read);
    else
        *gguf = read;
    return status;
}

void gguf_release(struct gguf *gguf)
{
    free(gguf->values);
    free(gguf->tensors);
    *gguf = (struct gguf){.name = NULL};
}
