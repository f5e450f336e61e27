#include "common/text/bpe.h"

#include "common/base/log.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include <string.h>

/* Symbols form a list in the order of the text; the merged-away right one has token -1. */
struct symbol {
    int32_t token, previous, next; /* previous and next: index or -1 */
};

static size_t character_length(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

static void push_symbol(struct bpe_work *work, int32_t token)
{
    struct symbol *symbols = (struct symbol *)(void *)work->symbols.data;
    int32_t at = (int32_t)(work->symbols.count / sizeof *symbols);

    symbols[at] = (struct symbol){.token = token, .previous = at - 1, .next = at + 1};
    work->symbols.count += sizeof *symbols;
}

static int byte_tokens_exist(const struct bpe *bpe, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bpe->byte_token[(unsigned char)bytes[i]] < 0)
            return 0;
    return 1;
}

static void push_unknown(const struct bpe *bpe, struct bpe_work *work)
{
    if (bpe->unknown >= 0)
        push_symbol(work, bpe->unknown);
    else
        log_file_warning("a text has characters or bytes for which the tokenizer has no token: they are lost (--verbose names the bytes)");
}

static void start_with_bytes(const struct bpe *bpe, struct bpe_work *work, const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        int32_t token = bpe->byte_token[(unsigned char)word[i]];

        if (token >= 0)
            push_symbol(work, token);
        else
            push_unknown(bpe, work);
    }
}

static void start_with_characters(const struct bpe *bpe, struct bpe_work *work, const char *word, size_t length)
{
    int after_unknown = 0;

    for (size_t i = 0, count; i < length; i += count) {
        int32_t token;

        count = character_length((unsigned char)word[i]);
        token = piece_table_find_key(&bpe->pieces, word + i, count);
        if (token < 0 && byte_tokens_exist(bpe, word + i, count)) {
            start_with_bytes(bpe, work, word + i, count);
            after_unknown = 0;
            continue;
        }
        if (token >= 0)
            push_symbol(work, token);
        else if (!(bpe->fuse_unknown && after_unknown))
            push_unknown(bpe, work);
        after_unknown = token < 0;
    }
}

static void sift_down(uint64_t *heap, size_t count, size_t at)
{
    uint64_t moving = heap[at];

    for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && heap[child + 1] < heap[child])
            child++;
        if (moving <= heap[child])
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

static void sift_up(uint64_t *heap, size_t at)
{
    uint64_t moving = heap[at];

    while (at > 0 && moving < heap[(at - 1) / 2]) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = moving;
}

/* The merge of the symbol at `left` with its neighbour, or NULL. */
static const struct merge *merge_at(const struct bpe *bpe, const struct symbol *symbols, int32_t left)
{
    if (left < 0 || symbols[left].token < 0 || symbols[left].next < 0)
        return NULL;
    return merge_table_find(&bpe->merges, symbols[left].token, symbols[symbols[left].next].token);
}

/* Room for the heap is there: each merge takes one entry out and puts at most two in. */
static void push_merge(const struct bpe *bpe, const struct symbol *symbols, int32_t left, uint64_t *heap, size_t *count)
{
    const struct merge *merge = merge_at(bpe, symbols, left);

    if (merge == NULL)
        return;
    heap[*count] = (uint64_t)merge->rank << 32 | (uint32_t)left;
    sift_up(heap, (*count)++);
}

static void merge_symbols(const struct bpe *bpe, struct symbol *symbols, int32_t symbol_count, uint64_t *heap)
{
    size_t count = 0;

    for (int32_t i = 0; i + 1 < symbol_count; i++) {
        const struct merge *merge = merge_at(bpe, symbols, i);

        if (merge != NULL)
            heap[count++] = (uint64_t)merge->rank << 32 | (uint32_t)i;
    }
    for (size_t i = count / 2; i-- > 0;)
        sift_down(heap, count, i);
    while (count > 0) {
        uint64_t top = heap[0];
        int32_t left = (int32_t)(uint32_t)top;
        const struct merge *merge = merge_at(bpe, symbols, left);

        heap[0] = heap[--count];
        if (count > 0)
            sift_down(heap, count, 0);
        if (merge == NULL || merge->rank != top >> 32)
            continue; /* one of the two has merged otherwise since */
        symbols[symbols[left].next].token = -1;
        symbols[left].token = merge->token;
        symbols[left].next = symbols[symbols[left].next].next;
        if (symbols[left].next >= 0)
            symbols[symbols[left].next].previous = left;
        push_merge(bpe, symbols, symbols[left].previous, heap, &count);
        push_merge(bpe, symbols, left, heap, &count);
    }
}

