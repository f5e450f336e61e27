/* Several completions of one request: each is, to the bit, what a request alone with its seed comes to, under every rule, with drafts and without, in
 * as many slots as there are; the prompt is read once; the best are those of the highest mean log p; and what a line of output says of all that. */
#include "common/base/log.h"
#include "common/sample/rule.h"
#include "tests/support/pair.h"
#include "verifier/result/gathering.h"
#include "verifier/result/result.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SLOTS = 3, LINES = 3, MOST = 8, LENGTH = 3, TOKENS = 16 };

#define PROMPT "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want"

static struct pair pair;

/* How requests are run, and what came of it. */
struct way {
    int with_drafter, slots;
    enum accept_mode accept;
    double temperature;
    struct gathering gathering;
    char *line[LINES];
    int ended[LINES]; /* completions, of each line */
    int64_t accepted, read, reused;
};

static enum status keep(void *state, const struct request *request, const struct sequence *sequence)
{
    struct way *way = state;
    const struct sequence *all;

    way->ended[request->index]++;
    assert_int_equal(gathering_add(&way->gathering, sequence, &all), STATUS_OK);
    if (all == NULL)
        return STATUS_OK;
    assert_int_equal(way->ended[request->index], request_completions(request));
    assert_null(way->line[request->index]);
    assert_int_equal(result_line(request, all, 1, 0, &way->line[request->index]), STATUS_OK);
    gathering_drop(&way->gathering, request);
    return STATUS_OK;
}

/* lines: [count], at most LINES */
static void run(struct way *way, const char *const *lines, int count)
{
    const struct lead_watch watch = {.state = way, .end = keep};
    struct options options = {.request.sampling = sampling_default,
                              .request.max_tokens = TOKENS,
                              .request.n = 1,
                              .request.logprobs = -1,
                              .request.ignore_eos = 1,
                              .rounds.draft_length = LENGTH,
                              .rounds.max_sequences = SLOTS};
    const struct request_terms terms = pair_terms(&pair, &options);
    struct request_list requests = {0};
    struct engine_terms engine_terms = pair_engine(&pair, &requests, &watch, way->with_drafter);
    struct engine engine;

    options.request.sampling.accept = way->accept;
    options.request.sampling.temperature = way->temperature;
    for (int i = 0; i < count; i++) {
        assert_int_equal(request_add_line(&requests, &terms, lines[i], strlen(lines[i]), i + 1), STATUS_OK);
        assert_null(requests.request[i].error);
    }
    engine_terms.slots = way->slots;
    engine_terms.run_ahead = 1;
    assert_int_equal(engine_open(&engine, &engine_terms), STATUS_OK);
    assert_int_equal(engine_run(&engine), STATUS_OK);
    way->accepted = engine.lead.figures.accepted;
    way->read = engine.lead.reading.read;
    way->reused = engine.lead.reading.reused;
    engine_close(&engine);
    request_release(&requests);
    assert_null(way->gathering.first);
}

static json_t *parsed(const struct way *way, int line)
{
    json_t *object = json_loads(way->line[line], 0, NULL);

    assert_non_null(object);
    return object;
}

static void release(struct way *way)
{
    for (int i = 0; i < LINES; i++)
        free(way->line[i]);
}

/* Without what a line says of it as one of several. */
static void assert_is_choice(json_t *choice, json_t *alone, int index, uint64_t seed)
{
    static const char *const same[] = {"text", "tokens", "logprobs", "finish_reason"};

    assert_int_equal(json_integer_value(json_object_get(choice, "index")), index);
    assert_int_equal(json_integer_value(json_object_get(choice, "seed")), seed);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        json_t *here = json_object_get(choice, same[i]), *there = json_object_get(alone, same[i]);

        assert_true((here == NULL && there == NULL) || json_equal(here, there));
    }
}

