#include "common/base/paths.h"
#include "common/text/tokenizer_json.h"
#include "tests/support/capture.h"
#include "verifier/request/request_ids.h"
#include "verifier/request/request_room.h"

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { CONTEXT = 64 };

static struct tokenizer *tokenizer;
static struct options options;

/* Reads these bytes as a file of lines. */
static struct request_list read_bytes(const char *bytes, size_t count)
{
    const struct request_terms terms = {.options = &options, .tokenizer = tokenizer, .context = CONTEXT, .vocab = tokenizer_size(tokenizer)};
    struct request_list list = {0};
    char path[] = "/tmp/test_request.XXXXXX";
    int file = mkstemp(path);

    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, count), count);
    close(file);
    assert_int_equal(request_read(&list, &terms, path), STATUS_OK);
    unlink(path);
    return list;
}

static struct request_list read_text(const char *text)
{
    return read_bytes(text, strlen(text));
}

/* One line that must be refused with a reason that holds `part`. */
static void expect_error(const char *line, const char *part)
{
    struct request_list list = read_text(line);

    assert_int_equal(list.count, 1);
    if (list.request[0].error == NULL || strstr(list.request[0].error, part) == NULL)
        fail_msg("%s: got \"%s\", expected \"%s\"", line, list.request[0].error != NULL ? list.request[0].error : "no error", part);
    request_release(&list);
}

struct wrong {
    const char *key, *part;
};

static void expect_errors(const struct wrong *wrong, size_t count)
{
    char line[256];

    for (size_t i = 0; i < count; i++) {
        assert_in_range(snprintf(line, sizeof line, "{\"prompt\": \"a\", %s}", wrong[i].key), 1, sizeof line - 1);
        expect_error(line, wrong[i].part);
    }
}

/* EACH_WRONG({KEY, PART}, ...): a line with a prompt and this key is refused with that reason. */
#define EACH_WRONG(...) expect_errors((const struct wrong[]){__VA_ARGS__}, sizeof((const struct wrong[]){__VA_ARGS__}) / sizeof(struct wrong))

static void test_request__every_option_has_its_snake_case_key(void **state)
{
    struct request_list list =
        read_text("{\"id\": \"a\\u00e9\", \"prompt\": \"Hello\", \"temperature\": 0.5, \"top_k\": 7, \"top_p\": 0.25, \"min_p\": 0.125,"
                  "\"repetition_penalty\": 1.5, \"presence_penalty\": -1, \"frequency_penalty\": 2, \"seed\": 12345, \"accept\": \"coupled\","
                  "\"max_tokens\": 17, \"draft_length\": 3, \"ignore_eos\": true, \"stop\": [\"x\", \"yz\"]}\n");
    const struct request *request = &list.request[0];

    (void)state;
    assert_null(request->error);
    assert_string_equal(request->id, "\"a\xc3\xa9\"");
    assert_true(request->prompt_count > 0);
    assert_true(request->sampling.temperature == 0.5 && request->sampling.top_p == 0.25 && request->sampling.min_p == 0.125);
    assert_true(request->sampling.repetition_penalty == 1.5 && request->sampling.presence_penalty == -1);
    assert_true(request->sampling.frequency_penalty == 2);
    assert_int_equal(request->sampling.top_k, 7);
    assert_int_equal(request->sampling.seed, 12345);
    assert_int_equal(request->sampling.accept, ACCEPT_COUPLED);
    assert_int_equal(request->max_tokens, 17);
    assert_int_equal(request->draft_length, 3);
    assert_int_equal(request->ignore_eos, 1);
    assert_int_equal(request->stops, 2);
    assert_string_equal(request->stop[1], "yz");
    request_release(&list);
}

/* The text as it was given, whatever stands first in the line; of tokens theirs, special ones spelled out. */
static void test_request__an_echoed_prompt_keeps_its_text(void **state)
{
    static const char lines[] = "{\"echo\": true, \"prompt\": \"Hello th\\u00e9re\", \"logprobs\": 2}\n"
                                "{\"prompt\": \"Hello\", \"echo\": 1}\n"
                                "{\"prompt_tokens\": [0, 40, 41], \"echo\": true, \"max_tokens\": 0, \"logprobs\": 0}\n"
                                "{\"prompt\": \"Hello\", \"echo\": false, \"logprobs\": 2}\n";
    const struct options before = options;
    const struct request *request;
    struct request_list list;

    (void)state;
    options.request.logprobs = -1;
    list = read_text(lines);
    options = before;
    request = list.request;
    assert_int_equal(list.count, 4);
    for (int i = 0; i < 4; i++)
        assert_null(request[i].error);
    assert_int_equal(request[0].prompt_length, strlen("Hello th\xc3\xa9re"));
    assert_memory_equal(request[0].prompt, "Hello th\xc3\xa9re", request[0].prompt_length);
    assert_int_equal(request[0].scores, request[0].prompt_count - 1);
    assert_int_equal(request[1].prompt_length, 5);
    assert_int_equal(request[1].scores, 0);
    assert_memory_equal(request[2].prompt, "<|endoftext|>", strlen("<|endoftext|>"));
    assert_int_equal(request[2].prompt_length, strlen("<|endoftext|>") + 2);
    assert_int_equal(request[2].scores, 2);
    assert_null(request[3].prompt);
    assert_int_equal(request[3].scores, 0);
    request_release(&list);
}

static void test_request__what_is_not_echoed_says_so(void **state)
{
    (void)state;
    EACH_WRONG({"\"echo\": \"yes\"", "echo is a text, expected true or false"}, {"\"echo\": 2", "echo is 2, expected true or false"});
}

/* Where nothing is generated, all of the context is the prompt's. */
static void test_request__a_prompt_alone_may_fill_the_context(void **state)
{
    char line[1024];
    int used = snprintf(line, sizeof line, "{\"echo\": true, \"max_tokens\": 0, \"prompt_tokens\": [1");
    struct request_list list;

    (void)state;
    for (int i = 1; i < CONTEXT; i++)
        used += snprintf(line + used, sizeof line - (size_t)used, ",1");
    snprintf(line + used, sizeof line - (size_t)used, "]}");
    list = read_text(line);
    assert_null(list.request[0].error);
    request_release(&list);
    snprintf(line + used, sizeof line - (size_t)used, ",1]}");
    expect_error(line, "the prompt has 65 tokens, the context has room for 64");
}

