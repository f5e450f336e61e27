#include "verifier/job/job.h"

#include "common/backend/choose.h"
#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/try.h"
#include "common/model/model_identity.h"
#include "common/options/options_paths.h"
#include "launch/submit/launch_line.h"
#include "verifier/check/check.h"
#include "verifier/command/chat.h"
#include "verifier/command/sweep.h"
#include "verifier/job/loading.h"
#include "verifier/job/report.h"
#include "verifier/result/journal_terms.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GROUP_BYTES = 256 << 10 };

static int max_asked(const struct options *options)
{
    return options->max_sequences * MESSAGE_MAX_COMMIT;
}

/* A round of all sequences, and beside it a part of a prompt. */
static int max_rows(const struct options *options, const struct backend *backend)
{
    return max_asked(options) + (options->prefill_chunk > backend->prompt_rows ? options->prefill_chunk : backend->prompt_rows);
}

static int max_ids(const struct options *options)
{
    return options->max_sequences * MESSAGE_MAX_DRAFT * MESSAGE_MAX_SUPPORT;
}

/* The lead says how far it is. */
static enum status read_model(struct job *job, struct model_options options)
{
    int bar = !job->options->quiet && (job->options->terminal & 2) != 0, leads = job->world.rank == job->world.lead;
    struct loading loading;
    enum status status;

    loading_begin(&loading, leads && !job->options->quiet ? stderr : NULL, bar);
    options.tell = loading_tell;
    options.tell_state = &loading;
    log_clear_lines(bar);
    status = model_open(job->target, &job->group, &options, &job->model);
    log_clear_lines(options_have_bar(job->options));
    loading_end(&loading);
    return status;
}

/* Its ranks may fail one by one, for memory, and go on together or not at all. */
static enum status load_model(struct job *job, const struct model_options *options)
{
    size_t largest = (size_t)options->max_rows * sizeof(float);

    TRY(group_agree(&job->group, read_model(job, *options)));
    return group_attach(&job->world, job->model->backend, job->model->context, largest * (size_t)job->model->shape.hidden,
                        (enum group_sums)job->options->all_reduce, &job->group);
}

static enum status load(struct job *job)
{
    const struct backend *backend;
    const char *devices = job->options->verifier_devices;
    char tokenizer[PATH_MAX];
    struct config config;
    int device;

    TRY(backend_choose((enum backend_choice)job->options->backend, &backend));
    TRY(backend_choose_device(backend, devices, devices != NULL ? job->world.node_team_rank : job->world.node_rank, &device));
    TRY(config_read(job->target, &config));
    paths_tokenizer(job->target, tokenizer, sizeof tokenizer);
    TRY(tokenizer_open(tokenizer, config.vocab, &job->tokenizer));
    TRY(group_open_team(&job->world, GROUP_BYTES, &job->group));
    int alone = job->options->draft_way.way == DRAFT_LOOKUP || config_is_large(&config, 0, job->world.verifiers);
    const struct model_options model = {.threads = world_threads(&job->world, job->options->threads, alone),
                                        .max_rows = max_rows(job->options, backend),
                                        .max_asked = max_asked(job->options),
                                        .context = job->options->context,
                                        .slots = job->options->max_sequences,
                                        .vocab = tokenizer_size(job->tokenizer),
                                        .quantise = model_quantise(options_bits(job->options, 0)),
                                        .cache = job->options->cache,
                                        .backend = backend,
                                        .device = device};
    world_claim_threads(&job->world, backend->device == NULL ? model.threads : 1);
    TRY(load_model(job, &model));
    TRY(team_open(&job->team, job->model, job->options->max_sequences, max_asked(job->options), max_ids(job->options)));
    job->team_is_open = 1;
    log_debug("target %s, shard %d of %d: %.1f MB of weights, %.1f MB of cache, %s, group over %s", job->target,
              job->group.rank + 1, job->group.size, (double)model_bytes(job->model) / 1e6, (double)kv_cache_bytes(&job->team.shard.cache) / 1e6,
              job->model->backend->describe(job->model->context), group_describe(&job->group));
    TRY(message_space_open(&job->space));
    return channel_open_mpi(&job->world, &job->channel);
}

