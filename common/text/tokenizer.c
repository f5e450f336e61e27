#include "common/text/tokenizer.h"

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/plain_file.h"
#include "common/base/try.h"
#include "common/text/tokenizer_bin.h"
#include "common/text/tokenizer_gguf.h"
#include "common/text/tokenizer_json.h"
#include "common/text/tokenizer_parts.h"
#include "common/text/utf8_stream.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* One encode call: its tokens so far and the working space of each part. */
struct encoding {
    const struct tokenizer *tokenizer;
    int special;
    const struct tokenizer_marks *marks; /* NULL: special tokens are found everywhere or nowhere */
    size_t mark;                         /* the first that may still come */
    struct byte_buffer tokens, normal[2];
    struct pretokenizer_work pretokenizer;
    struct bpe_work bpe;
};

static enum status read_file(const char *path, struct byte_buffer *bytes)
{
    FILE *file = plain_file_read(path);
    enum status status = STATUS_NOINPUT;
    struct stat about;

    if (file == NULL || fstat(fileno(file), &about) != 0) {
        log_error("%s: %s%s", path, plain_file_fault(), paths_end_in(path, ".bin") ? ", expected the tokenizer of llama2.c beside its model" : "");
        goto close_file;
    }
    if (!S_ISREG(about.st_mode) || about.st_size > TOKENIZER_FILE_BYTES) {
        log_error("%s: not a file of at most %d bytes", path, TOKENIZER_FILE_BYTES);
        status = STATUS_DATA;
        goto close_file;
    }
    TRY_TO(byte_buffer_reserve(bytes, (size_t)about.st_size + 1), close_file);
    bytes->count = fread(bytes->data, 1, (size_t)about.st_size, file);
    if (bytes->count != (size_t)about.st_size) {
        log_error("%s: cannot be read to its end", path);
        status = STATUS_NOINPUT;
    }
close_file:
    if (file != NULL)
        fclose(file);
    return status;
}

/* The file that `path` means; STATUS_NOINPUT (logged) when nothing is there. */
static enum status find_file(const char *path, char file[PATH_MAX])
{
    struct stat about;
    int length;

    if (stat(path, &about) != 0) {
        log_error("%s: %s", path, strerror(errno));
        return STATUS_NOINPUT;
    }
    length = snprintf(file, PATH_MAX, S_ISDIR(about.st_mode) ? "%s/tokenizer.json" : "%s", path);
    if (length >= PATH_MAX) {
        log_error("%s: the path is too long", path);
        return STATUS_NOINPUT;
    }
    return STATUS_OK;
}

enum status tokenizer_open(const char *path, int vocab_size, struct tokenizer **tokenizer)
{
    struct byte_buffer bytes = {0};
    char file[PATH_MAX];
    enum status status;

    TRY(find_file(path, file));
    if (paths_end_in(file, ".gguf"))
        return tokenizer_gguf_open(file, tokenizer); /* which is mapped: most of it is weights */
    TRY_TO(read_file(file, &bytes), release_bytes);
    if (paths_end_in(file, ".bin"))
        status = tokenizer_bin_open(file, bytes.data, bytes.count, vocab_size, tokenizer);
    else
        status = tokenizer_json_open(file, bytes.data, bytes.count, tokenizer);
release_bytes:
    byte_buffer_release(&bytes);
    return status;
}

void tokenizer_close(struct tokenizer *tokenizer)
{
    tokenizer_parts_free(tokenizer);
}

int tokenizer_size(const struct tokenizer *tokenizer)
{
    return tokenizer->bpe.pieces.size;
}

uint64_t tokenizer_digest(const struct tokenizer *tokenizer)
{
    return tokenizer->digest;
}

static int is_same_text(const struct piece_table *one, const struct piece_table *other, int id)
{
    const struct piece *a = &one->pieces[id], *b = &other->pieces[id];

    if (piece_table_is_text(one, id) != piece_table_is_text(other, id))
        return 0;
    return !piece_table_is_text(one, id) ||
           (a->text_length == b->text_length && memcmp(one->bytes.data + a->text, other->bytes.data + b->text, a->text_length) == 0);
}