static void test_request__tokens_are_scored_from_the_end(void **state)
{
    static const int32_t tokens[] = {3, 4, 5, 6};
    const struct request_terms terms = {.options = &options, .tokenizer = tokenizer, .context = 4, .vocab = tokenizer_size(tokenizer)};
    struct request_list list = {0};

    (void)state;
    assert_int_equal(request_add_tokens(&list, &terms, tokens, 4, 2), STATUS_OK);
    assert_null(list.request[0].error);
    assert_int_equal(list.request[0].prompt_count, 4);
    assert_memory_equal(list.request[0].tokens, tokens, sizeof tokens);
    assert_int_equal(list.request[0].max_tokens, 0);
    assert_int_equal(list.request[0].logprobs, 0);
    assert_int_equal(list.request[0].scores, 2);
    request_release(&list);
}

static void test_request__a_line_chooses_how_drafts_are_accepted(void **state)
{
    const struct options before = options;
    struct request_list list;

    (void)state;
    options.request.sampling.accept = ACCEPT_COUPLED;
    list = read_text("{\"prompt\": \"a\", \"accept\": \"rejection\"}\n{\"prompt\": \"a\"}\n{\"prompt\": \"a\", \"accept\": \"exact\"}");
    options = before;
    assert_true(list.request[0].error == NULL && list.request[0].sampling.accept == ACCEPT_REJECTION);
    assert_true(list.request[1].error == NULL && list.request[1].sampling.accept == ACCEPT_COUPLED);
    assert_true(list.request[2].error == NULL && list.request[2].sampling.accept == ACCEPT_WALK);
    request_release(&list);
}

static void test_request__what_is_not_said_comes_from_the_options(void **state)
{
    struct request_list list = read_text("{\"id\": 7, \"prompt_tokens\": [3, 5]}\n{\"prompt\": \"x\", \"stop\": \"s\"}");

    (void)state;
    assert_int_equal(list.count, 2);
    assert_null(list.request[0].error);
    assert_string_equal(list.request[0].id, "7");
    assert_int_equal(list.request[0].prompt_count, 2);
    assert_int_equal(list.request[0].tokens[1], 5);
    assert_int_equal(list.request[0].max_tokens, 33);
    assert_true(list.request[0].sampling.temperature == 0.75);
    assert_int_equal(list.request[0].stops, 1);
    assert_string_equal(list.request[0].stop[0], "END");
    assert_null(list.request[1].id);
    assert_int_equal(list.request[1].stops, 1);
    assert_string_equal(list.request[1].stop[0], "s");
    request_release(&list);
}

static void test_request__tokens_are_biased_and_banned_and_stop(void **state)
{
    struct request_list list = read_text("{\"prompt\": \"a\", \"logit_bias\": {\"7\": -100, \"3\": 1.5, \"0\": 0}, \"min_tokens\": 4,"
                                         "\"bad_words\": [\"the\", \" the\", [5], [6, 7, 8]], \"stop_token_ids\": [9, 2]}\n"
                                         "{\"prompt\": \"a\", \"logit_bias\": {}, \"bad_words\": [], \"stop_token_ids\": []}");
    const struct request *request = &list.request[0];
    int32_t *the;
    int count;

    (void)state;
    assert_null(request->error);
    assert_int_equal(request->min_tokens, 4);
    assert_int_equal(request->bias->tokens, 3);
    assert_true(request->bias->token[0] == 0 && request->bias->token[1] == 3 && request->bias->token[2] == 7);
    assert_true(request->bias->value[1] == 1.5 && request->bias->value[2] == -100);
    assert_int_equal(request->stop_tokens, 2);
    assert_int_equal(request->stop_token[0], 9);
    assert_int_equal(request->bias->words, 4); /* the first text with and without a space; the second is one of the two */
    for (int with = 0; with < 2; with++) {
        assert_int_equal(tokenizer_encode(tokenizer, with ? " the" : "the", with ? 4 : 3, 0, &the, &count, NULL), STATUS_OK);
        assert_int_equal(request->bias->length[with], count);
        assert_memory_equal(request->bias->word[with], the, (size_t)count * sizeof *the);
        free(the);
    }
    assert_int_equal(request->bias->word[2][0], 5);
    assert_int_equal(request->bias->length[3], 3);
    assert_int_equal(request->bias->word[3][2], 8);
    assert_null(list.request[1].error);
    assert_true(bias_is_empty(list.request[1].bias) && list.request[1].stop_tokens == 0 && list.request[1].min_tokens == 0);
    request_release(&list);
}

/* What the command line says of tokens counts for lines that say nothing else. */
static void test_request__a_line_replaces_what_the_options_say_of_tokens(void **state)
{
    const struct options before = options;
    struct request_list list;

    (void)state;
    options.request.min_tokens = 2;
    bias_add_token(&options.request.bias, 11, 5);
    options.request.bad_word = (struct option_texts){1, {" "}};
    options.request.stop_token = (struct option_ids){1, {13}};
    list = read_text("{\"prompt\": \"a\"}\n{\"prompt\": \"a\", \"logit_bias\": {\"1\": 1, \"2\": 1}}\n"
                     "{\"prompt\": \"a\", \"bad_words\": [], \"stop_token_ids\": [], \"min_tokens\": 0}");
    options = before;
    for (int i = 0; i < 3; i++)
        assert_null(list.request[i].error);
    assert_true(list.request[0].bias->tokens == 1 && list.request[0].bias->words == 1 && list.request[0].stop_token[0] == 13);
    assert_true(list.request[1].bias->tokens == 2 && list.request[1].bias->words == 1 && list.request[1].min_tokens == 2);
    assert_true(list.request[2].bias->tokens == 1 && list.request[2].bias->words == 0 && list.request[2].stop_tokens == 0);
    assert_int_equal(list.request[2].min_tokens, 0);
    request_release(&list);
}

static void expect_options_refused(const char *part)
{
    const struct request_terms terms = {.options = &options, .tokenizer = tokenizer, .context = CONTEXT, .vocab = tokenizer_size(tokenizer)};
    struct request_list list = {0};
    struct capture capture;
    char text[300];

    capture_begin(&capture);
    assert_int_equal(request_add_text(&list, &terms, "a", 1), STATUS_USAGE);
    capture_end(&capture, text, sizeof text);
    capture_assert_one_line(text, part);
    request_release(&list);
}

