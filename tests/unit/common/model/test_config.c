#include "common/model/config.h"

#include "common/base/log.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/test_config.XXXXXX";
static char logged[4096]; /* what the last config_read wrote to stderr */

static const char llama[] = "{\"model_type\": \"llama\", \"architectures\": [\"LlamaForCausalLM\"], \"hidden_act\": \"silu\","
                            "\"hidden_size\": 64, \"intermediate_size\": 96, \"num_hidden_layers\": 2, \"num_attention_heads\": 8,"
                            "\"num_key_value_heads\": 4, \"vocab_size\": 100, \"max_position_embeddings\": 512,"
                            "\"rms_norm_eps\": 1e-5, \"bos_token_id\": 1, \"eos_token_id\": 2}";

static void file_write(const char *name, const void *bytes, size_t size)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void file_remove(const char *name)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

/* config_read with stderr kept in `logged`. */
static enum status read_logged(const char *path, struct config *config)
{
    int before = dup(STDERR_FILENO), file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    enum status status;
    ssize_t size;

    dup2(file, STDERR_FILENO);
    status = config_read(path, config);
    dup2(before, STDERR_FILENO);
    size = pread(file, logged, sizeof logged - 1, 0);
    logged[size > 0 ? size : 0] = '\0';
    close(file);
    close(before);
    return status;
}

static void assert_one_line(const char *part)
{
    if (strchr(logged, '\n') != logged + strlen(logged) - 1 || strstr(logged, part) == NULL)
        fail_msg("expected one line with '%s', found '%s'", part, logged);
}

/* The status, one line that has the part, and an untouched output. */
static void assert_refused(const char *path, enum status expected, const char *part)
{
    struct config config, before;

    memset(&config, 0x5a, sizeof config);
    before = config;
    assert_int_equal(read_logged(path, &config), expected);
    assert_one_line(part);
    assert_memory_equal(&config, &before, sizeof config);
}

/* Writes the llama config with the patch's keys over it; a patch value "absent" takes the key away. */
static void patched_write(const char *patch)
{
    json_t *object = json_loads(llama, 0, NULL), *keys = json_loads(patch, 0, NULL), *value;
    const char *key;
    char *text;

    assert_non_null(object);
    assert_non_null(keys);
    json_object_foreach(keys, key, value)
    {
        if (json_is_string(value) && strcmp(json_string_value(value), "absent") == 0)
            json_object_del(object, key);
        else
            json_object_set(object, key, value);
    }
    text = json_dumps(object, 0);
    file_write("config.json", text, strlen(text));
    free(text);
    json_decref(keys);
    json_decref(object);
}

static struct config patched_read(const char *patch)
{
    struct config config;

    patched_write(patch);
    if (read_logged(folder, &config) != STATUS_OK)
        fail_msg("%s: %s", patch, logged);
    return config;
}

static void test_config__reads_llama_with_its_defaults(void **state)
{
    struct config config = patched_read("{}");

    (void)state;
    assert_string_equal(config.family->architecture, "LlamaForCausalLM");
    assert_int_equal(config.hidden, 64);
    assert_int_equal(config.layers, 2);
    assert_int_equal(config.heads, 8);
    assert_int_equal(config.kv_heads, 4);
    assert_int_equal(config.head_dim, 8);
    assert_int_equal(config.ffn, 96);
    assert_int_equal(config.vocab, 100);
    assert_int_equal(config.context, 512);
    assert_true(config.norm_eps == 1e-5f);
    assert_false(config.tied || config.family->qkv_bias || config.family->qk_norm || config.rope_adjacent);
    assert_true(config.rope == ROPE_PLAIN && config.rope_theta == 10000 && config.rope_factor == 1);
    assert_int_equal(config.bos, 1);
    assert_int_equal(config.eos_count, 1);
    assert_int_equal(config.eos[0], 2);
    assert_string_equal(logged, "");
    assert_int_equal(patched_read("{\"num_key_value_heads\": \"absent\"}").kv_heads, 8);
    assert_int_equal(patched_read("{\"num_key_value_heads\": null, \"head_dim\": null}").kv_heads, 8);
    assert_int_equal(patched_read("{\"head_dim\": 24}").head_dim, 24);
    assert_int_equal(patched_read("{\"tie_word_embeddings\": true, \"architectures\": \"absent\"}").tied, 1);
    assert_int_equal(patched_read("{\"bos_token_id\": null}").bos, -1);
    assert_int_equal(patched_read("{\"eos_token_id\": \"absent\"}").eos_count, 0);
}

static struct config silently_read(const char *patch)
{
    struct config config;

    log_init("test", LOG_WARN); /* which forgets what it said of the one before, and would not say again */
    config = patched_read(patch);
    assert_string_equal(logged, "");
    return config;
}

