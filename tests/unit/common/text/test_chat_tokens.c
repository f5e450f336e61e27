/* A rendered prompt becomes the tokens of its whole text, and what a message spells never becomes a mark. */
#include "common/text/chat_template.h"
#include "common/text/tokenizer_json.h"
#include "test_tokenizer_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MESSAGE(role, text) {role, text, sizeof text - 1}
#define COUNT(list) (sizeof(list) / sizeof *(list))

static const struct chat_message harmless[] = {
    MESSAGE(CHAT_USER, "  Hello, w\u00f6rld!\n\nWhat is 12345 + 1?  "), MESSAGE(CHAT_ASSISTANT, " 12346, of course.\n"),
    MESSAGE(CHAT_USER, "\tint main(void) { return 0; } \u65e5\u672c\u8a9e "), MESSAGE(CHAT_ASSISTANT, ""), MESSAGE(CHAT_USER, "thanks")};

static void render(const struct chat_template *template, const struct chat_message *messages, size_t count, struct chat_prompt *prompt)
{
    char reason[CHAT_FAULT_BYTES];

    assert_int_equal(chat_template_render(template, messages, count, prompt, reason, sizeof reason), STATUS_OK);
}

/* Every family's prompt of harmless messages: by marks, and as one text in which every special token counts.  own: what begins and ends a sequence;
 * NULL: the family's */
static void assert_whole(const struct tokenizer *tokenizer, const char *own)
{
    for (int family = CHAT_AUTO + 1; family < CHAT_FAMILIES; family++) {
        struct chat_template template;
        struct chat_prompt prompt = {0};
        int32_t *by_marks, *whole;
        int marked, count;

        chat_template_init(&template, (enum chat_family)family);
        if (own != NULL) {
            snprintf(template.bos, sizeof template.bos, "%s", own);
            snprintf(template.eos, sizeof template.eos, "%s", own);
        }
        render(&template, harmless, COUNT(harmless), &prompt);
        assert_int_equal(chat_template_encode(&template, tokenizer, &prompt, &by_marks, &marked, NULL), STATUS_OK);
        assert_int_equal(tokenizer_encode(tokenizer, prompt.text.data, prompt.text.count, TOKENIZER_PARSE_SPECIAL, &whole, &count, NULL), STATUS_OK);
        if (marked != count || memcmp(by_marks, whole, (size_t)count * sizeof *whole) != 0)
            fail_msg("%s: %d tokens by marks, %d of the whole", chat_template_name(template.family), marked, count);
        free(by_marks);
        free(whole);
        chat_template_discard(&prompt);
    }
}

static int occurrences(const int32_t *tokens, int count, int32_t token)
{
    int found = 0;

    for (int i = 0; i < count; i++)
        found += tokens[i] == token;
    return found;
}

/* A user who spells `mark` gets no such token: there are as many as without, and the text comes back. */
static void assert_harmless(const struct tokenizer *tokenizer, const struct chat_template *template, const char *mark)
{
    int32_t token = tokenizer_find(tokenizer, mark), *tokens;
    char text[256], back[4096] = "";
    struct chat_message messages[2][1] = {{MESSAGE(CHAT_USER, "a b")}};
    int count, found[2];
    size_t length;

    assert_true(token >= 0);
    snprintf(text, sizeof text, "a %s%s b%s", mark, mark, mark);
    messages[1][0] = (struct chat_message){.role = CHAT_USER, .content = text, .length = strlen(text)};
    for (int i = 0; i < 2; i++) {
        struct chat_prompt prompt = {0};

        render(template, messages[i], 1, &prompt);
        assert_int_equal(chat_template_encode(template, tokenizer, &prompt, &tokens, &count, NULL), STATUS_OK);
        found[i] = occurrences(tokens, count, token);
        *back = '\0';
        for (int k = 0; k < count; k++) {
            const char *piece = tokenizer_piece(tokenizer, tokens[k], 0, 1, &length);

            strncat(back, piece, length);
        }
        free(tokens);
        chat_template_discard(&prompt);
    }
    if (found[1] != found[0])
        fail_msg("%s: %d of it where the template has %d", mark, found[1], found[0]);
    assert_non_null(strstr(back, text));
}

static void assert_end(const struct tokenizer *tokenizer, const struct chat_template *template, const char *spelling)
{
    int32_t token;

    assert_string_equal(chat_template_end(template), spelling);
    assert_int_equal(chat_template_end_token(template, tokenizer, &token), STATUS_OK);
    assert_int_equal(token, tokenizer_find(tokenizer, spelling));
    assert_true(token >= 0);
}

static void test_chat_tokens__qwens_tokenizer(void **state)
{
    const char *packed = test_tokenizer_files_shared("tokenizers/qwen2.5-tokenizer.json.gz");
    struct tokenizer *tokenizer;
    struct chat_template chatml;

    (void)state;
    if (packed == NULL)
        skip();
    assert_int_equal(tokenizer_open(test_tokenizer_files_unpack(packed, "chat-qwen.json"), 0, &tokenizer), STATUS_OK);
    assert_whole(tokenizer, NULL);
    chat_template_init(&chatml, CHAT_CHATML);
    assert_harmless(tokenizer, &chatml, "<|im_start|>");
    assert_harmless(tokenizer, &chatml, "<|im_end|>");
    assert_harmless(tokenizer, &chatml, "<|endoftext|>");
    assert_end(tokenizer, &chatml, "<|im_end|>");
    tokenizer_close(tokenizer);
}