static void test_request__options_that_do_not_fit_the_vocabulary_are_refused_once(void **state)
{
    const struct options before = options;

    (void)state;
    bias_add_token(&options.request.bias, 2048, 5);
    expect_options_refused("the command line: logit_bias is for token 2048, expected an id from 0 to 2047");
    options = before;
    options.request.stop_token = (struct option_ids){1, {5000}};
    expect_options_refused("the command line: stop_token_ids has token 5000");
    options = before;
    options.request.bad_word = (struct option_texts){1, {"one two three four five six seven eight nine ten eleven twelve thirteen fourteen"}};
    expect_options_refused("the command line: a sequence of bad_words has");
    options.request.bad_word = (struct option_texts){2, {"\xff", "a"}};
    expect_options_refused("the command line: a text of bad_words is not valid UTF-8");
    options = before;
}

/* A line whose list has one more than the most: the numbers from 0 on, each between `before` and `after`. */
static void expect_too_many(const char *begin, const char *before, const char *after, const char *end, int most, const char *part)
{
    char line[4096];
    int at = sprintf(line, "{\"prompt\": \"a\", %s%s0%s", begin, before, after);

    for (int i = 1; i <= most; i++)
        at += sprintf(line + at, ",%s%d%s", before, i, after);
    sprintf(line + at, "%s}", end);
    expect_error(line, part);
}

static void test_request__wrong_biases_and_bans_are_named(void **state)
{
    (void)state;
    EACH_WRONG({"\"logit_bias\": [1, 2]", "logit_bias is not an object of token ids and numbers"},
               {"\"logit_bias\": {\"x\": 1}", "logit_bias has the key \"x\", expected a token id from 0 to 2047"},
               {"\"logit_bias\": {\"\": 1}", "logit_bias has the key \"\""},
               {"\"logit_bias\": {\"-1\": 1}", "logit_bias has the key \"-1\""},
               {"\"logit_bias\": {\"07\": 1}", "logit_bias has the key \"07\""},
               {"\"logit_bias\": {\"2048\": 1}", "logit_bias has the key \"2048\""},
               {"\"logit_bias\": {\"99999999999999999999\": 1}", "logit_bias has the key \"99999999999999999999\""},
               {"\"logit_bias\": {\"1\": \"x\"}", "logit_bias of token 1 is not a number"},
               {"\"logit_bias\": {\"1\": 100.5}", "logit_bias of token 1 is 100.5, expected a number from -100 to 100"},
               {"\"logit_bias\": {\"1\": 1, \"1\": 2}", "not valid JSON"});
    expect_too_many("\"logit_bias\": {", "\"", "\":1", "}", BIAS_MAX_TOKENS, "logit_bias has 301 tokens, expected at most 300");
    EACH_WRONG({"\"bad_words\": \"the\"", "bad_words is not a list of texts and lists of token ids"},
               {"\"bad_words\": [\"b\", 7]", "bad_words[1] is not a text or a list of token ids"},
               {"\"bad_words\": [7, \"\"]", "bad_words[0] is not a text"}, /* the first alone */
               {"\"bad_words\": [\"\"]", "a sequence of bad_words has 0 tokens, expected 1 to 16"},
               {"\"bad_words\": [[]]", "a sequence of bad_words has 0 tokens, expected 1 to 16"},
               {"\"bad_words\": [[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]]", "a sequence of bad_words has 17 tokens"},
               {"\"bad_words\": [[1, 2048]]", "a sequence of bad_words has something else than a token id from 0 to 2047"},
               {"\"bad_words\": [[-1]]", "a sequence of bad_words has something else than a token id"},
               {"\"bad_words\": [[1.5]]", "a sequence of bad_words has something else than a token id"});
    expect_too_many("\"bad_words\": [", "[", "]", "]", BIAS_MAX_WORDS, "bad_words has more than 64 token sequences");
    EACH_WRONG({"\"stop_token_ids\": 3", "stop_token_ids is not a list of token ids"},
               {"\"stop_token_ids\": [3, -1]", "stop_token_ids[1] is not a token id from 0 to 2047"});
    expect_too_many("\"stop_token_ids\": [", "", "", "]", BIAS_MAX_STOPS, "stop_token_ids has 65 tokens, expected at most 64");
    EACH_WRONG({"\"min_tokens\": -1", "min_tokens is -1"},
               {"\"min_tokens\": 1.5", "min_tokens is 1.5, expected a whole number"},
               {"\"min_tokens\": 6, \"max_tokens\": 5", "min_tokens is 6, expected at most max_tokens, 5"},
               {"\"bad_word\": [\"x\"]", "unknown key \"bad_word\""});
}

static void test_request__bad_lines_keep_their_place(void **state)
{
    struct request_list list = read_text("{\"prompt\": \"a\"}\n\n{\"prompt\": \nnot json\r\n[1]\n{\"prompt\": \"b\"}");
    static const char *const parts[] = {NULL, "line 3 is not valid JSON", "line 4 begins with no {", "line 5 begins with no {", NULL};

    (void)state;
    assert_int_equal(list.count, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(list.request[i].index, i);
        assert_int_equal(list.request[i].error == NULL, parts[i] == NULL);
        if (parts[i] != NULL)
            assert_non_null(strstr(list.request[i].error, parts[i]));
    }
    request_release(&list);
}

/* As some editors put before the first line; anywhere else it is no JSON. */
static void test_request__a_byte_order_mark_is_no_text(void **state)
{
    struct request_list list = read_text("\xEF\xBB\xBF{\"prompt\": \"a\"}\n\xEF\xBB\xBF{\"prompt\": \"a\"}");
    struct request_list bare = read_text("{\"prompt\": \"a\"}"), alone = read_text("\xEF\xBB\xBF");

    (void)state;
    assert_int_equal(list.count, 2);
    assert_null(list.request[0].error);
    assert_true(list.request[0].digest == bare.request[0].digest);
    assert_non_null(strstr(list.request[1].error, "line 2 begins with no {"));
    assert_int_equal(alone.count, 0);
    request_release(&list);
    request_release(&bare);
    request_release(&alone);
}

/* What is said of the ids of these lines. */
static void warn_of_ids(const char *text, char said[2048])
{
    struct request_list list = read_text(text);
    struct capture capture;

    capture_begin(&capture);
    assert_int_equal(request_ids_warn(&list, "FILE"), STATUS_OK);
    capture_end(&capture, said, 2048);
    request_release(&list);
}

