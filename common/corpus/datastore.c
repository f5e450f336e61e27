#include "common/corpus/datastore.h"

#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/math32.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct datastore_header) == 48, "as it is in the file");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "as numbers are in the file");

enum { WORD = 4, OFTEN = 1 << 22 };

uint64_t datastore_digest(const struct datastore_header *header, const void *body, size_t bytes)
{
    return texts_digest(body, bytes, digest_bytes(header, offsetof(struct datastore_header, digest), 0));
}

enum status datastore_make(const struct texts *texts, int vocab, uint64_t tokenizer, void **bytes, size_t *size)
{
    struct datastore_header header = {
        .version = DATASTORE_VERSION, .vocab = (uint32_t)vocab, .tokenizer = tokenizer, .places = texts->count + 1, .sorted = texts->tokens};
    size_t body = (texts->count + 1 + texts->tokens) * WORD, next = 0;
    unsigned char *made;
    uint32_t *sorted;

    TRY(texts_check(texts, vocab));
    memcpy(header.magic, DATASTORE_MAGIC, sizeof header.magic);
    made = malloc(sizeof header + body);
    if (made == NULL) {
        log_error("no memory for a datastore of %zu bytes", sizeof header + body);
        return STATUS_INTERNAL;
    }
    memcpy(made + sizeof header, texts->token, (texts->count + 1) * WORD);
    sorted = (uint32_t *)(void *)(made + sizeof header + (texts->count + 1) * WORD);
    for (size_t place = 0; place < texts->count; place++)
        if (texts->token[place] != TEXTS_NONE)
            sorted[next++] = (uint32_t)place;
    texts_sort(texts, sorted, texts->tokens, DATASTORE_LONGEST + 1);
    header.digest = datastore_digest(&header, made + sizeof header, body);
    memcpy(made, &header, sizeof header);
    *bytes = made;
    *size = sizeof header + body;
    return STATUS_OK;
}

static enum status refuse(const struct datastore *store, const char *what)
{
    log_error("%s: %s", store->file.path, what);
    return STATUS_DATA;
}

/* Every place that is named has a token, every token is one, and behind the last there is none. */
static int fits(const struct datastore *store)
{
    if (store->token[store->header.places - 1] != TEXTS_NONE)
        return 0;
    for (size_t i = 0; i < store->header.places; i++)
        if (store->token[i] < TEXTS_NONE || store->token[i] >= (int32_t)store->header.vocab)
            return 0;
    for (size_t i = 0; i < store->header.sorted; i++) {
        if (i % OFTEN == 0)
            progress_made("looking at what was made of texts");
        if (store->sorted[i] >= store->header.places || store->token[store->sorted[i]] == TEXTS_NONE)
            return 0;
    }
    return 1;
}

static enum status read_file(struct datastore *store)
{
    struct datastore_header *header = &store->header;
    size_t body;

    if (store->file.size < sizeof *header)
        return refuse(store, "too short for a datastore, expected a file that `tandem datastore` wrote");
    body = store->file.size - sizeof *header;
    memcpy(header, store->file.bytes, sizeof *header);
    if (memcmp(header->magic, DATASTORE_MAGIC, sizeof header->magic) != 0)
        return refuse(store, "no datastore, expected a file that `tandem datastore` wrote");
    if (header->version != DATASTORE_VERSION) {
        log_error("%s: a datastore of version %u, expected %d: make it anew with `tandem datastore`", store->file.path, header->version,
                  DATASTORE_VERSION);
        return STATUS_DATA;
    }
    if (header->vocab < 1 || header->vocab > TEXTS_VOCAB_MOST)
        return refuse(store, "damaged: its header has a vocabulary that no datastore has");
    if (header->places < 1 || header->places > TEXTS_MOST || header->sorted > header->places || body != (header->places + header->sorted) * WORD) {
        log_error("%s: cut or damaged: %zu bytes long, which is not what its header says", store->file.path, store->file.size);
        return STATUS_DATA;
    }
    if (header->digest != datastore_digest(header, store->file.bytes + sizeof *header, body))
        return refuse(store, "damaged: it does not have the digest that it was written with");
    store->token = (const int32_t *)(const void *)(store->file.bytes + sizeof *header);
    store->sorted = (const uint32_t *)(const void *)(store->token + header->places);
    return fits(store) ? STATUS_OK : refuse(store, "damaged: a token or a place is none");
}

