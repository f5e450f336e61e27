#include "verifier/result/result_text.h"

#include <stdlib.h>
#include <string.h>

json_t *result_text(const struct sequence *sequence)
{
    const struct completion *completion = &sequence->completion;
    const struct request *request = sequence->request;
    char *whole;
    json_t *text;

    if (request->prompt == NULL)
        return json_stringn(completion->text, completion->length);
    whole = malloc(request->prompt_length + completion->length + 1);
    if (whole == NULL)
        return NULL;
    memcpy(whole, request->prompt, request->prompt_length);
    memcpy(whole + request->prompt_length, completion->text, completion->length);
    text = json_stringn(whole, request->prompt_length + completion->length);
    free(whole);
    return text;
}

int result_first(const struct sequence *sequence)
{
    return sequence->request->echo ? 0 : sequence->request->prompt_count;
}

int result_tokens(const struct request *request, const struct sequence *sequences)
{
    int count = 0;

    for (int i = 0; sequences != NULL && i < request_completions(request); i++)
        count += sequences[i].completion.count;
    return count;
}
