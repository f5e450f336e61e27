#include "common/options/options.h"
#include "common/options/options_elsewhere.h"
#include "common/options/options_table.h"
#include "tests/support/capture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST_ARGUMENTS = 700 };

static char path[] = "/tmp/test_options.XXXXXX"; /* a config file, written anew by each test */
static char logged[4096];

/* Parses "--a b --c" cut at the spaces; the words stay alive as those of a command line do. */
static enum status parse(const char *line, struct options *options)
{
    static char words[1 << 14], *argv[MOST_ARGUMENTS + 2];
    struct capture capture;
    enum status status;
    int argc = 0;

    snprintf(words, sizeof words, "program %s", line);
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " ")) {
        assert_in_range(argc, 0, MOST_ARGUMENTS);
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    capture_begin(&capture);
    status = options_parse(argc, argv, options);
    capture_end(&capture, logged, sizeof logged);
    return status;
}

static void assert_taken(const char *line, struct options *options)
{
    enum status status = parse(line, options);

    if (status != STATUS_OK || logged[0] != '\0')
        fail_msg("'%s': status %d, '%s'", line, (int)status, logged);
}

/* One line that holds `part`, and options that are as they were. */
static void assert_refused(const char *line, enum status expected, const char *part)
{
    struct options options, before;

    memset(&options, 0x5a, sizeof options);
    before = options;
    assert_int_equal(parse(line, &options), expected);
    capture_assert_one_line(logged, part);
    assert_memory_equal(&options, &before, sizeof options);
}

struct refusal {
    const char *line, *part;
};

static void assert_each_refused(const struct refusal *refusal, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_refused(refusal[i].line, STATUS_USAGE, refusal[i].part);
}

/* REFUSED({LINE, PART}, ...): each of these lines is wrong usage, and is told so. */
#define REFUSED(...) \
    assert_each_refused((const struct refusal[]){__VA_ARGS__}, sizeof((const struct refusal[]){__VA_ARGS__}) / sizeof(struct refusal))

