/* What a sweep plans: its lists, cells, the order of passes, and where the ranks are. */
#include "launch/bench/sweep/placement.h"
#include "launch/bench/sweep/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct plan plan;

static void test_plan__lists_are_read(void **state)
{
    struct plan_list list = {0};

    (void)state;
    assert_int_equal(plan_read_list("draft-lengths", "1,4,auto,0", 0, 32, 1, 1, &list), STATUS_OK);
    assert_int_equal(list.count, 4);
    assert_true(list.value[0] == 1 && list.value[1] == 4 && list.value[2] == PLAN_AUTO && list.value[3] == 0);
    assert_int_equal(plan_read_list("temperatures", "0,0.7", 0, 100, 0, 0, &list), STATUS_OK);
    assert_true(list.count == 2 && list.value[1] == 0.7);
    assert_int_equal(plan_read_list("draft-lengths", "2,auto,2,auto", 0, 32, 1, 1, &list), STATUS_OK);
    assert_true(list.count == 2 && list.value[0] == 2 && list.value[1] == PLAN_AUTO);
}

static void test_plan__wrong_lists_are_refused_and_leave_the_old(void **state)
{
    static const char *const wrong[] = {"",     ",",   "1,",
                                        "1,,2", "33",  "-1",
                                        "1.5",  "a",   "auto1",
                                        "1 2",  "1;2", "0x10000000000",
                                        "nan",  "inf", "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"};
    struct plan_list list = {.count = 1, .value = {7}};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(plan_read_list("draft-lengths", wrong[i], 0, 32, 1, 1, &list), STATUS_USAGE);
        assert_true(list.count == 1 && list.value[0] == 7);
    }
    assert_int_equal(plan_read_list("temperatures", "auto", 0, 100, 0, 0, &list), STATUS_USAGE);
}

static void test_plan__every_cell_has_a_solo_under_its_terms(void **state)
{
    struct plan_options options;

    (void)state;
    for (int quick = 0; quick < 2; quick++) {
        plan_defaults(quick, &options);
        assert_int_equal(plan_make(&options, &plan), STATUS_OK);
        for (int i = 0; i < plan.cells; i++) {
            const struct plan_cell *cell = &plan.cell[i], *solo = &plan.cell[cell->baseline];

            assert_true(solo->solo && cell->baseline <= i);
            assert_true(solo->temperature == cell->temperature && solo->rule.accept == cell->rule.accept && solo->rule.number == cell->rule.number &&
                        solo->sequences == cell->sequences);
        }
        assert_int_equal(plan_most_sequences(&plan), 4);
    }
}

static int has(const struct plan *cells, double temperature, int accept, int sequences, int draft_length)
{
    int found = 0;

    for (int i = 0; i < cells->cells; i++) {
        const struct plan_cell *cell = &cells->cell[i];

        found +=
            cell->temperature == temperature && cell->rule.accept == accept && cell->sequences == sequences && cell->draft_length == draft_length;
    }
    return found;
}

/* Nothing is drafted, and each step of the plan has one of as many sequences with as many rows each, once under its terms; where the lead chooses
 * there are some lengths to choose from. */
static void test_plan__what_calibrates_has_the_rows_of_every_cell(void **state)
{
    static struct plan calibration;
    struct plan_options options;

    (void)state;
    for (int everywhere = 0; everywhere < 2; everywhere++) {
        plan_defaults(0, &options);
        options.batch_everywhere = everywhere;
        assert_int_equal(plan_make(&options, &plan), STATUS_OK);
        plan_calibration(&plan, &calibration);
        for (int i = 0; i < calibration.cells; i++)
            assert_true(calibration.cell[i].solo && calibration.cell[i].baseline == i);
        for (int i = 0; i < plan.cells; i++) {
            const struct plan_cell *cell = &plan.cell[i];

            assert_int_equal(
                has(&calibration, cell->temperature, cell->rule.accept, cell->sequences, cell->draft_length > 0 ? cell->draft_length : 0), 1);
            for (int k = 1; cell->draft_length == PLAN_AUTO && k <= 8; k *= 2)
                assert_int_equal(has(&calibration, cell->temperature, cell->rule.accept, cell->sequences, k), 1);
        }
        assert_int_equal(has(&plan, 1, 0, 4, 0), everywhere);
        assert_int_equal(has(&plan, 0, 0, 4, 0), 1);
        assert_int_equal(has(&calibration, 0, 0, 4, 3), 0);
    }
}

