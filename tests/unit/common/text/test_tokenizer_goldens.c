/* Ids that others computed: llama.cpp's 46 texts, llama2.c's prompts, the demo pair's prompts. */
#include "common/text/tokenizer.h"
#include "test_tokenizer_files.h"
#include "tests/support/gguf_convert.h"
#include "tests/support/gguf_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* cmocka needs these four in front of it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void check_ids(const struct tokenizer *tokenizer, const char *text, size_t length, int flags, const char *ids)
{
    int32_t *tokens;
    int count;

    assert_int_equal(tokenizer_encode(tokenizer, text, length, flags, &tokens, &count, NULL), STATUS_OK);
    for (int i = 0; i < count; i++) {
        char *end;
        long id = strtol(ids, &end, 10);

        if (end == ids || id != tokens[i])
            fail_msg("token %d of \"%.*s\" is %d", i, (int)length, text, (int)tokens[i]);
        ids = end + strspn(end, ", ");
    }
    assert_true(*ids == '\0' || *ids == '\n' || *ids == ']');
    free(tokens);
}

/* llama.cpp's texts are separated by a line; its results are one line a text. */
static void check_46(const struct tokenizer *tokenizer, const char *set)
{
    static const char separator[] = "\n__ggml_vocab_test__\n";
    char name[128];
    size_t length;
    char *texts, *ids, *text, *line;
    int cases = 0;

    snprintf(name, sizeof name, "tokenizers/ggml-vocab-%s.gguf.inp", set);
    texts = test_tokenizer_files_read(test_tokenizer_files_shared(name), &length);
    snprintf(name, sizeof name, "tokenizers/ggml-vocab-%s.gguf.out", set);
    ids = test_tokenizer_files_read(test_tokenizer_files_shared(name), &length);
    text = texts;
    for (line = ids; line != NULL && *line != '\0' && text != NULL; cases++) {
        char *stop = strstr(text, separator);

        check_ids(tokenizer, text, stop == NULL ? strlen(text) : (size_t)(stop - text), 0, line + strspn(line, " "));
        text = stop == NULL ? NULL : stop + strlen(separator);
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    assert_int_equal(cases, 46);
    free(texts);
    free(ids);
}

static void check_packed(const char *gz, const char *name, const char *set)
{
    const char *path = test_tokenizer_files_shared(gz);
    struct tokenizer *tokenizer;

    if (path == NULL)
        skip();
    assert_int_equal(tokenizer_open(test_tokenizer_files_unpack(path, name), 0, &tokenizer), STATUS_OK);
    check_46(tokenizer, set);
    tokenizer_close(tokenizer);
}

static void test_tokenizer__gpt2_matches_llama_cpp(void **state)
{
    (void)state;
    check_packed("tokenizers/gpt2-tokenizer.json.gz", "gpt2.json", "gpt-2");
}

static void test_tokenizer__qwen2_matches_llama_cpp(void **state)
{
    (void)state;
    check_packed("tokenizers/qwen2.5-tokenizer.json.gz", "qwen2.json", "qwen2");
}

static void test_tokenizer__sentencepiece_forms_match_llama_cpp(void **state)
{
    const char *gguf = test_tokenizer_files_shared("tokenizers/ggml-vocab-phi-3.gguf");
    const char *bin = test_tokenizer_files_scratch("phi3.bin"), *json = test_tokenizer_files_scratch("phi3.json");
    struct tokenizer *tokenizer;
    int count;

    (void)state;
    if (gguf == NULL)
        skip();
    count = test_tokenizer_files_convert_gguf(gguf, bin, json);
    assert_int_equal(count, 32064);
    assert_int_equal(tokenizer_open(bin, count, &tokenizer), STATUS_OK);
    check_46(tokenizer, "llama-spm");
    tokenizer_close(tokenizer);
    assert_int_equal(tokenizer_open(json, 0, &tokenizer), STATUS_OK);
    check_46(tokenizer, "llama-spm");
    check_ids(tokenizer, "Hello", 5, TOKENIZER_ADD_SPECIAL, "1 15043");
    tokenizer_close(tokenizer);
}

/* Undoes the escapes that stand in these files: \n, \", \\ and \uXXXX of two bytes. */
static size_t unescape(const char *from, char *to)
{
    char *start = to;

    for (; *from != '"'; from++) {
        unsigned code;

        if (*from != '\\') {
            *to++ = *from;
            continue;
        }
        from++;
        if (*from == 'u' && sscanf(from + 1, "%4x", &code) == 1) {
            assert_true(code < 0x10000);
            if (code >= 0x800) {
                *to++ = (char)(0xE0 | code >> 12);
                *to++ = (char)(0x80 | (code >> 6 & 0x3F));
            } else if (code >= 0x80) {
                *to++ = (char)(0xC0 | code >> 6);
            }
            *to++ = (char)(code >= 0x80 ? 0x80 | (code & 0x3F) : code);
            from += 4;
        } else {
            *to++ = *from == 'n' ? '\n' : *from == 't' ? '\t' : *from;
        }
    }
    return (size_t)(to - start);
}

/* Every line {"prompt": "...", ... "<member>": [ids] ...}. */
static void check_prompts(const char *path, const struct tokenizer *tokenizer, const char *member, int flags)
{
    size_t length;
    char *lines = test_tokenizer_files_read(path, &length);
    int cases = 0;

    for (char *line = strtok(lines, "\n"); line != NULL; line = strtok(NULL, "\n"), cases++) {
        const char *prompt = strstr(line, "\"prompt\": \""), *ids = strstr(line, member);
        char text[4096];

        assert_true(prompt != NULL && ids != NULL && strlen(line) > 0);
        length = unescape(prompt + strlen("\"prompt\": \""), text);
        check_ids(tokenizer, text, length, flags, strchr(ids, '[') + 1);
    }
    assert_true(cases > 0);
    free(lines);
}

/* The vocabularies that llama.cpp tests its own reader with. */
static void test_tokenizer__gguf_vocabularies_match_llama_cpp(void **state)
{
    static const char *const sets[] = {"command-r", "deepseek-coder", "deepseek-llm", "falcon", "gpt-2", "llama-bpe",
                                       "llama-spm", "mpt",            "phi-3",        "qwen2",  "refact", "starcoder"};
    int found = 0;

    (void)state;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        struct tokenizer *tokenizer;
        char name[128];
        const char *path;

        snprintf(name, sizeof name, "tokenizers/ggml-vocab-%s.gguf", sets[i]);
        path = test_tokenizer_files_shared(name);
        if (path == NULL)
            continue;
        assert_int_equal(tokenizer_open(path, 0, &tokenizer), STATUS_OK);
        check_46(tokenizer, sets[i]);
        tokenizer_close(tokenizer);
        found++;
    }
    if (found == 0)
        skip();
}