static void test_request__an_id_that_is_there_twice_is_told_once_with_both_lines(void **state)
{
#define LINE(id)   "{\"id\": " id ", \"prompt\": \"a\"}\n"
#define OPENAI(id) "{\"custom_id\": " id ", \"method\": \"POST\", \"url\": \"/v1/completions\", \"body\": {\"prompt\": \"a\", \"model\": \"m\"}}\n"
    static const char *const alone[] = {"", LINE("1"), "{\"prompt\": \"a\"}\n{\"prompt\": \"a\"}\n",
                                        LINE("7") LINE("\"7\"") LINE("[7]") LINE("null") LINE("null"),
                                        LINE("\"a\"") LINE("\"A\"") LINE("\"a \"") LINE("\"\"")};
    char said[2048];

    (void)state;
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++) {
        warn_of_ids(alone[i], said);
        assert_string_equal(said, "");
    }
    warn_of_ids(LINE("\"b\"") "\n" LINE("\"a\"") LINE("\"c\"") LINE("\"a\""), said);
    capture_assert_one_line(said, "--prompts FILE: line 5 has the id of line 3, \"a\"; their results are told apart by their order and index");
    warn_of_ids(LINE("2") LINE("1") LINE("1") LINE("2") LINE("2") "{\"id\": 1, \"prompt\": 5}\n", said);
    capture_assert_one_line(said, "line 3 has the id of line 2, 1, and 3 more have that of an earlier one;");
    warn_of_ids(OPENAI("\"r\"") OPENAI("\"r\""), said);
    capture_assert_one_line(said, "line 2 has the custom_id of line 1, \"r\"; their results are told apart by their order\n");
    warn_of_ids(LINE("{\"b\": 1, \"a\": [1, 2]}") LINE("{ \"b\" : 1, \"a\" : [1,2] }"), said);
    capture_assert_one_line(said, "line 2 has the id of line 1, {\"b\":1,\"a\":[1,2]};");
}

/* What is said of the room for these lines, where the model's own context is `most`. */
static void warn_of_room(const char *text, int most, char said[2048])
{
    struct request_list list = read_text(text);
    struct capture capture;

    capture_begin(&capture);
    request_room_warn(&list, CONTEXT, most, "--prompts FILE");
    capture_end(&capture, said, 2048);
    request_release(&list);
}

static void test_request__more_tokens_than_there_is_room_for_are_told_once(void **state)
{
#define ASKS(n) "{\"prompt_tokens\": [5, 6, 7, 8], \"max_tokens\": " n "}\n"
    char said[2048];

    (void)state;
    warn_of_room(ASKS("0") ASKS("60"), 2 * CONTEXT, said);
    assert_string_equal(said, "");
    warn_of_room("{\"prompt\": \"\", \"max_tokens\": 100}", CONTEXT, said); /* it is wrong, and says so elsewhere */
    assert_string_equal(said, "");
    warn_of_room(ASKS("60") ASKS("61"), CONTEXT, said);
    capture_assert_one_line(said,
                            "warning: --prompts FILE: line 2 asks for up to 61 tokens, and the context of 64 has room for 60 behind its prompt: it "
                            "ends there at the latest\n");
    warn_of_room(ASKS("100") ASKS("60") ASKS("61") ASKS("70"), 2 * CONTEXT, said);
    capture_assert_one_line(said,
                            "line 1 asks for up to 100 tokens, and the context of 64 has room for 60 behind its prompt: it ends there at the latest, "
                            "and so do 2 more; --context N makes more, N up to 128\n");
}

/* As a line that leaves them out: what the options say. */
static void test_request__no_stop_may_be_said_as_null(void **state)
{
    struct request_list list = read_text("{\"prompt\": \"a\", \"stop\": null, \"stop_token_ids\": null}\n{\"prompt\": \"a\"}\n"
                                         "{\"prompt\": \"a\", \"stop\": []}");

    (void)state;
    assert_null(list.request[0].error);
    assert_int_equal(list.request[0].stops, 1);
    assert_int_equal(list.request[0].stops, list.request[1].stops);
    assert_int_equal(list.request[0].stop_tokens, list.request[1].stop_tokens);
    assert_int_equal(list.request[2].stops, 0);
    request_release(&list);
}

/* Beyond 2^53 a double has not all of them. */
static void test_request__seeds_are_whole_up_to_the_last(void **state)
{
    struct request_list list = read_text("{\"prompt\": \"a\", \"seed\": 9223372036854775807}\n{\"prompt\": \"a\", \"seed\": 9007199254740993}\n"
                                         "{\"prompt\": \"a\", \"seed\": 5.0}\n{\"prompt\": \"a\", \"seed\": -9223372036854775807}\n");

    (void)state;
    assert_true(list.request[0].sampling.seed == INT64_MAX && list.request[0].error == NULL);
    assert_true(list.request[1].sampling.seed == UINT64_C(9007199254740993) && list.request[1].error == NULL);
    assert_true(list.request[2].sampling.seed == 5 && list.request[2].error == NULL);
    assert_non_null(list.request[3].error);
    assert_non_null(strstr(list.request[3].error, "seed is -9223372036854775807, expected"));
    request_release(&list);
}

/* A line whose numbers are too large is still read, so that its error has its id. */
static void test_request__a_number_beyond_64_bits_is_its_keys_error(void **state)
{
    struct request_list list = read_text("{\"id\": 1, \"prompt\": \"a\", \"seed\": 99999999999999999999}\n"
                                         "{\"id\": 99999999999999999999, \"prompt\": \"a\", \"seed\": 9223372036854775807}\n");

    (void)state;
    assert_string_equal(list.request[0].id, "1");
    assert_string_equal(list.request[0].error, "line 1: seed is 1e+20, expected a whole number from 0 to 9223372036854775807");
    assert_null(list.request[1].error);
    assert_true(strtod(list.request[1].id, NULL) == 99999999999999999999.0 && list.request[1].sampling.seed == INT64_MAX);
    request_release(&list);
}

