#include "common/model/checkpoint.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/test_checkpoint.XXXXXX";
static char logged[4096]; /* what the last call wrote to stderr */
static const struct config plain = {.vocab = 4};

static void file_write(const char *name, const void *head, size_t head_size, const void *tail, size_t tail_size)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(head, 1, head_size, file), head_size);
    assert_int_equal(fwrite(tail, 1, tail_size, file), tail_size);
    assert_int_equal(fclose(file), 0);
}

static int folder_empty(void **state)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;

    (void)state;
    if (entries == NULL)
        return 1;
    while ((entry = readdir(entries)) != NULL)
        unlinkat(dirfd(entries), entry->d_name, 0);
    return closedir(entries);
}

/* A safetensors file: the header as it is, then `data_size` bytes that begin with `zeros` zeros and then count up from 0. */
static void tensors_write_after(const char *name, const char *header, size_t zeros, size_t data_size)
{
    size_t length = strlen(header);
    uint8_t *bytes = malloc(8 + length + data_size);

    assert_non_null(bytes);
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)length >> 8 * i);
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < data_size; i++)
        bytes[8 + length + i] = (uint8_t)(i < zeros ? 0 : i - zeros);
    file_write(name, bytes, 8 + length + data_size, "", 0);
    free(bytes);
}

static void tensors_write(const char *name, const char *header, size_t data_size)
{
    tensors_write_after(name, header, 0, data_size);
}

static void index_write(const char *text)
{
    file_write("model.safetensors.index.json", text, strlen(text), "", 0);
}

static int stderr_before;

static int logging_begin(void)
{
    int file = open("/tmp", O_TMPFILE | O_RDWR, 0600);

    stderr_before = dup(STDERR_FILENO);
    dup2(file, STDERR_FILENO);
    return file;
}

static void logging_end(int file)
{
    ssize_t size;

    dup2(stderr_before, STDERR_FILENO);
    close(stderr_before);
    size = pread(file, logged, sizeof logged - 1, 0);
    logged[size > 0 ? size : 0] = '\0';
    close(file);
}

static enum status open_logged(const char *path, const struct config *config, struct checkpoint **checkpoint)
{
    int file = logging_begin();
    enum status status = checkpoint_open(path, config, checkpoint);

    logging_end(file);
    return status;
}

static void assert_one_line(const char *part)
{
    if (strchr(logged, '\n') != logged + strlen(logged) - 1 || strstr(logged, part) == NULL)
        fail_msg("expected one line with '%s', found '%s'", part, logged);
}

/* The folder does not open: the status, one line that has both parts, and an untouched output. */
static void assert_refused(enum status expected, const char *file, const char *part)
{
    struct checkpoint *checkpoint = (struct checkpoint *)&plain;

    assert_int_equal(open_logged(folder, &plain, &checkpoint), expected);
    assert_one_line(file);
    assert_one_line(part);
    assert_ptr_equal(checkpoint, &plain);
}

static void assert_not_found(const struct checkpoint *checkpoint, const char *name, int64_t rows, int64_t columns, const char *part)
{
    struct tensor tensor = {.rows = 77}, before = tensor;
    int file = logging_begin();
    enum status status = checkpoint_find(checkpoint, name, rows, columns, &tensor);

    logging_end(file);
    assert_int_equal(status, STATUS_DATA);
    assert_one_line(part);
    assert_memory_equal(&tensor, &before, sizeof tensor);
}

static struct checkpoint *folder_open(const struct config *config)
{
    struct checkpoint *checkpoint = NULL;

    if (open_logged(folder, config, &checkpoint) != STATUS_OK)
        fail_msg("%s", logged);
    assert_string_equal(logged, "");
    return checkpoint;
}

#define TWO_TENSORS                                                                                                                        \
    "{\"__metadata__\":{\"format\":\"pt\"},\"w\":{\"dtype\":\"F16\",\"shape\":[3,4],\"data_offsets\":[0,24]},"                             \
    "\"lm_head.weight\":{\"dtype\":\"BF16\",\"shape\":[5],\"data_offsets\":[24,34]}}"

static void test_checkpoint__finds_tensors_and_their_rows(void **state)
{
    struct checkpoint *checkpoint;
    struct tensor tensor;

    (void)state;
    tensors_write("model.safetensors", TWO_TENSORS "   ", 34);
    checkpoint = folder_open(&plain);
    assert_int_equal(checkpoint_find(checkpoint, "w", 3, 4, &tensor), STATUS_OK);
    assert_true(tensor.dtype == DTYPE_F16 && tensor.rows == 3 && tensor.columns == 4);
    assert_int_equal(*(const uint8_t *)checkpoint_row(&tensor, 0), 0);
    assert_int_equal(*(const uint8_t *)checkpoint_row(&tensor, 2), 16);
    assert_int_equal(checkpoint_find(checkpoint, "lm_head.weight", 5, 1, &tensor), STATUS_OK);
    assert_true(tensor.dtype == DTYPE_BF16 && tensor.rows == 5 && tensor.columns == 1);
    assert_int_equal(*(const uint8_t *)checkpoint_row(&tensor, 1), 26);
    assert_true(checkpoint_has(checkpoint, "w") && checkpoint_has(checkpoint, "lm_head.weight") && !checkpoint_has(checkpoint, "v"));
    checkpoint_close(checkpoint);
}

