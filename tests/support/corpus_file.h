/* Files made of a seeded text. */
#ifndef TANDEM_TESTS_SUPPORT_CORPUS_FILE_H
#define TANDEM_TESTS_SUPPORT_CORPUS_FILE_H

enum { CORPUS_FILE_PATH = 64 };

/* Writes what `tandem MADE_BY` makes, "ngram" (of this order) or "datastore", to a new file, whose name goes to path [CORPUS_FILE_PATH], to be
 * unlinked. Tokens are in [0, vocab); each is often the one before and 13, modulo the vocabulary. */
void corpus_file_make(const char *made_by, int order, int vocab, int tokens, char *path);

#endif
