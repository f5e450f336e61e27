#include "common/text/tokenizer_gguf.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/file/file_map.h"
#include "common/file/gguf.h"
#include "common/text/byte_level.h"
#include "common/text/gguf_pretokenizer.h"
#include "common/text/tokenizer_parts.h"
#include "common/text/utf8_stream.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MERGES = 2 << 20 };
static const char space_mark[] = "\xE2\x96\x81"; /* U+2581 */

/* tokenizer.ggml.token_type */
enum token_type { TOKEN_NORMAL = 1, TOKEN_UNKNOWN, TOKEN_CONTROL, TOKEN_USER_DEFINED, TOKEN_UNUSED, TOKEN_BYTE };

struct reader {
    const struct gguf *gguf;
    const struct gguf_value *tokens, *types, *scores, *merges; /* scores of SentencePiece, merges of byte-level BPE */
    struct tokenizer *tokenizer;
    struct normalizer spaces; /* U+2581 to a space */
    struct byte_buffer scratch[2];
    uint32_t *ranks; /* [tokens->count], from the scores */
    int add_bos, add_eos;
};

static uint32_t word_at(const struct gguf_value *list, int64_t at)
{
    uint32_t word;

    memcpy(&word, list->data + (size_t)at * sizeof word, sizeof word);
    return word;
}

/* A token that is found in a text before it is cut, and never made by merging. */
static enum status put_added(struct reader *reader, int64_t id, const char *text, size_t length, int special)
{
    struct tokenizer *tokenizer = reader->tokenizer;

    TRY(piece_table_put(&tokenizer->bpe.pieces, id, "", 0, text, length, special ? PIECE_SPECIAL : 0));
    return length == 0 ? STATUS_OK : added_tokens_put(&tokenizer->as_written, text, length, (int32_t)id, special ? ADDED_SPECIAL : 0);
}

static enum status put_byte_level(struct reader *reader, int64_t id, struct gguf_text text)
{
    struct piece_table *pieces = &reader->tokenizer->bpe.pieces;
    char bytes[PIECE_TABLE_BYTES];
    ptrdiff_t count = text.length > sizeof bytes ? -1 : byte_level_decode(text.bytes, text.length, bytes);

    if (count < 0) /* spelled in characters that stand for no byte: nothing merges to it */
        return piece_table_put(pieces, id, "", 0, text.bytes, text.length, 0);
    return piece_table_put(pieces, id, bytes, (size_t)count, bytes, (size_t)count, count > 0 ? PIECE_KEYED : 0);
}

static enum status put_byte(struct reader *reader, int64_t id, struct gguf_text text)
{
    int byte = tokenizer_parts_byte(text.bytes, text.length);
    char one = (char)byte;

    if (byte < 0)
        return STATUS_DATA;
    reader->tokenizer->bpe.byte_token[byte] = (int32_t)id;
    return piece_table_put(&reader->tokenizer->bpe.pieces, id, text.bytes, text.length, &one, 1, PIECE_BYTE);
}

static enum status put_token(struct reader *reader, int64_t id, struct gguf_text text)
{
    struct tokenizer *tokenizer = reader->tokenizer;
    enum token_type type = (enum token_type)word_at(reader->types, id);
    const char *shown = text.bytes;
    size_t length = text.length;

    if (utf8_valid(text.bytes, text.length) != text.length || text.length > PIECE_TABLE_BYTES)
        return STATUS_DATA;
    if (type == TOKEN_UNUSED) /* fills the table up to the size of the embedding */
        return STATUS_OK;
    if (type == TOKEN_CONTROL || type == TOKEN_UNKNOWN)
        return put_added(reader, id, text.bytes, text.length, 1);
    if (type == TOKEN_BYTE && !tokenizer->bpe.byte_level)
        return put_byte(reader, id, text);
    if (type != TOKEN_NORMAL && type != TOKEN_USER_DEFINED)
        return STATUS_DATA;
    if (type == TOKEN_NORMAL && tokenizer->bpe.byte_level)
        return put_byte_level(reader, id, text);
    TRY(normalizer_run(&reader->spaces, reader->scratch, &shown, &length));
    if (type == TOKEN_USER_DEFINED)
        return put_added(reader, id, shown, length, 0);
    return piece_table_put(&tokenizer->bpe.pieces, id, text.bytes, text.length, shown, length, text.length > 0 ? PIECE_KEYED : 0);
}

