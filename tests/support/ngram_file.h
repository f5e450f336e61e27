/* A table of n-grams of a seeded text, as a file. */
#ifndef TANDEM_TESTS_SUPPORT_NGRAM_FILE_H
#define TANDEM_TESTS_SUPPORT_NGRAM_FILE_H

#include "common/ngram/ngram_count.h"

/* Writes it to a new file, whose name goes to `path` [at least 64], to be unlinked. Tokens are in [0, vocab); each is often the one before and 13, modulo
 * the vocabulary. */
void ngram_file_make(int order, int vocab, int tokens, char *path);

#endif
