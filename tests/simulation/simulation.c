#include "tests/simulation/simulation.h"

#include "common/base/clock.h"
#include "tests/simulation/actor.h"
#include "tests/simulation/oracle.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { IDS = PLAN_SLOTS * MESSAGE_MAX_DRAFT * PLAN_SUPPORT, AFTER_DRAFTS = 4, AFTER_TOKENS = 16 };

static const char *const fate_names[LOOP_FATES] = {"is sent",          "is lost",  "comes twice",          "overtakes the one before",
                                                   "has a bit flipped", "is cut off", "finds no place in the outbox", "arrives"};

void simulation_tell(const struct simulation *simulation, const char *format, ...)
{
    va_list arguments;

    if (!simulation->verbose)
        return;
    printf("%12.3f ms  round %-4d ", (double)simulation->now_ns / 1e6, simulation->round);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
}

void simulation_fail(const struct simulation *simulation, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    simulation_tell(simulation, "FAILS: %s", text);
    print_error("seed %llu, %.3f ms, round %d: %s\n", (unsigned long long)simulation->plan->seed, (double)simulation->now_ns / 1e6,
                simulation->round, text);
    fail();
    abort(); /* fail does not come back, which the compiler cannot know */
}

void simulation_pass(struct simulation *simulation, int64_t until_ns, int listens)
{
    for (;;) {
        struct actor *next = NULL;
        int64_t at = until_ns, due = listens ? channel_loop_due_ns(simulation->engine.end[ENGINE_LEAD]) : INT64_MAX;

        at = due < at ? due : at;
        for (int i = 0; i < simulation->actors; i++)
            if (actor_next_ns(&simulation->actor[i]) < at) {
                next = &simulation->actor[i];
                at = actor_next_ns(next);
            }
        simulation->now_ns = at > simulation->now_ns ? at : simulation->now_ns;
        if (next == NULL)
            return;
        actor_act(next);
    }
}

static void wait_for_frame(void *user, int end, int64_t deadline_ns)
{
    assert_int_equal(end, ENGINE_LEAD); /* drafters take a turn only when a frame is there */
    simulation_pass(user, deadline_ns, 1);
}

static void note_frame(void *user, enum loop_fate fate, int from, int to, struct frame frame)
{
    static const char *const types[] = {"frame", "Hello", "Open", "Close", "Proposal", "Commit", "Heartbeat", "Failure", "Shutdown", "Drain"};
    struct simulation *simulation = user;

    simulation->tally.frames[fate]++;
    simulation->damaged += fate == LOOP_CORRUPTED || fate == LOOP_TRUNCATED;
    simulation->proposals_received += fate == LOOP_RECEIVED && to == ENGINE_LEAD && message_type(frame) == MESSAGE_PROPOSAL;
    simulation->refusals_due += fate == LOOP_RECEIVED && oracle_must_be_refused(simulation, from, to, frame);
    if (fate == LOOP_SENT)
        hostile_see(&simulation->hostile, frame);
    simulation_tell(simulation, "%d -> %d: a %s of %zu bytes %s", from, to, types[message_type(frame)], frame.count, fate_names[fate]);
}

static void pass_target_time(struct toy_model *toy, const struct rows *rows)
{
    struct simulation *simulation = toy->user;
    int64_t ns = simulation->plan->verify_ns * (16 + rows->count) / 16;

    simulation->verified_ns += ns;
    simulation_pass(simulation, simulation->now_ns + ns, 0);
}

static void open_engine(struct simulation *simulation, int drafters)
{
    const struct plan *plan = simulation->plan;
    const struct loop_hooks hooks = {.user = simulation, .wait = wait_for_frame, .note = note_frame};
    struct engine_terms terms = {.team = simulation->target->team,
                                 .drafters = drafters,
                                 .kinds = plan->kinds,
                                 .tokenizer = simulation->stage->tokenizer,
                                 .requests = &simulation->requests,
                                 .watch = &simulation->audience.watch,
                                 .faults = &plan->faults,
                                 .hooks = &hooks,
                                 .run = SIMULATION_RUN,
                                 .slots = plan->slots,
                                 .outputs = STAGE_ASKED,
                                 .ids = STAGE_IDS,
                                 .run_ahead = plan->run_ahead,
                                 .deadline_ms = plan->deadline_ms};

    for (int i = 0; i < drafters; i++) {
        stage_renew_draft(simulation->stage, i);
        terms.draft[i] = (struct engine_draft){.draft = &simulation->stage->draft[i], .vocab = TOY_IDS, .context = plan->context[i]};
    }
    assert_int_equal(engine_open(&simulation->engine, &terms), STATUS_OK);
}

