#include "launch/engine/engine.h"

#include "common/base/clock.h"
#include "common/base/try.h"

static enum status open_lead(struct engine *engine, const struct engine_terms *terms)
{
    const int name = ENGINE_DRAFTER;
    enum status status;

    TRY(peers_open(&engine->peers, engine->end[ENGINE_LEAD], &name, terms->draft != NULL, terms->run, terms->team->shard.model->vocab, terms->deadline_ms));
    if (terms->draft != NULL)
        engine->peers.peer[0].context = terms->draft_context;
    engine->peers.patient = terms->deadline_ms > 0; /* every wait may take all of it */
    TRY_TO(verify_open(&engine->verify, terms->team, terms->slots, terms->outputs, terms->ids), close_peers);
    engine->lead = (struct lead){.team = terms->team,
                                 .verify = &engine->verify,
                                 .peers = &engine->peers,
                                 .watch = terms->watch,
                                 .tokenizer = terms->tokenizer,
                                 .queue.requests = terms->requests,
                                 .slots.count = terms->slots,
                                 .prefill_chunk = terms->prefill_chunk,
                                 .hash_logits = terms->hash_logits};
    TRY_TO(lead_open(&engine->lead), close_verify);
    return STATUS_OK;

close_verify:
    verify_close(&engine->verify);

close_peers:
    peers_close(&engine->peers);
    return status;
}

static void close_lead(struct engine *engine)
{
    lead_close(&engine->lead);
    verify_close(&engine->verify);
    peers_close(&engine->peers);
}

/* The lead waits, which the drafter does not: what it looks for and does not find is not there. */
static void take_turn(void *user, int end, int64_t deadline_ns)
{
    struct engine *engine = user;

    (void)deadline_ns;
    if (end == ENGINE_LEAD && engine->drafts && engine->status == STATUS_OK)
        engine->status = drafter_turn(&engine->drafter, 0);
}

static enum status open_drafter(struct engine *engine, const struct engine_terms *terms)
{
    const struct drafter_terms mine = {.channel = engine->end[ENGINE_DRAFTER],
                                       .draft = terms->draft,
                                       .lead = ENGINE_LEAD,
                                       .run = terms->run,
                                       .vocab = terms->draft_vocab,
                                       .context = terms->draft_context,
                                       .slots = terms->slots};

    if (terms->draft == NULL)
        return STATUS_OK;
    TRY(drafter_open(&engine->drafter, &mine));
    engine->drafts = 1;
    if (terms->deadline_ms > 0)
        channel_loop_hook(engine->end[ENGINE_LEAD], &(struct loop_hooks){.user = engine, .wait = take_turn});
    return STATUS_OK;
}

static void close_ends(struct engine *engine)
{
    for (int i = 0; i < ENGINE_ENDS; i++)
        channel_close(engine->end[i]);
}

enum status engine_open(struct engine *engine, const struct engine_terms *terms)
{
    enum status status;

    *engine = (struct engine){0};
    TRY(channel_loop_open(ENGINE_ENDS, terms->faults, engine->end));
    TRY_TO(open_lead(engine, terms), close_ends);
    TRY_TO(open_drafter(engine, terms), close_lead);
    return STATUS_OK;

close_lead:
    close_lead(engine);

close_ends:
    close_ends(engine);
    return status;
}

enum status engine_run(struct engine *engine)
{
    TRY(lead_run(&engine->lead));
    return engine->status;
}

enum status engine_begin(struct engine *engine)
{
    TRY(lead_admit(&engine->lead));
    return engine->drafts && engine->lead.slots.actives > 0 ? drafter_turn(&engine->drafter, clock_ns()) : STATUS_OK;
}

enum status engine_turn(struct engine *engine, int64_t now, int64_t *wake)
{
    TRY(lead_turn(&engine->lead, now, wake));
    return engine->drafts && !engine->lead.is_over ? drafter_turn(&engine->drafter, now) : STATUS_OK;
}

void engine_close(struct engine *engine)
{
    if (engine->drafts)
        drafter_close(&engine->drafter);
    close_lead(engine);
    close_ends(engine);
    *engine = (struct engine){0};
}