/* The line with other ones around it, so that its number is not the first; with n, and then once with each seed. */
static void assert_choices_are_those_of_lines(struct way *way, const char *more, int n)
{
    char lines[LINES][512];
    const char *const given[LINES] = {lines[0], lines[1], lines[2]};
    uint64_t seed = 40;
    json_t *whole;
    int64_t generated = 0;

    snprintf(lines[0], sizeof lines[0], "{\"prompt\": \"Call me\", \"seed\": 9}");
    snprintf(lines[1], sizeof lines[1], "{\"prompt\": \"" PROMPT "\", \"n\": %d, \"seed\": %d%s}", n, (int)seed, more);
    snprintf(lines[2], sizeof lines[2], "{\"prompt\": \"The whale\", \"n\": 2, \"seed\": 40}");
    run(way, given, LINES);
    assert_true(!way->with_drafter || way->accepted > 0);
    whole = parsed(way, 1);
    assert_int_equal(json_array_size(json_object_get(whole, "choices")), n);
    assert_null(json_object_get(whole, "text"));
    for (int i = 0; i < n; i++) {
        struct way alone = *way;
        json_t *one;

        memset(alone.line, 0, sizeof alone.line);
        memset(alone.ended, 0, sizeof alone.ended);
        alone.slots = 1 + i % SLOTS;
        snprintf(lines[1], sizeof lines[1], "{\"prompt\": \"" PROMPT "\", \"seed\": %d%s}", (int)seed + i, more);
        run(&alone, given, 2);
        one = parsed(&alone, 1);
        assert_is_choice(json_array_get(json_object_get(whole, "choices"), (size_t)i), one, i, seed + (uint64_t)i);
        generated += json_integer_value(json_object_get(json_object_get(one, "usage"), "completion_tokens"));
        assert_int_equal(json_integer_value(json_object_get(json_object_get(one, "usage"), "prompt_tokens")),
                         json_integer_value(json_object_get(json_object_get(whole, "usage"), "prompt_tokens")));
        json_decref(one);
        release(&alone);
    }
    assert_int_equal(json_integer_value(json_object_get(json_object_get(whole, "usage"), "completion_tokens")), generated);
    json_decref(whole);
    release(way);
}

static void test_choices__are_what_requests_alone_with_their_seeds_come_to(void **state)
{
    static const struct {
        int with_drafter;
        enum accept_mode accept;
        double temperature;
        const char *more;
    } cases[] = {
        {0, ACCEPT_REJECTION, 0.9, ""},
        {1, ACCEPT_REJECTION, 0.9, ""},
        {1, ACCEPT_REJECTION, 0.7, ", \"top_k\": 40, \"repetition_penalty\": 1.2, \"logprobs\": 2"},
        {1, ACCEPT_REJECTION, 0.9, ", \"stop\": [\" a\", \"e\"], \"max_tokens\": 12"},
        {0, ACCEPT_COUPLED, 0.9, ""},
        {1, ACCEPT_COUPLED, 0.9, ", \"echo\": true, \"logprobs\": 1"},
        {1, ACCEPT_REJECTION, 0, ""},
        {1, ACCEPT_REJECTION, 0.9, ", \"max_tokens\": 1"},
        {0, ACCEPT_REJECTION, 0.9, ", \"echo\": true, \"logprobs\": 2, \"max_tokens\": 0"},
    };

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int n = 2; n <= 5; n += 3) { /* fewer than there are slots, and more */
            struct way way = {.with_drafter = cases[c].with_drafter, .slots = SLOTS, .accept = cases[c].accept, .temperature = cases[c].temperature};

            assert_choices_are_those_of_lines(&way, cases[c].more, n);
        }
}

static int count_different(json_t *choices)
{
    int different = 0;

    for (size_t i = 0; i < json_array_size(choices); i++) {
        json_t *tokens = json_object_get(json_array_get(choices, i), "tokens");
        size_t before = 0;

        while (before < i && !json_equal(tokens, json_object_get(json_array_get(choices, before), "tokens")))
            before++;
        different += before == i;
    }
    return different;
}

/* Seeds make texts differ, and at temperature 0 nothing does. */
static void test_choices__differ_where_texts_are_drawn(void **state)
{
    static const char *const line[] = {"{\"prompt\": \"" PROMPT "\", \"n\": 8, \"seed\": 5}"};
    json_t *whole;

    (void)state;
    for (int is_drawn = 0; is_drawn < 2; is_drawn++) {
        struct way way = {.slots = SLOTS, .temperature = is_drawn ? 1.0 : 0.0};

        run(&way, line, 1);
        whole = parsed(&way, 0);
        assert_int_equal(count_different(json_object_get(whole, "choices")), is_drawn ? 8 : 1);
        json_decref(whole);
        release(&way);
    }
}

/* Whatever the slots, and where log p of the prompt is asked for, too: the first completion is told of it, and it is that of all. */
static void test_choices__a_prompt_is_read_once(void **state)
{
    static const char *const lines[][1] = {{"{\"prompt\": \"" PROMPT "\", \"n\": 6, \"seed\": 5}"},
                                           {"{\"prompt\": \"" PROMPT "\", \"best_of\": 6, \"seed\": 5}"},
                                           {"{\"prompt\": \"" PROMPT "\", \"n\": 6, \"echo\": true, \"logprobs\": 1}"}};
    int32_t *tokens;
    size_t bad;
    int count;

    (void)state;
    assert_int_equal(tokenizer_encode(pair.tokenizer, PROMPT, strlen(PROMPT), TOKENIZER_ADD_SPECIAL | TOKENIZER_PARSE_SPECIAL, &tokens, &count, &bad),
                     STATUS_OK);
    free(tokens);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (int slots = 1; slots <= SLOTS; slots++) {
            struct way way = {.slots = slots, .with_drafter = 1, .temperature = 1};

            run(&way, lines[i], 1);
            assert_int_equal(way.read, count - 1);
            assert_int_equal(way.reused, 5 * (count - 1));
            release(&way);
        }
}

