/* Rounds as text. */
#include "verifier/job/explain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct tokenizer *tokenizer;

static int open_tokenizer(void **state)
{
    (void)state;
    return tokenizer_open(TANDEM_SOURCE_DIR "/launch/demo/target/tokenizer.json", 0, &tokenizer) != STATUS_OK;
}

static int close_tokenizer(void **state)
{
    (void)state;
    tokenizer_close(tokenizer);
    return 0;
}

static int32_t token(const char *text)
{
    int32_t found = tokenizer_find(tokenizer, text);

    assert_true(found >= 0);
    return found;
}

static void assert_says(const struct explained *explained, int kept, int colour, const char *expected)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    explain_round(explained, tokenizer, 3, kept, colour, to);
    fclose(to);
    if (strcmp(text, expected) != 0)
        fail_msg("got \"%s\", expected \"%s\"", text, expected);
    free(text);
}

static void test_explain__a_chain_by_coins(void **state)
{
    const struct explained round = {
        .rule = "rejection",
        .count = 4,
        .node = {{.token = token(","), .parent = -1, .q = 0.25, .p = 0.5, .own = -1, .coin = 0.75, .fate = EXPLAINED_ACCEPTED},
                 {.token = token("\n"), .parent = 0, .depth = 1, .q = 0.5, .p = 0.25, .own = -1, .coin = 0.125, .fate = EXPLAINED_ACCEPTED},
                 {.token = token("\""), .parent = 1, .depth = 2, .q = 0.5, .p = 0.125, .own = -1, .coin = 0.75, .fate = EXPLAINED_REJECTED},
                 {.token = token(";"), .parent = 2, .depth = 3, .q = 1, .p = 0, .own = -1, .coin = -1, .fate = EXPLAINED_PASSED}},
        .draw = DRAW_RESIDUAL,
        .residual = {.of_p = 1, .of_q = 1},
        .token = token("!")};

    (void)state;
    assert_says(&round, 3, 0,
                "round 3, rejection: 2 of 4 drafts accepted, 3 tokens\n"
                "   1  \",\"   q 0.2500  p 0.5000  accepted: p is not below q\n"
                "   2  \"\\n\"  q 0.5000  p 0.2500  accepted: coin 0.125 < p / q = 0.500\n"
                "   3  \"\\\"\"  q 0.5000  p 0.1250  rejected: coin 0.750 >= p / q = 0.250\n"
                "   4  \";\"   q 1.0000  p 0.0000  not looked at\n"
                "      \"!\"   drawn from what is left of p: max(0, p - q), normalised\n");
}

/* What the rule compares is said; where the completion ends, how much of it counts; in a tree what follows stands further right, right below. */
static void test_explain__a_tree_by_the_targets_own_tokens(void **state)
{
    const struct explained round = {
        .rule = "coupled",
        .count = 3,
        .node = {{.token = token(","), .parent = -1, .q = -1, .p = -1, .own = token(";"), .coin = -1, .fate = EXPLAINED_REJECTED, .source = 1},
                 {.token = token(";"), .parent = -1, .q = -1, .p = -1, .own = token(";"), .coin = -1, .fate = EXPLAINED_ACCEPTED, .source = 5},
                 {.token = token("!"), .parent = 0, .depth = 1, .q = -1, .p = -1, .own = token("!"), .coin = -1, .fate = EXPLAINED_PASSED}},
        .token = token("\n"),
        .kind = (const char *const[]){"small", "ngram", "lookup"}};

    (void)state;
    assert_says(&round, 1, 0,
                "round 3, coupled, a tree: 1 of 3 drafts accepted, 2 tokens\n"
                "   1  \",\"    rejected: the target's own token is \";\"; drafted by small\n"
                "   3    \"!\"  not looked at\n"
                "   2  \";\"    accepted: it is the target's own token; drafted by small, lookup\n"
                "      \"\\n\"   the target's own token\n"
                "      the completion ends with 1 of these tokens\n");
}

/* Drafted in layers, as the best of a drafter's are: 1 has 3 and 5 behind it, and 2 has 4. The numbers stay, as what is left of p names some. */
static void test_explain__a_draft_is_below_what_it_follows(void **state)
{
    const struct explained round = {
        .rule = "k-sequential",
        .count = 5,
        .node = {{.token = token(","), .parent = -1, .q = -1, .p = -1, .own = -1, .coin = -1, .fate = EXPLAINED_REJECTED},
                 {.token = token(";"), .parent = -1, .q = -1, .p = -1, .own = -1, .coin = -1, .fate = EXPLAINED_ACCEPTED},
                 {.token = token("!"), .parent = 0, .depth = 1, .q = -1, .p = -1, .own = -1, .coin = -1, .fate = EXPLAINED_PASSED},
                 {.token = token("?"), .parent = 1, .depth = 1, .q = -1, .p = -1, .own = -1, .coin = -1, .fate = EXPLAINED_REJECTED},
                 {.token = token("."), .parent = 0, .depth = 1, .q = -1, .p = -1, .own = -1, .coin = -1, .fate = EXPLAINED_PASSED}},
        .draw = DRAW_RESIDUAL,
        .residual = {.several = 1, .share = {{.node = 3, .of_q = 1}}},
        .token = token("\n")};

    (void)state;
    assert_says(&round, 2, 0,
                "round 3, k-sequential, a tree: 1 of 5 drafts accepted, 2 tokens\n"
                "   1  \",\"    rejected\n"
                "   3    \"!\"  not looked at\n"
                "   5    \".\"  not looked at\n"
                "   2  \";\"    accepted\n"
                "   4    \"?\"  rejected\n"
                "      \"\\n\"   drawn from what is left of p: max(0, p - q of 4), normalised\n");
}

static void test_explain__no_draft_and_what_is_left_of_p(void **state)
{
    struct explained round = {.rule = "rejection", .draw = DRAW_PLAIN, .token = token("!")};

    (void)state;
    assert_says(&round, 1, 1,
                "round 3, rejection: no draft, 1 token\n"
                "      \033[34m\"!\"\033[0m  drawn from p\n");
    round.draw = DRAW_RESIDUAL;
    round.residual = (struct residual){.of_p = 0.5, .of_q = 1.25, .most = 0.75};
    assert_says(&round, 1, 0,
                "round 3, rejection: no draft, 1 token\n"
                "      \"!\"  drawn from what is left of p: max(0, 0.5 p - 1.25 min(q, 0.75 p)) where q is above 0, else p, normalised\n");
    round.residual = (struct residual){.of_p = 0.5};
    assert_says(&round, 1, 0,
                "round 3, rejection: no draft, 1 token\n"
                "      \"!\"  drawn from what is left of p: 0.5 p where q is above 0, else p, normalised\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_explain__a_chain_by_coins),
        cmocka_unit_test(test_explain__a_tree_by_the_targets_own_tokens),
        cmocka_unit_test(test_explain__a_draft_is_below_what_it_follows),
        cmocka_unit_test(test_explain__no_draft_and_what_is_left_of_p),
    };

    return cmocka_run_group_tests(tests, open_tokenizer, close_tokenizer);
}
