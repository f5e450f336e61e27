#include "common/options/options.h"

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/spelling.h"
#include "common/base/try.h"
#include "common/options/options_elsewhere.h"
#include "common/options/options_idle.h"
#include "common/options/options_list.h"
#include "common/options/options_merge.h"
#include "common/options/options_table.h"
#include "common/sample/rule.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TREE_ASKED = 64 };      /* bytes of the option that asks for a tree */
enum { CHECK_SEQUENCES = 16 }; /* for a check, which makes thousands of short requests */
enum { PERPLEXITY_WINDOW = 512, SMALLEST_WINDOW = 4 };  /* tokens; half a window counts, and a standard error needs two of them */
enum { DEADLINE_MS = 1000, CHECK_DEADLINE_MS = 20000 }; /* without its drafts a check shows nothing, so it has patience on a busy machine */

const struct options options_default = {
    .ranks.drafters = -1,
    .launch.launcher = -1,
    .ranks.verifiers = -1,
    .request.max_tokens = 128,
    .request.logprobs = -1,
    .request.n = 1,
    .request.best_of = -1,
    .rounds.draft_length = -1,
    .rounds.support = 256,
    .rounds.draft_temperature = -1,
    .rounds.max_sequences = -1,
    .limits.draft_deadline_ms = -1,
    .limits.drain_s = 5,
    .limits.watchdog_s = 60,
    .rounds.synthetic_acceptance = -1,
};

static enum status refuse_name(const char *name)
{
    char words[OPTIONS_ELSEWHERE];

    if (options_elsewhere(name, 0, words, sizeof words))
        log_error("option '--%s' is not supported%s", name, words);
    else
        log_error("unknown option '--%s'; did you mean '--%s'?", name, option_nearest(name));
    return STATUS_USAGE;
}

/* This program has no options of one letter. Other programs have many, alone or with a value behind them, as -n5: the line says what to write
 * here. */
static enum status refuse_short(const char *text)
{
    const char letter[] = {text[1], '\0'};
    char name[64], words[OPTIONS_ELSEWHERE];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(text + 1, "="), text + 1);
    if (!options_elsewhere_short(name, words, sizeof words) && !options_elsewhere_short(letter, words, sizeof words))
        snprintf(words, sizeof words, ", expected one that begins with --");
    log_error("option '%s' is not supported%s", text, words);
    return STATUS_USAGE;
}

/* One argument of the command line, --name, --name=value or --name value; *at moves past what was used. */
static enum status take_argument(struct options *options, int argc, char **argv, int *at)
{
    char name[OPTION_NAME];
    const char *text = argv[*at], *value;
    const struct option_entry *entry;

    if (strncmp(text, "--", 2) != 0 || text[2] == '\0') {
        if (text[0] == '-' && text[1] != '\0' && text[1] != '-')
            return refuse_short(text);
        log_error("unexpected argument '%s', expected an option that begins with --, as --prompt TEXT or --prompts FILE", text);
        return STATUS_USAGE;
    }
    value = option_cut(text, name);
    entry = option_find(name);
    if (entry == NULL)
        return refuse_name(name);
    *at += 1;
    if (entry->value == NULL)
        return option_set(options, entry, value != NULL ? value : "true", "--");
    if (value != NULL)
        return option_set(options, entry, value, "--");
    if (!option_takes_next(entry, argc, argv, *at))
        return option_set(options, entry, "", "--");
    if (*at >= argc) {
        log_error("--%s needs a value: %s", entry->name, entry->value);
        return STATUS_USAGE;
    }
    return option_set(options, entry, argv[(*at)++], "--");
}

/* Turns come from stdin and go to stdout, one after the other. */
static enum status check_conversation(const struct options *options)
{
    const char *other = options->input.chat != NULL && options->input.prompt == options->input.chat ? "--chat TEXT"
                        : options->input.prompt != NULL                                             ? "--prompt"
                        : options->input.prompts != NULL                                            ? "--prompts"
                        : options->results.path != NULL                                             ? "--output"
                        : options->checks.size != CHECK_OFF                                         ? "--check"
                        : options->report.compare                                                   ? "--compare"
                        : options->report.sweep != NULL                                             ? "--sweep"
                        : options->rounds.max_sequences != 1                                        ? "--max-sequences"
                        : options->request.echo                                                     ? "--echo"
                                                                                                    : NULL;

