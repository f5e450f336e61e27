/* bench_one_process: the engine of a job of one drafter and one verifier in one process and on one thread of control, on the CPU. The lead,
 * verifying, the drafter's loop and its drafts are those of the two programs, and so are the messages between them; MPI and waiting are not
 * there.
 *
 *   bench_one_process DRAFT_THREADS [OPTION]...
 *
 * Options are those of `tandem run`, --threads for the target; those about ranks and --output are not looked at. Results go to stdout, one
 * line of figures to stderr, and --stats has the figures of any run. */
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/try.h"
#include "common/options/options_paths.h"
#include "launch/dev/one_process/inner_drafter.h"
#include "launch/engine/engine.h"
#include "verifier/job/audience.h"
#include "verifier/job/job.h"
#include "verifier/job/stats.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUN = 1, RANKS = ENGINE_DRAFTER + 1 }; /* the lead and its drafter */
#define DEADLINE_MS 3.6e6 /* the drafter answers as soon as the lead waits, however late that is */

static int max_outputs(const struct options *options)
{
    return options->rounds.max_sequences * (options_most_drafts(options) + 1);
}

static int max_ids(const struct options *options)
{
    return options->rounds.max_sequences * options_most_drafts(options) * MESSAGE_MAX_SUPPORT;
}

static enum status open_target(struct job *job)
{
    const struct options *options = job->options;
    int asked = max_outputs(options);
    struct model_options model = {.threads = world_threads(&job->world, options->ranks.threads, 1),
                                  .max_rows = asked + BACKEND_MAX_ROWS,
                                  .context = options->model.context,
                                  .slots = options->rounds.max_sequences,
                                  .quantise = model_quantise(options_bits(options, 0)),
                                  .cache = options->model.cache};
    char tokenizer[4096];
    struct config config;

    options_target_path(options, job->target);
    TRY(config_read(job->target, &config));
    paths_tokenizer(job->target, tokenizer, sizeof tokenizer);
    TRY(tokenizer_open(tokenizer, config.vocab, &job->tokenizer));
    model.vocab = tokenizer_size(job->tokenizer);
    group_open_self(&job->group);
    TRY(model_open(job->target, &job->group, &model, &job->model));
    TRY(team_open(&job->team, job->model, options->rounds.max_sequences, asked, max_ids(options)));
    job->team_is_open = 1;
    return STATUS_OK;
}

/* The Hellos that a roll call would gather, for the report says who ran. */
static enum status introduce(struct job *job, const struct inner_drafter *inner)
{
    job->hello = calloc(RANKS, sizeof *job->hello);
    if (job->hello == NULL) {
        log_error("no memory for who takes part");
        return STATUS_INTERNAL;
    }
    for (int i = 0; i < RANKS; i++) {
        struct hello *hello = &job->hello[i];

        *hello = (struct hello){.role = i == ENGINE_LEAD ? ROLE_VERIFIER : ROLE_DRAFTER, .run = RUN, .pid = (uint32_t)getpid()};
        snprintf(hello->program, sizeof hello->program, "tandem %s", options_version());
        snprintf(hello->device, sizeof hello->device, "cpu");
        gethostname(hello->host, sizeof hello->host - 1);
        snprintf(hello->model, sizeof hello->model, "%.255s",
                 i == ENGINE_LEAD         ? job->target
                 : inner->path[0] != '\0' ? inner->path
                                          : job->options->model.draft);
    }
    return STATUS_OK;
}

/* What the two programs would be told. */
static enum status open_engine(struct job *job, struct inner_drafter *inner, const struct request_list *requests, const struct lead_watch *watch,
                               struct engine *engine)
{
    const struct options *options = job->options;
    const struct engine_terms terms = {.team = &job->team,
                                       .draft[0] = {.draft = &inner->draft, .vocab = tokenizer_size(job->tokenizer), .context = inner->context},
                                       .drafters = 1,
                                       .tokenizer = job->tokenizer,
                                       .requests = requests,
                                       .watch = watch,
                                       .run = RUN,
                                       .slots = options->rounds.max_sequences,
                                       .outputs = max_outputs(options),
                                       .ids = max_ids(options),
                                       .hash_logits = options->report.hash_logits,
                                       .prefill_chunk = options->rounds.prefill_chunk,
                                       .deadline_ms = DEADLINE_MS,
                                       .patient = 1};

