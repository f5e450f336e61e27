#include "verifier/round/lead.h"

#include "common/base/log.h"
#include "common/base/progress.h"
#include "common/base/recorder.h"
#include "common/base/trace.h"
#include "common/base/try.h"
#include "common/world/signals.h"
#include <math.h>

#define LOOK_NS ((int64_t)20 * 1000000)
#define REST_NS ((int64_t)200 * 1000000)
enum { WARM_UP_TURNS = 3 };
#define WARM_UP_NS ((int64_t)500 * 1000000)

static const struct lead_watch nobody;

enum status lead_open(struct lead *lead)
{
    int context = lead->team->shard.model->shape.context;
    size_t slots = (size_t)lead->slots.count;

    TRY(arena_open(&lead->arena,
                   slots * sequence_bytes(context, MESSAGE_MAX_SUPPORT) + arena_round(slots * sizeof(struct sequence)) +
                       arena_round(slots * sizeof(struct sequence *)) + arena_round(slots * sizeof(struct outcome)) +
                       arena_round(slots * sizeof(int)) + reading_bytes(lead->slots.count),
                   "the sequences"));
    lead->slots.sequence = arena_take(&lead->arena, slots * sizeof *lead->slots.sequence);
    lead->slots.ready = arena_take(&lead->arena, slots * sizeof(struct sequence *));
    lead->slots.outcome = arena_take(&lead->arena, slots * sizeof *lead->slots.outcome);
    lead->slots.kept = arena_take(&lead->arena, slots * sizeof *lead->slots.kept);
    for (int i = 0; i < lead->slots.count; i++)
        sequence_init(&lead->slots.sequence[i], &lead->arena, i, context, MESSAGE_MAX_SUPPORT);
    lead->watch = lead->watch != NULL ? lead->watch : &nobody;
    reading_init(&lead->reading, &lead->arena, lead->verify, lead->slots.sequence, lead->slots.count, lead->prefill_chunk);
    return STATUS_OK;
}

void lead_close(struct lead *lead)
{
    for (int i = 0; lead->slots.sequence != NULL && i < lead->slots.count; i++)
        if (lead->slots.sequence[i].request != NULL)
            sequence_close(&lead->slots.sequence[i]); /* the run ended before this request did */
    arena_close(&lead->arena);
}

static int has_result(const struct lead *lead, int at)
{
    return lead->watch->has_result != NULL && lead->watch->has_result(lead->watch->state, at);
}

static enum status finish(struct lead *lead, struct sequence *sequence)
{
    sequence->ended_ns = clock_ns();
    recorder_note("finishes request #: # tokens in # rounds", sequence->request->index, sequence->completion.count, sequence->rounds);
    if (lead->watch->end != NULL)
        TRY(lead->watch->end(lead->watch->state, sequence->request, sequence));
    sequence_close(sequence);
    return STATUS_OK;
}

/* Tells the watch how many prompt tokens were read since it was last told, and `more` on top. */
static void tell_reading(struct lead *lead, int more)
{
    int64_t all = lead->reading.read + lead->reading.reused;

    if (lead->watch->read != NULL)
        lead->watch->read(lead->watch->state, (int)(all - lead->told) + more);
    lead->told = all;
}

static enum status start(struct lead *lead, struct sequence *sequence, const struct request *request)
{
    const struct config *config = &lead->team->shard.model->config;
    struct slot_terms terms = {
        .sampling = request->sampling, .request = request->index, .prompt_count = request->prompt_count, .slot = sequence->slot};

    recorder_note("admits request # into slot #, # tokens of prompt", request->index, sequence->slot, request->prompt_count);
    TRY(sequence_open(sequence, request, lead->tokenizer, config->eos, config->eos_count, lead->team->shard.model->longest));
    terms.bias = sequence->bias;
    if (request->adaptive && lead->peers->count > 0) /* 0 where drafting does not pay: then the drafter need not read the prompt either */
        sequence->adaptive = lead->drafting.length;
    if (lead->watch->begin != NULL)
        lead->watch->begin(lead->watch->state, sequence);
    if (sequence->limit == sequence->length) { /* max_tokens is 0 */
        sequence->completion.finish = FINISH_LENGTH;
        sequence->first_ns = clock_ns();
        return finish(lead, sequence);
    }
    TRY(team_open_slot(lead->team, &terms));
    reading_begin(&lead->reading, sequence);
    tell_reading(lead, 1); /* the newest prompt token is fed in the first round */
    return peers_assign(lead->peers, sequence); /* so the drafter reads the prompt while the target does */
}

static void count_active(struct lead *lead)
{
    lead->slots.actives = 0;
    for (int i = 0; i < lead->slots.count; i++)
        lead->slots.actives += lead->slots.sequence[i].request != NULL;
}

