#include "common/sample/rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_rule__each_name_finds_its_own_row(void **state)
{
    int rules = 0;

    (void)state;
    for (; rule_name(rules) != NULL; rules++)
        assert_int_equal(rule_find(rule_name(rules), strlen(rule_name(rules))), rules);
    assert_int_equal(rules, ACCEPT_MODES);
    assert_int_equal(rule_find("rejection", 9), ACCEPT_REJECTION);
    assert_int_equal(rule_find("coupled", 7), ACCEPT_COUPLED);
}

static void test_rule__an_unknown_one_is_none(void **state)
{
    struct sampling sampling = sampling_default;

    (void)state;
    assert_int_equal(rule_find("multistage", 10), -1);
    assert_int_equal(rule_find("rejection", 6), -1);
    assert_int_equal(rule_find("", 0), -1);
    assert_null(rule_name(-1));
    assert_null(rule_name(ACCEPT_MODES));
    assert_null(rule_row(-1));
    assert_null(rule_row(ACCEPT_MODES));
    sampling.accept = ACCEPT_MODES;
    assert_null(rule_of(&sampling));
}

static void test_rule__greedy_holds_at_temperature_0_and_cannot_be_named(void **state)
{
    struct sampling sampling = sampling_default;

    (void)state;
    assert_int_equal(rule_find("greedy", 6), -1);
    for (int accept = 0; rule_name(accept) != NULL; accept++) {
        sampling.accept = accept;
        sampling.temperature = 0;
        if (rule_row(accept)->cold) {
            assert_ptr_equal(rule_of(&sampling), rule_row(accept));
            assert_false(rule_row(accept)->lossless); /* all that are are one */
        } else {
            assert_string_equal(rule_of(&sampling)->name, "greedy");
            assert_false(rule_of(&sampling)->depends_on_drafts || rule_of(&sampling)->needs_q);
        }
        sampling.temperature = 0.5;
        assert_ptr_equal(rule_of(&sampling), rule_row(accept));
        assert_string_equal(rule_of(&sampling)->name, rule_name(accept));
    }
}

static void assert_promises(int accept, int lossless, int depends_on_drafts)
{
    assert_int_equal(rule_row(accept)->lossless, lossless);
    assert_int_equal(rule_row(accept)->depends_on_drafts, depends_on_drafts);
}

/* `tandem check` finds a lossless one of either kind. */
static void test_rule__each_promises_what_it_keeps(void **state)
{
    (void)state;
    assert_promises(ACCEPT_REJECTION, 1, 1);
    assert_promises(ACCEPT_COUPLED, 1, 0);
    assert_promises(ACCEPT_WALK, 1, 0);
    assert_promises(ACCEPT_BLOCK, 1, 1);
    assert_promises(ACCEPT_CLASSIC, 1, 1);
    assert_promises(ACCEPT_LENIENCE, 0, 1);
    assert_promises(ACCEPT_THRESHOLD, 0, 1);
    assert_promises(ACCEPT_TYPICAL, 0, 1);
    assert_promises(ACCEPT_K_SEQUENTIAL, 1, 1);
    assert_promises(ACCEPT_TRAVERSAL, 1, 1);
}

/* What is written apart from the table says what the table says. */
static void test_rule__names_and_draws_are_those_of_the_rows(void **state)
{
    char names[256] = "";

    (void)state;
    for (int accept = 0; accept < ACCEPT_MODES; accept++) {
        struct sampling sampling = sampling_default;

        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", accept > 0 ? "|" : "", rule_name(accept));
        sampling.accept = accept;
        for (int warm = 0; warm < 2; warm++) {
            sampling.temperature = warm;
            assert_int_equal(rule_draw(&sampling), warm ? rule_of(&sampling)->draw : RULE_DRAWS_ARGMAX);
            assert_int_equal(rule_of(&sampling)->needs_q, rule_of(&sampling)->draw == RULE_DRAWS_Q);
            assert_true(!rule_of(&sampling)->matches || rule_of(&sampling)->draw != RULE_DRAWS_Q);
            for (int drafter = 1; drafter < 4; drafter++) /* what one draws says nothing of what another draws */
                for (int node = 2; node < SAMPLING_MAX_DRAFT; node++) {
                    struct sampling other = sampling;

                    other.drafter = drafter;
                    assert_int_equal(rule_coin(&other, 2), drafter * RULE_COINS + (int)rule_coin(&sampling, 2));
                    assert_int_equal(rule_tree_coin(&other, 2, node), drafter * RULE_COINS + (int)rule_tree_coin(&sampling, 2, node));
                    assert_true(rule_tree_coin(&sampling, SAMPLING_MAX_DRAFT - 1, node) < RULE_COINS);
                    assert_true(sampling_digest(&other) == sampling_digest(&sampling));
                }
            for (int depth = 0; depth < 3; depth++) {
                assert_int_equal(rule_coin(&sampling, depth), rule_of(&sampling)->looks_on ? depth : 0);
                for (int node = depth; node < SAMPLING_MAX_DRAFT; node++) /* other ones for each; a chain's are those of a chain */
                    assert_int_equal(rule_tree_coin(&sampling, depth, node), !rule_of(&sampling)->looks_on ? 0
                                                                             : node == depth               ? depth
                                                                                             : (depth + 1) * (SAMPLING_MAX_DRAFT + 1) + node);
            }
        }
    }
    assert_string_equal(names, RULE_NAMES);
    assert_int_equal(rule_find("exact, not", strlen("exact")), ACCEPT_WALK);
    assert_int_equal(rule_find("exac", strlen("exac")), -1);
}

static void assert_reads(const char *text, int accept, double lenience, double threshold, const char *written)
{
    struct rule_asked asked = {.accept = -1};
    struct sampling sampling = sampling_default;
    char again[RULE_TEXT];

    assert_true(rule_read(text, strlen(text), &asked));
    rule_set(&asked, &sampling);
    assert_int_equal(sampling.accept, accept);
    assert_true(sampling.lenience == lenience && sampling.threshold == threshold);
    rule_write(&asked, again);
    assert_string_equal(again, written);
}

/* A number goes where the rule's own is, and one that was not given leaves what is there. */
static void test_rule__a_text_has_the_rule_and_its_number(void **state)
{
    static const char *const wrong[] = {"block=1", "lenience=0", "lenience=2", "lenience=", "threshold=1", "lenience=inf", "lenience=-1", "=", ""};
    const double lenience = sampling_default.lenience, threshold = sampling_default.threshold;
    struct rule_asked asked = {.accept = 77, .number = 7};

    (void)state;
    assert_reads("block", ACCEPT_BLOCK, lenience, threshold, "block");
    assert_reads("lenience", ACCEPT_LENIENCE, lenience, threshold, "lenience");
    assert_reads("lenience=0.125", ACCEPT_LENIENCE, 0.125, threshold, "lenience=0.125");
    assert_reads("lenience=1e-1", ACCEPT_LENIENCE, 0.1, threshold, "lenience=0.1");
    assert_reads("threshold=0", ACCEPT_THRESHOLD, lenience, 0, "threshold=0");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(rule_read(wrong[i], strlen(wrong[i]), &asked));
    assert_true(asked.accept == 77 && asked.number == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule__each_name_finds_its_own_row), cmocka_unit_test(test_rule__names_and_draws_are_those_of_the_rows),
        cmocka_unit_test(test_rule__an_unknown_one_is_none),      cmocka_unit_test(test_rule__a_text_has_the_rule_and_its_number),
        cmocka_unit_test(test_rule__each_promises_what_it_keeps), cmocka_unit_test(test_rule__greedy_holds_at_temperature_0_and_cannot_be_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
