#include "tests/support/long_model.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { VOCAB = LONG_MODEL_VOCAB, DIM = LONG_MODEL_HEADS * LONG_MODEL_HEAD_DIM, FFN = 8, PATH_BYTES = 1024 };

static FILE *file_of(const char *folder, const char *name)
{
    char path[PATH_BYTES];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "wb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    return file;
}

static void write_numbers(FILE *file, uint32_t *state, int count, float scale)
{
    for (int i = 0; i < count; i++) {
        float value;

        *state = *state * 1664525 + 1013904223;
        value = scale * ((float)(*state >> 8) * 0x1p-23f - 1.0f);
        fwrite(&value, sizeof value, 1, file);
    }
}

static void write_ones(FILE *file, int count)
{
    const float one = 1;

    for (int i = 0; i < count; i++)
        fwrite(&one, sizeof one, 1, file);
}

static void write_tokenizer(FILE *file)
{
    const int32_t longest = 1, length = 1;
    const float score = 0;

    fwrite(&longest, sizeof longest, 1, file);
    for (int i = 0; i < VOCAB; i++) {
        char piece = (char)('A' + i);

        fwrite(&score, sizeof score, 1, file);
        fwrite(&length, sizeof length, 1, file);
        fwrite(&piece, 1, 1, file);
    }
    fclose(file);
}

void long_model_write(const char *folder)
{
    const int32_t header[] = {DIM, FFN, 1, LONG_MODEL_HEADS, LONG_MODEL_HEADS, -VOCAB, LONG_MODEL_CONTEXT}; /* a negative size: a head of its own */
    FILE *file = file_of(folder, "long.bin");
    uint32_t state = 7;

    fwrite(header, sizeof header, 1, file);
    write_numbers(file, &state, VOCAB * DIM, 1);
    write_ones(file, DIM);
    write_numbers(file, &state, 4 * DIM * DIM, 0.8f);
    write_ones(file, DIM);
    write_numbers(file, &state, 3 * DIM * FFN, 0.6f);
    write_ones(file, DIM);
    write_ones(file, LONG_MODEL_CONTEXT * LONG_MODEL_HEAD_DIM); /* room for RoPE's tables, not read */
    write_numbers(file, &state, VOCAB * DIM, 1);
    fclose(file);
    write_tokenizer(file_of(folder, "tokenizer.bin"));
}
