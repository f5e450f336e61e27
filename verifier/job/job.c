#include "verifier/job/job.h"

#include "common/backend/choose.h"
#include "common/base/cores.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/try.h"
#include "common/options/options_merge.h"
#include "common/options/options_paths.h"
#include "common/sample/rule.h"
#include "verifier/job/job_words.h"
#include "verifier/job/launch_check.h"
#include "verifier/job/loading.h"
#include "verifier/job/stats.h"
#include "verifier/job/times.h"
#include "verifier/request/request_ids.h"
#include "verifier/request/request_room.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { GROUP_BYTES = 256 << 10 };

static int round_rows(const struct options *options)
{
    return options->rounds.max_sequences * (options_most_drafts(options) + 1);
}

/* A round of all sequences, and beside it a part of a prompt. */
static int max_rows(const struct options *options, const struct backend *backend)
{
    int prompt_rows = backend->step.prompt_rows;

    return round_rows(options) + (options->rounds.prefill_chunk > prompt_rows ? options->rounds.prefill_chunk : prompt_rows);
}

/* Rows whose logits are kept. Where prompts are scored, a step has room for those of a usual part of one; a line of input that alone asks for it
 * takes what the round leaves, and is read in smaller parts. */
static int max_outputs(const struct options *options, const struct backend *backend)
{
    return round_rows(options) + (options_score_prompts(options) ? backend->step.prompt_rows : 0);
}

static int max_ids(const struct options *options)
{
    return options->rounds.max_sequences * options_most_drafts(options) * MESSAGE_MAX_SUPPORT;
}

/* The lead says how far it is. */
static enum status read_model(struct job *job, struct model_options options)
{
    int bar = !job->options->report.quiet && (job->options->launch.terminal & TERMINAL_STDERR) != 0, leads = job->world.rank == job->world.lead;
    struct loading loading;
    enum status status;

    loading_begin(&loading, leads && !job->options->report.quiet ? stderr : NULL, bar);
    options.tell = loading_tell;
    options.tell_state = &loading;
    log_clear_lines(bar);
    status = model_load(job->model, &options);
    loading_end(&loading);
    log_clear_lines(options_have_bar(job->options));
    return status;
}

/* Each rank may fail alone, for want of memory. They agree on it, so that all go on or none does. Devices are connected before weights are read: a
 * network that does not work shows in seconds, and what NCCL takes of a device's memory is not there any more when weights and cache are planned. */
static enum status load_model(struct job *job, const struct model_options *options)
{
    size_t largest = (size_t)options->max_rows * sizeof(float);

    TRY(group_agree(&job->group, model_begin(job->target, &job->group, options, &job->model)));
    TRY(group_attach(&job->world, job->model->backend, job->model->context, largest * (size_t)job->model->shape.hidden,
                     (enum group_sums)job->options->ranks.all_reduce, &job->group));
    return group_agree(&job->group, read_model(job, *options));
}

/* What a rank has and reads for itself, and may lack alone: its host's devices, the target's small files. */
static enum status look(struct job *job, const struct backend **backend, int *device, struct config *config)
{
    const char *devices = job->options->ranks.verifier_devices;
    char tokenizer[PATH_MAX];

    TRY(backend_choose((enum backend_choice)job->options->ranks.backend, backend));
    if (job->world.node_role_rank == 0)
        backend_choose_warn((enum backend_choice)job->options->ranks.backend, *backend);
    if (job->world.rank == job->world.lead && *backend == &backend_cpu && devices != NULL)
        log_warn("--verifier-devices %s is of no use here: the target is computed on the CPU (--verbose says why)", devices);
    TRY(backend_choose_device(*backend, devices, devices != NULL ? job->world.node_role_rank : job->world.node_rank, device));
    TRY(config_read(job->target, config));
    paths_tokenizer(job->target, tokenizer, sizeof tokenizer);
    return tokenizer_open(tokenizer, config->vocab, &job->tokenizer);
}

/* Drafters that compute with the target's own weights map them, where they are whole. */
static int lends(const struct job *job, const struct backend *backend)
{
    return backend->memory.lend != NULL && job->world.verifiers == 1 && job->world.drafters > 0 && options_kinds_share(job->options);
}

static enum status load_target(struct job *job, struct model_options *options)
{
    const struct backend *backend;
    struct config config;
    int device;

