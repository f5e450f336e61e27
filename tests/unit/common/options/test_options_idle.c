#include "common/options/options_idle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_WORDS = 32 };

/* Each line is of a command without prompts; `idle` has what changes nothing, with a blank between, and `why` a part of the reason of each. */
static const struct {
    const char *line, *idle, *why;
    int lines_may;
} cases[] = {
    {"--temperature 0.7", "", "", 0},
    {"--check brief --output F --stats F --json F --lenience 0.3", "output stats", "--json FILE", 0},
    {"--temperature 0.7 --draft-temperature 0.9 --support 32", "", "", 0},
    {"--temperature 0 --draft-temperature 0.9 --support 32", "support draft-temperature", "not drawn from q", 1},
    {"--temperature 0.7 --accept coupled --support 32", "support", "not drawn from q", 1},
    {"--temperature 0.7 --draft lookup --support 32 --draft-vocabulary 100", "support draft-vocabulary", "no distribution", 0},
    {"--temperature 0 --draft-vocabulary 100", "", "", 0},
    {"--temperature 0.7 --lenience 0.3 --typical-delta 0.2", "lenience typical-delta", "another rule", 1},
    {"--temperature 0.7 --lenience 0.5 --threshold 0.3", "lenience threshold", "another rule", 1}, /* which would be so without them, too */
    {"--temperature 0.7 --accept lenience --lenience 0.3", "", "", 0},
    {"--temperature 0 --accept lenience --lenience 0.3", "", "", 0},
    {"--temperature 0.7 --accept typical --typical-delta 0.2 --typical-epsilon 0.1", "", "", 0},
    {"--temperature 0 --accept typical --typical-delta 0.2", "typical-delta", "at temperature 0 that rule is greedy", 1},
    {"--temperature 0.7 --draft ngram:F --support 32 --draft-vocabulary 100 --draft-temperature 0.9", "", "", 0},
    {"--temperature 0.7 --top-p 0.9 --accept coupled --support 8", "", "", 0},
    {"--temperature 0 --draft lookahead --drafters 1 --branches 0", "branches", "ahead of a tree", 1},
    {"--draft lookahead --solo", "", "", 0},
    {"--check quick --support 32 --draft-temperature 0.9", "", "", 0},
    {"--sweep F --lenience 0.3", "", "", 0},
    {"--branches 3", "", "", 0},
    {"--branches 3 --run-ahead off", "branches", "--run-ahead is off", 0},
    {"--run-ahead off", "", "", 0},
    {"--branches 3 --tree top-k --temperature 0.7 --accept multistep", "branches", "ahead of a tree", 1},
    {"--cascade lookup --temperature 0.7", "cascade", "does not compare", 1},
    {"--cascade lookup --temperature 0.7 --accept threshold", "cascade", "does not compare", 1},
    {"--branches 3 --tree top-k --temperature 0.7 --accept multistep --draft-length 1", "", "", 0},
    {"--cascade lookup --temperature 0.7 --accept coupled", "", "", 0},
    {"--merge lookup --temperature 0.7 --accept multistep --draft-length 1", "merge", "room for a draft of one kind", 1},
    {"--merge lookup --temperature 0.7 --accept multistep --draft-length 2", "", "", 0},
    {"--merge lookup --temperature 0.7 --accept coupled --draft-length 1", "", "", 0},
    {"--cascade lookup --temperature 0", "", "", 0},
    {"--draft-length 0 --branches 2 --support 3", "support branches", "--draft-length is 0", 1},
    {"--prompts F --output O --solo --draft-length 4", "draft-length", "nothing is drafted", 0},
    {"--solo", "", "", 0},
    {"--perplexity F --context 64", "", "", 0},
    {"--perplexity F --max-tokens 3 --min-tokens 2 --stop x --stop-token-id 4 --ignore-eos", "max-tokens min-tokens stop stop-token-id ignore-eos",
     "a text is scored", 0},
    {"--perplexity F --draft auto", "draft", "nothing is drafted", 0},
    {"--perplexity F --draft lookup --drafters 2 --draft-length 3", "draft drafters draft-length", "nothing is drafted", 0},
    {"--solo --draft-length 3 --run-ahead off --branches 2 --temperature 0.7", "draft-length run-ahead branches", "nothing is drafted", 0},
    {"--solo --max-sequences 3 --draft-deadline 40 --temperature 0.7", "", "", 0},
    {"--solo --accept lenience --lenience 0.2 --temperature 0.7", "lenience", "nothing is drafted", 0},
    {"--solo --accept coupled --temperature 0.7", "", "", 0}, /* the target's own coins are others */
    {"--draft-length 5 --draft-deadline 30 --stop-drafting entropy", "", "", 0},
};

static void parse(const char *line, struct options *options)
{
    static char words[1024], *argv[MOST_WORDS + 1];
    int argc = 0;

    snprintf(words, sizeof words, "program --quiet %s", line);
    for (char *word = strtok(words, " "); word != NULL && argc < MOST_WORDS; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    assert_int_equal(options_parse(argc, argv, options), STATUS_OK);
}

static void test_options_idle__what_changes_nothing_is_found_with_its_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct options_idle idle[OPTIONS_IDLE_MOST];
        struct options options;
        char names[512] = "";
        int count;

        parse(cases[i].line, &options);
        count = options_find_idle(&options, idle);
        for (int at = 0; at < count; at++) {
            size_t used = strlen(names);

            snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? " " : "", idle[at].name);
            assert_non_null(strstr(idle[at].why, cases[i].why));
            assert_ptr_equal(idle[at].why, idle[0].why);
            assert_int_equal(idle[at].lines_may, cases[i].lines_may);
        }
        assert_string_equal(names, cases[i].idle);
        options_release(&options);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_idle__what_changes_nothing_is_found_with_its_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