int tokenizer_difference(const struct tokenizer *one, const struct tokenizer *other, int *count)
{
    const struct piece_table *a = &one->bpe.pieces, *b = &other->bpe.pieces;
    int first = -1;

    *count = 0;
    for (int id = 0; id < (a->size > b->size ? a->size : b->size); id++)
        if (!is_same_text(a, b, id)) {
            first = first < 0 ? id : first;
            ++*count;
        }
    return first;
}

static enum status encode_piece(void *context, const char *piece, size_t length)
{
    struct encoding *encoding = context;

    return bpe_encode(&encoding->tokenizer->bpe, &encoding->bpe, piece, length, &encoding->tokens);
}

static int is_reserved(const struct tokenizer_marks *marks, int32_t token)
{
    for (size_t i = 0; i < marks->reserved_count; i++)
        if (marks->reserved[i] == token)
            return 1;
    return 0;
}

/* Of text that no mark covers. */
static int may_unmarked(const struct encoding *encoding, int32_t token, unsigned flags)
{
    const struct tokenizer_marks *marks = encoding->marks;

    if (marks == NULL)
        return encoding->special || !(flags & ADDED_SPECIAL);
    return !(flags & ADDED_SPECIAL) && !is_reserved(marks, token);
}

/* Of the whole text. It is asked from left to right, so marks that have passed are not looked at again. */
static int may_written(void *context, size_t start, size_t stop, int32_t token, unsigned flags)
{
    struct encoding *encoding = context;
    const struct tokenizer_marks *marks = encoding->marks;
    const struct tokenizer_mark *mark;

    if (marks == NULL)
        return may_unmarked(encoding, token, flags);
    while (encoding->mark < marks->count && marks->mark[encoding->mark].stop <= start)
        encoding->mark++;
    mark = encoding->mark < marks->count ? &marks->mark[encoding->mark] : NULL;
    if (mark != NULL && mark->start < stop)
        return mark->start == start && mark->stop == stop ? 1 : -1;
    return may_unmarked(encoding, token, flags);
}

/* Of what the normalizer made: places in it are not those of the marks. */
static int may_normalized(void *context, size_t start, size_t stop, int32_t token, unsigned flags)
{
    (void)start;
    (void)stop;
    return may_unmarked(context, token, flags);
}

typedef enum status encode_plain(struct encoding *encoding, const char *text, size_t length, int at_start);

/* Takes the added tokens out of a text and hands what lies between them on. */
static enum status encode_between(struct encoding *encoding, const struct added_tokens *added, added_tokens_may *may, encode_plain *plain,
                                  const char *text, size_t length, int at_start)
{
    struct added_match match;
    size_t from = 0;

    while (added_tokens_find(added, text, length, from, may, encoding, &match)) {
        if (match.start > from)
            TRY(plain(encoding, text + from, match.start - from, at_start && from == 0));
        TRY(byte_buffer_append(&encoding->tokens, &match.token, sizeof match.token));
        from = match.stop;
    }
    return from == length ? STATUS_OK : plain(encoding, text + from, length - from, at_start && from == 0);
}

static enum status encode_normal(struct encoding *encoding, const char *text, size_t length, int at_start)
{
    return pretokenizer_run(&encoding->tokenizer->pretokenizer, &encoding->pretokenizer, text, length, at_start, encode_piece, encoding);
}

static enum status encode_written(struct encoding *encoding, const char *text, size_t length, int at_start)
{
    enum status status = normalizer_run(&encoding->tokenizer->normalizer, encoding->normal, &text, &length);

    if (status == STATUS_DATA)
        log_error("the tokenizer's normalizer makes a text more than 16 times as long");
    TRY(status);
    return encode_between(encoding, &encoding->tokenizer->as_normalized, may_normalized, encode_normal, text, length, at_start);
}

static enum status append_template(struct byte_buffer *tokens, const struct tokenizer_template *template)
{
    return byte_buffer_append(tokens, template->tokens, (size_t) template->count * sizeof template->tokens[0]);
}

