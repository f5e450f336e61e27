#include "verifier/job/launch_check.h"

#include "common/backend/choose.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/try.h"
#include "common/base/visible.h"
#include "common/corpus/corpus_rows.h"
#include "common/model/model.h"
#include "common/options/options_merge.h"
#include "common/options/options_paths.h"
#include "common/text/chat_template.h"
#include "common/text/tokenizer.h"
#include "verifier/request/request.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 24 }; /* bytes of a token that are shown */

struct look {
    struct config config;
    struct tokenizer *tokenizer;
};

/* way: of a draft; NULL: the target */
static enum status look_at(const struct options *options, const char *model, int width, const struct options_draft *way, struct look *look)
{
    const struct layer_set none = {0};
    const struct model_options terms = {
        .context = options->model.context, .layers = way != NULL ? way->layers : 0, .skip = way != NULL ? way->skip : none};
    char path[PATH_MAX];

    TRY(config_read(model, &look->config));
    TRY(model_check(model, width, &terms));
    paths_tokenizer(model, path, sizeof path);
    return tokenizer_open(path, look->config.vocab, &look->tokenizer);
}

/* A token as a line shows it. */
static void show_token(const struct tokenizer *tokenizer, int id, char text[VISIBLE_QUOTED(PIECE)])
{
    size_t length = 0;
    const char *piece = id < tokenizer_size(tokenizer) ? tokenizer_piece(tokenizer, id, 0, 1, &length) : NULL;

    if (piece == NULL || length == 0)
        strcpy(text, "none");
    else
        visible_quote(piece, length, PIECE, text);
}

/* The same tokens for texts: special and other added ones, and how many fill the table, may differ. */
static enum status compare_vocabularies(const char *target, const struct tokenizer *large, const char *draft, const struct tokenizer *small)
{
    int count, first = tokenizer_difference(large, small, &count);
    char theirs[VISIBLE_QUOTED(PIECE)], ours[VISIBLE_QUOTED(PIECE)];

    if (first < 0)
        return STATUS_OK;
    show_token(large, first, theirs);
    show_token(small, first, ours);
    log_error("%s (%d tokens) and %s (%d tokens) have different vocabularies: %d ids, the first is %d, %s and %s; expected one tokenizer for both "
              "models, or --draft lookup, which needs none",
              target, tokenizer_size(large), draft, tokenizer_size(small), count, first, theirs, ours);
    return STATUS_DATA;
}

/* A name of this program's own input, which is another one in each rank. */
static int is_own_input(const char *path)
{
    static const char *const names[] = {"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"};
    int is_one = 0;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        is_one |= strcmp(path, names[i]) == 0;
    return is_one;
}

/* Are these the same file? Writing results over the prompts that they are for would lose both. Names are compared too, for a file may not exist yet.
 * "-" is no file, and NULL was not asked for. */
static int collide(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, "-") != 0 && (strcmp(a, b) == 0 || paths_are_one(a, b));
}

/* The file of a --merge; NULL: it has none. */
static const char *merged_file(const struct options *options, int at)
{
    const struct options_draft *way = &options->rounds.merged_way[at];

    if (at >= options->rounds.merge.count)
        return NULL;
    return options_draft_kind(way)->own_model ? options->rounds.merge.text[at] : way->file;
}