static void test_checkpoint__a_tied_model_has_no_classifier(void **state)
{
    const struct config tied = {.family = &model_families[FAMILY_LLAMA], .vocab = 5, .tied = 1};
    struct checkpoint *checkpoint;

    (void)state;
    tensors_write("model.safetensors", TWO_TENSORS, 34);
    checkpoint = folder_open(&tied);
    assert_false(checkpoint_has(checkpoint, "lm_head.weight"));
    assert_true(checkpoint_has(checkpoint, "w"));
    checkpoint_close(checkpoint);
}

/* What the warning of tensors that the model does not take says; "" where there is none. */
static void warn_logged(const struct checkpoint *checkpoint)
{
    int file = logging_begin();

    checkpoint_warn_unread(checkpoint);
    logging_end(file);
}

static void folder_warn_logged(const struct config *config)
{
    struct checkpoint *checkpoint = folder_open(config);

    warn_logged(checkpoint);
    checkpoint_close(checkpoint);
}

#define PAIR "\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":"

static void test_checkpoint__warns_of_tensors_that_nothing_takes(void **state)
{
    static const char header[] = "{\"model.layers.1.self_attn.k_proj.bias\":{" PAIR "[4,8]},\"model.layers.1.self_attn.q_proj.bias\":{" PAIR "[0,4]},"
                                 "\"model.layers.2.mlp.up_proj.weight\":{" PAIR "[8,12]},\"model.norm.weight\":{" PAIR "[12,16]}}";
    struct config llama = {.family = &model_families[FAMILY_LLAMA], .vocab = 4, .layers = 2}, qwen2 = llama;

    (void)state;
    tensors_write_after("model.safetensors", header, 4, 16); /* q's bias is zeros */
    folder_warn_logged(&llama);
    assert_one_line("model.safetensors: tensor model.layers.1.self_attn.k_proj.bias (and 1 more) is left out: LlamaForCausalLM of 2 layers has none "
                    "of that name, and if the config's attention_bias is not the model's, what it says is wrong");
    llama.layers = 1;
    folder_warn_logged(&llama);
    assert_one_line("tensor model.layers.1.self_attn.k_proj.bias (and 1 more) is left out: LlamaForCausalLM of 1 layer has none of that name, and if "
                    "the config's num_hidden_layers is not the model's, what it says is wrong");
    qwen2.family = &model_families[FAMILY_QWEN2];
    folder_warn_logged(&qwen2);
    assert_one_line("tensor model.layers.2.mlp.up_proj.weight is left out: Qwen2ForCausalLM of 2 layers has none of that name, and if the config's "
                    "num_hidden_layers is not the model's, what it says is wrong");
    qwen2.layers = 3;
    folder_warn_logged(&qwen2);
    assert_string_equal(logged, "");
}

static void test_checkpoint__names_the_key_that_would_announce_a_tensor(void **state)
{
    static const struct {
        enum family_row row;
        const char *name, *key;
    } cases[] = {
        {FAMILY_LLAMA, "model.layers.1.self_attn.o_proj.bias", "attention_bias"},
        {FAMILY_LLAMA, "model.layers.1.mlp.up_proj.bias", "mlp_bias"},
        {FAMILY_QWEN2, "model.layers.1.self_attn.o_proj.bias", "model_type"}, /* which does not ask for attention_bias */
        {FAMILY_LLAMA, "model.layers.1.self_attn.q_norm.weight", "model_type"},
        {FAMILY_LLAMA, "model.layers.2.mlp.up_proj.bias", "num_hidden_layers"},
        {FAMILY_LLAMA, "model.layers.1.mlp.up_proj.qzeros", "quantization_config"},
        {FAMILY_LLAMA2C, "model.layers.1.mlp.up_proj.bias", "model_type"},
    };
    char header[256], key[64];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct config config = {.family = &model_families[cases[i].row], .vocab = 4, .layers = 2};

        snprintf(header, sizeof header, "{\"%s\":{" PAIR "[0,4]}}", cases[i].name);
        snprintf(key, sizeof key, "if the config's %s is not", cases[i].key);
        tensors_write("model.safetensors", header, 4);
        folder_warn_logged(&config);
        assert_one_line(cases[i].name);
        assert_one_line(key);
    }
}