/* At temperature 0 there is one of all that are greedy there, and one of each that is not. */
static void test_plan__rules_that_are_one_are_measured_once(void **state)
{
    struct plan_options options;

    (void)state;
    plan_defaults(0, &options);
    options.temperatures = (struct plan_list){.count = 2, .value = {0, 1}};
    assert_int_equal(plan_read_rules("accepts", "block,lenience,rejection,lenience,threshold", &options.accepts), STATUS_OK);
    assert_int_equal(plan_make(&options, &plan), STATUS_OK);
    for (int accept = 0; accept < ACCEPT_MODES; accept++) {
        int solos[2] = {0};

        for (int i = 0; i < plan.cells; i++)
            solos[plan.cell[i].temperature > 0] += plan.cell[i].solo && plan.cell[i].sequences == 1 && plan.cell[i].rule.accept == accept;
        assert_int_equal(solos[1], accept == ACCEPT_BLOCK || accept == ACCEPT_LENIENCE || accept == ACCEPT_REJECTION || accept == ACCEPT_THRESHOLD);
        assert_int_equal(solos[0], solos[1] && accept != ACCEPT_REJECTION);
    }
    assert_false(plan_is_lossless(&plan));
}

/* Rules after the first, in the quick form, and several sequences have one fixed length of those that were asked for; the first rule that is measured
 * has all. */
static void test_plan__few_lengths_are_some_of_those_asked_for(void **state)
{
    static const struct {
        struct plan_list asked;
        int few, has_auto;
    } expected[] = {{{3, {1, 2, 6}}, 2, 0}, {{2, {6, 8}}, 6, 0}, {{2, {4, PLAN_AUTO}}, 4, 1}, {{1, {PLAN_AUTO}}, PLAN_AUTO, 1}, {{1, {0}}, 0, 0}};
    struct plan_options options;

    (void)state;
    plan_defaults(1, &options);
    options.shape = TREE_OWN; /* so that rejection is left out */
    options.temperatures = (struct plan_list){.count = 1, .value = {1}};
    assert_int_equal(plan_read_rules("accepts", "rejection,walk,coupled", &options.accepts), STATUS_OK);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        options.shape = expected[i].asked.count > 1 ? TREE_OWN : TREE_CHAIN;
        options.draft_lengths = expected[i].asked;
        assert_int_equal(plan_make(&options, &plan), STATUS_OK);
        for (int c = 0, of_walk = 0, few = 0; c < plan.cells; c++) {
            const struct plan_cell *cell = &plan.cell[c];
            int is_few = cell->rule.accept == ACCEPT_COUPLED || cell->sequences > 1;

            few += !cell->solo && is_few && cell->sequences == 2;
            of_walk += !cell->solo && cell->rule.accept == ACCEPT_WALK && cell->sequences == 1;
            assert_true(cell->solo || !is_few || cell->draft_length == expected[i].few || (expected[i].has_auto && cell->draft_length == PLAN_AUTO));
            if (c + 1 == plan.cells && options.shape == TREE_OWN)
                assert_int_equal(of_walk, expected[i].asked.count - (expected[i].asked.value[1] == PLAN_AUTO));
            if (c + 1 == plan.cells) /* trees have no auto */
                assert_int_equal(few, options.shape == TREE_OWN ? 1 : (expected[i].few != PLAN_AUTO) + expected[i].has_auto);
        }
    }
}

