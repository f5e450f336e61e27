#include "common/corpus/ngram_table.h"

#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/math32.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct ngram_header) == 48 + 16 * NGRAM_CONTEXT, "as it is in the file");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "as numbers are in the file");

enum { WORD = 4 };

static size_t words_of_level(const struct ngram_header *header, int length)
{
    size_t contexts = header->contexts[length - 1], followers = header->followers[length - 1];

    return contexts * (size_t)(length + 2) + 1 + 2 * followers;
}

size_t ngram_table_bytes(const struct ngram_header *header)
{
    size_t words = header->vocab;

    for (int length = 1; length < (int)header->order; length++) {
        if (header->contexts[length - 1] > UINT32_MAX || header->followers[length - 1] > UINT32_MAX)
            return 0;
        words += words_of_level(header, length);
    }
    return words * WORD;
}

uint64_t ngram_table_digest(const struct ngram_header *header, const void *body)
{
    return texts_digest(body, ngram_table_bytes(header), digest_bytes(header, offsetof(struct ngram_header, digest), 0));
}

static void *take(unsigned char **at, size_t words)
{
    void *taken = *at;

    *at += words * WORD;
    return taken;
}

void ngram_table_lay_out(const struct ngram_header *header, void *bytes, struct ngram_body *body)
{
    unsigned char *at = bytes;

    body->alone = take(&at, header->vocab);
    for (int length = 1; length < (int)header->order; length++) {
        size_t contexts = header->contexts[length - 1], followers = header->followers[length - 1];
        struct ngram_level *level = &body->level[length - 1];

        level->context = take(&at, contexts * (size_t)length);
        level->first = take(&at, contexts + 1);
        level->left = take(&at, contexts);
        level->token = take(&at, followers);
        level->share = take(&at, followers);
    }
}

static enum status refuse(const struct ngram_table *table, const char *what)
{
    log_error("%s: %s", table->file.path, what);
    return STATUS_DATA;
}

static enum status check_header(const struct ngram_table *table)
{
    const struct ngram_header *header = &table->header;
    size_t bytes;

    if (memcmp(header->magic, NGRAM_MAGIC, sizeof header->magic) != 0)
        return refuse(table, "no n-gram table, expected a file that `tandem ngram` wrote");
    if (header->version != NGRAM_VERSION) {
        log_error("%s: an n-gram table of version %u, expected %d: make it anew with `tandem ngram`", table->file.path, header->version,
                  NGRAM_VERSION);
        return STATUS_DATA;
    }
    if (header->order < 1 || header->order > NGRAM_ORDER || header->vocab < 1 || header->vocab > TEXTS_VOCAB_MOST)
        return refuse(table, "damaged: its header has an order or a vocabulary that no n-gram table has");
    bytes = ngram_table_bytes(header);
    if (bytes == 0 || table->file.size - sizeof *header != bytes) {
        log_error("%s: cut or damaged: %zu bytes long, expected %zu", table->file.path, table->file.size, bytes + sizeof *header);
        return STATUS_DATA;
    }
    if (header->digest != ngram_table_digest(header, table->file.bytes + sizeof *header))
        return refuse(table, "damaged: it does not have the digest that it was written with");
    return STATUS_OK;
}

static int is_probability(float p)
{
    return p >= 0 && p <= 1; /* NaN is not */
}

/* The tokens behind context c rise, and are tokens. */
static int level_fits(const struct ngram_table *table, int length, size_t c)
{
    const struct ngram_level *level = &table->body.level[length - 1];
    size_t begin = level->first[c], end = level->first[c + 1];

    if (begin > end || end > table->header.followers[length - 1] || !is_probability(level->left[c]))
        return 0;
    for (size_t i = begin; i < end; i++)
        if (level->token[i] < 0 || level->token[i] >= (int32_t)table->header.vocab || (i > begin && level->token[i - 1] >= level->token[i]) ||
            !is_probability(level->share[i]))
            return 0;
    return 1;
}

