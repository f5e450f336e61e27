/* The shape that the lead chooses against machines on which it is known what each gives: no clock, no chance but seeded dice. */
#include "verifier/round/adaptive_shape.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { ROUNDS = 4000, STEPS = 5 };

struct machine {
    const char *name;
    double row_us;          /* that a step of one row takes; */
    double more_us;         /* each further row */
    double level_us;        /* a draft of a chain, and a level of a tree: one for each doubling */
    double alpha;           /* of a chain's drafts */
    double gain[TREE_AUTO]; /* of a doubling of a tree's drafts, in tokens beyond 1 + alpha */
    enum tree_kind best;    /* TREE_AUTO: no drafts are */
};

static const struct machine machines[] = {
    {"rows cost nothing, trees are right", 1000, 3, 30, 0.6, {[TREE_DYNAMIC] = 0.7, [TREE_SEQUOIA] = 0.4, [TREE_TOP_K] = 0.3}, TREE_DYNAMIC},
    {"counted shares are better", 1000, 3, 30, 0.6, {[TREE_DYNAMIC] = 0.3, [TREE_SEQUOIA] = 0.8, [TREE_TOP_K] = 0.4}, TREE_SEQUOIA},
    {"one shape for all", 1000, 3, 30, 0.6, {[TREE_DYNAMIC] = 0.3, [TREE_SEQUOIA] = 0.3, [TREE_TOP_K] = 0.9}, TREE_TOP_K},
    {"a surer chain", 1000, 40, 30, 0.9, {[TREE_DYNAMIC] = 0.4, [TREE_SEQUOIA] = 0.3, [TREE_TOP_K] = 0.3}, TREE_CHAIN},
    {"no drafts pay", 1000, 250, 150, 0.3, {[TREE_DYNAMIC] = 0.2, [TREE_SEQUOIA] = 0.2, [TREE_TOP_K] = 0.2}, TREE_AUTO},
};
enum { MACHINES = sizeof machines / sizeof *machines };

static double tokens_of(const struct machine *machine, enum tree_kind kind, int drafts)
{
    if (kind == TREE_CHAIN || drafts == 0)
        return adaptive_expected_tokens(machine->alpha, drafts);
    return 1 + machine->alpha + machine->gain[kind] * log2(drafts);
}

static double work_us(const struct machine *machine, int drafts)
{
    return machine->row_us + machine->more_us * drafts;
}

static double wait_us(const struct machine *machine, enum tree_kind kind, int drafts)
{
    return drafts == 0 ? 0 : machine->level_us * (kind == TREE_CHAIN ? drafts : 1 + log2(drafts));
}

static double rate(const struct machine *machine, enum tree_kind kind, int drafts)
{
    return tokens_of(machine, kind, drafts) / (work_us(machine, drafts) + wait_us(machine, kind, drafts));
}

/* Of any fixed length or size. */
static double best_rate(const struct machine *machine)
{
    double best = rate(machine, TREE_CHAIN, 0);

    for (int kind = TREE_CHAIN; kind <= TREE_SEQUOIA; kind++)
        for (int drafts = 1; drafts <= (kind == TREE_CHAIN ? (int)ADAPTIVE_MOST : 63); drafts++)
            best = fmax(best, rate(machine, (enum tree_kind)kind, drafts));
    return best;
}

struct job {
    const struct machine *machine;
    struct adaptive adaptive;
    struct adaptive_shape shape;
    uint64_t dice;
    int length, before;
    double us, tokens;
    int rounds[TREE_AUTO], late[TREE_AUTO]; /* with drafts of each shape; those of the second half */
};

static int happens(struct job *job, double probability)
{
    job->dice = job->dice * 6364136223846793005u + 1442695040888963407u;
    return (double)(job->dice >> 11) * 0x1p-53 < probability;
}

static int stand(struct job *job, enum tree_kind kind)
{
    double more = tokens_of(job->machine, kind, job->length) - 1;
    int accepted = 0;

    if (kind != TREE_CHAIN)
        return (int)more + happens(job, more - floor(more));
    while (accepted < job->length && happens(job, job->machine->alpha))
        accepted++;
    return accepted;
}

