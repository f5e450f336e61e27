/* Log probabilities of committed tokens: those of the target's own logits, whatever rule took the tokens, and of whatever drafts; those of a prompt
 * that is echoed, however it is read; and how they are written. */
#include "common/base/log.h"
#include "tests/support/model_rig.h"
#include "tests/support/pair.h"
#include "verifier/result/result.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SLOTS = 2, PROMPTS = 4, LENGTH = 3, TOKENS = 20, OUTPUTS = SLOTS * (OPTIONS_CHAIN + 1), TOP = 3, TEXT = 256 };

static struct pair pair;

/* What came of one request. */
struct told {
    int first; /* token of which log p is known */
    int count; /* so many from there on */
    int32_t tokens[TEXT];
    struct logprob logprobs[TEXT]; /* [count] */
    char *line;
};

static enum status keep(void *state, const struct request *request, const struct sequence *sequence)
{
    struct told *told = (struct told *)state + request->index;

    assert_in_range(sequence->length, 1, TEXT);
    told->first = request->prompt_count - request->scores;
    told->count = sequence->length - told->first;
    memcpy(told->tokens, sequence->tokens, (size_t)sequence->length * sizeof *told->tokens);
    if (sequence->logprobs != NULL)
        memcpy(told->logprobs, sequence->logprobs, (size_t)told->count * sizeof *told->logprobs);
    assert_int_equal(result_line(request, sequence, 1, 0, &told->line), STATUS_OK);
    return STATUS_OK;
}

/* How requests are run. */
struct way {
    int with_drafter, chunk;
    int64_t accepted, read, reused; /* what came of it: drafts, tokens of prompts */
};

static void run_requests(const struct request_list *requests, struct way *way, struct told *told)
{
    const struct lead_watch watch = {.state = told, .end = keep};
    struct engine_terms engine_terms = pair_engine(&pair, requests, &watch, way->with_drafter);
    struct engine engine;

    memset(told, 0, PROMPTS * sizeof *told);
    engine_terms.slots = SLOTS;
    engine_terms.outputs = OUTPUTS;
    engine_terms.run_ahead = 1;
    engine_terms.prefill_chunk = way->chunk;
    assert_int_equal(engine_open(&engine, &engine_terms), STATUS_OK);
    assert_int_equal(engine_run(&engine), STATUS_OK);
    way->accepted = engine.lead.figures.accepted;
    way->read = engine.lead.reading.read;
    way->reused = engine.lead.reading.reused;
    engine_close(&engine);
}

static void run(enum accept_mode accept, double temperature, int logprobs, int with_drafter, struct told *told)
{
    static const char *const prompts[PROMPTS] = {"It is a truth universally acknowledged", "Call me", "The whale", "My lords, I"};
    struct options options = {.request.sampling = sampling_default,
                              .request.max_tokens = TOKENS,
                              .request.logprobs = logprobs,
                              .request.ignore_eos = 1,
                              .rounds.draft_length = LENGTH,
                              .rounds.max_sequences = SLOTS};
    struct request_list requests = {0};
    struct way way = {.with_drafter = with_drafter};

    options.request.sampling.accept = accept;
    options.request.sampling.temperature = temperature;
    options.request.sampling.repetition_penalty = 1.2;
    const struct request_terms terms = pair_terms(&pair, &options);
    for (int i = 0; i < PROMPTS; i++)
        assert_int_equal(request_add_text(&requests, &terms, prompts[i], strlen(prompts[i])), STATUS_OK);
    run_requests(&requests, &way, told);
    if (with_drafter)
        assert_true(way.accepted > 0);
    request_release(&requests);
}

static void release(struct told *told)
{
    for (int i = 0; i < PROMPTS; i++)
        free(told[i].line);
}

