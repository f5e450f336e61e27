#include "common/base/rng.h"
#include "verifier/request/completion.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct tokenizer *tokenizer;
static const int32_t eos[] = {1, 7};

static uint32_t word(uint32_t at, uint32_t index)
{
    uint32_t words[4];

    rng_words(&(struct rng_key){.seed = 9, .request = at}, RNG_TREE, index, words);
    return words[0];
}

/* A completion of this request; the stops are borrowed. */
static struct completion begin(struct request *request, char **stop, int stops, int limit)
{
    struct completion completion;

    *request = (struct request){.stop = stop, .stops = stops};
    assert_int_equal(completion_open(&completion, request, tokenizer, eos, 2, limit), STATUS_OK);
    return completion;
}

static int32_t *encode(const char *text, int *count)
{
    int32_t *tokens;

    assert_int_equal(tokenizer_encode(tokenizer, text, strlen(text), 0, &tokens, count, NULL), STATUS_OK);
    return tokens;
}

/* The token that is exactly this byte. */
static int32_t byte_token(unsigned char byte)
{
    for (int32_t id = 0; id < tokenizer_size(tokenizer); id++) {
        size_t length;
        const char *piece = tokenizer_piece(tokenizer, id, 0, 0, &length);

        if (length == 1 && (unsigned char)piece[0] == byte)
            return id;
    }
    fail();
    return -1;
}

static void assert_text(const struct completion *completion, const char *text)
{
    assert_int_equal(completion->length, strlen(text));
    assert_memory_equal(completion->text, text, completion->length);
}

static void test_completion__length_cuts_the_run(void **state)
{
    struct request request;
    struct completion completion = begin(&request, NULL, 0, 5);
    const int32_t tokens[] = {300, 301, 302, 303};

    (void)state;
    assert_int_equal(completion_push(&completion, tokens, 4), 4);
    assert_int_equal(completion.finish, FINISH_NOT);
    assert_int_equal(completion_push(&completion, tokens, 4), 1);
    assert_int_equal(completion.finish, FINISH_LENGTH);
    assert_int_equal(completion.count, 5);
    assert_int_equal(completion_push(&completion, tokens, 4), 0);
    completion_close(&completion);
}

static void test_completion__eos_ends_inside_an_accepted_run(void **state)
{
    struct request request;

    (void)state;
    for (int at = 0; at < 4; at++) {
        struct completion completion = begin(&request, NULL, 0, 100), plain = begin(&request, NULL, 0, 100);
        int32_t tokens[4] = {300, 301, 302, 303};

        assert_int_equal(completion_push(&plain, tokens, at), at);
        tokens[at] = eos[at % 2];
        assert_int_equal(completion_push(&completion, tokens, 4), at + 1);
        assert_int_equal(completion.finish, FINISH_STOP);
        assert_int_equal(completion.length, plain.length); /* EOS has no text */
        assert_int_equal(completion.shown, completion.length);
        completion_close(&completion);
        completion_close(&plain);
    }
}

/* At every place of a run, also where EOS is ignored. */
static void test_completion__a_stop_token_ends_as_eos_does(void **state)
{
    struct request request;
    int32_t stops[] = {500, 1}; /* the second is EOS */

    (void)state;
    for (int at = 0; at < 8; at++) {
        struct completion completion = begin(&request, NULL, 0, 100), plain = begin(&request, NULL, 0, 100);
        int32_t tokens[4] = {300, 301, 302, 303};

        request.ignore_eos = 1;
        request.stop_token = stops;
        request.stop_tokens = 2;
        assert_int_equal(completion_push(&plain, tokens, at % 4), at % 4);
        tokens[at % 4] = stops[at / 4];
        assert_int_equal(completion_push(&completion, tokens, 4), at % 4 + 1);
        assert_int_equal(completion.finish, FINISH_STOP);
        assert_int_equal(completion.count, at % 4 + 1);
        assert_int_equal(completion.length, plain.length);
        completion_close(&completion);
        completion_close(&plain);
    }
}