static enum status encode_word(const struct bpe *bpe, struct bpe_work *work, const char *word, size_t length, struct byte_buffer *tokens)
{
    struct symbol *symbols;
    int32_t count;

    work->symbols.count = 0;
    TRY(byte_buffer_reserve(&work->symbols, length * sizeof *symbols));
    TRY(byte_buffer_reserve(&work->heap, 2 * length * sizeof(uint64_t)));
    if (bpe->byte_level)
        start_with_bytes(bpe, work, word, length);
    else
        start_with_characters(bpe, work, word, length);
    symbols = (struct symbol *)(void *)work->symbols.data;
    count = (int32_t)(work->symbols.count / sizeof *symbols);
    if (count == 0)
        return STATUS_OK;
    symbols[count - 1].next = -1;
    merge_symbols(bpe, symbols, count, (uint64_t *)(void *)work->heap.data);
    for (int32_t i = 0; i >= 0; i = symbols[i].next)
        TRY(byte_buffer_append(tokens, &symbols[i].token, sizeof symbols[i].token));
    return STATUS_OK;
}

/* Length of the word at the front of piece[0 .. length): up to the next separator that follows something else. */
static size_t word_length(const struct bpe *bpe, const char *piece, size_t length)
{
    size_t size = bpe->separator_length, at = 0;

    if (size == 0)
        return length;
    while (length - at >= size && memcmp(piece + at, bpe->separator, size) == 0)
        at += size;
    while (at < length) {
        const char *found = memchr(piece + at, bpe->separator[0], length - at);

        if (found == NULL)
            return length;
        at = (size_t)(found - piece);
        if (length - at >= size && memcmp(found, bpe->separator, size) == 0)
            return at;
        at++;
    }
    return length;
}

enum status bpe_encode(const struct bpe *bpe, struct bpe_work *work, const char *piece, size_t length, struct byte_buffer *tokens)
{
    int32_t whole = bpe->ignore_merges ? piece_table_find_key(&bpe->pieces, piece, length) : -1;

    if (length > BPE_PIECE_BYTES) {
        log_error("a piece of text of %zu bytes; a tokenizer's model takes at most %d", length, BPE_PIECE_BYTES);
        return STATUS_DATA;
    }
    if (whole >= 0)
        return byte_buffer_append(tokens, &whole, sizeof whole);
    for (size_t at = 0, count; at < length; at += count) {
        progress_made(NULL);
        count = word_length(bpe, piece + at, length - at);
        TRY(encode_word(bpe, work, piece + at, count, tokens));
    }
    return STATUS_OK;
}

/* Whether some merged piece has `separator` behind something else. */
static int crosses(const struct bpe *bpe, const char *separator, size_t size)
{
    for (size_t slot = 0; slot <= bpe->merges.mask; slot++) {
        const struct piece *piece;
        const char *key;
        int in_word = 0;

        if (bpe->merges.merges[slot].pair == MERGE_TABLE_NONE)
            continue;
        piece = &bpe->pieces.pieces[bpe->merges.merges[slot].token];
        key = bpe->pieces.bytes.data + piece->key;
        for (size_t i = 0; i < piece->key_length;) {
            int is = piece->key_length - i >= size && memcmp(key + i, separator, size) == 0;

            if (is && in_word)
                return 1;
            in_word = !is;
            i += is ? size : 1;
        }
    }
    return 0;
}

void bpe_index(struct bpe *bpe)
{
    static const char *const separators[] = {"\xE2\x96\x81", " "};

    for (size_t i = 0; !bpe->byte_level && bpe->separator_length == 0 && i < sizeof separators / sizeof separators[0]; i++) {
        size_t size = strlen(separators[i]);

        /* The separator needs a piece of its own: an unknown one could fuse with what is in front. */
        if (piece_table_find_key(&bpe->pieces, separators[i], size) < 0 || crosses(bpe, separators[i], size))
            continue;
        memcpy(bpe->separator, separators[i], size);
        bpe->separator_length = size;
    }
}

void bpe_work_release(struct bpe_work *work)
{
    byte_buffer_release(&work->symbols);
    byte_buffer_release(&work->heap);
}

void bpe_release(struct bpe *bpe)
{
    piece_table_release(&bpe->pieces);
    merge_table_release(&bpe->merges);
}