static void test_checkpoint__says_nothing_of_tensors_that_change_nothing(void **state)
{
    static const char *const names[] = {"lm_head.weight",
                                        "model.layers.0.self_attn.rotary_emb.inv_freq",
                                        "model.layers.0.self_attn.q_proj.qweight",
                                        "model.layers.0.self_attn.q_proj.qzeros",
                                        "model.layers.0.self_attn.q_proj.scales",
                                        "model.layers.0.self_attn.q_proj.g_idx",
                                        "model.layers.0.mlp.up_proj.weight_scale",
                                        "model.layers.0.mlp.up_proj.weight_scale_inv",
                                        "model.layers.0.mlp.up_proj.weight_shape",
                                        "model.layers.0.mlp.up_proj.input_scale",
                                        "model.layers.0.self_attn.k_proj.k_scale",
                                        "model.layers.0.self_attn.v_scale",
                                        "model.layers.0.self_attn.q_proj.output_scale",
                                        "rotary_emb.inv_freq"};
    static const char *const others[] = {"model.layers.0.mlp.qweight",         "model.layers.1.mlp.up_proj.weight_scale",
                                         "model.layers.00.mlp.up_proj.weight", "scales",
                                         "model.embed_tokens.weight.scales",   "model.layers.0.model.norm.weight"};
    struct config tied = {.family = &model_families[FAMILY_LLAMA], .vocab = 5, .layers = 1, .tied = 1, .quantisation.kind = QUANTISATION_FP8};
    char header[256];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names + sizeof others / sizeof *others; i++) {
        int is_other = i >= sizeof names / sizeof *names;
        const char *name = is_other ? others[i - sizeof names / sizeof *names] : names[i];

        snprintf(header, sizeof header, "{\"%s\":{" PAIR "[0,4]}}", name);
        tensors_write("model.safetensors", header, 4);
        folder_warn_logged(&tied);
        if (is_other)
            assert_one_line(name);
        else
            assert_string_equal(logged, "");
    }
    tied.quantisation.kind = QUANTISATION_NONE; /* then a scale is of weights that are taken as they are */
    tensors_write("model.safetensors", "{\"model.layers.0.mlp.up_proj.weight_scale\":{" PAIR "[0,4]}}", 4);
    folder_warn_logged(&tied);
    assert_one_line("model.safetensors: tensor model.layers.0.mlp.up_proj.weight_scale is left out");
}

static void test_checkpoint__names_what_is_missing_or_misshapen(void **state)
{
    struct checkpoint *checkpoint;

    (void)state;
    tensors_write("model.safetensors", TWO_TENSORS, 34);
    checkpoint = folder_open(&plain);
    assert_not_found(checkpoint, "model.norm.weight", 4, 1, "tensor model.norm.weight is missing");
    assert_not_found(checkpoint, "w", 4, 3, "model.safetensors: tensor w has shape [3, 4], expected [4, 3]");
    assert_not_found(checkpoint, "w", 12, 1, "model.safetensors: tensor w has shape [3, 4], expected [12]");
    assert_not_found(checkpoint, "lm_head.weight", 5, 2, "tensor lm_head.weight has shape [5], expected [5, 2]");
    checkpoint_close(checkpoint);
}

static void test_checkpoint__unusable_dtypes_matter_only_when_asked_for(void **state)
{
    struct checkpoint *checkpoint;

    (void)state;
    tensors_write("model.safetensors",
                  "{\"ids\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[0,16]},\"f\":{\"dtype\":\"F8_E4M3\",\"shape\":[3],"
                  "\"data_offsets\":[16,19]},\"n\":{\"dtype\":\"F3_NEW\",\"shape\":[8],\"data_offsets\":[19,22]},"
                  "\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[22,26]},"
                  "\"e\":{\"dtype\":\"F32\",\"shape\":[0,9223372036854775807,8],\"data_offsets\":[22,22]}}",
                  26);
    checkpoint = folder_open(&plain);
    assert_not_found(checkpoint, "ids", 2, 1, "model.safetensors: tensor ids is I64, expected F32, F16 or BF16");
    assert_not_found(checkpoint, "f", 3, 1, "tensor f is F8_E4M3");
    assert_not_found(checkpoint, "n", 8, 1, "tensor n is F3_NEW");
    assert_not_found(checkpoint, "s", 1, 1, "tensor s has shape [], expected [1]");
    checkpoint_close(checkpoint);
}

static void test_checkpoint__refuses_headers_that_do_not_fit_the_data(void **state)
{
    static const struct {
        const char *header;
        size_t data;
        const char *part;
    } cases[] = {
        {TWO_TENSORS, 33, "tensor lm_head.weight: data_offsets [24, 34] are not within the 33 bytes"},
        {TWO_TENSORS, 35, "35 bytes of data, expected 34"},
        {"{}", 1, "1 bytes of data, expected 0"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
         12, "tensor b begins at byte 4, expected 8: the data has an overlap"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[12,16]}"
         "}",
         16, "tensor b begins at byte 12, expected 8: the data has a hole"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "tensor a begins at byte 4, expected 0"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8,
         "tensor a: data_offsets hold 8 bytes, but shape and dtype F32 need 12"},
        {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1, "tensor a: data_offsets hold 1 bytes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
         "tensor a: the product of its shape overflows 64 bits"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}}", 0, "tensor a: the product"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, "tensor a: data_offsets [4, 0] are not within"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4, "tensor a: data_offsets [-4, 0]"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,9223372036854775807]}}", 4, "tensor a: data_offsets [0, 92"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}", 4, "tensor a: \"data_offsets\" must be a list of two"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "tensor a: \"data_offsets\" must be"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "tensor a: \"shape\" must be a list of sizes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, "tensor a: \"shape\" must be a list of sizes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4,
         "tensor a: \"shape\" must be a list of at most 8"},
        {"{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "tensor a: \"dtype\" must be"},
        {"{\"a\":{\"dtype\":\"A_FORMAT_WITH_A_LONG_NAME\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "tensor a: \"dtype\" must be"},
        {"{\"a\":[1]}", 4, "tensor a: \"dtype\" must be"},
        {"{\"a\\nb\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "a tensor's name is empty, longer than 256"},
        {"{\"\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "a tensor's name is empty"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "\"__metadata__\" must be an object of strings"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tensors_write("model.safetensors", cases[i].header, cases[i].data);
        assert_refused(STATUS_DATA, "/model.safetensors: ", cases[i].part);
    }
}