static void list_ready(struct lead *lead)
{
    lead->slots.readies = 0;
    for (int i = 0; i < lead->slots.count; i++)
        if (lead->slots.sequence[i].request != NULL && sequence_is_read(&lead->slots.sequence[i]) && !peers_holds(&lead->slots.sequence[i]))
            lead->slots.ready[lead->slots.readies++] = &lead->slots.sequence[i];
}

enum status lead_admit(struct lead *lead)
{
    for (; lead->queue.next < lead->queue.requests->count; lead->queue.next++) {
        const struct request *request = &lead->queue.requests->request[lead->queue.next];
        struct sequence *sequence;

        if (has_result(lead, lead->queue.next)) {
            if (lead->watch->skip != NULL)
                lead->watch->skip(lead->watch->state, request);
            lead->figures.resumed++;
        } else if (request->error != NULL) {
            if (request->id != NULL)
                log_error("request %u (%.200s): %s", request->index, request->id, request->error);
            else
                log_error("request %u: %s", request->index, request->error);
            if (lead->watch->end != NULL)
                TRY(lead->watch->end(lead->watch->state, request, NULL));
        } else if ((sequence = reading_choose_slot(&lead->reading, request)) != NULL) {
            TRY(start(lead, sequence, request));
        } else {
            break;
        }
    }
    count_active(lead);
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
    figures->tokens += kept;
    figures->drafted += outcome->drafted;
    figures->accepted += accepted;
    sequence->rounds++;
    sequence->drafted += outcome->drafted;
    sequence->tested += tested;
    sequence->accepted += accepted;
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
    sequence_commit(sequence, outcome->token, *kept);
    accepted = *kept < outcome->accepted ? *kept : outcome->accepted;
    TRY(peers_commit(lead->peers, sequence, old_length, outcome->token, *kept, accepted, sequence->completion.finish));
    trace_end(TRACE_BROADCAST, began, sequence->request->index, old_length, *kept, outcome->drafted, accepted);
    return STATUS_OK;
}

/* Gives the round's measurements to `adaptive` and takes the next draft length from it. */
static void set_length(struct lead *lead, int64_t wait_ns, int64_t decided_ns)
{
    struct adaptive_round round = {
        .sequences = lead->slots.readies, .work_us = (double)(decided_ns + lead->drafting.shown_ns) / 1000, .wait_us = (double)wait_ns / 1000};
    int adaptive = 0;

    for (int i = 0; i < lead->slots.readies; i++) {
        const struct outcome *outcome = &lead->slots.outcome[i];

        round.rows += outcome->drafted + 1;
        round.tokens += outcome->count;
        round.longest = outcome->drafted > round.longest ? outcome->drafted : round.longest;
        round.caught_up |= lead->slots.ready[i]->link.opened;
        adaptive |= lead->slots.ready[i]->request->adaptive;
        adaptive_add_verdict(&lead->drafting.adaptive, outcome->drafted, outcome->accepted);
    }
    adaptive_add_round(&lead->drafting.adaptive, &round);
    if (adaptive)
        lead->drafting.length = adaptive_choose(&lead->drafting.adaptive, lead->slots.readies);
    for (int i = 0; i < lead->slots.readies; i++)
        if (lead->slots.ready[i]->request->adaptive)
            lead->slots.ready[i]->adaptive = lead->drafting.length;
}

static enum status commit_all(struct lead *lead)
{
    int active = lead->slots.readies;

    /* All commits first, so that drafters start at once; results and screen come after. */
    for (int i = 0; i < active; i++)
        TRY(commit(lead, lead->slots.ready[i], &lead->slots.outcome[i], &lead->slots.kept[i]));
    if (lead->hash_logits)
        TRY(verify_note(lead->verify, lead->slots.outcome, lead->slots.kept, active));
    int64_t began = trace_begin();
    for (int i = 0; i < active; i++) {
        struct sequence *sequence = lead->slots.ready[i];

        if (lead->watch->round != NULL)
            lead->watch->round(lead->watch->state, sequence, &lead->slots.outcome[i], lead->slots.kept[i]);
        if (sequence->completion.finish != FINISH_NOT)
            TRY(finish(lead, sequence));
    }
    trace_end(TRACE_OUTPUT, began, 0, 0, 0, 0, 0);
    return STATUS_OK;
}

