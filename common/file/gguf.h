/* GGUF, version 3 (ggml's gguf.md): a header, keys with typed values, a directory of tensors, then their data; little-endian. Here is the
 * container alone: what the keys mean is known in common/model (shapes, tensors) and common/text (the tokenizer).
 *
 * Everything in the file is untrusted. gguf_read walks all of it but the data once: counts and lengths are held against the bytes that are
 * left, sizes are multiplied with overflow checks, tensors lie aligned, inside the file and apart from each other. After that nothing
 * changes, and whoever asks for a value checks its type and range by the functions below. Texts point into the file and have no NUL. */
#ifndef TANDEM_COMMON_FILE_GGUF_H
#define TANDEM_COMMON_FILE_GGUF_H

#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>

enum { GGUF_KEYS_MAX = 65536, GGUF_TENSORS_MAX = 65536, GGUF_NAME_MAX = 128, GGUF_DIMS_MAX = 4, GGUF_ALIGNMENT_MAX = 1 << 16 };

/* As the file numbers them. */
enum gguf_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_TEXT,
    GGUF_LIST,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPES
};

enum gguf_need { GGUF_OPTIONAL, GGUF_NEEDED };

struct gguf_text {
    const char *bytes;
    size_t length;
};

struct gguf_value {
    struct gguf_text key;
    enum gguf_type type; /* of the elements, for a list */
    int is_list;
    uint64_t count; /* 1 unless it is a list */
    const unsigned char *data;
};

struct gguf_tensor {
    struct gguf_text name;
    const char *type; /* "F32", "Q4_1", ...: ggml's name */
    int dims;
    int64_t shape[GGUF_DIMS_MAX]; /* shape[0] is that of neighbours in memory: the columns of a matrix */
    const unsigned char *data;
    size_t bytes;
};

struct gguf {
    const char *name; /* of the file, for messages; borrowed */
    const unsigned char *bytes;
    size_t size;
    struct gguf_value *values; /* [value_count], by key */
    int value_count;
    struct gguf_tensor *tensors; /* [tensor_count], in the file's order */
    int tensor_count;
};

/* Reads bytes[0 .. size), which must stay as they are until release. STATUS_DATA: the line names the file and what was expected. */
enum status gguf_read(const char *name, const void *bytes, size_t size, struct gguf *gguf);
void gguf_release(struct gguf *gguf);

/* NULL when there is no such key. */
const struct gguf_value *gguf_find(const struct gguf *gguf, const char *key);
/* Each takes a key's value and leaves the output as it is where an optional key is absent. An integer may have any of the file's integer
 * types, a real either of two. STATUS_DATA (logged) when it is absent, of another type, or out of range. */
enum status gguf_integer(const struct gguf *gguf, const char *key, enum gguf_need need, int64_t least, int64_t most, int64_t *value);
enum status gguf_real(const struct gguf *gguf, const char *key, enum gguf_need need, double least, double most, double *value);
enum status gguf_flag(const struct gguf *gguf, const char *key, int *value);
enum status gguf_string(const struct gguf *gguf, const char *key, enum gguf_need need, struct gguf_text *value);
/* An integer or a real; 0 where the key is absent or something else. */
double gguf_number(const struct gguf *gguf, const char *key);
/* A list of elements of one type. */
enum status gguf_list(const struct gguf *gguf, const char *key, enum gguf_type type, enum gguf_need need, const struct gguf_value **list);
/* The text at *at of a list of texts, whose data is the first; *at goes on to the next. */
struct gguf_text gguf_next_text(const unsigned char **at);

int gguf_text_is(struct gguf_text text, const char *expected);
/* Logs what the key holds and what was expected; returns STATUS_DATA. */
enum status gguf_refuse(const struct gguf *gguf, const char *key, const char *expected);

#endif