static void write_config(const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static void assert_config_taken(const char *text, const char *rest, struct options *options)
{
    char line[512];

    write_config(text);
    snprintf(line, sizeof line, "--config %s %s", path, rest);
    assert_taken(line, options);
}

/* The line begins with FILE:NUMBER, when number > 0, and holds `part`. */
static void assert_config_refused(const char *text, int number, const char *part)
{
    char line[128], place[128];

    write_config(text);
    snprintf(line, sizeof line, "--config=%s", path);
    snprintf(place, sizeof place, "%s:%d: ", path, number);
    assert_refused(line, STATUS_USAGE, part);
    assert_non_null(strstr(logged, place));
}

static void test_options__no_arguments_give_the_defaults(void **state)
{
    struct options options;

    (void)state;
    assert_taken("", &options);
    assert_null(options.model.target);
    assert_null(options.model.draft);
    assert_null(options.input.prompt);
    assert_int_equal(options.ranks.drafters, -1);
    assert_int_equal(options.ranks.verifiers, -1);
    assert_int_equal(options.request.max_tokens, 128);
    assert_int_equal(options.rounds.draft_length, -1);
    assert_int_equal(options.rounds.support, 256);
    assert_true(options.report.compare); /* the embedded prompts, shown one after the other */
    assert_int_equal(options.rounds.max_sequences, 1);
    assert_true(options.limits.draft_deadline_ms == 1000 && options.limits.watchdog_s == 60);
    assert_memory_equal(&options.request.sampling, &sampling_default, sizeof sampling_default);
    assert_int_equal(options.print, OPTIONS_PRINT_NOTHING);
}

static void test_options__sequences_go_together_only_where_nobody_watches(void **state)
{
    struct options options;

    (void)state;
    assert_taken("--prompts file", &options);
    assert_int_equal(options.report.compare, 0);
    assert_int_equal(options.rounds.max_sequences, 4);
    assert_taken("--prompts file --compare", &options);
    assert_int_equal(options.rounds.max_sequences, 1);
    assert_taken("--prompt text", &options);
    assert_int_equal(options.report.compare, 0);
    assert_int_equal(options.rounds.max_sequences, 1);
    assert_taken("--prompt text --max-sequences 7", &options);
    assert_int_equal(options.rounds.max_sequences, 7);
}

static void test_options__values_stand_apart_or_behind_an_equals_sign(void **state)
{
    struct options options;

    (void)state;
    assert_taken("--target=a=b --draft d --max-tokens 7 --top_k=40 --temperature 0.5 --seed 18446744073709551615 --accept=coupled "
                 "--stop one --stop two --solo --ignore-eos=false --presence-penalty -1.5 --colour never --draft-length 0 --prompt --solo",
                 &options);
    assert_string_equal(options.model.target, "a=b");
    assert_string_equal(options.model.draft, "d");
    assert_string_equal(options.input.prompt, "--solo");
    assert_int_equal(options.request.max_tokens, 7);
    assert_int_equal(options.request.sampling.top_k, 40);
    assert_true(options.request.sampling.temperature == 0.5 && options.request.sampling.presence_penalty == -1.5);
    assert_true(options.request.sampling.seed == UINT64_MAX);
    assert_int_equal(options.request.sampling.accept, ACCEPT_COUPLED);
    assert_int_equal(options.request.stop.count, 2);
    assert_string_equal(options.request.stop.text[0], "one");
    assert_string_equal(options.request.stop.text[1], "two");
    assert_true(options.rounds.solo && !options.request.ignore_eos);
    assert_int_equal(options.report.colour, COLOUR_NEVER);
    assert_int_equal(options.rounds.draft_length, 0);
    assert_taken("--accept exact", &options);
    assert_int_equal(options.request.sampling.accept, ACCEPT_WALK);
}

static void test_options__a_text_is_scored_alone_and_by_the_target(void **state)
{
    struct options options;

    (void)state;
    assert_taken("--perplexity file", &options);
    assert_true(options.rounds.solo && !options.report.compare && options_score_prompts(&options) && !options_is_showcase(&options));
    assert_int_equal(options.model.context, 512);
    assert_taken("--perplexity file --temperature 0 --seed 7", &options);
    assert_taken("--perplexity file --context 64", &options);
    assert_int_equal(options.model.context, 64);
    REFUSED({"--perplexity file --prompt x", "--prompt or --chat does not go with --perplexity, which scores its text"},
            {"--perplexity file --prompts x", "--prompts does not go with --perplexity"},
            {"--perplexity file --chat x", "--prompt or --chat does not go with --perplexity"},
            {"--perplexity file --chat", "--chat does not go with --perplexity"},
            {"--perplexity file --conversation", "a chat does not go with --perplexity"},
            {"--perplexity file --output x", "--output does not go with --perplexity"},
            {"--perplexity file --check quick", "--check does not go with --perplexity"},
            {"--perplexity file --compare", "--compare does not go with --perplexity"},
            {"--perplexity file --sweep x", "--sweep does not go with --perplexity"},
            {"--perplexity file --temperature 1", "--temperature does not go with --perplexity, which scores its text and chooses no tokens"},
            {"--top-k 5 --perplexity file", "--top-k does not go with --perplexity"},
            {"--perplexity file --bad-word x", "--bad-word does not go with --perplexity"},
            {"--perplexity file --logit-bias 5:100", "--logit-bias does not go with --perplexity"},
            {"--perplexity file --context 3", "--context is 3, expected windows of at least 4 tokens for --perplexity"});
}

static void test_options__a_prompt_is_echoed_and_a_chat_is_not(void **state)
{
    struct options options;

    (void)state;
    assert_taken("--prompt text --echo", &options);
    assert_true(options.request.echo && !options_score_prompts(&options));
    assert_taken("--prompt text --echo --logprobs 0 --output -", &options);
    assert_true(options_score_prompts(&options));
    REFUSED({"--chat text --echo", "--echo is for prompts, and --chat makes messages of them"},
            {"--conversation --echo", "--echo does not go with a chat"});
}

static void test_options__several_completions_make_results(void **state)
{
    struct options options;

    (void)state;
    assert_taken("--prompt text", &options);
    assert_true(options.request.n == 1 && options.request.best_of == -1);
    assert_taken("--prompts file --n 3 --best-of 128", &options);
    assert_true(options.request.n == 3 && options.request.best_of == 128);
    assert_taken("--prompt text --n 3 --output -", &options);
    assert_taken("--prompts file --n 1 --chat", &options);
    REFUSED({"--prompts file --n 0", "--n is '0', expected a whole number from 1 to 128"},
            {"--prompts file --n 129", "--n is '129', expected a whole number from 1 to 128"},
            {"--prompts file --n 1.5", "--n is '1.5', expected a whole number"}, {"--prompts file --n x", "--n is 'x', expected a whole number"},
            {"--prompts file --best-of 129", "--best-of is '129', expected a whole number from 1 to 128"},
            {"--prompts file --n 3 --best-of 2", "--best-of is 2, expected at least --n, 3"},
            {"--prompts file --chat --best-of 2", "--best-of is for prompts, and --chat makes messages of them"},
            {"--prompt text --n 2", "--n with --prompt needs --output FILE, or --output -"},
            {"--prompt text --logprobs 2", "--logprobs with --prompt needs --output FILE, or --output -: results have them, text has not"},
            {"--prompt text --best-of 2", "--best-of with --prompt needs --output FILE"}, {"--conversation --n 2", "--n does not go with a chat"},
            {"--perplexity file --n 2", "--n does not go with --perplexity"}, {"--check quick --best-of 2", "--best-of does not go with a check"},
            {"--sweep file --prompts file --n 2", "--n does not go with a bench"});
}

static void test_options__an_unknown_option_names_the_nearest(void **state)
{
    (void)state;
    REFUSED({"--max-token 5", "unknown option '--max-token'; did you mean '--max-tokens'?"},
            {"--temprature=1", "did you mean '--temperature'?"},
            {"--color always", "did you mean '--colour'?"},
            {"--silent-draftr x", "unknown option"}); /* hidden ones are not proposed */
    assert_null(strstr(logged, "silent-drafter"));
    assert_refused("--this-name-is-longer-than-any-buffer-that-could-be-meant-for-the-name-of-an-option", STATUS_USAGE, "unknown option");
}

/* Names of other programs: what means it here, not what is spelled like it. */
static void test_options__names_from_elsewhere_are_answered_by_their_meaning(void **state)
{
    (void)state;
    REFUSED(
        {"--model x", "option '--model' is not supported, expected --target M"},
        {"--ctx-size=4096", "option '--ctx-size' is not supported, expected --context N"},
        {"--ctx 4096", "option '--ctx' is not supported, expected --context N"},
        {"--batch 8", "option '--batch' is not supported, expected --max-sequences N"},
        {"--batch-size=8", "option '--batch-size' is not supported, expected --max-sequences N"},
        {"--gpu", "option '--gpu' is not supported: --backend says whether GPUs are used, --verifiers N how many, --verifier-devices"},
        {"--gpus=2", "option '--gpus' is not supported: --backend says whether GPUs are used"},
        {"--n-predict 5", "'--n-predict' is not supported, expected --max-tokens N"},
        {"--n_predict 5", "'--n_predict' is not supported, expected --max-tokens N"},
        {"--num-speculative-tokens 5", "is not supported, expected --draft-length K"},
        {"--draft-max 16", "is not supported, expected --draft-length K"}, {"--temp 1", "option '--temp' is not supported, expected --temperature T"},
        {"--tensor-parallel-size 2", "is not supported, expected --verifiers N"},
        {"--top-logprobs 5", "option '--top-logprobs' is not supported, expected --logprobs N"}, {"--logprobs 21", "--logprobs is '21', expected"},
        {"--logprobs -1", "--logprobs is '-1', expected"},
        {"--num-return-sequences 2", "option '--num-return-sequences' is not supported, expected --n N"},
        {"--num-beams 2", "option '--num-beams' is not supported: texts are drawn, not searched for"},
        {"--grammar x", "option '--grammar' is not supported: nothing follows a grammar"},
        {"--port 8080", "option '--port' is not supported: there is no server"},
        {"--host 0.0.0.0", "there is no server; --hosts HOST[:SLOTS],... says where ranks are"},
        {"-m x.gguf", "option '-m' is not supported, expected --target M"}, {"-p Hello", "option '-p' is not supported, expected --prompt TEXT"},
        {"-n 5", "option '-n' is not supported, expected --max-tokens N"}, {"-n5", "option '-n5' is not supported, expected --max-tokens N"},
        {"-c=4096", "option '-c=4096' is not supported, expected --context N"}, {"-md x.gguf", "option '-md' is not supported, expected --draft M"},
        {"-hf a/b", "option '-hf' is not supported, expected --target M"},
        {"--dtype bf16", "option '--dtype' is not supported: weights are taken as the model's files have them; --quantise q8_0"},
        {"-f x.txt",
         "option '-f' is not supported: --prompts FILE has a line of JSON for each prompt, as {\"prompt\": \"...\"}; a file that is one prompt: "},
        {"--file x", "option '--file' is not supported: --prompts FILE has a line of JSON for each prompt"},
        {"--no-speculation", "is not supported, expected --solo"}, {"--do-sample", "is not supported, expected --temperature T"},
        {"-ngl 99", "option '-ngl' is not supported: a rank's device holds its whole shard"},
        {"--time 60", "option '--time' is not supported: sbatch's own options stand behind --"},
        {"-Z", "option '-Z' is not supported, expected one that begins with --"});
}

static void test_options__each_says_whether_results_and_ranks_have_to_do_with_it(void **state)
{
    (void)state;
    for (int i = 0; i < option_count; i++)
        if (option_table[i].affects_results == RESULTS_UNSAID || option_table[i].for_ranks == RANKS_UNSAID)
            fail_msg("the row of --%s does not say it", option_table[i].name);
        else if (option_table[i].per_request && option_table[i].affects_results == RESULTS_NEVER)
            fail_msg("--%s may stand in a request, whose result then depends on it", option_table[i].name);
}

/* A name that is one of ours, or that stands for an option which there is not, would mislead. */
static void test_options__names_from_elsewhere_are_not_ours(void **state)
{
    char words[OPTIONS_ELSEWHERE];

    (void)state;
    for (int i = 0; i < option_count; i++)
        assert_int_equal(options_elsewhere(option_table[i].name, 0, words, sizeof words), 0);
    for (char letter[] = "a"; letter[0] <= 'z'; letter[0]++) /* what is there in their place is there */
        if (options_elsewhere_short(letter, words, sizeof words))
            assert_true(strncmp(words, ", expected --", 13) == 0 || words[0] == ':');
    assert_int_equal(options_elsewhere("max-new-tokens", 1, words, sizeof words), 1);
    assert_string_equal(words, ", expected max_tokens");
    assert_int_equal(options_elsewhere("ctx-size", 1, words, sizeof words), 1);
    assert_string_equal(words, ", expected --context N"); /* no key of a line */
    assert_int_equal(options_elsewhere("stop-strings", 1, words, sizeof words), 1);
    assert_string_equal(words, ", expected stop");
    assert_int_equal(options_elsewhere("stop-strings", 0, words, sizeof words), 1);
    assert_string_equal(words, ", expected --stop STR");
}

static void test_options__what_is_no_option_is_refused(void **state)
{
    (void)state;
    REFUSED({"hello", "unexpected argument 'hello', expected an option that begins with --, as --prompt TEXT or --prompts FILE"},
            {"-v", "option '-v' is not supported, expected --verbose"}, {"--", "unexpected argument '--'"}, {"--solo 1", "unexpected argument '1'"},
            {"--=5", "unknown option"});
}

static void test_options__a_missing_value_is_refused(void **state)
{
    (void)state;
    REFUSED({"--max-tokens", "--max-tokens needs a value: N"},
            {"--solo --config", "--config needs a value: FILE"},
            {"--max-tokens=", "--max-tokens is ''"},
            {"--seed=", "--seed is ''"},
            {"--stop=", "--stop is ''"});
}

static void test_options__numbers_that_do_not_fit_are_refused(void **state)
{
    static const char *const bad[] = {
        "--max-tokens 1.5",
        "--max-tokens -1",
        "--max-tokens nan",
        "--max-tokens 12x",
        "--max-tokens 1e10",
        "--max-tokens --solo",
        "--temperature nan",
        "--temperature -0.1",
        "--temperature inf",
        "--temperature 101",
        "--top-p 1.1",
        "--top-p nan",
        "--min-p -1",
        "--top-k -1",
        "--top-k 0.5",
        "--draft-length 64",
        "--draft-length -1",
        "--support 0",
        "--support 1025",
        "--max-sequences 0",
        "--verifiers 0",
        "--drafters 513",
        "--threads -2",
        "--watchdog -1",
        "--draft-deadline nan",
        "--presence-penalty 3",
        "--frequency-penalty -3",
        "--seed -1",
        "--seed 1.5",
        "--seed 18446744073709551616",
        "--seed +1",
        "--seed x",
        "--context 2000000000",
        "--repetition-penalty -1",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char name[64];

        snprintf(name, sizeof name, "%.*s is '", (int)strcspn(bad[i], " "), bad[i]);
        assert_refused(bad[i], STATUS_USAGE, name);
        assert_non_null(strstr(logged, "expected"));
    }
}

static void test_options__a_tree_needs_who_makes_it_and_who_decides_about_it(void **state)
{
    struct options options;

    (void)state;
    REFUSED({"--tree bush", "--tree is 'bush', expected chain, top-k, dynamic, sequoia, iid or auto"}, {"--tree dynamic:depth=0", "--tree is 'dynamic:depth=0'"},
            {"--tree dynamic --temperature 0.8", "--tree dynamic: --accept rejection decides about chains alone at this temperature; expected"},
            {"--tree dynamic --temperature 0.8 --accept traversal", "and --accept traversal draws them; expected --tree top-k or iid"},
            {"--tree sequoia --temperature 0.8 --accept multistep", "and --accept multistep draws them; expected --tree top-k or iid"},
            {"--tree auto --temperature 0.8 --accept multistep", "chooses shapes by what became of drafts, and --accept multistep draws them; expected"},
            {"--tree auto --temperature 0.8", "decides about chains alone at this temperature; expected --accept coupled or walk, or --temperature 0"},
            {"--tree auto --draft-length 4", "--tree auto chooses shape and size by what they are worth, expected no --draft-length, or --tree dynamic"},
            {"--tree iid --temperature 0.8 --accept walk", "--tree iid is of drafts that are drawn, and by walk none is; expected"},
            {"--draft lookup --tree iid --temperature 0.8 --accept multistep", "--draft lookup draws none; expected --tree top-k, dynamic or sequoia"},
            {"--tree iid --temperature 0", "by any rule none is at temperature 0; expected --tree top-k, dynamic or sequoia"},
            {"--tree top-k --accept threshold", "--accept threshold decides about chains alone; expected"},
            {"--target m --draft lookup --tree top-k --temperature 0.8 --accept multistep", "--draft lookup proposes trees without q, which only rules that compare tokens"},
            {"--target m --draft lookup --tree top-k --temperature 0.8", "expected --accept walk or coupled, or --temperature 0, not rejection"},
            {"--target m --draft lookahead --tree top-k", "--tree top-k: --draft lookahead proposes a tree of its own, expected no --tree"},
            {"--target m --draft lookahead --tree chain", "--tree chain: --draft lookahead proposes a tree of its own"},
            {"--target m --draft lookahead --temperature 0.8", "expected --accept walk or coupled, or --temperature 0, not rejection"},
            {"--target m --draft lookahead --temperature 0 --accept lenience", "expected --accept walk or coupled, not lenience"},
            {"--target m --draft lookahead --stop-drafting heuristic", "expected no --stop-drafting heuristic"},
            {"--target m --draft lookahead --synthetic-acceptance 0.5", "expected no --synthetic-acceptance"},
            {"--target m --draft lookahead --merge lookup", "--merge joins chains, and lookahead proposes trees; expected other kinds"},
            {"--merge lookahead", "--merge joins chains, and lookahead proposes trees; expected other kinds"},
            {"--check brief --break residual-p --target m --draft lookahead", "is a fault of chains, expected no --draft lookahead"},
            {"--check brief --break sibling-order --target m --draft lookahead --accept multistep --temperature 0", "expected --tree top-k and"},
            {"--target m --draft lookahead --merge self:bits=8 --cascade lookup", "--cascade lookup drafts chains, expected no --draft lookahead"},
            {"--tree dynamic --stop-drafting entropy", "expected no --stop-drafting entropy"},
            {"--tree dynamic --stop-drafting heuristic", "expected no --stop-drafting heuristic"},
            {"--target m --draft lookup --cascade lookup", "--cascade lookup saves steps of a draft model, and --draft lookup has none"},
            {"--copy-first 1", "--copy-first is 1, expected 0, or 2 to 16 tokens"},
            {"--copy-first 3 --tree top-k", "--copy-first drafts chains, expected no --tree top-k"},
            {"--target m --draft lookup --copy-first 3", "--copy-first saves steps of a draft model, and --draft lookup has none"},
            {"--cascade lookup --tree top-k", "--cascade lookup drafts chains, expected no --tree top-k"},
            {"--cascade ngram", "lookup"},
            {"--merge lookup --temperature 0.8", "not every rule can decide; expected --accept walk, coupled or multistep, or --temperature 0, not rejection"},
            {"--merge lookup --temperature 0.8 --accept k-sequential", "or --temperature 0, not k-sequential"},
            {"--merge self:layers=2 --temperature 0.8 --accept multistep --support 513",
             "--merge: 2 kinds of drafters with --support 513 may ask about 1026 tokens of a row, expected at most 1024, so --support of at most 512"},
            {"--merge lookup --temperature 0 --accept lenience", "expected --accept walk, coupled or multistep, not lenience"},
            {"--merge lookup --temperature 0 --drafters 1", "--merge: 2 kinds of drafters need a rank each, and --drafters is 1, expected 2 or more"},
            {"--merge lookup --temperature 0 --tree dynamic", "--merge joins chains, expected no --tree dynamic"},
            {"--target m --merge lookup --temperature 0", "--merge lookup adds to what --draft says, expected --draft beside --target"},
            {"--target m --draft lookup --merge lookup:min=1 --temperature 0", "--merge lookup:min=1 names what drafts already"},
            {"--merge lookup --merge lookup:max=4 --temperature 0", "--merge lookup:max=4 names what drafts already"},
            {"--merge self:layers=2 --merge self:layers=2 --temperature 0", "--merge self:layers=2 names what drafts already"},
            {"--merge lookup:many=2 --temperature 0", "lookup"},
            {"--merge lookup --temperature 0 --synthetic-acceptance 0.5", "expected no --synthetic-acceptance"},
            {"--check brief --break residual-p --merge lookup", "expected no --break"},
            {"--merge lookup --temperature 0 --stop-drafting heuristic", "expected no --stop-drafting heuristic"},
            {"--merge auto --temperature 0", "--merge is 'auto', expected a model or a kind"},
            {"--copy-after 5 --draft-length 3", "--copy-after is 5, expected less than --draft-length, which is 3"},
            {"--copy-after 2 --cascade lookup", "expected one of them"},
            {"--target m --draft lookup --copy-after 3", "--copy-after saves steps of a draft model, and --draft lookup has none"},
            {"--merge random --merge lookup --merge self:bits=4 --merge self:bits=8", "--merge"},
            {"--stop-drafting heuristic --draft-length 3", "--stop-drafting heuristic chooses the draft length, expected no --draft-length 3"},
            {"--stop-drafting heuristic --check brief", "chooses the draft length, and a check has lengths of its own"},
            {"--stop-drafting heuristic --sweep f", "chooses the draft length, and a bench has lengths of its own"},
            {"--target m --draft lookup --stop-drafting entropy", "--stop-drafting entropy is about a draft model's distribution"},
            {"--tree dynamic --run-ahead on", "--run-ahead on: no drafter runs ahead of a tree, expected no --tree dynamic, or --run-ahead auto"},
            {"--tree dynamic --synthetic-acceptance 0.5", "expected no --synthetic-acceptance"},
            {"--check brief --break residual-p --tree dynamic", "--break residual-p is a fault of chains, expected no --tree dynamic"},
            {"--check brief --break stale-path", "--break stale-path is a fault in how the path of a tree is kept, expected --tree"},
            {"--check brief --break sibling-p", "--break sibling-p is a fault in how siblings are drawn or tested, expected --tree top-k and"},
            {"--check brief --break sibling-q --tree top-k --accept multistep", "and --accept without-replacement"},
            {"--check brief --break sibling-order --tree top-k", "and --accept multistep|without-replacement"});
    assert_taken("--check brief --break sibling-p --tree top-k --accept multistep", &options);
    options_release(&options);
    assert_taken("--check brief --break stale-path --tree dynamic", &options);
    options_release(&options);
    assert_taken("--draft-length 33", &options);
    assert_int_equal(options_most_drafts(&options), SAMPLING_MAX_DRAFT);
    options_release(&options);
    assert_taken("--draft-length 32", &options);
    assert_int_equal(options_most_drafts(&options), 32);
    options_release(&options);
    assert_taken("--tree dynamic", &options);
    assert_int_equal(options_most_drafts(&options), SAMPLING_MAX_DRAFT);
    assert_true(options.rounds.shape.kind == TREE_DYNAMIC && options_length(&options) < 0);
    options_release(&options);
    assert_taken("--tree auto:depth=4 --run-ahead on", &options);
    assert_true(options.rounds.shape.kind == TREE_AUTO && options.rounds.shape.depth == 4 && options_length(&options) < 0);
    options_release(&options);
    assert_taken("--target m --draft lookup --tree auto", &options);
    options_release(&options);
    assert_taken("--tree top-k:depth=3 --draft-length 7 --temperature 0.8 --accept coupled", &options);
    assert_true(options.rounds.shape.kind == TREE_TOP_K && options.rounds.shape.depth == 3 && options.rounds.draft_length == 7);
    options_release(&options);
    assert_taken("--target m --draft lookup --tree top-k", &options);
    options_release(&options);
    assert_taken("--target m --draft lookahead", &options);
    assert_true(options.rounds.shape.kind == TREE_OWN && options.rounds.draft_length == 12);
    options_release(&options);
    assert_taken("--target m --draft lookahead:window=5,ngram=4,guesses=5 --temperature 0.8 --accept walk", &options);
    assert_true(options.rounds.shape.kind == TREE_OWN && options.rounds.draft_length == 30);
    options_release(&options);
    assert_taken("--target m --draft lookahead --draft-length 7", &options);
    assert_int_equal(options.rounds.draft_length, 7);
    options_release(&options);
    assert_taken("--check brief --break stale-path --target m --draft lookahead", &options);
    options_release(&options);
    assert_taken("--target m --draft lookup --stop-drafting heuristic", &options);
    assert_true(options.rounds.stopping.kind == STOPPING_HEURISTIC && options.rounds.draft_length < 0);
    options_release(&options);
    assert_taken("--tree iid:depth=4 --temperature 0.8 --accept multistep", &options);
    assert_true(options.rounds.shape.kind == TREE_IID && options.rounds.shape.depth == 4 && options_length(&options) == TREE_USUAL);
    options_release(&options);
    assert_taken("--tree chain", &options);
    assert_true(options.rounds.shape.kind == TREE_CHAIN && options.rounds.draft_length < 0);
    options_release(&options);
}

static void test_options__open_ends_of_ranges_are_refused(void **state)
{
    (void)state;
    REFUSED({"--top-p 0", "--top-p is 0, expected"}, {"--min-p 1", "--min-p is 1, expected"});
}

/* Beyond one end or the other, as an option or in a line: the same range. */
static void test_options__one_range_is_told(void **state)
{
    static const struct {
        const char *low, *high, *key, *range;
        double beyond;
    } told[] = {
        {"--top-p 0", "--top-p 1.5", "top_p", "expected a number above 0 and at most 1\n", 1.5},
        {"--min-p 1", "--min-p 2", "min_p", "expected a number from 0 to below 1\n", 2},
        {"--lenience 0", "--lenience 1.5", "lenience", "expected a number above 0 and at most 1\n", 1.5},
        {"--threshold 1", "--threshold 2", "threshold", "expected a number from 0 to below 1\n", 2},
        {"--typical-epsilon -1", "--typical-epsilon 1.5", "typical_epsilon", "expected a number from 0 to 1\n", 1.5},
        {"--typical-delta -1", "--typical-delta 2", "typical_delta", "expected a number from 0 to 1\n", 2},
        {"--repetition-penalty 0", "--repetition-penalty 101", "repetition_penalty", "expected a number from 0.01 to 100\n", 101},
        {"--max-tokens -1", "--max-tokens 1.5", "max_tokens", "expected a whole number from 0 to 1000000000\n", 1.5},
        {"--draft-length -1", "--draft-length 64", "draft_length", "expected a whole number from 0 to 63\n", 64},
    };
    struct options options;
    char reason[128];

    (void)state;
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        assert_refused(told[i].low, STATUS_USAGE, told[i].range);
        assert_refused(told[i].high, STATUS_USAGE, told[i].range);
        assert_taken("", &options);
        assert_int_equal(options_set_number(&options, told[i].key, told[i].beyond, reason, sizeof reason - 2), -1);
        strcat(reason, "\n");
        assert_non_null(strstr(reason, told[i].range));
    }
}

