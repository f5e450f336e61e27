#include "tests/law/settings.h"

#include "common/base/rng.h"
#include "tests/law/naive_bias.h"
#include "tests/law/naive_law.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { LONGEST = 56, VOCAB = 2048, MOST_TOKENS = 128 };

/* The draws of one setting, one after the other. */
struct dice {
    struct rng_key key;
    uint32_t used;
};

static struct dice dice_of(uint64_t seed, int number, uint32_t part)
{
    return (struct dice){.key = {.seed = seed, .request = (uint32_t)number, .position = part}};
}

static uint32_t below(struct dice *dice, uint32_t limit)
{
    uint32_t words[4];

    rng_words(&dice->key, RNG_TREE, dice->used++, words);
    return words[0] % limit;
}

static int chance(struct dice *dice, uint32_t percent)
{
    return below(dice, 100) < percent;
}

static double one_of(struct dice *dice, int count, const double *values)
{
    return values[below(dice, (uint32_t)count)];
}
#define ONE_OF(dice, ...) one_of(dice, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[]){__VA_ARGS__})

static void set(json_t *line, const char *key, json_t *value)
{
    assert_int_equal(json_object_set_new(line, key, value), 0);
}

json_t *settings_probe(uint64_t seed, int number, enum settings_mode mode)
{
    static const char *const prompts[] = {"It is a truth universally acknowledged, that", "Call me", "The whale", "My lords, I",
                                          "Once upon a time there was", "Na\xc3\xafve caf\xc3\xa9: \xe2\x80\x9cNo", "1, 2, 3,", "\n\nCHAPTER"};
    struct dice dice = dice_of(seed, number, 0);
    int coupled = mode == SETTINGS_EQUAL && chance(&dice, 60);
    json_t *line = json_object();

    set(line, "prompt", json_string(prompts[below(&dice, 8)]));
    set(line, "max_tokens", json_integer(1 + below(&dice, LONGEST)));
    set(line, "draft_length", json_integer(1 + below(&dice, 8)));
    set(line, "seed", json_integer(below(&dice, 1 << 30)));
    set(line, "accept", json_string(coupled ? "coupled" : "rejection"));
    set(line, "temperature", json_real(mode == SETTINGS_EQUAL && !coupled ? 0.0 : ONE_OF(&dice, 0.3, 0.7, 1.0, 1.0, 1.5, 2.5)));
    set(line, "top_k", json_integer((json_int_t)ONE_OF(&dice, 0, 0, 1, 7, 40, 300, 2000)));
    set(line, "top_p", json_real(ONE_OF(&dice, 1.0, 1.0, 0.3, 0.8, 0.95, 0.999)));
    set(line, "min_p", json_real(ONE_OF(&dice, 0.0, 0.0, 0.01, 0.2)));
    set(line, "repetition_penalty", json_real(ONE_OF(&dice, 1.0, 1.0, 1.1, 1.5, 0.8)));
    set(line, "presence_penalty", json_real(ONE_OF(&dice, 0.0, 0.0, 0.6, 2.0, -0.5)));
    set(line, "frequency_penalty", json_real(ONE_OF(&dice, 0.0, 0.0, 0.4, 2.0, -0.3)));
    return line;
}

static int32_t said(struct dice *dice, const struct pair_result *probe)
{
    return probe->count > 0 && chance(dice, 70) ? probe->tokens[below(dice, (uint32_t)probe->count)] : (int32_t)below(dice, VOCAB);
}