static enum status read_tokens(struct reader *reader)
{
    const unsigned char *at = reader->tokens->data;

    for (int64_t id = 0; id < (int64_t)reader->tokens->count; id++) {
        enum status status = put_token(reader, id, gguf_next_text(&at));

        if (status == STATUS_DATA)
            log_error("%s: tokenizer.ggml.tokens: token %lld is not UTF-8, longer than %d bytes, or of a type that is not known",
                      reader->gguf->name, (long long)id, PIECE_TABLE_BYTES);
        TRY(status);
    }
    return piece_table_index(&reader->tokenizer->bpe.pieces);
}

/* The highest score merges first. */
static enum status read_scores(struct reader *reader)
{
    reader->ranks = malloc((size_t)reader->tokens->count * sizeof *reader->ranks);
    if (reader->ranks == NULL) {
        log_error("%s: no memory for %llu scores", reader->gguf->name, (unsigned long long)reader->tokens->count);
        return STATUS_INTERNAL;
    }
    for (int64_t id = 0; id < (int64_t)reader->tokens->count; id++) {
        uint32_t bits = word_at(reader->scores, id);
        float score;

        memcpy(&score, &bits, sizeof score);
        if (!isfinite(score)) {
            log_error("%s: tokenizer.ggml.scores: number %lld is not finite", reader->gguf->name, (long long)id);
            return STATUS_DATA;
        }
        reader->ranks[id] = tokenizer_parts_rank(bits);
    }
    return STATUS_OK;
}

/* The piece spelled text[0 .. length), and its bytes behind those of scratch[0]; -1 when there is none that merges, -2 for an added token.
 */
static enum status half_of(struct reader *reader, const char *text, size_t length, int32_t *id)
{
    const struct piece_table *pieces = &reader->tokenizer->bpe.pieces;
    char bytes[PIECE_TABLE_BYTES];
    ptrdiff_t count = length > sizeof bytes ? -1 : byte_level_decode(text, length, bytes);

    *id = -1;
    if (count >= 0) {
        *id = piece_table_find_key(pieces, bytes, (size_t)count);
        TRY(byte_buffer_append(&reader->scratch[0], bytes, (size_t)count));
    }
    if (*id < 0 && piece_table_find_text(pieces, text, length) >= 0)
        *id = -2;
    return STATUS_OK;
}

/* "left right". One that has to do with an added token never happens: those leave a text before it is merged. */
static enum status read_merge(struct reader *reader, struct gguf_text text, uint32_t rank)
{
    struct bpe *bpe = &reader->tokenizer->bpe;
    const char *space = text.length > 1 ? memchr(text.bytes + 1, ' ', text.length - 1) : NULL;
    int32_t left, right, token;

    if (space == NULL || utf8_valid(text.bytes, text.length) != text.length)
        goto refuse;
    reader->scratch[0].count = 0;
    TRY(half_of(reader, text.bytes, (size_t)(space - text.bytes), &left));
    TRY(half_of(reader, space + 1, text.length - (size_t)(space + 1 - text.bytes), &right));
    if (left == -2 || right == -2)
        return STATUS_OK;
    if (left < 0 || right < 0)
        goto refuse;
    token = piece_table_find_key(&bpe->pieces, reader->scratch[0].data, reader->scratch[0].count);
    if (token >= 0)
        return merge_table_put(&bpe->merges, left, right, rank, token);
    if (piece_table_find_text(&bpe->pieces, reader->scratch[0].data, reader->scratch[0].count) >= 0)
        return STATUS_OK;
refuse:
    log_error("%s: tokenizer.ggml.merges: entry %u is not two pieces of the vocabulary that make a third", reader->gguf->name,
              (unsigned)rank);
    return STATUS_DATA;
}