    TRY(group_meet(&job->world, look(job, &backend, &device, &config)));
    TRY(group_open_team(&job->world, GROUP_BYTES, &job->group));
    int alone = !options_kinds_run_models(job->options) || config_is_large(&config, 0, job->world.verifiers);
    const struct model_options model = {.threads = world_threads(&job->world, job->options->ranks.threads, alone),
                                        .lends = lends(job, backend),
                                        .max_rows = max_rows(job->options, backend),
                                        .max_outputs = max_outputs(job->options, backend),
                                        .context = job->options->model.context,
                                        .slots = job->options->rounds.max_sequences,
                                        .vocab = tokenizer_size(job->tokenizer),
                                        .quantise = model_quantise(options_bits(job->options, 0)),
                                        .cache = job->options->model.cache,
                                        .backend = backend,
                                        .device = device};
    job->threads = model.threads;
    world_claim_threads(&job->world, backend->device.which == NULL ? model.threads : 1);
    if (backend->device.which == NULL)
        world_keep_apart(&job->world, model.threads);
    *options = model;
    if (!model.lends)
        world_lend(&job->world, NULL); /* so that no drafter waits until the target is read */
    return load_model(job, &model);
}

static enum status load(struct job *job)
{
    struct model_options options;
    enum status status = load_target(job, &options);

    world_lend(&job->world, status == STATUS_OK && job->model->loan.pid != 0 ? &job->model->loan : NULL); /* who borrows waits for it */
    TRY(status);
    TRY(team_open(&job->team, job->model, job->options->rounds.max_sequences, options.max_outputs, max_ids(job->options)));
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

static const char *output_path(const struct options *options)
{
    if (options->checks.size != CHECK_OFF || options->report.measures_plain)
        return NULL;
    if (options->results.path != NULL)
        return options->results.path;
    return options->input.prompts != NULL && !options->report.compare ? "-" : NULL;
}

static enum status read_requests_by(struct job *job, const struct chat_template *chat, struct request_list *requests)
{
    const struct options *options = job->options;
    const struct request_terms terms = {
        .options = options, .tokenizer = job->tokenizer, .chat = chat, .context = job->model->longest, .vocab = job->model->vocab};
    const char *path = options->input.prompts, *called;
    char demo[PATH_MAX], whose[PATH_MAX + 16];

    if (options->input.prompt != NULL) {
        TRY(request_add_text(requests, &terms, options->input.prompt, strlen(options->input.prompt)));
        if (requests->request[0].error == NULL) {
            request_room_warn(requests, job->model->longest, job->model->config.context, "--prompt");
            return STATUS_OK;
        }
        log_error("--prompt: %s", requests->request[0].error);
        return STATUS_DATA;
    }
    paths_demo(options->checks.size != CHECK_OFF ? "check.jsonl" : "prompts.jsonl", demo, sizeof demo);
    path = path != NULL ? path : demo;
    called = (options->launch.terminal & TERMINAL_FROM_STDIN) != 0 ? "- (stdin)" : path;
    TRY(request_read(requests, &terms, path));
    if (requests->count == 0 && options->input.part == NULL)
        log_warn("--prompts %s has no prompts: there is nothing to do", called);
    if (options->checks.size == CHECK_OFF && !options->report.measures_plain) {
        snprintf(whose, sizeof whose, "--prompts %s", called);
        request_room_warn(requests, job->model->longest, job->model->config.context, options->input.prompts != NULL ? whose : "the built-in prompts");
    }
    return output_path(options) != NULL ? request_ids_warn(requests, called) : STATUS_OK;
}

enum status job_read_requests(struct job *job, struct request_list *requests)
{
    struct chat_template chat;
    enum status status;

    TRY(chat_template_open(job->target, (enum chat_family)job->options->input.chat_family, &chat));
    status = read_requests_by(job, &chat, requests);
    chat_template_release(&chat);
    return status;
}

/* Passes that are measured begin alike, and verdicts that are wrong on purpose say nothing about drafts. Where the text depends on what is drafted an
 * earlier job's verdicts may not say whether to draft: it may have been of the same seed, and what it decided by the coins that are still to be used
 * here. */
static int keeps_drafts(const struct job *job)
{
    const struct options *options = job->options;

    return options->rounds.draft_length < 0 && options->rounds.stopping.kind != STOPPING_HEURISTIC && options->report.sweep == NULL &&
           options->checks.size == CHECK_OFF && options->rounds.synthetic_acceptance < 0 && options->rounds.shape.kind != TREE_AUTO &&
           !rule_of(&options->request.sampling)->depends_on_drafts && !job->depends_on_drafts;
}

enum status job_open_lead(struct job *job, struct peers *peers, struct verify *verify, struct lead *lead)
{
    enum status status;

