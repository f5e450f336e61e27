/* Reads llama2.c's tokenizer.bin (Karpathy 2023): int32 longest piece; then for each id float score, int32 length, bytes; all little-endian. Which
 * pieces merge is not stored: any two neighbours whose bytes together are a piece do, the highest score first. Ids 0, 1 and 2 are unknown, begin and
 * end; <0xNN> pieces stand for bytes. Owns nothing: the caller gets the tokenizer. Every length is untrusted. */
#ifndef TANDEM_COMMON_TEXT_TOKENIZER_BIN_H
#define TANDEM_COMMON_TEXT_TOKENIZER_BIN_H

#include "common/text/tokenizer.h"

/* `name` is for messages. STATUS_DATA, logged. */
enum status tokenizer_bin_open(const char *name, const char *bytes, size_t count, int vocab_size, struct tokenizer **tokenizer);

#endif