static void test_checkpoint__refuses_headers_that_are_not_json(void **state)
{
    static const char *const cases[][2] = {
        {"", "not valid JSON"},
        {"[]", "the JSON is not an object"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}",
         "duplicate object key"},
        {"{\"a\xff\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}", "not valid JSON at byte"},
        {"{\"a\\u0000\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}", "not valid JSON at byte"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,0]}}", "JSON with too large a number at byte"},
        {"{\"a\":{\"b\":[[[[[[[0]]]]]]]}}", "JSON nested deeper than 8"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tensors_write("model.safetensors", cases[i][0], 0);
        assert_refused(STATUS_DATA, "/model.safetensors: ", cases[i][1]);
    }
}

static void test_checkpoint__refuses_header_lengths_beyond_the_file(void **state)
{
    static const uint8_t one_too_long[8] = {3}, huge[8] = {255, 255, 255, 255, 255, 255, 255, 255};

    (void)state;
    file_write("model.safetensors", one_too_long, 8, "{}", 2);
    assert_refused(STATUS_DATA, "/model.safetensors: ", "the header claims 3 bytes, expected at most 2");
    file_write("model.safetensors", huge, 8, "{}", 2);
    assert_refused(STATUS_DATA, "/model.safetensors: ", "the header claims 18446744073709551615 bytes, expected at most 2");
    file_write("model.safetensors", huge, 7, "", 0);
    assert_refused(STATUS_DATA, "/model.safetensors: ", "7 bytes long");
    file_write("model.safetensors", "", 0, "", 0);
    assert_refused(STATUS_DATA, "/model.safetensors: ", "0 bytes long");
}

static void test_checkpoint__refuses_a_header_over_100_megabytes(void **state)
{
    static const uint8_t length[8] = {0x01, 0xe1, 0xf5, 0x05}; /* 100,000,001 */
    char path[256];

    (void)state;
    file_write("model.safetensors", length, 8, "{}", 2);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    assert_int_equal(truncate(path, 200000000), 0); /* sparse */
    assert_refused(STATUS_DATA, "/model.safetensors: ", "the header claims 100000001 bytes, expected at most 100000000");
}

/* The header of `count` empty tensors. */
static char *many_tensors(int count)
{
    char *header = malloc((size_t)count * 64 + 2);
    size_t used = 0;

    assert_non_null(header);
    header[used++] = '{';
    for (int i = 0; i < count; i++)
        used += (size_t)sprintf(header + used, "%s\"t%d\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}", i == 0 ? "" : ",", i);
    header[used++] = '}';
    header[used] = '\0';
    return header;
}

static void test_checkpoint__holds_65536_tensors_and_no_more(void **state)
{
    char *fits = many_tensors(65536), *too_many = many_tensors(65537), *more = many_tensors(65538); /* one may be no tensor, but metadata */
    struct checkpoint *checkpoint;
    struct tensor tensor;

    (void)state;
    tensors_write("model.safetensors", fits, 0);
    checkpoint = folder_open(&plain);
    for (int i = 0; i < 65536; i++) {
        char name[16];

        snprintf(name, sizeof name, "t%d", i);
        assert_int_equal(checkpoint_find(checkpoint, name, 0, 1, &tensor), STATUS_OK);
    }
    checkpoint_close(checkpoint);
    tensors_write("model.safetensors", too_many, 0);
    assert_refused(STATUS_DATA, "/model.safetensors: ", "expected at most 65536");
    tensors_write("model.safetensors", more, 0);
    assert_refused(STATUS_DATA, "/model.safetensors: ", "65538 tensors, expected at most 65536");
    free(more);
    free(too_many);
    free(fits);
}

static void test_checkpoint__refuses_a_header_of_millions_of_values(void **state)
{
    enum { VALUES = 3 << 20 };
    char *header = malloc(2 * VALUES + 16);
    size_t used;

    (void)state;
    assert_non_null(header);
    used = (size_t)sprintf(header, "{\"a\":[0");
    for (int i = 0; i < VALUES - 4; i++) {
        header[used++] = ',';
        header[used++] = '0';
    }
    strcpy(header + used, "]}");
    tensors_write("model.safetensors", header, 0);
    assert_refused(STATUS_DATA, "/model.safetensors: ", "JSON of more than 2097152 values");
    free(header);
}

static void test_checkpoint__bounds_names(void **state)
{
    char name[258], header[400];
    struct checkpoint *checkpoint;

    (void)state;
    memset(name, 'n', sizeof name);
    name[256] = '\0';
    snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}", name);
    tensors_write("model.safetensors", header, 0);
    checkpoint = folder_open(&plain);
    assert_true(checkpoint_has(checkpoint, name));
    checkpoint_close(checkpoint);
    name[256] = 'n';
    name[257] = '\0';
    snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}", name);
    tensors_write("model.safetensors", header, 0);
    assert_refused(STATUS_DATA, "/model.safetensors: ", "longer than 256 bytes");
    tensors_write("model.safetensors", "{\"a\x7f\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0);
    assert_refused(STATUS_DATA, "/model.safetensors: ", "control characters");
}