static void test_config__reads_rope_under_all_its_spellings(void **state)
{
    static const char *const llama3[] = {
        "{\"rope_theta\": 500000, \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0,"
        " \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192}}",
        "{\"rope_theta\": 5e5, \"rope_scaling\": {\"type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, \"high_freq_factor\": 4,"
        " \"original_max_position_embeddings\": 8192}}",
        "{\"rope_parameters\": {\"rope_theta\": 500000.0, \"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0,"
        " \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192}}",
    };
    static const char *const nulls[] = {
        /* as if absent, on either side */
        "{\"rope_theta\": null, \"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}, \"rope_parameters\": {\"rope_theta\": 10000}}",
        "{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4, \"rope_theta\": null}, \"rope_parameters\": {\"rope_theta\": 10000}}",
        "{\"rope_scaling\": {\"type\": \"linear\", \"rope_type\": null, \"factor\": 4}, \"rope_parameters\": {\"rope_type\": \"linear\"}}",
        "{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}, \"rope_parameters\": {\"rope_theta\": null, \"factor\": null}}",
    };
    struct config config;

    (void)state;
    for (size_t i = 0; i < sizeof llama3 / sizeof *llama3; i++) {
        config = patched_read(llama3[i]);
        assert_int_equal(config.rope, ROPE_LLAMA3);
        assert_true(config.rope_theta == 500000 && config.rope_factor == 8 && config.rope_original_context == 8192);
        assert_true(config.rope_low_frequency == 1 && config.rope_high_frequency == 4);
    }
    config = patched_read("{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.5}}");
    assert_true(config.rope == ROPE_LINEAR && config.rope_factor == 2.5);
    config = patched_read("{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}, \"rope_parameters\": {\"rope_theta\": 500000}}");
    assert_true(config.rope == ROPE_LINEAR && config.rope_factor == 4 && config.rope_theta == 10000); /* the older key counts, alone */
    assert_one_line("key \"rope_theta\" of rope_parameters is left out: rope_scaling is there, and counts alone");
    silently_read("{\"rope_theta\": 500000, \"rope_scaling\": {\"type\": \"linear\", \"factor\": 4},"
                  " \"rope_parameters\": {\"rope_theta\": 5e5, \"factor\": 4.0, \"rope_type\": \"linear\", \"type\": \"linear\","
                  " \"attention_factor\": null, \"partial_rotary_factor\": 1.0}}");
    silently_read("{\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 4},"
                  " \"rope_parameters\": {\"rope_theta\": 10000.0, \"type\": \"linear\"}}"); /* a copy */
    for (size_t i = 0; i < sizeof nulls / sizeof *nulls; i++)
        silently_read(nulls[i]);
    patched_read("{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}, \"rope_parameters\": {\"factor\": 4.5, \"rope_type\": \"linear\"}}");
    assert_one_line("key \"factor\" of rope_parameters is left out");
    config = silently_read("{\"rope_scaling\": {}, \"rope_parameters\": {\"rope_type\": \"linear\", \"factor\": 3}}");
    assert_true(config.rope == ROPE_LINEAR && config.rope_factor == 3);
    config = patched_read("{\"rope_scaling\": null}");
    assert_int_equal(config.rope, ROPE_PLAIN);
    config = patched_read("{\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 1000000.0}}");
    assert_true(config.rope == ROPE_PLAIN && config.rope_theta == 1000000);
}

static void test_config__reads_the_other_families(void **state)
{
    struct config config = patched_read("{\"model_type\": \"qwen2\", \"architectures\": [\"Qwen2ForCausalLM\"],"
                                        "\"use_sliding_window\": false, \"sliding_window\": 16, \"attention_bias\": true}");

    (void)state;
    assert_true(config.family->qkv_bias && !config.family->qk_norm && config.context == 512);
    config = patched_read("{\"model_type\": \"qwen3\", \"architectures\": [\"Qwen3ForCausalLM\"], \"head_dim\": 12}");
    assert_true(!config.family->qkv_bias && config.family->qk_norm && config.head_dim == 12);
    config = patched_read("{\"model_type\": \"mistral\", \"architectures\": [\"MistralForCausalLM\"], \"sliding_window\": null}");
    assert_true(!config.family->qkv_bias && !config.family->qk_norm && config.context == 512);
}

static void test_config__a_sliding_window_limits_the_context_and_says_so(void **state)
{
    static const char *const within[] = {
        "{\"model_type\": \"mistral\", \"architectures\": \"absent\", \"sliding_window\": 512}",
        "{\"model_type\": \"llama\", \"sliding_window\": 100}", /* a key that the family has no use for */
    };
    static const char *const shorter[] = {
        "{\"model_type\": \"mistral\", \"architectures\": \"absent\", \"sliding_window\": 100}",
        "{\"model_type\": \"qwen2\", \"architectures\": \"absent\", \"sliding_window\": 100, \"use_sliding_window\": true}",
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(patched_read(within[i]).context, 512);
        assert_string_equal(logged, "");
        log_init("test", LOG_WARN); /* which forgets what it said of the one before */
        assert_int_equal(patched_read(shorter[i]).context, 100);
        assert_one_line("the context is 100 tokens, not 512");
    }
}