    TRY(verify_open(verify, &job->team, job->options->rounds.max_sequences, job->team.shard.max_outputs, max_ids(job->options)));
    verify->breakage = (enum breakage)job->options->checks.breakage;
    verify->synthetic_acceptance = job->options->rounds.synthetic_acceptance;
    verify->measure_overlap = job->options->report.stats != NULL || job->options->report.sweep != NULL || job->options->checks.size != CHECK_OFF;
    lead->team = &job->team;
    lead->verify = verify;
    lead->peers = peers;
    lead->tokenizer = job->tokenizer;
    lead->slots.count = lead->slots.count > 0 ? lead->slots.count : job->options->rounds.max_sequences;
    lead->prefill_chunk = job->options->rounds.prefill_chunk;
    lead->hash_logits = job->options->report.hash_logits;
    lead->drain.seconds = job->options->limits.drain_s;
    if (job->learns && peers->count > 0)
        lead->drafting.adaptive = job->learnt;
    lead->drafting.adaptive.shares_cores = world_is_crowded(&job->world);
    if (job->options->rounds.shape.kind != TREE_AUTO)
        lead->drafting.adaptive.tokens.is_tree = job->options->rounds.shape.kind != TREE_CHAIN;
    else if (!job->learns || job->learnt_shape.count == 0)
        adaptive_shape_begin(&lead->drafting.shape, options_draft_kind(&job->options->model.draft_way)->draws);
    else
        lead->drafting.shape = job->learnt_shape;
    lead->drafting.by_verdicts = job->options->rounds.stopping.kind == STOPPING_HEURISTIC;
    lead->drafting.by_price = job->options->rounds.stopping.kind == STOPPING_BATCH;
    lead->drafting.load_ns = job->load_ns;
    lead->drafting.earlier = &job->times.steps;
    lead->drafting.past = keeps_drafts(job) && peers->count > 0 && lead->drafting.least == 0 ? &job->times.drafts : NULL;
    job->team.shard.forward.group_ns = 0;
    for (int kind = 0; kind < options_kinds(job->options); kind++) {
        options_kind_name(job->options, kind, job->kind_text[kind]);
        job->kind[kind] = job->kind_text[kind];
    }
    verify->kind = peers->kinds > 1 ? job->kind : NULL;
    verify->tells_own = options_draft_kind(&job->options->model.draft_way)->hears_target;
    status = options_explains(job->options) ? verify_explain(verify, job->options->rounds.max_sequences) : STATUS_OK;
    if (status == STATUS_OK)
        status = lead_open(lead);
    if (status != STATUS_OK)
        verify_close(verify);
    return status;
}

void job_close_lead(struct job *job, struct lead *lead)
{
    job->has_times |= adaptive_work_leave(&lead->drafting.adaptive.work, &job->times.steps);
    if (lead->drafting.past != NULL)
        adaptive_leave(&lead->drafting.adaptive, &job->times.drafts);
    if (job->learns && lead->peers->count > 0) {
        job->learnt = lead->drafting.adaptive;
        job->learnt_shape = lead->drafting.shape;
    }
    lead_close(lead);
    verify_close(lead->verify);
}

enum status job_pass(struct job *job, const struct request_list *requests, struct peers *drafters, enum job_drafts drafts, int slots,
                     const struct lead_watch *watch, struct figures *figures)
{
    struct verify verify = {0};
    struct peers none = {0};
    int drafted = drafts == JOB_DRAFTED, support = job->options->rounds.support, vocab = job->model->vocab;
    struct lead lead = {.queue.requests = requests,
                        .watch = watch,
                        .slots.count = slots,
                        .resting = drafted ? NULL : drafters,
                        .fills = drafts != JOB_FILLED ? 0 : support < vocab ? support : vocab};
    enum status status;

    TRY(job_open_lead(job, drafted ? drafters : &none, &verify, &lead));
    status = lead_run(&lead);
    job_close_lead(job, &lead);
    *figures = lead.figures;
    return status;
}

enum status job_report(struct job *job, const struct peers *drafters, const struct figures *solo, const struct figures *figures,
                       const struct comparison *comparison, const struct adaptive_terms *terms)
{
    struct stats stats = {.options = job->options,
                          .target = job->target,
                          .hello = job->hello,
                          .ranks = job->world.size,
                          .solo = solo,
                          .figures = figures,
                          .comparison = comparison,
                          .lossy = job->lossy,
                          .perplexity = job->perplexity,
                          .terms = terms,
                          .drafters = job->world.drafters,
                          .threads = job->threads,
                          .load = job->load,
                          .peers = drafters};

    if (job->options->report.hash_logits)
        TRY(team_hash(&job->team, &stats.hash));
    if (!job->options->report.quiet && solo != NULL)
        stats_table(&stats, stdout);
    else if (!job->options->report.quiet && figures->steps > 0) /* else nothing was left to decode */
        stats_line(&stats, options_notes(job->options));
    return job->options->report.stats != NULL ? stats_write(&stats, job->options->report.stats) : STATUS_OK;
}

static enum status lead_job(struct job *job, const struct job_command *command)
{
    struct request_list requests = {0};
    char of[TIMES_OF], by[TIMES_BY], path[PATH_MAX];
    struct peers peers;
    enum status status, ended;
    int keeps = job->world.drafters > 0 && paths_cache("times.json", path, sizeof path);

