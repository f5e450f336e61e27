#include "launch/engine/engine.h"

#include "common/base/clock.h"
#include "common/base/try.h"

static enum status open_lead(struct engine *engine, const struct engine_terms *terms)
{
    int name[ENGINE_DRAFTERS];
    enum status status;

    for (int i = 0; i < terms->drafters; i++)
        name[i] = ENGINE_DRAFTER + i;
    TRY(peers_open(&engine->peers, engine->end[ENGINE_LEAD], name, terms->drafters, terms->run, terms->team->shard.model->vocab,
                   terms->deadline_ms));
    for (int i = 0; i < terms->drafters; i++)
        engine->peers.peer[i].context = terms->draft[i].context;
    engine->peers.patient = terms->patient;
    engine->peers.kinds = terms->kinds > 1 ? terms->kinds : 1;
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

static enum status turn_drafters(struct engine *engine, int64_t now)
{
    for (int i = 0; i < engine->drafters; i++)
        if (engine->is_there[i])
            TRY(engine_turn_drafter(engine, i, now));
    return STATUS_OK;
}

/* The lead waits, which the drafters do not: what they look for and do not find is not there. */
static void take_turns(void *user, int end, int64_t deadline_ns)
{
    struct engine *engine = user;

    (void)deadline_ns;
    if (end == ENGINE_LEAD && engine->status == STATUS_OK)
        engine->status = turn_drafters(engine, 0);
}

static void stop_drafters(struct engine *engine)
{
    for (int i = 0; i < engine->drafters; i++)
        if (engine->is_there[i])
            engine_stop_drafter(engine, i);
}

static enum status open_drafters(struct engine *engine, const struct engine_terms *terms)
{
    enum status status;

    engine->drafters = terms->drafters;
    for (int i = 0; i < terms->drafters; i++) {
        engine->terms[i] = (struct drafter_terms){.channel = engine->end[ENGINE_DRAFTER + i],
                                                  .draft = terms->draft[i].draft,
                                                  .lead = ENGINE_LEAD,
                                                  .run = terms->run,
                                                  .vocab = terms->draft[i].vocab,
                                                  .context = terms->draft[i].context,
                                                  .slots = terms->slots,
                                                  .kind = terms->kinds > 0 ? i % terms->kinds : 0,
                                                  .run_ahead = terms->run_ahead,
                                                  .branches = terms->branches};
        TRY_TO(engine_start_drafter(engine, i), stop_drafters);
    }
    return STATUS_OK;

stop_drafters:
    stop_drafters(engine);
    return status;
}

static enum status open_ends(struct engine *engine, const struct engine_terms *terms)
{
    TRY(channel_loop_open(ENGINE_DRAFTER + terms->drafters + 1, terms->faults, engine->end));
    if (terms->hooks != NULL)
        channel_loop_hook(engine->end[ENGINE_LEAD], terms->hooks);
    else if (terms->drafters > 0 && terms->deadline_ms > 0)
        channel_loop_hook(engine->end[ENGINE_LEAD], &(struct loop_hooks){.user = engine, .wait = take_turns});
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
    TRY(open_ends(engine, terms));
    TRY_TO(open_lead(engine, terms), close_ends);
    TRY_TO(open_drafters(engine, terms), close_lead);
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
    return engine->lead.slots.actives > 0 ? turn_drafters(engine, clock_ns()) : STATUS_OK;
}

enum status engine_turn(struct engine *engine, int64_t now, int64_t *wake)
{
    TRY(lead_turn(&engine->lead, now, wake));
    return engine->lead.is_over ? STATUS_OK : turn_drafters(engine, now);
}

enum status engine_turn_drafter(struct engine *engine, int i, int64_t now)
{
    return drafter_turn(&engine->drafter[i], now);
}

void engine_stop_drafter(struct engine *engine, int i)
{
    drafter_close(&engine->drafter[i]);
    engine->is_there[i] = 0;
}

enum status engine_start_drafter(struct engine *engine, int i)
{
    TRY(drafter_open(&engine->drafter[i], &engine->terms[i]));
    engine->is_there[i] = 1;
    return STATUS_OK;
}

void engine_close(struct engine *engine)
{
    stop_drafters(engine);
    close_lead(engine);
    close_ends(engine);
    *engine = (struct engine){0};
}
