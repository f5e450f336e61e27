#include "tests/simulation/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void open_target(struct stage *stage, struct stage_target *target, int shards)
{
    toy_hub_init(&target->hub, target->team, shards, target->group);
    for (int r = 0; r < shards; r++) {
        toy_model_init(&target->model[r], &stage->law[0], 0, &target->group[r], stage->context, STAGE_ASKED);
        assert_int_equal(team_open(&target->team[r], &target->model[r].model, PLAN_SLOTS, STAGE_ASKED, STAGE_IDS), STATUS_OK);
    }
}

void stage_open(struct stage *stage)
{
    const struct backend_options options = {.threads = 1, .max_rows = STAGE_ASKED};

    memset(stage, 0, sizeof *stage);
    for (int i = 0; i < PLAN_LAWS; i++) {
        static const double overlap[] = {0.95, 0.8, 0.5};
        const struct toy_terms terms = {
            .tokens = i % 2 == 0 ? 4 : 16, .overlap = overlap[i / 2 % 3], .zeros = i >= PLAN_LAWS / 2, .seed = (uint64_t)i + 1};

        toy_law_fill(&stage->law[i], &terms);
    }
    assert_int_equal(backend_cpu.open(&options, &stage->context), STATUS_OK);
    assert_int_equal(tokenizer_open(TANDEM_SOURCE_DIR "/launch/demo/target", 0, &stage->tokenizer), STATUS_OK);
    group_open_self(&stage->alone);
    for (int i = 0; i < STAGE_SHARDS; i++)
        open_target(stage, &stage->target[i], i + 1);
    for (int i = 0; i < PLAN_DRAFTERS; i++) {
        toy_model_init(&stage->draft_model[i], &stage->law[0], 1, &stage->alone, stage->context, STAGE_ASKED);
        assert_int_equal(draft_open_model(&stage->draft[i], &stage->draft_model[i].model, PLAN_SLOTS, PLAN_SUPPORT, 1), STATUS_OK);
    }
}

void stage_close(struct stage *stage)
{
    for (int i = 0; i < PLAN_DRAFTERS; i++)
        draft_close(&stage->draft[i]);
    for (int i = 0; i < STAGE_SHARDS; i++)
        for (int r = 0; r <= i; r++)
            team_close(&stage->target[i].team[r]);
    tokenizer_close(stage->tokenizer);
    backend_cpu.close(stage->context);
}

static void set_target(struct stage_target *target, const struct toy_law *law, int eos, int shards)
{
    target->hub.posts = 0;
    for (int r = 0; r < shards; r++) {
        struct config *config = &target->model[r].model.config;

        target->model[r].law = law;
        config->eos_count = eos >= 0;
        if (eos >= 0)
            config->eos[0] = law->id[eos];
    }
}

void stage_set(struct stage *stage, const struct plan *plan)
{
    const struct toy_law *law = &stage->law[plan->law];

    for (int i = 0; i < STAGE_SHARDS; i++)
        set_target(&stage->target[i], law, plan->eos, i + 1);
    for (int i = 0; i < PLAN_DRAFTERS; i++) {
        stage->draft_model[i].law = law;
        stage->draft_model[i].is_draft = i % plan->kinds == 0;
    }
}

void stage_renew_draft(struct stage *stage, int drafter)
{
    draft_close(&stage->draft[drafter]);
    assert_int_equal(draft_open_model(&stage->draft[drafter], &stage->draft_model[drafter].model, PLAN_SLOTS, PLAN_SUPPORT, 1), STATUS_OK);
}
