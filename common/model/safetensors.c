#include "common/model/safetensors.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/model/checkpoint_json.h"
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, HEADER_MAX = 100000000 };

/* Where a tensor lies, in bytes from the start of the data. */
struct span {
    int64_t begin;
    int64_t end;
    const char *name;
};

static const struct spelled_bits {
    const char *name;
    int bits;
} spelled_bits[] = {
    {"BOOL", 8}, {"U8", 8},   {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16}, {"U16", 16}, {"F16", 16},    {"BF16", 16},
    {"I32", 32}, {"U32", 32}, {"F32", 32}, {"F64", 64},    {"I64", 64},    {"U64", 64},    {"C64", 64}, {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6},
};

/* 0 for a dtype of the future: its tensors are placed but their size is not checked, and they cannot be asked for. */
static int bits_of(const char *dtype)
{
    for (size_t i = 0; i < sizeof spelled_bits / sizeof *spelled_bits; i++)
        if (strcmp(spelled_bits[i].name, dtype) == 0)
            return spelled_bits[i].bits;
    return 0;
}

static enum status header_length(const struct file_map *file, size_t *length)
{
    uint64_t found = 0;
    size_t most;

    if (file->size < LENGTH_BYTES) {
        log_error("%s: %zu bytes long, too short for a safetensors file", file->path, file->size);
        return STATUS_DATA;
    }
    most = file->size - LENGTH_BYTES < HEADER_MAX ? file->size - LENGTH_BYTES : HEADER_MAX;
    for (int i = 0; i < LENGTH_BYTES; i++)
        found |= (uint64_t)file->bytes[i] << 8 * i;
    if (found > most) {
        log_error("%s: the header claims %llu bytes, expected at most %zu", file->path, (unsigned long long)found, most);
        return STATUS_DATA;
    }
    *length = (size_t)found;
    return STATUS_OK;
}

static enum status tensor_refuse(const struct checkpoint_entry *entry, const char *field, const char *expected)
{
    log_error("%s: tensor %s: \"%s\" must be %s", entry->file, entry->name, field, expected);
    return STATUS_DATA;
}

static enum status shape_read(const json_t *tensor, struct checkpoint_entry *entry)
{
    const json_t *shape = json_object_get(tensor, "shape");

    if (!json_is_array(shape) || json_array_size(shape) > CHECKPOINT_DIMS_MAX)
        return tensor_refuse(entry, "shape", "a list of at most 8 sizes");
    entry->dims = (int)json_array_size(shape);
    for (int i = 0; i < entry->dims; i++) {
        const json_t *size = json_array_get(shape, (size_t)i);

        if (!json_is_integer(size) || json_integer_value(size) < 0)
            return tensor_refuse(entry, "shape", "a list of sizes that are not negative");
        entry->shape[i] = json_integer_value(size);
    }
    return STATUS_OK;
}

static enum status span_read(const json_t *tensor, const struct checkpoint_entry *entry, int64_t data_bytes, struct span *span)
{
    const json_t *offsets = json_object_get(tensor, "data_offsets");
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);

    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return tensor_refuse(entry, "data_offsets", "a list of two integers");
    span->begin = json_integer_value(begin);
    span->end = json_integer_value(end);
    span->name = entry->name;
    if (span->begin >= 0 && span->begin <= span->end && span->end <= data_bytes)
        return STATUS_OK;
    log_error("%s: tensor %s: data_offsets [%lld, %lld] are not within the %lld bytes of data", entry->file, entry->name,
              (long long)span->begin, (long long)span->end, (long long)data_bytes);
    return STATUS_DATA;
}

static enum status size_check(const struct checkpoint_entry *entry, const struct span *span)
{
    int64_t bits = bits_of(entry->dtype);
    int overflow = 0, empty = 0;

    if (bits == 0)
        return STATUS_OK;
    for (int i = 0; i < entry->dims; i++) {
        empty |= entry->shape[i] == 0;
        overflow |= __builtin_mul_overflow(bits, entry->shape[i], &bits);
    }
    if (overflow && !empty) {
        log_error("%s: tensor %s: the product of its shape overflows 64 bits", entry->file, entry->name);
        return STATUS_DATA;
    }
    bits = empty ? 0 : bits;
    if (bits % 8 == 0 && bits / 8 == span->end - span->begin)
        return STATUS_OK;
    log_error("%s: tensor %s: data_offsets hold %lld bytes, but shape and dtype %s need %lld", entry->file, entry->name,
              (long long)(span->end - span->begin), entry->dtype, (long long)((bits + 7) / 8));
    return STATUS_DATA;
}

