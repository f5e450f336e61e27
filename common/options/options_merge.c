#include "common/options/options_merge.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/sample/row.h"
#include "common/sample/rule.h"
#include <stdio.h>
#include <string.h>

int options_kinds(const struct options *options)
{
    return 1 + (options_drafts(options) ? options->rounds.merge.count : 0);
}

void options_of_kind(const struct options *options, int kind, struct options *own)
{
    *own = *options;
    if (kind > 0) {
        own->model.draft = options->rounds.merge.text[kind - 1];
        own->model.draft_way = options->rounds.merged_way[kind - 1];
        own->model.draft_is_known = 0;
    }
    if (!options_draft_runs_model(&own->model.draft_way)) {
        own->rounds.cascade = CASCADE_NONE;
        own->rounds.copy_first = own->rounds.copy_after = 0;
    }
    if (!options_draft_kind(&own->model.draft_way)->draws)
        own->rounds.stopping.kind = STOPPING_NEVER;
}

void options_kind_name(const struct options *options, int kind, char *text)
{
    const char *said = kind > 0 ? options->rounds.merge.text[kind - 1] : options->model.draft != NULL ? options->model.draft : "draft";
    const struct options_draft *way = kind > 0 ? &options->rounds.merged_way[kind - 1] : &options->model.draft_way;
    const char *end = strrchr(said, '/');

    if (way->file != NULL)
        options_draft_write(way, text);
    else
        snprintf(text, OPTIONS_DRAFT_TEXT, "%s", end != NULL && end[1] != '\0' ? end + 1 : said);
}

static int any_kind(const struct options *options, int (*is)(const struct options *own))
{
    struct options own;

    for (int kind = 0; kind < options_kinds(options); kind++) {
        options_of_kind(options, kind, &own);
        if (is(&own))
            return 1;
    }
    return 0;
}

static int runs_model(const struct options *own)
{
    return options_draft_runs_model(&own->model.draft_way);
}

int options_kinds_run_models(const struct options *options)
{
    return any_kind(options, runs_model);
}

int options_kinds_share(const struct options *options)
{
    return any_kind(options, options_draft_shares);
}

enum status options_merge_read(struct options *options)
{
    for (int i = 0; i < options->rounds.merge.count; i++)
        TRY(options_draft_read(options->rounds.merge.text[i], &options->rounds.merged_way[i]));
    return STATUS_OK;
}

static int are_equal(const struct options *options, int one, int other)
{
    struct options a, b;
    char first[OPTIONS_DRAFT_TEXT], second[OPTIONS_DRAFT_TEXT];

    options_of_kind(options, one, &a);
    options_of_kind(options, other, &b);
    options_draft_write(&a.model.draft_way, first);
    options_draft_write(&b.model.draft_way, second);
    if (strcmp(first, second) != 0)
        return 0;
    if (a.model.draft_way.file == NULL && !options_draft_kind(&a.model.draft_way)->own_model)
        return 1;
    return a.model.draft != NULL && b.model.draft != NULL && strcmp(a.model.draft, b.model.draft) == 0;
}

/* Is a kind named twice? It would propose the same twice. */
enum status options_merge_check_names(const struct options *options)
{
    for (int i = 1; i < options_kinds(options); i++)
        for (int j = 0; j < i; j++)
            if (are_equal(options, i, j)) {
                log_error("--merge %s names what drafts already: it would propose the same", options->rounds.merge.text[i - 1]);
                return STATUS_USAGE;
            }
    return STATUS_OK;
}

static int has_auto(const struct options *options)
{
    for (int i = 0; i < options->rounds.merge.count; i++)
        if (strcmp(options->rounds.merge.text[i], "auto") == 0)
            return 1;
    return 0;
}

/* The name of a kind that has a tree of its own; NULL: none has. */
static const char *has_own_tree(const struct options *options)
{
    const struct options_draft_kind *kind = options_draft_kind(&options->model.draft_way);

    for (int i = 0; i < options->rounds.merge.count && !kind->own_tree; i++)
        kind = options_draft_kind(&options->rounds.merged_way[i]);
    return kind->own_tree ? kind->name : NULL;
}

int options_kinds_that_draw(const struct options *options)
{
    struct options own;
    int count = 0;

    for (int kind = 0; kind < options_kinds(options); kind++) {
        options_of_kind(options, kind, &own);
        count += options_draft_kind(&own.model.draft_way)->draws;
    }
    return count;
}

enum status options_merge_check(const struct options *options)
{
    const struct rule *rule = rule_of(&options->request.sampling);
    int kinds = options_kinds(options), is_cold = options->request.sampling.temperature == 0;
    int drawing = options_kinds_that_draw(options), asked = drawing * options->rounds.support + kinds - drawing;

    if (options->rounds.merge.count == 0 || options->rounds.solo || options->ranks.drafters == 0)
        return STATUS_OK;
    if (kinds == 1)
        log_error("--merge %s adds to what --draft says, expected --draft beside --target", options->rounds.merge.text[0]);
    else if (options->ranks.drafters > 0 && options->ranks.drafters < kinds)
        log_error("--merge: %d kinds of drafters need a rank each, and --drafters is %d, expected %d or more", kinds, options->ranks.drafters, kinds);
    else if (rule != NULL && !rule->merges)
        log_error("--merge makes trees of what several drafters propose, about which not every rule can decide; expected --accept walk, coupled or "
                  "multistep%s, not %s",
                  is_cold ? "" : ", or --temperature 0", rule->name);
    else if (rule != NULL && rule->needs_q && asked > ROW_MAX_ASKED)
        log_error("--merge: %d kinds of drafters with --support %d may ask about %d tokens of a row, expected at most %d, so --support of at most %d",
                  kinds, options->rounds.support, asked, ROW_MAX_ASKED, (ROW_MAX_ASKED - kinds + drawing) / drawing);
    else if (has_own_tree(options) != NULL)
        log_error("--merge joins chains, and %s proposes trees; expected other kinds of --list-drafters", has_own_tree(options));
    else if (options->rounds.shape.kind != TREE_CHAIN)
        log_error("--merge joins chains, expected no --tree %s", options->rounds.tree);
    else if (options->rounds.synthetic_acceptance >= 0)
        log_error("--merge: a path is that of the target's own tokens, expected no --synthetic-acceptance");
    else if (options->rounds.stopping.kind == STOPPING_HEURISTIC)
        log_error("--merge: a tree seldom stands whole, expected no --stop-drafting heuristic, by which lengths would only shrink");
    else if (options->checks.breakage != BREAKAGE_NONE)
        log_error("--merge: faults are put into what one drafter proposes, expected no --break");
    else if (has_auto(options))
        log_error("--merge is 'auto', expected a model or a kind of --list-drafters");
    else
        return options_merge_check_names(options);
    return STATUS_USAGE;
}