static double mean_of(json_t *choice)
{
    json_t *list = json_object_get(json_object_get(choice, "logprobs"), "token_logprobs");
    double sum = 0;

    for (size_t i = 0; i < json_array_size(list); i++)
        sum += json_real_value(json_array_get(list, i));
    return sum / (double)json_array_size(list);
}

/* Against all of them, of which log p is told. */
static void assert_best(int n, int with_drafter, const char *more)
{
    char all[512], best[512];
    const char *const all_lines[] = {all}, *const best_lines[] = {best};
    struct way way = {.slots = SLOTS, .with_drafter = with_drafter, .temperature = 1}, asked = way;
    json_t *whole, *chosen, *choices, *usage;
    double least = INFINITY;

    snprintf(all, sizeof all, "{\"prompt\": \"" PROMPT "\", \"seed\": 70, \"n\": %d, \"logprobs\": 0%s}", MOST, more);
    snprintf(best, sizeof best, "{\"prompt\": \"" PROMPT "\", \"seed\": 70, \"n\": %d, \"best_of\": %d%s}", n, MOST, more);
    run(&way, all_lines, 1);
    run(&asked, best_lines, 1);
    whole = parsed(&way, 0);
    chosen = parsed(&asked, 0);
    choices = json_object_get(whole, "choices");
    usage = json_object_get(chosen, "usage");
    assert_true(json_equal(usage, json_object_get(whole, "usage"))); /* what was generated counts, also where it is not in the result */
    for (int i = 0; i < n; i++) {
        json_t *here = n > 1 ? json_array_get(json_object_get(chosen, "choices"), (size_t)i) : chosen;
        int64_t at = json_integer_value(json_object_get(here, "seed")) - 70;
        double mean = json_real_value(json_object_get(here, "mean_logprob"));
        int above = 0;

        assert_in_range(at, 0, MOST - 1);
        assert_null(json_object_get(here, "logprobs"));
        assert_true(json_equal(json_object_get(here, "text"), json_object_get(json_array_get(choices, (size_t)at), "text")));
        assert_true(fabs(mean - mean_of(json_array_get(choices, (size_t)at))) < 1e-5);
        for (int k = 0; k < MOST; k++)
            above += mean_of(json_array_get(choices, (size_t)k)) > mean + 1e-5;
        assert_int_equal(above, i);
        assert_true(mean <= least);
        least = mean;
    }
    json_decref(whole);
    json_decref(chosen);
    release(&way);
    release(&asked);
}

static void test_choices__the_best_are_those_of_the_highest_mean_log_p(void **state)
{
    (void)state;
    for (int with_drafter = 0; with_drafter < 2; with_drafter++) {
        assert_best(1, with_drafter, "");
        assert_best(3, with_drafter, "");
        assert_best(7, with_drafter, ", \"stop\": [\"e\"]"); /* of different lengths */
    }
}

/* Of equal ones that of the smaller number; as many as are asked for are not chosen from. */
static void test_choices__equal_ones_stay_in_order(void **state)
{
    static const char *const lines[] = {"{\"prompt\": \"The\", \"n\": 3, \"best_of\": 5, \"seed\": 4}",
                                        "{\"prompt\": \"The\", \"n\": 5, \"best_of\": 5, \"seed\": 4}"};
    struct way way = {.slots = SLOTS, .temperature = 0};

    (void)state;
    run(&way, lines, 2);
    for (int line = 0; line < 2; line++) {
        json_t *whole = parsed(&way, line), *choices = json_object_get(whole, "choices");

        assert_int_equal(json_array_size(choices), line == 0 ? 3 : 5);
        for (size_t i = 0; i < json_array_size(choices); i++) {
            assert_int_equal(json_integer_value(json_object_get(json_array_get(choices, i), "seed")), 4 + i);
            assert_int_equal(json_object_get(json_array_get(choices, i), "mean_logprob") != NULL, line == 0);
        }
        json_decref(whole);
    }
    release(&way);
}

#define BODY(more) "{\"custom_id\": \"a\", \"method\": \"POST\", \"url\": \"/v1/completions\", \"body\": {\"prompt\": \"" PROMPT "\"" more "}}"