static void test_request__what_is_null_is_not_set(void **state)
{
    struct request_list list =
        read_text("{\"prompt\": \"a\", \"n\": null, \"temperature\": null, \"seed\": null, \"accept\": null, \"suffix\": null, "
                  "\"messages\": null, \"prompt_tokens\": null, \"logit_bias\": null, \"echo\": null}\n{\"prompt\": \"a\"}\n"
                  "{\"prompt\": null}\n{\"prompt_tokens\": null}\n{\"messages\": null}\n{\"prompt\": \"a\", \"suffix\": \"b\"}\n");

    (void)state;
    assert_null(list.request[0].error);
    assert_int_equal(list.request[0].prompt_count, list.request[1].prompt_count);
    assert_memory_equal(&list.request[0].sampling, &list.request[1].sampling, sizeof list.request[0].sampling);
    assert_int_equal(list.request[0].choices, list.request[1].choices);
    for (int i = 2; i < 6; i++)
        assert_non_null(list.request[i].error);
    assert_non_null(strstr(list.request[2].error, "line 3: prompt is null, expected a text"));
    assert_non_null(strstr(list.request[3].error, "line 4: prompt_tokens is null, expected a list of token ids"));
    assert_non_null(strstr(list.request[4].error, "line 5: messages is null, expected a list of messages"));
    assert_non_null(strstr(list.request[5].error, "key \"suffix\" is not supported"));
    request_release(&list);
}

static void test_request__a_list_of_all_prompts_is_told_how_to_be_lines(void **state)
{
    (void)state;
    expect_error("[{\"prompt\": \"a\"}]", "line 1 begins with no {, expected a JSON object on each line, not one list of them: jq -c '.[]' FILE");
    expect_error("5", "line 1 begins with no {, expected a JSON object on each line");
}

/* The prompts of `tandem run` without one. */
static void test_request__what_the_user_says_holds_for_the_built_in_prompts(void **state)
{
    const struct request_terms terms = {.options = &options, .tokenizer = tokenizer, .context = CONTEXT, .vocab = tokenizer_size(tokenizer)};
    struct request_list list = {0};
    char path[PATH_MAX];

    (void)state;
    paths_demo("prompts.jsonl", path, sizeof path);
    assert_int_equal(request_read(&list, &terms, path), STATUS_OK);
    assert_int_equal(list.count, 3);
    for (int i = 0; i < list.count; i++) {
        assert_null(list.request[i].error);
        assert_int_equal(list.request[i].max_tokens, options.request.max_tokens);
        assert_true(list.request[i].adaptive);
    }
    request_release(&list);
}

/* Of trees whose tokens are compared the lead chooses the size; drawn ones and chains beside them have one of their own. */
static void test_request__a_length_left_open_is_the_leads_where_it_may_be(void **state)
{
    static const struct {
        const char *keys;
        int adaptive, draft_length;
    } cases[] = {{"", 1, 4},
                 {", \"accept\": \"walk\", \"temperature\": 1", 1, 4},
                 {", \"accept\": \"multistep\", \"temperature\": 1", 0, 12},
                 {", \"accept\": \"multistep\"", 1, 4}, /* greedy */
                 {", \"accept\": \"rejection\", \"temperature\": 1", 0, 4},
                 {", \"accept\": \"rejection\", \"temperature\": 1, \"draft_length\": 40", 0, 40}};
    struct options own = {
        .request.sampling = sampling_default, .request.max_tokens = 4, .request.n = 1, .rounds.draft_length = -1, .rounds.shape.kind = TREE_DYNAMIC};
    const struct request_terms terms = {.options = &own, .tokenizer = tokenizer, .context = CONTEXT, .vocab = tokenizer_size(tokenizer)};
    struct request_list list = {0};
    char line[160];

    (void)state;
    own.request.sampling.temperature = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int length = snprintf(line, sizeof line, "{\"prompt\": \"a\"%s}", cases[i].keys);

        assert_int_equal(request_add_line(&list, &terms, line, (size_t)length, (int)i + 1), STATUS_OK);
        assert_null(list.request[i].error);
        assert_int_equal(list.request[i].adaptive, cases[i].adaptive);
        assert_int_equal(list.request[i].draft_length, cases[i].draft_length);
    }
    request_release(&list);
}

static void test_request__wrong_values_are_named(void **state)
{
    (void)state;
    EACH_WRONG({"\"temperature\": -1", "temperature is -1"}, {"\"temperature\": NaN", "line 1 is not valid JSON"},
               {"\"temperature\": 1e999", "line 1 is JSON with too large a number at byte"},
               {"\"temperatura\": null", "unknown key \"temperatura\"; did you mean \"temperature\"?"},
               {"\"logprobs\": true", "logprobs is true, expected how many of the most probable tokens are told, from 0 to 20; "},
               {"\"logprobs\": 21", "logprobs is 21, expected "}, {"\"logprobs\": -1", "logprobs is -1, expected "}, {"\"top_p\": 0", "top_p is 0"},
               {"\"top_p\": 1.5", "top_p is 1.5"}, {"\"min_p\": 1", "min_p is 1"}, {"\"lenience\": 0", "lenience is 0"},
               {"\"threshold\": 1", "threshold is 1"}, {"\"typical_epsilon\": 2", "typical_epsilon is 2, expected a number from 0 to 1"},
               {"\"typical_delta\": -1", "typical_delta is -1"}, {"\"top_k\": -3", "top_k is -3"}, {"\"top_k\": 2.5", "top_k is 2.5"},
               {"\"repetition_penalty\": 0", "repetition_penalty is 0"},
               {"\"repetition_penalty\": 1e-39", "repetition_penalty is 1e-39, expected a number from 0.01 to 100"},
               {"\"presence_penalty\": 3", "presence_penalty is 3"}, {"\"max_tokens\": -1", "max_tokens is -1"},
               {"\"draft_length\": 33", "draft_length is 33, expected at most 32, or a job with --tree or --draft-length 33"},
               {"\"draft_length\": 64", "draft_length is 64, expected a whole number from 0 to 63"},
               {"\"seed\": -1", "seed is -1, expected a whole number from 0 to 9223372036854775807"}, {"\"seed\": 0.5", "seed is 0.5"},
               {"\"seed\": \"5\"", "seed is a text, expected a whole number from 0 to 9223372036854775807"}, {"\"seed\": 1e19", "seed is 1e+19, expected"},
               {"\"accept\": \"multistage\"", "accept is multistage, expected one of rejection|"},
               {"\"accept\": \"coupled\\u0000\"", "accept is no name, expected"}, {"\"accept\": 3", "accept is no name, expected"},
               {"\"stop\": [\"\"]", "stop is not"}, {"\"stop\": 4", "stop is not"});
}