/* The engine with so many drafters, and where its results go. */
static void open_all(struct simulation *simulation, int drafters)
{
    assert_int_equal(output_open(&simulation->output, NULL, 0, simulation->plan->requests + SIMULATION_AFTER), STATUS_OK);
    simulation->show = (struct show){0};
    audience_init(&simulation->audience, &simulation->output, &simulation->show, NULL);
    open_engine(simulation, drafters);
    simulation->round = 0;
    for (simulation->actors = 0; simulation->actors < drafters; simulation->actors++)
        actor_open(simulation, simulation->actors);
}

static void close_all(struct simulation *simulation)
{
    engine_close(&simulation->engine);
    assert_int_equal(output_close(&simulation->output), STATUS_OK);
}

/* The plan's requests that have come by now; when there are none left, greedy ones after them. */
static void arrive(struct simulation *simulation)
{
    const struct plan *plan = simulation->plan;
    int *count = &simulation->requests.count;

    while (*count < plan->requests && plan->arrival_ns[*count] <= simulation->now_ns)
        (*count)++;
}

static void add_request_after(struct simulation *simulation)
{
    int at = simulation->requests.count++, first = simulation->plan->requests;

    if (at >= first + SIMULATION_AFTER)
        simulation_fail(simulation, "after %d more requests a drafter is still not used", SIMULATION_AFTER);
    simulation->request[at] = simulation->request[first];
    simulation->request[at].index = (uint32_t)at;
    simulation->times_after[at - first] = 0;
}

static void set_requests(struct simulation *simulation)
{
    static int32_t prompt[TOY_PROMPT];
    const struct plan *plan = simulation->plan;

    for (int i = 0; i < TOY_PROMPT; i++)
        prompt[i] = simulation->stage->law[plan->law].id[1];
    memcpy(simulation->request, plan->request, (size_t)plan->requests * sizeof *simulation->request);
    simulation->request[plan->requests] = (struct request){.index = (uint32_t)plan->requests,
                                                           .tokens = prompt,
                                                           .prompt_count = TOY_PROMPT,
                                                           .sampling = sampling_default,
                                                           .max_tokens = AFTER_TOKENS,
                                                           .draft_length = AFTER_DRAFTS,
                                                           .ignore_eos = 1};
    simulation->request[plan->requests].sampling.temperature = 0;
    simulation->requests = (struct request_list){.request = simulation->request};
}

static void stop_faults(struct simulation *simulation)
{
    simulation->is_after = 1;
    simulation_tell(simulation, "from here on nothing goes wrong");
    channel_loop_set_faults(simulation->engine.end[0], &simulation->plan->peace);
    for (int i = 0; i < simulation->actors; i++)
        actor_settle(&simulation->actor[i]);
    oracle_note_losses(simulation);
}

static void take_round(struct simulation *simulation)
{
    simulation->round++;
    simulation->round_ns = simulation->now_ns;
    simulation->verified_ns = 0;
    for (int i = 0; i < simulation->actors && !simulation->is_after; i++)
        actor_draw_incident(&simulation->actor[i]);
    assert_int_equal(lead_round(&simulation->engine.lead), STATUS_OK);
    if (simulation->actors > 0)
        oracle_check_round(simulation);
}

/* Completes the requests that are there. */
static void run_out(struct simulation *simulation)
{
    struct lead *lead = &simulation->engine.lead;

    for (assert_int_equal(lead_admit(lead), STATUS_OK); lead->slots.actives > 0; assert_int_equal(lead_admit(lead), STATUS_OK))
        take_round(simulation);
}

/* Completes the plan's requests. The faults stop on their way or at their end. */
static void run_plan(struct simulation *simulation)
{
    const struct plan *plan = simulation->plan;

    for (;;) {
        if (!simulation->is_after && simulation->round >= plan->rounds_of_faults)
            stop_faults(simulation);
        arrive(simulation);
        assert_int_equal(lead_admit(&simulation->engine.lead), STATUS_OK);
        oracle_check_admission(simulation);
        if (simulation->engine.lead.slots.actives > 0)
            take_round(simulation);
        else if (simulation->requests.count < plan->requests)
            simulation_pass(simulation, plan->arrival_ns[simulation->requests.count], 0);
        else
            break;
    }
    if (!simulation->is_after)
        stop_faults(simulation);
}

/* Are all drafters there again, and as many of them used as there are sequences for? */
static int is_recovered(const struct simulation *simulation)
{
    int used = 0, expected = 0, kinds = simulation->plan->kinds;

    for (int kind = 0; kind < kinds; kind++) {
        int drafters = (simulation->actors + kinds - 1 - kind) / kinds;

        expected += simulation->plan->slots < drafters ? simulation->plan->slots : drafters;
    }
    for (int i = 0; i < simulation->actors; i++) {
        if (simulation->engine.peers.peer[i].lost)
            return 0;
        used += simulation->used[i] > 0;
    }
    return used >= expected;
}

