/* Where the program's own files are: the embedded pair, and the tokenizer of a model. */
#ifndef TANDEM_COMMON_BASE_PATHS_H
#define TANDEM_COMMON_BASE_PATHS_H

#include <stddef.h>

/* Path of a part of the embedded pair ("target", "draft", "prompts.jsonl"): beside the installed program, or in the source tree. */
void paths_demo(const char *part, char *path, size_t size);
/* How many GGUF files `model` may mean: 1 for a .gguf file, those of a folder that has no config.json, and 0 for anything else. The first
 * one's path goes to `path`. */
int paths_gguf(const char *model, char *path, size_t size);
/* The path to give to tokenizer_open for a model: the folder itself, or its GGUF file, or for a llama2.c model.bin the tokenizer.bin, or else
 * the one tok*.bin, that stands beside it. */
void paths_tokenizer(const char *model, char *path, size_t size);

#endif
