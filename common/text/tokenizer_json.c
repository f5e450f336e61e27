#include "common/text/tokenizer_json.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/file/json_text.h"
#include "common/text/byte_level.h"
#include "common/text/json_parts.h"
#include "common/text/tokenizer_parts.h"
#include <stdio.h>
#include <string.h>

enum { DEPTH = 64, VALUES = 8 << 20 /* jansson takes about 120 bytes a value */, MERGES = 2 << 20 };

struct reader {
    const char *name;
    const json_t *root, *model, *vocab;
    struct json_decoder decoder;
    struct tokenizer *tokenizer;
    struct byte_buffer scratch[2];
};

/* The text of a piece as the decoder makes it. */
static enum status decode(struct reader *reader, const char **text, size_t *length, unsigned *flags)
{
    int byte = reader->decoder.byte_fallback ? tokenizer_parts_byte(*text, *length) : -1;

    if (byte >= 0) {
        char one = (char)byte;

        reader->scratch[0].count = 0;
        TRY(byte_buffer_append(&reader->scratch[0], &one, 1));
        *text = reader->scratch[0].data;
        *length = 1;
        *flags |= PIECE_BYTE;
        return STATUS_OK;
    }
    TRY(normalizer_run(&reader->decoder.replace, reader->scratch, text, length));
    if (*length == 0)
        *text = ""; /* a buffer that took nothing has no place */
    return STATUS_OK;
}

static enum status put_piece(struct reader *reader, const char *spelling, size_t length, json_int_t id)
{
    struct piece_table *pieces = &reader->tokenizer->bpe.pieces;
    const char *text = spelling;
    size_t text_length = length;
    unsigned flags = 0;
    char bytes[PIECE_TABLE_BYTES * 2];
    ptrdiff_t count;

    if (!reader->tokenizer->bpe.byte_level) {
        TRY(decode(reader, &text, &text_length, &flags));
        return piece_table_put(pieces, id, spelling, length, text, text_length, flags & PIECE_BYTE ? flags : flags | PIECE_KEYED);
    }
    if (length > sizeof bytes)
        return STATUS_DATA;
    count = byte_level_decode(spelling, length, bytes);
    if (count < 0) /* spelled in characters that stand for no byte: only an added token is */
        return piece_table_put(pieces, id, "", 0, spelling, length, 0);
    return piece_table_put(pieces, id, bytes, (size_t)count, bytes, (size_t)count, PIECE_KEYED);
}

static enum status read_vocab(struct reader *reader)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)reader->vocab, key, value)
    {
        enum status status = json_is_integer(value) ? put_piece(reader, key, strlen(key), json_integer_value(value)) : STATUS_DATA;

        if (status == STATUS_DATA)
            log_error("%s: model.vocab: id %lld is out of range or given twice, or its piece is over %d bytes", reader->name,
                      json_is_integer(value) ? (long long)json_integer_value(value) : -1, PIECE_TABLE_BYTES);
        TRY(status);
    }
    return STATUS_OK;
}

static unsigned added_flags(const json_t *node)
{
    return (json_parts_flag(node, "special", 0) ? ADDED_SPECIAL : 0U) | (json_parts_flag(node, "lstrip", 0) ? ADDED_LSTRIP : 0U) |
           (json_parts_flag(node, "rstrip", 0) ? ADDED_RSTRIP : 0U) | (json_parts_flag(node, "single_word", 0) ? ADDED_SINGLE_WORD : 0U);
}

/* Gives an added token its piece, or marks the one that the model has for it. */
static enum status put_added_piece(struct reader *reader, const char *content, size_t length, json_int_t id, int special)
{
    struct piece_table *pieces = &reader->tokenizer->bpe.pieces;
    const json_t *known = json_object_get(reader->vocab, content);

    if (known == NULL)
        return piece_table_put(pieces, id, "", 0, content, length, special ? PIECE_SPECIAL : 0);
    if (json_integer_value(known) != id)
        return STATUS_DATA;
    if (special) /* no text may become it by merging */
        pieces->pieces[id].flags = PIECE_PRESENT | PIECE_SPECIAL;
    return STATUS_OK;
}

static enum status read_added(struct reader *reader, const json_t *node)
{
    struct tokenizer *tokenizer = reader->tokenizer;
    const char *content = json_string_value(json_object_get(node, "content"));
    const json_t *id = json_object_get(node, "id");
    unsigned flags = added_flags(node);
    size_t length = content == NULL ? 0 : strlen(content);
    enum status status = STATUS_DATA;

