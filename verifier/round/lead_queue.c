/* The lead's queue: what is admitted into which slot, and what is left of it. */
#include "verifier/round/lead_parts.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/recorder.h"
#include "common/base/try.h"

static int has_result(const struct lead *lead, int at)
{
    return lead->watch->has_result != NULL && lead->watch->has_result(lead->watch->state, at);
}

static enum status start(struct lead *lead, struct sequence *sequence, const struct request *request)
{
    const struct config *config = &lead->team->shard.model->config;
    struct slot_terms terms = {.request = request->index, .prompt_count = request->prompt_count, .slot = sequence->slot};

    recorder_note("admits request # into slot #, # tokens of prompt", request->index, sequence->slot, request->prompt_count);
    TRY(sequence_open(sequence, request, lead->queue.choice, lead->tokenizer, config->eos, config->eos_count, lead->team->shard.model->longest));
    sequence->ticket += lead->queue.further;
    terms.sampling = sequence->sampling;
    terms.bias = sequence->bias;
    if (request->adaptive && lead->peers->count > 0) /* 0 where drafting does not pay: then the drafter need not read the prompt either */
        sequence->adaptive = lead->drafting.by_verdicts ? ADAPTIVE_FIRST : lead->drafting.length;
    sequence->shape = lead_shape(lead, sequence);
    if (lead->watch->begin != NULL)
        lead->watch->begin(lead->watch->state, sequence);
    if (sequence_only_reads(sequence) && sequence->scores == 0) /* there is nothing to know of its prompt */
        return lead_finish_empty(lead, sequence);
    TRY(team_open_slot(lead->team, &terms));
    reading_begin(&lead->reading, sequence);
    lead_tell_read(lead, 1); /* the newest prompt token is fed in the first round */
    if (sequence_only_reads(sequence))
        return STATUS_OK; /* there is nothing to draft */
    return peers_assign(lead->peers, sequence); /* so the drafter reads the prompt while the target does */
}

void lead_count_active(struct lead *lead)
{
    lead->slots.actives = 0;
    for (int i = 0; i < lead->slots.count; i++)
        lead->slots.actives += lead->slots.sequence[i].request != NULL;
}

/* The next completion of the request, or the first of the next one. */
static void go_on(struct lead_queue *queue, const struct request *request)
{
    if (++queue->choice < request_completions(request))
        return;
    queue->further += queue->choice - 1;
    queue->choice = 0;
    queue->next++;
}

enum status lead_admit(struct lead *lead)
{
    while (lead->queue.next < lead->queue.requests->count) {
        const struct request *request = &lead->queue.requests->request[lead->queue.next];
        struct sequence *sequence;

        if (has_result(lead, lead->queue.next)) {
            lead->figures.resumed++;
            lead->queue.next++;
        } else if (request->error != NULL) {
            if (request->id != NULL)
                log_error("request %u (%.200s): %s", request->index, request->id, request->error);
            else
                log_error("request %u: %s", request->index, request->error);
            if (lead->watch->end != NULL)
                TRY(lead->watch->end(lead->watch->state, request, NULL));
            lead->queue.next++;
        } else if ((sequence = reading_choose_slot(&lead->reading, request, lead->queue.choice)) != NULL) {
            TRY(start(lead, sequence, request));
            go_on(&lead->queue, request);
        } else {
            break;
        }
    }
    lead_count_active(lead);
    return STATUS_OK;
}

int lead_is_unfinished(const struct lead *lead)
{
    for (int i = lead->queue.next; i < lead->queue.requests->count; i++)
        if (!has_result(lead, i))
            return 1;
    return lead->slots.actives > 0;
}

const struct request *lead_find_first(const struct lead *lead)
{
    for (int i = lead->queue.next; i < lead->queue.requests->count; i++)
        if (!has_result(lead, i) && lead->queue.requests->request[i].error == NULL)
            return &lead->queue.requests->request[i];
    return NULL;
}

int lead_count_next(const struct lead *lead)
{
    int count = 0;

    for (int i = lead->queue.next; i < lead->queue.requests->count && count < lead->slots.count; i++)
        count += request_completions(&lead->queue.requests->request[i]);
    return count < lead->slots.count ? count : lead->slots.count;
}