static void test_config__generation_config_has_the_last_word_on_eos(void **state)
{
    static const char wins[] = "{\"eos_token_id\": [7, 8]}", silent[] = "{\"temperature\": 0.6}", wrong[] = "{\"eos_token_id\": 100}";
    struct config config = patched_read("{\"eos_token_id\": [3, 4, 5]}");

    (void)state;
    assert_int_equal(config.eos_count, 3);
    assert_int_equal(config.eos[2], 5);
    file_write("generation_config.json", wins, strlen(wins));
    config = patched_read("{}");
    assert_int_equal(config.eos_count, 2);
    assert_int_equal(config.eos[0], 7);
    assert_int_equal(config.eos[1], 8);
    file_write("generation_config.json", silent, strlen(silent));
    assert_int_equal(patched_read("{}").eos[0], 2);
    file_write("generation_config.json", wrong, strlen(wrong));
    assert_refused(folder, STATUS_DATA, "generation_config.json: key \"eos_token_id\" is 100, expected a token id from 0 to 99");
    file_remove("generation_config.json");
}

static void test_config__generation_config_advises_how_to_sample(void **state)
{
    static const char advice[] = "{\"do_sample\": true, \"temperature\": 0.7, \"top_k\": 20}";
    char text[CONFIG_ADVICE_TEXT];
    struct config config;

    (void)state;
    file_write("generation_config.json", advice, strlen(advice));
    config = patched_read("{}");
    config_advice_write(&config.advice, text);
    assert_string_equal(text, "--temperature 0.7 --top-k 20");
    file_remove("generation_config.json");
}