static void test_choices__openais_form_has_them_in_its_list(void **state)
{
    static const char *const lines[] = {BODY(", \"n\": 3, \"seed\": 8, \"logprobs\": 1"), BODY(", \"n\": 2, \"best_of\": 4, \"seed\": 8"),
                                        BODY(", \"best_of\": 4, \"seed\": 8, \"echo\": true")};
    static const int sizes[] = {3, 2, 1}, decoded[] = {3, 4, 4};
    struct way way = {.slots = SLOTS, .with_drafter = 1, .temperature = 1};

    (void)state;
    run(&way, lines, 3);
    for (int i = 0; i < 3; i++) {
        json_t *line = parsed(&way, i), *body = json_object_get(json_object_get(line, "response"), "body");
        json_t *choices = json_object_get(body, "choices"), *usage = json_object_get(body, "usage");

        assert_int_equal(json_array_size(choices), sizes[i]);
        for (int k = 0; k < sizes[i]; k++) {
            json_t *choice = json_array_get(choices, (size_t)k), *logprobs = json_object_get(choice, "logprobs");

            assert_int_equal(json_integer_value(json_object_get(choice, "index")), k);
            assert_int_equal(json_object_size(choice), 4); /* index, text, logprobs, finish_reason */
            assert_int_equal(json_is_null(logprobs), i > 0);
            assert_int_equal(strncmp(json_string_value(json_object_get(choice, "text")), PROMPT, strlen(PROMPT)) == 0, i == 2);
        }
        assert_int_equal(json_integer_value(json_object_get(usage, "completion_tokens")), decoded[i] * TOKENS);
        assert_int_equal(json_integer_value(json_object_get(usage, "total_tokens")),
                         json_integer_value(json_object_get(usage, "prompt_tokens")) + decoded[i] * TOKENS);
        json_decref(line);
    }
    release(&way);
}

/* A line that asks for one completion, in so many words or in none, has the result that it always had. */
static void test_choices__one_is_no_list(void **state)
{
    static const char *const lines[] = {"{\"prompt\": \"The\", \"id\": \"x\", \"n\": 1, \"best_of\": 1}", "{\"prompt\": \"The\", \"id\": \"x\"}"};
    struct way way = {.slots = SLOTS};
    char *first, *second;

    (void)state;
    run(&way, lines, 2);
    first = strstr(way.line[0], ",\"text\":");
    second = strstr(way.line[1], ",\"text\":");
    assert_true(first != NULL && second != NULL);
    assert_string_equal(first, second);
    assert_null(strstr(first, "seed"));
    release(&way);
}

/* Completions that have ended when a job does, and others of their request not. */
static void test_choices__what_is_not_complete_is_forgotten(void **state)
{
    int32_t tokens[2] = {1, 2};
    char text[] = "a";
    struct request requests[2] = {{.prompt_count = 1, .choices = 3, .logprobs = -1}, {.prompt_count = 1, .choices = 2, .logprobs = -1}};
    struct sequence sequence = {.tokens = tokens, .length = 2, .completion = {.text = text, .length = 1, .count = 1}};
    const struct sequence *all;
    struct gathering gathering = {0};

    (void)state;
    for (int r = 0; r < 2; r++) {
        sequence.request = &requests[r];
        sequence.choice = 1;
        assert_int_equal(gathering_add(&gathering, &sequence, &all), STATUS_OK);
        assert_null(all);
    }
    sequence.choice = 0;
    text[0] = 'b'; /* what is kept is a copy */
    assert_int_equal(gathering_add(&gathering, &sequence, &all), STATUS_OK);
    assert_non_null(all);
    assert_int_equal(all[0].completion.text[0], 'b');
    assert_int_equal(all[1].completion.text[0], 'a');
    assert_true(all[1].request == &requests[1] && all[1].choice == 1);
    gathering_drop(&gathering, &requests[1]);
    assert_non_null(gathering.first);
    gathering_release(&gathering);
    assert_null(gathering.first);
}

static int open_models(void **state)
{
    (void)state;
    log_init("test_choices", LOG_ERROR);
    pair_open(&pair, 1, "draft");
    return 0;
}

static int close_models(void **state)
{
    (void)state;
    pair_close(&pair);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choices__are_what_requests_alone_with_their_seeds_come_to),
        cmocka_unit_test(test_choices__differ_where_texts_are_drawn),
        cmocka_unit_test(test_choices__a_prompt_is_read_once),
        cmocka_unit_test(test_choices__the_best_are_those_of_the_highest_mean_log_p),
        cmocka_unit_test(test_choices__equal_ones_stay_in_order),
        cmocka_unit_test(test_choices__openais_form_has_them_in_its_list),
        cmocka_unit_test(test_choices__one_is_no_list),
        cmocka_unit_test(test_choices__what_is_not_complete_is_forgotten),
    };

    return cmocka_run_group_tests(tests, open_models, close_models);
}