static enum status read_merges(struct reader *reader)
{
    const unsigned char *at = reader->merges->data;

    TRY(merge_table_init(&reader->tokenizer->bpe.merges, (size_t)reader->merges->count));
    for (uint32_t rank = 0; rank < reader->merges->count; rank++)
        TRY(read_merge(reader, gguf_next_text(&at), rank));
    return STATUS_OK;
}

/* The id that a key names, among the tokens there are; `id` stays as it is when the key is absent, and is -1 when it says that there is
 * none. */
static enum status read_id(const struct reader *reader, const char *key, int32_t *id)
{
    const struct piece_table *pieces = &reader->tokenizer->bpe.pieces;
    int64_t found = *id;

    TRY(gguf_integer(reader->gguf, key, GGUF_OPTIONAL, -1, UINT32_MAX, &found));
    if (found == UINT32_MAX)
        found = -1;
    if (found >= pieces->size || (found >= 0 && pieces->pieces[found].flags == 0))
        return gguf_refuse(reader->gguf, key, "the id of a token");
    *id = (int32_t)found;
    return STATUS_OK;
}

static enum status add_template(struct reader *reader, const char *flag, int asked, const char *key, int32_t id,
                                struct tokenizer_template *side)
{
    TRY(gguf_flag(reader->gguf, flag, &asked));
    TRY(read_id(reader, key, &id));
    if (!asked)
        return STATUS_OK;
    if (id < 0)
        return gguf_refuse(reader->gguf, key, "the id of a token, which stands around each text");
    *side = (struct tokenizer_template){.tokens = {id}, .count = 1};
    return STATUS_OK;
}

/* What SentencePiece's kind has without being told. */
enum { SPM_UNKNOWN = 0, SPM_BOS = 1, SPM_EOS = 2 };

static enum status read_specials(struct reader *reader)
{
    struct tokenizer *tokenizer = reader->tokenizer;
    int spm = !tokenizer->bpe.byte_level;

    TRY(add_template(reader, "tokenizer.ggml.add_bos_token", reader->add_bos, "tokenizer.ggml.bos_token_id",
                     spm && tokenizer->bpe.pieces.size > SPM_BOS ? SPM_BOS : -1, &tokenizer->before));
    TRY(add_template(reader, "tokenizer.ggml.add_eos_token", 0, "tokenizer.ggml.eos_token_id",
                     spm && tokenizer->bpe.pieces.size > SPM_EOS ? SPM_EOS : -1, &tokenizer->after));
    if (!spm)
        return STATUS_OK;
    tokenizer->bpe.unknown = SPM_UNKNOWN;
    tokenizer->bpe.fuse_unknown = 1;
    return read_id(reader, "tokenizer.ggml.unknown_token_id", &tokenizer->bpe.unknown);
}

static enum status set_up_spaces(struct reader *reader)
{
    struct normalizer *normalizer = &reader->tokenizer->normalizer;
    int prefix = 1;

    TRY(gguf_flag(reader->gguf, "tokenizer.ggml.add_space_prefix", &prefix));
    if (prefix)
        TRY(normalizer_add(normalizer, NORMALIZER_PREPEND, "", 0, space_mark, strlen(space_mark)));
    TRY(normalizer_add(normalizer, NORMALIZER_REPLACE, " ", 1, space_mark, strlen(space_mark)));
    reader->tokenizer->drops_first_space = prefix;
    reader->add_bos = 1;
    return STATUS_OK;
}

static void find_byte_tokens(struct reader *reader)
{
    struct bpe *bpe = &reader->tokenizer->bpe;

    for (int byte = 0; byte < 256; byte++)
        bpe->byte_token[byte] = piece_table_find_key(&bpe->pieces, &(char){(char)byte}, 1);
    tokenizer_parts_warn_of_bytes(reader->tokenizer, reader->gguf->name);
}

static enum status check_count(const struct reader *reader, const char *key, const struct gguf_value *list)
{
    char expected[64];