/* Where the model's configuration does not name it. */
static void test_completion__the_end_of_a_chats_answer_is_one_more_eos(void **state)
{
    struct request request;
    struct completion completion = begin(&request, NULL, 0, 10);
    const int32_t tokens[] = {300, 600, 301};

    (void)state;
    assert_int_equal(completion_is_ended_by(&completion, 600), 0);
    request.has_turn_end = 1;
    request.turn_end = 600;
    assert_int_equal(completion_is_ended_by(&completion, 600), 1);
    assert_int_equal(completion_push(&completion, tokens, 3), 2);
    assert_int_equal(completion.finish, FINISH_STOP);
    request.ignore_eos = 1;
    assert_int_equal(completion_is_ended_by(&completion, 600), 0);
    completion_close(&completion);
}

static void test_completion__ignored_eos_is_a_token_like_others(void **state)
{
    struct request request;
    struct completion completion = begin(&request, NULL, 0, 10);
    const int32_t tokens[] = {1, 300, 7};

    (void)state;
    request.ignore_eos = 1;
    assert_int_equal(completion_is_ended_by(&completion, 1), 0);
    assert_int_equal(completion_push(&completion, tokens, 3), 3);
    assert_int_equal(completion.finish, FINISH_NOT);
    completion_close(&completion);
}

static void test_completion__first_of_stop_and_length_wins(void **state)
{
    char *stop[] = {"b"};
    struct request request;
    const int32_t tokens[] = {byte_token('a'), byte_token('b'), byte_token('c')};

    (void)state;
    for (int limit = 1; limit <= 3; limit++) {
        struct completion completion = begin(&request, stop, 1, limit);

        assert_int_equal(completion_push(&completion, tokens, 3), limit == 1 ? 1 : 2);
        assert_int_equal(completion.finish, limit == 1 ? FINISH_LENGTH : FINISH_STOP);
        assert_text(&completion, "a");
        completion_close(&completion);
    }
}

static void test_completion__stop_spans_tokens_and_rounds(void **state)
{
    char *stop[] = {"never", "bcd"};
    struct request request;
    struct completion completion = begin(&request, stop, 2, 100);
    const int32_t first[] = {byte_token('a'), byte_token('b')}, second[] = {byte_token('c'), byte_token('d'), byte_token('e')};

    (void)state;
    assert_int_equal(completion_push(&completion, first, 2), 2);
    assert_int_equal(completion.shown, 0); /* "ab" may be part of a text of 5 */
    assert_int_equal(completion_push(&completion, second, 3), 2);
    assert_int_equal(completion.finish, FINISH_STOP);
    assert_text(&completion, "a");
    assert_int_equal(completion.shown, 1);
    completion_close(&completion);
}

static void test_completion__holds_a_character_until_it_is_whole(void **state)
{
    struct request request;
    struct completion completion = begin(&request, NULL, 0, 100);
    const unsigned char euro[] = "\xe2\x82\xac";

    (void)state;
    for (int i = 0; i < 3; i++) {
        int32_t token = byte_token(euro[i]);

        assert_int_equal(completion_push(&completion, &token, 1), 1);
        assert_int_equal(completion.length, i < 2 ? 0 : 3);
        assert_int_equal(completion.shown, completion.length);
    }
    assert_text(&completion, "\xe2\x82\xac");
    completion_close(&completion);
}

static void test_completion__unfinished_character_ends_as_a_replacement(void **state)
{
    struct request request;
    int32_t tokens[] = {byte_token('a'), byte_token(0xe2), byte_token(0x82)};

    (void)state;
    for (int by_eos = 0; by_eos < 2; by_eos++) {
        struct completion completion = begin(&request, NULL, 0, by_eos ? 100 : 3);

        completion_push(&completion, tokens, 3);
        if (by_eos)
            completion_push(&completion, eos, 1);
        assert_int_equal(completion.finish, by_eos ? FINISH_STOP : FINISH_LENGTH);
        assert_text(&completion, "a\xef\xbf\xbd");
        assert_int_equal(completion.shown, completion.length);
        completion_close(&completion);
    }
}

/* What is shown never ends inside a character, though the bytes that are held for a stop text may begin in one. */
static void test_completion__shown_ends_at_a_character(void **state)
{
    char *stop[] = {"xyz"};
    struct request request;
    struct completion completion = begin(&request, stop, 1, 100);
    int count;
    int32_t *tokens = encode("h\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xa9", &count);

    (void)state;
    for (int i = 0; i < count; i++) {
        completion_push(&completion, tokens + i, 1);
        assert_int_equal(utf8_valid(completion.text, completion.shown), completion.shown);
        assert_true(completion.length - completion.shown <= 5);
    }
    free(tokens);
    completion_close(&completion);
}