/* No file that is written may be another that is read or written. */
static enum status check_files(const struct options *options)
{
    enum { READ = 5 + OPTIONS_MERGED_MOST, FILES = READ + 7 };
    char journal[PATH_MAX], terms[PATH_MAX], partial[PATH_MAX];
    const char *file = options->model.draft_way.file;
    const int has_output = options->results.path != NULL;
    const struct {
        const char *option, *what, *path;
        int is_beside; /* made beside the file of the option */
    } files[FILES] = {{"prompts", "the file of --prompts", options->input.prompts, 0},
                      {"perplexity", "the file of --perplexity", options->input.perplexity, 0},
                      {"target", "the model of --target", options->model.target, 0},
                      {"draft", file != NULL ? "the file of --draft" : "the model of --draft", file != NULL ? file : options->model.draft, 0},
                      {"merge", "the file of --merge", merged_file(options, 0), 0},
                      {"merge", "the file of --merge", merged_file(options, 1), 0},
                      {"merge", "the file of --merge", merged_file(options, 2), 0},
                      {"config", "the file of --config", options->launch.config, 0},
                      {"output", "the file of --output", options->results.path, 0},
                      {"stats", "the file of --stats", options->report.stats, 0},
                      {"explain-page", "the file of --explain-page", options->report.explain_page, 0},
                      {"json", "the file of --json", options->checks.json, 0},
                      {"output", "the journal of --output", has_output ? journal : NULL, 1},
                      {"output", "the terms of --output", has_output ? terms : NULL, 1},
                      {"output", "what --output is until it is whole", has_output ? partial : NULL, 1}};

    if (has_output && options->results.path[0] == '\0') {
        log_error("--output is '', expected a file or -");
        return STATUS_USAGE;
    }
    snprintf(journal, sizeof journal, "%s.journal", has_output ? options->results.path : "");
    snprintf(terms, sizeof terms, "%s.terms", has_output ? options->results.path : "");
    snprintf(partial, sizeof partial, "%s.partial", has_output ? options->results.path : "");
    for (int i = READ; i < FILES; i++)
        for (int j = 0; j < i; j++)
            if (collide(files[i].path, files[j].path)) {
                const int named = files[i].is_beside ? j : i, other = files[i].is_beside ? i : j; /* by what the user gave */

                log_error("--%s %s is %s, expected another file", files[named].option, files[named].path, files[other].what);
                return STATUS_USAGE;
            }
    return STATUS_OK;
}

/* The folder of a file that is to be made there. */
static int can_be_made(const char *path)
{
    char folder[PATH_MAX], *slash;

    snprintf(folder, sizeof folder, "%s", path);
    slash = strrchr(folder, '/');
    if (slash != NULL)
        slash[slash == folder] = '\0';
    return access(slash != NULL ? folder : ".", W_OK | X_OK) == 0;
}

/* Can the file be written? It is better to know that before the job. NULL was not asked for, and "-" is always there. */
static enum status check_written(const char *name, const char *path)
{
    struct stat state;
    int writable;

    if (path == NULL || strcmp(path, "-") == 0)
        return STATUS_OK;
    if (stat(path, &state) == 0) {
        writable = !S_ISDIR(state.st_mode) && access(path, W_OK) == 0;
        errno = S_ISDIR(state.st_mode) ? EISDIR : errno;
    } else {
        writable = can_be_made(path);
    }
    if (writable)
        return STATUS_OK;
    log_error("--%s %s: %s", name, path, strerror(errno));
    return STATUS_IO;
}

/* Where the output is a regular file, or will be one, the journal is made beside it. */
static enum status check_output(const char *path)
{
    struct stat state;
    int is_there = path != NULL && lstat(path, &state) == 0;

    if (path == NULL || strcmp(path, "-") == 0 || (is_there && !S_ISREG(state.st_mode)))
        return check_written("output", path);
    if (can_be_made(path))
        return STATUS_OK;
    log_error("--output %s: %s (its journal is to be beside it)", path, strerror(errno));
    return STATUS_IO;
}

/* NULL is not asked for. */
static enum status check_folder(const char *path)
{
    struct stat state;

    if (path == NULL || (stat(path, &state) == 0 && S_ISDIR(state.st_mode) && access(path, W_OK | X_OK) == 0))
        return STATUS_OK;
    log_error("--trace '%s' is no folder that can be written to, expected one that is there", path);
    return STATUS_IO;
}

