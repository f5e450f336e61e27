/* A tokenizer turns text into token ids and back: byte-level BPE (GPT-2, Llama 3, Qwen 2, SmolLM) and SentencePiece-style BPE with
 * byte fallback (Llama 2, Mistral), read from a Hugging Face tokenizer.json, a GGUF file, or a llama2.c tokenizer.bin. Immutable once open, so
 * any thread may use it. Text is bytes: invalid UTF-8 is refused by tokenizer_encode, never repaired. Nothing in a tokenizer file is
 * run: patterns come from a built-in list or are compiled by PCRE2 under a size limit. */
#ifndef TANDEM_COMMON_TEXT_TOKENIZER_H
#define TANDEM_COMMON_TEXT_TOKENIZER_H

#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>

struct tokenizer;

/* Opens `path`: a folder that holds tokenizer.json, a tokenizer.json, a .gguf, or a llama2.c tokenizer.bin. `vocab_size` is the size of the
 * model's table for the .bin form, which does not store it (ignored otherwise). STATUS_NOINPUT, STATUS_DATA (named and logged). */
enum status tokenizer_open(const char *path, int vocab_size, struct tokenizer **tokenizer);
void tokenizer_close(struct tokenizer *tokenizer);

/* Number of ids: one more than the highest id with a text. */
int tokenizer_size(const struct tokenizer *tokenizer);
/* Digest of the tokens that texts are cut into (id, bytes), equal exactly when two tokenizers have the same ones. Special and other added tokens, and
 * what fills a table, are not in it: a pair of models may differ in them. */
uint64_t tokenizer_digest(const struct tokenizer *tokenizer);
/* The lowest id in which they differ so, and how many there are; -1 and 0: none. */
int tokenizer_difference(const struct tokenizer *one, const struct tokenizer *other, int *count);

enum { TOKENIZER_ADD_SPECIAL = 1 /* what the file's post-processor adds, such as a leading BOS */, TOKENIZER_PARSE_SPECIAL = 2 /* text
 that spells a special token becomes that token; otherwise it is plain text */ };

/* Encodes text[0 .. length). `*tokens` is malloc'ed, the caller frees it; `*count` may be 0. STATUS_DATA when the text is not valid
 * UTF-8 (the offset of the first bad byte goes to *bad_offset, which may be NULL; not logged, the caller names the input), and when it is
 * beyond a limit (*bad_offset is then `length`; logged). STATUS_INTERNAL is about memory alone. */
enum status tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t length, int flags, int32_t **tokens,
                             int *count, size_t *bad_offset);

/* For text that is put together from trusted and untrusted parts: bytes start .. stop may become one special token as a whole. */
struct tokenizer_mark {
    size_t start, stop;
};

struct tokenizer_marks {
    const struct tokenizer_mark *mark; /* [count], rising, apart from each other and not empty */
    size_t count;
    const int32_t *reserved; /* [reserved_count] tokens that only a mark may become, like the special ones */
    size_t reserved_count;
};

/* The same, without ADD_SPECIAL: text becomes a special or reserved token where a mark covers just it, and nowhere else; no other added token
 * reaches over the edge of a mark. Where nothing else spells a special token, the tokens are those of PARSE_SPECIAL. A special token that the
 * file says to look for in normalized text is plain text here. */
enum status tokenizer_encode_marked(const struct tokenizer *tokenizer, const char *text, size_t length, const struct tokenizer_marks *marks,
                                    int32_t **tokens, int *count, size_t *bad_offset);

/* Bytes of one token as it stands inside a text (`*length` may be 0: special tokens have no text unless `special` is set).
 * `first` says that it is the first of a text (SentencePiece drops the space that it put in front). Valid until close. */
const char *tokenizer_piece(const struct tokenizer *tokenizer, int32_t token, int first, int special, size_t *length);

int tokenizer_is_special(const struct tokenizer *tokenizer, int32_t token);
/* The id whose text is exactly `text` (special tokens too), or -1. */
int32_t tokenizer_find(const struct tokenizer *tokenizer, const char *text);

#endif