    if (length > 0 && json_is_integer(id))
        status = put_added_piece(reader, content, length, json_integer_value(id), (flags & ADDED_SPECIAL) != 0);
    if (status == STATUS_DATA)
        log_error("%s: added_tokens: id %lld has no content, or its id or content is taken, out of range or over %d bytes", reader->name,
                  json_is_integer(id) ? (long long)json_integer_value(id) : -1, PIECE_TABLE_BYTES);
    TRY(status);
    if (!json_parts_flag(node, "normalized", !(flags & ADDED_SPECIAL)))
        return added_tokens_put(&tokenizer->as_written, content, length, (int32_t)json_integer_value(id), flags);
    TRY(normalizer_run(&tokenizer->normalizer, reader->scratch, &content, &length));
    return length == 0 ? STATUS_OK : added_tokens_put(&tokenizer->as_normalized, content, length, (int32_t)json_integer_value(id), flags);
}

static enum status read_all_added(struct reader *reader)
{
    const json_t *list = json_object_get(reader->root, "added_tokens");
    size_t index;
    json_t *node;

    json_array_foreach(list, index, node)
    {
        TRY(read_added(reader, node));
    }
    return STATUS_OK;
}

static int32_t id_of(const struct reader *reader, const char *piece, size_t length)
{
    const json_t *id = json_object_getn(reader->vocab, piece, length);

    return id == NULL ? -1 : (int32_t)json_integer_value(id);
}

/* The two halves of a merge, written "a b" or ["a", "b"]. Returns 0 when it is neither. */
static int halves_of(const json_t *node, const char *half[2], size_t length[2])
{
    const char *text = json_string_value(node), *space;

    if (json_is_array(node) && json_array_size(node) == 2) {
        for (size_t i = 0; i < 2; i++) {
            half[i] = json_string_value(json_array_get(node, i));
            length[i] = json_string_length(json_array_get(node, i));
        }
        return half[0] != NULL && half[1] != NULL;
    }
    if (text == NULL || (space = strchr(text, ' ')) == NULL || strchr(space + 1, ' ') != NULL)
        return 0;
    half[0] = text;
    length[0] = (size_t)(space - text);
    half[1] = space + 1;
    length[1] = strlen(space + 1);
    return 1;
}

static enum status read_merge(struct reader *reader, const json_t *node, uint32_t rank)
{
    struct bpe *bpe = &reader->tokenizer->bpe;
    const char *half[2];
    size_t length[2];
    int32_t left, right, token;

    if (!halves_of(node, half, length))
        goto refuse;
    reader->scratch[0].count = 0;
    TRY(byte_buffer_append(&reader->scratch[0], half[0], length[0]));
    TRY(byte_buffer_append(&reader->scratch[0], half[1], length[1]));
    left = id_of(reader, half[0], length[0]);
    right = id_of(reader, half[1], length[1]);
    token = id_of(reader, reader->scratch[0].data == NULL ? "" : reader->scratch[0].data, reader->scratch[0].count);
    if (left < 0 || right < 0 || token < 0)
        goto refuse;
    if (bpe->pieces.pieces[token].flags & PIECE_SPECIAL)
        return STATUS_OK;
    return merge_table_put(&bpe->merges, left, right, rank, token);
refuse:
    log_error("%s: model.merges: entry %u is not two pieces of the vocabulary that make a third", reader->name, (unsigned)rank);
    return STATUS_DATA;
}

static enum status read_merges(struct reader *reader)
{
    const json_t *merges = json_object_get(reader->model, "merges");
    size_t index;
    json_t *node;

    if (!json_is_array(merges) || json_array_size(merges) > MERGES) {
        log_error("%s: model.merges is not a list of at most %d", reader->name, MERGES);
        return STATUS_DATA;
    }
    TRY(merge_table_init(&reader->tokenizer->bpe.merges, json_array_size(merges)));
    json_array_foreach(merges, index, node)
    {
        TRY(read_merge(reader, node, (uint32_t)index));
    }
    return STATUS_OK;
}

static int says_something(const json_t *node)
{
    return json_is_string(node) ? json_string_length(node) > 0 : json_is_number(node) && json_number_value(node) > 0;
}

