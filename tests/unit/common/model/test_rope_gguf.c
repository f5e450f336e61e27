/* The keys ARCHITECTURE.rope.scaling of a GGUF file: what a config becomes of them, and what is refused by name. */
#include "common/model/config.h"
#include "common/model/rope.h"
#include "tests/support/capture.h"
#include "tests/support/gguf_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { KEYS = 4, CONTEXT = 64 };

static char path[] = "/tmp/test_rope_gguf.XXXXXX.gguf";

struct key {
    const char *part; /* behind llama.rope.scaling.; NULL: no more */
    float value;
};

static void add_key(struct gguf_file *file, const struct key *key)
{
    char name[96];

    snprintf(name, sizeof name, strcmp(key->part, "scale_linear") == 0 ? "llama.rope.%s" : "llama.rope.scaling.%s", key->part);
    if (strcmp(key->part, "original_context_length") == 0)
        gguf_file_u32(file, name, (uint32_t)key->value);
    else
        gguf_file_f32(file, name, key->value);
}

/* A llama without the tensors of its layer: a config is read from keys and the embedding.  type: NULL leaves the key out */
static void write_scaled(const char *type, const struct key *keys)
{
    static const float embedding[2 * 4];
    struct gguf_file file;

    gguf_file_open(&file);
    gguf_file_text(&file, "general.architecture", "llama");
    gguf_file_u32(&file, "llama.block_count", 1);
    gguf_file_u32(&file, "llama.context_length", CONTEXT);
    gguf_file_u32(&file, "llama.embedding_length", 4);
    gguf_file_u32(&file, "llama.feed_forward_length", 4);
    gguf_file_u32(&file, "llama.attention.head_count", 1);
    gguf_file_f32(&file, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    if (type != NULL)
        gguf_file_text(&file, "llama.rope.scaling.type", type);
    for (int i = 0; i < KEYS && keys[i].part != NULL; i++)
        add_key(&file, &keys[i]);
    gguf_file_tensor(&file, "token_embd.weight", GGUF_FILE_F32, 2, 4, embedding, sizeof embedding);
    gguf_file_write(&file, path);
    gguf_file_close(&file);
}

static struct config config_of(const char *type, const struct key *keys)
{
    struct config config;

    write_scaled(type, keys);
    assert_int_equal(config_read(path, &config), STATUS_OK);
    return config;
}

static void test_rope_gguf__yarn_has_its_own_values_where_keys_are_absent(void **state)
{
    struct config config = config_of("yarn", (const struct key[KEYS]){{"factor", 4}});

    (void)state;
    assert_true(config.rope == ROPE_YARN && config.rope_factor == 4 && config.rope_original_context == CONTEXT && config.context == 4 * CONTEXT);
    assert_true(config.rope_beta_fast == 32 && config.rope_beta_slow == 1 && config.rope_truncate);
    assert_true(config.rope_attention == rope_yarn_attention(4, 1, 0));
}

static void test_rope_gguf__yarn_is_what_its_keys_say(void **state)
{
    struct config config =
        config_of("yarn", (const struct key[KEYS]){{"factor", 2}, {"original_context_length", 16}, {"yarn_beta_fast", 24}, {"yarn_beta_slow", 0.5f}});

    (void)state;
    assert_true(config.rope_original_context == 16 && config.context == CONTEXT && config.rope_beta_fast == 24 && config.rope_beta_slow == 0.5);
    config = config_of("yarn", (const struct key[KEYS]){{"factor", 2}, {"attn_factor", 1.5f}, {"yarn_ext_factor", 1}, {"yarn_log_multiplier", 0}});
    assert_true(config.rope_attention == 1.5 * rope_yarn_attention(2, 1, 0));
    config = config_of("yarn", (const struct key[KEYS]){{"factor", 2}, {"attn_factor", 1.5f}, {"yarn_attn_factor", 1.25f}});
    assert_true(config.rope_attention == 1.5 * 1.25);
}

static void test_rope_gguf__a_factor_without_a_type_is_linear(void **state)
{
    struct config config = config_of(NULL, (const struct key[KEYS]){{"factor", 4}});

    (void)state;
    assert_true(config.rope == ROPE_LINEAR && config.rope_factor == 4);
    config = config_of(NULL, (const struct key[KEYS]){{"scale_linear", 2}});
    assert_true(config.rope == ROPE_LINEAR && config.rope_factor == 2);
    config = config_of(NULL, (const struct key[KEYS]){{"factor", 4}, {"scale_linear", 2}});
    assert_true(config.rope == ROPE_LINEAR && config.rope_factor == 4);
    config = config_of(NULL, (const struct key[KEYS]){{"factor", 4}, {"scale_linear", 0}}); /* which nobody asks then */
    assert_true(config.rope == ROPE_LINEAR && config.rope_factor == 4);
    config = config_of(NULL, (const struct key[KEYS]){{NULL, 0}});
    assert_int_equal(config.rope, ROPE_PLAIN);
    config = config_of("none", (const struct key[KEYS]){{"factor", 4}, {"scale_linear", 2}});
    assert_int_equal(config.rope, ROPE_PLAIN);
}

static void test_rope_gguf__refuses_what_it_cannot_compute(void **state)
{
    static const struct {
        const char *type;
        struct key keys[KEYS];
        const char *part;
    } cases[] = {
        {"longrope", {{"factor", 4}}, "key llama.rope.scaling.type is \"longrope\", expected \"none\", \"linear\" or \"yarn\""},
        {"yarn", {{NULL, 0}}, "key llama.rope.scaling.factor is missing, expected a real number from 1 to 1e+06"},
        {"yarn", {{"factor", 0.5f}}, "key llama.rope.scaling.factor is 0.5"},
        {"yarn", {{"factor", 2}, {"original_context_length", 0}}, "key llama.rope.scaling.original_context_length is 0"},
        {"yarn", {{"factor", 2}, {"yarn_beta_slow", 32}}, "yarn_beta_fast is missing, expected more than yarn_beta_slow, which is 32"},
        {"yarn", {{"factor", 2}, {"yarn_beta_fast", 0}}, "key llama.rope.scaling.yarn_beta_fast is 0"},
        {"yarn", {{"factor", 2}, {"yarn_ext_factor", 0.5f}}, "key llama.rope.scaling.yarn_ext_factor is 0.5"},
        {"yarn", {{"factor", 2}, {"yarn_log_multiplier", 1}}, "key llama.rope.scaling.yarn_log_multiplier is 1"},
        {"yarn", {{"factor", 2}, {"yarn_attn_factor", 0}}, "key llama.rope.scaling.yarn_attn_factor is 0"},
        {"yarn", {{"factor", 2}, {"attn_factor", -1}}, "key llama.rope.scaling.attn_factor is -1"},
        {"linear", {{"factor", 2}, {"attn_factor", 1.5f}}, "key llama.rope.scaling.attn_factor is 1.5"},
        {"none", {{"attn_factor", 1.5f}}, "key llama.rope.scaling.attn_factor is 1.5"},
        {NULL, {{"factor", 0.5f}}, "key llama.rope.scaling.factor is 0.5"},
        {NULL, {{"scale_linear", 0.5f}}, "key llama.rope.scale_linear is 0.5"},
        {"", {{"factor", 4}}, "key llama.rope.scaling.type is \"\", expected"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct capture capture;
        struct config config;
        char logged[1024];

        write_scaled(cases[i].type, cases[i].keys);
        capture_begin(&capture);
        assert_int_equal(config_read(path, &config), STATUS_DATA);
        capture_end(&capture, logged, sizeof logged);
        capture_assert_one_line(logged, cases[i].part);
        capture_assert_one_line(logged, path);
    }
}

static int make_file(void **state)
{
    int descriptor = mkstemps(path, 5);

    (void)state;
    return descriptor < 0 || close(descriptor);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rope_gguf__yarn_has_its_own_values_where_keys_are_absent),
        cmocka_unit_test(test_rope_gguf__yarn_is_what_its_keys_say),
        cmocka_unit_test(test_rope_gguf__a_factor_without_a_type_is_linear),
        cmocka_unit_test(test_rope_gguf__refuses_what_it_cannot_compute),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
