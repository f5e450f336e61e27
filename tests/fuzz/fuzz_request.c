/* Any bytes as a JSON-lines file of prompts: every line that says something is one request, which has a reason why it cannot be run, or is
 * one that can. */
#include "common/text/tokenizer_json.h"
#include "common/text/utf8_stream.h"
#include "tests/fuzz/fuzz_file.h"
#include "verifier/request/request.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 64, VOCAB = 300 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(int holds)
{
    if (!holds)
        abort();
}

/* Three of its pieces are beyond the model's vocabulary, as a file that does not belong to the model may have them. */
static const struct tokenizer *tokenizer_of_bytes(void)
{
    static const char head[] = "{\"added_tokens\":[{\"id\":2,\"content\":\"<s>\",\"special\":true}],\"model\":{\"type\":\"BPE\","
                               "\"byte_fallback\":true,\"vocab\":{\"<s>\":2,\"a\":299,\"b\":300,\"ab\":301,\"c\":302";
    static struct tokenizer *tokenizer;
    char json[16384];
    int used;

    if (tokenizer != NULL)
        return tokenizer;
    used = snprintf(json, sizeof json, "%s", head);
    for (int i = 0; i < 256; i++)
        used += snprintf(json + used, sizeof json - (size_t)used, ",\"<0x%02X>\":%d", (unsigned)i, i + 3);
    used += snprintf(json + used, sizeof json - (size_t)used, "},\"merges\":[\"a b\"]}}");
    require(tokenizer_json_open("bytes", json, (size_t)used, &tokenizer) == STATUS_OK);
    return tokenizer;
}

static void check_good(const struct request *request)
{
    char reason[160];

    require(request->prompt_count > 0 && request->max_tokens >= 0 && request->prompt_count <= CONTEXT - (request->max_tokens > 0));
    require(!(request->echo && request->chat) && (request->prompt != NULL) == (request->echo != 0));
    require(request->scores == (request->echo && request->logprobs >= 0 ? request->prompt_count - 1 : 0));
    require(request->prompt == NULL || utf8_valid(request->prompt, request->prompt_length) == request->prompt_length);
    for (int i = 0; i < request->prompt_count; i++)
        require(request->tokens[i] >= 0 && request->tokens[i] < VOCAB);
    require(sampling_check(&request->sampling, reason, sizeof reason) == STATUS_OK);
    require(request->bias == NULL || bias_check(request->bias, VOCAB, reason, sizeof reason) == STATUS_OK);
    require(request->min_tokens >= 0 && request->min_tokens <= request->max_tokens && request->stop_tokens <= BIAS_MAX_STOPS);
    for (int i = 0; i < request->stop_tokens; i++)
        require(request->stop_token[i] >= 0 && request->stop_token[i] < VOCAB);
    require(request->draft_length >= 0 && request->stops <= OPTIONS_MAX_STOPS + request->chat); /* the end of an answer is one more */
    require(request->choices >= 1 && request->choices <= request_completions(request) && request_completions(request) <= OPTIONS_MAX_CHOICES);
    require(request->best_of <= 0 || !request->chat);
    require(!request->has_turn_end || (request->turn_end >= 0 && request->turn_end < VOCAB));
    for (int i = 0; i < request->stops; i++)
        require(request->stop[i][0] != '\0');
}

static void check(const struct request *request)
{
    if (request->error != NULL)
        require(request->error[0] != '\0');
    else
        check_good(request);
    if (request->id != NULL) {
        json_t *id = json_loads(request->id, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

        require(id != NULL && strchr(request->id, '\n') == NULL);
        json_decref(id);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct options options = {.request.sampling = sampling_default, .request.max_tokens = 8, .request.n = 1, .rounds.draft_length = -1};
    struct chat_template chat;
    const struct request_terms terms = {.options = &options, .tokenizer = tokenizer_of_bytes(), .chat = &chat, .context = CONTEXT, .vocab = VOCAB};
    struct request_list list = {0};

    chat_template_init(&chat, (enum chat_family)(size % CHAT_FAMILIES)); /* every family comes, and none */
    require(request_read(&list, &terms, fuzz_file(0, bytes, size)) == STATUS_OK);
    for (int i = 0; i < list.count; i++) {
        require(list.request[i].index == (uint32_t)i);
        check(&list.request[i]);
    }
    request_release(&list);
    return 0;
}
