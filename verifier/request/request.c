#include "verifier/request/request_parts.h"

#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include "common/sample/rule.h"
#include "common/text/utf8_stream.h"
#include "verifier/request/request_chat.h"
#include "verifier/request/request_echo.h"
#include "verifier/request/request_stop.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHAIN_USUAL = 4 /* drafts of a chain, where none says how many */ };

/* The reason where there was no memory for a reason: the request counts as wrong, and the run ends. */
static char no_words[] = "no memory to say what is wrong";

enum status request_no_memory(void)
{
    log_error("no memory for the requests");
    return STATUS_INTERNAL;
}

void request_fail(struct request *request, const char *format, ...)
{
    va_list arguments;

    if (request->error != NULL)
        return; /* the first reason is the one to tell */
    va_start(arguments, format);
    if (vasprintf(&request->error, format, arguments) < 0)
        request->error = no_words;
    va_end(arguments);
}

enum status request_add(struct request_list *list, const struct request_terms *terms, struct request **out)
{
    const struct options *options = terms->options;

    if (list->count % 64 == 0) {
        struct request *more = realloc(list->request, ((size_t)list->count + 64) * sizeof *more);

        if (more == NULL)
            return request_no_memory();
        list->request = more;
    }
    TRY(request_prepare(list, terms));
    *out = &list->request[list->count];
    **out = (struct request){.index = (uint32_t)(options->input.first_index + list->count),
                             .sampling = options->request.sampling,
                             .max_tokens = options->request.max_tokens,
                             .choices = options->request.n,
                             .best_of = options->request.best_of,
                             .min_tokens = options->request.min_tokens,
                             .logprobs = options->request.logprobs,
                             .echo = options->request.echo,
                             .bias = list->bias,
                             .draft_length = options->rounds.draft_length < 0 ? CHAIN_USUAL : options->rounds.draft_length,
                             .adaptive = options->rounds.draft_length < 0,
                             .ignore_eos = options->request.ignore_eos};
    list->count++;
    return STATUS_OK;
}

/* A prompt that --chat makes a message of. */
static enum status encode_chat(struct request *request, const struct request_terms *terms, const char *text, size_t length)
{
    size_t bad = utf8_valid(text, length);
    char reason[REQUEST_CHAT_REASON];

    if (bad < length) {
        request_fail(request, "the prompt is not valid UTF-8 (byte %zu)", bad);
        return STATUS_OK;
    }
    TRY(request_chat_take_text(request, terms, text, length, reason, sizeof reason));
    if (*reason != '\0')
        request_fail(request, "%s", reason);
    return STATUS_OK;
}

enum status request_encode(struct request *request, const struct request_terms *terms, const char *text, size_t length)
{
    enum status status;
    size_t bad;

    if (request->tokens != NULL)
        return STATUS_OK; /* two prompts were given, which is refused elsewhere */
    if (terms->options->input.chat != NULL)
        return encode_chat(request, terms, text, length);
    status = tokenizer_encode(terms->tokenizer, text, length, TOKENIZER_ADD_SPECIAL | TOKENIZER_PARSE_SPECIAL, &request->tokens,
                              &request->prompt_count, &bad);
    if (status == STATUS_DATA && bad < length)
        request_fail(request, "the prompt is not valid UTF-8 (byte %zu)", bad);
    else if (status == STATUS_DATA)
        request_fail(request, "the prompt cannot be cut into tokens");
    else if (status == STATUS_OK && request->prompt_count == 0 && length > 0)
        request_fail(request, "the tokenizer has no token for any of the prompt's %zu bytes", length);
    else
        TRY(status);
    return STATUS_OK;
}

/* The tokenizer may have more ids than the model. */
static void check_vocabulary(struct request *request, int vocab)
{
    for (int i = 0; i < request->prompt_count && request->error == NULL; i++)
        if (request->tokens[i] < 0 || request->tokens[i] >= vocab)
            request_fail(request, "the tokenizer makes token %d of the prompt, the model has %d", request->tokens[i], vocab);
}

int request_completions(const struct request *request)
{
    int asked = request->best_of > 0 ? request->best_of : request->choices;

    return asked > 1 ? asked : 1;
}

int request_chooses(const struct request *request)
{
    return request_completions(request) > (request->choices > 1 ? request->choices : 1);
}

uint64_t request_seed(const struct request *request, int choice)
{
    uint64_t most = request->sampling.seed <= INT64_MAX ? INT64_MAX : UINT64_MAX; /* of a line; only --seed has more */

    return (request->sampling.seed + (uint64_t)choice) & most;
}

/* A result is one line, and all of it is in memory at once: its tokens, and what is told of each. */
static void check_completions(struct request *request, int context)
{
    int room = context - request->prompt_count, limit = request->max_tokens < room ? request->max_tokens : room;
    int64_t tokens = (int64_t)request_completions(request) * (limit + (request->echo ? request->prompt_count : 0));
    int64_t numbers = request->logprobs < 0 ? tokens : tokens * (2 + request->logprobs);

    if (request->best_of > 0 && request->chat)
        request_fail(request, "best_of is for a prompt, not for a chat's messages: expected n alone");
    else if (request->best_of > 0 && request->best_of < request->choices)
        request_fail(request, "best_of is %d, expected at least n, %d", request->best_of, request->choices);
    else if (request_completions(request) > 1 && numbers > REQUEST_NUMBERS)
        request_fail(request, "%s is %d, of completions of up to %d tokens: their result would have %lld numbers%s, expected at most %d",
                     request->best_of > 0 ? "best_of" : "n", request_completions(request), limit, (long long)numbers,
                     request->logprobs < 0 ? "" : " with logprobs", REQUEST_NUMBERS);
}