    if (!options->input.conversation || other == NULL)
        return STATUS_OK;
    log_error("%s does not go with a chat, which takes its turns from stdin, one at a time", other);
    return STATUS_USAGE;
}

/* The first option of how tokens are chosen that has not its default; NULL: none. A seed is left alone, for it says nothing by itself. */
static const struct option_entry *find_choosing(const struct options *options)
{
    for (int i = 0; i < option_count; i++) {
        const struct option_entry *entry = &option_table[i];

        if (entry->group == OPTION_SAMPLING && entry->kind != OPTION_U64 && !options_is_default(options, entry))
            return entry;
    }
    return NULL;
}

/* A text is scored alone, and by the target alone. */
static enum status check_perplexity(const struct options *options)
{
    const char *other = options->input.prompt != NULL       ? "--prompt or --chat"
                        : options->input.prompts != NULL    ? "--prompts"
                        : options->input.chat != NULL       ? "--chat"
                        : options->input.conversation       ? "a chat"
                        : options->results.path != NULL     ? "--output"
                        : options->checks.size != CHECK_OFF ? "--check"
                        : options->report.compare           ? "--compare"
                        : options->report.sweep != NULL     ? "--sweep"
                        : options->request.echo             ? "--echo"
                        : options->request.logprobs >= 0    ? "--logprobs"
                                                            : NULL;

    if (options->input.perplexity == NULL)
        return STATUS_OK;
    if (other != NULL) {
        log_error("%s does not go with --perplexity, which scores its text and completes nothing", other);
        return STATUS_USAGE;
    }
    if (find_choosing(options) != NULL) {
        log_error("--%s does not go with --perplexity, which scores its text and chooses no tokens", find_choosing(options)->name);
        return STATUS_USAGE;
    }
    if (options->model.context >= SMALLEST_WINDOW)
        return STATUS_OK;
    log_error("--context is %d, expected windows of at least %d tokens for --perplexity", options->model.context, SMALLEST_WINDOW);
    return STATUS_USAGE;
}

/* Of `tandem run`: what there is to complete, and to compare. A check and a sweep have prompts of their own. */
static enum status check_asked(const struct options *options)
{
    int is_run = options->checks.size == CHECK_OFF && options->report.sweep == NULL && !options->input.conversation;