#define SHARD(name) "{\"" name "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}"

static void test_checkpoint__reads_shards_by_their_index(void **state)
{
    struct checkpoint *checkpoint;
    struct tensor tensor;

    (void)state;
    tensors_write("one.safetensors", SHARD("a"), 4);
    tensors_write("two.safetensors",
                  "{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]},"
                  "\"unlisted\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                  8);
    index_write("{\"metadata\":{\"total_size\":8},\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}}");
    checkpoint = folder_open(&plain);
    assert_int_equal(checkpoint_find(checkpoint, "a", 1, 1, &tensor), STATUS_OK);
    assert_int_equal(checkpoint_find(checkpoint, "b", 1, 1, &tensor), STATUS_OK);
    assert_int_equal(*(const uint8_t *)checkpoint_row(&tensor, 0), 4);
    checkpoint_close(checkpoint);
}

static void test_checkpoint__refuses_bad_indices(void **state)
{
    static const struct {
        const char *index;
        enum status status;
        const char *part;
    } cases[] = {
        {"{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"gone.safetensors\"}}", STATUS_NOINPUT, "gone.safetensors, which is missing"},
        {"{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"one.safetensors\"}}", STATUS_DATA, "tensor b is not in one.safetensors"},
        {"{\"weight_map\":{\"a\":\"two.safetensors\",\"b\":\"one.safetensors\"}}", STATUS_DATA, "is not in"},
        {"{\"weight_map\":{\"a\":\"../x\"}}", STATUS_DATA, "tensor a is said to be in \"../x\""},
        {"{\"weight_map\":{\"a\":\"/etc/passwd\"}}", STATUS_DATA, "tensor a is said to be in \"/etc/passwd\""},
        {"{\"weight_map\":{\"a\":\"..\"}}", STATUS_DATA, "tensor a is said to be in \"..\""},
        {"{\"weight_map\":{\"a\":\"\"}}", STATUS_DATA, "the shard of tensor a must be"},
        {"{\"weight_map\":{\"a\":\"x\\ny\"}}", STATUS_DATA, "the shard of tensor a must be"},
        {"{\"weight_map\":{\"a\":3}}", STATUS_DATA, "the shard of tensor a must be"},
        {"{\"weight_map\":{\"a\\nb\":\"one.safetensors\"}}", STATUS_DATA, "a tensor's name"},
        {"{\"weight_map\":{}}", STATUS_DATA, "key \"weight_map\" must be an object"},
        {"{\"weight_map\":[]}", STATUS_DATA, "key \"weight_map\" must be an object"},
        {"{}", STATUS_DATA, "key \"weight_map\" must be an object"},
        {"{\"weight_map\":{\"a\":\"one.safetensors\"", STATUS_DATA, "not valid JSON"},
    };

    (void)state;
    tensors_write("one.safetensors", SHARD("a"), 4);
    tensors_write("two.safetensors", SHARD("b"), 4);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        index_write(cases[i].index);
        assert_refused(cases[i].status, "/model.safetensors.index.json: ", cases[i].part);
    }
    tensors_write("three.safetensors", SHARD("a"), 4);
    index_write("{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\",\"c\":\"three.safetensors\"}}");
    assert_refused(STATUS_DATA, ".safetensors: tensor a is also in ", "three.safetensors");
    tensors_write("two.safetensors", SHARD("b"), 3);
    index_write("{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}}");
    assert_refused(STATUS_DATA, "/two.safetensors: ", "tensor b: data_offsets [0, 4] are not within the 3 bytes");
}

static void test_checkpoint__refuses_folders_without_weights(void **state)
{
    struct checkpoint *checkpoint = NULL;
    char path[256];

    (void)state;
    assert_refused(STATUS_DATA, folder, "has no weights: expected model.safetensors or model.safetensors.index.json");
    assert_int_equal(open_logged("/nowhere/model", &plain, &checkpoint), STATUS_NOINPUT);
    assert_one_line("/nowhere/model: no such file or folder");
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_refused(STATUS_DATA, "/model.safetensors: ", "not a regular file");
}

enum { DIM = 4, FFN = 6, LAYERS = 2, HEADS = 2, KV = 2, VOCAB = 5, CONTEXT = 3 }; /* KV = kv heads x head size */
enum {
    LAYER = 2 * DIM + 2 * DIM * DIM + 2 * KV * DIM + 3 * DIM * FFN,
    TURNS = 2 * CONTEXT * 1,
    FLOATS = VOCAB * DIM + LAYERS * LAYER + DIM + TURNS
};

/* A llama2.c file whose floats count up from 0, and its config. */
static struct config bin_write(int tied, int missing, char *path, size_t path_size)
{
    int32_t header[7] = {DIM, FFN, LAYERS, HEADS, 1, tied ? VOCAB : -VOCAB, CONTEXT};
    float weights[FLOATS + VOCAB * DIM];
    struct config config;
    size_t count = (size_t)(tied ? FLOATS : FLOATS + VOCAB * DIM);

