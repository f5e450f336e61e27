/* Reads the tokenizer that a GGUF file has among its keys (tokenizer.ggml.*), of kind "gpt2" (byte-level BPE with merges) or "llama" (SentencePiece's
 * BPE: scores and byte tokens). What llama.cpp does without being told, it does as well. Owns nothing: the caller gets the tokenizer, which keeps
 * nothing of the file. Every value is untrusted. */
#ifndef TANDEM_COMMON_TEXT_TOKENIZER_GGUF_H
#define TANDEM_COMMON_TEXT_TOKENIZER_GGUF_H

#include "common/text/tokenizer.h"

/* Maps the file and reads it; of the tensors it reads nothing. STATUS_NOINPUT, STATUS_DATA, logged. */
enum status tokenizer_gguf_open(const char *path, struct tokenizer **tokenizer);
/* The same from bytes; `name` is for messages. */
enum status tokenizer_gguf_read(const char *name, const void *bytes, size_t count, struct tokenizer **tokenizer);

#endif