static void test_request__completions_have_limits(void **state)
{
    (void)state;
    EACH_WRONG({"\"n\": 0", "n is 0, expected a whole number from 1 to 128"}, {"\"n\": 129", "n is 129, expected a whole number from 1 to 128"},
               {"\"n\": -1", "n is -1, expected"}, {"\"n\": 1.5", "n is 1.5, expected a whole number"},
               {"\"n\": \"2\"", "n is a text, expected a whole number from 1 to 128"}, {"\"n\": true", "n is true, expected a whole"},
               {"\"n\": [2]", "n is a list, expected a whole"},
               {"\"best_of\": 0", "best_of is 0, expected a whole number from 1 to 128"},
               {"\"best_of\": 129", "best_of is 129, expected a whole number from 1 to 128"},
               {"\"best_of\": 2.5", "best_of is 2.5, expected a whole number"},
               {"\"best_of\": \"x\"", "best_of is a text, expected a whole number from 1 to 128"},
               {"\"n\": 3, \"best_of\": 2", "best_of is 2, expected at least n, 3"},
               {"\"best_of\": 2, \"n\": 3", "best_of is 2, expected at least n, 3"});
}

/* A result is one line, all of it in memory at once. */
static void test_request__a_result_has_no_more_than_there_is_room_for(void **state)
{
    static const struct {
        const char *keys, *error;
    } lines[] = {
        {"\"n\": 128, \"max_tokens\": 8192", NULL},
        {"\"n\": 128, \"max_tokens\": 8193", "line 1: n is 128, of completions of up to 8193 tokens: their result would have 1048704 numbers, "
                                             "expected at most 1048576"},
        {"\"best_of\": 64, \"max_tokens\": 999999", "line 1: best_of is 64, of completions of up to 19999 tokens: their result would have"},
        {"\"n\": 2, \"logprobs\": 20, \"max_tokens\": 20000", NULL},
        {"\"n\": 3, \"logprobs\": 20, \"max_tokens\": 20000", "their result would have 1319934 numbers with logprobs, expected at most 1048576"},
        {"\"n\": 128, \"max_tokens\": 8192, \"echo\": true", "1048704 numbers"},
        {"\"logprobs\": 20, \"max_tokens\": 999999", NULL}, /* one alone may have what it always had */
    };
    struct options own = options;
    const struct request_terms terms = {.options = &own, .tokenizer = tokenizer, .context = 20000, .vocab = tokenizer_size(tokenizer)};

    (void)state;
    own.request.logprobs = -1;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct request_list list = {0};
        char line[256];

        snprintf(line, sizeof line, "{\"prompt_tokens\": [7], %s}", lines[i].keys);
        assert_int_equal(request_add_line(&list, &terms, line, strlen(line), 1), STATUS_OK);
        if (lines[i].error == NULL)
            assert_null(list.request[0].error);
        else if (list.request[0].error == NULL || strstr(list.request[0].error, lines[i].error) == NULL)
            fail_msg("%s: got \"%s\", expected \"%s\"", line, list.request[0].error != NULL ? list.request[0].error : "no error", lines[i].error);
        request_release(&list);
    }
}

