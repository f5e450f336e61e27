/* Any bytes as a GGUF file: container, config, tensors and tokenizer are refused each, or all tensors lie inside the file and the tokenizer
 * encodes and spells. */
#include "common/file/gguf.h"
#include "common/model/checkpoint_gguf.h"
#include "common/text/tokenizer_gguf.h"
#include "tests/fuzz/fuzz_file.h"
#include "tests/fuzz/fuzz_tokenizer_use.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void container_check(const uint8_t *bytes, size_t size)
{
    struct gguf gguf;

    if (gguf_read("fuzz", bytes, size, &gguf) != STATUS_OK)
        return;
    for (int i = 0; i < gguf.tensor_count; i++) {
        const struct gguf_tensor *tensor = &gguf.tensors[i];
        size_t from = (size_t)(tensor->data - bytes);

        if (tensor->data < bytes || from > size || tensor->bytes > size - from || tensor->bytes == 0)
            abort();
    }
    gguf_release(&gguf);
}

static void model_check(const char *path)
{
    struct checkpoint_table table = {.entries = NULL};
    struct file_map file;
    struct config config;

    if (checkpoint_gguf_config(path, &config) != STATUS_OK)
        config = (struct config){.family = &model_families[FAMILY_QWEN2]};
    else if (config.head_dim < 2 || config.head_dim > CONFIG_MAX_HEAD_DIM || config.heads % config.kv_heads != 0 || config.eos_count > CONFIG_MAX_EOS)
        abort();
    if (file_map_open(path, &file) != STATUS_OK)
        abort();
    checkpoint_gguf_read(&file, &config, &table);
    checkpoint_table_release(&table);
    file_map_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct tokenizer *tokenizer;

    container_check(bytes, size);
    model_check(fuzz_file(0, bytes, size));
    if (tokenizer_gguf_read("fuzz", bytes, size, &tokenizer) == STATUS_OK) {
        fuzz_tokenizer_use(tokenizer);
        tokenizer_close(tokenizer);
    }
    return 0;
}