static void take_round(struct job *job, int number)
{
    enum tree_kind kind = adaptive_shape_now(&job->shape);
    int accepted = stand(job, kind);
    struct adaptive_round round = {.sequences = 1,
                                   .rows = job->length + 1,
                                   .longest = job->length,
                                   .tokens = accepted + 1,
                                   .caught_up = job->length > 0 && job->before == 0,
                                   .work_us = work_us(job->machine, job->length),
                                   .wait_us = wait_us(job->machine, kind, job->length)};

    job->us += round.work_us + round.wait_us;
    job->tokens += round.tokens;
    job->rounds[kind] += job->length > 0;
    job->late[kind] += job->length > 0 && 2 * number >= ROUNDS;
    adaptive_add_verdict(&job->adaptive, job->length, accepted);
    adaptive_add_round(&job->adaptive, &round);
    adaptive_shape_turn(&job->shape, &job->adaptive, 1);
    assert_int_equal(job->adaptive.tokens.is_tree, adaptive_shape_now(&job->shape) != TREE_CHAIN);
    job->before = job->length;
    job->length = adaptive_choose(&job->adaptive, 1);
}

static void run(struct job *job, const struct machine *machine, int ranks)
{
    *job = (struct job){.machine = machine};
    adaptive_shape_begin(&job->shape, ranks);
    adaptive_add_draft_step(&job->adaptive, (struct adaptive_draft_step){.rows = 1, .one_us = machine->level_us, .all_us = machine->level_us});
    for (int i = 0; i < STEPS && adaptive_work_warm_up_rows(i) <= ADAPTIVE_START + 1; i++)
        adaptive_work_add_step(&job->adaptive.work, adaptive_work_warm_up_rows(i), work_us(machine, adaptive_work_warm_up_rows(i) - 1));
    job->length = adaptive_choose(&job->adaptive, 1);
    for (int i = 0; i < ROUNDS; i++)
        take_round(job, i);
}

static void test_adaptive_shape__the_fastest_one_is_found_and_kept(void **state)
{
    (void)state;
    for (int m = 0; m < MACHINES; m++) {
        const struct machine *machine = &machines[m];
        int drafted = 0, late = 0;
        struct job job;

        run(&job, machine, 1);
        for (int kind = 0; kind < TREE_AUTO; kind++) {
            drafted += job.rounds[kind];
            late += job.late[kind];
        }
        print_message("%s: chain %d, top-k %d, dynamic %d, sequoia %d; %.3f of the best\n", machine->name, job.rounds[TREE_CHAIN],
                      job.rounds[TREE_TOP_K], job.rounds[TREE_DYNAMIC], job.rounds[TREE_SEQUOIA], job.tokens / job.us / best_rate(machine));
        assert_true(job.tokens / job.us > 0.9 * best_rate(machine));
        if (machine->best == TREE_AUTO) {
            assert_in_range(drafted, 4, ROUNDS / 20);
        } else {
            assert_true(job.late[machine->best] > 0.9 * late && drafted > 0.9 * ROUNDS);
            assert_int_equal(adaptive_shape_best(&job.shape), machine->best);
            for (int kind = 0; kind <= TREE_SEQUOIA; kind++)
                assert_true(job.rounds[kind] >= 16); /* each had its trial */
        }
    }
}

/* Trees of copies have one shape. */
static void test_adaptive_shape__of_copies_there_are_two(void **state)
{
    struct job job;

    (void)state;
    run(&job, &machines[0], 0);
    assert_int_equal(job.rounds[TREE_TOP_K] + job.rounds[TREE_SEQUOIA], 0);
    assert_true(job.rounds[TREE_CHAIN] >= 16 && job.late[TREE_DYNAMIC] > 0.9 * ROUNDS / 2);
}

/* Where drafting stopped the next probe is of another shape, as long as one was never tried. */
static void test_adaptive_shape__each_is_probed_where_none_pays(void **state)
{
    struct job job;

    (void)state;
    run(&job, &machines[MACHINES - 1], 1);
    for (int kind = 0; kind <= TREE_SEQUOIA; kind++)
        assert_true(job.rounds[kind] > 0);
}

static void test_adaptive_shape__nothing_is_changed_where_there_is_no_choice(void **state)
{
    struct adaptive_shape shape = {0}, before = {0};
    struct adaptive adaptive = {.drafts = 1, .tokens.is_tree = 1}, same = adaptive;

    (void)state;
    for (int i = 0; i < 100; i++)
        adaptive_shape_turn(&shape, &adaptive, 1);
    assert_memory_equal(&shape, &before, sizeof shape);
    assert_memory_equal(&adaptive, &same, sizeof adaptive);
    assert_int_equal(adaptive_shape_now(&shape), TREE_CHAIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adaptive_shape__the_fastest_one_is_found_and_kept),
        cmocka_unit_test(test_adaptive_shape__of_copies_there_are_two),
        cmocka_unit_test(test_adaptive_shape__each_is_probed_where_none_pays),
        cmocka_unit_test(test_adaptive_shape__nothing_is_changed_where_there_is_no_choice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