static void test_config__refuses_what_it_cannot_compute(void **state)
{
    static const char *const cases[][2] = {
        {"{\"model_type\": \"gpt2\"}", "key \"model_type\" is \"gpt2\", expected \"llama\", \"mistral\""},
        {"{\"model_type\": \"absent\"}", "key \"model_type\" is missing"},
        {"{\"model_type\": 3}", "key \"model_type\" is 3"},
        {"{\"architectures\": [\"LlamaForSequenceClassification\"]}", "key \"architectures\" is [\"LlamaForSequenceClassification\"]"},
        {"{\"hidden_act\": \"gelu\"}", "key \"hidden_act\" is \"gelu\", expected \"silu\""},
        {"{\"hidden_act\": \"a\\nb\"}", "key \"hidden_act\" is \"a\\nb\""},
        {"{\"mlp_bias\": true}", "key \"mlp_bias\" is true, expected false"},
        {"{\"mlp_bias\": 1}", "key \"mlp_bias\" is 1, expected true or false"},
        {"{\"attention_bias\": true}", "key \"attention_bias\" is true"},
        {"{\"quantization_config\": 4}", "key \"quantization_config\" is 4, expected an object"},
        {"{\"quantization_config\": {\"bits\": 4}}", "key \"quant_method\" is missing, expected \"awq\", \"gptq\""},
        {"{\"quantization_config\": {\"quant_method\": \"bitsandbytes\"}}", "key \"quant_method\" is \"bitsandbytes\", expected \"awq\""},
        {"{\"quantization_config\": {\"quant_method\": \"awq\"}}", "key \"bits\" is missing"},
        {"{\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 8}}", "key \"bits\" is 8, expected 4"},
        {"{\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4}}", "key \"group_size\" is missing"},
        {"{\"quantization_config\": {\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 48}}",
         "key \"group_size\" is 48, expected a multiple of 32"},
        {"{\"quantization_config\": {\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 0}}",
         "key \"group_size\" is 0, expected a multiple of 32"},
        {"{\"quantization_config\": {\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 64, \"version\": \"gemv\"}}",
         "key \"version\" is \"gemv\""},
        {"{\"quantization_config\": {\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 64, \"zero_point\": false}}",
         "key \"zero_point\" is false"},
        {"{\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 64, \"dynamic\": {\"-:a\": {}}}}",
         "key \"dynamic\" is {"},
        {"{\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 64, \"checkpoint_format\": \"marlin\"}}",
         "key \"checkpoint_format\" is \"marlin\", expected \"gptq\" or \"gptq_v2\""},
        {"{\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 64, \"is_marlin_format\": true}}",
         "key \"is_marlin_format\" is true, expected false"},
        {"{\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 64, \"dynamic\": [1]}}",
         "key \"dynamic\" is [1], expected none"},
        {"{\"quantization_config\": {\"quant_method\": \"fp8\", \"fmt\": \"e5m2\"}}", "key \"fmt\" is \"e5m2\""},
        {"{\"quantization_config\": {\"quant_method\": \"fp8\", \"weight_block_size\": [128]}}",
         "key \"weight_block_size\" is [128], expected a list"},
        {"{\"quantization_config\": {\"quant_method\": \"fp8\", \"weight_block_size\": [128, 0]}}",
         "key \"weight_block_size\" is [128,0], expected a list"},
        {"{\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": \"pack-quantized\"}}",
         "key \"format\" is \"pack-quantized\", expected \"float-quantized\""},
        {"{\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": \"float-quantized\","
         " \"sparsity_config\": {\"format\": \"sparse-24-bitmask\"}}}",
         "expected none, or of format \"dense\""},
        {"{\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": \"float-quantized\", \"config_groups\": [1]}}",
         "key \"config_groups\" is [1], expected an object of groups"},
        {"{\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": \"float-quantized\","
         " \"config_groups\": {\"a\": {\"weights\": {\"num_bits\": 8}}, \"b\": {\"weights\": {\"num_bits\": 4}}}}}",
         "key \"config_groups\" is"},
        {"{\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": \"float-quantized\","
         " \"config_groups\": {\"a\": {\"weights\": {\"num_bits\": 8, \"type\": \"int\"}}}}}",
         "expected weights of num_bits 8, type \"float\" and symmetric in each"},
        {"{\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": \"float-quantized\","
         " \"config_groups\": {\"a\": {\"weights\": {\"symmetric\": false}}}}}",
         "expected weights of num_bits 8"},
        {"{\"rope_interleaved\": true}", "key \"rope_interleaved\" is true"},
        {"{\"partial_rotary_factor\": 0.5}", "key \"partial_rotary_factor\" is 0.5"},
        {"{\"rope_scaling\": {\"rope_type\": \"dynamic\", \"factor\": 4}}",
         "key \"rope_type\" is \"dynamic\", expected \"default\", \"linear\", \"llama3\", \"yarn\", \"longrope\" or \"su\""},
        {"{\"rope_scaling\": {\"type\": \"ntk\", \"factor\": 4}}", "key \"type\" is \"ntk\""},
        {"{\"rope_scaling\": {\"factor\": 4}}", "key \"rope_type\" is missing"},
        {"{\"rope_scaling\": {\"alpha\": 1000}}", "key \"rope_type\" is missing, expected \"default\""},
        {"{\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"default\"}}}", "key \"rope_type\" is missing, expected \"default\""},
        {"{\"rope_scaling\": 4}", "key \"rope_scaling\" is 4, expected an object"},
        {"{\"rope_scaling\": {\"type\": \"linear\"}}", "key \"factor\" is missing"},
        {"{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 0}}", "key \"factor\" is 0"},
        {"{\"rope_scaling\": {\"type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1}}", "key \"high_freq_factor\" is missing"},
        {"{\"rope_scaling\": {\"type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4, \"high_freq_factor\": 4,"
         " \"original_max_position_embeddings\": 64}}",
         "key \"high_freq_factor\" is 4, expected more than low_freq_factor"},
        {"{\"rope_theta\": 1}", "key \"rope_theta\" is 1, expected a number from 2 to 1e+12"},
        {"{\"num_key_value_heads\": 3}", "key \"num_attention_heads\" is 8, expected a multiple of num_key_value_heads, which is 3"},
        {"{\"num_attention_heads\": 9, \"num_key_value_heads\": 9}", "key \"hidden_size\" is 64"},
        {"{\"hidden_size\": 40}", "key \"hidden_size\" is 40"},
        {"{\"head_dim\": 7}", "key \"head_dim\" is 7, expected an even number"},
        {"{\"head_dim\": 0}", "key \"head_dim\" is 0"},
        {"{\"hidden_size\": 64.0}", "key \"hidden_size\" is 64.0, expected an integer"},
        {"{\"hidden_size\": \"64\"}", "key \"hidden_size\" is \"64\", expected an integer"},
        {"{\"num_hidden_layers\": 0}", "key \"num_hidden_layers\" is 0"},
        {"{\"intermediate_size\": -96}", "key \"intermediate_size\" is -96"},
        {"{\"vocab_size\": 4294967396}", "key \"vocab_size\" is 4294967396"},
        {"{\"max_position_embeddings\": 9223372036854775807}", "key \"max_position_embeddings\" is 9223372036854775807"},
        {"{\"rms_norm_eps\": 0}", "key \"rms_norm_eps\" is 0"},
        {"{\"eos_token_id\": 100}", "key \"eos_token_id\" is 100"},
        {"{\"eos_token_id\": [2, -1]}", "key \"eos_token_id\" is [2,-1]"},
        {"{\"eos_token_id\": [0, 1, 2, 3, 4, 5, 6, 7, 8]}", "a list of at most 8"},
        {"{\"bos_token_id\": 100}", "key \"bos_token_id\" is 100"},
        {"{\"model_type\": \"mistral\", \"architectures\": \"absent\", \"sliding_window\": 0}", "key \"sliding_window\" is 0"},
        {"{\"model_type\": \"qwen3\", \"architectures\": \"absent\"}", "key \"head_dim\" is missing"},
        {"{\"model_type\": \"qwen2\", \"architectures\": \"absent\", \"num_key_value_heads\": null}", "key \"num_key_value_heads\" is null"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        patched_write(cases[i][0]);
        assert_refused(folder, STATUS_DATA, cases[i][1]);
        assert_one_line("/config.json: ");
    }
}

#define YARN(keys)     "{\"rope_scaling\": {\"type\": \"yarn\", " keys "}}"
#define LONGROPE(keys) "{\"rope_parameters\": {\"rope_type\": \"longrope\", " keys "}}"

static void test_config__refuses_scalings_that_it_cannot_compute(void **state)
{
    static const char *const cases[][2] = {
        {YARN("\"beta_fast\": 32"), "key \"factor\" is missing, expected a number from 1 to 1e+06"},
        {YARN("\"factor\": null"), "key \"factor\" is null"},
        {YARN("\"factor\": 0.5"), "key \"factor\" is 0.5"},
        {YARN("\"factor\": 4, \"original_max_position_embeddings\": 1"), "key \"original_max_position_embeddings\" is 1"},
        {YARN("\"factor\": 4, \"beta_fast\": 4, \"beta_slow\": 4"), "key \"beta_fast\" is 4, expected more than beta_slow, which is 4"},
        {YARN("\"factor\": 4, \"beta_slow\": 40"), "key \"beta_fast\" is missing, expected more than beta_slow, which is 40"},
        {YARN("\"factor\": 4, \"beta_slow\": 0"), "key \"beta_slow\" is 0"},
        {YARN("\"factor\": 4, \"truncate\": 0"), "key \"truncate\" is 0, expected true or false"},
        {YARN("\"factor\": 4, \"mscale\": -1"), "key \"mscale\" is -1"},
        {YARN("\"factor\": 4, \"mscale_all_dim\": \"1\""), "key \"mscale_all_dim\" is \"1\""},
        {YARN("\"factor\": 4, \"attention_factor\": 0"), "key \"attention_factor\" is 0"},
        {YARN("\"factor\": 4, \"attn_factor\": 2"), "key \"attn_factor\" is 2, expected a number from 1 to 1"},
        {YARN("\"factor\": 4, \"extrapolation_factor\": 0.5"), "key \"extrapolation_factor\" is 0.5, expected a number from 1 to 1"},
        {LONGROPE("\"factor\": 4"), "key \"original_max_position_embeddings\" is missing"},
        {LONGROPE("\"original_max_position_embeddings\": 64"), "key \"short_factor\" is missing, expected a list of 4 numbers from 0.001 to 1e+06"},
        {LONGROPE("\"original_max_position_embeddings\": 64, \"factor\": 0.5"), "key \"factor\" is 0.5"},
        {LONGROPE("\"original_max_position_embeddings\": 64, \"short_factor\": 1"), "key \"short_factor\" is 1"},
        {LONGROPE("\"original_max_position_embeddings\": 64, \"short_factor\": [1, 1, 1]"), "key \"short_factor\" is [1,1,1]"},
        {LONGROPE("\"original_max_position_embeddings\": 64, \"short_factor\": [1, 1, 1, 1, 1]"), "key \"short_factor\" is [1,1,1,1,1]"},
        {LONGROPE("\"original_max_position_embeddings\": 64, \"short_factor\": [1, 1, \"1\", 1]"), "key \"short_factor\" is [1,1,\"1\",1]"},
        {LONGROPE("\"original_max_position_embeddings\": 64, \"short_factor\": [1, 1, 1, 1], \"long_factor\": [1, 2, 0, 3]"),
         "key \"long_factor\" is [1,2,0,3]"},
        {LONGROPE("\"original_max_position_embeddings\": 64, \"short_factor\": [1, 1, 1, 1], \"long_factor\": [1, 2, 3, 4],"
                  "\"attention_factor\": -1"),
         "key \"attention_factor\" is -1"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        patched_write(cases[i][0]);
        assert_refused(folder, STATUS_DATA, cases[i][1]);
        assert_one_line("/config.json: ");
    }
}

static void test_config__keys_of_scalings_that_mean_nothing_here_are_told(void **state)
{
    static const char *const silent[] = {
        "{\"rope_scaling\": {}}",
        "{\"rope_parameters\": {\"rope_theta\": 20000, \"partial_rotary_factor\": 1.0}}",
        "{\"rope_scaling\": {\"type\": \"linear\", \"rope_type\": \"linear\", \"factor\": 2, \"alpha\": null}}",
        YARN("\"factor\": 4, \"finetuned\": true, \"beta_fast\": 32, \"beta_slow\": 1, \"truncate\": false, \"mscale\": 1, \"mscale_all_dim\": 1,"
             "\"attn_factor\": 1, \"extrapolation_factor\": 1, \"attention_factor\": 1, \"original_max_position_embeddings\": 64"),
        LONGROPE("\"original_max_position_embeddings\": 64, \"factor\": 2, \"attention_factor\": 1, \"short_factor\": [1, 1, 1, 1],"
                 "\"long_factor\": [1, 2, 3, 4]"),
    };
    static const char *const told[][2] = {
        {"{\"rope_scaling\": {\"type\": \"default\", \"factor\": 4}}", "key \"factor\" of default rotary positions is not known here, and left out"},
        {"{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2, \"low_freq\": 4}}", "config.json: key \"low_freq\" of linear rotary positions"},
        {"{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2, \"\": 4}}", "key \"\" of linear rotary positions"},
        {YARN("\"factor\": 4, \"llama_4_scaling_beta\": 0.1"), "key \"llama_4_scaling_beta\" of yarn rotary positions is not known here"},
    };

    (void)state;
    log_init("test", LOG_WARN);
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) {
        patched_read(silent[i]);
        assert_string_equal(logged, "");
    }
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        log_init("test", LOG_WARN);
        patched_read(told[i][0]);
        assert_one_line(told[i][1]);
    }
}