static const char story[] = "Once upon a time there was a na\xc3\xafve little fox, who said: \xe2\x80\x9cNo, no, no!\xe2\x80\x9d \xf0\x9f\xa6\x8a "
                            "The fox ran and ran and ran. Then then the end of the tale came, tale of tales.";

/* The first place of the text where a stop stands that ends behind `from`; SIZE_MAX when there is none. */
static size_t find_stop(const struct completion *plain, size_t from, const char *stop)
{
    size_t length = strlen(stop);

    for (size_t at = 0; at + length <= plain->length; at++)
        if (at + length > from && memcmp(plain->text + at, stop, length) == 0)
            return at;
    return SIZE_MAX;
}

/* Where the text of the first tokens first holds a stop that ends in the text of a token behind the first min_tokens: the tokens taken and
 * the bytes kept. */
static int find_end(const int32_t *tokens, int count, int min_tokens, char **stop, int stops, size_t *bytes)
{
    struct request request;
    struct completion plain = begin(&request, NULL, 0, count + 1);

    for (int i = 0; i < count; i++) {
        size_t first = SIZE_MAX, from = plain.length;

        completion_push(&plain, tokens + i, 1);
        for (int s = 0; s < stops && i >= min_tokens; s++) {
            size_t found = find_stop(&plain, from, stop[s]);

            first = found < first ? found : first;
        }
        if (first != SIZE_MAX) {
            *bytes = first;
            completion_close(&plain);
            return i + 1;
        }
    }
    *bytes = plain.length;
    completion_close(&plain);
    return count;
}

static void cut(uint32_t at, char *stop)
{
    size_t length = 1 + word(at, 0) % 9, from = word(at, 1) % (sizeof story - 10);

    memcpy(stop, story + from, length);
    stop[length] = '\0';
}

/* Random stops, the tokens in random rounds: taken, text and what was shown on the way agree with looking at the whole text each time. */
static void test_completion__stops_are_those_of_the_whole_text(void **state)
{
    int count;
    int32_t *tokens = encode(story, &count);

    (void)state;
    for (uint32_t r = 0; r < 3000; r++) {
        char text[3][16], *stop[3] = {text[0], text[1], text[2]};
        int stops = 1 + (int)(word(r, 3) % 3), taken = 0, min_tokens = r % 2 ? (int)(word(r, 99) % 40) : 0, expected;
        struct request request;
        size_t bytes;

        for (int s = 0; s < stops; s++)
            cut(10 * r + (uint32_t)s, stop[s]);
        expected = find_end(tokens, count, min_tokens, stop, stops, &bytes);
        struct completion completion = begin(&request, stop, stops, count + 1);
        request.min_tokens = min_tokens;
        for (uint32_t i = 4; completion.finish == FINISH_NOT && taken < count; i++) {
            int size = 1 + (int)(word(r, i) % 6), shown = (int)completion.shown;

            taken += completion_push(&completion, tokens + taken, size < count - taken ? size : count - taken);
            assert_true((int)completion.shown >= shown);
            assert_true(completion.shown <= bytes);
        }
        assert_int_equal(taken, expected);
        assert_int_equal(completion.length, bytes);
        assert_memory_equal(completion.text, story, bytes);
        completion_close(&completion);
    }
    free(tokens);
}

static int open_tokenizer(void **state)
{
    (void)state;
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
        cmocka_unit_test(test_completion__length_cuts_the_run),
        cmocka_unit_test(test_completion__eos_ends_inside_an_accepted_run),
        cmocka_unit_test(test_completion__a_stop_token_ends_as_eos_does),
        cmocka_unit_test(test_completion__the_end_of_a_chats_answer_is_one_more_eos),
        cmocka_unit_test(test_completion__ignored_eos_is_a_token_like_others),
        cmocka_unit_test(test_completion__first_of_stop_and_length_wins),
        cmocka_unit_test(test_completion__stop_spans_tokens_and_rounds),
        cmocka_unit_test(test_completion__holds_a_character_until_it_is_whole),
        cmocka_unit_test(test_completion__unfinished_character_ends_as_a_replacement),
        cmocka_unit_test(test_completion__shown_ends_at_a_character),
        cmocka_unit_test(test_completion__stops_are_those_of_the_whole_text),
    };

    return cmocka_run_group_tests(tests, open_tokenizer, close_tokenizer);
}