static void test_options__choices_and_flags_are_spelled_out(void **state)
{
    (void)state;
    REFUSED({"--accept reject", "--accept is 'reject', expected rejection|coupled"},
            {"--accept rejecton", "|traversal; did you mean 'rejection'?"},
            {"--accept without_replacement", "; did you mean 'without-replacement'?"},
            {"--accept specinfer", "k-sequential|traversal\n"},
            {"--tree topk", "; did you mean 'top-k'?"},
            {"--accept=", "expected rejection|coupled"},
            {"--colour 1", "expected auto|always|never"},
            {"--colour nevex", "expected auto|always|never"},
            {"--quantise q3", "--quantise is 'q3', expected none|q8_0"},
            {"--solo=maybe", "--solo is 'maybe', expected true or false"});
}

static void test_options__what_excludes_each_other_is_refused(void **state)
{
    struct options options;

    (void)state;
    REFUSED({"--prompt a --prompts b", "--prompt and --prompts exclude each other"}, {"--draft a", "--draft needs --target"},
            {"--draft none", "--draft none: no model or kind of drafter has that name; with --solo instead, nothing is drafted"},
            {"--target /tmp --draft off", "--draft off: no model or kind of drafter has that name; with --solo"});
    assert_taken("--draft a --help", &options); /* who asks for help gets it */
    assert_int_equal(options.print, OPTIONS_PRINT_HELP);
}