/* Of 512 tokens in max_position_embeddings. */
static void test_config__yarn_stretches_the_context_and_a_window_ends_it(void **state)
{
    (void)state;
    assert_int_equal(patched_read(YARN("\"factor\": 4")).context, 2048);
    assert_int_equal(patched_read(YARN("\"factor\": 2.5, \"original_max_position_embeddings\": 301")).context, 752);
    assert_int_equal(patched_read(YARN("\"factor\": 4, \"original_max_position_embeddings\": 64")).context, 512);
    assert_int_equal(patched_read(YARN("\"factor\": 1000000")).context, CONFIG_MAX_CONTEXT);
    log_init("test", LOG_WARN);
    assert_int_equal(patched_read("{\"model_type\": \"mistral\", \"architectures\": \"absent\", \"sliding_window\": 1000,"
                                  " \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4}}")
                         .context,
                     1000);
    assert_one_line("the context is 1000 tokens, not 2048");
    assert_int_equal(patched_read(LONGROPE("\"original_max_position_embeddings\": 64, \"short_factor\": [1, 1, 1, 1],"
                                           "\"long_factor\": [1, 2, 3, 4]"))
                         .context,
                     512);
}

static void test_config__names_each_missing_key(void **state)
{
    static const char *const keys[] = {"hidden_size", "intermediate_size",       "num_hidden_layers", "num_attention_heads",
                                       "vocab_size",  "max_position_embeddings", "rms_norm_eps"};

    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char patch[64], part[64];

        snprintf(patch, sizeof patch, "{\"%s\": \"absent\"}", keys[i]);
        snprintf(part, sizeof part, "config.json: key \"%s\" is missing", keys[i]);
        patched_write(patch);
        assert_refused(folder, STATUS_DATA, part);
    }
}