static enum status meet(struct job *job)
{
    struct hello mine = {.protocol = MESSAGE_VERSION,
                         .role = ROLE_VERIFIER,
                         .vocab_digest = tokenizer_digest(job->tokenizer),
                         .vocab_size = (uint32_t)tokenizer_size(job->tokenizer),
                         .bos = job->model->config.bos,
                         .eos = job->model->config.eos_count > 0 ? job->model->config.eos[0] : -1,
                         .context = (uint32_t)job->model->longest,
                         .pid = (uint32_t)getpid()};

    job->hello = calloc((size_t)job->world.size, sizeof *job->hello);
    if (job->hello == NULL)
        return STATUS_INTERNAL;
    snprintf(mine.program, sizeof mine.program, "tandem %s", options_version());
    snprintf(mine.device, sizeof mine.device, "%s", job->model->backend->name);
    memcpy(mine.host, job->world.host, sizeof mine.host);
    snprintf(mine.model, sizeof mine.model, "%.255s", job->target);
    return roll_call(&job->world, job->space, &mine, job->hello);
}

static enum status read_requests_by(struct job *job, const struct chat_template *chat, struct request_list *requests)
{
    const struct options *options = job->options;
    const struct request_terms terms = {
        .options = options, .tokenizer = job->tokenizer, .chat = chat, .context = job->model->longest, .vocab = job->model->vocab};
    const char *path = options->prompts;
    char demo[PATH_MAX];

    if (options->prompt != NULL) {
        TRY(request_add_text(requests, &terms, options->prompt, strlen(options->prompt)));
        if (requests->request[0].error == NULL)
            return STATUS_OK;
        log_error("--prompt: %s", requests->request[0].error);
        return STATUS_DATA;
    }
    paths_demo(options->check != CHECK_OFF ? "check.jsonl" : "prompts.jsonl", demo, sizeof demo);
    path = path != NULL ? path : demo;
    TRY(request_read(requests, &terms, path));
    if (requests->count == 0 && options->shard == NULL)
        log_warn("--prompts %s has no prompts: there is nothing to do", (options->terminal & OPTIONS_FROM_STDIN) != 0 ? "- (stdin)" : path);
    return STATUS_OK;
}

enum status job_read_requests(struct job *job, struct request_list *requests)
{
    struct chat_template chat;
    enum status status;

    TRY(chat_template_open(job->target, (enum chat_family)job->options->chat_family, &chat));
    status = read_requests_by(job, &chat, requests);
    chat_template_release(&chat);
    return status;
}

enum status job_open_lead(struct job *job, struct peers *peers, struct verify *verify, struct lead *lead)
{
    enum status status;

    TRY(verify_open(verify, &job->team, job->options->max_sequences, max_asked(job->options), max_ids(job->options)));
    verify->breakage = (enum breakage)job->options->breakage;
    verify->synthetic_acceptance = job->options->synthetic_acceptance;
    verify->measure_overlap = job->options->stats != NULL || job->options->sweep != NULL;
    lead->team = &job->team;
    lead->verify = verify;
    lead->peers = peers;
    lead->tokenizer = job->tokenizer;
    lead->slots = lead->slots > 0 ? lead->slots : job->options->max_sequences;
    lead->prefill_chunk = job->options->prefill_chunk;
    lead->hash_logits = job->options->hash_logits;
    lead->drain_s = job->options->drain_s;
    job->team.shard.forward.group_ns = 0;
    status = lead_open(lead);
    if (status != STATUS_OK)
        verify_close(verify);
    return status;
}

void job_close_lead(struct lead *lead)
{
    lead_close(lead);
    verify_close(lead->verify);
}

/* One pass over the requests, with these drafters. */
static enum status pass(struct job *job, struct lead *lead, struct peers *peers)
{
    struct verify verify = {0};
    enum status status;

    TRY(job_open_lead(job, peers, &verify, lead));
    status = lead_run(lead);
    job_close_lead(lead);
    return status;
}

