#include "verifier/result/result.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/file/json_text.h"
#include "common/sample/rule.h"
#include "verifier/result/gathering.h"
#include "verifier/result/result_logprobs.h"
#include "verifier/result/result_openai.h"
#include "verifier/result/result_text.h"
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 9, LARGEST = 16 * REQUEST_VALUES /* values of a result: each of REQUEST_NUMBERS may be a token with its bytes */ };

static double ms(int64_t ns)
{
    return (double)(ns / 1000) / 1000.0;
}

static json_t *tokens_of(const struct sequence *sequence)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = result_first(sequence); i < sequence->length; i++)
        failed |= json_array_append_new(array, json_integer(sequence->tokens[i]));
    return json_text_whole(array, failed);
}

static json_t *speculation_of(const struct sequence *sequence)
{
    double rounds = (double)sequence->rounds, tested = (double)sequence->tested, accepted = (double)sequence->accepted;

    return json_pack("{s:I, s:I, s:I, s:f, s:f}", "rounds", (json_int_t)sequence->rounds, "drafted", (json_int_t)sequence->drafted,
                     "accepted", (json_int_t)sequence->accepted, "alpha", tested > 0 ? accepted / tested : 0.0,
                     "mean_accepted_length", rounds > 0 ? (double)sequence->completion.count / rounds : 0.0);
}

static json_t *timing_of(const struct sequence *sequence)
{
    int count = sequence->completion.count;

    return json_pack("{s:f, s:f, s:f}", "ttft_ms", ms(sequence->first_ns - sequence->started_ns), "tpot_ms",
                     count > 1 ? ms(sequence->ended_ns - sequence->first_ns) / (count - 1) : 0.0, "e2e_ms",
                     ms(sequence->ended_ns - sequence->started_ns));
}

/* What a completion is. */
static int add_text(json_t *object, const struct sequence *sequence)
{
    const struct request *request = sequence->request;
    int failed = json_object_set_new(object, "text", result_text(sequence));

    failed |= json_object_set_new(object, "tokens", tokens_of(sequence));
    if (sequence->logprobs != NULL)
        failed |= json_object_set_new(object, "logprobs", result_logprobs(sequence));
    failed |= json_object_set_new(object, "finish_reason", json_string(completion_reason(sequence->completion.finish)));
    if (request_completions(request) > 1)
        failed |= json_object_set_new(object, "seed", json_text_u64(sequence->sampling.seed));
    if (request_chooses(request))
        failed |= json_object_set_new(object, "mean_logprob", result_number(gathering_rank(sequence)));
    return failed;
}

/* How it was made. */
static int add_work(json_t *object, const struct sequence *sequence)
{
    return json_object_set_new(object, "speculation", speculation_of(sequence)) | json_object_set_new(object, "timing", timing_of(sequence));
}

static json_t *choices_of(const struct request *request, const struct sequence *sequences, int plain)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = 0; i < request->choices; i++) {
        json_t *choice = json_pack("{s:i}", "index", i);

        failed |= add_text(choice, &sequences[i]);
        if (!plain)
            failed |= add_work(choice, &sequences[i]);
        failed |= json_array_append_new(array, choice);
    }
    return json_text_whole(array, failed);
}

/* id: taken over */
static json_t *result_of(json_t *id, const struct request *request, const struct sequence *sequences, int plain)
{
    json_t *result = json_object();
    int failed = json_object_set_new(result, "id", id), is_list = sequences != NULL && request->choices > 1;

    failed |= json_object_set_new(result, "index", json_integer(request->index));

    if (sequences == NULL) {
        failed |= json_object_set_new(result, "text", json_string(""));
        failed |= json_object_set_new(result, "tokens", json_array());
        failed |= json_object_set_new(result, "finish_reason", json_string("error"));
        failed |= json_object_set_new(result, "error", json_text_string(request->error));
    } else if (is_list) {
        failed |= json_object_set_new(result, "choices", choices_of(request, sequences, plain));
    } else {
        failed |= add_text(result, sequences);
    }
    failed |= json_object_set_new(result, "usage",
                                  json_pack("{s:i, s:i}", "prompt_tokens", sequences == NULL ? 0 : request->prompt_count, "completion_tokens",
                                            result_tokens(request, sequences)));
    if (sequences != NULL && !is_list && !plain)
        failed |= add_work(result, sequences);
    return json_text_whole(result, failed);
}