    for (size_t i = 0; i < count; i++)
        weights[i] = (float)i;
    file_write("model.bin", header, sizeof header, weights, count * sizeof *weights - (size_t)missing);
    snprintf(path, path_size, "%s/model.bin", folder);
    assert_int_equal(config_read(path, &config), STATUS_OK);
    return config;
}

static void assert_starts(const struct checkpoint *checkpoint, const char *name, int64_t rows, int64_t columns, int first)
{
    struct tensor tensor;
    float value;

    assert_int_equal(checkpoint_find(checkpoint, name, rows, columns, &tensor), STATUS_OK);
    memcpy(&value, checkpoint_row(&tensor, 0), sizeof value);
    assert_true(tensor.dtype == DTYPE_F32 && value == (float)first);
    memcpy(&value, checkpoint_row(&tensor, rows - 1), sizeof value);
    assert_true(value == (float)(first + (rows - 1) * columns));
}

static void test_checkpoint__llama2c_answers_to_hugging_face_names(void **state)
{
    struct checkpoint *checkpoint = NULL;
    char path[256];
    struct config config = bin_write(0, 0, path, sizeof path);
    int at = VOCAB * DIM;

    (void)state;
    assert_int_equal(open_logged(path, &config, &checkpoint), STATUS_OK);
    assert_starts(checkpoint, "model.embed_tokens.weight", VOCAB, DIM, 0);
    assert_starts(checkpoint, "model.layers.1.input_layernorm.weight", DIM, 1, at + DIM);
    at += LAYERS * DIM;
    assert_starts(checkpoint, "model.layers.0.self_attn.q_proj.weight", DIM, DIM, at);
    assert_starts(checkpoint, "model.layers.1.self_attn.q_proj.weight", DIM, DIM, at + DIM * DIM);
    at += LAYERS * DIM * DIM;
    assert_starts(checkpoint, "model.layers.1.self_attn.k_proj.weight", KV, DIM, at + KV * DIM);
    at += LAYERS * KV * DIM;
    assert_starts(checkpoint, "model.layers.1.self_attn.v_proj.weight", KV, DIM, at + KV * DIM);
    at += LAYERS * KV * DIM;
    assert_starts(checkpoint, "model.layers.1.self_attn.o_proj.weight", DIM, DIM, at + DIM * DIM);
    at += LAYERS * DIM * DIM;
    assert_starts(checkpoint, "model.layers.1.post_attention_layernorm.weight", DIM, 1, at + DIM);
    at += LAYERS * DIM;
    assert_starts(checkpoint, "model.layers.1.mlp.gate_proj.weight", FFN, DIM, at + FFN * DIM);
    at += LAYERS * FFN * DIM;
    assert_starts(checkpoint, "model.layers.1.mlp.down_proj.weight", DIM, FFN, at + FFN * DIM);
    at += LAYERS * FFN * DIM;
    assert_starts(checkpoint, "model.layers.1.mlp.up_proj.weight", FFN, DIM, at + FFN * DIM);
    at += LAYERS * FFN * DIM;
    assert_starts(checkpoint, "model.norm.weight", DIM, 1, at);
    assert_starts(checkpoint, "lm_head.weight", VOCAB, DIM, at + DIM + TURNS);
    assert_false(checkpoint_has(checkpoint, "model.layers.2.input_layernorm.weight"));
    checkpoint_close(checkpoint);
}

static void test_checkpoint__llama2c_files_have_one_size(void **state)
{
    struct checkpoint *checkpoint = NULL;
    char path[256], part[128];

    (void)state;
    for (int missing = -4; missing <= 4; missing += 4) {
        struct config config = bin_write(1, missing, path, sizeof path);
        enum status status = open_logged(path, &config, &checkpoint);

        if (missing == 0) {
            assert_int_equal(status, STATUS_OK);
            assert_false(checkpoint_has(checkpoint, "lm_head.weight"));
            checkpoint_close(checkpoint);
            continue;
        }
        snprintf(part, sizeof part, "/model.bin: %d bytes long, expected %d", 28 + FLOATS * 4 - missing, 28 + FLOATS * 4);
        assert_int_equal(status, STATUS_DATA);
        assert_one_line(part);
    }
}

/* Opens a model and finds the tensors of its last layer. */
static void model_check(const char *path)
{
    struct checkpoint *checkpoint = NULL;
    struct config config;
    struct tensor tensor;
    char name[96];

    assert_int_equal(config_read(path, &config), STATUS_OK);
    assert_int_equal(checkpoint_open(path, &config, &checkpoint), STATUS_OK);
    assert_int_equal(checkpoint_find(checkpoint, "model.embed_tokens.weight", config.vocab, config.hidden, &tensor), STATUS_OK);
    assert_int_equal(checkpoint_find(checkpoint, "model.norm.weight", config.hidden, 1, &tensor), STATUS_OK);
    assert_int_equal(checkpoint_has(checkpoint, "lm_head.weight"), !config.tied);
    snprintf(name, sizeof name, "model.layers.%d.self_attn.k_proj.weight", config.layers - 1);
    assert_int_equal(checkpoint_find(checkpoint, name, config.kv_heads * config.head_dim, config.hidden, &tensor), STATUS_OK);
    snprintf(name, sizeof name, "model.layers.%d.self_attn.k_proj.bias", config.layers - 1);
    assert_int_equal(checkpoint_has(checkpoint, name), config.family->qkv_bias);
    snprintf(name, sizeof name, "model.layers.%d.self_attn.k_norm.weight", config.layers - 1);
    assert_int_equal(checkpoint_has(checkpoint, name), config.family->qk_norm);
    snprintf(name, sizeof name, "model.layers.%d.mlp.down_proj.weight", config.layers - 1);
    assert_int_equal(checkpoint_find(checkpoint, name, config.hidden, config.ffn, &tensor), STATUS_OK);
    warn_logged(checkpoint);
    assert_string_equal(logged, "");
    checkpoint_close(checkpoint);
}

