/* tandem-drafter: a rank that runs the draft model. */
#include "common/backend/choose.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/recorder.h"
#include "common/base/standard_output.h"
#include "common/base/try.h"
#include "common/options/options.h"
#include "common/options/options_merge.h"
#include "common/options/options_paths.h"
#include "common/text/tokenizer.h"
#include "common/wire/channel.h"
#include "common/wire/roll_call.h"
#include "common/world/keeper.h"
#include "common/world/signals.h"
#include "common/world/watchdog.h"
#include "common/world/world.h"
#include "common/world/world_trace.h"
#include "drafter/drafter.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct parts {
    const struct options *options;
    struct world world;
    struct world_trace trace;
    char path[PATH_MAX];
    struct group group;
    struct tokenizer *tokenizer;
    struct model *model;      /* NULL for a kind without a model */
    struct corpus_rows found; /* of zeros for a kind without a file of its own */
    int vocab;                /* ids that may be drafted; 0 of a kind that has none of its own */
    int context;              /* most tokens of a sequence */
    struct draft draft;
    double step_us[2]; /* of a draft step of one sequence, and of as many as there may be */
    struct channel *channel;
    int joined; /* the roll call is over: the job goes on without this rank when it fails */
};

/* Warns, on one drafter of its kind, that a draft with all layers of the target is the target: every token is accepted, and drafting one costs as
 * much as decoding it. */
static void warn_of_the_target(const struct parts *parts, int layers)
{
    const struct options *options = parts->options;
    const struct options_draft *way = &options->model.draft_way;
    char text[OPTIONS_DRAFT_TEXT];

    if (!options_draft_kind(way)->target_model || parts->model->config.layers < layers || parts->world.role_rank >= options_kinds(options))
        return;
    if (parts->model->rounded > 0 && model_quantise(options_bits(options, 1)) != model_quantise(options_bits(options, 0)))
        return;
    options_draft_write(way, text);
    log_warn("%s %s: the draft is the target itself, for the target %s", parts->world.role_rank > 0 ? "--merge" : "--draft", text,
             way->bits > 0 ? "has no weights of more bits" : "has no more layers");
}

/* How many ids may be drafted: those that the target has, too. Models of one tokenizer may differ in the tokens that were added to it. Where the
 * target's files are not on this host, the roll call compares. */
static enum status count_vocab(const struct parts *parts, int own, int *count)
{
    char target[PATH_MAX], path[PATH_MAX];
    struct tokenizer *tokenizer;
    struct config config;

    *count = own;
    options_target_path(parts->options, target);
    if (strcmp(target, parts->path) == 0 || access(target, R_OK) != 0)
        return STATUS_OK;
    paths_tokenizer(target, path, sizeof path);
    TRY(config_read(target, &config));
    TRY(tokenizer_open(path, config.vocab, &tokenizer));
    *count = tokenizer_size(tokenizer) < own ? tokenizer_size(tokenizer) : own;
    tokenizer_close(tokenizer);
    return STATUS_OK;
}

/* Where the whole target is on this host its weights are there already, or soon. */
static int borrows(const struct parts *parts, const struct backend *backend, struct arena_loan *loan)
{
    return backend->memory.borrow != NULL && options_draft_shares(parts->options) && parts->world.verifiers == 1 &&
           world_borrow(&parts->world, parts->world.lead, loan);
}

/* Loads a separate draft model, or the target's weights with fewer bits or layers. */
static enum status load_model(struct parts *parts)
{
    const struct options *options = parts->options;
    const struct backend *backend;
    char tokenizer[PATH_MAX];
    struct arena_loan loan;
    struct config config;
    int device;

