/* A shard and a drafter whose backend answers with the head, beside ones that take all from whole rows of logits: the same bits. */
#include "tests/support/draft_rig.h"
#include "tests/support/golden.h"
#include "verifier/team/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SLOTS = 6, ROWS = 4, OUTPUTS = SLOTS * ROWS, LISTED = 5, ROUNDS = 6 };

static char model_path[GOLDEN_PATH];
static struct backend from_rows; /* the same, but that it answers nothing */

/* Greedy, coupled at 1 and below, rejection over all and truncated, and one that penalties leave to the host. */
static struct sampling sampling_of(int slot)
{
    struct sampling sampling = sampling_default;

    sampling.seed = 9;
    sampling.temperature = slot == 0 ? 0.0 : slot == 1 ? 1.0 : 0.8;
    sampling.accept = slot == 1 || slot == 2 ? ACCEPT_COUPLED : ACCEPT_REJECTION;
    if (slot == 4)
        sampling.top_p = 0.9;
    if (slot == 5)
        sampling.repetition_penalty = 1.3;
    return sampling;
}

/* A verifier's shard, of a model of its own. */
struct side {
    struct group self;
    struct model *model;
    struct shard shard;
    char *evidence;
};

/* Four tokens of each slot, all asked; the rows of a slot but the last have a support in mode rejection. */
static void build(struct step *step)
{
    int asked = 0, ids = 0;

    step->words = calloc(1, step_bytes(OUTPUTS, OUTPUTS, OUTPUTS * LISTED));
    assert_non_null(step->words);
    step_layout(step, OUTPUTS, OUTPUTS, 3 * (ROWS - 1) * LISTED);
    for (int s = 0; s < SLOTS; s++) {
        const int32_t tokens[ROWS] = {3 + s, 40 - s, 7, 90};
        int first = step_add_chain(step, s, 0, tokens, ROWS);

        for (int r = 0; r < ROWS; r++) {
            for (int i = 0; i < LISTED && s >= 3 && r < ROWS - 1; i++)
                step->id[ids++] = s + 2 * r + i * 19;
            step->output_row[asked] = first + r;
            step->support_first[++asked] = ids;
        }
    }
}

static void side_open(struct side *side, const struct backend *backend, const struct step *step)
{
    group_open_self(&side->self);
    const struct model_options options = {.threads = 2, .max_rows = OUTPUTS, .backend = backend};
    assert_int_equal(model_open(model_path, &side->self, &options, &side->model), STATUS_OK);
    assert_int_equal(shard_open(&side->shard, side->model, SLOTS, OUTPUTS), STATUS_OK);
    for (int s = 0; s < SLOTS; s++) {
        struct slot_terms terms = {.sampling = sampling_of(s), .request = 40 + (uint32_t)s, .prompt_count = 1, .slot = s};

        bias_init(&terms.bias);
        shard_open_slot(&side->shard, &terms);
    }
    assert_non_null(side->evidence = calloc(1, shard_evidence_bytes(&side->shard, step)));
    assert_int_equal(shard_step(&side->shard, step, side->evidence), STATUS_OK);
}

static void side_close(struct side *side)
{
    free(side->evidence);
    shard_close(&side->shard);
    model_close(side->model);
    group_close(&side->self);
}

static void draw(struct side *side, const struct step *step, struct evidence_winner *winners)
{
    struct draw_order orders[OUTPUTS];

    for (int i = 0; i < OUTPUTS; i++)
        orders[i] = (struct draw_order){.output = OUTPUTS - 1 - i, .residual = i % 2};
    assert_int_equal(shard_draws(&side->shard, step, orders, OUTPUTS, winners), STATUS_OK);
}

static void note(struct side *side, const struct step *step)
{
    struct commit_note notes[OUTPUTS];

    for (int i = 0; i < OUTPUTS; i++)
        notes[i] = (struct commit_note){.output = i, .token = 3 * i + 1};
    assert_int_equal(shard_note(&side->shard, step, notes, OUTPUTS), STATUS_OK);
}

static void test_cpu_answers__a_shard_tells_what_whole_rows_tell(void **state)
{
    static struct side with, without;
    struct evidence_winner winners[2][OUTPUTS];
    struct step step;

    (void)state;
    build(&step);
    side_open(&with, &backend_cpu, &step);
    side_open(&without, &from_rows, &step);
    assert_memory_equal(with.evidence, without.evidence, shard_evidence_bytes(&with.shard, &step));
    draw(&with, &step, winners[0]);
    draw(&without, &step, winners[1]);
    assert_memory_equal(winners[0], winners[1], sizeof winners[0]);
    note(&with, &step);
    note(&without, &step);
    assert_true(with.shard.hash != 0 && with.shard.hash == without.shard.hash);
    for (int i = 0; i < OUTPUTS; i++) {
        const float *a, *b;

        assert_int_equal(shard_row(&with.shard, &step, i, &a), STATUS_OK);
        assert_int_equal(shard_row(&without.shard, &step, i, &b), STATUS_OK);
        assert_memory_equal(a, b, (size_t)with.model->vocab_count * sizeof *a);
    }
    side_close(&with);
    side_close(&without);
    free(step.words);
}