/* Tokens that may be banned at one row: the last of each bad word, and with min_tokens all that would end the completion. */
static int bans(const struct request *request)
{
    int enders = request->min_tokens > 0 ? request->stop_tokens + BIAS_MAX_ENDERS - BIAS_MAX_STOPS : 0;

    return (request->bias != NULL ? request->bias->words : 0) + enders;
}

enum status request_check(struct request *request, const struct request_terms *terms)
{
    char reason[160];
    int more = request->max_tokens > 0;

    request_settle_tree(request, terms->options);
    check_vocabulary(request, terms->vocab);
    if (request->error != NULL)
        return request->error == no_words ? request_no_memory() : STATUS_OK;
    if (request->prompt_count == 0)
        request_fail(request, "the prompt is empty, expected at least one token");
    else if (request->prompt_count > terms->context - more)
        request_fail(request, "the prompt has %d tokens, the context has room for %d%s", request->prompt_count, terms->context - more,
                     more ? " and one new one" : "");
    else if (request->echo && request->chat)
        request_fail(request, "echo is for a prompt, not for a chat's messages: expected false");
    else if (request->min_tokens > request->max_tokens)
        request_fail(request, "min_tokens is %d, expected at most max_tokens, %d", request->min_tokens, request->max_tokens);
    else if (bans(request) > 0 && bans(request) >= terms->vocab)
        request_fail(request, "bad_words and min_tokens could ban all %d tokens", terms->vocab);
    else if (sampling_check(&request->sampling, reason, sizeof reason) != STATUS_OK)
        request_fail(request, "%s", reason);
    check_completions(request, terms->context);
    return request->error == no_words ? request_no_memory() : STATUS_OK;
}

enum status request_end_chat(struct request *request, const struct request_terms *terms)
{
    return request->chat && request->error == NULL && !request->ignore_eos ? request_chat_end(request, terms) : STATUS_OK;
}

enum status request_add_text(struct request_list *list, const struct request_terms *terms, const char *text, size_t length)
{
    struct request *request;

    TRY(request_add(list, terms, &request));
    request->digest = digest_bytes(text, length, DIGEST_EMPTY);
    TRY(request_encode(request, terms, text, length));
    TRY(request_echo_complete(request, terms, text, length));
    TRY(request_stop_complete(request, terms->options));
    TRY(request_end_chat(request, terms));
    return request_check(request, terms);
}

enum status request_add_tokens(struct request_list *list, const struct request_terms *terms, const int32_t *tokens, int count, int scores)
{
    struct request *request;

    TRY(request_add(list, terms, &request));
    request->tokens = calloc((size_t)count + 1, sizeof *tokens);
    if (request->tokens == NULL)
        return request_no_memory();
    memcpy(request->tokens, tokens, (size_t)count * sizeof *tokens);
    request->prompt_count = count;
    request->max_tokens = request->min_tokens = request->logprobs = 0;
    request->scores = scores;
    return request_check(request, terms);
}

void request_settle_tree(struct request *request, const struct options *options)
{
    const struct rule *rule = rule_of(&request->sampling);

    if (!request->adaptive || options->rounds.shape.kind == TREE_CHAIN || rule == NULL || (rule->trees && rule->siblings == RULE_SIBLINGS_ANY))
        return;
    request->adaptive = 0;
    request->draft_length = rule->trees ? TREE_USUAL : CHAIN_USUAL;
}

enum status request_expect_single(const struct request_list *list, const char *what)
{
    for (int i = 0; i < list->count; i++) {
        const struct request *request = &list->request[i];

        if (request->error != NULL || request_completions(request) == 1)
            continue;
        log_error("line %d: %s is %d, and %s has one completion of each prompt: expected 1", request->line, request->best_of > 0 ? "best_of" : "n",
                  request_completions(request), what);
        return STATUS_DATA;
    }
    return STATUS_OK;
}

int request_drafts(const struct request *request)
{
    return request->adaptive || request->draft_length > 0;
}

int request_is_lossy(const struct request *request)
{
    return request->error == NULL && request_drafts(request) && !rule_of(&request->sampling)->lossless;
}

const struct request *request_lossy(const struct request_list *list)
{
    for (int i = 0; i < list->count; i++)
        if (request_is_lossy(&list->request[i]))
            return &list->request[i];
    return NULL;
}

int request_depends_on_drafts(const struct request_list *list)
{
    for (int i = 0; i < list->count; i++)
        if (list->request[i].error == NULL && rule_of(&list->request[i].sampling)->depends_on_drafts)
            return 1;
    return 0;
}

void request_release(struct request_list *list)
{
    for (int i = 0; i < list->count; i++) {
        struct request *request = &list->request[i];

        request_stop_release(request);
        free(request->own_bias);
        free(request->id);
        free(request->model);
        free(request->tokens);
        free(request->prompt);
        if (request->error != no_words)
            free(request->error);
    }
    free(list->request);
    free(list->bias);
    *list = (struct request_list){0};
}