enum status datastore_open(const char *path, struct datastore *store)
{
    enum status status;

    *store = (struct datastore){0};
    TRY(file_map_open(path, &store->file));
    status = read_file(store);
    if (status != STATUS_OK)
        datastore_close(store);
    return status;
}

void datastore_close(struct datastore *store)
{
    if (store->file.path != NULL)
        file_map_close(&store->file);
    *store = (struct datastore){0};
}

/* What stands `behind` tokens behind a place; none beyond the end. */
static int32_t token_at(const struct datastore *store, size_t place, int behind)
{
    return place + (size_t)behind < store->header.places ? store->token[place + (size_t)behind] : TEXTS_NONE;
}

static int compare_with(const struct datastore *store, size_t place, const int32_t *tokens, int count)
{
    for (int i = 0; i < count; i++) {
        int32_t token = token_at(store, place, i);

        if (token != tokens[i])
            return token < tokens[i] ? -1 : 1;
    }
    return 0;
}

/* Edges among the sorted places: before the first place where the tokens stand and are followed (where a text ends behind them is sorted first), and
 * behind the last where they stand. */
enum edge { FOLLOWED, END };
static int is_before(const struct datastore *store, size_t place, const int32_t *tokens, int count, enum edge edge)
{
    int order = compare_with(store, place, tokens, count);

    return order != 0 ? order < 0 : edge == END || (edge == FOLLOWED && token_at(store, place, count) == TEXTS_NONE);
}

static size_t find_edge(const struct datastore *store, const int32_t *tokens, int count, enum edge edge, size_t low)
{
    size_t high = store->header.sorted;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (is_before(store, store->sorted[middle], tokens, count, edge))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Those sorted places where the tokens stand and are followed. Returns whether there is one. */
static int find(const struct datastore *store, const int32_t *tokens, int count, size_t *first, size_t *last)
{
    *first = find_edge(store, tokens, count, FOLLOWED, 0);
    *last = find_edge(store, tokens, count, END, *first);
    return *first < *last;
}

/* The longest end of a text that is there, by halving: where a longer one is, a shorter one is, too. */
static int find_longest(const struct datastore *store, const int32_t *last, int count, size_t *first, size_t *end)
{
    int low = DATASTORE_LEAST - 1, high = count < DATASTORE_LONGEST ? count : DATASTORE_LONGEST;

    while (low < high) {
        int middle = (low + high + 1) / 2;

        if (find(store, last + count - middle, middle, first, end))
            low = middle;
        else
            high = middle - 1;
    }
    return low >= DATASTORE_LEAST && find(store, last + count - low, low, first, end) ? low : 0;
}

int datastore_row(const struct datastore *store, const int32_t *last, int count, int vocab, float *logits)
{
    size_t first, end, seen;
    int length = find_longest(store, last, count, &first, &end), alike = 0, known = 0;
    int32_t token = TEXTS_NONE;

    if (length == 0)
        return 0;
    for (int i = 0; i < vocab; i++)
        logits[i] = DATASTORE_FLOOR;
    seen = end - first < DATASTORE_SEEN ? end - first : DATASTORE_SEEN;
    for (size_t i = 0; i <= seen; i++) { /* sorted, so what is alike lies side by side */
        int32_t next = i < seen ? token_at(store, store->sorted[first + i * (end - first) / seen], length) : TEXTS_NONE;

        if (next == token) {
            alike++;
            continue;
        }
        if (token >= 0 && token < vocab) {
            logits[token] = math32_log((float)alike / (float)seen);
            known = 1;
        }
        token = next;
        alike = 1;
    }
    return known ? length : 0;
}