static enum status read_model(struct reader *reader)
{
    static const char *const unknown_options[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix"};
    const json_t *model = json_object_get(reader->root, "model"), *type = json_object_get(model, "type");
    struct bpe *bpe = &reader->tokenizer->bpe;

    reader->model = model;
    reader->vocab = json_object_get(model, "vocab");
    /* Older files have no type; a list of merges tells. */
    if (!json_parts_is(model, "BPE") && !(type == NULL && json_object_get(model, "merges") != NULL))
        return json_parts_refuse(reader->name, "model", type);
    if (!json_is_object(reader->vocab) || json_object_size(reader->vocab) == 0) {
        log_error("%s: model.vocab is not an object of pieces and ids", reader->name);
        return STATUS_DATA;
    }
    for (size_t i = 0; i < sizeof unknown_options / sizeof unknown_options[0]; i++)
        if (says_something(json_object_get(model, unknown_options[i]))) {
            log_error("%s: model.%s is not supported", reader->name, unknown_options[i]);
            return STATUS_DATA;
        }
    bpe->fuse_unknown = json_parts_flag(model, "fuse_unk", 0);
    bpe->ignore_merges = json_parts_flag(model, "ignore_merges", 0);
    return STATUS_OK;
}

/* Finds the pieces that a text starts as: those of single bytes, and the one for what is unknown. */
static enum status find_bytes(struct reader *reader)
{
    const char *unknown = json_string_value(json_object_get(reader->model, "unk_token"));
    struct bpe *bpe = &reader->tokenizer->bpe;
    int fallback = json_parts_flag(reader->model, "byte_fallback", 0);

    if (unknown != NULL && (bpe->unknown = id_of(reader, unknown, strlen(unknown))) < 0) {
        log_error("%s: model.unk_token is not in the vocabulary", reader->name);
        return STATUS_DATA;
    }
    for (int byte = 0; byte < 256; byte++) {
        char one = (char)byte, name[8];

        snprintf(name, sizeof name, "<0x%02X>", (unsigned)byte);
        if (bpe->byte_level)
            bpe->byte_token[byte] = piece_table_find_key(&bpe->pieces, &one, 1);
        else if (fallback)
            bpe->byte_token[byte] = id_of(reader, name, 6);
    }
    if (bpe->byte_level)
        tokenizer_parts_warn_of_bytes(reader->tokenizer, reader->name);
    return STATUS_OK;
}

static enum status read_all(struct reader *reader)
{
    struct tokenizer *tokenizer = reader->tokenizer;
    const char *name = reader->name;

    TRY(read_model(reader));
    TRY(json_parts_normalizer(name, json_object_get(reader->root, "normalizer"), &tokenizer->normalizer));
    TRY(json_parts_pretokenizer(name, json_object_get(reader->root, "pre_tokenizer"), &tokenizer->pretokenizer,
                                &tokenizer->bpe.byte_level));
    TRY(json_parts_decoder(name, json_object_get(reader->root, "decoder"), &reader->decoder));
    if (reader->decoder.byte_level && !tokenizer->bpe.byte_level) {
        log_error("%s: decoder ByteLevel without pre_tokenizer ByteLevel is not supported", name);
        return STATUS_DATA;
    }
    tokenizer->drops_first_space = reader->decoder.drops_first_space;
    TRY(read_vocab(reader));
    TRY(read_all_added(reader));
    TRY(piece_table_index(&tokenizer->bpe.pieces));
    TRY(json_parts_template(name, json_object_get(reader->root, "post_processor"), tokenizer));
    TRY(find_bytes(reader));
    TRY(read_merges(reader));
    tokenizer_parts_finish(tokenizer);
    return STATUS_OK;
}

static enum status open_root(const char *name, const json_t *root, struct tokenizer **tokenizer)
{
    struct reader reader = {.name = name, .root = root, .tokenizer = tokenizer_parts_new()};
    enum status status = reader.tokenizer == NULL ? STATUS_INTERNAL : read_all(&reader);

    byte_buffer_release(&reader.scratch[0]);
    byte_buffer_release(&reader.scratch[1]);
    if (status != STATUS_OK)
        tokenizer_parts_free(reader.tokenizer);
    else
        *tokenizer = reader.tokenizer;
    return status;
}

enum status tokenizer_json_open(const char *name, const char *bytes, size_t count, struct tokenizer **tokenizer)
{
    static const struct json_text_limits limits = {.depth = DEPTH, .values = VALUES};
    char fault[JSON_TEXT_FAULT];
    enum status status;
    json_t *root;

    status = json_text_read(bytes, count, 0, &limits, &root, fault);
    if (status == STATUS_DATA)
        log_error("%s: %s", name, fault);
    TRY(status);
    status = open_root(name, root, tokenizer);
    json_decref(root);
    return status;
}