static void test_checkpoint__opens_the_embedded_and_the_golden_models(void **state)
{
    static const char *const paths[] = {"launch/demo/target",           "launch/demo/draft",          "tests/golden/models/llama2",
                                        "tests/golden/models/llama31",  "tests/golden/models/linear", "tests/golden/models/mistral",
                                        "tests/golden/models/qwen2",    "tests/golden/models/qwen3",  "tests/golden/models/smollm",
                                        "tests/golden/models/longrope", "tests/golden/models/yarn"};

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char path[512];

        snprintf(path, sizeof path, TANDEM_SOURCE_DIR "/%s", paths[i]);
        model_check(path);
    }
}

static void test_checkpoint__opens_real_llama2c_models(void **state)
{
    static const char *const paths[] = {TANDEM_SOURCE_DIR "/../shared/data/tinyllamas-260k/stories260K.bin",
                                        TANDEM_SOURCE_DIR "/../shared/data/babyllama-tok105/model5000.bin",
                                        TANDEM_SOURCE_DIR "/../shared/data/llama2xs-279k/model.bin"};
    int absent = 0;

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (access(paths[i], R_OK) == 0) {
            model_check(paths[i]);
            continue;
        }
        print_message("skipped: %s is not here\n", paths[i]);
        absent++;
    }
    if (absent == sizeof paths / sizeof *paths)
        skip();
}

