/* The smallest GGUF files that a model can be in, whole and with one thing changed: for hostile files. */
#ifndef TANDEM_TESTS_SUPPORT_GGUF_TINY_H
#define TANDEM_TESTS_SUPPORT_GGUF_TINY_H

#include "tests/support/gguf_file.h"

enum gguf_tiny_kind { GGUF_TINY_BYTE_LEVEL, GGUF_TINY_SENTENCEPIECE };

/* A llama of one layer, 4 numbers a token, with a tokenizer of the kind; its tensors fill the file to its last byte. The caller frees. */
unsigned char *gguf_tiny(enum gguf_tiny_kind kind, size_t *size);

#endif
