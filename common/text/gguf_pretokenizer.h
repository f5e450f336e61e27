/* How a GGUF file's byte-level tokenizer cuts a text: the file has a name (tokenizer.ggml.pre), the expressions behind it are llama.cpp's. A constant
 * table; for the reader of GGUF tokenizers alone. A name that is not in the table is refused, because a text that is cut otherwise becomes other
 * tokens. */
#ifndef TANDEM_COMMON_TEXT_GGUF_PRETOKENIZER_H
#define TANDEM_COMMON_TEXT_GGUF_PRETOKENIZER_H

#include "common/file/gguf.h"
#include "common/text/pretokenizer.h"

/* Adds the cuts of the file's pre-tokenizer, and says what its name implies. STATUS_DATA, logged. */
enum status gguf_pretokenizer_add(const struct gguf *gguf, struct pretokenizer *pretokenizer, int *ignore_merges, int *add_bos);

#endif