/* A prompt of a config is replaced, as any option is. */
static void test_options__of_two_texts_to_complete_none_is_lost(void **state)
{
    struct options options;
    char line[128];

    (void)state;
    REFUSED({"--prompt a --prompt b", "--prompt is given twice, 'a' and 'b', expected one"},
            {"--chat a --solo --chat=b", "--chat is given twice, 'a' and 'b', expected one"});
    assert_config_taken("prompt = a\n", "--prompt b", &options);
    assert_string_equal(options.input.prompt, "b");
    options_release(&options);
    write_config("prompt = a\n");
    snprintf(line, sizeof line, "--config %s --prompt b --prompt c", path);
    assert_refused(line, STATUS_USAGE, "--prompt is given twice, 'b' and 'c'");
}

static void test_options__a_comparison_needs_two_things(void **state)
{
    static const char *const alone[] = {"--compare --solo", "--compare --prompts f --target a", "--compare --prompt a --drafters 0"};
    struct options options;

    (void)state;
    for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++)
        assert_refused(alone[i], STATUS_USAGE,
                       "--compare sets drafted decoding beside the target's own, expected --draft beside --target, a drafter");
    assert_taken("--solo", &options); /* the built-in prompts, which nobody asked to compare */
    assert_true(options.report.compare);
    assert_taken("--compare --target a --draft lookup --prompt b", &options);
    assert_taken("--compare=0 --solo --prompt b", &options);
}