    TRY(backend_choose((enum backend_choice)options->ranks.backend, &backend));
    if (parts->world.node_role_rank == 0 && parts->world.node_role_size == parts->world.node_size) /* else a verifier of this host does */
        backend_choose_warn((enum backend_choice)options->ranks.backend, backend);
    TRY(backend_choose_device(backend, options->ranks.drafter_devices,
                              options->ranks.drafter_devices != NULL ? parts->world.node_role_rank : parts->world.node_rank, &device));
    paths_tokenizer(parts->path, tokenizer, sizeof tokenizer);
    TRY(config_read(parts->path, &config));
    TRY(tokenizer_open(tokenizer, config.vocab, &parts->tokenizer));
    TRY(count_vocab(parts, tokenizer_size(parts->tokenizer), &parts->vocab));
    int asked = 2 * options->rounds.max_sequences > BACKEND_MAX_ROWS ? 2 * options->rounds.max_sequences : BACKEND_MAX_ROWS;
    const struct model_options model = {
        .threads = world_threads(&parts->world, options->ranks.threads,
                                 config_is_large(&config, options_draft_layers(&options->model.draft_way, config.layers), 1)),
        .max_rows = asked > backend->step.prompt_rows ? asked : backend->step.prompt_rows,
        .max_outputs = asked,
        .context = options->model.context,
        .slots = options->rounds.max_sequences,
        .layers = options->model.draft_way.layers,
        .skip = options->model.draft_way.skip,
        .vocab = options_draft_vocab(options, parts->vocab),
        .quantise = model_quantise(options_bits(options, 1)),
        .cache = options->model.cache,
        .backend = backend,
        .drafts = 1,
        .device = device,
        .loan = borrows(parts, backend, &loan) ? &loan : NULL};
    world_claim_threads(&parts->world, backend->device.which == NULL ? model.threads : 1);
    group_open_self(&parts->group);
    TRY(model_open(parts->path, &parts->group, &model, &parts->model));
    warn_of_the_target(parts, config.layers);
    log_debug("draft model %s: %.1f MB of weights%s, %s", parts->path, (double)model_bytes(parts->model) / 1e6,
              parts->model->borrows ? ", which are the target's own copy" : "", parts->model->backend->describe(parts->model->context));
    parts->context = parts->model->shape.context;
    return STATUS_OK;
}

/* Whether the target's files are here that its tokenizer is read by. */
static int has_tokenizer(const struct options *options)
{
    char target[PATH_MAX], path[PATH_MAX + sizeof "/config.json"];
    struct stat found;

    options_target_path(options, target);
    paths_tokenizer(target, path, PATH_MAX);
    if (access(path, R_OK) != 0 || stat(target, &found) != 0)
        return 0;
    snprintf(path, sizeof path, "%s/config.json", target);
    return !S_ISDIR(found.st_mode) || access(path, R_OK) == 0;
}

/* The file made of texts that --draft names. Of the target its tokenizer tells how many ids there are; where that is not here, the roll call does. */
static enum status load_texts(struct parts *parts)
{
    const struct options_draft *way = &parts->options->model.draft_way;

    TRY(corpus_rows_open(way->file, options_draft_kind(way)->made_by, &parts->found));
    parts->vocab = parts->found.vocab;
    if (has_tokenizer(parts->options))
        TRY(count_vocab(parts, parts->found.vocab, &parts->vocab));
    parts->context = draft_context(parts->options->model.context);
    world_claim_threads(&parts->world, 1);
    return STATUS_OK;
}

/* The target's tokens, of which any will do. */
static enum status load_tokens(struct parts *parts)
{
    char target[PATH_MAX], path[PATH_MAX];
    struct config config;

    options_target_path(parts->options, target);
    paths_tokenizer(target, path, sizeof path);
    TRY(config_read(target, &config));
    TRY(tokenizer_open(path, config.vocab, &parts->tokenizer));
    parts->vocab = tokenizer_size(parts->tokenizer);
    parts->context = draft_context(parts->options->model.context);
    corpus_rows_random(parts->vocab, tokenizer_digest(parts->tokenizer), &parts->found);
    world_claim_threads(&parts->world, 1);
    return STATUS_OK;
}

static int breaks_ahead(const struct parts *parts)
{
    return breakage_table[parts->options->checks.breakage].of == BREAKAGE_OF_BRANCHES;
}

static int runs_ahead(const struct parts *parts)
{
    int ahead = breaks_ahead(parts) ? RUN_AHEAD_ON : parts->options->rounds.run_ahead;

    return ahead == RUN_AHEAD_ON || (ahead == RUN_AHEAD_AUTO && !world_is_crowded(&parts->world));
}

static enum status load(struct parts *parts)
{
    const struct options *options = parts->options;