    if (list->count == reader->tokens->count)
        return STATUS_OK;
    snprintf(expected, sizeof expected, "one number for each of %llu tokens", (unsigned long long)reader->tokens->count);
    return gguf_refuse(reader->gguf, key, expected);
}

static enum status find_lists(struct reader *reader)
{
    struct gguf_text model = {"", 0};
    int byte_level;

    TRY(gguf_string(reader->gguf, "tokenizer.ggml.model", GGUF_NEEDED, &model));
    byte_level = gguf_text_is(model, "gpt2");
    if (!byte_level && !gguf_text_is(model, "llama"))
        return gguf_refuse(reader->gguf, "tokenizer.ggml.model", "\"gpt2\" or \"llama\"");
    reader->tokenizer->bpe.byte_level = byte_level;
    TRY(gguf_list(reader->gguf, "tokenizer.ggml.tokens", GGUF_TEXT, GGUF_NEEDED, &reader->tokens));
    if (reader->tokens->count < 1 || reader->tokens->count > PIECE_TABLE_IDS)
        return gguf_refuse(reader->gguf, "tokenizer.ggml.tokens", "1 to 1048576 tokens");
    TRY(gguf_list(reader->gguf, "tokenizer.ggml.token_type", GGUF_I32, GGUF_NEEDED, &reader->types));
    TRY(check_count(reader, "tokenizer.ggml.token_type", reader->types));
    if (!byte_level) {
        TRY(gguf_list(reader->gguf, "tokenizer.ggml.scores", GGUF_F32, GGUF_NEEDED, &reader->scores));
        return check_count(reader, "tokenizer.ggml.scores", reader->scores);
    }
    TRY(gguf_list(reader->gguf, "tokenizer.ggml.merges", GGUF_TEXT, GGUF_NEEDED, &reader->merges));
    return reader->merges->count <= MERGES ? STATUS_OK : gguf_refuse(reader->gguf, "tokenizer.ggml.merges", "at most 2097152 of them");
}

static enum status read_all(struct reader *reader)
{
    struct tokenizer *tokenizer = reader->tokenizer;

    TRY(find_lists(reader));
    TRY(normalizer_add(&reader->spaces, NORMALIZER_REPLACE, space_mark, strlen(space_mark), " ", 1));
    if (tokenizer->bpe.byte_level)
        TRY(gguf_pretokenizer_add(reader->gguf, &tokenizer->pretokenizer, &tokenizer->bpe.ignore_merges, &reader->add_bos));
    else
        TRY(set_up_spaces(reader));
    TRY(read_tokens(reader));
    TRY(read_specials(reader));
    if (tokenizer->bpe.byte_level) {
        TRY(read_merges(reader));
        find_byte_tokens(reader); /* last, because it may warn: a refusal is one line */
    } else {
        TRY(read_scores(reader));
        TRY(tokenizer_parts_derive_merges(tokenizer, reader->ranks));
    }
    tokenizer_parts_finish(tokenizer);
    return STATUS_OK;
}

enum status tokenizer_gguf_read(const char *name, const void *bytes, size_t count, struct tokenizer **tokenizer)
{
    struct gguf gguf;
    struct reader reader = {.gguf = &gguf};
    enum status status = STATUS_INTERNAL;

    TRY(gguf_read(name, bytes, count, &gguf));
    reader.tokenizer = tokenizer_parts_new();
    if (reader.tokenizer != NULL)
        status = read_all(&reader);
    byte_buffer_release(&reader.scratch[0]);
    byte_buffer_release(&reader.scratch[1]);
    free(reader.ranks);
    gguf_release(&gguf);
    if (status != STATUS_OK)
        tokenizer_parts_free(reader.tokenizer);
    else
        *tokenizer = reader.tokenizer;
    return status;
}

enum status tokenizer_gguf_open(const char *path, struct tokenizer **tokenizer)
{
    struct file_map map;
    enum status status;

    TRY(file_map_open(path, &map));
    status = tokenizer_gguf_read(path, map.bytes, map.size, tokenizer);
    file_map_close(&map);
    return status;
}