static enum status tensor_read(const json_t *tensor, int64_t data_bytes, struct checkpoint_entry *entry, struct span *span)
{
    const char *dtype = json_string_value(json_object_get(tensor, "dtype"));

    if (!checkpoint_json_plain(entry->name, CHECKPOINT_NAME_MAX)) {
        log_error("%s: a tensor's name is empty, longer than %d bytes or holds control characters", entry->file, CHECKPOINT_NAME_MAX);
        return STATUS_DATA;
    }
    if (dtype == NULL || !checkpoint_json_plain(dtype, CHECKPOINT_DTYPE_MAX))
        return tensor_refuse(entry, "dtype", "the name of a number format");
    memcpy(entry->dtype, dtype, strlen(dtype) + 1);
    TRY(shape_read(tensor, entry));
    TRY(span_read(tensor, entry, data_bytes, span));
    return size_check(entry, span);
}

static int by_place(const void *left, const void *right)
{
    const struct span *a = left, *b = right;

    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end);
}

/* Sorted, each span begins where the one before ended, and the last ends with the file. */
static enum status spans_check(const char *file, struct span *spans, size_t count, int64_t data_bytes)
{
    int64_t end = 0;

    if (count > 1)
        qsort(spans, count, sizeof *spans, by_place);
    for (size_t i = 0; i < count; i++) {
        if (spans[i].begin != end) {
            log_error("%s: tensor %s begins at byte %lld, expected %lld: the data has %s", file, spans[i].name, (long long)spans[i].begin,
                      (long long)end, spans[i].begin < end ? "an overlap" : "a hole");
            return STATUS_DATA;
        }
        end = spans[i].end;
    }
    if (end != data_bytes) {
        log_error("%s: %lld bytes of data, expected %lld by its header", file, (long long)data_bytes, (long long)end);
        return STATUS_DATA;
    }
    return STATUS_OK;
}

static enum status metadata_check(const char *file, json_t *metadata)
{
    const char *key;
    json_t *value;
    int strings = json_is_object(metadata);

    json_object_foreach(metadata, key, value) strings &= json_is_string(value);
    if (strings)
        return STATUS_OK;
    log_error("%s: \"__metadata__\" must be an object of strings", file);
    return STATUS_DATA;
}

/* spans: [tensors of the header] */
static enum status tensors_read(const struct file_map *file, json_t *header, size_t header_bytes, struct span *spans,
                                struct checkpoint_table *table)
{
    const unsigned char *data = file->bytes + LENGTH_BYTES + header_bytes;
    int64_t data_bytes = (int64_t)(file->size - LENGTH_BYTES - header_bytes);
    size_t count = 0;
    const char *name;
    json_t *value;

    json_object_foreach(header, name, value)
    {
        struct checkpoint_entry entry = {.name = (char *)(uintptr_t)name, .file = file->path};

        if (strcmp(name, "__metadata__") == 0) {
            TRY(metadata_check(file->path, value));
            continue;
        }
        TRY(tensor_read(value, data_bytes, &entry, &spans[count]));
        entry.data = data + spans[count++].begin;
        TRY(checkpoint_table_add(table, &entry));
    }
    return spans_check(file->path, spans, count, data_bytes);
}

enum status safetensors_read(const struct file_map *file, struct checkpoint_table *table)
{
    struct span *spans = NULL;
    json_t *header = NULL;
    enum status status;
    size_t bytes = 0;

    TRY(header_length(file, &bytes));
    TRY(checkpoint_json_parse(file->path, (const char *)file->bytes + LENGTH_BYTES, bytes, &header));
    if (json_object_size(header) > CHECKPOINT_TENSORS_MAX + 1) {
        log_error("%s: %zu tensors, expected at most %d", file->path, json_object_size(header), CHECKPOINT_TENSORS_MAX);
        status = STATUS_DATA;
        goto release;
    }
    spans = malloc((json_object_size(header) + 1) * sizeof *spans);
    if (spans == NULL) {
        log_error("%s: no memory to check %zu tensors", file->path, json_object_size(header));
        status = STATUS_INTERNAL;
        goto release;
    }
    status = tensors_read(file, header, bytes, spans, table);
release:
    free(spans);
    json_decref(header);
    return status;
}