    if (options_draft_runs_model(&options->model.draft_way)) {
        TRY(load_model(parts));
    } else if (options->model.draft_way.file != NULL) {
        TRY(load_texts(parts));
    } else if (options_draft_kind(&options->model.draft_way)->target_tokens) {
        TRY(load_tokens(parts));
    } else { /* no file is opened: this host may not have the target's */
        parts->context = draft_context(options->model.context);
        world_claim_threads(&parts->world, 1);
    }
    const struct draft_parts mine = {.way = &options->model.draft_way,
                                     .model = parts->model,
                                     .found = parts->found.kind != NULL ? &parts->found : NULL,
                                     .vocab = options_draft_vocab(options, parts->vocab),
                                     .slots = options->rounds.max_sequences,
                                     .support = options->rounds.support,
                                     .context = parts->context,
                                     .runs_ahead = runs_ahead(parts) || options->rounds.shape.kind != TREE_CHAIN || options_copies(options)};
    TRY(draft_open(&parts->draft, &mine));
    draft_stop(&parts->draft, &options->rounds.stopping);
    draft_shape(&parts->draft, &options->rounds.shape);
    const struct draft_copies copies = {
        .cascade = options->rounds.cascade != CASCADE_NONE, .first = options->rounds.copy_first, .after = options->rounds.copy_after};

    TRY(draft_copy(&parts->draft, &copies, options->rounds.max_sequences, parts->context));
    draft_break(&parts->draft, (enum breakage)options->checks.breakage);
    return channel_open_mpi(&parts->world, &parts->channel);
}

/* Once all ranks have loaded: they wait for this one now, while those that load or pack weights beside it would take the cores and the memory
 * from it, and the lead would believe that drafts cost several times what they do. */
static enum status time_steps(struct parts *parts)
{
    recorder_note("times its steps", 0, 0, 0);
    TRY(draft_time_step(&parts->draft, 1, &parts->step_us[0]));
    return draft_time_step(&parts->draft, parts->options->rounds.max_sequences, &parts->step_us[1]);
}

/* Fills in this rank's Hello. Without a model a drafter has no vocabulary and takes the target's. */
static void introduce(const struct parts *parts, struct hello *hello)
{
    const char *draft = parts->options->model.draft;
    char text[OPTIONS_DRAFT_TEXT];

    options_draft_write(&parts->options->model.draft_way, text);
    *hello = (struct hello){
        .protocol = MESSAGE_VERSION, .role = ROLE_DRAFTER, .bos = -1, .eos = -1, .context = (uint32_t)parts->context, .pid = (uint32_t)getpid()};
    if (parts->vocab > 0) {
        hello->vocab_digest = parts->model != NULL ? tokenizer_digest(parts->tokenizer) : parts->found.tokenizer;
        hello->vocab_size = (uint32_t)options_draft_vocab(parts->options, parts->vocab);
    }
    snprintf(hello->program, sizeof hello->program, "tandem %s", options_version());
    snprintf(hello->device, sizeof hello->device, "%s", parts->model != NULL ? parts->model->backend->name : "none");
    memcpy(hello->host, parts->world.host, sizeof hello->host);
    if (parts->options->model.draft_way.file != NULL) /* what is in it says what it is, wherever it lies */
        snprintf(hello->model, sizeof hello->model, "%s:%.200s@%016llx", options_draft_kind(&parts->options->model.draft_way)->name,
                 parts->options->model.draft_way.file, (unsigned long long)parts->found.digest);
    else if (options_draft_kind(&parts->options->model.draft_way)->own_model)
        snprintf(hello->model, sizeof hello->model, "%.255s", parts->path);
    else
        snprintf(hello->model, sizeof hello->model, "%.255s", strlen(draft) < sizeof hello->model ? draft : text); /* which always fits */
    hello->draft_ns = (uint32_t)fmin(1000 * parts->step_us[0], UINT32_MAX);
    hello->draft_batch_ns = (uint32_t)fmin(1000 * parts->step_us[1], UINT32_MAX);
}

static enum status work(struct parts *parts, struct message_space *space)
{
    struct hello *all = calloc((size_t)parts->world.size, sizeof *all), mine;
    struct drafter drafter;
    enum status status;