/* The id as it was given: any JSON. */
static enum status id_of(const struct request *request, json_t **id)
{
    static const struct json_text_limits limits = {.depth = REQUEST_DEPTH, .values = REQUEST_VALUES};
    char fault[JSON_TEXT_FAULT];

    if (request->id != NULL)
        return json_text_read(request->id, strlen(request->id), JSON_DECODE_ANY | JSON_ALLOW_NUL, &limits, id, fault);
    *id = request->openai ? json_null() : json_integer(request->index);
    return STATUS_OK;
}

/* How many digits numbers of a line have: more than usual where the id has a number that would be another one. id: borrowed, or NULL */
static size_t digits_for(const json_t *id)
{
    static const int digits[] = {DIGITS, 15, 16};

    if (!json_is_real(id) && !json_is_array(id) && !json_is_object(id))
        return JSON_REAL_PRECISION(DIGITS);
    for (size_t i = 0; i < sizeof digits / sizeof *digits; i++) {
        char *text = json_text_write(id, JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits[i]));
        json_t *again = text != NULL ? json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;
        int is_same = again != NULL && json_equal(id, again);

        json_decref(again);
        free(text);
        if (is_same)
            return JSON_REAL_PRECISION(digits[i]);
    }
    return JSON_REAL_PRECISION(17); /* which tells any two doubles apart */
}

/* The fields of a request that is wrong are unchecked. */
static int is_lossless(const struct request *request, enum result_verdicts verdicts)
{
    if (verdicts != RESULT_BY_RULE)
        return verdicts == RESULT_UNDRAFTED;
    return request->error != NULL || !request_drafts(request) || rule_of(&request->sampling)->lossless;
}

enum status result_line(const struct request *request, const struct sequence *sequences, int plain, enum result_verdicts verdicts, char **line)
{
    json_t *id = NULL, *result;
    size_t digits;

    TRY(id_of(request, &id));
    digits = digits_for(id);
    result = request->openai ? result_openai(id, request, sequences, plain) : result_of(id, request, sequences, plain);
    if (result != NULL && !is_lossless(request, verdicts) && json_object_set_new(result, "lossless", json_false()) != 0)
        result = json_text_whole(result, 1);
    *line = json_text_write(result, JSON_COMPACT | digits);
    json_decref(result);
    if (*line != NULL)
        return STATUS_OK;
    log_error("no memory for the result of request %u", request->index);
    return STATUS_INTERNAL;
}

/* What a result begins with, "{"id":"a","index":7,". To be freed; NULL without memory. */
static char *beginning_of(const struct request *request)
{
    json_t *id = NULL, *object = json_object();
    size_t digits;
    char *text;
    int failed;

    if (id_of(request, &id) != STATUS_OK)
        id = NULL;
    digits = digits_for(id);
    if (request->openai) {
        failed = json_object_set_new(object, "id", json_sprintf("batch_req_%u", request->index));
        failed |= json_object_set_new(object, "custom_id", id);
    } else {
        failed = json_object_set_new(object, "id", id);
        failed |= json_object_set_new(object, "index", json_integer(request->index));
    }
    object = json_text_whole(object, failed);
    text = json_text_write(object, JSON_COMPACT | digits);
    json_decref(object);
    if (text != NULL)
        text[strlen(text) - 1] = ','; /* more follows */
    return text;
}

static int begins_with(const char *text, size_t length, const char *beginning)
{
    return length > strlen(beginning) && memcmp(text, beginning, strlen(beginning)) == 0;
}

int result_is_of(const struct request *request, const char *text, size_t length)
{
    char *beginning = beginning_of(request);
    int is = beginning != NULL && begins_with(text, length, beginning);

    free(beginning);
    return is;
}

enum status result_look_at(const struct request *request, const char *text, size_t length, const char **wrong)
{
    static const struct json_text_limits limits = {.depth = REQUEST_DEPTH + 1, .values = LARGEST}; /* its id is any JSON of a line */
    char *beginning = beginning_of(request), fault[JSON_TEXT_FAULT];
    enum status status = STATUS_INTERNAL;
    json_t *object = NULL;

    if (beginning == NULL) {
        log_error("no memory to look at the result of request %u", request->index);
        return status;
    }
    *wrong = NULL;
    status = json_text_read(text, length, JSON_ALLOW_NUL, &limits, &object, fault);
    if (status == STATUS_DATA)
        *wrong = "not valid JSON";
    else if (status == STATUS_OK && !begins_with(text, length, beginning))
        *wrong = "of another id or index";
    json_decref(object);
    free(beginning);
    return status == STATUS_DATA ? STATUS_OK : status;
}