static void sum_up(struct lead *lead, int64_t started)
{
    struct figures *figures = &lead->figures;
    double steps = lead->verify->step.count > 0 ? (double)lead->verify->step.count : 1.0;

    figures->wall_ns = clock_ns() - started;
    figures->steps = lead->verify->step.count;
    if (lead->verify->overlaps > 0) {
        figures->overlap = lead->verify->overlap / (double)lead->verify->overlaps;
        figures->overlap_error = sqrt(lead->verify->overlap_variance) / (double)lead->verify->overlaps;
    }
    figures->prompt_tokens = lead->reading.read;
    figures->prefix_tokens_reused = lead->reading.reused;
    figures->ahead_proposals = lead->peers->kept;
    figures->ahead_hits = lead->peers->fetched + lead->peers->early;
    figures->stale = lead->peers->stale;
    figures->refused = lead->peers->refused;
    figures->draft_us = figures_us_per_round(figures, &lead->peers->draft);
    figures->wire_us = figures_us_per_round(figures, &lead->peers->wire);
    figures->verify_us = clock_mean_us(&lead->verify->step);
    figures->decide_us = clock_mean_us(&lead->verify->decide);
    figures->group_us = (double)lead->team->shard.forward.group_ns / 1000.0 / steps;
}

/* Counts sequences whose drafter was asked and did not answer in time; an empty proposal is an answer. Must run before the draft length changes:
 * sequence_wants depends on it. */