    if (all == NULL)
        return STATUS_INTERNAL;
    introduce(parts, &mine);
    TRY_TO(roll_call(&parts->world, space, &mine, all), free_all);
    keeper_joined();
    parts->joined = 1;
    const struct drafter_terms terms = {.channel = parts->channel,
                                        .world = &parts->world,
                                        .draft = &parts->draft,
                                        .lead = parts->world.lead,
                                        .run = mine.run,
                                        .vocab = (int)all[parts->world.lead].vocab_size,
                                        .context = parts->context,
                                        .slots = parts->options->rounds.max_sequences,
                                        .run_ahead = runs_ahead(parts),
                                        .draft_temperature =
                                            parts->options->rounds.draft_temperature >= 0 ? &parts->options->rounds.draft_temperature : NULL,
                                        .kind = parts->world.role_rank % options_kinds(parts->options),
                                        .branches = breaks_ahead(parts) ? MIRROR_BRANCHES : parts->options->rounds.branches,
                                        .unhurried = breaks_ahead(parts),
                                        .patience_s = parts->options->limits.watchdog_s,
                                        .silent = parts->options->launch.silent_drafter != NULL};
    TRY_TO(drafter_open(&drafter, &terms), free_all);
    TRY_TO(world_trace_begin(&parts->world, &parts->trace), close_drafter);
    status = drafter_run(&drafter);
    if (status != STATUS_OK && status != STATUS_WATCHDOG)
        drafter_fail(&drafter, status);
    log_debug("%lld proposals, %lld messages refused, %lld unfitting", (long long)drafter.proposals, (long long)drafter.refused,
              (long long)drafter.unfitting);
    run_ahead_describe(&drafter.ahead);
    if (status == STATUS_OK)
        status = world_trace_end(&parts->world, &parts->trace);

close_drafter:
    drafter_close(&drafter);

free_all:
    free(all);
    return status;
}

static enum status run(struct parts *parts)
{
    struct message_space *space;
    enum status status;

    log_hold();
    if (parts->world.verifiers == 0) {
        log_error("there are %d drafters and no verifier, expected at least one tandem-verifier rank", parts->world.drafters);
        return world_agree(&parts->world, STATUS_USAGE);
    }
    TRY(world_agree(&parts->world, STATUS_OK)); /* the lead has checked the model files */
    log_hold();
    status = load(parts);
    if (status == STATUS_OK)
        status = world_trace_open(&parts->world, parts->options->report.trace, &parts->trace);
    TRY(world_agree(&parts->world, status));
    TRY(world_agree(&parts->world, time_steps(parts)));
    TRY(message_space_open(&space));
    status = work(parts, space);
    message_space_close(space);
    return status;
}

static void release(struct parts *parts)
{
    channel_close(parts->channel);
    draft_close(&parts->draft);
    model_close(parts->model);
    corpus_rows_close(&parts->found);
    if (parts->tokenizer != NULL)
        tokenizer_close(parts->tokenizer);
}

static enum status draft(struct parts *parts)
{
    enum status status;

    options_draft_path(parts->options, parts->path);
    status = run(parts);
    if (status == STATUS_WATCHDOG)
        world_abort(status);
    if (status != STATUS_OK && parts->joined)
        keeper_leave(status);
    return status;
}

int main(int argc, char **argv)
{
    struct options options = {0}, own;
    struct parts parts = {.options = &own};
    enum status status, parsed;
    char label[64];

    signals_open();
    if (world_is_launched())
        log_hold();
    parsed = options_parse(argc, argv, &options);
    if (parsed == STATUS_OK && options.print != OPTIONS_PRINT_NOTHING) {
        options_print(&options, "tandem-drafter", "drafts tokens with a small model for tandem-verifier ranks of the same MPI job", stdout);
        options_release(&options);
        return standard_output_end(0);
    }
    if (parsed != STATUS_OK && !world_is_launched())
        return (int)parsed;
    status = world_is_launched() ? keeper_open() : STATUS_OK;
    if (status != STATUS_OK)
        world_abort(status);
    world_record(options.report.recorder, "drafter");
    status = watchdog_open(options.limits.watchdog_s); /* before MPI, which waits for ranks that may never come */
    if (status == STATUS_OK)
        status = world_open(&argc, &argv, ROLE_DRAFTER, &parts.world);
    if (status != STATUS_OK)
        world_abort(status);
    snprintf(label, sizeof label, "tandem-drafter[%d]", parts.world.rank);
    if (parsed == STATUS_OK)
        log_init(label, options.report.quiet ? LOG_ERROR : options.report.verbose ? LOG_DEBUG : LOG_INFO);
    log_clear_lines(options_have_bar(&options));
    log_leave_files();                          /* the lead has reported errors in files already */
    status = world_agree(&parts.world, parsed); /* so that errors in the command line are reported once */
    if (status == STATUS_OK) {
        options_of_kind(&options, parts.world.role_rank % options_kinds(&options), &own);
        status = draft(&parts);
    }
    release(&parts);
    world_close(&parts.world, status);
    watchdog_close();
    options_release(&options);
    return (int)status;
}