/* Of trees no length is chosen, and only rules that decide about the shape are measured: the first of them with several sequences, too. */
static void test_plan__trees_have_the_rules_that_take_them(void **state)
{
    static const struct {
        enum tree_kind shape;
        int cold, rejection, walk, multistep, first; /* cells at temperature 0, and by these rules at 1 */
    } expected[] = {{TREE_CHAIN, 1, 1, 1, 1, ACCEPT_REJECTION},   {TREE_TOP_K, 1, 0, 1, 1, ACCEPT_REJECTION},
                    {TREE_DYNAMIC, 1, 0, 1, 0, ACCEPT_REJECTION}, {TREE_SEQUOIA, 1, 0, 1, 0, ACCEPT_REJECTION},
                    {TREE_IID, 0, 0, 0, 1, ACCEPT_MULTISTEP},     {TREE_OWN, 1, 0, 1, 0, ACCEPT_REJECTION}};
    struct plan_options options;
    char text[PLAN_TEXT];

    (void)state;
    plan_defaults(0, &options);
    options.temperatures = (struct plan_list){.count = 2, .value = {0, 1}};
    assert_int_equal(plan_read_rules("accepts", "rejection,walk,multistep", &options.accepts), STATUS_OK);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        int autos = 0;

        options.shape = expected[i].shape;
        assert_int_equal(plan_make(&options, &plan), STATUS_OK);
        assert_int_equal(has(&plan, 0, ACCEPT_REJECTION, 1, 0), expected[i].cold);
        assert_int_equal(has(&plan, 1, ACCEPT_REJECTION, 1, 0), expected[i].rejection);
        assert_int_equal(has(&plan, 1, ACCEPT_WALK, 1, 0), expected[i].walk);
        assert_int_equal(has(&plan, 1, ACCEPT_MULTISTEP, 1, 0), expected[i].multistep);
        for (int c = 0; c < plan.cells; c++) {
            autos += plan.cell[c].draft_length == PLAN_AUTO;
            assert_true(plan.cell[c].sequences == 1 || plan.cell[c].rule.accept == expected[i].first);
        }
        assert_int_equal(autos > 0, expected[i].shape == TREE_CHAIN);
        plan_left_out(&plan, text);
        assert_int_equal(*text == '\0', expected[i].shape == TREE_CHAIN); /* which all decide about */
    }
    options.shape = TREE_TOP_K;
    assert_int_equal(plan_make(&options, &plan), STATUS_OK);
    plan_left_out(&plan, text);
    assert_string_equal(text, "rejection at 1");
    options.shape = TREE_IID;
    assert_int_equal(plan_make(&options, &plan), STATUS_OK);
    plan_left_out(&plan, text);
    assert_string_equal(text, "rejection at 0, walk at 0, multistep at 0, rejection at 1, walk at 1");
    options.temperatures.count = 1;
    assert_int_equal(plan_make(&options, &plan), STATUS_USAGE);
    options.shape = TREE_TOP_K;
    options.draft_lengths = (struct plan_list){.count = 1, .value = {PLAN_AUTO}};
    assert_int_equal(plan_make(&options, &plan), STATUS_USAGE);
    options.shape = TREE_CHAIN;
    assert_int_equal(plan_make(&options, &plan), STATUS_OK);
}

/* The paper's Table 5: a group for each number, at temperature 0, too, where a lossless rule is greedy. Their cells go to the sweep by that text. */
static void test_plan__a_rule_is_measured_with_each_of_its_numbers(void **state)
{
    static const char *const expected[] = {"rejection", "lenience=0.5", "lenience=0.1"};
    struct plan_options options;

    (void)state;
    plan_defaults(0, &options);
    options.draft_lengths.count = options.batches.count = 1;
    assert_int_equal(plan_read_rules("accepts", "rejection,lenience=0.5,lenience=0.1,lenience=.5", &options.accepts), STATUS_OK);
    assert_int_equal(options.accepts.count, 4);
    assert_int_equal(plan_make(&options, &plan), STATUS_OK);
    assert_int_equal(plan.cells, 2 * 3 * 2); /* temperatures, rules, solo beside its drafts */
    for (int passes = 0; passes < 2; passes++) {
        json_t *file = passes ? plan_passes(&plan, "/x") : plan_cells(&plan), *cells = passes ? json_object_get(file, "passes") : file;

        for (int i = 0; i < plan.cells; i++)
            assert_string_equal(json_string_value(json_object_get(json_array_get(cells, (size_t)i), "accept")), expected[i / 2 % 3]);
        json_decref(file);
    }
}

static void test_plan__wrong_rules_are_refused_and_leave_the_old(void **state)
{
    static const char *const wrong[] = {"",
                                        ",",
                                        "block,",
                                        "multistage",
                                        "lenience=",
                                        "lenience=0",
                                        "lenience=1.5",
                                        "lenience=x",
                                        "lenience=nan",
                                        "lenience= 0.5",
                                        "lenience=0.5 ",
                                        "threshold=1",
                                        "threshold=-0.1",
                                        "block=1",
                                        "=1",
                                        "rejection=0.5",
                                        "lenience=0.1000000000000000000000000000000000000000000000000000000000000001"};
    struct plan_rules rules = {.count = 1, .rule = {{.accept = ACCEPT_WALK, .number = 7}}};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(plan_read_rules("accepts", wrong[i], &rules), STATUS_USAGE);
        assert_true(rules.count == 1 && rules.rule[0].accept == ACCEPT_WALK && rules.rule[0].number == 7);
    }
}

static void test_plan__drawn_verdicts_know_one_rule(void **state)
{
    struct plan_options options;

    (void)state;
    plan_defaults(1, &options);
    options.synthetic = 1;
    assert_int_equal(plan_make(&options, &plan), STATUS_OK);
    for (int i = 0; i < plan.cells; i++)
        assert_int_equal(plan.cell[i].rule.accept, 0);
}

