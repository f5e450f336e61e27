/* Files of texts as tokens: plain text, and JSON Lines of prompts or results. One thread; owns nothing. */
#ifndef TANDEM_LAUNCH_CORPUS_CORPUS_H
#define TANDEM_LAUNCH_CORPUS_CORPUS_H

#include "common/corpus/texts.h"
#include "common/text/tokenizer.h"

/* Adds the texts of a file: of one that ends in .jsonl each line's "text", behind its "prompt" where that is a text, or its "prompt" alone, and each
 * "content", wherever they are in it; of any other all of it as one. Lines that are blank, and results that are errors, have none. STATUS_NOINPUT;
 * STATUS_DATA with the line or byte that is wrong. */
enum status corpus_add(const char *path, const struct tokenizer *tokenizer, struct texts *texts);

#endif
