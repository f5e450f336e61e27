/* Every call out of the readers of files fails in turn: tokenizers, models, prompts, options. */
#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include "common/model/forward.h"
#include "common/options/options.h"
#include "common/text/tokenizer_bin.h"
#include "common/text/tokenizer_json.h"
#include "tests/fault/fail_nth.h"
#include "verifier/request/request.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h> /* needs those above */

enum { ALL = 400, FILE_BYTES = 8192, VOCAB_MOST = 4096 };

#define CORPUS TANDEM_SOURCE_DIR "/tests/fuzz/corpus/"
#define GOLDEN TANDEM_SOURCE_DIR "/tests/golden/models/"

static char folder[] = "/tmp/test_fail_nth.XXXXXX";
static char bin_model[64], bin_tokenizer[64], gguf_model[64], gguf_pieces[64], prompts[64], chats[64], chat_config[64], config[64];
static struct tokenizer *demo;

static void copy(const char *from, size_t skip, const char *name, char to[64])
{
    static char bytes[FILE_BYTES];
    FILE *file = fopen(from, "rb");
    size_t count;

    assert_non_null(file);
    count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    snprintf(to, 64, "%s/%s", folder, name);
    file = fopen(to, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes + skip, 1, count - skip, file), count - skip);
    assert_int_equal(fclose(file), 0);
}

static void put(const char *text, const char *name, char to[64])
{
    FILE *file;

    snprintf(to, 64, "%s/%s", folder, name);
    file = fopen(to, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
    (void)state;
    log_init("test_fail_nth", LOG_WARN);
    json_object_seed(1); /* not from /dev/urandom, which may fail: jansson then asks the clock, and no two runs are alike */
    assert_non_null(mkdtemp(folder));
    copy(CORPUS "llama2c/layers", 0, "model.bin", bin_model);
    copy(CORPUS "tokenizer_bin/good", 1, "tokenizer.bin", bin_tokenizer);
    copy(CORPUS "gguf/good-byte-level", 0, "model.gguf", gguf_model);
    copy(CORPUS "gguf/good-sentencepiece", 0, "pieces.gguf", gguf_pieces);
    put("{\"id\":\"a\",\"prompt\":\"It "
        "is\",\"stop\":[\"x\",\"y\"]}\n{\"prompt_tokens\":[1,2],\"top_k\":3,\"logit_bias\":{\"7\":1},\"bad_words\":[\"sea\",[5,6]],\"stop_"
        "token_ids\":[9]}\n\n{\"prompt\":7}\nno JSON\n"
        "{\"prompt\":\"a\",\"what\":1}\n{\"id\":[1,\"b\"],\"prompt\":\"the sea\",\"temperature\":0.5}\n"
        "{\"custom_id\":\"o\",\"method\":\"POST\",\"url\":\"/v1/"
        "completions\",\"body\":{\"model\":\"m\",\"prompt\":[\"sea\"],\"stop\":\"x\",\"n\":1}}\n"
        "{\"custom_id\":\"p\",\"method\":\"POST\",\"url\":\"/v1/completions\",\"body\":{\"prompt\":\"a\",\"what\":1}}\n",
        "prompts.jsonl", prompts);
    put("{\"chat_template\":\"{{ '<|im_start|>system\\\\nBe kind.<|im_end|>' }}\",\"eos_token\":\"<|endoftext|>\"}",
        "tokenizer_config.json", chat_config);
    put("{\"messages\":[{\"role\":\"user\",\"content\":\"It is\"}],\"stop\":[\"x\"]}\n"
        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}]}\n{"
        "\"messages\":[{}]}\n",
        "chats.jsonl", chats);
    put("[Models]\ntarget = some/model\ndraft = other\n[Sampling]\ntemperature = 0.5\nstop = one\nstop = two\n", "tandem.conf", config);
    assert_int_equal(tokenizer_open(TANDEM_SOURCE_DIR "/launch/demo/target", 0, &demo), STATUS_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tokenizer_close(demo);
    unlink(bin_model);
    unlink(bin_tokenizer);
    unlink(gguf_model);
    unlink(gguf_pieces);
    unlink(prompts);
    unlink(chat_config);
    unlink(chats);
    unlink(config);
    return rmdir(folder);
}

/* A tokenizer at work: what it makes of a text that every part of it has to do with. */
static enum status use_tokenizer(const char *path, int vocab, uint64_t *output)
{
    static const char text[] = "a <s>b\xC3\xA9 e\xCC\x81 12  \xE2\x96\x81xyz ab\n";
    struct tokenizer *tokenizer;
    enum status status = tokenizer_open(path, vocab, &tokenizer);
    int32_t *tokens = NULL;
    int count = 0;