static void test_request__completions_have_seeds_of_their_own(void **state)
{
    struct request_list list = read_text("{\"prompt\": \"a\", \"n\": 3, \"seed\": 7}\n{\"prompt\": \"a\", \"n\": 2, \"best_of\": 9}\n"
                                         "{\"prompt\": \"a\"}\n{\"prompt\": \"a\", \"n\": 4, \"best_of\": 4}\n{\"prompt\": 1, \"n\": 5}");
    static const int completions[] = {3, 9, 1, 4}, chooses[] = {0, 1, 0, 0};

    (void)state;
    assert_int_equal(list.count, 5);
    for (int i = 0; i < 4; i++) {
        assert_null(list.request[i].error);
        assert_int_equal(request_completions(&list.request[i]), completions[i]);
        assert_int_equal(request_chooses(&list.request[i]), chooses[i]);
        assert_int_equal(list.request[i].index, i); /* a line has its number, whatever is asked for before it */
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(request_seed(&list.request[0], i), 7 + i);
    list.request[0].sampling.seed = INT64_MAX; /* the largest of a line, and that of --seed */
    assert_true(request_seed(&list.request[0], 0) == INT64_MAX && request_seed(&list.request[0], 2) == 1);
    list.request[0].sampling.seed = UINT64_MAX;
    assert_true(request_seed(&list.request[0], 0) == UINT64_MAX && request_seed(&list.request[0], 2) == 1);
    assert_non_null(list.request[4].error);
    request_release(&list);
}

static void test_request__where_one_is_expected_several_are_refused(void **state)
{
    struct request_list list = read_text("{\"prompt\": \"a\", \"n\": 1, \"best_of\": 1}\n\n{\"prompt\": 3, \"n\": 2}\n");
    struct request_list more = read_text("{\"prompt\": \"a\"}\n\n{\"prompt\": \"a\", \"n\": 2, \"best_of\": 3}\n");
    struct capture capture;
    char said[512];

    (void)state;
    assert_int_equal(request_expect_single(&list, "a check"), STATUS_OK);
    capture_begin(&capture);
    assert_int_equal(request_expect_single(&more, "a check"), STATUS_DATA);
    capture_end(&capture, said, sizeof said);
    capture_assert_one_line(said, "line 3: best_of is 3, and a check has one completion of each prompt: expected 1");
    request_release(&list);
    request_release(&more);
}

static void test_request__lines_have_limits(void **state)
{
    enum { MOST = 16 << 20, DEEP = 100 };
    char *line = malloc(MOST + 2);

    (void)state;
    assert_non_null(line);
    memset(line, 'x', MOST + 1);
    line[MOST + 1] = '\0';
    expect_error(line, "line 1 has 16777217 bytes, at most 16777216 are read");
    memset(line, '[', DEEP);
    memcpy(line, "{\"a\":", 5);
    line[DEEP] = '\0';
    expect_error(line, "line 1 is JSON nested deeper than 64");
    free(line);
}

static void test_request__unknown_and_doubled_keys_are_refused(void **state)
{
    (void)state;
    EACH_WRONG({"\"topk\": 3", "unknown key \"topk\"; did you mean \"top_k\"?"}, {"\"top-k\": 3", "unknown key \"top-k\"; did you mean \"top_k\"?"},
               {"\"max_token\": 3", "unknown key \"max_token\"; did you mean \"max_tokens\"?"},
               {"\"message\": 3", "unknown key \"message\"; did you mean \"messages\"?"},
               {"\"bad_word\": [\"x\"]", "unknown key \"bad_word\"; did you mean \"bad_words\"?"},
               {"\"n_predict\": 3", "key \"n_predict\" is not supported, expected max_tokens"},
               {"\"grammar\": \"x\"", "key \"grammar\" is not supported: nothing follows a grammar"},
               {"\"watchdog\": 3", "unknown key \"watchdog\", expected one of prompt, prompt_tokens, messages, id, "}, {"\"x\": 3", "draft_length"},
               {"\"num_beams\": 2", "key \"num_beams\" is not supported: texts are drawn, not searched for"},
               {"\"stop_strings\": [\"x\"]", "key \"stop_strings\" is not supported, expected stop"},
               {"\"stop_sequence\": [\"x\"]", "key \"stop_sequence\" is not supported, expected stop"},
               {"\"eos_token_id\": 3", "key \"eos_token_id\" is not supported, expected stop_token_ids"},
               {"\"bad_words_ids\": [[3]]", "key \"bad_words_ids\" is not supported, expected bad_words"},
               {"\"return_full_text\": true", "key \"return_full_text\" is not supported, expected echo"},
               {"\"prompt_logprobs\": 3", "key \"prompt_logprobs\" is not supported: with echo, logprobs tells them"},
               {"\"no_repeat_ngram_size\": 3", "key \"no_repeat_ngram_size\" is not supported: repetition_penalty, presence_penalty"},
               {"\"repeat_last_n\": 64", "key \"repeat_last_n\" is not supported: penalties count tokens of the whole text"},
               {"\"suffix\": \"x\"", "key \"suffix\" is not supported: a text is continued"},
               {"\"user\": \"x\"", "key \"user\" is not supported: id names a line"},
               {"\"tools\": []", "key \"tools\" is not supported: a template is given messages alone"},
               {"\"num_return_sequences\": 2", "key \"num_return_sequences\" is not supported, expected n"},
               {"\"seed\": 1, \"seed\": 2", "duplicate"}, {"\"prompt\": \"b\"", "duplicate"});
}

static void test_request__prompts_are_checked(void **state)
{
    char line[2048] = "{\"prompt_tokens\": [1";

    (void)state;
    expect_error("{}", "one of \"prompt\", \"prompt_tokens\" and \"messages\"");
    expect_error("{\"prompt\": \"a\", \"prompt_tokens\": [1]}", "one of \"prompt\", \"prompt_tokens\" and \"messages\"");
    expect_error("{\"prompt_tokens\": [1], \"prompt\": \"a\"}", "one of \"prompt\", \"prompt_tokens\" and \"messages\"");
    expect_error("{\"prompt\": 4}", "prompt is a number, expected a text; a list of token ids is prompt_tokens");
    expect_error("{\"prompt_tokens\": []}", "empty");
    expect_error("{\"prompt_tokens\": 3}", "prompt_tokens is not a list");
    expect_error("{\"prompt_tokens\": [1, -1]}", "prompt_tokens[1]");
    expect_error("{\"prompt_tokens\": [2048]}", "prompt_tokens[0] is not a token id from 0 to 2047");
    expect_error("{\"prompt_tokens\": [1.5]}", "prompt_tokens[0]");
    expect_error("{\"prompt_tokens\": [99999999999]}", "prompt_tokens[0]");
    for (int i = 1; i < CONTEXT; i++)
        strcat(line, ",1");
    strcat(line, "]}");
    expect_error(line, "the prompt has 64 tokens, the context has room for 63");
}

static void test_request__empty_prompt_is_refused_unless_the_tokenizer_begins_it(void **state)
{
    struct request_list list = read_text("{\"prompt\": \"\"}");
    int32_t *tokens;
    int count;

    (void)state;
    assert_int_equal(tokenizer_encode(tokenizer, "", 0, TOKENIZER_ADD_SPECIAL, &tokens, &count, NULL), STATUS_OK);
    assert_int_equal(list.request[0].error != NULL, count == 0);
    free(tokens);
    request_release(&list);
}

static void test_request__invalid_utf8_is_refused_with_its_line(void **state)
{
    struct request_list list = read_text("{\"prompt\": \"ok\"}\n{\"prompt\": \"\xff\xfe\"}\n{\"prompt\": \"\xed\xa0\x80\"}\n{\"prompt\": \"ok\"}\n");

    (void)state;
    assert_int_equal(list.count, 4);
    assert_null(list.request[0].error);
    assert_non_null(strstr(list.request[1].error, "line 2"));
    assert_non_null(strstr(list.request[1].error, "UTF-8"));
    assert_non_null(strstr(list.request[2].error, "line 3"));
    assert_null(list.request[3].error);
    request_release(&list);
}

static void test_request__stop_with_a_nul_is_refused(void **state)
{
    (void)state;
    expect_error("{\"prompt\": \"a\", \"stop\": \"x\\u0000y\"}", "stop is not");
}

static void test_request__a_text_that_is_not_utf8_is_refused_with_its_byte(void **state)
{
    const struct request_terms terms = {.options = &options, .tokenizer = tokenizer, .context = CONTEXT, .vocab = tokenizer_size(tokenizer)};
    struct request_list list = {0};

    (void)state;
    assert_int_equal(request_add_text(&list, &terms, "abc\xff", 4), STATUS_OK);
    assert_non_null(list.request[0].error);
    assert_string_equal(list.request[0].error, "the prompt is not valid UTF-8 (byte 3)");
    request_release(&list);
}

/* Two pieces, and a pattern that backtracks without end. */
static void test_request__a_tokenizer_may_fail_and_may_be_small(void **state)
{
    static const char json[] = "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"^(a+)+$\"},\"behavior\":\"Isolated\"},"
                               "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]}}";
    struct tokenizer *const before = tokenizer;

    (void)state;
    assert_int_equal(tokenizer_json_open("small", json, strlen(json), &tokenizer), STATUS_OK);
    expect_error("{\"prompt\": \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\"}", "the prompt cannot be cut into tokens");
    expect_error("{\"prompt\": \"xy\"}", "the tokenizer has no token for any of the prompt's 2 bytes");
    expect_error("{\"prompt\": \"ab\", \"min_tokens\": 1}", "bad_words and min_tokens could ban all 2 tokens");
    tokenizer_close(tokenizer);
    tokenizer = before;
}

static void test_request__a_nul_inside_a_line_is_bad_json(void **state)
{
    static const char bytes[] = "{\"prompt\": \"a\"}\n{\"prompt\": \0\"b\"}\n{\"prompt\": \"c\"}";
    struct request_list list = read_bytes(bytes, sizeof bytes - 1);

    (void)state;
    assert_int_equal(list.count, 3);
    assert_non_null(list.request[1].error);
    assert_null(list.request[2].error);
    request_release(&list);
}

static void test_request__stops_of_every_kind_are_released(void **state)
{
    struct request_list list = read_text("{\"prompt\": \"a\", \"stop\": [\"x\", 3]}\n{\"id\": 1, \"prompt\": \"\xff\"}\n");

    (void)state;
    assert_non_null(list.request[0].error); /* the leak checker of the asan preset does the rest */
    request_release(&list);
    assert_int_equal(list.count, 0);
}

static void test_request__a_dash_is_standard_input(void **state)
{
    const struct request_terms terms = {.options = &options, .tokenizer = tokenizer, .context = CONTEXT, .vocab = tokenizer_size(tokenizer)};
    struct request_list list = {0};
    char path[] = "/tmp/test_request.XXXXXX";
    int file = mkstemp(path);

    (void)state;
    assert_true(file >= 0);
    assert_int_equal(write(file, "{\"prompt_tokens\": [5]}\n", 23), 23);
    close(file);
    assert_non_null(freopen(path, "r", stdin));
    unlink(path);
    assert_int_equal(request_read(&list, &terms, "-"), STATUS_OK);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.request[0].tokens[0], 5);
    assert_int_equal(fclose(stdin), 0); /* it was left open */
    request_release(&list);
}

