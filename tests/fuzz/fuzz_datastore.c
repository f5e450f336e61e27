/* Any bytes as a datastore, signed as its writer would: it is refused, or every row behind any text is one of numbers. */
#include "common/corpus/datastore.h"
#include "tests/fuzz/fuzz_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The digest that fits, for one that does not would end every run there. */
static void sign(uint8_t *bytes, size_t size)
{
    struct datastore_header header;

    memcpy(&header, bytes, sizeof header);
    header.digest = datastore_digest(&header, bytes + sizeof header, size - sizeof header);
    memcpy(bytes, &header, sizeof header);
}

static void ask(const struct datastore *store)
{
    int vocab = store->header.vocab < 512 ? (int)store->header.vocab : 512;
    int32_t last[DATASTORE_LONGEST + 3];
    float logits[512];

    for (int turn = 0; turn < 8; turn++) {
        int count = turn * 5;

        for (int i = 0; i < count; i++) /* often what the store has */
            last[i] = store->header.places > (uint64_t)(turn + i) ? store->token[turn + i] : i;
        if (datastore_row(store, last, count, vocab, logits) > 0)
            for (int token = 0; token < vocab; token++)
                if (!isfinite(logits[token]))
                    abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    struct datastore store;

    if (copy == NULL)
        abort();
    memcpy(copy, bytes, size);
    if (size >= sizeof(struct datastore_header))
        sign(copy, size);
    if (datastore_open(fuzz_file(0, copy, size), &store) == STATUS_OK) {
        ask(&store);
        datastore_close(&store);
    }
    free(copy);
    return 0;
}
