/* A GGUF file made key by key and tensor by tensor. What goes wrong ends the process. */
#ifndef TANDEM_TESTS_SUPPORT_GGUF_FILE_H
#define TANDEM_TESTS_SUPPORT_GGUF_FILE_H

#include <stddef.h>
#include <stdint.h>

/* ggml's numbers of the types that tests write. */
enum gguf_file_type {
    GGUF_FILE_F32 = 0,
    GGUF_FILE_F16 = 1,
    GGUF_FILE_Q4_0 = 2,
    GGUF_FILE_Q4_1 = 3,
    GGUF_FILE_Q5_0 = 6,
    GGUF_FILE_Q5_1 = 7,
    GGUF_FILE_Q8_0 = 8,
    GGUF_FILE_Q2_K = 10,
    GGUF_FILE_Q3_K = 11,
    GGUF_FILE_Q4_K = 12,
    GGUF_FILE_Q5_K = 13,
    GGUF_FILE_Q6_K = 14,
    GGUF_FILE_BF16 = 30
};

struct gguf_file_part {
    unsigned char *bytes;
    size_t size, room;
};

struct gguf_file {
    struct gguf_file_part keys, directory, data;
    uint64_t key_count, tensor_count;
    size_t alignment;
};

void gguf_file_open(struct gguf_file *file);
void gguf_file_close(struct gguf_file *file);

void gguf_file_u32(struct gguf_file *file, const char *key, uint32_t value);
void gguf_file_f32(struct gguf_file *file, const char *key, float value);
void gguf_file_flag(struct gguf_file *file, const char *key, int value);
void gguf_file_text(struct gguf_file *file, const char *key, const char *text);
void gguf_file_texts(struct gguf_file *file, const char *key, const char *const *texts, size_t count);
void gguf_file_i32s(struct gguf_file *file, const char *key, const int32_t *values, size_t count);
void gguf_file_f32s(struct gguf_file *file, const char *key, const float *values, size_t count);

/* A matrix of rows and columns; rows = 0: a vector. */
void gguf_file_tensor(struct gguf_file *file, const char *name, enum gguf_file_type type, int64_t rows, int64_t columns, const void *data,
                      size_t bytes);

/* The whole file, malloc'ed. */
unsigned char *gguf_file_bytes(const struct gguf_file *file, size_t *size);
void gguf_file_write(const struct gguf_file *file, const char *path);

#endif