static void test_config__refuses_what_is_not_json(void **state)
{
    static const char *const cases[][2] = {
        {"", "not valid JSON"},
        {"{\"a\": 1", "not valid JSON"},
        {"{\"a\":\n\n1 2}", "not valid JSON"},
        {"{\"a\": 1, \"a\": 2}", "not valid JSON"},
        {"{\"a\": \"\xff\xfe\"}", "not valid JSON"},
        {"{\"a\": 1} {}", "not valid JSON"},
        {"{\"a\": 99999999999999999999}", "JSON with too large a number at byte"},
        {"{\"a\": 1e999}", "JSON with too large a number at byte"},
        {"{\"a\": NaN}", "not valid JSON"},
        {"[1, 2]", "the JSON is not an object"},
        {"{\"a\": [[[[[[[[[[0]]]]]]]]]]}", "JSON nested deeper than 8"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        file_write("config.json", cases[i][0], strlen(cases[i][0]));
        assert_refused(folder, STATUS_DATA, cases[i][1]);
        assert_one_line("/config.json: ");
    }
}

static void test_config__refuses_a_file_over_4_megabytes(void **state)
{
    enum { MOST = 4 << 20 };
    char *text = malloc(MOST + 1);

    (void)state;
    assert_non_null(text);
    memset(text, ' ', MOST + 1);
    memcpy(text, "{}", 2);
    file_write("config.json", text, MOST);
    assert_refused(folder, STATUS_DATA, "key \"model_type\" is");
    file_write("config.json", text, MOST + 1);
    assert_refused(folder, STATUS_DATA, "/config.json: longer than 4194304 bytes");
    free(text);
}

static void test_config__refuses_what_is_no_model(void **state)
{
    char path[256];

    (void)state;
    assert_refused("/nowhere/model", STATUS_NOINPUT, "/nowhere/model: no such file or folder");
    file_remove("config.json");
    assert_refused(folder, STATUS_DATA, "is not a model folder: it has no config.json and no .gguf file");
    file_write("model.onnx", "ONNX", 4);
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    assert_refused(path, STATUS_DATA, "model.onnx: neither a model folder nor a .gguf or llama2.c .bin file");
}

static void test_config__reads_llama2c_headers(void **state)
{
    int32_t header[7] = {32, 80, 2, 4, 2, 50, 64};
    struct config config;
    char path[256];

    (void)state;
    snprintf(path, sizeof path, "%s/model.bin", folder);
    file_write("model.bin", header, sizeof header);
    assert_int_equal(read_logged(path, &config), STATUS_OK);
    assert_string_equal(config.family->architecture, "llama2.c");
    assert_true(config.hidden == 32 && config.ffn == 80 && config.layers == 2 && config.heads == 4 && config.kv_heads == 2);
    assert_true(config.head_dim == 8 && config.vocab == 50 && config.context == 64 && config.tied && config.rope_adjacent);
    assert_true(config.norm_eps == 1e-5f && config.rope_theta == 10000 && config.rope == ROPE_PLAIN);
    assert_true(config.bos == 1 && config.eos_count == 2 && config.eos[0] == 1 && config.eos[1] == 2);
    header[5] = -50;
    file_write("model.bin", header, sizeof header);
    assert_int_equal(read_logged(path, &config), STATUS_OK);
    assert_true(config.vocab == 50 && !config.tied);
}

static void test_config__refuses_bad_llama2c_headers(void **state)
{
    static const struct {
        int field;
        int32_t value;
        const char *part;
    } cases[] = {
        {0, 36, "dim is 36, expected an even multiple of n_heads, which is 4"},
        {0, 0x616b3432, "dim is 1634415666"}, /* the magic number of version 1 */
        {1, 0, "hidden_dim is 0"},
        {2, -1, "n_layers is -1"},
        {3, 0, "n_heads is 0"},
        {4, 3, "n_heads is 4, expected a multiple of n_kv_heads, which is 3"},
        {5, INT32_MIN, "vocab_size is -2147483648"},
        {6, INT32_MAX, "seq_len is 2147483647"},
    };
    char path[256];

    (void)state;
    snprintf(path, sizeof path, "%s/model.bin", folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t header[7] = {32, 80, 2, 4, 2, 50, 64};

        header[cases[i].field] = cases[i].value;
        file_write("model.bin", header, sizeof header);
        assert_refused(path, STATUS_DATA, cases[i].part);
        assert_one_line("/model.bin: ");
    }
    file_write("model.bin", "short", 5);
    assert_refused(path, STATUS_DATA, "model.bin: 5 bytes long, expected a llama2.c header of 28");
    file_write("model.bin", "", 0);
    assert_refused(path, STATUS_DATA, "model.bin: 0 bytes long");
}

static void test_config__reads_the_embedded_pair(void **state)
{
    struct config target, draft;

    (void)state;
    assert_int_equal(config_read(TANDEM_SOURCE_DIR "/launch/demo/target", &target), STATUS_OK);
    assert_int_equal(config_read(TANDEM_SOURCE_DIR "/launch/demo/draft", &draft), STATUS_OK);
    assert_true(target.hidden == 256 && target.layers == 6 && target.head_dim == 32 && target.tied && target.context == 1024);
    assert_true(draft.hidden == 96 && draft.head_dim == 24 && draft.vocab == target.vocab);
    assert_true(target.bos == 0 && target.eos_count == 1 && target.eos[0] == 0);
}

static void test_config__reads_the_golden_models(void **state)
{
    static const char *const names[] = {"llama2", "llama31", "linear", "longrope", "mistral", "qwen2", "qwen3", "smollm", "yarn"};
    struct config config;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];

        snprintf(path, sizeof path, TANDEM_SOURCE_DIR "/tests/golden/models/%s", names[i]);
        assert_int_equal(read_logged(path, &config), STATUS_OK);
        assert_string_equal(logged, "");
        assert_int_equal(config.context, 128);
    }
}

