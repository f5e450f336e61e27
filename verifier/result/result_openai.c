#include "verifier/result/result_openai.h"

#include "common/file/json_text.h"
#include "verifier/result/result_logprobs.h"
#include "verifier/result/result_text.h"
#include <time.h>

static json_t *choice_of(const struct sequence *sequence, int index, int chat)
{
    const struct completion *completion = &sequence->completion;

    if (chat)
        return json_pack("{s:i, s:{s:s, s:o, s:n}, s:o, s:s}", "index", index, "message", "role", "assistant", "content",
                         json_stringn(completion->text, completion->length), "refusal", "logprobs", result_logprobs_of_chat(sequence),
                         "finish_reason", completion_reason(completion->finish));
    return json_pack("{s:i, s:o, s:o, s:s}", "index", index, "text", result_text(sequence), "logprobs", result_logprobs_of_text(sequence),
                     "finish_reason", completion_reason(completion->finish));
}

static json_t *choices_of(const struct request *request, const struct sequence *sequences)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = 0; i == 0 || i < request->choices; i++)
        failed |= json_array_append_new(array, choice_of(&sequences[i], i, request->chat));
    return json_text_whole(array, failed);
}

static json_t *body_of(const struct request *request, const struct sequence *sequences, int plain)
{
    int prompt = request->prompt_count, count = result_tokens(request, sequences);
    json_t *body = json_pack("{s:o, s:s}", "id", json_sprintf(request->chat ? "chatcmpl-%u" : "cmpl-%u", request->index), "object",
                             request->chat ? "chat.completion" : "text_completion");
    int failed = plain ? 0 : json_object_set_new(body, "created", json_integer((json_int_t)time(NULL)));

    failed |= json_object_set_new(body, "model", json_text_string(request->model != NULL ? request->model : ""));
    failed |= json_object_set_new(body, "choices", choices_of(request, sequences));
    failed |= json_object_set_new(body, "usage",
                                  json_pack("{s:i, s:i, s:i}", "prompt_tokens", prompt, "completion_tokens", count, "total_tokens", prompt + count));
    return json_text_whole(body, failed);
}

/* As OpenAI answers a request that is wrong. */
static json_t *fault_of(const struct request *request)
{
    return json_pack("{s:{s:o, s:s, s:n, s:n}}", "error", "message", json_text_string(request->error), "type", "invalid_request_error", "param",
                     "code");
}

json_t *result_openai(json_t *id, const struct request *request, const struct sequence *sequences, int plain)
{
    json_t *result = json_pack("{s:o, s:o}", "id", json_sprintf("batch_req_%u", request->index), "custom_id", id);
    json_t *response = json_pack("{s:i, s:o}", "status_code", sequences != NULL ? 200 : 400, "request_id", json_sprintf("req_%u", request->index));
    int failed = json_object_set_new(response, "body", sequences != NULL ? body_of(request, sequences, plain) : fault_of(request));

    response = json_text_whole(response, failed);
    failed = json_object_set_new(result, "response", response);
    failed |= json_object_set_new(result, "error", json_null());
    return json_text_whole(result, failed);
}
