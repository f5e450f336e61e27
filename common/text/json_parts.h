/* Readers of the small parts of a tokenizer.json: normalizer, pre-tokenizer, decoder, post-processor. Each takes the node of its part (null or absent
 * is a part that does nothing) and returns STATUS_DATA with one line for a type or an option that it does not know; none guesses. They own nothing:
 * what they fill in is the tokenizer's. For the reader of tokenizer.json alone. */
#ifndef TANDEM_COMMON_TEXT_JSON_PARTS_H
#define TANDEM_COMMON_TEXT_JSON_PARTS_H

#include "common/text/tokenizer_parts.h"
#include <jansson.h>

/* How the spelling of a piece becomes its text. */
struct json_decoder {
    int byte_level, byte_fallback, drops_first_space;
    struct normalizer replace;
};

/* Logs that `part` has an unknown `type` (NULL: none) and returns STATUS_DATA. */
enum status json_parts_refuse(const char *name, const char *part, const json_t *type);
/* A member that is true or false; `otherwise` when it is absent or null. */
int json_parts_flag(const json_t *node, const char *member, int otherwise);
int json_parts_is(const json_t *node, const char *type);

enum status json_parts_normalizer(const char *name, const json_t *node, struct normalizer *normalizer);
enum status json_parts_pretokenizer(const char *name, const json_t *node, struct pretokenizer *pretokenizer, int *byte_level);
enum status json_parts_decoder(const char *name, const json_t *node, struct json_decoder *decoder);
/* Needs the pieces to be there: what a template adds must be one of them. */
enum status json_parts_template(const char *name, const json_t *node, struct tokenizer *tokenizer);

#endif