static void test_request__missing_file_is_no_input(void **state)
{
    const struct request_terms terms = {.options = &options, .tokenizer = tokenizer, .context = CONTEXT, .vocab = 2048};
    struct request_list list = {0};

    (void)state;
    assert_int_equal(request_read(&list, &terms, "/no/such/file"), STATUS_NOINPUT);
    request_release(&list);
}

static int open_tokenizer(void **state)
{
    (void)state;
    options = (struct options){
        .request.sampling = sampling_default, .request.max_tokens = 33, .rounds.draft_length = -1, .request.stop = {1, {"END"}}};
    options.request.sampling.temperature = 0.75;
    return tokenizer_open(TANDEM_SOURCE_DIR "/launch/demo/target", 0, &tokenizer) != STATUS_OK;
}

static int close_tokenizer(void **state)
{
    (void)state;
    tokenizer_close(tokenizer);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request__every_option_has_its_snake_case_key),
        cmocka_unit_test(test_request__an_echoed_prompt_keeps_its_text),
        cmocka_unit_test(test_request__what_is_not_echoed_says_so),
        cmocka_unit_test(test_request__a_prompt_alone_may_fill_the_context),
        cmocka_unit_test(test_request__tokens_are_scored_from_the_end),
        cmocka_unit_test(test_request__a_line_chooses_how_drafts_are_accepted),
        cmocka_unit_test(test_request__what_is_not_said_comes_from_the_options),
        cmocka_unit_test(test_request__tokens_are_biased_and_banned_and_stop),
        cmocka_unit_test(test_request__a_line_replaces_what_the_options_say_of_tokens),
        cmocka_unit_test(test_request__options_that_do_not_fit_the_vocabulary_are_refused_once),
        cmocka_unit_test(test_request__wrong_biases_and_bans_are_named),
        cmocka_unit_test(test_request__bad_lines_keep_their_place),
        cmocka_unit_test(test_request__a_byte_order_mark_is_no_text),
        cmocka_unit_test(test_request__an_id_that_is_there_twice_is_told_once_with_both_lines),
        cmocka_unit_test(test_request__more_tokens_than_there_is_room_for_are_told_once),
        cmocka_unit_test(test_request__no_stop_may_be_said_as_null),
        cmocka_unit_test(test_request__a_number_beyond_64_bits_is_its_keys_error),
        cmocka_unit_test(test_request__what_is_null_is_not_set),
        cmocka_unit_test(test_request__seeds_are_whole_up_to_the_last),
        cmocka_unit_test(test_request__a_list_of_all_prompts_is_told_how_to_be_lines),
        cmocka_unit_test(test_request__what_the_user_says_holds_for_the_built_in_prompts),
        cmocka_unit_test(test_request__a_length_left_open_is_the_leads_where_it_may_be),
        cmocka_unit_test(test_request__wrong_values_are_named),
        cmocka_unit_test(test_request__completions_have_limits),
        cmocka_unit_test(test_request__a_result_has_no_more_than_there_is_room_for),
        cmocka_unit_test(test_request__completions_have_seeds_of_their_own),
        cmocka_unit_test(test_request__where_one_is_expected_several_are_refused),
        cmocka_unit_test(test_request__lines_have_limits),
        cmocka_unit_test(test_request__unknown_and_doubled_keys_are_refused),
        cmocka_unit_test(test_request__prompts_are_checked),
        cmocka_unit_test(test_request__empty_prompt_is_refused_unless_the_tokenizer_begins_it),
        cmocka_unit_test(test_request__invalid_utf8_is_refused_with_its_line),
        cmocka_unit_test(test_request__stop_with_a_nul_is_refused),
        cmocka_unit_test(test_request__a_text_that_is_not_utf8_is_refused_with_its_byte),
        cmocka_unit_test(test_request__a_tokenizer_may_fail_and_may_be_small),
        cmocka_unit_test(test_request__a_nul_inside_a_line_is_bad_json),
        cmocka_unit_test(test_request__stops_of_every_kind_are_released),
        cmocka_unit_test(test_request__a_dash_is_standard_input),
        cmocka_unit_test(test_request__missing_file_is_no_input),
    };

    return cmocka_run_group_tests(tests, open_tokenizer, close_tokenizer);
}