static void count_fallbacks(struct lead *lead)
{
    for (int i = 0; i < lead->slots.readies; i++) {
        const struct sequence *sequence = lead->slots.ready[i];

        lead->figures.asked_rounds += sequence_wants(sequence) > 0;
        lead->figures.answered_rounds += sequence_wants(sequence) > 0 && sequence->link.has_proposal;
        lead->figures.fallback_rounds += !sequence->link.has_proposal && sequence->link.drafter >= 0 && !sequence->link.behind && sequence_wants(sequence) > 0;
        lead->figures.empty_rounds += sequence->link.has_proposal && sequence->link.proposal.count == 0;
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
        trace_end(TRACE_PREFILL, began, first->request->index, first->length, rows, 0, 0);
        tell_reading(lead, 0);
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

    for (int i = 0; i < lead->slots.readies; i++)
        taken += 1 + (lead->slots.ready[i]->link.has_proposal ? lead->slots.ready[i]->link.proposal.count : 0);
    TRY(reading_plan(&lead->reading, lead->slots.readies, taken, &rows));
    TRY(verify_round(lead->verify, lead->slots.ready, lead->slots.readies, lead->slots.outcome));
    prefill_add_step(&lead->reading.prefill, lead->slots.readies, rows, (double)(lead->verify->step.ns - step_ns) / 1000);
    if (rows > 0)
        tell_reading(lead, 0);
    else if (lead->peers->count > 0)
        set_length(lead, wait_ns, clock_ns() - began);
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
    count_fallbacks(lead);
    for (int i = 0; lead->watch->proposal != NULL && i < lead->slots.readies; i++)
        if (lead->slots.ready[i]->link.has_proposal)
            lead->watch->proposal(lead->watch->state, lead->slots.ready[i]);
    TRY(verify_ready(lead, wait_ns));
    lead->drafting.decided_ns = clock_ns();
    TRY(commit_all(lead));
    trace_end(TRACE_ROUND, lead->round.began, 0, 0, lead->slots.readies, 0, 0);
    return STATUS_OK;
}

/* Takes the round as far as it goes without blocking. wake: 0 when it is over, else the time until which it waits for messages. */
static enum status go_on(struct lead *lead, int64_t *wake)
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

enum status lead_wait(struct lead *lead, int64_t wake)
{
    return wake == 0 ? STATUS_OK : peers_wait(lead->peers, lead->slots.sequence, lead->slots.count, wake);
}

enum status lead_round(struct lead *lead)
{
    int64_t wake;

    do {
        TRY(go_on(lead, &wake));
        TRY(lead_wait(lead, wake));
    } while (lead->round.stage != LEAD_BETWEEN);
    return STATUS_OK;
}

/* Looks whether the job was told to drain, by a signal here or by another rank; at most once in LOOK_NS. */
static enum status look_for_drain(struct lead *lead, int64_t now)
{
    struct peers *peers = lead->peers, *resting = lead->resting;

    if (lead->drain.until_ns != 0 || now - lead->drain.looked_ns < LOOK_NS)
        return STATUS_OK;
    lead->drain.looked_ns = now;
    if (resting != NULL)
        TRY(peers_look(resting, NULL, 0));
    else if (peers->channel != NULL)
        TRY(peers_look(peers, lead->slots.sequence, lead->slots.count));
    if (!signals_ask_to_drain() && !peers->asked_to_drain && (resting == NULL || !resting->asked_to_drain))
        return STATUS_OK;
    lead->drain.until_ns = now + (int64_t)(lead->drain.seconds * 1e9);
    if (lead->slots.actives > 0)
        log_info("told to drain: %d running requests have %.3g s to end", lead->slots.actives, lead->drain.seconds);
    return STATUS_OK;
}

/* Are there requests without a result, running or not? */
static int is_unfinished(const struct lead *lead)
{
    for (int i = lead->queue.next; i < lead->queue.requests->count; i++)
        if (!has_result(lead, i))
            return 1;
    return lead->slots.actives > 0;
}

static enum status keep_in_touch(struct lead *lead, int64_t now, const char *doing)
{
    progress_made(doing);
    if (lead->resting != NULL)
        TRY(peers_keep_in_touch(lead->resting));
    TRY(peers_keep_in_touch(lead->peers));
    return look_for_drain(lead, now);
}

void lead_cut(struct lead *lead)
{
    for (int i = 0; i < lead->slots.count; i++)
        if (lead->slots.sequence[i].request != NULL)
            lead->slots.sequence[i].completion.limit = lead->slots.sequence[i].completion.count + 1;
}

enum status lead_rest(struct lead *lead)
{
    int64_t now = clock_ns();

    count_active(lead);
    TRY(keep_in_touch(lead, now, "waiting for input"));
    if (now - lead->drain.rested_ns < REST_NS)
        return STATUS_OK;
    lead->drain.rested_ns = now;
    return team_rest(lead->team);
}

/* The first request that has no result yet; NULL: there is none. */
static const struct request *find_first(const struct lead *lead)
{
    for (int i = lead->queue.next; i < lead->queue.requests->count; i++)
        if (!has_result(lead, i) && lead->queue.requests->request[i].error == NULL)
            return &lead->queue.requests->request[i];
    return NULL;
}

/* Times steps of 1 row up to the rows of a round with drafts, before anything is decoded, so that no drafter is asked where drafts cannot pay. */
static enum status warm_up(struct lead *lead)
{
    const struct request *first = find_first(lead);
    int left = lead->queue.requests->count - lead->queue.next, sequences = left < lead->slots.count ? left : lead->slots.count;
    int most = sequences * (ADAPTIVE_START + 1), longest = lead->team->shard.model->shape.context;
    int64_t until = clock_ns() + WARM_UP_NS;
    double us;

    if (lead->peers->count == 0 || first == NULL || adaptive_is_warm(&lead->drafting.adaptive))
        return STATUS_OK; /* in a chat the slots are in use after its first turn */
    most = most < longest ? most : longest;
    for (int i = 0; adaptive_warm_up_rows(i) <= most && (i < 2 || clock_ns() < until); i++) {
        TRY(keep_in_touch(lead, clock_ns(), "warming up"));
        for (int turn = 0; turn < WARM_UP_TURNS; turn++) {
            TRY(verify_warm_up(lead->verify, &first->sampling, adaptive_warm_up_rows(i), &us));
            adaptive_add_step(&lead->drafting.adaptive, adaptive_warm_up_rows(i), us);
        }
    }
    lead->drafting.length = adaptive_choose(&lead->drafting.adaptive, sequences);
    return STATUS_OK;
}

/* Fills free slots, unless the job drains. goes_on: is there a round to take? */
static enum status fill_slots(struct lead *lead, int64_t now, int *goes_on)
{
    TRY(keep_in_touch(lead, now, "decoding"));
    if (lead->drain.until_ns == 0)
        TRY(lead_admit(lead));
    else
        count_active(lead);
    *goes_on = lead->slots.actives > 0 && (lead->drain.until_ns == 0 || now < lead->drain.until_ns);
    return STATUS_OK;
}

enum status lead_turn(struct lead *lead, int64_t now, int64_t *wake)
{
    int goes_on = 1;

    *wake = 0;
    if (lead->round.stage == LEAD_BETWEEN) {
        TRY(fill_slots(lead, now, &goes_on));
        lead->is_over = !goes_on;
        if (lead->is_over)
            return STATUS_OK;
        if (lead->watch->turn != NULL)
            lead->watch->turn(lead->watch->state, &lead->figures);
    }
    TRY(go_on(lead, wake));
    if (lead->round.stage == LEAD_BETWEEN && lead->watch->sync != NULL)
        TRY(lead->watch->sync(lead->watch->state));
    return STATUS_OK;
}

enum status lead_run(struct lead *lead)
{
    int64_t started, wake;

    TRY(warm_up(lead));
    started = clock_ns();
    lead->drafting.decided_ns = 0;
    lead->is_over = 0;
    while (!lead->is_over) {
        TRY(lead_turn(lead, clock_ns(), &wake));
        TRY(lead_wait(lead, wake));
    }
    (void)peers_absent(lead->peers); /* marks drafters that ended without being noticed as lost, for the report */
    sum_up(lead, started);
    lead->figures.drained = lead->drain.until_ns != 0 && is_unfinished(lead);
    return lead->figures.drained ? STATUS_DRAINED : STATUS_OK;
}