    TRY(engine_open(engine, &terms));
    engine->lead.drain.seconds = options->limits.drain_s;
    engine->verify.synthetic_acceptance = options->rounds.synthetic_acceptance;
    engine->verify.measure_overlap = options->report.stats != NULL;
    engine->verify.tells_own = options_draft_kind(&options->model.draft_way)->hears_target;
    return STATUS_OK;
}

static enum status say(struct job *job, const struct engine *engine)
{
    struct stats stats = {.options = job->options,
                            .target = job->target,
                            .hello = job->hello,
                            .ranks = RANKS,
                            .drafters = 1,
                            .threads = job->threads,
                            .figures = &engine->lead.figures,
                            .peers = &engine->peers};

    if (job->options->report.hash_logits)
        TRY(team_hash(&job->team, &stats.hash));
    stats_line(&stats, stderr);
    return job->options->report.stats != NULL ? stats_write(&stats, job->options->report.stats) : STATUS_OK;
}

/* Completes the requests, and says what that came to. */
static enum status complete(struct job *job, struct inner_drafter *inner, const struct request_list *requests)
{
    const struct journal_job begun = {.requests = requests, .run = RUN, .host = job->hello[0].host};
    struct show show = {0};
    struct audience audience;
    struct engine engine;
    enum status status;

    audience_init(&audience, &job->output, &show, NULL);
    TRY(output_open(&job->output, "-", 0, job->options->results.plain_results));
    TRY(output_begin(&job->output, &begun));
    TRY(open_engine(job, inner, requests, &audience.watch, &engine));
    TRY_TO(engine_run(&engine), close_engine);
    TRY_TO(output_finish(&job->output), close_engine);
    status = say(job, &engine);

close_engine:
    engine_close(&engine);
    audience_release(&audience);
    return status;
}

static enum status run(struct job *job, int draft_threads)
{
    struct request_list requests = {0};
    struct inner_drafter inner;
    enum status status;

    TRY(open_target(job));
    TRY(inner_drafter_open(&inner, job->options, job->tokenizer, draft_threads));
    TRY_TO(introduce(job, &inner), close_inner);
    TRY_TO(job_read_requests(job, &requests), release_requests);
    status = complete(job, &inner, &requests);
    output_close(&job->output);

release_requests:
    request_release(&requests);

close_inner:
    inner_drafter_close(&inner);
    return status;
}

/* What asks for something else than results with drafts would be taken for them. */
static enum status check_options(const struct options *options)
{
    const char *other = options->rounds.solo                                        ? "--solo"
                        : options->model.target != NULL && options->model.draft == NULL  ? "--target without --draft"
                        : options->checks.size != CHECK_OFF                        ? "--check"
                        : options_explains(options)                                ? "--explain"
                        : options->rounds.merge.count > 0                          ? "--merge"
                        : options->launch.dry_run                                   ? "--dry-run"
                        : options->print != OPTIONS_PRINT_NOTHING            ? "an option that prints"
                        : options->input.prompt == NULL && options->input.prompts == NULL ? "no prompt"
                                                                             : NULL;

    if (other == NULL)
        return STATUS_OK;
    log_error("%s, expected a draft and --prompt, --chat or --prompts: prompts are completed with drafts, and nothing else is done", other);
    return STATUS_USAGE;
}

static int threads_of(const char *text)
{
    char *end;
    long threads = strtol(text, &end, 10);

    return *end == '\0' && threads <= 1024 ? (int)threads : 0;
}

int main(int argc, char **argv)
{
    struct options options = {0};
    struct job job = {.options = &options, .world = {.node_size = 1, .node_role_size = 1}};
    int draft_threads = argc > 1 ? threads_of(argv[1]) : 0;
    enum status status;

    log_init("bench_one_process", LOG_INFO);
    if (draft_threads < 1) {
        fprintf(stderr, "usage: bench_one_process DRAFT_THREADS (1 to 1024) [OPTION of tandem run]...\n");
        return (int)STATUS_USAGE;
    }
    argv[1] = argv[0];
    status = options_parse(argc - 1, argv + 1, &options);
    if (status == STATUS_OK)
        status = check_options(&options);
    if (status == STATUS_OK)
        status = run(&job, draft_threads);
    job_release(&job);
    options_release(&options);
    return (int)status;
}
