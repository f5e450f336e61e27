#include "tests/support/gguf_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 3, U32 = 4, I32 = 5, F32 = 6, BOOL = 7, TEXT = 8, LIST = 9, ALIGNMENT = 32 };

static void *kept(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

static void put(struct gguf_file_part *part, const void *bytes, size_t count)
{
    if (count == 0)
        return;
    if (part->room - part->size < count) {
        part->room = 2 * part->room + count;
        part->bytes = kept(realloc(part->bytes, part->room));
    }
    memcpy(part->bytes + part->size, bytes, count);
    part->size += count;
}

static void put_u32(struct gguf_file_part *part, uint32_t value)
{
    put(part, &value, sizeof value);
}

static void put_u64(struct gguf_file_part *part, uint64_t value)
{
    put(part, &value, sizeof value);
}

static void put_text(struct gguf_file_part *part, const char *text)
{
    put_u64(part, strlen(text));
    put(part, text, strlen(text));
}

static void pad(struct gguf_file_part *part, size_t alignment)
{
    while (part->size % alignment != 0)
        put(part, "", 1);
}

void gguf_file_open(struct gguf_file *file)
{
    *file = (struct gguf_file){.alignment = ALIGNMENT};
}

void gguf_file_close(struct gguf_file *file)
{
    free(file->keys.bytes);
    free(file->directory.bytes);
    free(file->data.bytes);
}

static void begin_key(struct gguf_file *file, const char *key, uint32_t type)
{
    put_text(&file->keys, key);
    put_u32(&file->keys, type);
    file->key_count++;
}

static void begin_list(struct gguf_file *file, const char *key, uint32_t type, size_t count)
{
    begin_key(file, key, LIST);
    put_u32(&file->keys, type);
    put_u64(&file->keys, count);
}

void gguf_file_u32(struct gguf_file *file, const char *key, uint32_t value)
{
    begin_key(file, key, U32);
    put_u32(&file->keys, value);
}

void gguf_file_f32(struct gguf_file *file, const char *key, float value)
{
    begin_key(file, key, F32);
    put(&file->keys, &value, sizeof value);
}

void gguf_file_flag(struct gguf_file *file, const char *key, int value)
{
    char byte = value != 0;

    begin_key(file, key, BOOL);
    put(&file->keys, &byte, 1);
}

void gguf_file_text(struct gguf_file *file, const char *key, const char *text)
{
    begin_key(file, key, TEXT);
    put_text(&file->keys, text);
}

void gguf_file_texts(struct gguf_file *file, const char *key, const char *const *texts, size_t count)
{
    begin_list(file, key, TEXT, count);
    for (size_t i = 0; i < count; i++)
        put_text(&file->keys, texts[i]);
}

void gguf_file_i32s(struct gguf_file *file, const char *key, const int32_t *values, size_t count)
{
    begin_list(file, key, I32, count);
    put(&file->keys, values, count * sizeof *values);
}

void gguf_file_f32s(struct gguf_file *file, const char *key, const float *values, size_t count)
{
    begin_list(file, key, F32, count);
    put(&file->keys, values, count * sizeof *values);
}

void gguf_file_tensor(struct gguf_file *file, const char *name, enum gguf_file_type type, int64_t rows, int64_t columns, const void *data,
                      size_t bytes)
{
    pad(&file->data, file->alignment);
    put_text(&file->directory, name);
    put_u32(&file->directory, rows > 0 ? 2 : 1);
    put_u64(&file->directory, (uint64_t)columns);
    if (rows > 0)
        put_u64(&file->directory, (uint64_t)rows);
    put_u32(&file->directory, type);
    put_u64(&file->directory, file->data.size);
    put(&file->data, data, bytes);
    file->tensor_count++;
}

unsigned char *gguf_file_bytes(const struct gguf_file *file, size_t *size)
{
    struct gguf_file_part whole = {NULL, 0, 0};

    put(&whole, "GGUF", 4);
    put_u32(&whole, VERSION);
    put_u64(&whole, file->tensor_count);
    put_u64(&whole, file->key_count);
    put(&whole, file->keys.bytes, file->keys.size);
    put(&whole, file->directory.bytes, file->directory.size);
    if (file->tensor_count > 0)
        pad(&whole, file->alignment);
    put(&whole, file->data.bytes, file->data.size);
    *size = whole.size;
    return whole.bytes;
}

void gguf_file_write(const struct gguf_file *file, const char *path)
{
    size_t size;
    unsigned char *bytes = gguf_file_bytes(file, &size);
    FILE *to = kept(fopen(path, "wb"));

    if (fwrite(bytes, 1, size, to) != size || fclose(to) != 0)
        abort();
    free(bytes);
}