static void test_config__reads_real_llama2c_models(void **state)
{
    static const char path[] = TANDEM_SOURCE_DIR "/../shared/data/tinyllamas-260k/stories260K.bin";
    struct config config;

    (void)state;
    if (access(path, R_OK) != 0) {
        print_message("skipped: %s is not here\n", path);
        skip();
    }
    assert_int_equal(config_read(path, &config), STATUS_OK);
    assert_true(config.hidden == 64 && config.ffn == 172 && config.layers == 5 && config.heads == 8 && config.kv_heads == 4);
    assert_true(config.vocab == 512 && config.context == 512 && config.tied);
}

static void test_config__allows_widths_that_divide_everything(void **state)
{
    struct config config = {.heads = 8, .kv_heads = 4, .ffn = 96};
    char allowed[32], narrow[6];

    (void)state;
    assert_true(config_allows_width(&config, 2, allowed, sizeof allowed));
    assert_string_equal(allowed, "1, 2, 4, 8");
    assert_false(config_allows_width(&config, 3, allowed, sizeof allowed));
    assert_true(config_allows_width(&config, 8, allowed, sizeof allowed)); /* each kv head on two */
    assert_false(config_allows_width(&config, 16, allowed, sizeof allowed));
    assert_false(config_allows_width(&config, 0, allowed, sizeof allowed));
    assert_false(config_allows_width(&config, -1, allowed, sizeof allowed));
    config.ffn = 98;
    assert_false(config_allows_width(&config, 4, allowed, sizeof allowed));
    assert_string_equal(allowed, "1, 2");
    config = (struct config){.heads = 12, .kv_heads = 4, .ffn = 96}; /* 6 is no multiple of the kv heads, nor do they divide by it */
    assert_false(config_allows_width(&config, 6, allowed, sizeof allowed));
    assert_string_equal(allowed, "1, 2, 4, 12");
    config = (struct config){.heads = 8, .kv_heads = 4, .ffn = 96};
    assert_true(config_allows_width(&config, 4, narrow, sizeof narrow));
    assert_string_equal(narrow, "1, 2");
}

