/* A tiny seeded model, in llama2.c's format, with a context of 131,072 tokens: one layer, so that the keys and values of a token depend on nothing
 * but it and its place. */
#ifndef TANDEM_TESTS_SUPPORT_LONG_MODEL_H
#define TANDEM_TESTS_SUPPORT_LONG_MODEL_H

enum { LONG_MODEL_CONTEXT = 131072, LONG_MODEL_VOCAB = 32, LONG_MODEL_HEADS = 2, LONG_MODEL_HEAD_DIM = 4 };

/* FOLDER/long.bin and its tokenizer.bin; what goes wrong ends the program. */
void long_model_write(const char *folder);

#endif