    if (status != STATUS_OK)
        return status;
    status = tokenizer_encode(tokenizer, text, sizeof text - 1, TOKENIZER_ADD_SPECIAL | TOKENIZER_PARSE_SPECIAL, &tokens, &count, NULL);
    if (status == STATUS_OK)
        *output = digest_bytes(tokens, (size_t)count * sizeof *tokens, tokenizer_digest(tokenizer));
    free(tokens);
    tokenizer_close(tokenizer);
    return status;
}

static enum status byte_level(uint64_t *output)
{
    return use_tokenizer(CORPUS "tokenizer/llama3", 0, output);
}

static enum status byte_fallback(uint64_t *output)
{
    return use_tokenizer(CORPUS "tokenizer/byte-fallback", 0, output);
}

static enum status composed(uint64_t *output)
{
    return use_tokenizer(CORPUS "tokenizer/nfc", 0, output);
}

static enum status spaces_marked(uint64_t *output)
{
    return use_tokenizer(CORPUS "tokenizer/metaspace", 0, output);
}

static enum status llama2c_pieces(uint64_t *output)
{
    return use_tokenizer(bin_tokenizer, 12, output);
}

static enum status gguf_with_merges(uint64_t *output)
{
    return use_tokenizer(gguf_model, 0, output);
}

static enum status gguf_with_scores(uint64_t *output)
{
    return use_tokenizer(gguf_pieces, 0, output);
}

static enum status embedded(uint64_t *output)
{
    return use_tokenizer(TANDEM_SOURCE_DIR "/launch/demo/target", 0, output);
}

/* The logits of token 1 at place 0. */
static enum status run_model(struct model *model, float *logits)
{
    const int32_t token = 1, zero = 0;
    const uint64_t ancestors = 1;
    const struct rows rows = {1, (int32_t *)(uintptr_t)&token, (int32_t *)(uintptr_t)&zero, (int32_t *)(uintptr_t)&zero,
                              (int32_t *)(uintptr_t)&zero, (int32_t *)(uintptr_t)&zero, (uint64_t *)(uintptr_t)&ancestors};
    struct kv_cache cache;
    struct forward forward;
    enum status status;

    TRY(kv_cache_open(&cache, model, 1));
    TRY_TO(forward_open(&forward, model, &cache), close_cache);
    status = forward_run(&forward, &rows, &zero, 1, logits);
    forward_close(&forward);
close_cache:
    kv_cache_close(&cache);
    return status;
}

static enum status use_model(const char *path, uint64_t *output)
{
    static float logits[VOCAB_MOST];
    const struct model_options options = {.threads = 2, .max_rows = BACKEND_MAX_ROWS};
    struct group group;
    struct model *model;
    enum status status;

    group_open_self(&group);
    status = model_open(path, &group, &options, &model);
    if (status == STATUS_OK) {
        status = run_model(model, logits);
        *output = digest_bytes(model->config.eos, sizeof model->config.eos, digest_bytes(logits, (size_t)model->vocab * sizeof *logits, 0));
        model_close(model);
    }
    group_close(&group);
    return status;
}

static enum status one_file(uint64_t *output)
{
    return use_model(GOLDEN "llama2", output);
}

static enum status shards(uint64_t *output)
{
    return use_model(GOLDEN "mistral", output);
}

static enum status llama2c(uint64_t *output)
{
    return use_model(bin_model, output);
}

static enum status gguf(uint64_t *output)
{
    return use_model(gguf_model, output);
}

static uint64_t digest_of(const struct request *request, uint64_t digest)
{
    digest = digest_bytes(request->tokens, (size_t)request->prompt_count * sizeof *request->tokens, digest);
    if (request->id != NULL)
        digest = digest_bytes(request->id, strlen(request->id), digest);
    for (int i = 0; i < request->stops; i++)
        digest = digest_bytes(request->stop[i], strlen(request->stop[i]), digest);
    if (request->error != NULL)
        digest = digest_bytes(request->error, strlen(request->error), digest);
    return sampling_digest(&request->sampling) ^ digest;
}

static enum status read_prompts(uint64_t *output)
{
    const struct options options = {.request.sampling = sampling_default, .request.max_tokens = 8, .request.stop = {.count = 1, .text = {"s"}}};
    const struct request_terms terms = {.options = &options, .tokenizer = demo, .context = 64, .vocab = tokenizer_size(demo)};
    struct request_list list = {0};
    enum status status = request_read(&list, &terms, prompts);

    *output = (uint64_t)list.count;
    for (int i = 0; i < list.count; i++)
        *output = digest_of(&list.request[i], *output);
    request_release(&list);
    return status;
}