/* NULL is not asked for. */
static enum status check_read(const char *name, const char *path)
{
    if (path == NULL || access(path, R_OK) == 0)
        return STATUS_OK;
    log_error("--%s %s: %s", name, path, strerror(errno));
    return STATUS_NOINPUT;
}

/* What cannot go to stdout, where the text goes. NULL is not asked for. */
static enum status check_named(const char *name, const char *path)
{
    if (path == NULL || (path[0] != '\0' && strcmp(path, "-") != 0))
        return STATUS_OK;
    log_error("--%s is '%s', expected the name of a file", name, path);
    return STATUS_USAGE;
}

static enum status check_input(const struct options *options)
{
    TRY(check_files(options));
    if (options->launch.hosts == NULL) { /* else the lead's host has them: it looks when it starts */
        TRY(check_output(options->results.path));
        TRY(check_written("stats", options->report.stats));
        TRY(check_written("explain-page", options->report.explain_page));
        TRY(check_written("json", options->checks.json));
        TRY(check_folder(options->report.trace));
    }
    TRY(check_named("stats", options->report.stats));
    TRY(check_named("explain-page", options->report.explain_page));
    if (options->input.prompts != NULL && is_own_input(options->input.prompts)) {
        log_error("--prompts %s is this program's own input, which ranks do not have; --prompts - reads it", options->input.prompts);
        return STATUS_USAGE;
    }
    if (options->input.prompts == NULL || strcmp(options->input.prompts, "-") != 0)
        TRY(check_read("prompts", options->input.prompts));
    return check_read("perplexity", options->input.perplexity);
}

static int has_bias(const struct options *options)
{
    return options->request.bias.tokens > 0 || options->request.bad_word.count > 0 || options->request.stop_token.count > 0;
}

/* A prompt on the command line that cannot be completed is known before anything runs, and so are tokens that there are not. */
static enum status check_prompt(const struct options *options, const char *model, const struct config *config, const struct chat_template *chat)
{
    struct request_terms terms = {.options = options, .chat = chat, .context = options->model.context > 0 ? options->model.context : config->context};
    struct request_list requests = {0};
    struct tokenizer *tokenizer;
    char path[PATH_MAX];
    enum status status;

    if (options->input.prompt == NULL && !has_bias(options))
        return STATUS_OK;
    paths_tokenizer(model, path, sizeof path);
    TRY(tokenizer_open(path, config->vocab, &tokenizer));
    terms.tokenizer = tokenizer;
    terms.vocab = tokenizer_size(tokenizer) < config->vocab ? tokenizer_size(tokenizer) : config->vocab;
    status = request_prepare(&requests, &terms);
    if (status == STATUS_OK && options->input.prompt != NULL)
        status = request_add_text(&requests, &terms, options->input.prompt, strlen(options->input.prompt));
    if (status == STATUS_OK && requests.count > 0 && requests.request[0].error != NULL) {
        log_error("--prompt: %s", requests.request[0].error);
        status = STATUS_DATA;
    }
    request_release(&requests);
    tokenizer_close(tokenizer);
    return status;
}

/* Where it is certain that messages will come, the model must have a chat template; otherwise each line with messages reports the lack of one. */
static enum status check_chat(const struct options *options, const char *model, const struct config *config)
{
    struct chat_template chat;
    enum status status;

    if (options->input.chat == NULL && !options->input.conversation)
        return check_prompt(options, model, config, NULL);
    TRY(chat_template_open(model, (enum chat_family)options->input.chat_family, &chat));
    if (chat.family == CHAT_AUTO) {
        log_error("%s: %s", model, chat.fault);
        status = STATUS_DATA;
    } else {
        status = check_prompt(options, model, config, &chat);
    }
    chat_template_release(&chat);
    return status;
}

/* With --backend auto it is known only when the model is loaded whether a device is used; it is refused then. */
static enum status check_quantise(const struct options *options)
{
    struct options own = *options;
    int drafts = 0;