static void test_options__rounds_are_explained_of_one_prompt(void **state)
{
    struct options options;

    (void)state;
    REFUSED({"--explain", "--explain shows how the rounds of one prompt were decided, expected --prompt TEXT"},
            {"--explain --prompts f", "--prompts does not go with --explain, which shows how the rounds of one --prompt were decided"},
            {"--explain --prompt a --output o", "--output does not go with --explain"},
            {"--explain --prompt a --compare", "--compare does not go with --explain"},
            {"--explain --prompt a --echo", "--echo does not go with --explain"},
            {"--explain --prompt a --show-drafts", "--show-drafts does not go with --explain"},
            {"--explain --prompt a --check brief", "a check does not go with --explain"},
            {"--explain --prompt a --synthetic-acceptance 0.5", "--synthetic-acceptance does not go with --explain"},
            {"--explain-page f", "--explain-page shows how the rounds of one prompt were decided, expected --prompt TEXT"},
            {"--explain-page f --prompt a --compare", "--compare does not go with --explain-page, which shows"});
    assert_taken("--prompt a", &options);
    assert_false(options_explains(&options));
    assert_taken("--explain-page f --prompt a", &options);
    assert_true(options_explains(&options) && !options.report.explain);
    assert_taken("--explain --chat a", &options);
    assert_true(options_explains(&options) && options.report.explain);
}

static void test_options__to_resume_needs_a_file_of_output(void **state)
{
    struct options options;

    (void)state;
    REFUSED({"--resume", "--resume needs --output with a file"},
            {"--resume --output -", "--resume needs --output with a file"});
    assert_taken("--resume --output o", &options);
    assert_taken("--resume=0", &options);
    assert_false(options.results.resume);
}

static void test_options__a_check_needs_drafts_and_a_break_needs_a_check(void **state)
{
    static const char *const without_drafts[] = {"--check brief --solo", "--check brief --target a", "--check brief --drafters 0"};
    struct options options;

    (void)state;
    for (size_t i = 0; i < sizeof without_drafts / sizeof without_drafts[0]; i++)
        assert_refused(without_drafts[i], STATUS_USAGE, "expected --draft beside --target, a drafter, and no --solo");
    assert_taken("--check brief --target a --draft b --drafters 1", &options);
    assert_taken("--check brief", &options);
    assert_int_equal(options.rounds.max_sequences, 16); /* thousands of short requests */
    assert_true(options.limits.draft_deadline_ms == 20000); /* without its drafts a check shows nothing */
    assert_taken("--check brief --draft-deadline 7", &options);
    assert_true(options.limits.draft_deadline_ms == 7);
    assert_refused("--break q-row", STATUS_USAGE, "--break q-row is for `tandem check` alone");
    assert_taken("--check brief --break q-row", &options);
}

static void test_options__at_most_sixteen_stops(void **state)
{
    char line[512] = "";
    struct options options;

    (void)state;
    for (int i = 0; i < OPTIONS_MAX_STOPS; i++)
        strcat(line, "--stop x ");
    assert_taken(line, &options);
    assert_int_equal(options.request.stop.count, OPTIONS_MAX_STOPS);
    strcat(line, "--stop x ");
    assert_refused(line, STATUS_USAGE, "--stop is given more than 16 times");
}

static void test_options__tokens_are_biased_banned_and_stop(void **state)
{
    struct options options;

    (void)state;
    assert_taken("--logit-bias 7:-100 --logit-bias=3:1.5 --bad-word one --bad-word=two --stop-token-id 5 --stop-token-id 0 --min-tokens 9", &options);
    assert_int_equal(options.request.bias.tokens, 2);
    assert_true(options.request.bias.token[0] == 3 && options.request.bias.value[0] == 1.5 && options.request.bias.token[1] == 7 &&
                options.request.bias.value[1] == -100);
    assert_int_equal(options.request.bad_word.count, 2);
    assert_string_equal(options.request.bad_word.text[1], "two");
    assert_true(options.request.stop_token.count == 2 && options.request.stop_token.id[0] == 5 && options.request.stop_token.id[1] == 0);
    assert_int_equal(options.request.min_tokens, 9);
    for (int i = 0; i < 4; i++) {
        static const char *const bad[] = {"5", "x:1", ":1", "-5:1"};
        char line[64];

        snprintf(line, sizeof line, "--logit-bias %s", bad[i]);
        assert_refused(line, STATUS_USAGE, "expected ID:BIAS, a token id and a number");
    }
    for (int i = 0; i < 5; i++) {
        static const char *const bad[] = {"5:", "5:x", "5:nan", "5:-100.5", "5:1:1"};
        char line[64];

        snprintf(line, sizeof line, "--logit-bias %s", bad[i]);
        assert_refused(line, STATUS_USAGE, "expected ID:BIAS with a number from -100 to 100");
    }
    REFUSED({"--logit-bias 5:1 --logit-bias 5:2", "--logit-bias is '5:2', expected each token once"},
            {"--stop-token-id 5x", "--stop-token-id is '5x', expected a token id"},
            {"--stop-token-id 2147483648", "expected a token id"},
            {"--stop-token-id 99999999999999999999", "expected a token id"},
            {"--stop-token-id -1", "expected a token id"},
            {"--bad-word=", "--bad-word is '', expected a text that is not empty"},
            {"--min-tokens -1", "min-tokens is '-1'"});
}

static void assert_most(const char *option, int most)
{
    static char line[1 << 14];
    char said[96], number[16];
    struct options options;

    *line = '\0';
    for (int i = 0; i <= most; i++) {
        if (i == most)
            assert_taken(line, &options);
        strcat(line, option);
        snprintf(number, sizeof number, strstr(option, "bias") != NULL ? "%d:1 " : "%d ", i);
        strcat(line, number);
    }
    snprintf(said, sizeof said, "is given more than %d times", most);
    assert_refused(line, STATUS_USAGE, said);
}

static void test_options__repeated_options_have_their_limits(void **state)
{
    (void)state;
    assert_most("--stop-token-id ", 64);
    assert_most("--bad-word ", 64);
    assert_most("--logit-bias ", 300);
}

static void test_options_config__the_command_line_wins(void **state)
{
    struct options options;

    (void)state;
    assert_config_taken(
        "# a cluster\n[models]\ntarget = /models/t  ; the big one\nmax_tokens = 9\n\n[ranks]\nmpirun-options = --mca btl tcp,self\n"
        "solo = yes\nseed: 5",
        "--max-tokens 10", &options);
    assert_string_equal(options.model.target, "/models/t");
    assert_string_equal(options.launch.mpirun_options, "--mca btl tcp,self");
    assert_string_equal(options.launch.config, path);
    assert_int_equal(options.request.max_tokens, 10);
    assert_int_equal(options.rounds.solo, 1);
    assert_true(options.request.sampling.seed == 5);
    options_release(&options);
}

