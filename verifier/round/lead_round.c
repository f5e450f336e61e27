/* One round of the lead, from listing who is ready to the commit. It stops where it waits for drafters, and goes on from there in a later turn. */
#include "verifier/round/lead_parts.h"

#include "common/base/clock.h"
#include "common/base/recorder.h"
#include "common/base/trace.h"
#include "common/base/try.h"

void lead_tell_read(struct lead *lead, int more)
{
    int64_t all = lead->reading.read + lead->reading.reused;

    if (lead->watch->read != NULL)
        lead->watch->read(lead->watch->state, (int)(all - lead->told) + more);
    lead->told = all;
}

static void list_ready(struct lead *lead)
{
    lead->slots.readies = 0;
    for (int i = 0; i < lead->slots.count; i++)
        if (lead->slots.sequence[i].request != NULL && sequence_is_read(&lead->slots.sequence[i]) && !peers_holds(&lead->slots.sequence[i]))
            lead->slots.ready[lead->slots.readies++] = &lead->slots.sequence[i];
}

/* Counts sequences whose drafter was asked and did not answer in time; an empty proposal is an answer. Must run before the draft length changes:
 * sequence_wants depends on it. */
static void count_fallbacks(struct lead *lead)
{
    for (int i = 0; i < lead->slots.readies; i++) {
        const struct sequence *sequence = lead->slots.ready[i];

        const struct proposal *proposal = sequence_proposal(sequence);
        int wants = sequence_wants(sequence) > 0;

        lead->figures.asked_rounds += wants;
        lead->figures.answered_rounds += wants && proposal != NULL;
        lead->figures.fallback_rounds += wants && proposal == NULL && sequence_has_drafter(sequence);
        lead->figures.empty_rounds += proposal != NULL && proposal->count == 0;
    }
}

static void count_hits(struct lead *lead)
{
    lead->round.proposals = lead->round.hits = 0;
    for (int i = 0; i < lead->slots.readies; i++) {
        const struct draft_link *link = &lead->slots.ready[i]->link[0];

        lead->round.proposals += link->has_proposal;
        lead->round.hits += draft_link_is_hit(link);
    }
}

/* No sequence is ready: takes a step of prompt rows alone. Where no prompt is left to read either, all sequences wait for drafters that are still
 * reading. */
static enum status read_alone(struct lead *lead)
{
    int64_t began = trace_begin(), start = clock_ns();
    int rows;

    TRY(reading_plan(&lead->reading, 0, 0, &rows));
    if (rows > 0) {
        const struct sequence *first = lead->verify->part[0].sequence;

        TRY(verify_read(lead->verify));
        prefill_add_step(&lead->reading.prefill, 0, rows, (double)(clock_ns() - start) / 1000);
        trace_end(TRACE_PREFILL, began, (uint32_t)first->ticket, first->length, rows, 0, 0);
        lead_tell_read(lead, 0);
        TRY(lead_finish_read(lead));
        if (lead->peers->count > 0)
            TRY(peers_look(lead->peers, lead->slots.sequence, lead->slots.count));
    } else if (reading_left(&lead->reading) == 0) {
        TRY(peers_begin(lead->peers, lead->slots.sequence, lead->slots.count));
        lead->round.stage = LEAD_WAITS_FOR_READERS;
        return STATUS_OK;
    }
    list_ready(lead);
    return STATUS_OK;
}

/* Takes one step over all ready sequences and over parts of prompts. Only a step without prompt rows is measured for the draft length. wait_ns: how
 * long the round waited for proposals. */
static enum status verify_ready(struct lead *lead, int64_t wait_ns)
{
    int64_t step_ns = lead->verify->step.ns, began = clock_ns();
    int taken = 0, rows;

