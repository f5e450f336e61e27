#include "tests/simulation/actor.h"

#include "tests/simulation/oracle.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct channel *end_of(const struct actor *actor)
{
    return actor->simulation->engine.end[ENGINE_DRAFTER + actor->number];
}

/* A forward of the draft takes its time. */
static void pass_draft_time(struct toy_model *toy, const struct rows *rows)
{
    struct actor *actor = toy->user;

    actor->simulation->now_ns += (int64_t)((double)(actor->simulation->plan->draft_ns * (16 + rows->count) / 16) * actor->slowness);
}

/* A life begins: the drafter is there, and knows nothing. */
static void begin_life(struct actor *actor)
{
    actor->is_alive = 1;
    actor->busy_ns = actor->stalled_ns = actor->simulation->now_ns;
}

void actor_open(struct simulation *simulation, int number)
{
    struct actor *actor = &simulation->actor[number];

    *actor = (struct actor){.simulation = simulation, .number = number, .drafter = &simulation->engine.drafter[number], .slowness = 1.0};
    simulation->stage->draft_model[number].ran = pass_draft_time;
    simulation->stage->draft_model[number].user = actor;
    begin_life(actor);
}

static void end_life(struct actor *actor)
{
    actor->refused += actor->drafter->refused;
    actor->proposals += actor->drafter->proposals;
    engine_stop_drafter(&actor->simulation->engine, actor->number);
    actor->is_alive = 0;
}

void actor_close(struct actor *actor)
{
    if (actor->is_alive)
        end_life(actor);
}

static void die(struct actor *actor)
{
    struct simulation *simulation = actor->simulation;
    int piles = dice_chance(&simulation->dice, 0.5);

    end_life(actor);
    channel_loop_kill(end_of(actor), piles);
    actor->return_ns = simulation->now_ns + dice_ns(&simulation->dice, 10000, simulation->is_after ? 20000 : 300000000);
    simulation_tell(simulation, "drafter %d dies; messages to it %s", actor->number + 1, piles ? "pile up" : "vanish");
}

static void come_back(struct actor *actor)
{
    simulation_tell(actor->simulation, "drafter %d is back, knowing nothing", actor->number + 1);
    channel_loop_return(end_of(actor));
    stage_renew_draft(actor->simulation->stage, actor->number);
    assert_int_equal(engine_start_drafter(&actor->simulation->engine, actor->number), STATUS_OK);
    begin_life(actor);
}

int64_t actor_next_ns(const struct actor *actor)
{
    int64_t next = actor->is_alive ? channel_loop_due_ns(end_of(actor)) : actor->return_ns;
    int64_t free = actor->busy_ns > actor->stalled_ns ? actor->busy_ns : actor->stalled_ns;

    if (actor->is_alive && next < free)
        next = free;
    if (actor->incident != INCIDENT_NONE && actor->incident_ns < next)
        next = actor->incident_ns > actor->busy_ns ? actor->incident_ns : actor->busy_ns; /* a turn is not torn apart */
    return next;
}

static void turn(struct actor *actor)
{
    struct simulation *simulation = actor->simulation;
    int64_t started = simulation->now_ns;

    assert_int_equal(engine_turn_drafter(&simulation->engine, actor->number, started), STATUS_OK);
    actor->busy_ns = simulation->now_ns + 1000;
    simulation->now_ns = started;
    oracle_check_mirrors(simulation, actor);
    if (!actor->drafter->ended)
        return;
    simulation_tell(simulation, "drafter %d ends, for it was told so", actor->number + 1);
    if (!simulation->is_over)
        die(actor); /* the Shutdown was a lie */
}

/* Frames in its name, or in nobody's, to the lead; or in the lead's or nobody's to it. */
static void be_hostile(struct actor *actor)
{
    struct simulation *simulation = actor->simulation;

    for (int frames = 1 + dice_below(&simulation->dice, 6); frames > 0; frames--) {
        struct frame frame = hostile_make(&simulation->hostile, &simulation->dice, SIMULATION_RUN, TOY_IDS);
        int self = ENGINE_DRAFTER + actor->number, nobody = ENGINE_DRAFTER + simulation->actors, to_lead = dice_chance(&simulation->dice, 0.7);
        int from = dice_chance(&simulation->dice, 0.3) ? nobody : to_lead ? self : ENGINE_LEAD, taken;

        assert_int_equal(channel_send(simulation->engine.end[from], to_lead ? ENGINE_LEAD : self, frame, &taken), STATUS_OK);
        simulation->tally.hostile_frames += taken;
    }
}

static void meet_incident(struct actor *actor)
{
    struct simulation *simulation = actor->simulation;
    enum incident incident = actor->incident;

    actor->incident = INCIDENT_NONE;
    if (!actor->is_alive && incident != INCIDENT_HOSTILE)
        return;
    simulation->tally.incidents[incident]++;
    switch (incident) {
    case INCIDENT_KILL:
        die(actor);
        break;
    case INCIDENT_STALL:
        actor->stalled_ns = simulation->now_ns + dice_ns(&simulation->dice, 100000, 500000000);
        simulation_tell(simulation, "drafter %d stalls until %.3f ms", actor->number + 1, (double)actor->stalled_ns / 1e6);
        break;
    case INCIDENT_SLOW:
        actor->slowness = actor->slowness > 1 ? 1 : (double)dice_ns(&simulation->dice, 2, 1000);
        simulation_tell(simulation, "drafter %d is now %.0f times as slow as usual", actor->number + 1, actor->slowness);
        break;
    default:
        simulation_tell(simulation, "drafter %d: hostile frames", actor->number + 1);
        be_hostile(actor);
        break;
    }
}

void actor_act(struct actor *actor)
{
    int64_t now = actor->simulation->now_ns;

    if (actor->incident != INCIDENT_NONE && actor->incident_ns <= now)
        meet_incident(actor);
    else if (actor->is_alive)
        turn(actor);
    else
        come_back(actor);
}

void actor_draw_incident(struct actor *actor)
{
    struct simulation *simulation = actor->simulation;

    for (int kind = 1; kind < INCIDENTS && actor->incident == INCIDENT_NONE; kind++)
        if (dice_chance(&simulation->dice, simulation->plan->incident[kind])) {
            actor->incident = (enum incident)kind;
            actor->incident_ns = simulation->now_ns + dice_ns(&simulation->dice, 1000, 5000000);
        }
}

void actor_settle(struct actor *actor)
{
    actor->incident = INCIDENT_NONE;
    actor->slowness = 1;
    actor->stalled_ns = 0;
    if (!actor->is_alive)
        come_back(actor);
}