/* By the logits of the whole text at once, in double. */
static void assert_is_the_models(struct model_rig *rig, const struct told *told)
{
    int all = told->first + told->count, vocab = rig->model->vocab;
    float *logits = calloc((size_t)all * (size_t)vocab, sizeof *logits);

    assert_non_null(logits);
    model_rig_feed(rig, 0, told->tokens, all, MODEL_RIG_ROWS, logits);
    for (int i = 0; i < told->count; i++) {
        const float *row = logits + (size_t)(told->first + i - 1) * (size_t)vocab;
        const struct logprob *found = &told->logprobs[i];
        double most, sum = 0;
        float largest = row[0];
        int above = 0;

        for (int k = 1; k < vocab; k++)
            largest = row[k] > largest ? row[k] : largest;
        most = (double)largest;
        for (int k = 0; k < vocab; k++)
            sum += exp((double)row[k] - most);
        assert_true(fabs((double)found->logprob - ((double)row[told->tokens[told->first + i]] - most - log(fmax(sum, 1)))) < 1e-6);
        assert_int_equal(found->count, TOP);
        for (int k = 0; k < TOP; k++)
            assert_true(fabs((double)found->top[k].score - ((double)row[found->top[k].token] - most - log(fmax(sum, 1)))) < 1e-6);
        for (int k = 0; k < vocab; k++)
            above += row[k] > row[found->top[TOP - 1].token];
        assert_true(above < TOP && found->top[0].score >= found->top[1].score && found->top[1].score >= found->top[2].score);
    }
    free(logits);
}

static void test_logprobs__are_the_targets_under_every_rule(void **state)
{
    static const struct {
        enum accept_mode accept;
        double temperature;
        int repeats; /* with drafts and without the tokens are the same */
    } cases[] = {{ACCEPT_REJECTION, 0, 1}, {ACCEPT_COUPLED, 0.8, 1},   {ACCEPT_REJECTION, 0.8, 0}, {ACCEPT_WALK, 0.8, 0},     {ACCEPT_BLOCK, 0.8, 0},
                 {ACCEPT_CLASSIC, 0.8, 0}, {ACCEPT_MULTISTEP, 0.8, 0}, {ACCEPT_TRAVERSAL, 0.8, 0}, {ACCEPT_THRESHOLD, 0.8, 0}, {ACCEPT_TYPICAL, 0.8, 0}};
    struct model_rig rig;

    (void)state;
    model_rig_open(&rig, TANDEM_SOURCE_DIR "/launch/demo/target", NULL, 1, NULL);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct told solo[PROMPTS], drafted[PROMPTS];

        run(cases[c].accept, cases[c].temperature, TOP, 0, solo);
        run(cases[c].accept, cases[c].temperature, TOP, 1, drafted);
        for (int i = 0; i < PROMPTS; i++) {
            assert_int_equal(solo[i].count, TOKENS);
            assert_is_the_models(&rig, &solo[i]);
            assert_is_the_models(&rig, &drafted[i]);
            if (cases[c].repeats)
                assert_memory_equal(drafted[i].logprobs, solo[i].logprobs, sizeof solo[i].logprobs);
        }
        release(solo);
        release(drafted);
    }
    model_rig_close(&rig);
}

#define LONG                                                                                                                                         \
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife. However little "          \
    "known the feelings or views of such a man may be on his first entering a neighbourhood, this truth is so well fixed in the minds of "

/* The second begins as the first does, and asks nothing of its prompt; the third as both. Of the last nothing is read. */
static void add_echoes(struct request_list *requests)
{
    static const char *const lines[PROMPTS] = {"{\"prompt\": \"" LONG
                                               "the surrounding families\", \"echo\": true, \"logprobs\": 3, \"max_tokens\": 0}",
                                               "{\"prompt\": \"" LONG "men\", \"logprobs\": 3, \"max_tokens\": 20}",
                                               "{\"prompt\": \"" LONG "all\", \"echo\": true, \"logprobs\": 3, \"max_tokens\": 20}",
                                               "{\"prompt\": \"The\", \"echo\": true, \"logprobs\": 3, \"max_tokens\": 0}"};
    struct options options = {
        .request.sampling = sampling_default, .request.ignore_eos = 1, .rounds.draft_length = LENGTH, .rounds.max_sequences = SLOTS};
    const struct request_terms terms = pair_terms(&pair, &options);

    options.request.sampling.repetition_penalty = 1.2;
    for (int i = 0; i < PROMPTS; i++) {
        assert_int_equal(request_add_line(requests, &terms, lines[i], strlen(lines[i]), i + 1), STATUS_OK);
        assert_null(requests->request[i].error);
    }
}