enum status job_pass(struct job *job, const struct request_list *requests, struct peers *drafters, int solo, int slots,
                     const struct lead_watch *watch, struct figures *figures)
{
    struct output output = {0};
    struct show show = {0};
    struct peers none = {0};
    struct lead lead = {
        .output = &output, .show = &show, .requests = requests, .watch = watch, .slots = slots, .resting = solo ? drafters : NULL};

    enum status status = pass(job, &lead, solo ? &none : drafters);
    *figures = lead.figures;
    return status;
}

/* Two streams come through mpirun in any order. So where both go to one place, as on a terminal, the completion and the figures are one, or the figures
 * would stand in the midst of the text. */
static int is_shown_whole(const struct options *options)
{
    return options->prompt != NULL && options->output == NULL && (options->terminal & (1 | 16)) != 0;
}

/* Where the completion, and where everything else goes. */
static void set_up_show(const struct job *job, const struct request_list *requests, struct show *show)
{
    const struct options *options = job->options;
    int terminal = options->terminal & 1, compare = options->compare;

    *show = (struct show){.total = requests->count, .bar = options_have_bar(options)};
    show->notes = options->quiet ? NULL : compare || is_shown_whole(options) ? stdout : stderr;
    if (options->output == NULL && (options->prompt != NULL || compare))
        show->text = stdout;
    show->drafts = options->show_drafts || (compare && options->prompt == NULL && options->prompts == NULL);
    show->colour = options->colour == COLOUR_ALWAYS || (options->colour == COLOUR_AUTO && terminal);
    show->text_is_terminal = terminal;
    show->notes_is_terminal = options->terminal & (show->notes == stdout ? 1 : 2);
    show->reading = options->quiet || show->text == NULL ? NULL : terminal ? stdout : stderr;
    show->redrawn = options->terminal & (terminal ? 1 : 2);
    show->clears_errors = options->terminal & 2;
    if (options->prompt != NULL && !terminal && !compare)
        show->notes = NULL; /* in a pipe there is the text alone; the figures follow on stderr */
}

static const char *output_path(const struct options *options)
{
    if (options->check != CHECK_OFF)
        return NULL;
    if (options->output != NULL)
        return options->output;
    return options->prompts != NULL && !options->compare ? "-" : NULL;
}

/* More passes of both ways, in turns, until their speeds are known. Where logits are hashed there are none: they would be hashed, too. */
static enum status repeat(struct job *job, struct peers *drafters, const struct request_list *requests, double first_s, struct comparison *comparison)
{
    int64_t began = clock_ns();
    struct figures solo, drafted;

    while (!job->options->hash_logits && !comparison_is_enough(comparison, first_s + (double)(clock_ns() - began) / 1e9)) {
        TRY(job_pass(job, requests, drafters, 1, 0, NULL, &solo));
        TRY(job_pass(job, requests, drafters, 0, 0, NULL, &drafted));
        comparison_add(comparison, figures_tokens_per_second(&solo), figures_tokens_per_second(&drafted));
    }
    return STATUS_OK;
}

static enum status report(struct job *job, const struct peers *drafters, const struct figures *solo, const struct figures *figures,
                          const struct comparison *comparison)
{
    struct report report = {.options = job->options,
                            .target = job->target,
                            .hello = job->hello,
                            .ranks = job->world.size,
                            .solo = solo,
                            .figures = figures,
                            .comparison = comparison,
                            .peers = drafters};

    if (job->options->hash_logits)
        TRY(team_hash(&job->team, &report.hash));
    if (!job->options->quiet && solo != NULL)
        report_table(&report, stdout);
    else if (!job->options->quiet)
        report_line(&report, is_shown_whole(job->options) ? stdout : stderr);
    return job->options->stats != NULL ? report_write(&report, job->options->stats) : STATUS_OK;
}

/* What drafts, as the first drafter says it: a way by what it is told and, where it computes, the target; a model that only its own rank can see by
 * its name. */
static enum status identify_draft(const struct job *job, uint64_t target, uint64_t *identity)
{
    const char *name = job->hello[job->world.drafter_rank[0]].model;
    char way_text[OPTIONS_DRAFT_TEXT];
    struct options_draft way;