    if (keeps) {
        job_words_kind(job, of, sizeof of);
        job_words_terms(job, by, sizeof by);
        times_read(path, of, by, (int64_t)time(NULL), &job->times);
    }
    TRY(peers_open(&peers, job->channel, job->world.drafter_rank, job->world.drafters, job->hello[0].run, job->model->vocab,
                   job->options->limits.draft_deadline_ms));
    job_words_begin(job);
    for (int i = 0; i < peers.count; i++) {
        const struct hello *hello = &job->hello[peers.peer[i].name];

        peers.peer[i].context = (int)hello->context;
        peers.peer[i].draft_ns = hello->draft_ns;
        peers.peer[i].draft_batch_ns = hello->draft_batch_ns;
    }
    peers.patient = command->is_patient;
    peers.kinds = options_kinds(job->options);
    status = command->takes_prompts ? job_read_requests(job, &requests) : STATUS_OK;
    job_words_requests(job, &requests);
    job->depends_on_drafts = request_depends_on_drafts(&requests);
    if (status == STATUS_OK)
        status = command->run(job, &peers, &requests);
    if (keeps && job->has_times)
        times_write(path, of, by, (int64_t)time(NULL), &job->times);
    if (status == STATUS_DRAINED && command->keeps_results)
        job_words_drained(job, requests.count);
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

_Static_assert(MERGE_MOST == 1 + OPTIONS_MERGED_MOST, "as many kinds as options have");

/* A line of mpirun may have fewer drafters than kinds. */
static enum status check_kinds(const struct job *job)
{
    int kinds = options_kinds(job->options);

    if (job->world.drafters == 0 || job->world.drafters >= kinds)
        return STATUS_OK;
    log_error("--merge: %d kinds of drafters need a rank each, and there are %d tandem-drafter ranks, expected %d or more", kinds,
              job->world.drafters, kinds);
    return STATUS_USAGE;
}

/* One rank looks first, so that what is wrong is said once; and before anything large is read. */
static enum status lead_look(struct job *job)
{
    const struct options *options = job->options;

    TRY(launch_check(options));
    TRY(check_kinds(job));
    TRY(output_open(&job->output, output_path(options), options->results.resume, options->results.plain_results));
    job->output.verdicts = options->rounds.synthetic_acceptance >= 0 ? RESULT_DRAWN : options_drafts(options) ? RESULT_BY_RULE : RESULT_UNDRAFTED;
    job->output.is_terminal = options->launch.terminal & TERMINAL_STDOUT;
    return STATUS_OK;
}

enum status job_run(struct job *job, const struct job_command *command)
{
    enum status status = STATUS_OK;
    int64_t began;

    job->load = cores_load();
    options_target_path(job->options, job->target);
    if (job->world.rank == job->world.lead)
        status = lead_look(job);
    TRY(world_agree(&job->world, status));
    log_hold(); /* a fault of the model is found by every rank */
    began = clock_ns();
    status = load(job);
    job->load_ns = clock_ns() - began;
    if (status == STATUS_OK)
        status = world_trace_open(&job->world, job->options->report.trace, &job->trace);
    TRY(world_agree(&job->world, status));
    TRY(world_agree(&job->world, STATUS_OK)); /* drafters have timed their steps meanwhile */
    TRY(meet(job));
    job->relay = (struct drain_relay){.channel = job->channel, .space = job->space, .lead = job->world.lead, .run = job->hello[0].run};
    job->team.relay = &job->relay;
    TRY(world_trace_begin(&job->world, &job->trace));
    job->follows = job->group.rank != 0;
    status = job->follows ? team_follow(&job->team) : lead_job(job, command);
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
    group_close(&job->group); /* before the model, whose device may hold memory and a stream of the group */
    model_close(job->model);
    if (job->tokenizer != NULL)
        tokenizer_close(job->tokenizer);
    free(job->hello);
    if (job->output.journaled) /* where the job ended before it began */
        output_close(&job->output);
}
