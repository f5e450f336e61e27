#include "common/text/tokenizer_bin.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/text/tokenizer_parts.h"
#include "common/text/utf8_stream.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = 4, ENTRY = 8, UNKNOWN = 0, BEGIN = 1, END = 2 };

struct reader {
    const char *name, *bytes;
    size_t count, at;
    int vocab_size;
    uint32_t *ranks; /* [vocab_size], from the scores: the highest score has the lowest rank */
    struct tokenizer *tokenizer;
};

static uint32_t word_at(const char *bytes)
{
    uint32_t word;

    memcpy(&word, bytes, sizeof word);
    return word;
}

/* llama2.c writes the control pieces as "\n<s>\n". */
static enum status put_control(struct reader *reader, int id)
{
    static const char *const names[] = {"<unk>", "<s>", "</s>"};
    struct tokenizer *tokenizer = reader->tokenizer;

    TRY(piece_table_put(&tokenizer->bpe.pieces, id, names[id], strlen(names[id]), names[id], strlen(names[id]), PIECE_SPECIAL));
    return added_tokens_put(&tokenizer->as_written, names[id], strlen(names[id]), id, ADDED_SPECIAL);
}

static enum status put_piece(struct reader *reader, int id, const char *text, size_t length)
{
    struct bpe *bpe = &reader->tokenizer->bpe;
    int byte = tokenizer_parts_byte(text, length);
    char one = (char)byte;

    if (id <= END)
        return put_control(reader, id);
    if (byte < 0)
        return piece_table_put(&bpe->pieces, id, text, length, text, length, length > 0 ? PIECE_KEYED : 0);
    bpe->byte_token[byte] = id;
    return piece_table_put(&bpe->pieces, id, text, length, &one, 1, PIECE_BYTE);
}

static enum status read_piece(struct reader *reader, int id)
{
    size_t left = reader->count - reader->at, length;
    const char *entry = reader->bytes + reader->at;
    uint32_t bits;
    float score;

    if (left < ENTRY || (length = word_at(entry + 4)) > left - ENTRY || length > PIECE_TABLE_BYTES) {
        log_error("%s: piece %d of %d is cut off or longer than %d bytes", reader->name, id, reader->vocab_size, PIECE_TABLE_BYTES);
        return STATUS_DATA;
    }
    bits = word_at(entry);
    memcpy(&score, &bits, sizeof score);
    if (!isfinite(score) || utf8_valid(entry + ENTRY, length) != length) {
        log_error("%s: piece %d has a score that is no number or a text that is not UTF-8", reader->name, id);
        return STATUS_DATA;
    }
    reader->ranks[id] = tokenizer_parts_rank(bits);
    reader->at += ENTRY + length;
    return put_piece(reader, id, entry + ENTRY, length);
}

static enum status read_pieces(struct reader *reader)
{
    for (int id = 0; id < reader->vocab_size; id++)
        TRY(read_piece(reader, id));
    if (reader->at != reader->count) {
        log_error("%s: %zu bytes are left after %d pieces: the model's vocabulary has another size", reader->name,
                  reader->count - reader->at, reader->vocab_size);
        return STATUS_DATA;
    }
    return STATUS_OK;
}

static enum status fill(struct reader *reader)
{
    struct tokenizer *tokenizer = reader->tokenizer;

    TRY(read_pieces(reader));
    tokenizer->bpe.unknown = UNKNOWN;
    tokenizer->before = (struct tokenizer_template){.tokens = {BEGIN}, .count = 1};
    tokenizer->drops_first_space = 1;
    TRY(normalizer_add(&tokenizer->normalizer, NORMALIZER_PREPEND, "", 0, " ", 1));
    TRY(piece_table_index(&tokenizer->bpe.pieces));
    TRY(tokenizer_parts_derive_merges(tokenizer, reader->ranks));
    tokenizer_parts_finish(tokenizer);
    return STATUS_OK;
}

enum status tokenizer_bin_open(const char *name, const char *bytes, size_t count, int vocab_size, struct tokenizer **tokenizer)
{
    struct reader reader = {.name = name, .bytes = bytes, .count = count, .at = HEADER, .vocab_size = vocab_size};
    enum status status = STATUS_INTERNAL;

    if (count < HEADER || vocab_size <= END || vocab_size > PIECE_TABLE_IDS) {
        log_error("%s: a tokenizer.bin of %zu bytes for %d ids: need 3 to %d ids", name, count, vocab_size, PIECE_TABLE_IDS);
        return STATUS_DATA;
    }
    reader.ranks = malloc((size_t)vocab_size * sizeof *reader.ranks);
    if (reader.ranks == NULL)
        log_error("%s: no memory for %d ids", name, vocab_size);
    else
        reader.tokenizer = tokenizer_parts_new();
    if (reader.tokenizer != NULL)
        status = fill(&reader);
    free(reader.ranks);
    if (status != STATUS_OK)
        tokenizer_parts_free(reader.tokenizer);
    else
        *tokenizer = reader.tokenizer;
    return status;
}