    for (int i = 0; i < lead->slots.readies; i++) {
        const struct proposal *proposal = sequence_proposal(lead->slots.ready[i]);

        taken += 1 + (proposal != NULL ? proposal->count : 0);
    }
    TRY(reading_plan(&lead->reading, lead->slots.readies, taken, &rows));
    TRY(verify_round(lead->verify, lead->slots.ready, lead->slots.readies, lead->slots.outcome));
    prefill_add_step(&lead->reading.prefill, lead->slots.readies, rows, (double)(lead->verify->step.ns - step_ns) / 1000);
    if (lead->peers->count > 0)
        lead_follow_verdicts(lead);
    if (rows > 0)
        lead_tell_read(lead, 0);
    else if (lead->peers->count > 0)
        lead_choose_length(lead, wait_ns, clock_ns() - began);
    return STATUS_OK;
}

/* Starts to collect proposals for the ready sequences; where there are none, the round is over. */
static enum status begin_collecting(struct lead *lead)
{
    lead->round.stage = LEAD_BETWEEN;
    if (lead->slots.readies == 0)
        return STATUS_OK;
    lead->round.began_ns = clock_ns();
    if (lead->drafting.decided_ns > 0)
        lead->drafting.shown_ns = lead->round.began_ns - lead->drafting.decided_ns;
    TRY(peers_begin(lead->peers, lead->slots.sequence, lead->slots.count));
    lead->round.stage = LEAD_WAITS_FOR_DRAFTS;
    return STATUS_OK;
}

static enum status begin_round(struct lead *lead)
{
    lead->round.began = trace_begin();
    recorder_note("begins a round of # sequences", lead->slots.actives, 0, 0);
    list_ready(lead);
    if (lead->slots.readies == 0) {
        lead->drafting.decided_ns = 0;
        TRY(read_alone(lead));
        if (lead->round.stage == LEAD_WAITS_FOR_READERS)
            return STATUS_OK;
    }
    return begin_collecting(lead);
}

/* Verifies and commits: the proposals are there, or are too late. */
static enum status end_round(struct lead *lead)
{
    int64_t wait_ns = clock_ns() - lead->round.began_ns;

    lead->round.stage = LEAD_BETWEEN;
    for (int i = 0; lead->fills && i < lead->slots.readies; i++)
        sequence_fill(lead->slots.ready[i], lead->fills);
    for (int i = 0; i < lead->slots.readies; i++)
        sequence_merge(lead->slots.ready[i], &lead->peers->merge);
    count_fallbacks(lead);
    count_hits(lead);
    for (int i = 0; lead->watch->proposal != NULL && i < lead->slots.readies; i++)
        if (sequence_proposal(lead->slots.ready[i]) != NULL)
            lead->watch->proposal(lead->watch->state, lead->slots.ready[i]);
    TRY(verify_ready(lead, wait_ns));
    lead->drafting.decided_ns = clock_ns();
    TRY(lead_commit_all(lead));
    TRY(lead_finish_read(lead));
    trace_end(TRACE_ROUND, lead->round.began, 0, 0, lead->slots.readies, lead->round.proposals, lead->round.hits);
    return STATUS_OK;
}

enum status lead_go_on(struct lead *lead, int64_t *wake)
{
    *wake = 0;
    if (lead->round.stage == LEAD_BETWEEN)
        TRY(begin_round(lead));
    if (lead->round.stage == LEAD_WAITS_FOR_READERS) {
        TRY(peers_gather(lead->peers, lead->slots.sequence, lead->slots.count, wake));
        if (*wake != 0)
            return STATUS_OK;
        list_ready(lead);
        TRY(begin_collecting(lead));
    }
    if (lead->round.stage == LEAD_BETWEEN)
        return STATUS_OK;
    TRY(peers_gather(lead->peers, lead->slots.sequence, lead->slots.count, wake));
    return *wake == 0 ? end_round(lead) : STATUS_OK;
}

enum status lead_round(struct lead *lead)
{
    int64_t wake;

    do {
        TRY(lead_go_on(lead, &wake));
        TRY(lead_wait(lead, wake));
    } while (lead->round.stage != LEAD_BETWEEN);
    return STATUS_OK;
}
