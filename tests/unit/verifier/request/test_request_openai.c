/* Lines of OpenAI's batch input mean the same as lines of this project's own form, and each that asks for something else says where and what. */
#include "common/file/json_text.h"
#include "verifier/request/request_openai.h"
#include "verifier/result/result_openai.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "{\"custom_id\":\"a\",\"method\":\"POST\",\"url\":\"/v1/completions\",\"body\":"
#define CHAT "{\"custom_id\":\"a\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\",\"body\":"
#define MESSAGES "[{\"content\":\"Hi\",\"role\":\"user\"}]"

/* Converts; the own form as text with sorted keys, to be freed, and the reason. */
static char *convert(const char *text, char *reason, size_t size, char **model)
{
    json_t *line = json_loads(text, 0, NULL), *own;
    char *written;

    assert_non_null(line);
    assert_true(request_openai_knows(line));
    assert_int_equal(request_openai_convert(line, &own, model, reason, size), STATUS_OK);
    written = json_dumps(own, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(own);
    json_decref(line);
    return written;
}

static void assert_line_means(const char *head, const char *body, const char *own)
{
    char line[1024], reason[200], *model, *written;

    snprintf(line, sizeof line, "%s%s}", head, body);
    written = convert(line, reason, sizeof reason, &model);
    assert_string_equal(reason, "");
    assert_string_equal(written, own);
    free(written);
    free(model);
}

static void assert_means(const char *body, const char *own)
{
    assert_line_means(HEAD, body, own);
}

/* The id is kept, so that the result can say whose it is. */
static void assert_refused(const char *line, const char *words)
{
    char reason[200], *model, *written = convert(line, reason, sizeof reason, &model);

    assert_non_null(strstr(reason, words));
    assert_non_null(strstr(written, "\"id\":\"a\""));
    free(written);
    free(model);
}

static void assert_body_refused(const char *body, const char *words)
{
    char line[1024];

    snprintf(line, sizeof line, HEAD "%s}", body);
    assert_refused(line, words);
}

static void assert_chat_refused(const char *body, const char *words)
{
    char line[1024];

    snprintf(line, sizeof line, CHAT "%s}", body);
    assert_refused(line, words);
}

static void test_request_openai__a_body_is_a_line_of_our_own(void **state)
{
    (void)state;
    assert_means("{\"model\":\"m\",\"prompt\":\"x\",\"max_tokens\":5,\"temperature\":0.5,\"top_p\":0.75,\"seed\":3}",
                 "{\"id\":\"a\",\"max_tokens\":5,\"prompt\":\"x\",\"seed\":3,\"temperature\":0.5,\"top_p\":0.75}");
    assert_means("{\"prompt\":[\"x\"],\"stop\":\"\\n\"}", "{\"id\":\"a\",\"prompt\":\"x\",\"stop\":[\"\\n\"]}");
    assert_means("{\"prompt\":\"x\",\"echo\":true}", "{\"echo\":true,\"id\":\"a\",\"prompt\":\"x\"}");
    assert_means("{\"prompt\":\"x\",\"n\":2,\"best_of\":5}", "{\"best_of\":5,\"id\":\"a\",\"n\":2,\"prompt\":\"x\"}");
    assert_means("{\"prompt\":\"x\",\"logprobs\":5}", "{\"id\":\"a\",\"logprobs\":5,\"prompt\":\"x\"}");
    assert_means("{\"prompt\":[1,2],\"stop\":[\"a\",\"b\"]}", "{\"id\":\"a\",\"prompt_tokens\":[1,2],\"stop\":[\"a\",\"b\"]}");
    assert_means("{\"prompt\":[[1,2]],\"logit_bias\":{\"7\":-100}}", "{\"id\":\"a\",\"logit_bias\":{\"7\":-100},\"prompt_tokens\":[1,2]}");
}

static void test_request_openai__what_asks_for_nothing_is_taken(void **state)
{
    (void)state;
    assert_means("{\"prompt\":\"x\",\"n\":null,\"best_of\":null,\"stream\":false,\"logprobs\":null,\"suffix\":null,\"user\":\"u\",\"top_p\":null,"
                 "\"stop\":null,\"response_format\":{\"type\":\"text\"}}",
                 "{\"id\":\"a\",\"prompt\":\"x\"}");
}

static void test_request_openai__what_is_not_done_is_named(void **state)
{
    (void)state;
    assert_body_refused("{\"prompt\":\"x\",\"top_logprobs\":5}", "unknown key body.top_logprobs");
    assert_body_refused("{\"prompt\":\"x\",\"response_format\":{\"type\":\"json_object\"}}", "body.response_format is not supported");
    assert_body_refused("{\"prompt\":\"x\",\"response_format\":{\"type\":\"text\",\"strict\":true}}", "body.response_format is not supported");
    assert_body_refused("{\"prompt\":\"x\",\"response_format\":\"text\"}", "body.response_format is not supported");
    assert_body_refused("{\"prompt\":\"x\",\"stream\":true}", "body.stream is not supported, expected false");
    assert_body_refused("{\"prompt\":[\"x\",\"y\"]}", "body.prompt is not one text");
    assert_body_refused("{\"prompt\":7}", "body.prompt is not one text");
    assert_body_refused("{\"max_tokens\":7}", "body.prompt is missing");
    assert_body_refused("{\"prompt\":\"x\",\"prompt_tokens\":[1]}", "unknown key body.prompt_tokens");
    assert_body_refused("7", "body is not an object");
}

static void test_request_openai__the_envelope_is_checked(void **state)
{
    (void)state;
    assert_refused("{\"custom_id\":\"a\",\"method\":\"GET\",\"url\":\"/v1/completions\",\"body\":{\"prompt\":\"x\"}}", "method is not");
    assert_refused("{\"custom_id\":\"a\",\"method\":\"POST\",\"url\":\"/v1/embeddings\",\"body\":{\"prompt\":\"x\"}}", "url is not /v1/completions "
                                                                                                                       "or /v1/chat/completions");
    assert_refused("{\"custom_id\":\"a\",\"method\":\"POST\",\"url\":\"/v1/completions\"}", "body is not an object");
}

static void test_request_openai__a_chat_is_a_line_with_messages(void **state)
{
    (void)state;
    assert_line_means(CHAT, "{\"model\":\"m\",\"messages\":" MESSAGES ",\"max_completion_tokens\":5,\"stop\":\"x\",\"top_p\":0.75}",
                      "{\"id\":\"a\",\"max_tokens\":5,\"messages\":" MESSAGES ",\"stop\":[\"x\"],\"top_p\":0.75}");
    assert_line_means(CHAT, "{\"messages\":" MESSAGES ",\"n\":null,\"logprobs\":false,\"top_logprobs\":null,\"tools\":null,\"stream\":false}",
                      "{\"id\":\"a\",\"messages\":" MESSAGES "}");
    assert_line_means(CHAT, "{\"messages\":" MESSAGES ",\"n\":3}", "{\"id\":\"a\",\"messages\":" MESSAGES ",\"n\":3}");
    assert_chat_refused("{\"messages\":" MESSAGES ",\"best_of\":3}", "unknown key body.best_of");
    assert_chat_refused("{\"messages\":" MESSAGES ",\"tools\":[]}", "body.tools is not supported");
    assert_chat_refused("{\"messages\":" MESSAGES ",\"response_format\":-1}", "body.response_format is not supported");
    assert_chat_refused("{\"messages\":" MESSAGES ",\"response_format\":{\"type\":\"json_object\"}}", "body.response_format is not supported");
    assert_line_means(CHAT, "{\"messages\":" MESSAGES ",\"logprobs\":true,\"top_logprobs\":3}",
                      "{\"id\":\"a\",\"logprobs\":3,\"messages\":" MESSAGES "}");
    assert_line_means(CHAT, "{\"messages\":" MESSAGES ",\"logprobs\":true}", "{\"id\":\"a\",\"logprobs\":0,\"messages\":" MESSAGES "}");
    assert_chat_refused("{\"messages\":" MESSAGES ",\"logprobs\":3}", "body.logprobs is not true or false");
    assert_chat_refused("{\"messages\":" MESSAGES ",\"top_logprobs\":3}", "body.top_logprobs wants body.logprobs to be true");
    assert_chat_refused("{\"messages\":" MESSAGES ",\"logprobs\":true,\"top_logprobs\":21}", "body.top_logprobs is not a whole number from 0 to 20");
    assert_chat_refused("{\"messages\":" MESSAGES ",\"max_tokens\":3,\"max_completion_tokens\":3}", "body has both max_tokens and "
                                                                                                    "max_completion_tokens");
    assert_chat_refused("{\"messages\":" MESSAGES ",\"max_completion_tokens\":3,\"max_tokens\":3}", "body has both max_tokens and "
                                                                                                    "max_completion_tokens");
    assert_chat_refused("{\"messages\":" MESSAGES ",\"prompt\":\"x\"}", "unknown key body.prompt");
    assert_chat_refused("{\"messages\":" MESSAGES ",\"echo\":false}", "unknown key body.echo");
    assert_chat_refused("{\"prompt\":\"x\"}", "unknown key body.prompt");
    assert_chat_refused("{}", "body.messages is missing");
    assert_body_refused("{\"messages\":" MESSAGES "}", "unknown key body.messages");
    assert_body_refused("{\"prompt\":\"x\",\"max_completion_tokens\":3}", "unknown key body.max_completion_tokens");
}

/* Byte for byte, but for the time. */
static void test_request_openai__a_chats_answer_is_a_message(void **state)
{
    char text[] = "Hello.", model[] = "m", *written;
    struct request request = {.index = 4, .openai = 1, .chat = 1, .model = model, .prompt_count = 7};
    const struct sequence sequence = {.request = &request, .completion = {.text = text, .length = 6, .count = 3, .finish = FINISH_STOP}};
    json_t *result = result_openai(json_string("a"), &request, &sequence, 1);

    (void)state;
    written = json_dumps(result, JSON_COMPACT);
    assert_string_equal(written, "{\"id\":\"batch_req_4\",\"custom_id\":\"a\",\"response\":{\"status_code\":200,\"request_id\":\"req_4\",\"body\":{"
                                 "\"id\":\"chatcmpl-4\",\"object\":\"chat.completion\",\"model\":\"m\",\"choices\":[{\"index\":0,\"message\":{"
                                 "\"role\":\"assistant\",\"content\":\"Hello.\",\"refusal\":null},\"logprobs\":null,\"finish_reason\":\"stop\"}],"
                                 "\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,\"total_tokens\":10}}},\"error\":null}");
    free(written);
    json_decref(result);
}

/* So has each of several, in the order in which they were drawn. */
static void test_request_openai__a_chat_has_several_answers(void **state)
{
    char first[] = "Hello.", second[] = "No.", *written;
    struct request request = {.index = 4, .openai = 1, .chat = 1, .prompt_count = 7, .choices = 2};
    const struct sequence sequences[] = {{.request = &request, .completion = {.text = first, .length = 6, .count = 3, .finish = FINISH_STOP}},
                                         {.request = &request, .completion = {.text = second, .length = 3, .count = 9, .finish = FINISH_LENGTH}}};
    json_t *result = result_openai(json_string("a"), &request, sequences, 1);

    (void)state;
    written = json_dumps(result, JSON_COMPACT);
    assert_non_null(strstr(written, "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"Hello.\",\"refusal\":null},"
                                    "\"logprobs\":null,\"finish_reason\":\"stop\"},{\"index\":1,\"message\":{\"role\":\"assistant\","
                                    "\"content\":\"No.\",\"refusal\":null},\"logprobs\":null,\"finish_reason\":\"length\"}],"
                                    "\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":12,\"total_tokens\":19}"));
    free(written);
    json_decref(result);
}

static void test_request_openai__our_own_lines_are_not_taken_for_it(void **state)
{
    json_t *own = json_pack("{s:s, s:s}", "id", "a", "prompt", "x");

    (void)state;
    assert_false(request_openai_knows(own));
    json_decref(own);
}

static void test_request_openai__a_request_that_is_wrong_has_openais_answer(void **state)
{
    char error[] = "line 3: body.n is not supported, expected 1", *written;
    const struct request request = {.index = 2, .openai = 1, .error = error};
    json_t *result = result_openai(json_string("a"), &request, NULL, 1);

    (void)state;
    written = json_dumps(result, JSON_COMPACT);
    assert_string_equal(written,
                        "{\"id\":\"batch_req_2\",\"custom_id\":\"a\",\"response\":{\"status_code\":400,\"request_id\":\"req_2\",\"body\":{\"error\":"
                        "{\"message\":\"line 3: body.n is not supported, expected 1\",\"type\":\"invalid_request_error\",\"param\":null,"
                        "\"code\":null}}},\"error\":null}");
    free(written);
    json_decref(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_openai__a_body_is_a_line_of_our_own),
        cmocka_unit_test(test_request_openai__what_asks_for_nothing_is_taken),
        cmocka_unit_test(test_request_openai__what_is_not_done_is_named),
        cmocka_unit_test(test_request_openai__the_envelope_is_checked),
        cmocka_unit_test(test_request_openai__a_chat_is_a_line_with_messages),
        cmocka_unit_test(test_request_openai__a_chat_has_several_answers),
        cmocka_unit_test(test_request_openai__a_chats_answer_is_a_message),
        cmocka_unit_test(test_request_openai__our_own_lines_are_not_taken_for_it),
        cmocka_unit_test(test_request_openai__a_request_that_is_wrong_has_openais_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