/* More rows ask for logits than a step has room for, parts of any size are read, and a drafter changes nothing. */
static void test_logprobs__of_a_prompt_are_the_targets_however_it_is_read(void **state)
{
    struct way ways[] = {{.chunk = 0}, {.chunk = 1}, {.chunk = 7}, {.chunk = 64}, {.with_drafter = 1}, {.with_drafter = 1, .chunk = 5}};
    static struct told first[PROMPTS], told[PROMPTS];
    struct request_list requests = {0};
    struct model_rig rig;

    (void)state;
    add_echoes(&requests);
    assert_true(requests.request[0].scores > (int)OUTPUTS);
    model_rig_open(&rig, TANDEM_SOURCE_DIR "/launch/demo/target", NULL, 1, NULL);
    run_requests(&requests, &(struct way){0}, first);
    for (int i = 0; i < PROMPTS; i++)
        assert_is_the_models(&rig, &first[i]);
    assert_int_equal(first[0].count, requests.request[0].prompt_count - 1);
    assert_int_equal(first[1].count, TOKENS);
    assert_int_equal(first[2].count, requests.request[2].prompt_count - 1 + TOKENS);
    assert_int_equal(first[3].count, 0);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        run_requests(&requests, &ways[w], told);
        for (int i = 0; i < PROMPTS; i++) {
            assert_memory_equal(told[i].tokens, first[i].tokens, sizeof first[i].tokens);
            assert_memory_equal(told[i].logprobs, first[i].logprobs, sizeof first[i].logprobs);
            assert_string_equal(told[i].line, first[i].line);
        }
        release(told);
    }
    release(first);
    request_release(&requests);
    model_rig_close(&rig);
}

/* The second prompt takes over what the first has in common with it; who is asked about every token reads all of them. */
static void test_logprobs__a_prompt_that_is_scored_reuses_nothing(void **state)
{
    static struct told told[PROMPTS];
    struct request_list requests = {0};
    struct way way = {0};
    int64_t lengths = 0;
    int common = 0;

    (void)state;
    add_echoes(&requests);
    for (int i = 0; i < 3; i++)
        lengths += requests.request[i].prompt_count - 1;
    while (requests.request[0].tokens[common] == requests.request[1].tokens[common])
        common++;
    run_requests(&requests, &way, told);
    assert_int_equal(way.reused, common);
    assert_int_equal(way.read, lengths - common);
    release(told);
    request_release(&requests);
}

static json_t *read_line(const struct told *told)
{
    json_t *line = json_loads(told->line, 0, NULL);

    assert_non_null(line);
    return line;
}

static void test_logprobs__are_written_where_they_are_asked_for(void **state)
{
    struct told told[PROMPTS];
    json_t *line, *logprobs;

    (void)state;
    run(ACCEPT_REJECTION, 0, -1, 1, told);
    line = read_line(&told[0]);
    assert_null(json_object_get(line, "logprobs"));
    json_decref(line);
    release(told);
    run(ACCEPT_REJECTION, 0, 0, 1, told);
    line = read_line(&told[0]);
    logprobs = json_object_get(line, "logprobs");
    assert_int_equal(json_array_size(json_object_get(logprobs, "token_logprobs")), TOKENS);
    assert_null(json_object_get(logprobs, "top_logprobs"));
    json_decref(line);
    release(told);
    run(ACCEPT_REJECTION, 0, TOP, 1, told);
    line = read_line(&told[0]);
    logprobs = json_object_get(line, "logprobs");
    for (size_t i = 0; i < TOKENS; i++) {
        json_t *tops = json_array_get(json_object_get(logprobs, "top_logprobs"), i);

        assert_true((float)json_real_value(json_array_get(json_object_get(logprobs, "token_logprobs"), i)) == told[0].logprobs[i].logprob);
        assert_in_range(json_object_size(tops), 1, TOP);
    }
    json_decref(line);
    release(told);
}