/* A digest says that nothing happened to the file, not that its writer meant well. */
static enum status check_body(const struct ngram_table *table)
{
    for (size_t i = 0; i < table->header.vocab; i++)
        if (!is_probability(table->body.alone[i]))
            return refuse(table, "damaged: a token alone has no probability");
    for (int length = 1; length < (int)table->header.order; length++) {
        const struct ngram_level *level = &table->body.level[length - 1];
        size_t contexts = table->header.contexts[length - 1];
        int fits = level->first[0] == 0 && level->first[contexts] == table->header.followers[length - 1];

        for (size_t c = 0; c < contexts; c++)
            fits &= level_fits(table, length, c);
        if (!fits)
            return refuse(table, "damaged: what followed a context does not fit");
        progress_made("looking at what was made of texts");
    }
    return STATUS_OK;
}

static enum status read_file(struct ngram_table *table)
{
    if (table->file.size < sizeof table->header)
        return refuse(table, "too short for an n-gram table, expected a file that `tandem ngram` wrote");
    memcpy(&table->header, table->file.bytes, sizeof table->header);
    TRY(check_header(table));
    ngram_table_lay_out(&table->header, (void *)(uintptr_t)(table->file.bytes + sizeof table->header), &table->body);
    TRY(check_body(table));
    table->log_alone = malloc((size_t)table->header.vocab * sizeof *table->log_alone);
    if (table->log_alone == NULL) {
        log_error("no memory for the n-gram table %s", table->file.path);
        return STATUS_INTERNAL;
    }
    for (size_t i = 0; i < table->header.vocab; i++)
        table->log_alone[i] = math32_log(table->body.alone[i]);
    return STATUS_OK;
}

enum status ngram_table_open(const char *path, struct ngram_table *table)
{
    enum status status;

    *table = (struct ngram_table){0};
    TRY(file_map_open(path, &table->file));
    status = read_file(table);
    if (status != STATUS_OK)
        ngram_table_close(table);
    return status;
}

void ngram_table_close(struct ngram_table *table)
{
    if (table->file.path != NULL)
        file_map_close(&table->file);
    free(table->log_alone);
    *table = (struct ngram_table){0};
}

static int compare_contexts(const int32_t *one, const int32_t *other, int length)
{
    for (int i = 0; i < length; i++)
        if (one[i] != other[i])
            return one[i] < other[i] ? -1 : 1;
    return 0;
}

/* The number of a context of `length` tokens, -1 where it never occurred. */
static int64_t find_context(const struct ngram_table *table, const int32_t *tokens, int length)
{
    const struct ngram_level *level = &table->body.level[length - 1];
    size_t low = 0, high = table->header.contexts[length - 1];

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_contexts(level->context + middle * (size_t)length, tokens, length);

        if (order == 0)
            return (int64_t)middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

/* What followed a longer text followed a shorter one, too, so the tokens behind the newest token are all that are more probable than alone: of these
 * a row has probabilities first, then their logarithms. */
void ngram_table_row(const struct ngram_table *table, const int32_t *last, int count, int vocab, float *logits)
{
    float weight[NGRAM_CONTEXT + 1] = {1}; /* of what is left for shorter texts */
    const struct ngram_level *level = table->body.level;
    int64_t found[NGRAM_CONTEXT];
    int longest = 0;

    while (longest < count && longest < (int)table->header.order - 1 &&
           (found[longest] = find_context(table, last + count - longest - 1, longest + 1)) >= 0)
        longest++;
    for (int l = longest; l > 0; l--)
        weight[longest - l + 1] = weight[longest - l] * level[l - 1].left[found[l - 1]];
    float alone = weight[longest], shift = math32_log(alone);

    for (int token = 0; token < vocab; token++)
        logits[token] = table->log_alone[token] + shift;
    for (int l = 0; l < longest; l++)
        for (uint32_t i = level[l].first[found[l]]; i < level[l].first[found[l] + 1] && level[l].token[i] < vocab; i++) {
            float *to = &logits[level[l].token[i]];

            *to = (l == 0 ? alone * table->body.alone[level[l].token[i]] : *to) + weight[longest - 1 - l] * level[l].share[i];
        }
    if (longest > 0)
        for (uint32_t i = level->first[found[0]]; i < level->first[found[0] + 1] && level->token[i] < vocab; i++) {
            float *to = &logits[level->token[i]];

            *to = math32_log(fmaxf(*to, 0));
        }
}
