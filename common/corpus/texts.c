#include "common/corpus/texts.h"

#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/progress.h"
#include <stdlib.h>
#include <string.h>

enum status texts_add(struct texts *texts, const int32_t *tokens, size_t count)
{
    size_t need = texts->count + count + 2; /* what is none in front, and behind the last text */

    for (size_t i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= TEXTS_VOCAB_MOST) {
            log_error("a token is %d, expected 0 to %d", tokens[i], TEXTS_VOCAB_MOST - 1);
            return STATUS_DATA;
        }
    if (need > TEXTS_MOST) {
        log_error("the texts have %zu tokens, expected at most %d", need, TEXTS_MOST);
        return STATUS_DATA;
    }
    if (need > texts->room) {
        int32_t *grown = realloc(texts->token, 2 * need * sizeof *grown);

        if (grown == NULL) {
            log_error("no memory for %zu tokens of texts", need);
            return STATUS_INTERNAL;
        }
        texts->token = grown;
        texts->room = 2 * need;
    }
    texts->token[texts->count++] = TEXTS_NONE;
    memcpy(texts->token + texts->count, tokens, count * sizeof *tokens);
    texts->count += count;
    texts->tokens += count;
    texts->token[texts->count] = TEXTS_NONE;
    return STATUS_OK;
}

enum status texts_check(const struct texts *texts, int vocab)
{
    for (size_t i = 0; i < texts->count; i++)
        if (texts->token[i] >= vocab) {
            log_error("a token is %d, expected less than the %d of the tokenizer", texts->token[i], vocab);
            return STATUS_DATA;
        }
    if (texts->tokens > 0)
        return STATUS_OK;
    log_error("the texts have no token, expected one at least");
    return STATUS_DATA;
}

void texts_release(struct texts *texts)
{
    free(texts->token);
    *texts = (struct texts){0};
}

int texts_compare(const struct texts *texts, size_t one, size_t other, int most)
{
    const int32_t *left = texts->token + one, *right = texts->token + other;

    for (int i = 0; i < most; i++) {
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
        if (i > 0 && left[i] == TEXTS_NONE)
            break; /* both end here */
    }
    return 0;
}

struct order {
    const struct texts *texts;
    int most;
};

static int compare_places(const void *one, const void *other, void *opaque)
{
    const struct order *order = opaque;
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    int compared = texts_compare(order->texts, a, b, order->most);

    return compared != 0 ? compared : a < b ? -1 : a > b;
}

void texts_sort(const struct texts *texts, uint32_t *places, size_t count, int most)
{
    struct order order = {texts, most};

    qsort_r(places, count, sizeof *places, compare_places, &order);
}

uint64_t texts_digest(const void *bytes, size_t count, uint64_t seed)
{
    const unsigned char *at = bytes;
    size_t part;

    do {
        part = count < TEXTS_PART ? count : TEXTS_PART;
        seed = digest_bytes(at, part, seed);
        progress_made("looking at what was made of texts");
        at += part;
        count -= part;
    } while (count > 0);
    return seed;
}
