/* A completion that ends inside an accepted run, at each of its places: by EOS, a stop token, a stop text that begins in the token before, the
 * limit, and none of them before min_tokens. The target drafts for itself, so every draft is accepted, and rounds begin where they are expected
 * to: at each DRAFTS + 1 tokens. */
#include "common/base/log.h"
#include "tests/support/pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { DRAFTS = 6, PLACES = 2 * (DRAFTS + 1), MOST = PLACES + 6 };

static struct pair pair;
static struct options options;

/* What is said when nothing ends it: the tokens, and the bytes of text after each. */
struct story {
    int32_t token[MOST];
    size_t bytes[MOST + 1];
    char text[1024];
};

/* One request with the options as they are. */
static void complete(int with_drafter, struct pair_result *result)
{
    const struct request_terms terms = pair_terms(&pair, &options);
    struct request_list requests = {0};

    assert_int_equal(request_add_text(&requests, &terms, "The sea was", 11), STATUS_OK);
    assert_null(requests.request[0].error);
    pair_run(&pair, &requests, with_drafter, result, NULL);
    request_release(&requests);
}

/* Solo and speculatively: the same, this many tokens and bytes, in whole rounds. */
static void expect(int count, size_t bytes, enum finish_reason finish)
{
    struct pair_result solo, result;

    complete(0, &solo);
    complete(1, &result);
    assert_int_equal(solo.count, count);
    assert_int_equal(solo.length, bytes);
    assert_int_equal(solo.finish, finish);
    assert_int_equal(solo.rounds, count);
    assert_int_equal(result.count, count);
    assert_int_equal(result.length, bytes);
    assert_int_equal(result.finish, finish);
    assert_memory_equal(result.tokens, solo.tokens, (size_t)count * sizeof *solo.tokens);
    assert_memory_equal(result.text, solo.text, bytes);
    assert_int_equal(result.rounds, (count + DRAFTS) / (DRAFTS + 1));
    pair_release(&solo, 1);
    pair_release(&result, 1);
}

/* It goes on behind place `at`, and says the same solo and speculatively. The drafter holds back what the target holds back, so that all its
 * drafts are accepted. */
static void expect_to_go_on(int at, struct pair_result *solo)
{
    struct pair_result result;

    complete(0, solo);
    complete(1, &result);
    assert_true(solo->count > at + 1);
    assert_int_equal(result.count, solo->count);
    assert_int_equal(result.length, solo->length);
    assert_int_equal(result.finish, solo->finish);
    assert_memory_equal(result.tokens, solo->tokens, (size_t)solo->count * sizeof *solo->tokens);
    assert_int_equal(result.rounds, (result.count + DRAFTS) / (DRAFTS + 1));
    pair_release(&result, 1);
}

static void set_options(enum accept_mode accept, double temperature)
{
    options = (struct options){
        .request.sampling = sampling_default, .request.max_tokens = MOST, .rounds.draft_length = DRAFTS, .request.ignore_eos = 1};
    options.request.sampling.accept = accept;
    options.request.sampling.temperature = temperature;
    options.request.sampling.presence_penalty = options.request.sampling.frequency_penalty = 2; /* hardly a token comes twice */
}

static void tell(struct story *story)
{
    struct pair_result result;

    for (int i = MOST; i > 0; i--) {
        options.request.max_tokens = i;
        complete(0, &result);
        assert_int_equal(result.count, i);
        story->bytes[i] = result.length;
        if (i == MOST) {
            memcpy(story->token, result.tokens, sizeof story->token);
            snprintf(story->text, sizeof story->text, "%s", result.text);
        }
        pair_release(&result, 1);
    }
    story->bytes[0] = 0;
    options.request.max_tokens = MOST;
}

static int is_first(const struct story *story, int at)
{
    for (int i = 0; i < at; i++)
        if (story->token[i] == story->token[at])
            return 0;
    return 1;
}

static void try_tokens(const struct story *story, int at)
{
    struct config *config = &pair.target[0]->config;
    int32_t eos = config->eos[0];
    struct pair_result result;

    options.request.max_tokens = at + 1;
    expect(at + 1, story->bytes[at + 1], FINISH_LENGTH);
    options.request.max_tokens = MOST;
    options.request.stop_token = (struct option_ids){1, {story->token[at]}};
    expect(at + 1, story->bytes[at], FINISH_STOP); /* EOS and stop tokens have no text */
    options.request.min_tokens = at;
    expect(at + 1, story->bytes[at], FINISH_STOP);
    options.request.min_tokens = at + 1;
    expect_to_go_on(at, &result);
    assert_memory_equal(result.tokens, story->token, (size_t)at * sizeof *result.tokens);
    assert_true(result.tokens[at] != story->token[at]);
    pair_release(&result, 1);
    options.request.min_tokens = 0;
    options.request.stop_token.count = 0;
    options.request.ignore_eos = 0;
    config->eos[0] = story->token[at];
    expect(at + 1, story->bytes[at], FINISH_STOP);
    config->eos[0] = eos;
    options.request.ignore_eos = 1;
}

/* A stop text that begins in the last bytes of the token before `at` and ends with the first byte of its own; 0: there is none that is new. */
static int try_text(const struct story *story, int at)
{
    size_t first = story->bytes[at] > 2 ? story->bytes[at] - 2 : 0, end = story->bytes[at] + 1;
    struct pair_result result;
    char stop[16];

    snprintf(stop, sizeof stop, "%.*s", (int)(end - first), story->text + first);
    if (at == 0 || story->bytes[at + 1] == story->bytes[at] || strstr(story->text, stop) != story->text + first)
        return 0;
    options.request.stop = (struct option_texts){1, {stop}};
    expect(at + 1, first, FINISH_STOP);
    options.request.min_tokens = at;
    expect(at + 1, first, FINISH_STOP);
    options.request.min_tokens = at + 1; /* and where the text is met too early it is no end */
    expect_to_go_on(at, &result);
    assert_memory_equal(result.tokens, story->token, (size_t)(at + 1) * sizeof *result.tokens);
    pair_release(&result, 1);
    options.request.min_tokens = 0;
    options.request.stop.count = 0;
    return 1;
}

static void try_places(enum accept_mode accept, double temperature)
{
    int tokens = 0, texts = 0;
    struct story story;

    set_options(accept, temperature);
    tell(&story);
    for (int at = 0; at < PLACES; at++) {
        if (is_first(&story, at)) {
            try_tokens(&story, at);
            tokens++;
        }
        texts += try_text(&story, at);
    }
    assert_true(tokens >= PLACES - 1 && texts >= PLACES - 4); /* nearly all of them */
}

static void test_ends__each_place_of_an_accepted_run_greedy(void **state)
{
    (void)state;
    try_places(ACCEPT_REJECTION, 0.0);
}

static void test_ends__each_place_of_an_accepted_run_coupled(void **state)
{
    (void)state;
    try_places(ACCEPT_COUPLED, 0.9);
}

static int open_pair(void **state)
{
    (void)state;
    log_init("test_ends", LOG_ERROR);
    pair_open(&pair, 1, "target");
    return 0;
}

static int close_pair(void **state)
{
    (void)state;
    pair_close(&pair);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends__each_place_of_an_accepted_run_greedy),
        cmocka_unit_test(test_ends__each_place_of_an_accepted_run_coupled),
    };

    return cmocka_run_group_tests(tests, open_pair, close_pair);
}