static void test_options_config__indentation_means_nothing(void **state)
{
    struct options options;

    (void)state;
    assert_config_taken("target = a\n  max-tokens = 3\n\ttop-k = 4\n", "", &options);
    assert_string_equal(options.model.target, "a");
    assert_int_equal(options.request.max_tokens, 3);
    assert_int_equal(options.request.sampling.top_k, 4);
    options_release(&options);
}

static void test_options_config__bad_lines_are_named(void **state)
{
    char text[1024];

    (void)state;
    assert_config_refused("\n[ranks]\nverifers = 2\n", 3, "unknown key 'verifers'; did you mean 'verifiers'?");
    assert_config_refused("solo = 1\nctx-size = 512\n", 2, "key 'ctx-size' is not supported, expected --context N");
    assert_config_refused("max-tokens = nan\n", 1, "max-tokens is 'nan', expected a whole number");
    assert_config_refused("solo = true\ntemperature =\n", 2, "temperature is ''");
    assert_config_refused("# one\n# two\nno equals sign\n", 3, "expected [section], key = value, or a comment");
    assert_config_refused("[open\n", 1, "expected [section]");
    assert_config_refused("seed = 1\n\n\nseed = -1\nseed = -2\n", 4, "seed is '-1'"); /* the first one alone */
    assert_config_refused("help = true\n", 1, "'help' has no place in a config file");
    assert_config_refused("stop =\n", 1, "stop is ''");
    assert_config_refused("config = other\n", 1, "'config' has no place in a config file");
    assert_config_refused("silent-drafter = x\n", 1, "unknown key 'silent-drafter'");
    snprintf(text, sizeof text, "solo = 1\nmpirun-options = %0600d\n", 0);
    assert_config_refused(text, 2, "the line is too long");
}

/* --chat may have a text, which is the prompt, or none, which says what prompts are. */
static void test_options__chat_has_a_text_or_none(void **state)
{
    struct options options;

    (void)state;
    assert_taken("--chat Hello --solo", &options);
    assert_string_equal(options.input.chat, "Hello");
    assert_ptr_equal(options.input.prompt, options.input.chat);
    assert_int_equal(options.rounds.solo, 1);
    assert_int_equal(options.report.compare, 0);
    options_release(&options);
    assert_taken("--chat --prompt Hello", &options);
    assert_string_equal(options.input.chat, "");
    assert_string_equal(options.input.prompt, "Hello");
    options_release(&options);
    assert_taken("--prompts x --chat", &options);
    assert_string_equal(options.input.chat, "");
    assert_null(options.input.prompt);
    options_release(&options);
    assert_taken("--chat=--solo", &options);
    assert_string_equal(options.input.prompt, "--solo");
    assert_int_equal(options.rounds.solo, 0);
    options_release(&options);
    REFUSED({"--chat", "--chat has no message, expected TEXT behind it, --prompt or --prompts"},
            {"--target a --solo --chat --max-tokens 8", "--chat has no message"});
    assert_taken("--chat --check quick", &options); /* which has prompts */
    options_release(&options);
    REFUSED({"--chat a --prompt b", "--chat with a text and --prompt or --prompts exclude each other"},
            {"--prompts b --chat a", "exclude each other"},
            {"--conversation --prompt b", "--prompt does not go with a chat, which takes its turns from stdin"},
            {"--conversation --prompts b", "--prompts does not go with a chat"},
            {"--conversation --chat b", "--chat TEXT does not go with a chat"},
            {"--conversation --output b", "--output does not go with a chat"},
            {"--conversation --check quick", "--check does not go with a chat"},
            {"--conversation --compare", "--compare does not go with a chat"},
            {"--conversation --max-sequences 2", "--max-sequences does not go with a chat, which takes its turns from stdin, one at a time"});
    assert_taken("--conversation --target a", &options);
    assert_int_equal(options.report.compare, 0);
    assert_int_equal(options.rounds.max_sequences, 1);
    options_release(&options);
}

/* folder: where fetched models are */
static void assert_pairs_are_known(const char *folder)
{
    static const char *const names[] = {"qwen2.5-coder", "qwen2.5-coder-draft"}, *const pairs[] = {"", " --draft auto"};
    char file[2][128], line[64];
    struct options options;

    for (int i = 0; i < 2; i++) {
        snprintf(file[i], sizeof file[i], "%s/%s.gguf", folder, names[i]);
        snprintf(line, sizeof line, "--target %s has not been fetched yet", names[0]);
        assert_refused(i == 0 ? "--target qwen2.5-coder" : "--target qwen2.5-coder", STATUS_NOINPUT,
                       i == 0 ? line : "--draft qwen2.5-coder-draft has not been fetched yet");
        FILE *made = fopen(file[i], "w");
        assert_non_null(made);
        assert_int_equal(fclose(made), 0);
    }
    for (int i = 0; i < 2; i++) {
        snprintf(line, sizeof line, "--target qwen2.5-coder%s", pairs[i]);
        assert_taken(line, &options);
        assert_string_equal(options.model.draft, file[1]);
        assert_int_equal(options.model.draft_is_known, 1);
        options_release(&options);
    }
    assert_taken("--target qwen2.5-coder --draft lookup", &options);
    assert_string_equal(options.model.draft, "lookup");
    assert_int_equal(options.model.draft_is_known, 0);
    options_release(&options);
    assert_taken("--target qwen2.5-coder --solo", &options);
    assert_null(options.model.draft);
    options_release(&options);
    assert_int_equal(unlink(file[0]) | unlink(file[1]), 0);
}

/* folder: where fetched models are */
static void assert_names_of_the_hub_are_known(const char *folder)
{
    static const char *const part[] = {"/hf", "/owner", "/name", "/q8.gguf"};
    char place[4][128];
    struct options options;

    assert_refused("--target hf:owner/name/q8.gguf", STATUS_NOINPUT, "/tandem/hf/owner/name/q8.gguf: launch/tandem fetch hf:owner/name/q8.gguf");
    assert_refused("--target a --draft hf:owner/name", STATUS_NOINPUT,
                   "--draft hf:owner/name has not been fetched yet, expected /tmp/test_options_cache.");
    for (int i = 0; i < 4; i++) {
        snprintf(place[i], sizeof place[i], "%s%s", i == 0 ? folder : place[i - 1], part[i]);
        assert_int_equal(mkdir(place[i], 0700), 0);
    }
    assert_taken("--target hf:owner/name --draft hf:owner/name/q8.gguf", &options);
    assert_string_equal(options.model.target, place[2]);
    assert_string_equal(options.model.draft, place[3]);
    options_release(&options);
    for (int i = 4; i-- > 0;)
        assert_int_equal(rmdir(place[i]), 0);
}

/* A name of `tandem fetch` is the file that was fetched; where there is something of that name here, it is that. */
static void test_options__a_fetched_model_goes_by_its_name(void **state)
{
    char cache[] = "/tmp/test_options_cache.XXXXXX", folder[64], file[96];
    struct options options;
    FILE *made;

    (void)state;
    assert_non_null(mkdtemp(cache));
    snprintf(folder, sizeof folder, "%s/tandem", cache);
    snprintf(file, sizeof file, "%s/smollm2.gguf", folder);
    assert_int_equal(setenv("XDG_CACHE_HOME", cache, 1), 0);
    assert_refused("--target smollm2", STATUS_NOINPUT, "--target smollm2 has not been fetched yet, expected /tmp/test_options_cache.");
    assert_refused("--target smollm2 --draft auto", STATUS_NOINPUT, "--target smollm2 has not been fetched yet, expected /tmp/test_options_cache.");
    assert_refused("--target a --draft smollm2", STATUS_NOINPUT, "/tandem/smollm2.gguf: launch/tandem fetch smollm2");
    assert_int_equal(mkdir(folder, 0700), 0);
    made = fopen(file, "w");
    assert_non_null(made);
    assert_int_equal(fclose(made), 0);
    assert_taken("--target smollm2 --draft smollm2", &options);
    assert_string_equal(options.model.target, file);
    assert_string_equal(options.model.draft, file);
    options_release(&options);
    assert_taken("--target smollm2", &options); /* nothing is known that drafts for it */
    assert_null(options.model.draft);
    options_release(&options);
    assert_refused("--target smollm2 --draft auto", STATUS_USAGE, "--draft auto: no draft model is known that belongs to --target smollm2; expected");
    assert_refused("--target /tmp/nonesuch --draft auto", STATUS_NOINPUT,
                   "--target /tmp/nonesuch: no such file or folder, expected a model's folder");
    assert_refused("--target /tmp --draft auto", STATUS_USAGE, "--draft auto: no draft model is known that belongs to --target /tmp; expected");
    assert_taken("--draft auto", &options); /* the embedded pair */
    assert_null(options.model.draft);
    options_release(&options);
    assert_pairs_are_known(folder);
    assert_names_of_the_hub_are_known(folder);
    assert_taken("--target ./smollm2 --draft smollm", &options);
    assert_string_equal(options.model.target, "./smollm2");
    assert_string_equal(options.model.draft, "smollm");
    options_release(&options);
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    assert_int_equal(unlink(file) | rmdir(folder) | rmdir(cache), 0);
}

