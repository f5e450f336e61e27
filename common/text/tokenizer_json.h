/* Reads a Hugging Face tokenizer.json of model type BPE. What the file asks for and this reader does not know is refused with one line that names it:
 * a tokenizer that is nearly right is worse than none. Before jansson sees the file, its depth and its number of values are counted, so that memory
 * stays in proportion. Owns nothing: the caller gets the tokenizer. */
#ifndef TANDEM_COMMON_TEXT_TOKENIZER_JSON_H
#define TANDEM_COMMON_TEXT_TOKENIZER_JSON_H

#include "common/text/tokenizer.h"

/* `name` is for messages. STATUS_DATA, logged. */
enum status tokenizer_json_open(const char *name, const char *bytes, size_t count, struct tokenizer **tokenizer);

#endif