    if (is_run && options->input.chat != NULL && options->input.prompt == NULL && options->input.prompts == NULL) {
        log_error("--chat has no message, expected TEXT behind it, --prompt or --prompts");
        return STATUS_USAGE;
    }
    if (options->input.chat != NULL && options->request.echo) {
        log_error("--echo is for prompts, and --chat makes messages of them: expected one of the two");
        return STATUS_USAGE;
    }
    if (is_run && options->report.compare && !options_drafts(options)) {
        log_error("--compare sets drafted decoding beside the target's own, expected --draft beside --target, a drafter, and no --solo");
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

/* Rounds are shown where the text of one prompt is. */
static enum status check_explained(const struct options *options)
{
    const char *other = options->input.prompts != NULL              ? "--prompts"
                        : options->input.perplexity != NULL         ? "--perplexity"
                        : options->input.conversation               ? "a chat"
                        : options->checks.size != CHECK_OFF         ? "a check"
                        : options->report.sweep != NULL             ? "a bench"
                        : options->results.path != NULL             ? "--output"
                        : options->report.compare                   ? "--compare"
                        : options->request.echo                     ? "--echo"
                        : options->report.show_drafts               ? "--show-drafts"
                        : options->rounds.synthetic_acceptance >= 0 ? "--synthetic-acceptance"
                                                                    : NULL;
    const char *name = options->report.explain ? "--explain" : "--explain-page";

    if (!options_explains(options) || (other == NULL && options->input.prompt != NULL))
        return STATUS_OK;
    if (other != NULL)
        log_error("%s does not go with %s, which shows how the rounds of one --prompt were decided", other, name);
    else
        log_error("%s shows how the rounds of one prompt were decided, expected --prompt TEXT", name);
    return STATUS_USAGE;
}

/* Choices are of one result, which does not stream. */
static enum status check_choices(const struct options *options)
{
    const char *said = options->request.best_of > 0 ? "--best-of" : "--n";
    const char *other = options->input.perplexity != NULL   ? "--perplexity"
                        : options->input.conversation       ? "a chat"
                        : options->checks.size != CHECK_OFF ? "a check"
                        : options->report.sweep != NULL     ? "a bench"
                                                            : NULL;

    if (options->request.logprobs >= 0 && options->input.prompt != NULL && options->results.path == NULL && other == NULL) {
        log_error("--logprobs with --prompt needs --output FILE, or --output -: results have them, text has not");
        return STATUS_USAGE;
    }
    if (options->request.best_of < 1 && options->request.n == 1)
        return STATUS_OK;
    if (other != NULL)
        log_error("%s does not go with %s, which has one completion of each prompt, or none", said, other);
    else if (options->request.best_of > 0 && options->input.chat != NULL)
        log_error("--best-of is for prompts, and --chat makes messages of them: expected --n alone");
    else if (options->request.best_of > 0 && options->request.best_of < options->request.n)
        log_error("--best-of is %d, expected at least --n, %d", options->request.best_of, options->request.n);
    else if (options->input.prompt != NULL && options->results.path == NULL)
        log_error("%s with --prompt needs --output FILE, or --output -: several completions make one result, which does not stream", said);
    else
        return STATUS_OK;
    return STATUS_USAGE;
}

static enum status read_stopping(struct options *options)
{
    if (options->rounds.stop_drafting == NULL || stopping_read(options->rounds.stop_drafting, &options->rounds.stopping))
        return STATUS_OK;
    log_error("--stop-drafting is '%s', expected " STOPPING_NAMES, options->rounds.stop_drafting);
    return STATUS_USAGE;
}

static enum status read_tree(struct options *options)
{
    if (options->rounds.tree == NULL)
        return STATUS_OK;
    if (!tree_shape_read(options->rounds.tree, &options->rounds.shape)) {
        char advice[SPELLING_ADVICE];

        spelling_advise("chain|top-k|dynamic|sequoia|iid|auto", options->rounds.tree, advice);
        log_error("--tree is '%s', expected " TREE_NAMES "%s", options->rounds.tree, advice);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

/* A kind with a tree of its own proposes no other. */
static void take_own_tree(struct options *options)
{
    if (options_draft_kind(&options->model.draft_way)->own_tree && options->rounds.shape.kind == TREE_CHAIN) {
        options->rounds.shape.kind = TREE_OWN;
        if (options->rounds.draft_length < 0)
            options->rounds.draft_length = options_draft_own_tree(&options->model.draft_way);
    }
}

/* What asks for a tree, for whoever can have none: "--tree top-k", or the drafter kind.  text: [TREE_ASKED] */
static void name_tree(const struct options *options, char *text)
{
    if (options->rounds.shape.kind == TREE_OWN)
        snprintf(text, TREE_ASKED, "--draft %s", options_draft_kind(&options->model.draft_way)->name);
    else
        snprintf(text, TREE_ASKED, "--tree %s", options->rounds.tree != NULL ? options->rounds.tree : "chain");
}

static enum status check_breakage(const struct options *options)
{
    const struct breakage_entry *fault = &breakage_table[options->checks.breakage];
    const char *rule = rule_name(options->request.sampling.accept);
    int is_tree = options->rounds.shape.kind != TREE_CHAIN && !options->rounds.solo, is_own = options->rounds.shape.kind == TREE_OWN;
    int is_of_chains = fault->of == BREAKAGE_OF_CHAINS || fault->of == BREAKAGE_OF_BRANCHES;
    char tree[TREE_ASKED];

    if (options->checks.breakage == BREAKAGE_NONE)
        return STATUS_OK;
    name_tree(options, tree);
    if (options->checks.size == CHECK_OFF)
        log_error("--break %s is for `tandem check` alone: no result that is kept may come from broken code", fault->name);
    else if (is_tree && is_of_chains)
        log_error("--break %s is a fault of chains, expected no %s; --list-breaks says which are of trees", fault->name, tree);
    else if (!is_tree && fault->of == BREAKAGE_OF_TREES)
        log_error("--break %s is a fault in how the path of a tree is kept, expected --tree dynamic or top-k", fault->name);
    else if (fault->of == BREAKAGE_OF_SIBLINGS && (!is_tree || is_own || strstr(fault->rules, rule) == NULL))
        log_error("--break %s is a fault in how siblings are drawn or tested, expected --tree top-k and --accept %s", fault->name, fault->rules);
    else
        return STATUS_OK;
    return STATUS_USAGE;
}

/* May the tree's drafts be drawn, or can rules alone decide about them that compare tokens? */
static int takes_drawn(const struct options *options)
{
    return options->rounds.shape.kind == TREE_TOP_K || options->rounds.shape.kind == TREE_IID;
}

/* A tree needs a drafter that makes one and a rule that decides about it. */
static enum status check_tree(const struct options *options)
{
    const struct options_draft_kind *kind = options_draft_kind(&options->model.draft_way);
    const struct rule *rule = rule_of(&options->request.sampling);
    const char *tree = options->rounds.tree;
    char asked[TREE_ASKED];

    if (options->rounds.shape.kind == TREE_CHAIN || options->rounds.solo)
        return STATUS_OK;
    name_tree(options, asked);
    if (!kind->draws && options->rounds.shape.kind == TREE_IID) {
        log_error("--tree %s is of drafts that are drawn, and --draft %s draws none; expected --tree top-k, dynamic or sequoia", tree, kind->name);
        return STATUS_USAGE;
    }
    if (!kind->draws && rule != NULL && !rule_takes_shape(rule, TREE_OWN)) {
        log_error(
            "--draft %s proposes trees without q, which only rules that compare tokens can decide about; expected --accept walk or coupled%s, not %s",
            kind->name, options->request.sampling.temperature == 0 ? "" : ", or --temperature 0", rule->name);
        return STATUS_USAGE;
    }
    if (kind->own_tree && tree != NULL)
        log_error("--tree %s: --draft %s proposes a tree of its own, expected no --tree", tree, kind->name);
    else if (rule != NULL && !rule->trees)
        log_error("--tree %s: --accept %s decides about chains alone%s; expected --accept coupled%s%s", tree, rule->name,
                  options->request.sampling.temperature == 0 ? "" : " at this temperature",
                  takes_drawn(options) ? ", walk, multistep, without-replacement, k-sequential or traversal" : " or walk",
                  options->request.sampling.temperature == 0 ? "" : ", or --temperature 0");
    else if (rule != NULL && rule->siblings != RULE_SIBLINGS_ANY && options->rounds.shape.kind == TREE_DYNAMIC)
        log_error("--tree %s chooses drafts by what they are, and --accept %s draws them; expected --tree top-k or iid", tree, rule->name);
    else if (rule != NULL && rule->siblings != RULE_SIBLINGS_ANY && options->rounds.shape.kind == TREE_AUTO)
        log_error("--tree %s chooses shapes by what became of drafts, and --accept %s draws them; expected --tree top-k or iid", tree, rule->name);
    else if (rule != NULL && rule->siblings != RULE_SIBLINGS_ANY && options->rounds.shape.kind == TREE_SEQUOIA)
        log_error("--tree %s follows what became of drafts, and --accept %s draws them; expected --tree top-k or iid", tree, rule->name);
    else if (rule != NULL && rule->siblings == RULE_SIBLINGS_ANY && options->rounds.shape.kind == TREE_IID)
        log_error("--tree %s is of drafts that are drawn, and by %s none is%s; expected --tree top-k, dynamic or sequoia", tree,
                  options->request.sampling.temperature == 0 ? "any rule" : rule->name,
                  options->request.sampling.temperature == 0 ? " at temperature 0" : "");
    else if (options->rounds.stopping.kind != STOPPING_NEVER)
        log_error("%s has as many tokens as are asked for, expected no --stop-drafting %s", asked, options->rounds.stop_drafting);
    else if (options->rounds.shape.kind == TREE_AUTO && options->rounds.draft_length >= 0)
        log_error("--tree %s chooses shape and size by what they are worth, expected no --draft-length, or --tree dynamic", tree);
    else if (options->rounds.run_ahead == RUN_AHEAD_ON && options->rounds.shape.kind != TREE_AUTO)
        log_error("--run-ahead on: no drafter runs ahead of a tree, expected no %s, or --run-ahead auto", asked);
    else if (options->rounds.synthetic_acceptance >= 0)
        log_error("%s: a path is that of the target's own tokens, expected no --synthetic-acceptance", asked);
    else
        return STATUS_OK;
    return STATUS_USAGE;
}

/* Copies save steps of a draft model. */
static enum status check_copies(const struct options *options)
{
    const struct options_draft_kind *kind = options_draft_kind(&options->model.draft_way);
    char tree[TREE_ASKED];
    const char *said = options->rounds.cascade != CASCADE_NONE ? "--cascade lookup"
                       : options->rounds.copy_first > 0        ? "--copy-first"
                                                               : "--copy-after";

    if (!options_copies(options) || !options_drafts(options))
        return STATUS_OK;
    name_tree(options, tree);
    if (!options_kinds_run_models(options))
        log_error("%s saves steps of a draft model, and --draft %s has none; expected a draft model, or --draft self:...", said, kind->name);
    else if (options->rounds.shape.kind != TREE_CHAIN)
        log_error("%s drafts chains, expected no %s", said, tree);
    else if (options->rounds.cascade != CASCADE_NONE && options->rounds.copy_after > 0)
        log_error("--copy-after drafts without the draft model what --cascade lookup would draft with it, expected one of them");
    else if (options->rounds.draft_length >= 0 && options->rounds.copy_after >= options->rounds.draft_length && options->rounds.copy_after > 0)
        log_error("--copy-after is %d, expected less than --draft-length, which is %d: else nothing is copied", options->rounds.copy_after,
                  options->rounds.draft_length);
    else if (options->rounds.copy_first == 1)
        log_error("--copy-first is 1, expected 0, or 2 to 16 tokens that must have occurred before");
    else
        return STATUS_OK;
    return STATUS_USAGE;
}

static enum status check_heuristic(const struct options *options)
{
    if (options->rounds.stopping.kind != STOPPING_HEURISTIC)
        return STATUS_OK;
    if (options->rounds.draft_length >= 0)
        log_error("--stop-drafting heuristic chooses the draft length, expected no --draft-length %d", options->rounds.draft_length);
    else if (options->checks.size != CHECK_OFF || options->report.sweep != NULL)
        log_error("--stop-drafting heuristic chooses the draft length, and %s has lengths of its own",
                  options->checks.size != CHECK_OFF ? "a check" : "a bench");
    else
        return STATUS_OK;
    return STATUS_USAGE;
}

/* Words for no draft at all, unless there is a model of that name. */
static enum status check_no_draft(const char *draft)
{
    static const char *const words[] = {"none", "off", "no", "solo", NULL};

    if (draft == NULL || !options_is_named(draft, words) || access(draft, F_OK) == 0)
        return STATUS_OK;
    log_error("--draft %s: no model or kind of drafter has that name; with --solo instead, nothing is drafted", draft);
    return STATUS_USAGE;
}

static enum status check_together(const struct options *options)
{
    const struct options_draft_kind *kind = options_draft_kind(&options->model.draft_way);
    char reason[160];

    if (options->input.prompt != NULL && options->input.prompts != NULL) {
        log_error("--prompt and --prompts exclude each other");
        return STATUS_USAGE;
    }
    if (options->input.chat != NULL && *options->input.chat != '\0' &&
        (options->input.prompt != options->input.chat || options->input.prompts != NULL)) {
        log_error("--chat with a text and --prompt or --prompts exclude each other");
        return STATUS_USAGE;
    }
    TRY(check_perplexity(options));
    TRY(check_conversation(options));
    TRY(check_asked(options));
    TRY(check_choices(options));
    TRY(check_explained(options));
    TRY(check_no_draft(options->model.draft));
    if (options->model.draft != NULL && kind->own_model && options->model.target == NULL) {
        log_error("--draft needs --target where it is a model, as '%s' would be: expected both models, or another kind of --list-drafters",
                  options->model.draft);
        return STATUS_USAGE;
    }
    if (!kind->draws && (options->checks.breakage == BREAKAGE_Q_TEMPERATURE || options->checks.breakage == BREAKAGE_Q_TOP_K ||
                         breakage_table[options->checks.breakage].of == BREAKAGE_OF_BRANCHES)) {
        log_error("--break %s is a fault in how a draft model draws, and --draft %s draws nothing", breakage_table[options->checks.breakage].name,
                  kind->name);
        return STATUS_USAGE;
    }
    if (!kind->draws && options_kinds(options) == 1 && stopping_looks(&options->rounds.stopping)) {
        log_error("--stop-drafting %s is about a draft model's distribution, and --draft %s has none", options->rounds.stop_drafting, kind->name);
        return STATUS_USAGE;
    }
    TRY(check_tree(options));
    TRY(check_heuristic(options));
    TRY(check_copies(options));
    TRY(options_merge_check(options));
    if (options->results.resume && (options->results.path == NULL || strcmp(options->results.path, "-") == 0)) {
        log_error("--resume needs --output with a file, beside which the journal is");
        return STATUS_USAGE;
    }
    TRY(check_breakage(options));
    if (options->checks.size != CHECK_OFF && options->rounds.synthetic_acceptance >= 0) {
        log_error("--synthetic-acceptance %g is not lossless by intent, and of no law: expected no check of it",
                  options->rounds.synthetic_acceptance);
        return STATUS_USAGE;
    }
    if (options->checks.size != CHECK_OFF && !options_drafts(options)) {
        log_error("a check compares drafted output with the target's own, expected --draft beside --target, a drafter, and no --solo");
        return STATUS_USAGE;
    }
    TRY(options_list_check(options));
    if (sampling_check(&options->request.sampling, reason, sizeof reason) != STATUS_OK) {
        for (char *at = reason; *at != '\0' && *at != ' '; at++)
            if (*at == '_')
                *at = '-'; /* it begins with the name as prompts have it */
        log_error("--%s", reason);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

/* Where an option is given twice the last one counts, and the command line goes before a config. Only where two texts are given to be completed
 * would one be lost without a word, so that is refused. */
static enum status take_line(struct options *options, int argc, char **argv)
{
    const char *const configured[] = {options->input.prompt, options->input.chat};

    for (int at = 1; at < argc;) {
        const char *const before[] = {options->input.prompt, options->input.chat};
        const char *const *now[] = {&options->input.prompt, &options->input.chat};

        TRY(take_argument(options, argc, argv, &at));
        for (int i = 0; i < 2; i++)
            if (before[i] != configured[i] && *now[i] != before[i]) {
                log_error("--%s is given twice, '%s' and '%s', expected one; --prompts FILE has several", i == 0 ? "prompt" : "chat",
                          before[i], *now[i]);
                return STATUS_USAGE;
            }
    }
    return STATUS_OK;
}

static enum status take_all(struct options *options, int argc, char **argv)
{
    for (int at = 1; at < argc; at++) {
        if (strncmp(argv[at], "--config=", 9) == 0)
            TRY(option_read_config(options, argv[at] + 9));
        else if (strcmp(argv[at], "--config") == 0 && at + 1 < argc)
            TRY(option_read_config(options, argv[at + 1]));
    }
    return take_line(options, argc, argv);
}

const char *option_keep(struct options *options, const char *text)
{
    struct options_text *kept = malloc(sizeof *kept + strlen(text) + 1);

    if (kept == NULL) {
        log_error("no memory for a text of %zu bytes", strlen(text));
        return NULL;
    }
    strcpy(kept->text, text);
    kept->next = options->texts;
    options->texts = kept;
    return kept->text;
}

/* A model's path in place of a name of `tandem fetch`. */
static enum status find_model(struct options *options, const char *option, const char **model)
{
    char path[PATH_MAX];

    if (*model == NULL)
        return STATUS_OK;
    if (**model == '\0') {
        log_error("--%s is '', expected a model", option);
        return STATUS_USAGE;
    }
    if (!paths_model(*model, path, sizeof path)) {
        log_error("--%s %s has not been fetched yet, expected %s: launch/tandem fetch %s", option, *model, path, *model);
        return STATUS_NOINPUT;
    }
    if (strcmp(path, *model) != 0)
        *model = option_keep(options, path);
    return *model != NULL ? STATUS_OK : STATUS_INTERNAL;
}

/* The same for the models among what is merged. */
static enum status find_merged(struct options *options)
{
    for (int i = 0; i < options->rounds.merge.count; i++)
        if (options_draft_kind(&options->rounds.merged_way[i])->own_model)
            TRY(find_model(options, "merge", &options->rounds.merge.text[i]));
    return options_merge_check_names(options);
}

/* --draft auto, and without --draft a target of `tandem fetch`: the draft model that belongs to it. */
static enum status find_draft(struct options *options)
{
    const char *target = options->model.target, *draft = options->model.draft;
    int is_auto = draft != NULL && strcmp(draft, "auto") == 0, may = target != NULL && !options->rounds.solo && options->ranks.drafters != 0;

    if (!is_auto && (draft != NULL || !may))
        return STATUS_OK;
    options->model.draft = target != NULL ? paths_draft_of(target) : NULL;
    options->model.draft_is_known = options->model.draft != NULL;
    if (!is_auto || target == NULL || options->model.draft != NULL)
        return STATUS_OK;
    TRY(find_model(options, "target", &options->model.target)); /* nothing belongs to a target that is not there, which is then what is wrong */
    TRY(paths_check("target", options->model.target, ""));
    log_error("--draft auto: no draft model is known that belongs to --target %s; expected --draft with a model of the same vocabulary, or "
              "--draft lookup",
              target);
    return STATUS_USAGE;
}

enum status options_parse(int argc, char **argv, struct options *out)
{
    struct options options = options_default;
    enum status status;

    options.request.sampling = sampling_default;
    TRY_TO(take_all(&options, argc, argv), release);
    if (options.input.prompt == NULL && options.input.chat != NULL && *options.input.chat != '\0')
        options.input.prompt = options.input.chat;
    if (options.launch.launcher < 0)
        options.launch.launcher = options.slurm.batch_script ? LAUNCHER_SRUN : LAUNCHER_MPIRUN;
    if (options.rounds.max_sequences < 0)
        options.rounds.max_sequences = options.checks.size != CHECK_OFF                           ? CHECK_SEQUENCES
                                       : options.input.prompts != NULL && !options.report.compare ? 4
                                                                                                  : 1;
    if (options.input.perplexity != NULL) {
        options.rounds.solo = 1;
        options.model.context = options.model.context != 0 ? options.model.context : PERPLEXITY_WINDOW;
    }
    if (options.limits.draft_deadline_ms < 0)
        options.limits.draft_deadline_ms = options.checks.size != CHECK_OFF ? CHECK_DEADLINE_MS : DEADLINE_MS;
    TRY_TO(find_draft(&options), release);
    TRY_TO(options_draft_read(options.model.draft, &options.model.draft_way), release);
    TRY_TO(options_merge_read(&options), release);
    TRY_TO(read_stopping(&options), release);
    TRY_TO(read_tree(&options), release);
    take_own_tree(&options);
    if (options.print == OPTIONS_PRINT_NOTHING) {
        TRY_TO(check_together(&options), release);
        TRY_TO(find_model(&options, "target", &options.model.target), release);
        TRY_TO(find_model(&options, "draft", &options.model.draft), release);
        TRY_TO(find_merged(&options), release);
    }
    if (options.input.prompt == NULL && options.input.prompts == NULL && options.input.perplexity == NULL && !options.input.conversation)
        options.report.compare = 1; /* the embedded prompts, shown */
    *out = options;
    return STATUS_OK;

release:
    options_release(&options);
    return status;
}

void options_release(struct options *options)
{
    for (struct options_text *text = options->texts, *next; text != NULL; text = next) {
        next = text->next;
        free(text);
    }
    *options = (struct options){0};
}

int options_copies(const struct options *options)
{
    return options->rounds.cascade != CASCADE_NONE || options->rounds.copy_first > 0 || options->rounds.copy_after > 0;
}

const char *options_run_ahead(const struct options *options)
{
    static const char *const when[] = {[RUN_AHEAD_AUTO] = "auto", [RUN_AHEAD_ON] = "on", [RUN_AHEAD_OFF] = "off"};

    return when[options->rounds.run_ahead];
}

int options_drafts(const struct options *options)
{
    return !options->rounds.solo && options->ranks.drafters != 0 && (options->model.target == NULL || options->model.draft != NULL);
}

int options_length(const struct options *options)
{
    const struct rule *rule = rule_of(&options->request.sampling);
    int is_drawn = rule != NULL && rule->trees && rule->siblings != RULE_SIBLINGS_ANY;

    return options->rounds.draft_length < 0 && options->rounds.shape.kind != TREE_CHAIN && is_drawn ? TREE_USUAL : options->rounds.draft_length;
}

int options_most_drafts(const struct options *options)
{
    int is_more = options->rounds.shape.kind != TREE_CHAIN || options->rounds.draft_length > OPTIONS_CHAIN;

    return is_more ? SAMPLING_MAX_DRAFT : OPTIONS_CHAIN;
}

int options_not_lossless(const struct options *options, char option[OPTIONS_NOT_LOSSLESS])
{
    const struct sampling *sampling = &options->request.sampling;
    int checks = options->checks.size != CHECK_OFF; /* at temperatures of its own, greedy or not */
    const struct rule *rule = checks ? rule_row((int)sampling->accept) : rule_of(sampling);

    if (options->rounds.synthetic_acceptance >= 0 && (checks || options_drafts(options)))
        snprintf(option, OPTIONS_NOT_LOSSLESS, "--synthetic-acceptance %g", options->rounds.synthetic_acceptance);
    else if (rule != NULL && !rule->lossless && (checks || (options_drafts(options) && options->rounds.draft_length != 0)))
        snprintf(option, OPTIONS_NOT_LOSSLESS, "--accept %s", rule->name);
    else
        return 0;
    return 1;
}

int options_explains(const struct options *options)
{
    return options->report.explain || options->report.explain_page != NULL;
}

int options_have_bar(const struct options *options)
{
    int completes = options->checks.size == CHECK_OFF && options->report.sweep == NULL,
        shows_text = options->input.prompt != NULL || options->input.conversation || options->report.compare;
    int results_come = options->input.prompts != NULL && (options->results.path == NULL || strcmp(options->results.path, "-") == 0) &&
                       (options->launch.terminal & TERMINAL_STDOUT) != 0;

    return !options->report.quiet && (options->launch.terminal & TERMINAL_STDERR) != 0 && !(completes && (shows_text || results_come));
}

int options_have_colours(const struct options *options)
{
    if (options->report.colour != COLOUR_AUTO)
        return options->report.colour == COLOUR_ALWAYS;
    return (options->launch.terminal & TERMINAL_STDOUT) != 0 && (options->launch.terminal & TERMINAL_PLAIN) == 0;
}

int options_score_prompts(const struct options *options)
{
    return options->input.perplexity != NULL || (options->request.echo && options->request.logprobs >= 0);
}

int options_is_showcase(const struct options *options)
{
    return options->input.prompt == NULL && options->input.prompts == NULL && options->input.perplexity == NULL && !options->input.conversation &&
           options->checks.size == CHECK_OFF && options->report.sweep == NULL;
}

int options_show_whole(const struct options *options)
{
    return options->input.prompt != NULL && options->results.path == NULL && (options->launch.terminal & (TERMINAL_STDOUT | TERMINAL_ONE_PLACE)) != 0;
}

FILE *options_notes(const struct options *options)
{
    int follows_replies = options->input.conversation && (options->launch.terminal & TERMINAL_ONE_PLACE) != 0;

    return options_show_whole(options) || follows_replies ? stdout : stderr;
}

int options_bits(const struct options *options, int drafts)
{
    int quantise = drafts && options->model.draft_quantise != QUANTISE_NONE ? options->model.draft_quantise : options->model.quantise;

    if (drafts && options->model.draft_way.bits > 0)
        return options->model.draft_way.bits;
    return quantise == QUANTISE_Q8_0 ? 8 : quantise == QUANTISE_Q4_0 ? 4 : 0;
}

int options_draft_shares(const struct options *options)
{
    return options_draft_kind(&options->model.draft_way)->target_model && options_bits(options, 0) == options_bits(options, 1) &&
           options->rounds.draft_vocabulary == 0;
}

int options_draft_vocab(const struct options *options, int vocab)
{
    return options->rounds.draft_vocabulary > 0 && options->rounds.draft_vocabulary < vocab ? options->rounds.draft_vocabulary : vocab;
}
