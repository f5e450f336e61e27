/* Files for the tokenizer tests: what is shared may be absent, so a path can be asked about first; what a test
 * writes goes to a folder of the build. Failures end the test. */
#ifndef TANDEM_TESTS_TEST_TOKENIZER_FILES_H
#define TANDEM_TESTS_TEST_TOKENIZER_FILES_H

#include <stddef.h>

/* All bytes of a file and a NUL behind them; the caller frees. */
char *test_tokenizer_files_read(const char *path, size_t *length);
void test_tokenizer_files_write(const char *path, const char *bytes, size_t length);
/* Path of `name` in the build's scratch folder; valid until the next call but three. */
const char *test_tokenizer_files_scratch(const char *name);
/* Path of `name` in the shared data, or NULL (printed) where it is absent. */
const char *test_tokenizer_files_shared(const char *name);
/* Unpacks a .gz into the scratch folder as `name` and returns its path. */
const char *test_tokenizer_files_unpack(const char *gz, const char *name);

/* Turns the vocabulary of a SentencePiece model in a GGUF file into llama2.c's tokenizer.bin and, with merges derived from the scores,
 * into a tokenizer.json. Returns the number of pieces. */
int test_tokenizer_files_convert_gguf(const char *gguf, const char *bin, const char *json);

#endif