static void test_options_config__a_file_that_cannot_be_read_is_named(void **state)
{
    (void)state;
    assert_refused("--config /nowhere/at/all.ini", STATUS_NOINPUT, "--config /nowhere/at/all.ini: ");
    assert_refused("--config /tmp", STATUS_NOINPUT, "--config /tmp: Is a directory");
}

static void test_options_set_number__takes_what_a_request_may_set(void **state)
{
    struct options options;
    char reason[128] = "";

    (void)state;
    assert_taken("", &options);
    assert_int_equal(options_set_number(&options, "top_k", 5, reason, sizeof reason), 1);
    assert_int_equal(options_set_number(&options, "temperature", 0.25, reason, sizeof reason), 1);
    assert_int_equal(options_set_number(&options, "seed", (long double)INT64_MAX, reason, sizeof reason), 1);
    assert_int_equal(options.request.sampling.top_k, 5);
    assert_true(options.request.sampling.temperature == 0.25 && options.request.sampling.seed == INT64_MAX);
    assert_int_equal(options_set_number(&options, "top-k", 5, reason, sizeof reason), 0);
    assert_int_equal(options_set_number(&options, "threads", 5, reason, sizeof reason), 0);
    assert_int_equal(options_set_number(&options, "nothing", 5, reason, sizeof reason), 0);
    assert_string_equal(reason, "");
}

static void test_options_set_number__refuses_what_does_not_fit(void **state)
{
    static const struct {
        const char *name;
        long double value;
    } bad[] = {{"top_k", 0.5},       {"top_k", -1},  {"top_k", NAN},   {"temperature", NAN}, {"temperature", INFINITY},
               {"seed", -1},         {"seed", 1.5},  {"seed", NAN},    {"seed", INFINITY},   {"seed", 0x1p63L},
               {"max_tokens", 1e12}, {"top_p", 1.5}, {"ignore_eos", 2}};
    struct options options, before;

    (void)state;
    assert_taken("", &options);
    before = options;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char reason[128] = "";

        assert_int_equal(options_set_number(&options, bad[i].name, bad[i].value, reason, sizeof reason), -1);
        assert_non_null(strstr(reason, bad[i].name));
    }
    assert_memory_equal(&options, &before, sizeof options);
}

/* Every option of the table is in the help, the manual page and among the keys, but for the hidden ones. */
static void test_options_print__names_every_option(void **state)
{
    static const char *const asked[] = {"--help", "--help-run", "--help-man"};

    (void)state;
    for (size_t a = 0; a < 3; a++) {
        char *text = NULL, name[64];
        size_t size = 0;
        struct options options;
        FILE *to = open_memstream(&text, &size);

        assert_non_null(to);
        assert_taken(asked[a], &options);
        options_print(&options, "tandem-test", "tests things", to);
        fclose(to);
        assert_null(strstr(text, " \n"));
        for (int i = 0; i < option_count; i++) {
            snprintf(name, sizeof name, "%s%s", a == 2 ? "\\-\\-" : "--", option_table[i].name);
            int shown = strstr(text, name) != NULL, hidden = option_table[i].group == OPTION_HIDDEN;
            if (strncmp(option_table[i].name, "help", 4) != 0 && shown == hidden)
                fail_msg("%s: %s is %s", asked[a], name, shown ? "shown" : "not shown");
        }
        free(text);
    }
}

/* Those of enum status, and those that the launcher adds. */
/* Words are as wide as told, but no narrower than can be read; a name alone may be longer. */
static void test_options_print__help_is_as_wide_as_it_is_told(void **state)
{
    static const int columns[][2] = {{60, 60}, {90, 90}, {10, 40}, {400, 110}};

    (void)state;
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        char *text = NULL, told[16];
        size_t size, widest = 0;
        struct options options;
        FILE *to = open_memstream(&text, &size);

        assert_taken("--help", &options);
        snprintf(told, sizeof told, "%d", columns[i][0]);
        setenv("COLUMNS", told, 1);
        options_print(&options, "tandem-test", "tests things", to);
        unsetenv("COLUMNS");
        fclose(to);
        for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
            if (line[strspn(line, " ")] != '(' && strlen(line) > widest) /* choices are one word */
                widest = strlen(line);
        assert_in_range(widest, columns[i][1] - 10, columns[i][1]);
        free(text);
    }
}

static void test_options_print__names_every_exit_code(void **state)
{
    static const char *const asked[] = {"--help", "--help-run", "--help-man"};
    static const char *const codes[] = {" 0 ", " 1 ", " 64 ", " 65 ", " 66 ", " 69 ", " 70 ", " 71 ", " 74 ", " 75 ", " 76 ", " 128 + N "};

    (void)state;
    for (size_t a = 0; a < sizeof asked / sizeof *asked; a++) {
        char *text = NULL, *endings;
        size_t size = 0;
        struct options options;
        FILE *to = open_memstream(&text, &size);

        assert_non_null(to);
        assert_taken(asked[a], &options);
        options_print(&options, "tandem-test", "tests things", to);
        fclose(to);
        endings = strstr(text, "Exit codes:");
        assert_non_null(endings);
        for (char *at = endings; *at != '\0'; at++)
            *at = *at == '\n' ? ' ' : *at; /* a line may break before or behind one */
        for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
            if (strstr(endings, codes[i]) == NULL)
                fail_msg("%s: exit code%sis not shown", asked[a], codes[i]);
        free(text);
    }
}

static int make_path(void **state)
{
    int descriptor = mkstemp(path);

    (void)state;
    return descriptor < 0 ? -1 : close(descriptor);
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path);
}

static void assert_way(const char *line, enum drafter_kind kind, const char *whole)
{
    char text[OPTIONS_DRAFT_TEXT];
    struct options options;

    assert_taken(line, &options);
    assert_int_equal(options.model.draft_way.kind, kind);
    options_draft_write(&options.model.draft_way, text);
    assert_string_equal(text, whole);
    options_release(&options);
}