static enum status encode_text(struct encoding *encoding, const char *text, size_t length, int flags)
{
    const struct tokenizer *tokenizer = encoding->tokenizer;

    TRY(byte_buffer_reserve(&encoding->tokens, 64 + length)); /* about four bytes a token */
    if (flags & TOKENIZER_ADD_SPECIAL)
        TRY(append_template(&encoding->tokens, &tokenizer->before));
    TRY(encode_between(encoding, &tokenizer->as_written, may_written, encode_written, text, length, 1));
    if (flags & TOKENIZER_ADD_SPECIAL)
        TRY(append_template(&encoding->tokens, &tokenizer->after));
    return STATUS_OK;
}

static void release_work(struct encoding *encoding)
{
    byte_buffer_release(&encoding->normal[0]);
    byte_buffer_release(&encoding->normal[1]);
    pretokenizer_work_release(&encoding->pretokenizer);
    bpe_work_release(&encoding->bpe);
}

/* The text of one call that is prepared; its tokens go out. */
static enum status encode(struct encoding *encoding, const char *text, size_t length, int flags, int32_t **tokens, int *count, size_t *bad_offset)
{
    size_t valid = utf8_valid(text, length);
    enum status status;

    if (bad_offset != NULL)
        *bad_offset = valid;
    if (valid < length)
        return STATUS_DATA;
    if (length > TOKENIZER_TEXT_BYTES) {
        log_error("a text of %zu bytes; a tokenizer takes at most %d", length, TOKENIZER_TEXT_BYTES);
        return STATUS_DATA;
    }
    status = encode_text(encoding, text, length, flags);
    release_work(encoding);
    if (status == STATUS_OK && encoding->tokens.count / sizeof **tokens > INT_MAX) {
        log_error("a text of %zu bytes gives more tokens than can be counted", length);
        status = STATUS_DATA;
    }
    if (status != STATUS_OK) {
        byte_buffer_release(&encoding->tokens);
        return status;
    }
    *tokens = (int32_t *)(void *)encoding->tokens.data;
    *count = (int)(encoding->tokens.count / sizeof **tokens);
    return STATUS_OK;
}

enum status tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t length, int flags, int32_t **tokens, int *count,
                             size_t *bad_offset)
{
    struct encoding encoding = {.tokenizer = tokenizer, .special = (flags & TOKENIZER_PARSE_SPECIAL) != 0};

    return encode(&encoding, text, length, flags, tokens, count, bad_offset);
}

enum status tokenizer_encode_marked(const struct tokenizer *tokenizer, const char *text, size_t length, const struct tokenizer_marks *marks,
                                    int32_t **tokens, int *count, size_t *bad_offset)
{
    struct encoding encoding = {.tokenizer = tokenizer, .marks = marks};

    return encode(&encoding, text, length, 0, tokens, count, bad_offset);
}

static const struct piece *piece_of(const struct tokenizer *tokenizer, int32_t token)
{
    static const struct piece none;

    return token < 0 || token >= tokenizer->bpe.pieces.size ? &none : &tokenizer->bpe.pieces.pieces[token];
}

const char *tokenizer_piece(const struct tokenizer *tokenizer, int32_t token, int first, int special, size_t *length)
{
    const struct piece *piece = piece_of(tokenizer, token);
    const char *text = tokenizer->bpe.pieces.bytes.data + piece->text;

    *length = piece->text_length;
    if ((piece->flags & PIECE_SPECIAL) && !special)
        *length = 0;
    else if (first && tokenizer->drops_first_space && *length > 0 && text[0] == ' ') {
        --*length;
        text++;
    }
    return text;
}

int tokenizer_is_special(const struct tokenizer *tokenizer, int32_t token)
{
    return (piece_of(tokenizer, token)->flags & PIECE_SPECIAL) != 0;
}

int32_t tokenizer_find(const struct tokenizer *tokenizer, const char *text)
{
    return piece_table_find_text(&tokenizer->bpe.pieces, text, strlen(text));
}
