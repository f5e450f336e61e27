#include "common/corpus/corpus_rows.h"

#include "common/base/try.h"
#include <string.h>

struct corpus_rows_kind {
    const char *made_by;
    enum status (*open)(const char *path, struct corpus_rows *rows);
    int (*row)(const struct corpus_rows *rows, const int32_t *last, int count, int vocab, float *logits);
    void (*close)(struct corpus_rows *rows);
};

static enum status open_table(const char *path, struct corpus_rows *rows)
{
    const struct ngram_header *header = &rows->of.table.header;

    TRY(ngram_table_open(path, &rows->of.table));
    rows->vocab = (int)header->vocab;
    rows->tokenizer = header->tokenizer;
    rows->digest = header->digest;
    return STATUS_OK;
}

static int row_of_table(const struct corpus_rows *rows, const int32_t *last, int count, int vocab, float *logits)
{
    ngram_table_row(&rows->of.table, last, count, vocab, logits);
    return 1;
}

static void close_table(struct corpus_rows *rows)
{
    ngram_table_close(&rows->of.table);
}

static enum status open_store(const char *path, struct corpus_rows *rows)
{
    const struct datastore_header *header = &rows->of.store.header;

    TRY(datastore_open(path, &rows->of.store));
    rows->vocab = (int)header->vocab;
    rows->tokenizer = header->tokenizer;
    rows->digest = header->digest;
    return STATUS_OK;
}

static int row_of_store(const struct corpus_rows *rows, const int32_t *last, int count, int vocab, float *logits)
{
    return datastore_row(&rows->of.store, last, count, vocab, logits) > 0;
}

static void close_store(struct corpus_rows *rows)
{
    datastore_close(&rows->of.store);
}

static int row_of_nothing(const struct corpus_rows *rows, const int32_t *last, int count, int vocab, float *logits)
{
    uint32_t behind = count > 0 ? (uint32_t)last[count - 1] * 40503 : 0;

    (void)rows;
    for (int token = 0; token < vocab; token++) {
        uint32_t mixed = ((uint32_t)token + behind) * 2654435761u;

        logits[token] = (float)((mixed ^ mixed >> 15) >> 8) * 0x1p-34f;
    }
    return 1;
}

static void close_nothing(struct corpus_rows *rows)
{
    (void)rows;
}

static const struct corpus_rows_kind nothing = {.row = row_of_nothing, .close = close_nothing};
static const struct corpus_rows_kind kinds[] = {
    {"ngram", open_table, row_of_table, close_table},
    {"datastore", open_store, row_of_store, close_store},
};

enum status corpus_rows_open(const char *path, const char *made_by, struct corpus_rows *rows)
{
    size_t which = 0;

    *rows = (struct corpus_rows){0};
    while (strcmp(kinds[which].made_by, made_by) != 0)
        which++;
    TRY(kinds[which].open(path, rows));
    rows->kind = &kinds[which];
    return STATUS_OK;
}

void corpus_rows_random(int vocab, uint64_t tokenizer, struct corpus_rows *rows)
{
    *rows = (struct corpus_rows){.kind = &nothing, .vocab = vocab, .tokenizer = tokenizer};
}

void corpus_rows_close(struct corpus_rows *rows)
{
    if (rows->kind != NULL)
        rows->kind->close(rows);
    rows->kind = NULL;
}

int corpus_rows_row(const struct corpus_rows *rows, const int32_t *last, int count, int vocab, float *logits)
{
    return rows->kind->row(rows, last, count, vocab, logits);
}