/* Two drafts for the same place behind three committed tokens, or one of them alone: the evidence of its row. */
static void evidence_of(struct shard *shard, const int32_t *siblings, int count, int which, struct evidence_winner *evidence)
{
    static const int32_t committed[] = {5, 17, 60};
    struct evidence_winner both[2];
    struct step step = {.words = calloc(1, step_bytes(OUTPUTS, OUTPUTS, 0))};

    assert_non_null(step.words);
    step_layout(&step, 3 + count, count, 0);
    step_add_chain(&step, 0, 0, committed, 3);
    for (int i = 0; i < count; i++) {
        int row = step_add_chain(&step, 0, 3 + i, &siblings[i], 1);

        step.rows.position[row] = 3;
        step.rows.base[row] = 3;
        step.rows.ancestors[row] = UINT64_C(1) << i;
        step.output_row[i] = row;
        step.support_first[i + 1] = 0;
    }
    assert_int_equal(shard_step(shard, &step, (char *)both), STATUS_OK);
    *evidence = both[which];
    free(step.words);
}

static void test_cpu_answers__penalties_of_a_draft_do_not_see_its_siblings(void **state)
{
    static struct side side;
    struct slot_terms terms = {.sampling = sampling_default, .prompt_count = 1};
    struct evidence_winner alone, beside;
    struct step step;

    (void)state;
    build(&step);
    side_open(&side, &from_rows, &step);
    terms.sampling.presence_penalty = 2; /* greedy */
    bias_init(&terms.bias);
    shard_open_slot(&side.shard, &terms);
    evidence_of(&side.shard, (int32_t[]){7}, 1, 0, &alone);
    for (int32_t sibling = 0; sibling < 120; sibling++) {
        evidence_of(&side.shard, (int32_t[]){sibling, 7}, 2, 1, &beside);
        assert_memory_equal(&beside, &alone, sizeof alone);
    }
    evidence_of(&side.shard, (int32_t[]){alone.token, 7}, 2, 1, &beside); /* which would be penalised, were it seen */
    assert_memory_equal(&beside, &alone, sizeof alone);
    side_close(&side);
    free(step.words);
}

/* One draft is accepted, and another token follows. */
static void draft_round(struct draft_rig *rig, int round)
{
    draft_rig_propose(rig);
    for (int s = 0; s < SLOTS; s++)
        draft_rig_commit(rig, s, 1, (11 * s + round) % 128, 1 + (round + s) % 4);
}

static void compare_drafts(const struct draft_output *with, const struct draft_output *without)
{
    assert_true(with->count > 0 && with->count == without->count);
    assert_memory_equal(with->token, without->token, (size_t)with->count * sizeof *with->token);
    for (int k = 0; k < with->count; k++) {
        size_t count = (size_t)with->q[k].count;

        assert_int_equal(with->q[k].count, without->q[k].count);
        assert_memory_equal(with->q[k].id, without->q[k].id, count * sizeof *with->q[k].id);
        assert_memory_equal(with->q[k].weight, without->q[k].weight, count * sizeof *with->q[k].weight);
    }
}

static void test_cpu_answers__a_drafter_draws_what_it_draws_from_whole_rows(void **state)
{
    static struct draft_rig with, without;

    (void)state;
    draft_rig_open(&with, model_path, &backend_cpu, 2, SLOTS, sampling_of);
    draft_rig_open(&without, model_path, &from_rows, 2, SLOTS, sampling_of);
    for (int round = 0; round < ROUNDS; round++) {
        draft_round(&with, round);
        draft_round(&without, round);
        for (int s = 0; s < SLOTS; s++)
            compare_drafts(&with.output[s], &without.output[s]);
    }
    draft_rig_close(&with);
    draft_rig_close(&without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_answers__a_shard_tells_what_whole_rows_tell),
        cmocka_unit_test(test_cpu_answers__penalties_of_a_draft_do_not_see_its_siblings),
        cmocka_unit_test(test_cpu_answers__a_drafter_draws_what_it_draws_from_whole_rows),
    };

    golden_path("tests/golden/models/qwen3", model_path);
    from_rows = backend_cpu;
    from_rows.output.ask = NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
