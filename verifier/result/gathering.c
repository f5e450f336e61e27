#include "verifier/result/gathering.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <stdlib.h>
#include <string.h>

struct gathered {
    const struct request *request;
    struct gathered *next;
    int ended;
    struct sequence sequence[]; /* [request_completions], those that have ended in their places */
};

double gathering_rank(const struct sequence *sequence)
{
    return sequence->completion.count > 0 ? sequence->logprob_sum / sequence->completion.count : 0;
}

static enum status no_memory(const struct request *request)
{
    log_error("no memory for the %d completions of request %u", request_completions(request), request->index);
    return STATUS_INTERNAL;
}

static struct gathered **find(struct gathering *gathering, const struct request *request)
{
    struct gathered **at = &gathering->first;

    while (*at != NULL && (*at)->request != request)
        at = &(*at)->next;
    return at;
}

static struct gathered *begin(struct gathering *gathering, const struct request *request)
{
    struct gathered *group = calloc(1, sizeof *group + (size_t)request_completions(request) * sizeof *group->sequence);

    if (group == NULL)
        return NULL;
    group->request = request;
    group->next = gathering->first;
    gathering->first = group;
    return group;
}

static void *copy_of(const void *bytes, size_t count)
{
    void *copy = malloc(count + 1);

    if (copy != NULL)
        memcpy(copy, bytes, count);
    return copy;
}

static void forget(struct sequence *kept)
{
    free(kept->tokens);
    free(kept->completion.text);
    free(kept->logprobs);
}

/* All that a result is made of. */
static enum status keep(const struct sequence *sequence, struct sequence *kept)
{
    size_t logprobs = (size_t)(sequence->scores + sequence->completion.count) * sizeof *sequence->logprobs;

    *kept = *sequence;
    kept->link = NULL;
    kept->tokens = copy_of(sequence->tokens, (size_t)sequence->length * sizeof *sequence->tokens);
    kept->completion.text = copy_of(sequence->completion.text, sequence->completion.length);
    kept->logprobs = sequence->logprobs != NULL ? copy_of(sequence->logprobs, logprobs) : NULL;
    if (kept->tokens != NULL && kept->completion.text != NULL && (kept->logprobs != NULL || sequence->logprobs == NULL))
        return STATUS_OK;
    return no_memory(sequence->request);
}

/* Log p of the prompt's tokens, which the first choice alone was told. */
static enum status share_scores(const struct sequence *first, struct sequence *other)
{
    size_t scored = (size_t)first->scores, own = (size_t)other->completion.count;
    struct logprob *whole;

    if (first->scores == 0 || first->logprobs == NULL)
        return STATUS_OK;
    whole = malloc((scored + own) * sizeof *whole);
    if (whole == NULL)
        return no_memory(first->request);
    memcpy(whole, first->logprobs, scored * sizeof *whole);
    memcpy(whole + scored, other->logprobs, own * sizeof *whole);
    free(other->logprobs);
    other->logprobs = whole;
    other->scores = first->scores;
    return STATUS_OK;
}

/* The best first, and of equal ones that of the smaller number. */
static int compare(const void *left, const void *right)
{
    const struct sequence *a = left, *b = right;
    double better = gathering_rank(a), worse = gathering_rank(b);

    return better > worse ? -1 : better < worse ? 1 : (a->choice > b->choice) - (a->choice < b->choice);
}

static enum status complete(struct gathered *group, const struct sequence **all)
{
    int count = request_completions(group->request);

    for (int i = 1; i < count; i++)
        TRY(share_scores(&group->sequence[0], &group->sequence[i]));
    if (request_chooses(group->request))
        qsort(group->sequence, (size_t)count, sizeof *group->sequence, compare);
    *all = group->sequence;
    return STATUS_OK;
}

enum status gathering_add(struct gathering *gathering, const struct sequence *sequence, const struct sequence **all)
{
    const struct request *request = sequence->request;
    struct gathered *group;

    *all = sequence;
    if (request_completions(request) == 1)
        return STATUS_OK;
    *all = NULL;
    group = *find(gathering, request);
    if (group == NULL)
        group = begin(gathering, request);
    if (group == NULL)
        return no_memory(request);
    TRY(keep(sequence, &group->sequence[sequence->choice]));
    return ++group->ended == request_completions(request) ? complete(group, all) : STATUS_OK;
}

void gathering_drop(struct gathering *gathering, const struct request *request)
{
    struct gathered **at = find(gathering, request), *group = *at;

    if (group == NULL)
        return;
    *at = group->next;
    for (int i = 0; i < request_completions(request); i++)
        forget(&group->sequence[i]);
    free(group);
}

void gathering_release(struct gathering *gathering)
{
    while (gathering->first != NULL)
        gathering_drop(gathering, gathering->first->request);
}