    for (int kind = 0; kind < options_kinds(options) && !drafts; kind++) {
        options_of_kind(options, kind, &own);
        drafts = options_drafts(&own) && options_draft_runs_model(&own.model.draft_way) && options_bits(&own, 1) != 0;
    }

    if (options->ranks.backend != BACKEND_CUDA || (options_bits(options, 0) == 0 && !drafts))
        return STATUS_OK;
    log_error("--%s is for the CPU backend, expected --backend cpu, not cuda", options->model.quantise != QUANTISE_NONE ? "quantise"
                                                                               : own.model.draft_way.bits > 0           ? "draft self:bits=N"
                                                                                                                        : "draft-quantise");
    return STATUS_USAGE;
}

static enum status check_cache(const struct options *options)
{
    if (options->ranks.backend != BACKEND_CUDA || options->model.cache != CACHE_F32)
        return STATUS_OK;
    log_error("--cache f32 is for the CPU backend, expected --backend cpu, not cuda");
    return STATUS_USAGE;
}

/* A file made of texts, whose ids must be the target's. */
static enum status check_texts(const struct options_draft *way, const char *target, const struct tokenizer *tokenizer)
{
    const char *made_by = options_draft_kind(way)->made_by;
    struct corpus_rows found;
    int fits;

    TRY(corpus_rows_open(way->file, made_by, &found));
    fits = found.tokenizer == tokenizer_digest(tokenizer);
    corpus_rows_close(&found);
    if (fits)
        return STATUS_OK;
    log_error("%s is of another tokenizer than that of the target %s: make it with `tandem %s --target` and that", way->file, target, made_by);
    return STATUS_DATA;
}

/* The draft of this kind, where it is a model or a file, beside the target. */
static enum status check_kind(const struct options *options, const char *option, const char *target, const struct look *large)
{
    char draft[PATH_MAX], kinds[OPTIONS_DRAFT_TEXT];
    struct look small;
    enum status status;

    if (options_drafts(options) && options->model.draft_way.file != NULL)
        return check_texts(&options->model.draft_way, target, large->tokenizer);
    if (!options_drafts(options) || !options_draft_runs_model(&options->model.draft_way))
        return STATUS_OK;
    options_draft_path(options, draft);
    options_draft_names(kinds);
    TRY(options_draft_kind(&options->model.draft_way)->own_model ? paths_check(option, options->model.draft, kinds) : STATUS_OK);
    TRY(look_at(options, draft, 1, &options->model.draft_way, &small));
    status = compare_vocabularies(target, large->tokenizer, draft, small.tokenizer);
    tokenizer_close(small.tokenizer);
    return status;
}

static enum status check_draft(const struct options *options, const char *target, const struct look *large)
{
    struct options own;

    for (int kind = 0; kind < options_kinds(options); kind++) {
        options_of_kind(options, kind, &own);
        TRY(check_kind(&own, kind == 0 ? "draft" : "merge", target, large));
    }
    return STATUS_OK;
}

enum status launch_check(const struct options *options)
{
    char target[PATH_MAX];
    struct look large;
    enum status status;

    TRY(check_quantise(options));
    TRY(check_cache(options));
    options_target_path(options, target);
    TRY(check_input(options));
    if ((options->launch.terminal & TERMINAL_FROM_STDIN) == 0) { /* else it has been said */
        paths_tell_taken("target", options->model.target);
        paths_tell_taken("draft", options->model.draft);
        for (int i = 0; i < options->rounds.merge.count; i++)
            paths_tell_taken("merge", options->rounds.merge.text[i]);
    }
    TRY(paths_check("target", options->model.target, ""));
    TRY(look_at(options, target, options->ranks.verifiers > 0 ? options->ranks.verifiers : 1, 0, &large));
    TRY_TO(check_chat(options, target, &large.config), close_tokenizer);
    status = check_draft(options, target, &large);
close_tokenizer:
    tokenizer_close(large.tokenizer);
    return status;
}