/* The first token is after nothing. Offsets are those of the text. */
static void test_logprobs__an_echoed_prompt_comes_first(void **state)
{
    int32_t tokens[] = {tokenizer_find(pair.tokenizer, "<|endoftext|>"), tokenizer_find(pair.tokenizer, " the"),
                        tokenizer_find(pair.tokenizer, " of"), tokenizer_find(pair.tokenizer, ",")};
    struct logprob logprobs[3] = {{-0.5f, 1, {{-0.25f, tokens[3]}}}, {-1, 1, {{-1, tokens[2]}}}, {-1.5f, 1, {{-0.125f, tokens[1]}}}};
    char prompt[] = " the of", text[] = ",", *line;
    struct request request = {.prompt_count = 3, .logprobs = 1, .echo = 1, .prompt = prompt, .prompt_length = 7, .scores = 2};
    const struct sequence sequence = {.request = &request,
                                      .tokens = tokens,
                                      .length = 4,
                                      .scores = 2,
                                      .logprobs = logprobs,
                                      .completion = {.tokenizer = pair.tokenizer, .text = text, .length = 1, .count = 1, .finish = FINISH_LENGTH}};

    (void)state;
    assert_int_equal(result_line(&request, &sequence, 1, 0, &line), STATUS_OK);
    assert_non_null(strstr(line, "\"text\":\" the of,\",\"tokens\":["));
    assert_non_null(strstr(line, "\"logprobs\":{\"token_logprobs\":[null,-0.5,-1.0,-1.5],\"top_logprobs\":[null,{\",\":-0.25},{\" of\":-1.0},"
                                 "{\" the\":-0.125}]}"));
    assert_non_null(strstr(line, "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}"));
    free(line);
    request.openai = 1;
    assert_int_equal(result_line(&request, &sequence, 1, 0, &line), STATUS_OK);
    assert_non_null(strstr(line, "\"text\":\" the of,\",\"logprobs\":{\"tokens\":[\"<|endoftext|>\",\" the\",\" of\",\",\"],\"token_logprobs\":"
                                 "[null,-0.5,-1.0,-1.5],"));
    assert_non_null(strstr(line, "\"text_offset\":[0,0,4,7]}"));
    free(line);
}

/* Pieces of a character, a special token, and no probability at all. */
static void test_logprobs__openais_forms_name_any_token(void **state)
{
    int32_t tokens[8] = {0}, special = tokenizer_find(pair.tokenizer, "<|endoftext|>");
    struct logprob logprobs[3] = {{-0.5f, 0, {{0, 0}}}, {-INFINITY, 0, {{0, 0}}}, {-1.5f, 0, {{0, 0}}}};
    struct request request = {.openai = 1, .prompt_count = 1, .logprobs = 0};
    char text[] = "x", *line;
    struct sequence sequence = {.request = &request,
                                .tokens = tokens,
                                .length = 4,
                                .logprobs = logprobs,
                                .completion = {.tokenizer = pair.tokenizer, .text = text, .length = 1, .count = 3, .finish = FINISH_STOP}};
    int32_t *euro;
    size_t bad;
    int count;

    (void)state;
    assert_int_equal(tokenizer_encode(pair.tokenizer, "\xe2\x82\xac", 3, 0, &euro, &count, &bad), STATUS_OK);
    assert_true(count > 1); /* the embedded tokenizer has no euro, so its bytes are tokens */
    tokens[1] = tokenizer_find(pair.tokenizer, " the");
    tokens[2] = euro[0];
    tokens[3] = special >= 0 ? special : tokens[1];
    assert_int_equal(result_line(&request, &sequence, 1, 0, &line), STATUS_OK);
    assert_non_null(strstr(line, "\"logprobs\":{\"tokens\":[\" the\",\"bytes:\\\\xe2"));
    assert_non_null(strstr(line, "\"token_logprobs\":[-0.5,-9999.0,-1.5],\"top_logprobs\":null,\"text_offset\":[0,4,"));
    free(line);
    request.chat = 1;
    assert_int_equal(result_line(&request, &sequence, 1, 0, &line), STATUS_OK);
    assert_non_null(strstr(line, "\"logprobs\":{\"content\":[{\"token\":\" the\",\"logprob\":-0.5,\"bytes\":[32,116,104,101],\"top_logprobs\":[]},"));
    assert_non_null(strstr(line, "],\"refusal\":null}"));
    free(line);
    free(euro);
}

static int open_models(void **state)
{
    (void)state;
    log_init("test_logprobs", LOG_ERROR);
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
        cmocka_unit_test(test_logprobs__are_the_targets_under_every_rule),
        cmocka_unit_test(test_logprobs__of_a_prompt_are_the_targets_however_it_is_read),
        cmocka_unit_test(test_logprobs__a_prompt_that_is_scored_reuses_nothing),
        cmocka_unit_test(test_logprobs__are_written_where_they_are_asked_for),
        cmocka_unit_test(test_logprobs__an_echoed_prompt_comes_first),
        cmocka_unit_test(test_logprobs__openais_forms_name_any_token),
    };

    return cmocka_run_group_tests(tests, open_models, close_models);
}