/* The turns of slow drafters end, and the lost drafters' rests pass at once. */
static void pass_rests(struct simulation *simulation)
{
    for (int i = 0; i < simulation->actors; i++)
        simulation_pass(simulation, simulation->actor[i].busy_ns, 0);
    for (int i = 0; i < simulation->actors; i++)
        if (simulation->engine.peers.peer[i].lost)
            simulation_pass(simulation, simulation->engine.peers.peer[i].ask_ns, 0);
}

/* More requests, until all drafters are used again: a bound says how long that may take. */
static void run_after(struct simulation *simulation)
{
    int first = simulation->round, rounds;

    while (!is_recovered(simulation)) {
        while (simulation->requests.count < simulation->engine.lead.queue.next + simulation->plan->slots)
            add_request_after(simulation);
        pass_rests(simulation);
        assert_int_equal(lead_admit(&simulation->engine.lead), STATUS_OK);
        take_round(simulation);
    }
    simulation->requests.count = simulation->engine.lead.queue.next;
    run_out(simulation);
    rounds = simulation->round - first;
    simulation->tally.rounds_after += rounds;
    if (rounds > simulation->tally.most_rounds_after)
        simulation->tally.most_rounds_after = rounds;
}

/* The lead says that it is over, and the drafters hear it, at the latest when they have ended what a slow one began. */
static void end_drafters(struct simulation *simulation)
{
    simulation->is_over = 1;
    assert_int_equal(peers_shutdown(&simulation->engine.peers), STATUS_OK);
    for (int i = 0; i < simulation->actors; i++)
        simulation_pass(simulation, simulation->actor[i].busy_ns, 0);
    simulation_pass(simulation, simulation->now_ns + (int64_t)1000000000, 0);
    for (int i = 0; i < simulation->actors; i++) {
        if (!simulation->actor[i].drafter->ended)
            simulation_fail(simulation, "drafter %d goes on after the end", i + 1);
        oracle_check_mirrors_at_end(simulation, &simulation->actor[i]);
        actor_close(&simulation->actor[i]);
        simulation->tally.refused += simulation->actor[i].refused;
    }
}

static void add_up(struct simulation *simulation)
{
    struct tally *tally = &simulation->tally;
    const struct figures *figures = &simulation->engine.lead.figures;

    tally->schedules = 1;
    tally->rounds = figures->rounds;
    tally->tokens = figures->tokens;
    tally->drafted = figures->drafted;
    tally->accepted = figures->accepted;
    tally->fallbacks = figures->fallback_rounds;
    tally->stale = simulation->engine.peers.stale;
    tally->fetched = simulation->engine.peers.fetched;
    for (int i = 0; i < simulation->engine.peers.count; i++)
        tally->losses += simulation->engine.peers.peer[i].losses;
    tally->refused += simulation->engine.peers.refused;
}

static void tally_add(struct tally *sum, const struct tally *one)
{
    int64_t *to = (int64_t *)sum, most = sum->most_rounds_after;
    const int64_t *from = (const int64_t *)one;

    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        to[i] += from[i];
    sum->most_rounds_after = most > one->most_rounds_after ? most : one->most_rounds_after;
}

static void run_solo(struct simulation *simulation)
{
    int verbose = simulation->verbose;

    simulation->verbose = 0;
    open_all(simulation, 0);
    simulation->requests.count = simulation->plan->requests + 1;
    run_out(simulation);
    close_all(simulation);
    simulation->verbose = verbose;
}

void simulation_run(struct simulation *simulation, struct stage *stage, const struct plan *plan, int verbose, struct tally *tally)
{
    memset(simulation, 0, offsetof(struct simulation, request));
    memset(&simulation->round, 0, sizeof *simulation - offsetof(struct simulation, round));
    simulation->stage = stage;
    simulation->plan = plan;
    simulation->verbose = verbose;
    simulation->dice.state = plan->seed ^ UINT64_C(0xA5A5A5A5A5A5A5A5);
    simulation->target = &stage->target[plan->shards - 1];
    clock_pretend(&simulation->now_ns);
    stage_set(stage, plan);
    simulation->target->model[0].ran = pass_target_time;
    simulation->target->model[0].user = simulation;
    oracle_watch(simulation);
    hostile_open(&simulation->hostile);
    set_requests(simulation);
    run_solo(simulation);
    simulation->requests.count = 0;
    simulation->now_ns = 0;
    open_all(simulation, plan->drafters);
    run_plan(simulation);
    run_after(simulation);
    end_drafters(simulation);
    add_up(simulation);
    oracle_check_end(simulation);
    tally_add(tally, &simulation->tally);
    close_all(simulation);
    hostile_close(&simulation->hostile);
    clock_pretend(NULL);
}