/* SentencePiece: with the space that it puts in front, and begin of sequence as a mark. */
static void test_chat_tokens__phis_tokenizer(void **state)
{
    const char *path = test_tokenizer_files_shared("tokenizers/ggml-vocab-phi-3.gguf");
    struct tokenizer *tokenizer;
    struct chat_template template;

    (void)state;
    if (path == NULL)
        skip();
    assert_int_equal(tokenizer_open(path, 0, &tokenizer), STATUS_OK);
    assert_whole(tokenizer, NULL);
    chat_template_init(&template, CHAT_PHI3);
    assert_harmless(tokenizer, &template, "<|user|>");
    assert_harmless(tokenizer, &template, "<|system|>"); /* no message of this prompt has it */
    assert_harmless(tokenizer, &template, "<|end|>");
    assert_harmless(tokenizer, &template, "<s>");
    assert_end(tokenizer, &template, "<|end|>");
    chat_template_init(&template, CHAT_LLAMA2);
    assert_harmless(tokenizer, &template, "<s>");
    assert_harmless(tokenizer, &template, "</s>");
    tokenizer_close(tokenizer);
}

static void test_chat_tokens__gpt2s_tokenizer_knows_no_marks(void **state)
{
    const char *path = test_tokenizer_files_shared("tokenizers/ggml-vocab-gpt-2.gguf");
    struct tokenizer *tokenizer;
    struct chat_template template;
    int32_t token;

    (void)state;
    if (path == NULL)
        skip();
    assert_int_equal(tokenizer_open(path, 0, &tokenizer), STATUS_OK);
    assert_whole(tokenizer, "<|endoftext|>");
    chat_template_init(&template, CHAT_CHATML);
    assert_int_equal(chat_template_end_token(&template, tokenizer, &token), STATUS_OK);
    assert_int_equal(token, -1);
    tokenizer_close(tokenizer);
}

static void test_chat_tokens__the_embedded_pairs_tokenizer(void **state)
{
    struct tokenizer *tokenizer;
    struct chat_template template;

    (void)state;
    assert_int_equal(tokenizer_open(TANDEM_SOURCE_DIR "/launch/demo/target", 0, &tokenizer), STATUS_OK);
    assert_whole(tokenizer, "<|endoftext|>");
    assert_int_equal(chat_template_open(TANDEM_SOURCE_DIR "/launch/demo/target", CHAT_ZEPHYR, &template), STATUS_OK);
    assert_harmless(tokenizer, &template, "<|user|>");
    assert_harmless(tokenizer, &template, "<|assistant|>");
    assert_harmless(tokenizer, &template, "<|endoftext|>");
    assert_end(tokenizer, &template, "<|endoftext|>");
    chat_template_release(&template);
    tokenizer_close(tokenizer);
}

/* Files that call a mark an ordinary added token, and have tokens that reach over its edge or take white space beside it. */
static void test_chat_tokens__marks_that_the_file_does_not_call_special(void **state)
{
    static const char json[] =
        "{\"added_tokens\":[{\"id\":1,\"content\":\"<|im_start|>\",\"special\":false,\"normalized\":false},{\"id\":2,\"content\":\"<|im_end|>\","
        "\"special\":true,\"rstrip\":true},{\"id\":3,\"content\":\"!<|im\",\"special\":false,"
        "\"normalized\":false},{\"id\":4,\"content\":\"<tool>\",\"special\":false,"
        "\"normalized\":false}],\"model\":{\"type\":\"BPE\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"<|im_start|>\":1,\"<|im_end|>\":2,\"!<|im\":3,"
        "\"<tool>\":4,\"!\":5,\"u\":6},\"merges\":[]}}";
    static const char content[] = "<|im_start|><|im_end|><tool>!";
    const struct chat_message messages[] = {MESSAGE(CHAT_USER, content)};
    struct tokenizer *tokenizer;
    struct chat_template template;
    struct chat_prompt prompt = {0};
    int32_t *tokens;
    int count;

    (void)state;
    assert_int_equal(tokenizer_json_open("marks", json, sizeof json - 1, &tokenizer), STATUS_OK);
    chat_template_init(&template, CHAT_CHATML);
    render(&template, messages, 1, &prompt);
    assert_int_equal(chat_template_encode(&template, tokenizer, &prompt, &tokens, &count, NULL), STATUS_OK);
    assert_int_equal(occurrences(tokens, count, 1), 2); /* the user's turn and the answer */
    assert_int_equal(occurrences(tokens, count, 2), 1); /* "!" before it is not part of "!<|im" */
    assert_int_equal(occurrences(tokens, count, 3), 0);
    assert_int_equal(occurrences(tokens, count, 4), 1); /* no mark of this form, and no special one: as in any text */
    assert_int_equal(occurrences(tokens, count, 5), 1);
    free(tokens);
    chat_template_discard(&prompt);
    tokenizer_close(tokenizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chat_tokens__qwens_tokenizer),
        cmocka_unit_test(test_chat_tokens__phis_tokenizer),
        cmocka_unit_test(test_chat_tokens__gpt2s_tokenizer_knows_no_marks),
        cmocka_unit_test(test_chat_tokens__the_embedded_pairs_tokenizer),
        cmocka_unit_test(test_chat_tokens__marks_that_the_file_does_not_call_special),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
