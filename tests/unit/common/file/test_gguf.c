/* GGUF files: a tiny model that is read back, and what is refused of a damaged one. */
#include "common/base/log.h"
#include "common/file/gguf.h"
#include "common/model/checkpoint.h"
#include "common/model/model.h"
#include "common/model/model_identity.h"
#include "common/text/tokenizer_gguf.h"
#include "tests/support/capture.h"
#include "tests/support/gguf_tiny.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/test_gguf.XXXXXX";
static char path[64], logged[1 << 16];

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(path, sizeof path, "%s/tiny.gguf", folder);
    return 0;
}

static int empty_folder(void **state)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;

    (void)state;
    while ((entry = readdir(entries)) != NULL)
        unlinkat(dirfd(entries), entry->d_name, 0);
    return closedir(entries);
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static void write_bytes(const char *to, const void *bytes, size_t size)
{
    FILE *file = fopen(to, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static enum status open_tokenizer(const char *file)
{
    struct tokenizer *tokenizer;
    enum status status = tokenizer_gguf_open(file, &tokenizer);

    if (status == STATUS_OK)
        tokenizer_close(tokenizer);
    return status;
}

/* As a rank opens it: the shapes, every tensor that is needed, the tokenizer. */
static enum status open_all(const char *file)
{
    const struct model_options options = {.threads = 1, .max_rows = 4};
    enum status status = model_check(file, 1, &options);

    return status != STATUS_OK ? status : open_tokenizer(file);
}

static void assert_opens(const char *file)
{
    struct capture capture;
    enum status status;

    log_init("test", LOG_DEBUG); /* which forgets what it said of other files */
    capture_begin(&capture);
    status = open_all(file);
    capture_end(&capture, logged, sizeof logged);
    if (status != STATUS_OK)
        fail_msg("status %d: %s", (int)status, logged);
    capture_assert_one_line(logged, "bytes have no token, text loses them: 00 01 02 03 04 05 06 07 ..."); /* it has a few letters only */
}

/* Whether the file is refused in one line that has its name and `part`; the line is in `logged`. */
static int is_refused(const char *file, const char *part)
{
    struct capture capture;
    enum status status;
    const char *end;

    capture_begin(&capture);
    status = open_all(file);
    capture_end(&capture, logged, sizeof logged);
    end = strchr(logged, '\n');
    return status == STATUS_DATA && end != NULL && end[1] == '\0' && strstr(logged, part) != NULL && strstr(logged, file) != NULL;
}

static void assert_refused(const char *file, const char *part)
{
    if (!is_refused(file, part))
        fail_msg("expected a refusal with '%s': %s", part, logged);
}

static void assert_tokens(const struct tokenizer *tokenizer, const char *text, int flags, const int32_t *expected, int expected_count)
{
    int32_t *tokens;
    int count;

    assert_int_equal(tokenizer_encode(tokenizer, text, strlen(text), flags, &tokens, &count, NULL), STATUS_OK);
    assert_int_equal(count, expected_count);
    if (count > 0)
        assert_memory_equal(tokens, expected, (size_t)count * sizeof *tokens);
    free(tokens);
}

static void test_gguf__a_tiny_model_is_read_back(void **state)
{
    struct checkpoint *checkpoint;
    struct config config;
    struct tensor tensor;
    size_t size;
    unsigned char *bytes = gguf_tiny(GGUF_TINY_BYTE_LEVEL, &size);
    float value;

    (void)state;
    write_bytes(path, bytes, size);
    free(bytes);
    assert_opens(path);
    assert_int_equal(config_read(path, &config), STATUS_OK);
    assert_string_equal(config.family->architecture, "LlamaForCausalLM");
    assert_true(config.hidden == 4 && config.layers == 1 && config.heads == 1 && config.kv_heads == 1 && config.head_dim == 4);
    assert_true(config.ffn == 4 && config.vocab == 8 && config.context == 64 && config.norm_eps == 1e-5f && config.tied);
    assert_true(config.rope_adjacent && config.rope == ROPE_PLAIN && config.rope_theta == 10000);
    assert_true(config.bos == 0 && config.eos_count == 1 && config.eos[0] == 0);
    assert_int_equal(checkpoint_open(path, &config, &checkpoint), STATUS_OK);
    assert_int_equal(checkpoint_find(checkpoint, "model.embed_tokens.weight", 8, 4, &tensor), STATUS_OK);
    memcpy(&value, (const char *)checkpoint_row(&tensor, 2) + 4, sizeof value); /* value 9 */
    assert_true(tensor.dtype == DTYPE_F32 && value == -0.5f);
    assert_int_equal(checkpoint_find(checkpoint, "model.layers.0.post_attention_layernorm.weight", 4, 1, &tensor), STATUS_OK);
    assert_false(checkpoint_has(checkpoint, "lm_head.weight"));
    checkpoint_close(checkpoint);
}

static void test_gguf__both_kinds_of_tokenizers_encode_and_spell(void **state)
{
    struct tokenizer *tokenizer;
    size_t size, length;
    unsigned char *bytes = gguf_tiny(GGUF_TINY_BYTE_LEVEL, &size);

    (void)state;
    /* "b" has no merge with what is before it; the user's token is found in plain text, the control token only where it is asked for. */
    struct capture capture;
    log_init("test", LOG_DEBUG);
    capture_begin(&capture);
    assert_int_equal(tokenizer_gguf_read("tiny", bytes, size, &tokenizer), STATUS_OK);
    capture_end(&capture, logged, sizeof logged);
    capture_assert_one_line(logged, "bytes have no token");
    assert_tokens(tokenizer, "ab a\n\nb", TOKENIZER_ADD_SPECIAL, (const int32_t[]){0, 4, 5, 6, 2}, 5);
    assert_tokens(tokenizer, "a<|end|>a", TOKENIZER_PARSE_SPECIAL, (const int32_t[]){1, 0, 1}, 3);
    log_init("test", LOG_WARN);
    capture_begin(&capture);
    assert_tokens(tokenizer, "aqazq", 0, (const int32_t[]){1, 1}, 2); /* said once */
    capture_end(&capture, logged, sizeof logged);
    capture_assert_one_line(logged, "no token: they are lost");
    assert_int_equal(tokenizer_size(tokenizer), 7); /* the last one is padding */
    assert_true(tokenizer_is_special(tokenizer, 0) && !tokenizer_is_special(tokenizer, 6));
    assert_memory_equal(tokenizer_piece(tokenizer, 5, 0, 0, &length), " a", 2);
    tokenizer_close(tokenizer);
    free(bytes);
    bytes = gguf_tiny(GGUF_TINY_SENTENCEPIECE, &size);
    assert_int_equal(tokenizer_gguf_read("tiny", bytes, size, &tokenizer), STATUS_OK);
    assert_tokens(tokenizer, "a a\n", TOKENIZER_ADD_SPECIAL, (const int32_t[]){1, 6, 6, 3}, 4);
    assert_tokens(tokenizer, "z", 0, (const int32_t[]){4, 0}, 2);
    assert_memory_equal(tokenizer_piece(tokenizer, 6, 1, 0, &length), "a", 1);
    assert_int_equal(length, 1);
    tokenizer_close(tokenizer);
    free(bytes);
}

static void test_gguf__a_file_that_is_cut_anywhere_is_refused_in_one_line(void **state)
{
    (void)state;
    for (enum gguf_tiny_kind kind = GGUF_TINY_BYTE_LEVEL; kind <= GGUF_TINY_SENTENCEPIECE; kind++) {
        size_t size;
        unsigned char *bytes = gguf_tiny(kind, &size);

        for (size_t cut = 1; cut < size; cut++) {
            write_bytes(path, bytes, cut);
            if (!is_refused(path, "tiny.gguf: "))
                fail_msg("cut at byte %zu of %zu: %s", cut, size, logged);
        }
        write_bytes(path, bytes, 0);
        assert_refused(path, "0 bytes long");
        free(bytes);
    }
}

/* Where a key's or a tensor's name ends in the file: its type, or its number of dimensions, follows. */
static size_t behind(const unsigned char *bytes, size_t size, const char *name)
{
    uint64_t length = strlen(name);

    for (size_t at = 24; at + 8 + length < size; at++)
        if (memcmp(bytes + at, &length, 8) == 0 && memcmp(bytes + at + 8, name, length) == 0)
            return at + 8 + length;
    fail_msg("%s is not in the file", name);
    return 0;
}

#define MANY "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
#define HALF "\x00\x00\x00\x00\x00\x00\x00\x80"

/* One change of `count` bytes, `from` bytes behind a name (NULL: from the file's start), and what the line must say. */
static const struct change {
    const char *name;
    int from;
    const char *bytes;
    int count;
    const char *part;
} changes[] = {
    {NULL, 0, "GGML", 4, "does not begin with \"GGUF\""},
    {NULL, 4, "\2", 1, "GGUF version 2, expected 3"},
    {NULL, 4, "\0\0\0\3", 4, "GGUF version 50331648, expected 3, little-endian"},
    {NULL, 8, MANY, 8, "claims 18446744073709551615 tensors"},
    {NULL, 8, "\xFF", 1, "claims 255 tensors, expected at most "},
    {NULL, 16, HALF, 8, "claims 9223372036854775808 keys"},
    {NULL, 24, MANY, 8, "ends within a key"},
    {NULL, 24, "\0", 1, "the name of a key is empty"},
    {"general.alignment", 0, "\x0D", 1, "key general.alignment has a value of type 13"},
    {"general.alignment", 4, "\6", 1, "key general.alignment is 6, expected a power of two"},
    {"general.alignment", 4, "\0", 1, "key general.alignment is 0, expected an integer from 1 to 65536"},
    {"general.alignment", 4, "\x40", 1, "does not begin at a multiple of general.alignment"},
    {"general.architecture", 12, "mamba", 5, "key general.architecture is \"mamba\", expected \"llama\", \"qwen2\" or \"qwen3\""},
    {"general.architecture", 12, "\n\x7F\xFF", 3, "key general.architecture is \"?\?\?ma\""},
    {"llama.block_count", 4, "\0", 1, "key llama.block_count is 0, expected an integer from 1 to 1024"},
    {"llama.block_count", 4, "\2", 1, "tensor model.layers.1.input_layernorm.weight is missing"},
    {"llama.block_count", 0, "\6", 1, "key llama.block_count is 1.4013e-45, expected an integer"},
    {"llama.block_count", -1, "u", 1, "key llama.block_count is missing, expected an integer from 1 to 1024"},
    {"llama.context_length", 0, "\5\0\0\0\xFF\xFF\xFF\xFF", 8, "key llama.context_length is -1, expected"},
    {"llama.embedding_length", 4, "\3", 1, "a head has 3 of the 3 numbers"},
    {"llama.embedding_length", 4, "\x08", 1, "tensor model.layers.0.input_layernorm.weight has shape [4], expected [8]"},
    {"llama.feed_forward_length", 4, "\5", 1, "mlp.gate_proj.weight has shape [4, 4], expected [5, 4]"},
    {"llama.attention.head_count", 4, "\3", 1, "a head has 0 of the 4 numbers"},
    {"llama.attention.head_count_kv", 4, "\2", 1, "key llama.attention.head_count_kv is 2, expected a divisor of the number of heads, 1"},
    {"llama.attention.layer_norm_rms_epsilon", 4, "\0\0\xC0\x7F", 4, "layer_norm_rms_epsilon is nan, expected a real number"},
    {"llama.attention.layer_norm_rms_epsilon", 0, "\4", 1, "expected a real number from 1e-12 to 0.1"},
    {"tokenizer.ggml.model", 12, "bert", 4, "key tokenizer.ggml.model is \"bert\", expected \"gpt2\" or \"llama\""},
    {"tokenizer.ggml.pre", 12, "gtp-2", 5, "key tokenizer.ggml.pre is \"gtp-2\", expected the name of a pre-tokenizer"},
    {"tokenizer.ggml.pre", 12, "phi 2", 5, "key tokenizer.ggml.pre is \"phi 2\""},
    {"tokenizer.ggml.tokens", 4, "\x09", 1, "key tokenizer.ggml.tokens has a list of type 9"},
    {"tokenizer.ggml.tokens", 8, "\7", 1, "key [PAD] has a value of type"}, /* its last text is taken for a key */
    {"tokenizer.ggml.tokens", 8, MANY, 8, "ends within a list of texts"},
    {"tokenizer.ggml.tokens", 16, MANY, 8, "ends within a list of texts"},
    {"tokenizer.ggml.tokens", 24, "\xFF", 1, "token 0 is not UTF-8"},
    {"tokenizer.ggml.token_type", 4, "\6", 1, "key tokenizer.ggml.token_type is a list of 8 of type f32, expected a list of type i32"},
    {"tokenizer.ggml.token_type", 16, "\x07", 1, "tokenizer.ggml.tokens: token 0 is not UTF-8, longer than 1024 bytes, or of a type"},
    {"tokenizer.ggml.token_type", 8, MANY, 8, "ends within the value of a key"},
    {"tokenizer.ggml.bos_token_id", 4, "\x09", 1, "key tokenizer.ggml.bos_token_id is 9, expected a token id from 0 to 7"},
    {"tokenizer.ggml.bos_token_id", 4, "\7", 1, "key tokenizer.ggml.bos_token_id is 7, expected the id of a token"},
    {"tokenizer.ggml.bos_token_id", 4, "\xFF\xFF\xFF\xFF", 4, "expected the id of a token, which stands around each text"},
    {"tokenizer.ggml.add_bos_token", 4, "\2", 1, "add_bos_token is a bool that is neither 0 nor 1, expected true or false"},
    {"tokenizer.ggml.merges", 24, "z", 1, "tokenizer.ggml.merges: entry 0 is not two pieces"},
    {"tokenizer.ggml.merges", 25, "a", 1, "tokenizer.ggml.merges: entry 0 is not two pieces"},
    {"token_embd.weight", 0, "\5", 1, "tensor token_embd.weight must have 1 to 4 dimensions"},
    {"token_embd.weight", 0, "\0", 1, "tensor token_embd.weight must have 1 to 4 dimensions"},
    {"token_embd.weight", 4, HALF, 8, "tensor token_embd.weight has a size below 1"},
    {"token_embd.weight", 4, "\0\0\0\0\0\0\0\x40", 8, "tensor token_embd.weight has a shape whose product overflows"},
    {"token_embd.weight", 4, "\0\0\0\0\1\0\0\0", 8, "tensor token_embd.weight has 137438953472 bytes from byte 0 of the data on"},
    {"token_embd.weight", 20, "\x05", 1, "tensor token_embd.weight has type 5, which is not known"},
    {"token_embd.weight", 20, "\x08", 1, "tensor token_embd.weight has rows that are not whole blocks"},
    {"token_embd.weight", 20, "\x1A", 1,
     "tensor model.embed_tokens.weight is I32, expected F32, F16 or BF16, or Q8_0, Q5_0, Q5_1, Q4_0, Q4_1, or Q2_K to Q6_K"},
    {"token_embd.weight", 24, MANY, 8, "does not begin at a multiple of general.alignment"},
    {"token_embd.weight", 24, "\xF8\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8, "tensor token_embd.weight has 128 bytes from byte 18446744073709551608"},
    {"token_embd.weight", 24, "\x08", 1, "tensor blk.0.attn_q.weight overlaps another one"},
    {"token_embd.weight", -6, "g", 1, "tensor token_embd.weight is missing or has not 2 to 4194304 rows"},
    {"blk.0.attn_q.weight", -8, "r", 1, "tensor blk.0.attn_r.weight is not one of a llama model"},
    {"blk.0.attn_output.weight", -13, "q_norm", 6, "tensor blk.0.attn_q_norm.weight is not one of a llama model"},
    {"blk.0.attn_q.weight", -8, "k", 1, "tensor model.layers.0.self_attn.k_proj.weight is also in"},
    {"blk.0.attn_norm.weight", 12, "\x1A", 1, "tensor model.layers.0.input_layernorm.weight is I32, expected F32, F16 or BF16"},
};

static void test_gguf__a_changed_field_is_refused_by_name(void **state)
{
    int wrong = 0;

    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const struct change *change = &changes[i];
        size_t size, at = 0;
        unsigned char *bytes = gguf_tiny(GGUF_TINY_BYTE_LEVEL, &size);

        if (change->name != NULL)
            at = behind(bytes, size, change->name);
        memcpy(bytes + at + change->from, change->bytes, (size_t)change->count);
        write_bytes(path, bytes, size);
        free(bytes);
        if (!is_refused(path, change->part)) {
            print_message("expected a refusal with '%s': %s", change->part, logged);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

/* Whatever a byte becomes, the file is refused or all that is used of it lies inside it: a build with sanitizers sees the rest. */
static void test_gguf__any_byte_may_become_another(void **state)
{
    static const unsigned char masks[] = {0x01, 0x80, 0xFF};
    struct capture capture;
    int opened = 0;

    (void)state;
    capture_begin(&capture);
    for (enum gguf_tiny_kind kind = GGUF_TINY_BYTE_LEVEL; kind <= GGUF_TINY_SENTENCEPIECE; kind++) {
        size_t size;
        unsigned char *bytes = gguf_tiny(kind, &size);

        for (size_t at = 0; at < size; at++)
            for (size_t m = 0; m < sizeof masks; m++) {
                bytes[at] ^= masks[m];
                write_bytes(path, bytes, size);
                opened += open_all(path) == STATUS_OK;
                bytes[at] ^= masks[m];
            }
        free(bytes);
    }
    capture_end(&capture, logged, sizeof logged);
    assert_true(opened > 500); /* weights, at least */
}

static void test_gguf__a_folder_means_its_only_file(void **state)
{
    char second[96], config[96];
    size_t size;
    unsigned char *bytes = gguf_tiny(GGUF_TINY_SENTENCEPIECE, &size);
    uint64_t by_file, by_folder;

    (void)state;
    write_bytes(path, bytes, size);
    assert_int_equal(model_check(folder, 1, &(struct model_options){.threads = 1, .max_rows = 4}), STATUS_OK);
    assert_int_equal(model_identity(path, &by_file), STATUS_OK);
    assert_int_equal(model_identity(folder, &by_folder), STATUS_OK);
    assert_true(by_file == by_folder);
    snprintf(second, sizeof second, "%s/second.gguf", folder);
    write_bytes(second, bytes, size);
    assert_refused(folder, "a folder with several .gguf files and no config.json, expected one of them");
    snprintf(config, sizeof config, "%s/config.json", folder);
    write_bytes(config, "{}", 2); /* which makes it a Hugging Face folder */
    assert_refused(folder, "config.json: ");
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_gguf__a_tiny_model_is_read_back, empty_folder),
        cmocka_unit_test(test_gguf__both_kinds_of_tokenizers_encode_and_spell),
        cmocka_unit_test_teardown(test_gguf__a_file_that_is_cut_anywhere_is_refused_in_one_line, empty_folder),
        cmocka_unit_test_teardown(test_gguf__a_changed_field_is_refused_by_name, empty_folder),
        cmocka_unit_test_teardown(test_gguf__any_byte_may_become_another, empty_folder),
        cmocka_unit_test_teardown(test_gguf__a_folder_means_its_only_file, empty_folder),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