    TRY(options_draft_read(name, &way));
    options_draft_write(&way, way_text);
    if (way.way == DRAFT_MODEL && access(name, R_OK) == 0)
        return model_identity(name, identity);
    if (way.way != DRAFT_MODEL)
        name = way_text;
    *identity = digest_bytes(name, strlen(name), way.way == DRAFT_SELF ? target : DIGEST_EMPTY);
    return STATUS_OK;
}

/* Tells the output what it is for. */
static enum status begin_output(struct job *job, const struct request_list *requests)
{
    struct options meant = *job->options;
    struct journal_terms terms = {.options = &meant, .requests = requests, .context = job->model->longest};
    struct journal_job begun = {.requests = requests, .run = job->hello[0].run, .host = job->world.host};
    enum status status;
    char *text;

    if (!job->output.journaled)
        return output_begin(&job->output, &begun);
    meant.cache = job->model->cache_dtype == DTYPE_BF16 ? CACHE_BF16 : CACHE_F32;
    TRY(model_identity(job->target, &terms.target));
    if (journal_terms_need_drafts(requests) && !job->options->solo && job->world.drafters > 0)
        TRY(identify_draft(job, terms.target, &terms.draft));
    text = journal_terms_write(&terms);
    if (text == NULL) {
        log_error("no memory for what the results depend on");
        return STATUS_INTERNAL;
    }
    begun.terms = text;
    status = output_begin(&job->output, &begun);
    free(text);
    return status;
}

/* Each has said why when its turn came; in a long log that is far above. */
static void say_wrong(const struct request_list *requests)
{
    int wrong = 0;

    for (int i = 0; i < requests->count; i++)
        wrong += requests->request[i].error != NULL;
    if (wrong > 0)
        log_info("%d of %d prompts could not be completed: their lines of output say why", wrong, requests->count);
}

/* Drafts of a length that was asked for make it slower than none. What they cost is measured, what there would be without follows from timed steps. */
static void warn_of_cost(const struct job *job, const struct pace *pace)
{
    double with, without;

    if (job->options->draft_length > 0 && !job->options->quiet && pace_drafts_cost(pace, &with, &without))
        log_warn("drafts of %d cost speed here: %.0f tokens/s while decoding, without them about %.0f; leave --draft-length out, or --solo",
                 job->options->draft_length, with, without);
}

static enum status decode(struct job *job, struct peers *drafters, const struct request_list *requests)
{
    struct peers none = {0}, *peers = job->options->solo ? &none : drafters;
    struct comparison comparison = {0};
    struct figures solo = {0};
    struct show show;
    struct lead lead = {.output = &job->output, .show = &show, .requests = requests, .resting = job->options->solo ? drafters : NULL};
    int compare = job->options->compare && peers->count > 0;
    enum status status;

    set_up_show(job, requests, &show);
    if (compare)
        TRY(job_pass(job, requests, drafters, 1, 0, NULL, &solo)); /* solo first */
    job->team.shard.hash = 0;
    TRY(begin_output(job, requests));
    show_begin(&show, requests);
    status = pass(job, &lead, peers);
    if (status != STATUS_DRAINED)
        TRY(status);
    TRY(output_finish(&job->output));
    if (show.text != NULL && (fflush(show.text) != 0 || ferror(show.text))) {
        log_error("the completion could not be written to stdout");
        return STATUS_IO;
    }
    if (compare) {
        comparison_add(&comparison, figures_tokens_per_second(&solo), figures_tokens_per_second(&lead.figures));
        if (status == STATUS_OK)
            status = repeat(job, drafters, requests, (double)(solo.wall_ns + lead.figures.wall_ns) / 1e9, &comparison);
        if (status != STATUS_DRAINED)
            TRY(status);
    }
    TRY(report(job, drafters, compare ? &solo : NULL, &lead.figures, compare ? &comparison : NULL));
    warn_of_cost(job, &lead.pace);
    say_wrong(requests);
    return status;
}

static enum status converse(struct job *job, struct peers *drafters)
{
    struct figures figures = {0};

    TRY(chat_run(job, drafters, &figures));
    return figures.rounds > 0 ? report(job, drafters, NULL, &figures, NULL) : STATUS_OK;
}

