/* The .bin of llama2.c, version 0: seven int32 (dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len), then float32 weights, each kind
 * for all layers together. A negative vocab_size says that a classifier of its own follows at the end. Little-endian, as the program that writes it
 * and every machine this runs on. Owns nothing; for checkpoint.c and config.c alone. */
#ifndef TANDEM_COMMON_MODEL_CHECKPOINT_LLAMA2C_H
#define TANDEM_COMMON_MODEL_CHECKPOINT_LLAMA2C_H

#include "common/base/status.h"
#include "common/file/file_map.h"
#include "common/model/checkpoint_table.h"
#include "common/model/config.h"

/* STATUS_NOINPUT, STATUS_DATA: the line names the field. */
enum status checkpoint_llama2c_config(const char *path, struct config *config);
/* Adds the tensors under their Hugging Face names. STATUS_DATA when the file has not exactly the size that the config asks for. */
enum status checkpoint_llama2c_read(const struct file_map *file, const struct config *config, struct checkpoint_table *table);

#endif