/* A folder's template and lines with messages. */
static enum status read_chats(uint64_t *output)
{
    const struct options options = {.request.sampling = sampling_default, .request.max_tokens = 8, .request.stop = {.count = 1, .text = {"s"}}};
    struct chat_template chat;
    const struct request_terms terms = {.options = &options, .tokenizer = demo, .chat = &chat, .context = 64, .vocab = tokenizer_size(demo)};
    struct request_list list = {0};
    enum status status = chat_template_open(folder, CHAT_AUTO, &chat);

    if (status != STATUS_OK)
        return status;
    status = request_read(&list, &terms, chats);
    *output = (uint64_t)list.count;
    for (int i = 0; i < list.count; i++)
        *output = digest_of(&list.request[i], *output);
    request_release(&list);
    chat_template_release(&chat);
    return status;
}

static enum status one_prompt(uint64_t *output)
{
    const struct options options = {.request.sampling = sampling_default, .request.max_tokens = 8, .request.stop = {.count = 2, .text = {"s", "t"}}};
    const struct request_terms terms = {.options = &options, .tokenizer = demo, .context = 64, .vocab = tokenizer_size(demo)};
    struct request_list list = {0};
    enum status status = request_add_text(&list, &terms, "It is a truth", 13);

    *output = list.count == 1 ? digest_of(&list.request[0], 1) : 0;
    request_release(&list);
    return status;
}

static enum status read_options(uint64_t *output)
{
    char at_config[96], *argv[] = {(char *)(uintptr_t)"test", at_config, (char *)(uintptr_t)"--top-k=3", NULL};
    struct options options = {0};
    enum status status;

    snprintf(at_config, sizeof at_config, "--config=%s", config);
    status = options_parse(3, argv, &options);
    if (status != STATUS_OK)
        return status;
    *output = digest_bytes(options.model.target, strlen(options.model.target), sampling_digest(&options.request.sampling));
    *output = digest_bytes(options.model.draft, strlen(options.model.draft), *output);
    for (int i = 0; i < options.request.stop.count; i++)
        *output = digest_bytes(options.request.stop.text[i], strlen(options.request.stop.text[i]), *output);
    options_release(&options);
    return STATUS_OK;
}

static void test_fail_nth__tokenizers(void **state)
{
    (void)state;
    fail_nth(&(struct fail_scenario){.name = "a byte-level tokenizer", .run = byte_level}, ALL);
    fail_nth(&(struct fail_scenario){.name = "a tokenizer with byte fallback", .run = byte_fallback}, ALL);
    fail_nth(&(struct fail_scenario){.name = "a tokenizer that composes", .run = composed}, ALL);
    fail_nth(&(struct fail_scenario){.name = "a tokenizer that marks spaces", .run = spaces_marked}, ALL);
    fail_nth(&(struct fail_scenario){.name = "a tokenizer.bin", .run = llama2c_pieces}, ALL);
    fail_nth(&(struct fail_scenario){.name = "the tokenizer with merges of a GGUF file", .run = gguf_with_merges}, ALL);
    fail_nth(&(struct fail_scenario){.name = "the tokenizer with scores of a GGUF file", .run = gguf_with_scores}, ALL);
    fail_nth(&(struct fail_scenario){.name = "the embedded tokenizer", .run = embedded}, ALL / 4);
}

static void test_fail_nth__models(void **state)
{
    (void)state;
    fail_nth(&(struct fail_scenario){.name = "a model in one file", .run = one_file}, ALL);
    fail_nth(&(struct fail_scenario){.name = "a model in shards", .run = shards}, ALL);
    fail_nth(&(struct fail_scenario){.name = "a llama2.c model", .run = llama2c}, ALL);
    fail_nth(&(struct fail_scenario){.name = "a model in a GGUF file", .run = gguf}, ALL);
}

static void test_fail_nth__prompts(void **state)
{
    (void)state;
    fail_nth(&(struct fail_scenario){.name = "a file of prompts", .run = read_prompts}, ALL);
    fail_nth(&(struct fail_scenario){.name = "a file of chats", .run = read_chats}, ALL);
    fail_nth(&(struct fail_scenario){.name = "one prompt", .run = one_prompt}, ALL);
}

static void test_fail_nth__options(void **state)
{
    (void)state;
    fail_nth(&(struct fail_scenario){.name = "a config file", .run = read_options}, ALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail_nth__tokenizers),
        cmocka_unit_test(test_fail_nth__models),
        cmocka_unit_test(test_fail_nth__prompts),
        cmocka_unit_test(test_fail_nth__options),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
