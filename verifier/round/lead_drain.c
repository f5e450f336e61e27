/* What the lead does for others between rounds, and how it learns that the job is to end early. */
#include "verifier/round/lead_parts.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include "common/world/signals.h"

#define LOOK_NS ((int64_t)20 * 1000000)
#define REST_NS ((int64_t)200 * 1000000)

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

enum status lead_keep_in_touch(struct lead *lead, int64_t now, const char *doing)
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

    lead_count_active(lead);
    TRY(lead_keep_in_touch(lead, now, "waiting for input"));
    if (now - lead->drain.rested_ns < REST_NS)
        return STATUS_OK;
    lead->drain.rested_ns = now;
    return team_rest(lead->team);
}