/* SmolLM2-135M and its first 20 layers are large, and the embedded pair is not. */
static void test_config__is_large_from_32_million_weights_for_each_rank_on(void **state)
{
    struct config smollm2 = {.hidden = 576, .layers = 30, .heads = 9, .kv_heads = 3, .head_dim = 64, .ffn = 1536, .vocab = 49152}, config;
    struct config even = {.hidden = 1024, .layers = 2, .heads = 8, .kv_heads = 8, .head_dim = 128, .ffn = 4096, .vocab = 0};

    (void)state;
    assert_true(config_is_large(&smollm2, 0, 1));
    assert_true(config_is_large(&smollm2, 20, 2));
    assert_false(config_is_large(&smollm2, 20, 3));
    assert_false(config_is_large(&smollm2, 1, 1)); /* 3,538,944 and 28,311,552 of the classifier */
    assert_true(config_is_large(&even, 0, 1)); /* 2^25 */
    assert_false(config_is_large(&even, 0, 2));
    assert_false(config_is_large(&even, 1, 1));
    even.ffn--;
    assert_false(config_is_large(&even, 0, 1));
    assert_int_equal(config_read(TANDEM_SOURCE_DIR "/launch/demo/target", &config), STATUS_OK);
    assert_false(config_is_large(&config, 0, 1));
}

static int folder_make(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int folder_remove(void **state)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;

    (void)state;
    while (entries != NULL && (entry = readdir(entries)) != NULL)
        unlinkat(dirfd(entries), entry->d_name, 0);
    closedir(entries);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config__reads_llama_with_its_defaults),
        cmocka_unit_test(test_config__reads_rope_under_all_its_spellings),
        cmocka_unit_test(test_config__reads_the_other_families),
        cmocka_unit_test(test_config__a_sliding_window_limits_the_context_and_says_so),
        cmocka_unit_test(test_config__generation_config_has_the_last_word_on_eos),
        cmocka_unit_test(test_config__generation_config_advises_how_to_sample),
        cmocka_unit_test(test_config__refuses_what_it_cannot_compute),
        cmocka_unit_test(test_config__refuses_scalings_that_it_cannot_compute),
        cmocka_unit_test(test_config__keys_of_scalings_that_mean_nothing_here_are_told),
        cmocka_unit_test(test_config__yarn_stretches_the_context_and_a_window_ends_it),
        cmocka_unit_test(test_config__names_each_missing_key),
        cmocka_unit_test(test_config__refuses_what_is_not_json),
        cmocka_unit_test(test_config__refuses_a_file_over_4_megabytes),
        cmocka_unit_test(test_config__refuses_what_is_no_model),
        cmocka_unit_test(test_config__reads_llama2c_headers),
        cmocka_unit_test(test_config__refuses_bad_llama2c_headers),
        cmocka_unit_test(test_config__reads_the_embedded_pair),
        cmocka_unit_test(test_config__reads_the_golden_models),
        cmocka_unit_test(test_config__reads_real_llama2c_models),
        cmocka_unit_test(test_config__allows_widths_that_divide_everything),
        cmocka_unit_test(test_config__is_large_from_32_million_weights_for_each_rank_on),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
