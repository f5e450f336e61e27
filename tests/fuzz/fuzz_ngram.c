/* Any bytes as a table of n-grams, signed as its writer would: it is refused, or every row behind any text is one of numbers. */
#include "common/corpus/ngram_table.h"
#include "tests/fuzz/fuzz_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The digest that fits, for one that does not would end every run there. */
static void sign(uint8_t *bytes, size_t size)
{
    struct ngram_header header;

    memcpy(&header, bytes, sizeof header);
    if (header.order < 1 || header.order > NGRAM_ORDER || ngram_table_bytes(&header) != size - sizeof header)
        return;
    header.digest = ngram_table_digest(&header, bytes + sizeof header);
    memcpy(bytes, &header, sizeof header);
}

static void ask(const struct ngram_table *table)
{
    int vocab = (int)table->header.vocab;
    float *logits = malloc((size_t)vocab * sizeof *logits);
    int32_t last[NGRAM_CONTEXT];

    if (logits == NULL)
        abort();
    for (int turn = 0; turn < 8; turn++) {
        for (int i = 0; i < NGRAM_CONTEXT; i++)
            last[i] = (turn + i * (turn & 3)) % vocab;
        ngram_table_row(table, last, turn % (NGRAM_CONTEXT + 1), vocab, logits);
        for (int token = 0; token < vocab; token++)
            if (!isfinite(logits[token]))
                abort();
    }
    free(logits);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    struct ngram_table table;

    if (copy == NULL)
        abort();
    memcpy(copy, bytes, size);
    if (size >= sizeof(struct ngram_header))
        sign(copy, size);
    if (ngram_table_open(fuzz_file(0, copy, size), &table) == STATUS_OK) {
        ask(&table);
        ngram_table_close(&table);
    }
    free(copy);
    return 0;
}
