#include "verifier/result.h"

#include <jansson.h>

static double ms(int64_t ns)
{
    return (double)(ns / 1000) / 1000.0;
}

static json_t *tokens_of(const struct sequence *sequence)
{
    json_t *array = json_array();

    for (int i = sequence->request->prompt_count; i < sequence->length; i++)
        json_array_append_new(array, json_integer(sequence->tokens[i]));
    return array;
}

static json_t *speculation_of(const struct sequence *sequence)
{
    double rounds = (double)sequence->rounds, judged = (double)sequence->judged, accepted = (double)sequence->accepted;

    return json_pack("{s:I, s:I, s:I, s:f, s:f}", "rounds", (json_int_t)sequence->rounds, "drafted", (json_int_t)sequence->drafted,
                     "accepted", (json_int_t)sequence->accepted, "alpha", judged > 0 ? accepted / judged : 0.0,
                     "mean_accepted_length", rounds > 0 ? (double)sequence->completion.count / rounds : 0.0);
}

static json_t *timing_of(const struct sequence *sequence)
{
    int count = sequence->completion.count;

    return json_pack("{s:f, s:f, s:f}", "ttft_ms", ms(sequence->first_ns - sequence->started_ns), "tpot_ms",
                     count > 1 ? ms(sequence->ended_ns - sequence->first_ns) / (count - 1) : 0.0, "e2e_ms",
                     ms(sequence->ended_ns - sequence->started_ns));
}

static json_t *result_of(const struct request *request, const struct sequence *sequence, int plain)
{
    json_t *id = request->id != NULL ? json_loads(request->id, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : json_integer(request->index);
    json_t *result = json_pack("{s:o, s:i}", "id", id, "index", (int)request->index);

    if (sequence == NULL) {
        json_object_set_new(result, "text", json_string(""));
        json_object_set_new(result, "tokens", json_array());
        json_object_set_new(result, "finish_reason", json_string("error"));
        json_object_set_new(result, "error", json_string(request->error));
    } else {
        json_object_set_new(result, "text", json_stringn(sequence->completion.text, sequence->completion.length));
        json_object_set_new(result, "tokens", tokens_of(sequence));
        json_object_set_new(result, "finish_reason", json_string(completion_reason(sequence->completion.finish)));
    }
    json_object_set_new(result, "usage",
                        json_pack("{s:i, s:i}", "prompt_tokens", sequence == NULL ? 0 : request->prompt_count, "completion_tokens",
                                  sequence == NULL ? 0 : sequence->completion.count));
    if (sequence != NULL && !plain) {
        json_object_set_new(result, "speculation", speculation_of(sequence));
        json_object_set_new(result, "timing", timing_of(sequence));
    }
    return result;
}

char *result_line(const struct request *request, const struct sequence *sequence, int plain)
{
    json_t *result = result_of(request, sequence, plain);
    char *line = json_dumps(result, JSON_COMPACT | JSON_REAL_PRECISION(9));

    json_decref(result);
    return line;
}