/* A warm-up of each, then forward and backward in turns. */
static void test_plan__passes_take_turns(void **state)
{
    struct plan_options options;
    json_t *file, *passes;

    (void)state;
    plan_defaults(1, &options);
    options.repetitions = 3;
    assert_int_equal(plan_make(&options, &plan), STATUS_OK);
    file = plan_passes(&plan, "/x/passes.jsonl");
    assert_true(json_number_value(json_object_get(json_object_get(file, "more"), "noise_limit")) == options.noise_limit);
    assert_true(json_number_value(json_object_get(json_object_get(file, "more"), "seconds")) == options.extra_s && options.extra_s > 0);
    passes = json_object_get(file, "passes");
    assert_int_equal(json_array_size(passes), 4 * plan.cells);
    for (int i = 0; i < 4 * plan.cells; i++) {
        json_t *pass = json_array_get(passes, (size_t)i);
        int block = i / plan.cells, at = i % plan.cells;

        assert_int_equal(json_is_true(json_object_get(pass, "warm_up")), block == 0);
        assert_int_equal(json_integer_value(json_object_get(pass, "cell")), block == 2 ? plan.cells - 1 - at : at);
        assert_int_equal(json_integer_value(json_object_get(pass, "repetition")), block == 0 ? 0 : block - 1);
        assert_int_equal(json_integer_value(json_object_get(pass, "baseline")),
                         plan.cell[json_integer_value(json_object_get(pass, "cell"))].baseline);
    }
    json_decref(file);
}

static void test_plan__too_many_cells_are_refused(void **state)
{
    struct plan_options options;

    (void)state;
    plan_defaults(0, &options);
    options.draft_lengths.count = options.temperatures.count = options.batches.count = PLAN_MOST;
    for (int i = 0; i < PLAN_MOST; i++)
        options.draft_lengths.value[i] = options.temperatures.value[i] = options.batches.value[i] = i + 1;
    for (int accept = 0; accept < ACCEPT_MODES; accept++)
        options.accepts.rule[accept] = (struct rule_asked){.accept = accept, .number = -1};
    options.accepts.count = 2;
    assert_int_equal(plan_make(&options, &plan), STATUS_OK); /* 2 x 16 x 17 + 15 x 2: auto is not among them */
    assert_int_equal(plan.cells, 2 * 16 * 17 + 15 * 2);
    options.accepts.count = ACCEPT_MODES;
    assert_int_equal(plan_make(&options, &plan), STATUS_USAGE);
}

static void test_placement__one_host_is_one_placement(void **state)
{
    static const char *const one[] = {NULL, "node1", "node1:4", "node1:1,node1:2"};
    struct placement placements[PLACEMENT_MOST];
    int count;

    (void)state;
    for (size_t i = 0; i < sizeof one / sizeof *one; i++) {
        struct options run = {.launch.hosts = one[i]};

        assert_int_equal(placement_list(&run, placements, &count), STATUS_OK);
        assert_int_equal(count, 1);
        assert_string_equal(placements[0].hosts, "");
    }
}

static void test_placement__two_hosts_are_compared_with_the_last_one(void **state)
{
    struct options run = {.launch.hosts = "node1:1,node2:2"};
    struct placement placements[PLACEMENT_MOST];
    int count;

    (void)state;
    assert_int_equal(placement_list(&run, placements, &count), STATUS_OK);
    assert_int_equal(count, 2);
    assert_string_equal(placements[0].name, "same-node");
    assert_string_equal(placements[0].hosts, "node2:3");
    assert_string_equal(placements[1].name, "other-node");
    assert_string_equal(placements[1].hosts, "");
    run.launch.hosts = "node1:0,node2:0";
    assert_int_equal(placement_list(&run, placements, &count), STATUS_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan__lists_are_read),
        cmocka_unit_test(test_plan__wrong_lists_are_refused_and_leave_the_old),
        cmocka_unit_test(test_plan__every_cell_has_a_solo_under_its_terms),
        cmocka_unit_test(test_plan__what_calibrates_has_the_rows_of_every_cell),
        cmocka_unit_test(test_plan__rules_that_are_one_are_measured_once),
        cmocka_unit_test(test_plan__few_lengths_are_some_of_those_asked_for),
        cmocka_unit_test(test_plan__trees_have_the_rules_that_take_them),
        cmocka_unit_test(test_plan__a_rule_is_measured_with_each_of_its_numbers),
        cmocka_unit_test(test_plan__wrong_rules_are_refused_and_leave_the_old),
        cmocka_unit_test(test_plan__drawn_verdicts_know_one_rule),
        cmocka_unit_test(test_plan__passes_take_turns),
        cmocka_unit_test(test_plan__too_many_cells_are_refused),
        cmocka_unit_test(test_placement__one_host_is_one_placement),
        cmocka_unit_test(test_placement__two_hosts_are_compared_with_the_last_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
