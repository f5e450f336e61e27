#include "tests/simulation/plan.h"

#include "common/sample/rule.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

uint64_t dice_next(struct dice *dice)
{
    uint64_t z = dice->state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

double dice_uniform(struct dice *dice)
{
    return (double)(dice_next(dice) >> 11) * 0x1p-53;
}

int dice_below(struct dice *dice, int count)
{
    return (int)(dice_uniform(dice) * count);
}

int dice_chance(struct dice *dice, double probability)
{
    return dice_uniform(dice) < probability;
}

int64_t dice_ns(struct dice *dice, int64_t least, int64_t most)
{
    return (int64_t)((double)least * pow((double)most / (double)least, dice_uniform(dice)));
}

int plan_is_determined(const struct request *request)
{
    return !rule_of(&request->sampling)->depends_on_drafts;
}

static void draw_sampling(struct dice *dice, struct sampling *sampling)
{
    double kind = dice_uniform(dice);

    *sampling = sampling_default;
    sampling->seed = dice_next(dice);
    sampling->temperature = kind < 0.3 ? 0.0 : kind < 0.6 ? 1.0 : 0.6;
    sampling->accept = dice_chance(dice, 0.8) ? ACCEPT_COUPLED : ACCEPT_REJECTION;
    if (dice_chance(dice, 0.2))
        sampling->top_k = 1 + dice_below(dice, 12);
    if (dice_chance(dice, 0.2))
        sampling->top_p = 0.9;
    if (dice_chance(dice, 0.1))
        sampling->min_p = 0.05;
    if (dice_chance(dice, 0.2)) {
        sampling->repetition_penalty = 1.2;
        sampling->presence_penalty = 0.3;
        sampling->frequency_penalty = 0.1;
    }
}

static void draw_request(struct plan *plan, struct dice *dice, const struct toy_law *law, int i)
{
    struct request *request = &plan->request[i];

    *request = (struct request){.index = (uint32_t)i, .tokens = plan->prompt[i], .ignore_eos = dice_chance(dice, 0.3)};
    request->prompt_count = dice_chance(dice, 0.03) ? TOY_CONTEXT - dice_below(dice, 2) : TOY_PROMPT + dice_below(dice, 7);
    for (int t = 0; t < request->prompt_count; t++)
        plan->prompt[i][t] = law->id[dice_below(dice, law->tokens)];
    draw_sampling(dice, &request->sampling);
    request->max_tokens = dice_chance(dice, 0.03) ? 0 : dice_chance(dice, 0.1) ? 2 * TOY_CONTEXT : 1 + dice_below(dice, 24);
    request->draft_length = dice_chance(dice, 0.05) ? 0 : dice_chance(dice, 0.05) ? MESSAGE_MAX_DRAFT : 1 + dice_below(dice, 8);
    request->adaptive = dice_chance(dice, 0.25);
    if (dice_chance(dice, 0.2)) { /* the pieces of these ids are the characters from '!' on */
        snprintf(plan->stop_text[i], sizeof plan->stop_text[i], "%c%c", '!' + law->id[1 + dice_below(dice, law->tokens - 1)] - 4,
                 '!' + law->id[1 + dice_below(dice, law->tokens - 1)] - 4);
        plan->stop[i][0] = plan->stop_text[i];
        request->stop = plan->stop[i];
        request->stops = 1;
    }
}

static double draw_rate(struct dice *dice)
{
    static const double rate[] = {0.02, 0.1, 0.4};

    return dice_chance(dice, 0.6) ? 0.0 : rate[dice_below(dice, 3)];
}

/* Each kind of fault is on in some schedules and off in others, so that they are met alone and together. */
static void draw_faults(struct plan *plan, struct dice *dice)
{
    static const int64_t delay_us[] = {50, 500, 5000, 100000};
    static const double chance[INCIDENTS] = {0, 0.02, 0.04, 0.03, 0.15};

    plan->peace = plan->faults = (struct loop_faults){.seed = plan->seed, .delay_us = 20};
    plan->is_peaceful = dice_chance(dice, 0.06);
    plan->rounds_of_faults = plan->is_peaceful ? 0 : 5 + dice_below(dice, 35);
    if (plan->is_peaceful)
        return;
    plan->faults.lose = draw_rate(dice);
    plan->faults.repeat = draw_rate(dice);
    plan->faults.reorder = draw_rate(dice);
    plan->faults.corrupt = draw_rate(dice);
    plan->faults.truncate = draw_rate(dice);
    plan->faults.outbox = dice_chance(dice, 0.2) ? 1 + dice_below(dice, 4) : 0;
    plan->faults.delay_us = delay_us[dice_below(dice, 4)];
    for (int kind = 1; kind < INCIDENTS; kind++)
        plan->incident[kind] = dice_chance(dice, 0.3) ? chance[kind] * (1 + dice_below(dice, 4)) : 0;
}

void plan_draw(struct plan *plan, uint64_t seed, const struct toy_law *laws)
{
    struct dice dice = {.state = seed * UINT64_C(0xD1342543DE82EF95)};
    static const double deadline_ms[] = {2, 30, 200};

    memset(plan, 0, sizeof *plan);
    plan->seed = seed;
    plan->law = dice_below(&dice, PLAN_LAWS);
    plan->shards = dice_chance(&dice, 0.2) ? 2 : 1;
    plan->slots = 1 + dice_below(&dice, PLAN_SLOTS);
    plan->drafters = 1 + dice_below(&dice, PLAN_DRAFTERS);
    plan->requests = 1 + dice_below(&dice, PLAN_REQUESTS);
    draw_faults(plan, &dice);
    /* A drafter at its usual speed is in time: a draft is ten forwards or so, and it may have to end another one first. In peace the rare draft of
     * 32 tokens after many short ones must be, too: the least deadline is 20 ms. */
    plan->deadline_ms = plan->is_peaceful ? 200 : deadline_ms[dice_below(&dice, 3)];
    plan->draft_ns = dice_ns(&dice, 3000, plan->is_peaceful ? 200000 : (int64_t)(plan->deadline_ms * 1e6) / 80);
    plan->verify_ns = dice_ns(&dice, 50000, 4000000);
    plan->eos = dice_chance(&dice, 0.3) ? dice_below(&dice, laws[plan->law].tokens) : -1;
    for (int i = 0; i < plan->drafters; i++)
        plan->context[i] = dice_chance(&dice, 0.15) ? 8 + dice_below(&dice, TOY_CONTEXT - 8) : TOY_CONTEXT;
    for (int i = 0; i < plan->requests; i++) {
        draw_request(plan, &dice, &laws[plan->law], i);
        plan->arrival_ns[i] = (i > 0 ? plan->arrival_ns[i - 1] : 0) + (dice_chance(&dice, 0.5) ? 0 : dice_ns(&dice, 100000, 50000000));
    }
    plan->run_ahead = dice_chance(&dice, 0.5);
    plan->kinds = plan->drafters > 1 && dice_chance(&dice, 0.5) ? 2 + dice_below(&dice, plan->drafters - 1) : 1;
}

void plan_describe(const struct plan *plan, char *text, size_t size)
{
    const struct loop_faults *f = &plan->faults;

    snprintf(text, size,
             "%d drafters of %d kinds, %d slots, %d shards, %d requests, deadline %g ms, verify %.2f ms, draft %.3f ms; for %d rounds: lose %g, "
             "repeat %g, "
             "reorder %g, corrupt %g, truncate %g, delay to %g ms, outbox %d, kill %g, stall %g, slow %g, hostile %g%s",
             plan->drafters, plan->kinds, plan->slots, plan->shards, plan->requests, plan->deadline_ms, (double)plan->verify_ns / 1e6,
             (double)plan->draft_ns / 1e6, plan->rounds_of_faults, f->lose, f->repeat, f->reorder, f->corrupt, f->truncate, (double)f->delay_us / 1e3,
             f->outbox, plan->incident[INCIDENT_KILL], plan->incident[INCIDENT_STALL], plan->incident[INCIDENT_SLOW],
             plan->incident[INCIDENT_HOSTILE], plan->run_ahead ? ", runs ahead" : "");
}