static void say_if_crowded(const struct job *job)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (job->world.node_size > cores)
        log_info("%d ranks on %ld cores: they take turns", job->world.node_size, cores);
}

static void say_drained(const struct job *job, int count)
{
    const struct journal *journal = &job->output.journal;

    if (job->output.journaled)
        log_info("drained: %d of %d results are in %s; the same command with --resume goes on", journal->held, count, journal->file.path);
    else
        log_info("drained: not all of the %d prompts have a result; --output with a file and --resume would go on", count);
}

static enum status lead_job(struct job *job)
{
    struct request_list requests = {0};
    struct peers peers;
    enum status status, ended;

    TRY(peers_open(&peers, job->channel, job->world.drafter_rank, job->world.drafters, job->hello[0].run, job->model->vocab,
                   job->options->draft_deadline_ms));
    say_if_crowded(job);
    if (job->options->synthetic_acceptance >= 0)
        log_warn("NOT LOSSLESS: --synthetic-acceptance %g draws the verdicts; what comes out follows no model's law",
                 job->options->synthetic_acceptance);
    for (int i = 0; i < peers.count; i++)
        peers.peer[i].context = (int)job->hello[peers.peer[i].name].context;
    peers.patient = job->options->check != CHECK_OFF;
    status = job->options->conversation ? STATUS_OK : job_read_requests(job, &requests);
    if (status == STATUS_OK && job->options->conversation)
        status = converse(job, &peers);
    else if (status == STATUS_OK && job->options->check != CHECK_OFF)
        status = check_run(job, &peers, &requests);
    else if (status == STATUS_OK && job->options->sweep != NULL)
        status = sweep_run(job, &peers, &requests);
    else if (status == STATUS_OK)
        status = decode(job, &peers, &requests);
    if (status == STATUS_DRAINED && job->options->check == CHECK_OFF)
        say_drained(job, requests.count);
    /* Whatever happened, the others are told that it is over. */
    ended = peers_shutdown(&peers);
    if (team_end(&job->team) != STATUS_OK || ended != STATUS_OK)
        status = status == STATUS_OK ? STATUS_IO : status;
    ended = output_close(&job->output);
    status = status == STATUS_OK ? ended : status;
    job->world.absent = peers_absent(&peers);
    peers_close(&peers);
    request_release(&requests);
    return status;
}

/* One rank looks first, so that what is wrong is said once; and before anything large is read. */
static enum status lead_look(struct job *job)
{
    const struct options *options = job->options;

    TRY(launch_line_check(options));
    TRY(output_open(&job->output, output_path(options), options->resume, options->plain_results));
    job->output.not_lossless = options->synthetic_acceptance >= 0;
    job->output.is_terminal = options->terminal & 1;
    return STATUS_OK;
}

enum status job_run(struct job *job)
{
    enum status status = STATUS_OK;

    options_target_path(job->options, job->target);
    if (job->world.rank == job->world.lead)
        status = lead_look(job);
    TRY(world_agree(&job->world, status));
    log_hold(); /* a fault of the model is found by every rank */
    status = load(job);
    TRY(world_agree(&job->world, status));
    TRY(meet(job));
    job->relay = (struct drain_relay){.channel = job->channel, .space = job->space, .lead = job->world.lead, .run = job->hello[0].run};
    job->team.relay = &job->relay;
    TRY(world_trace_begin(&job->world, job->options->trace, &job->trace));
    job->follows = job->group.rank != 0;
    status = job->follows ? team_follow(&job->team) : lead_job(job);
    if (status == STATUS_OK || status == STATUS_DRAINED) {
        enum status traced = world_trace_end(&job->world, &job->trace);

        status = status == STATUS_OK ? traced : status;
    }
    return status;
}

void job_release(struct job *job)
{
    channel_close(job->channel);
    message_space_close(job->space);
    if (job->team_is_open)
        team_close(&job->team);
    group_close(&job->group); /* which may have memory and a stream of the model's device */
    model_close(job->model);
    if (job->tokenizer != NULL)
        tokenizer_close(job->tokenizer);
    free(job->hello);
    if (job->output.journaled) /* where the job ended before it began */
        output_close(&job->output);
}
