/* A model in a GGUF file as llama.cpp's converter writes it: architectures llama, qwen2 and qwen3. Its keys become a config, its tensors are found by
 * their Hugging Face names. The converter interleaves the rows of q and k for architecture llama, so that its RoPE turns adjacent pairs:
 * config.rope_adjacent says so, and weights.c puts them back. rope_freqs.weight holds what each frequency is divided by. Owns nothing; for
 * checkpoint.c and config.c alone. */
#ifndef TANDEM_COMMON_MODEL_CHECKPOINT_GGUF_H
#define TANDEM_COMMON_MODEL_CHECKPOINT_GGUF_H

#include "common/base/status.h"
#include "common/file/file_map.h"
#include "common/model/checkpoint_table.h"
#include "common/model/config.h"

/* STATUS_NOINPUT, STATUS_DATA: the line names file and key. */
enum status checkpoint_gguf_config(const char *path, struct config *config);
/* Adds the tensors. STATUS_DATA for one that is not of these architectures: it would change the numbers. */
enum status checkpoint_gguf_read(const struct file_map *file, const struct config *config, struct checkpoint_table *table);

#endif