static int is_inside(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

/* Some consecutive characters of the text, which mostly span tokens; NULL where there are none. */
static json_t *cut(struct dice *dice, const struct pair_result *probe)
{
    size_t from, to;

    if (probe->length < 2 || memchr(probe->text, 0, probe->length) != NULL)
        return NULL;
    from = below(dice, (uint32_t)probe->length - 1);
    to = from + 1 + below(dice, 9);
    to = to < probe->length ? to : probe->length;
    while (from > 0 && is_inside((unsigned char)probe->text[from]))
        from--;
    while (to < probe->length && is_inside((unsigned char)probe->text[to]))
        to++;
    return json_stringn(probe->text + from, to - from);
}

static void set_stops(json_t *line, struct dice *dice, const struct pair_result *probe)
{
    json_t *texts = json_array(), *tokens = json_array(), *text;

    for (uint32_t i = chance(dice, 50) ? 1 + below(dice, 2) : 0; i > 0; i--)
        if ((text = cut(dice, probe)) != NULL)
            json_array_append_new(texts, text);
    for (uint32_t i = chance(dice, 30) ? 1 + below(dice, 3) : 0; i > 0; i--)
        json_array_append_new(tokens, json_integer(said(dice, probe)));
    set(line, "stop", texts);
    set(line, "stop_token_ids", tokens);
}

static void set_bad_words(json_t *line, struct dice *dice, const struct pair_result *probe)
{
    json_t *words = json_array(), *text;

    for (uint32_t i = chance(dice, 60) ? 1 + below(dice, 5) : 0; i > 0; i--) {
        if (chance(dice, 25) && (text = cut(dice, probe)) != NULL) {
            json_array_append_new(words, text);
            continue;
        }
        json_t *word = json_array();
        int length = 1 + (int)below(dice, 3), from = probe->count > 3 ? (int)below(dice, (uint32_t)probe->count - 2) : -1;

        for (int j = 0; j < length; j++)
            json_array_append_new(word, json_integer(from >= 0 ? probe->tokens[from + j] : (json_int_t)below(dice, VOCAB)));
        json_array_append_new(words, word);
    }
    set(line, "bad_words", words);
}

static void set_biases(json_t *line, struct dice *dice, const struct pair_result *probe)
{
    json_t *biases = json_object();
    char key[16];

    for (uint32_t i = chance(dice, 50) ? 1 + below(dice, 8) : 0; i > 0; i--) {
        snprintf(key, sizeof key, "%d", said(dice, probe));
        set(biases, key, json_real(chance(dice, 20) ? -100.0 : chance(dice, 3) ? 100.0 : (double)below(dice, 1601) / 100 - 8));
    }
    if (chance(dice, 40)) /* EOS, which else hardly comes */
        set(biases, "0", json_real(ONE_OF(dice, 5, 8, 11, 14)));
    set(line, "logit_bias", biases);
}

json_t *settings_whole(uint64_t seed, int number, enum settings_mode mode, const struct pair_result *probe)
{
    struct dice dice = dice_of(seed, number, 1);
    json_t *line = settings_probe(seed, number, mode);
    json_int_t most = json_integer_value(json_object_get(line, "max_tokens"));

    set_stops(line, &dice, probe);
    set_bad_words(line, &dice, probe);
    set_biases(line, &dice, probe);
    set(line, "min_tokens", json_integer(chance(&dice, 40) ? below(&dice, (uint32_t)most + 1) : 0));
    set(line, "ignore_eos", json_boolean(chance(&dice, 20)));
    return line;
}

void settings_read(struct request_list *requests, const struct request_terms *terms, json_t *const *lines, int count)
{
    char path[] = "/tmp/test_settings.XXXXXX";
    int descriptor = mkstemp(path);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;

    assert_non_null(file);
    for (int i = 0; i < count; i++) {
        assert_int_equal(json_dumpf(lines[i], file, JSON_COMPACT), 0);
        fputc('\n', file);
    }
    assert_int_equal(fclose(file), 0);
    *requests = (struct request_list){0};
    assert_int_equal(request_read(requests, terms, path), STATUS_OK);
    unlink(path);
    assert_int_equal(requests->count, count);
    for (int i = 0; i < count; i++)
        if (requests->request[i].error != NULL)
            fail_msg("setting %d is refused: %s", i, requests->request[i].error);
}

static int contains(const int32_t *tokens, int count, int32_t token)
{
    for (int i = 0; i < count; i++)
        if (tokens[i] == token)
            return 1;
    return 0;
}

/* The request's block as the lead makes it. */
static void ask(const struct request *request, const int32_t *eos, int eos_count, struct bias *bias)
{
    *bias = *request->bias;
    bias->min_tokens = request->min_tokens;
    for (int i = 0; i < request->stop_tokens; i++)
        bias->ender[bias->enders++] = request->stop_token[i];
    for (int i = 0; i < eos_count && !request->ignore_eos; i++)
        bias->ender[bias->enders++] = eos[i];
}

/* The token of a row, by the definitions; -1 where top-p or min-p cut within rounding. */
static int32_t choose(const struct request *request, const struct bias *bias, const float *logits, const int32_t *history, int count)
{
    const struct rng_key key = {.seed = request->sampling.seed, .request = request->index, .position = (uint32_t)count};
    static float processed[VOCAB];
    static double p[VOCAB];
    struct sampling rest = sampling_default; /* what naive_bias_process has not done yet */
    float best = -INFINITY;
    int32_t token = -1;

    naive_bias_process(&request->sampling, bias, logits, VOCAB, history, count, request->prompt_count, processed);
    rest.temperature = request->sampling.temperature > 0;
    rest.top_k = request->sampling.top_k;
    rest.top_p = request->sampling.top_p;
    rest.min_p = request->sampling.min_p;
    if (naive_law(&rest, processed, VOCAB, history, 0, 0, p) < 1e-6)
        return -1;
    for (int32_t v = 0; v < VOCAB; v++) {
        float score = processed[v] + (rest.temperature > 0 ? rng_gumbel(&key, RNG_NOISE, (uint32_t)v) : 0);

        if (p[v] > 0 && score > best) {
            best = score;
            token = v;
        }
    }
    return token;
}

int settings_assert_defined(const struct request *request, const struct pair_result *result, struct model_rig *target)
{
    const struct config *config = &target->model->config;
    float *logits = calloc((size_t)MOST_TOKENS * VOCAB, sizeof *logits);
    int32_t all[MOST_TOKENS];
    struct bias bias;
    int looked_at = 0, first = request->prompt_count;

    assert_non_null(logits);
    assert_int_equal(target->model->vocab, VOCAB);
    assert_true(first + result->count <= MOST_TOKENS);
    ask(request, config->eos, config->eos_count, &bias);
    memcpy(all, request->tokens, (size_t)first * sizeof *all);
    memcpy(all + first, result->tokens, (size_t)result->count * sizeof *all);
    model_rig_feed(target, 0, all, first + result->count - 1, 16, logits);
    for (int i = first; i < first + result->count; i++) {
        int32_t token = choose(request, &bias, logits + (size_t)(i - 1) * VOCAB, all, i);

        if (token >= 0 && token != all[i])
            fail_msg("request %u, token %d: got %d, the definitions give %d", request->index, i - first, all[i], token);
        looked_at += token >= 0;
    }
    free(logits);
    return looked_at;
}

void settings_assert_kept(const struct request *request, const struct pair_result *result, const int32_t *eos, int eos_count)
{
    struct bias bias;
    int32_t all[MOST_TOKENS];
    int ended = 0;

    assert_int_equal(result->finish == FINISH_STOP || result->finish == FINISH_LENGTH, 1);
    assert_in_range(result->count, 1, request->max_tokens);
    ask(request, eos, eos_count, &bias);
    memcpy(all, request->tokens, (size_t)request->prompt_count * sizeof *all);
    for (int i = 0; i < result->count; i++) {
        int length = request->prompt_count + i;

        assert_false(naive_bias_bans(&bias, all, length, request->prompt_count, result->tokens[i]));
        all[length] = result->tokens[i];
        ended = contains(bias.ender, bias.enders, result->tokens[i]);
        assert_true(!ended || i == result->count - 1);
    }
    if (result->finish == FINISH_LENGTH)
        assert_int_equal(result->count, request->max_tokens);
    else
        assert_true(result->count > request->min_tokens);
    if (result->finish == FINISH_STOP && !ended)
        assert_true(request->stops > 0);
    for (int i = 0; i < request->stops && request->min_tokens == 0; i++)
        assert_null(memmem(result->text, result->length, request->stop[i], strlen(request->stop[i])));
}
