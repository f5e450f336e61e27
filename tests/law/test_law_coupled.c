/* Layer 4: greedy output, and that of each rule which compares drafts with the target's own token, is the solo output, token for token, whatever was
 * drafted, lost, batched or cut into shards; on the same configurations as the joint law. No statistics. */
#include "tests/law/budget.h"
#include "tests/law/law_options.h"
#include "tests/law/toy_settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { LENGTH = 6, BEYOND = 3, MOST_REQUESTS = 20000, DEFAULT_REQUESTS = 1500, QUICK_REQUESTS = 200 };

static struct law_options options;
static struct toy_law law;
static int32_t solo[MOST_REQUESTS][LENGTH];
static int64_t drafted, accepted;

static void keep_solo(void *user, uint32_t request, const int32_t *tokens)
{
    (void)user;
    memcpy(solo[request], tokens, sizeof solo[request]);
}

static void compare_with_solo(void *user, uint32_t request, const int32_t *tokens)
{
    (void)user;
    assert_memory_equal(solo[request], tokens, sizeof solo[request]);
}

static void count_outcome(void *user, const struct sequence *sequence, const struct outcome *outcome)
{
    (void)user;
    (void)sequence;
    drafted += outcome->drafted;
    accepted += outcome->accepted;
}

static int count_of_requests(void)
{
    if (options.is_quick || BUDGET_SANITIZED)
        return QUICK_REQUESTS;
    return options.is_long ? MOST_REQUESTS : DEFAULT_REQUESTS;
}

/* Solo on one shard in one slot; then as the setting says, and with each other draft length. */
static void expect_solo(struct toy_setting *setting)
{
    struct toy_run run = setting->run, plain;
    struct toy_round round = {.law = &law, .run = &plain, .on_end = keep_solo};

    run.length = LENGTH;
    run.beyond = BEYOND;
    run.count = count_of_requests();
    plain = run;
    plain.draft_length = 0;
    plain.shards = plain.slots = 1;
    toy_law_fill(&law, &setting->terms);
    toy_round_run(&round, NULL);
    round = (struct toy_round){.law = &law, .run = &run, .on_end = compare_with_solo, .on_outcome = count_outcome};
    toy_round_run(&round, NULL);
    run.draft_length = run.draft_length % 6 + 1;
    run.shards = run.shards == 4 ? 1 : 2 * run.shards;
    toy_round_run(&round, NULL);
}

/* step: of the settings, every so many-th is run. */
static void expect_solo_with(int accept, int step)
{
    for (int i = options.part; i < TOY_SETTINGS; i += options.parts * step) {
        struct toy_setting setting;

        toy_setting_fill(&setting, i, options.seed);
        setting.run.sampling.accept = accept;
        drafted = accepted = 0;
        expect_solo(&setting);
        assert_true(accepted > 0 && accepted < drafted); /* else nothing was shown */
    }
}

static void test_law_coupled__gives_the_solo_tokens(void **state)
{
    (void)state;
    expect_solo_with(ACCEPT_COUPLED, 1);
}

static void test_law_coupled__walk_gives_the_solo_tokens(void **state)
{
    (void)state;
    expect_solo_with(ACCEPT_WALK, options.is_wide || options.is_long ? 1 : 5);
}

static void test_law_coupled__greedy_gives_the_solo_tokens(void **state)
{
    (void)state;
    for (int i = options.part; i < TOY_SETTINGS; i += options.parts) {
        struct toy_setting setting;

        toy_setting_fill(&setting, i, options.seed);
        setting.run.sampling.temperature = 0;
        setting.run.count = 1;
        expect_solo(&setting);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_law_coupled__gives_the_solo_tokens),
        cmocka_unit_test(test_law_coupled__walk_gives_the_solo_tokens),
        cmocka_unit_test(test_law_coupled__greedy_gives_the_solo_tokens),
    };

    options = law_options_read(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