/* A tokenizer.json and the GGUF file that is made of it spell every id alike and cut texts alike. */
static void check_converted(const char *json, const char *pre, const char *set, int vocab)
{
    const char *path = test_tokenizer_files_scratch("converted.gguf");
    struct tokenizer *ours, *theirs;
    struct gguf_file file;

    gguf_file_open(&file);
    gguf_convert_tokenizer(&file, json, pre, vocab);
    gguf_file_write(&file, path);
    gguf_file_close(&file);
    assert_int_equal(tokenizer_open(path, 0, &ours), STATUS_OK);
    assert_int_equal(tokenizer_open(json, 0, &theirs), STATUS_OK);
    assert_int_equal(tokenizer_size(ours), tokenizer_size(theirs));
    assert_true(tokenizer_digest(ours) == tokenizer_digest(theirs));
    if (set != NULL)
        check_46(ours, set);
    else
        check_prompts(TANDEM_SOURCE_DIR "/launch/demo/golden/greedy.jsonl", ours, "\"prompt_tokens\"", 0);
    tokenizer_close(ours);
    tokenizer_close(theirs);
}

static void test_tokenizer__gguf_form_of_a_json_tokenizer_is_the_same(void **state)
{
    const char *packed;

    (void)state;
    check_converted(TANDEM_SOURCE_DIR "/launch/demo/target/tokenizer.json", "gpt-2", NULL, 2048);
    packed = test_tokenizer_files_shared("tokenizers/gpt2-tokenizer.json.gz");
    if (packed != NULL)
        check_converted(test_tokenizer_files_unpack(packed, "gpt2.json"), "gpt-2", "gpt-2", 50257);
    packed = test_tokenizer_files_shared("tokenizers/qwen2.5-tokenizer.json.gz");
    if (packed != NULL) /* 151936 rows of the embedding, the last ones padding */
        check_converted(test_tokenizer_files_unpack(packed, "qwen2.json"), "qwen2", "qwen2", 151936);
}

