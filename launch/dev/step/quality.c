#include "launch/dev/step/quality.h"

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/try.h"
#include "common/text/tokenizer.h"
#include "launch/dev/step/engine.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = DIFFERENCE_CHUNK, LARGEST_TEXT = 1 << 24 };

static enum status read_tokens(const char *model, const char *path, int32_t **tokens, int *count)
{
    struct tokenizer *tokenizer;
    char from[PATH_MAX], *text = malloc(LARGEST_TEXT);
    FILE *file = text != NULL ? fopen(path, "r") : NULL;
    size_t size;
    enum status status;

    if (file == NULL) {
        log_error("%s: %s", path, text == NULL ? "no memory" : strerror(errno));
        free(text);
        return STATUS_NOINPUT;
    }
    size = fread(text, 1, LARGEST_TEXT, file);
    fclose(file);
    paths_tokenizer(model, from, sizeof from);
    status = tokenizer_open(from, 0, &tokenizer);
    if (status == STATUS_OK) {
        status = tokenizer_encode(tokenizer, text, size, 0, tokens, count, NULL);
        tokenizer_close(tokenizer);
    }
    free(text);
    return status;
}

static enum status compare_chunk(struct engine *exact, struct engine *other, const int32_t *tokens, int positions, struct difference *difference)
{
    int vocab = exact->model->vocab;

    for (int at = 0; at < CHUNK; at += BACKEND_MAX_ROWS) {
        int asked = at < CHUNK / 2 ? 0 : BACKEND_MAX_ROWS;

        TRY(engine_step(exact, tokens + at, at, BACKEND_MAX_ROWS, asked));
        TRY(engine_step(other, tokens + at, at, BACKEND_MAX_ROWS, asked));
        for (int i = 0; i < asked && difference->positions < positions; i++)
            difference_add(difference, exact->logits + (size_t)i * (size_t)vocab, other->logits + (size_t)i * (size_t)vocab, vocab);
    }
    return STATUS_OK;
}

enum status quality_measure(const char *reference, const char *model, enum cache_choice cache, const char *text, int threads, int positions,
                            struct difference *difference)
{
    struct engine exact = {0}, other = {0};
    int32_t *tokens = NULL;
    int count = 0, chunks = (positions + CHUNK / 2 - 1) / (CHUNK / 2);
    enum status status;

    *difference = (struct difference){0};
    TRY(read_tokens(model, text, &tokens, &count));
    status = count >= chunks * CHUNK ? STATUS_OK : STATUS_DATA;
    if (status != STATUS_OK)
        log_error("%s has %d tokens, expected %d for %d positions", text, count, chunks * CHUNK, positions);
    else if ((status = engine_open(&exact, reference, threads, CHUNK, CACHE_F32)) == STATUS_OK &&
             (status = engine_open(&other, model, threads, CHUNK, cache)) == STATUS_OK)
        for (int i = 0; i < chunks && status == STATUS_OK; i++)
            status = compare_chunk(&exact, &other, tokens + i * CHUNK, positions, difference);
    if (other.model != NULL)
        engine_close(&other);
    if (exact.model != NULL)
        engine_close(&exact);
    free(tokens);
    return status;
}
