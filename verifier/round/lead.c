/* The lead's turns: free slots are filled, then the round goes on. Its parts have files of their own (lead_parts.h). */
#include "verifier/round/lead.h"

#include "common/base/clock.h"
#include "common/base/try.h"
#include "verifier/round/lead_parts.h"
#include <math.h>
#include <string.h>

static const struct lead_watch nobody;

enum status lead_open(struct lead *lead)
{
    int context = lead->team->shard.model->shape.context, links = lead->peers->kinds > 1 ? lead->peers->kinds : 1;
    size_t slots = (size_t)lead->slots.count;

    lead->peers->price = 0; /* of another pass */
    TRY(arena_open(&lead->arena,
                   slots * sequence_bytes(context, MESSAGE_MAX_SUPPORT, links) + arena_round(slots * sizeof(struct sequence)) +
                       arena_round(slots * sizeof(struct sequence *)) + arena_round(slots * sizeof(struct outcome)) +
                       arena_round(slots * sizeof(int)) + reading_bytes(lead->slots.count),
                   "the sequences"));
    lead->slots.sequence = arena_take(&lead->arena, slots * sizeof *lead->slots.sequence);
    lead->slots.ready = arena_take(&lead->arena, slots * sizeof(struct sequence *));
    lead->slots.outcome = arena_take(&lead->arena, slots * sizeof *lead->slots.outcome);
    lead->slots.kept = arena_take(&lead->arena, slots * sizeof *lead->slots.kept);
    for (int i = 0; i < lead->slots.count; i++)
        sequence_init(&lead->slots.sequence[i], &lead->arena, i, context, MESSAGE_MAX_SUPPORT, links);
    peers_count_anew(lead->peers);
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

static void sum_up(struct lead *lead, int64_t started)
{
    struct figures *figures = &lead->figures;
    double steps = lead->verify->step.count > 0 ? (double)lead->verify->step.count : 1.0;

    figures->wall_ns = clock_ns() - started;
    figures->steps = lead->verify->step.count;
    memcpy(figures->overlap_at, lead->verify->by_place, sizeof figures->overlap_at);
    if (lead->verify->overlaps > 0) {
        figures->overlap = lead->verify->overlap / (double)lead->verify->overlaps;
        figures->overlap_error = sqrt(lead->verify->overlap_variance) / (double)lead->verify->overlaps;
    }
    figures->prompt_tokens = lead->reading.read;
    figures->prefix_tokens_reused = lead->reading.reused;
    figures->ahead = lead->peers->ahead;
    figures->wire = lead->peers->bytes;
    figures->kinds = lead->peers->kinds;
    for (int kind = 0; kind < MERGE_MOST; kind++)
        figures->kind[kind] = lead->peers->kind[kind];
    figures->stale = lead->peers->stale;
    figures->refused = lead->peers->refused;
    figures->draft_us = figures_us_per_round(figures, &lead->peers->draft);
    figures->wire_us = figures_us_per_round(figures, &lead->peers->wire);
    figures->verify_us = clock_mean_us(&lead->verify->step);
    figures->decide_us = clock_mean_us(&lead->verify->decide);
    figures->group_us = (double)lead->team->shard.forward.group_ns / 1000.0 / steps;
}

/* Fills free slots, unless the job drains. goes_on: is there a round to take? */
static enum status fill_slots(struct lead *lead, int64_t now, int *goes_on)
{
    TRY(lead_keep_in_touch(lead, now, "decoding"));
    if (lead->drain.until_ns == 0)
        TRY(lead_admit(lead));
    else
        lead_count_active(lead);
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
    TRY(lead_go_on(lead, wake));
    if (lead->round.stage == LEAD_BETWEEN && lead->watch->sync != NULL)
        TRY(lead->watch->sync(lead->watch->state));
    return STATUS_OK;
}

enum status lead_wait(struct lead *lead, int64_t wake)
{
    return wake == 0 ? STATUS_OK : peers_wait(lead->peers, lead->slots.sequence, lead->slots.count, wake);
}

enum status lead_run(struct lead *lead)
{
    int64_t started, wake;

    TRY(lead_warm_up(lead));
    started = clock_ns();
    lead->drafting.decided_ns = 0;
    lead->is_over = 0;
    while (!lead->is_over) {
        TRY(lead_turn(lead, clock_ns(), &wake));
        TRY(lead_wait(lead, wake));
    }
    (void)peers_absent(lead->peers); /* marks drafters that ended without being noticed as lost, for the report */
    sum_up(lead, started);
    lead->figures.drained = lead->drain.until_ns != 0 && lead_is_unfinished(lead);
    return lead->figures.drained ? STATUS_DRAINED : STATUS_OK;
}