static int folder_make(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int folder_remove(void **state)
{
    (void)state;
    return rmdir(folder);
}

/* Maps in few bits whose parts are missing, do not fit each other or are not what the config says. data_size is what the header's offsets need. */
static void test_checkpoint__refuses_maps_in_few_bits_that_do_not_fit(void **state)
{
    static const struct quantisation awq = {.kind = QUANTISATION_AWQ, .group = 32}, gptq = {.kind = QUANTISATION_GPTQ, .group = 32, .zero_added = 1};
    static const struct quantisation sorted = {.kind = QUANTISATION_GPTQ, .group = 32, .is_sorted = 1}, rows = {.kind = QUANTISATION_FP8};
    static const struct quantisation fp8 = {.kind = QUANTISATION_FP8, .block = {64, 32}}, none = {.kind = QUANTISATION_NONE};
    static const char gptq_parts[] = "{\"a.qweight\":{\"dtype\":\"I32\",\"shape\":[8,8],\"data_offsets\":[0,256]},"
                                     "\"a.qzeros\":{\"dtype\":\"I32\",\"shape\":[2,1],\"data_offsets\":[256,264]},"
                                     "\"a.scales\":{\"dtype\":\"F16\",\"shape\":[2,8],\"data_offsets\":[264,296]},"
                                     "\"a.g_idx\":{\"dtype\":\"I32\",\"shape\":[64],\"data_offsets\":[296,552]}}";
    static const char fp8_parts[] = "{\"a.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[8,64],\"data_offsets\":[0,512]},"
                                    "\"a.weight_scale_inv\":{\"dtype\":\"F32\",\"shape\":[1,3],\"data_offsets\":[512,524]}}";
    static const struct {
        const struct quantisation *quantisation;
        const char *header;
        size_t data;
        int64_t rows, columns;
        const char *part;
    } cases[] = {
        {&none, gptq_parts, 552, 8, 64, "tensor a.qweight is I32, and the quantization_config of config.json says none"},
        {&fp8, gptq_parts, 552, 8, 64, "tensor a.qweight is I32, and the quantization_config of config.json says fp8"},
        {&awq, fp8_parts, 524, 8, 64, "tensor a.weight is F8_E4M3, and the quantization_config of config.json says awq"},
        {&gptq, gptq_parts, 552, 8, 64, "tensor a.g_idx has column 0 in group 724183336, expected 0: desc_act is not supported"},
        {&awq, gptq_parts, 552, 8, 64, "tensor a.qweight is I32 [8, 8], expected I32 [64, 1]"},
        {&gptq, gptq_parts, 552, 8, 32, "tensor a.qweight is I32 [8, 8], expected I32 [4, 8]"},
        {&gptq, gptq_parts, 552, 16, 64, "tensor a.qweight is I32 [8, 8], expected I32 [8, 16]"},
        {&gptq, gptq_parts, 552, 12, 64, "a map of 12 x 64 does not divide into groups of 32 columns"},
        {&gptq, gptq_parts, 552, 8, 48, "a map of 8 x 48 does not divide into groups of 32 columns"},
        {&gptq, "{\"a.qweight\":{\"dtype\":\"I32\",\"shape\":[8,8],\"data_offsets\":[0,256]}}", 256, 8, 64,
         "model.safetensors: tensor a.qweight has no .qzeros beside it"},
        {&gptq,
         "{\"a.qweight\":{\"dtype\":\"I32\",\"shape\":[8,8],\"data_offsets\":[0,256]},\"a.qzeros\":{\"dtype\":\"I32\",\"shape\":[2,1],"
         "\"data_offsets\":[256,264]},\"a.scales\":{\"dtype\":\"BF16\",\"shape\":[2,8],\"data_offsets\":[264,296]}}",
         296, 8, 64, "tensor a.scales is BF16 [2, 8], expected F16 [2, 8]"},
        {&fp8, fp8_parts, 524, 8, 64,
         "tensor a.weight_scale_inv is F32 [1, 3], expected F32, F16 or BF16, of one number or one for each of 8 rows, or one for each block of 64 x "
         "32"},
        {&fp8, fp8_parts, 524, 8, 32, "tensor a.weight is F8_E4M3 [8, 64], expected F8_E4M3 [8, 32]"},
        {&rows,
         "{\"a.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[8,64],\"data_offsets\":[0,512]},\"a.weight_scale\":{\"dtype\":\"F32\",\"shape\":[0,0],"
         "\"data_offsets\":[512,512]}}",
         512, 8, 64, "tensor a.weight_scale is F32 [0, 0], expected F32, F16 or BF16, of one number or one for each of 8 rows"},
        {&sorted,
         "{\"a.qweight\":{\"dtype\":\"I32\",\"shape\":[8,8],\"data_offsets\":[0,256]},\"a.qzeros\":{\"dtype\":\"I32\",\"shape\":[2,1],"
         "\"data_offsets\":[256,264]},\"a.scales\":{\"dtype\":\"F16\",\"shape\":[2,8],\"data_offsets\":[264,296]}}",
         296, 8, 64, "tensor a.qweight has no .g_idx beside it, which desc_act promises"},
        {&fp8, "{\"a.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[8,64],\"data_offsets\":[0,512]}}", 512, 8, 64,
         "there is no .weight_scale_inv or .weight_scale"},
        {&gptq,
         "{\"a.qweight\":{\"dtype\":\"I32\",\"shape\":[8,8],\"data_offsets\":[0,256]},\"a.weight\":{\"dtype\":\"F32\",\"shape\":[8,64],"
         "\"data_offsets\":[256,2304]}}",
         2304, 8, 64, "model.safetensors: both a.weight and a.qweight are there, expected one of them"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config config = plain;
        struct checkpoint *checkpoint;

        config.quantisation = *cases[i].quantisation;
        tensors_write("model.safetensors", cases[i].header, cases[i].data);
        checkpoint = folder_open(&config);
        assert_not_found(checkpoint, "a.weight", cases[i].rows, cases[i].columns, cases[i].part);
        checkpoint_close(checkpoint);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_checkpoint__finds_tensors_and_their_rows, folder_empty),
        cmocka_unit_test_teardown(test_checkpoint__a_tied_model_has_no_classifier, folder_empty),
        cmocka_unit_test_teardown(test_checkpoint__warns_of_tensors_that_nothing_takes, folder_empty),
        cmocka_unit_test_teardown(test_checkpoint__names_the_key_that_would_announce_a_tensor, folder_empty),
        cmocka_unit_test_teardown(test_checkpoint__says_nothing_of_tensors_that_change_nothing, folder_empty),
        cmocka_unit_test_teardown(test_checkpoint__names_what_is_missing_or_misshapen, folder_empty),
        cmocka_unit_test_teardown(test_checkpoint__unusable_dtypes_matter_only_when_asked_for, folder_empty),
        cmocka_unit_test_teardown(test_checkpoint__refuses_headers_that_do_not_fit_the_data, folder_empty),
        cmocka_unit_test_teardown(test_checkpoint__refuses_headers_that_are_not_json, folder_empty),
        cmocka_unit_test_teardown(test_checkpoint__refuses_header_lengths_beyond_the_file, folder_empty),
        cmocka_unit_test_teardown(test_checkpoint__refuses_a_header_over_100_megabytes, folder_empty),
        cmocka_unit_test_teardown(test_checkpoint__holds_65536_tensors_and_no_more, folder_empty),
        cmocka_unit_test_teardown(test_checkpoint__refuses_a_header_of_millions_of_values, folder_empty),
        cmocka_unit_test_teardown(test_checkpoint__bounds_names, folder_empty),
        cmocka_unit_test_teardown(test_checkpoint__reads_shards_by_their_index, folder_empty),
        cmocka_unit_test_teardown(test_checkpoint__refuses_bad_indices, folder_empty),
        cmocka_unit_test_teardown(test_checkpoint__refuses_folders_without_weights, folder_empty),
        cmocka_unit_test_teardown(test_checkpoint__llama2c_answers_to_hugging_face_names, folder_empty),
        cmocka_unit_test_teardown(test_checkpoint__refuses_maps_in_few_bits_that_do_not_fit, folder_empty),
        cmocka_unit_test_teardown(test_checkpoint__llama2c_files_have_one_size, folder_empty),
        cmocka_unit_test(test_checkpoint__opens_the_embedded_and_the_golden_models),
        cmocka_unit_test(test_checkpoint__opens_real_llama2c_models),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
