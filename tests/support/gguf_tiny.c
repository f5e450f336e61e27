#include "tests/support/gguf_tiny.h"

enum { HIDDEN = 4, TOKENS = 8 };

static void add_tokenizer(struct gguf_file *file, enum gguf_tiny_kind kind)
{
    static const char *const byte_level[TOKENS] = {"<|end|>",
                                                   "a",
                                                   "b",
                                                   "\xC4\xA0",
                                                   "ab",
                                                   "\xC4\xA0"
                                                   "a",
                                                   "\n\n",
                                                   "[PAD]"};
    static const char *const pieces[TOKENS] = {"<unk>",
                                               "<s>",
                                               "</s>",
                                               "<0x0A>",
                                               "\xE2\x96\x81",
                                               "a",
                                               "\xE2\x96\x81"
                                               "a",
                                               "[PAD]"};
    static const char *const merges[] = {"a b", "\xC4\xA0 a"};
    static const int32_t byte_level_types[TOKENS] = {3, 1, 1, 1, 1, 1, 4, 5}, piece_types[TOKENS] = {2, 3, 3, 6, 1, 1, 1, 5};
    static const float scores[TOKENS] = {0, 0, 0, 0, -1, -2, -3, -1000};
    int spm = kind == GGUF_TINY_SENTENCEPIECE;

    gguf_file_text(file, "tokenizer.ggml.model", spm ? "llama" : "gpt2");
    gguf_file_texts(file, "tokenizer.ggml.tokens", spm ? pieces : byte_level, TOKENS);
    gguf_file_i32s(file, "tokenizer.ggml.token_type", spm ? piece_types : byte_level_types, TOKENS);
    gguf_file_u32(file, "tokenizer.ggml.bos_token_id", spm ? 1 : 0);
    gguf_file_u32(file, "tokenizer.ggml.eos_token_id", spm ? 2 : 0);
    gguf_file_flag(file, "tokenizer.ggml.add_bos_token", 1);
    if (spm) {
        gguf_file_f32s(file, "tokenizer.ggml.scores", scores, TOKENS);
    } else {
        gguf_file_text(file, "tokenizer.ggml.pre", "gpt-2");
        gguf_file_texts(file, "tokenizer.ggml.merges", merges, 2);
    }
}

unsigned char *gguf_tiny(enum gguf_tiny_kind kind, size_t *size)
{
    static const char *const matrices[] = {"blk.0.attn_q.weight",      "blk.0.attn_k.weight",   "blk.0.attn_v.weight",
                                           "blk.0.attn_output.weight", "blk.0.ffn_gate.weight", "blk.0.ffn_up.weight",
                                           "blk.0.ffn_down.weight"};
    static const char *const vectors[] = {"blk.0.attn_norm.weight", "blk.0.ffn_norm.weight", "output_norm.weight"};
    float values[TOKENS * HIDDEN];
    struct gguf_file file;
    unsigned char *bytes;

    for (int i = 0; i < TOKENS * HIDDEN; i++)
        values[i] = (float)(i % 7) - 2.5f;
    gguf_file_open(&file);
    file.alignment = 8;
    gguf_file_u32(&file, "general.alignment", 8);
    gguf_file_text(&file, "general.architecture", "llama");
    gguf_file_u32(&file, "llama.block_count", 1);
    gguf_file_u32(&file, "llama.context_length", 64);
    gguf_file_u32(&file, "llama.embedding_length", HIDDEN);
    gguf_file_u32(&file, "llama.feed_forward_length", HIDDEN);
    gguf_file_u32(&file, "llama.attention.head_count", 1);
    gguf_file_u32(&file, "llama.attention.head_count_kv", 1);
    gguf_file_f32(&file, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    add_tokenizer(&file, kind);
    gguf_file_tensor(&file, "token_embd.weight", GGUF_FILE_F32, TOKENS, HIDDEN, values, sizeof values);
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        gguf_file_tensor(&file, matrices[i], GGUF_FILE_F32, HIDDEN, HIDDEN, values, HIDDEN * HIDDEN * sizeof *values);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        gguf_file_tensor(&file, vectors[i], GGUF_FILE_F32, 0, HIDDEN, values, HIDDEN * sizeof *values);
    bytes = gguf_file_bytes(&file, size);
    gguf_file_close(&file);
    return bytes;
}