/* Ways to draft need no --target: there is the embedded one. What is no way is a path, which does. */
static void test_options_draft__ways_and_paths(void **state)
{
    (void)state;
    assert_way("--prompt a", DRAFT_MODEL, "");
    assert_way("--prompt a --draft lookup", DRAFT_LOOKUP, "lookup:min=1,max=4");
    assert_way("--prompt a --draft=lookup:max=7", DRAFT_LOOKUP, "lookup:min=1,max=7");
    assert_way("--prompt a --draft lookup:max=16,min=16", DRAFT_LOOKUP, "lookup:min=16,max=16");
    assert_way("--prompt a --draft lookup:job=1", DRAFT_LOOKUP, "lookup:min=1,max=4,job=1");
    assert_way("--prompt a --draft self:layers=12", DRAFT_SELF, "self:layers=12");
    assert_way("--prompt a --target b --draft self:layers=1", DRAFT_SELF, "self:layers=1");
    assert_way("--prompt a --draft self:bits=4", DRAFT_SELF, "self:bits=4");
    assert_way("--prompt a --draft self:layers=3,bits=8", DRAFT_SELF, "self:bits=8,layers=3");
    assert_way("--prompt a --draft self:skip=3+4+8-9,layers=20", DRAFT_SELF, "self:layers=20,skip=3-4+8-9");
    assert_way("--prompt a --draft ngram:a/b.ngram", DRAFT_NGRAM, "ngram:b.ngram");
    assert_way("--prompt a --draft random", DRAFT_RANDOM, "random");
    assert_way("--prompt a --draft lookahead:ngram=4", DRAFT_LOOKAHEAD, "lookahead:window=4,ngram=4,guesses=2");
    assert_way("--prompt a --draft retrieval:/a/b", DRAFT_RETRIEVAL, "retrieval:b");
    assert_way("--prompt a --draft ngram:min=2,x", DRAFT_NGRAM, "ngram:min=2,x");
    assert_way("--prompt a --target b --draft ./lookup", DRAFT_MODEL, "");
    assert_way("--prompt a --target b --draft lookups", DRAFT_MODEL, "");
    assert_way("--prompt a --target b --draft look", DRAFT_MODEL, "");
    write_config("draft = lookup:min=2\n");
    char line[128];
    snprintf(line, sizeof line, "--prompt a --config %s", path);
    assert_way(line, DRAFT_LOOKUP, "lookup:min=2,max=4");
}

static void test_options_draft__what_is_wrong_is_named(void **state)
{
    (void)state;
    REFUSED(
        {"--draft ./lookup", "--draft needs --target where it is a model, as './lookup' would be"},
        {"--target a --draft=", "--draft is '', expected a model"}, {"--target=", "--target is '', expected a model"},
        {"--draft lookup:", "--draft lookup has no key ''"}, {"--draft lookup:mim=2", "--draft lookup has no key 'mim', expected min, max or job; did you mean 'min'?"},
        {"--draft lookup:layers=2", "--draft lookup has no key 'layers'"},
        {"--draft lookup:min=0", "min is '0', expected a whole number from 1 to 16"}, {"--draft lookup:job=0", "job is '0', expected 1"},
        {"--draft lookup:max=17", "max is '17', expected a whole number from 1 to 16"}, {"--draft lookup:max=4294967297", "max is '4294967297'"},
        {"--draft lookup:min=2x", "min is '2x'"}, {"--draft lookup:min=-1", "min is '-1'"}, {"--draft lookup:min", "min is ''"},
        {"--draft lookup:min=3,,max=4", "has no key ''"}, {"--draft lookup:min=3,max=2", "min is 3 and max is 2, expected min <= max"},
        {"--draft lookup:min=5", "min is 5 and max is 4"},
        {"--draft self", "--draft self needs bits=4 or bits=8, to which the target's weights are rounded, layers=N, its first N layers, or skip=LIST"},
        {"--draft self:bits=5", "--draft self: bits is '5', expected 4 or 8"}, {"--draft self:bits=0", "bits is '0', expected 4 or 8"},
        {"--draft self:bits=16,layers=2", "bits is '16', expected 4 or 8"}, {"--draft self:bits", "bits is '', expected 4 or 8"},
        {"--draft self:bit=4", "--draft self has no key 'bit', expected bits, layers or skip; did you mean 'bits'?"}, {"--draft lookup:bits=4", "--draft lookup has no key 'bits'"},
        {"--draft self:skip=", "--draft self: skip is '', expected rising layers from 0 to 127, as 3+8-11"}, {"--draft self:skip=4+2", "skip is '4+2', expected rising"},
        {"--draft self:layers=0", "--draft self: layers is '0', expected a whole number from 1"}, {"--draft self:layer=3", "did you mean 'layers'?"},
        {"--draft ngram", "--draft ngram needs a file, as ngram:FILE; tandem ngram makes one of texts"},
        {"--draft lookahead:ngram=1", "--draft lookahead: ngram is 1, expected a whole number from 2 to 8"},
        {"--draft lookahead:window=31,ngram=3", "(window + guesses) * (ngram - 1) = 66 drafts, expected 63 at most"},
        {"--draft lookahead:windows=5", "--draft lookahead has no key 'windows', expected window, ngram or guesses; did you mean 'window'?"},
        {"--draft lookahead:ngram=3,window=4,ngram=3", "--draft lookahead: ngram is given twice, expected once"},
        {"--draft random:seed=3", "--draft random has no key 'seed', nor any other"},
        {"--draft retrieval:", "--draft retrieval needs a file, as retrieval:FILE; tandem datastore makes one of texts"},
        {"--check quick --break q-temperature --draft lookup", "--draft lookup draws nothing"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options__no_arguments_give_the_defaults),
        cmocka_unit_test(test_options__sequences_go_together_only_where_nobody_watches),
        cmocka_unit_test(test_options__values_stand_apart_or_behind_an_equals_sign),
        cmocka_unit_test(test_options__a_text_is_scored_alone_and_by_the_target),
        cmocka_unit_test(test_options__several_completions_make_results),
        cmocka_unit_test(test_options__a_prompt_is_echoed_and_a_chat_is_not),
        cmocka_unit_test(test_options__an_unknown_option_names_the_nearest),
        cmocka_unit_test(test_options__names_from_elsewhere_are_answered_by_their_meaning),
        cmocka_unit_test(test_options__each_says_whether_results_and_ranks_have_to_do_with_it),
        cmocka_unit_test(test_options__names_from_elsewhere_are_not_ours),
        cmocka_unit_test(test_options__what_is_no_option_is_refused),
        cmocka_unit_test(test_options__a_missing_value_is_refused),
        cmocka_unit_test(test_options__numbers_that_do_not_fit_are_refused),
        cmocka_unit_test(test_options__a_tree_needs_who_makes_it_and_who_decides_about_it),
        cmocka_unit_test(test_options__open_ends_of_ranges_are_refused),
        cmocka_unit_test(test_options__one_range_is_told),
        cmocka_unit_test(test_options__of_two_texts_to_complete_none_is_lost),
        cmocka_unit_test(test_options__a_comparison_needs_two_things),
        cmocka_unit_test(test_options__choices_and_flags_are_spelled_out),
        cmocka_unit_test(test_options__what_excludes_each_other_is_refused),
        cmocka_unit_test(test_options__rounds_are_explained_of_one_prompt),
        cmocka_unit_test(test_options__to_resume_needs_a_file_of_output),
        cmocka_unit_test(test_options__a_check_needs_drafts_and_a_break_needs_a_check),
        cmocka_unit_test(test_options__at_most_sixteen_stops),
        cmocka_unit_test(test_options__tokens_are_biased_banned_and_stop),
        cmocka_unit_test(test_options__repeated_options_have_their_limits),
        cmocka_unit_test(test_options_draft__ways_and_paths),
        cmocka_unit_test(test_options_draft__what_is_wrong_is_named),
        cmocka_unit_test(test_options_config__the_command_line_wins),
        cmocka_unit_test(test_options_config__indentation_means_nothing),
        cmocka_unit_test(test_options_config__bad_lines_are_named),
        cmocka_unit_test(test_options__a_fetched_model_goes_by_its_name),
        cmocka_unit_test(test_options__chat_has_a_text_or_none),
        cmocka_unit_test(test_options_config__a_file_that_cannot_be_read_is_named),
        cmocka_unit_test(test_options_set_number__takes_what_a_request_may_set),
        cmocka_unit_test(test_options_set_number__refuses_what_does_not_fit),
        cmocka_unit_test(test_options_print__names_every_option),
        cmocka_unit_test(test_options_print__help_is_as_wide_as_it_is_told),
        cmocka_unit_test(test_options_print__names_every_exit_code),
    };

    return cmocka_run_group_tests(tests, make_path, remove_path);
}
