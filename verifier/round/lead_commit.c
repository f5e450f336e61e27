/* The end of the lead's round: outcomes are cut where completions end, counted, committed and told to drafters and watch. */
#include "verifier/round/lead_parts.h"

#include "common/base/clock.h"
#include "common/base/recorder.h"
#include "common/base/trace.h"
#include "common/base/try.h"

enum status lead_finish(struct lead *lead, struct sequence *sequence)
{
    sequence->ended_ns = clock_ns();
    recorder_note("finishes request #: # tokens in # rounds", sequence->request->index, sequence->completion.count, sequence->rounds);
    if (lead->watch->end != NULL)
        TRY(lead->watch->end(lead->watch->state, sequence->request, sequence));
    sequence_close(sequence);
    return STATUS_OK;
}

enum status lead_finish_empty(struct lead *lead, struct sequence *sequence)
{
    sequence->completion.finish = FINISH_LENGTH;
    sequence->first_ns = clock_ns();
    return lead_finish(lead, sequence);
}

enum status lead_finish_read(struct lead *lead)
{
    for (int i = 0; i < lead->slots.count; i++) {
        struct sequence *sequence = &lead->slots.sequence[i];

        if (sequence->request == NULL || !sequence_only_reads(sequence) || !sequence_is_read(sequence))
            continue;
        TRY(reading_copy(&lead->reading));
        TRY(lead_finish_empty(lead, sequence));
    }
    return STATUS_OK;
}

static void count(struct lead *lead, struct sequence *sequence, const struct outcome *outcome, int kept)
{
    struct figures *figures = &lead->figures;
    int accepted = kept < outcome->accepted ? kept : outcome->accepted;
    /* The accepted drafts and the rejected one, unless the completion was cut before it. */
    int tested = kept > outcome->accepted && outcome->refused >= 0 ? accepted + 1 : accepted;

    for (int i = 0; i < tested; i++) {
        figures->tested[i]++;
        figures->accepted_at[i] += i < accepted;
    }
    if (outcome->drafted == sequence->request->draft_length) {
        figures->full_rounds++;
        figures->full_tokens += kept;
    }
    figures->rounds++;
    figures->drafted_rounds += outcome->drafted > 0;
    figures->shape_rounds[sequence->shape] += outcome->drafted > 0;
    figures->tokens += kept;
    figures->drafted += outcome->drafted;
    figures->accepted += accepted;
    sequence->rounds++;
    sequence->drafted += outcome->drafted;
    sequence->tested += tested;
    sequence->accepted += accepted;
}

/* Which kinds of drafters an accepted draft of a merged proposal came from. Must run before the commit, which drops the proposal. */
static void count_kinds(struct peers *peers, const struct sequence *sequence, const struct outcome *outcome, int accepted)
{
    uint8_t source[MESSAGE_MAX_DRAFT];

    if (!sequence->merged.is_there)
        return;
    merge_sources(&sequence->merged, outcome->token, accepted, source);
    for (int i = 0; i < accepted; i++)
        for (int kind = 0; kind < peers->kinds; kind++) {
            peers->kind[kind].accepted += (source[i] & 1 << kind) != 0;
            peers->kind[kind].alone += source[i] == 1 << kind;
        }
}

/* Cuts the outcome where the completion ends, commits what is left, and tells the drafter, which is asked for the next proposal. */
static enum status commit(struct lead *lead, struct sequence *sequence, const struct outcome *outcome, int *kept)
{
    int64_t began = trace_begin();
    int old_length = sequence->length, accepted;

    *kept = completion_push(&sequence->completion, outcome->token, outcome->count);
    count(lead, sequence, outcome, *kept);
    if (sequence->first_ns == 0)
        sequence->first_ns = clock_ns();
    recorder_note("commits # tokens to request #, # of them drafted", *kept, sequence->request->index, outcome->accepted);
    accepted = *kept < outcome->accepted ? *kept : outcome->accepted;
    count_kinds(lead->peers, sequence, outcome, accepted);
    sequence_commit(sequence, outcome->token, *kept);
    TRY(peers_commit(lead->peers, sequence, old_length, outcome->token, *kept, accepted, sequence->completion.finish));
    trace_end(TRACE_BROADCAST, began, (uint32_t)sequence->ticket, old_length, *kept, outcome->drafted, accepted);
    return STATUS_OK;
}

enum status lead_commit_all(struct lead *lead)
{
    int active = lead->slots.readies;

    /* All commits first, so that drafters start at once; results and screen come after. */
    for (int i = 0; i < active; i++)
        TRY(commit(lead, lead->slots.ready[i], &lead->slots.outcome[i], &lead->slots.kept[i]));
    if (lead->hash_logits)
        TRY(verify_note(lead->verify, lead->slots.outcome, lead->slots.kept, active));
    TRY(verify_logprobs(lead->verify, lead->slots.ready, lead->slots.outcome, lead->slots.kept, active));
    int64_t began = trace_begin();
    for (int i = 0; i < active; i++) {
        struct sequence *sequence = lead->slots.ready[i];

        if (lead->watch->round != NULL)
            lead->watch->round(lead->watch->state, sequence, &lead->slots.outcome[i], lead->slots.kept[i]);
        if (sequence->completion.finish != FINISH_NOT)
            TRY(lead_finish(lead, sequence));
    }
    trace_end(TRACE_OUTPUT, began, 0, 0, 0, 0, 0);
    return STATUS_OK;
}