static void test_tokenizer__gguf_of_tok512_matches_llama2_c(void **state)
{
    const char *path = test_tokenizer_files_shared("tinyllamas-260k/stories260Ktok512.gguf");
    const char *lines = test_tokenizer_files_shared("tinyllamas-260k/peer-greedy.jsonl");
    struct tokenizer *tokenizer;

    (void)state;
    if (path == NULL || lines == NULL)
        skip();
    assert_int_equal(tokenizer_open(path, 0, &tokenizer), STATUS_OK);
    assert_int_equal(tokenizer_size(tokenizer), 512);
    check_prompts(lines, tokenizer, "\"prompt_ids\"", TOKENIZER_ADD_SPECIAL);
    tokenizer_close(tokenizer);
}

static void test_tokenizer__demo_prompts(void **state)
{
    struct tokenizer *tokenizer;

    (void)state;
    assert_int_equal(tokenizer_open(TANDEM_SOURCE_DIR "/launch/demo/target", 0, &tokenizer), STATUS_OK);
    check_prompts(TANDEM_SOURCE_DIR "/launch/demo/golden/greedy.jsonl", tokenizer, "\"prompt_tokens\"", 0);
    tokenizer_close(tokenizer);
}

static void check_llama2_c(const char *bin, int vocab_size, const char *prompts)
{
    const char *path = test_tokenizer_files_shared(bin), *lines = test_tokenizer_files_shared(prompts);
    struct tokenizer *tokenizer;

    if (path == NULL || lines == NULL)
        skip();
    assert_int_equal(tokenizer_open(path, vocab_size, &tokenizer), STATUS_OK);
    assert_int_equal(tokenizer_size(tokenizer), vocab_size);
    check_prompts(lines, tokenizer, "\"prompt_ids\"", TOKENIZER_ADD_SPECIAL);
    tokenizer_close(tokenizer);
}

static void test_tokenizer__tok512_matches_llama2_c(void **state)
{
    (void)state;
    check_llama2_c("tinyllamas-260k/tok512.bin", 512, "tinyllamas-260k/peer-greedy.jsonl");
}

static void test_tokenizer__tok105_matches_llama2_c(void **state)
{
    (void)state;
    check_llama2_c("babyllama-tok105/tok105.bin", 105, "babyllama-tok105/peer-greedy.jsonl");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokenizer__gpt2_matches_llama_cpp),
        cmocka_unit_test(test_tokenizer__qwen2_matches_llama_cpp),
        cmocka_unit_test(test_tokenizer__sentencepiece_forms_match_llama_cpp),
        cmocka_unit_test(test_tokenizer__gguf_vocabularies_match_llama_cpp),
        cmocka_unit_test(test_tokenizer__gguf_form_of_a_json_tokenizer_is_the_same),
        cmocka_unit_test(test_tokenizer__gguf_of_tok512_matches_llama2_c),
        cmocka_unit_test(test_tokenizer__demo_prompts),
        cmocka_unit_test(test_tokenizer__tok512_matches_llama2_c),
        cmocka_unit_test(test_tokenizer__tok105_matches_llama2_c),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
