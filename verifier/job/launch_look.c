#include "verifier/job/launch_look.h"

#include "common/backend/choose.h"
#include "common/base/log.h"
#include "common/base/number_list.h"
#include "common/base/paths.h"
#include "common/base/try.h"
#include "common/model/model.h"
#include "common/options/options_merge.h"
#include "common/options/options_paths.h"
#include "common/text/chat_template.h"
#include "common/text/tokenizer.h"
#include "common/wire/message.h"
#include "verifier/job/launch_ask.h"
#include "verifier/request/request_ids.h"
#include "verifier/request/request_room.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_WRONG = 3, WORDS = 4096 };
#define GIB          ((double)(1 << 30))
#define DEVICE_BYTES ((size_t)1 << 30) /* allowed for CUDA's own memory and NCCL's buffers, of a rank with a device */

static enum status tell_prompts(const struct options *options, const struct request_list *requests, int context, int most)
{
    char called[PATH_MAX + 16];
    int64_t tokens = 0;
    int wrong = 0, longest = 0;

    for (int i = 0; i < requests->count; i++) {
        const struct request *request = &requests->request[i];

        wrong += request->error != NULL;
        tokens += request->error == NULL ? request->prompt_count : 0;
        longest = request->error == NULL && request->prompt_count > longest ? request->prompt_count : longest;
    }
    log_debug("--prompts %s: %d lines, %lld tokens, at most %d in one", options->input.prompts, requests->count, (long long)tokens, longest);
    TRY(request_ids_warn(requests, options->input.prompts));
    snprintf(called, sizeof called, "--prompts %s", options->input.prompts);
    request_room_warn(requests, context, most, called);
    if (wrong == 0)
        return STATUS_OK;
    log_warn("--prompts %s: %d of %d lines are wrong, and will get a result that says so; the first:", options->input.prompts, wrong,
             requests->count);
    for (int i = 0, told = 0; i < requests->count && told < FIRST_WRONG; i++)
        if (requests->request[i].error != NULL) {
            log_warn("%s", requests->request[i].error);
            told++;
        }
    if (wrong < requests->count)
        return STATUS_OK;
    log_error("--prompts %s has no line that can be completed", options->input.prompts);
    return STATUS_DATA;
}

static enum status read_prompts(const struct options *options, const char *model, const struct tokenizer *tokenizer,
                                const struct config *config)
{
    struct chat_template chat;
    int size = tokenizer_size(tokenizer);
    struct request_terms terms = {.options = options,
                                  .tokenizer = tokenizer,
                                  .chat = &chat,
                                  .context = options->model.context > 0                      ? options->model.context
                                             : config->context < MODEL_DEFAULT_CONTEXT ? config->context
                                                                                       : MODEL_DEFAULT_CONTEXT,
                                  .vocab = size < config->vocab ? size : config->vocab};
    struct request_list requests = {0};
    enum status status;

    TRY(chat_template_open(model, (enum chat_family)options->input.chat_family, &chat));
    status = request_read(&requests, &terms, options->input.prompts);
    if (status == STATUS_OK)
        status = tell_prompts(options, &requests, terms.context, config->context);
    request_release(&requests);
    chat_template_release(&chat);
    return status;
}

/* A pipe can be read once only, which is the job's to do. */
static enum status look_at_prompts(const struct options *options, const char *model, const struct config *config)
{
    struct tokenizer *tokenizer;
    char path[PATH_MAX];
    struct stat state;
    enum status status;

    if (options->input.prompts == NULL || stat(options->input.prompts, &state) != 0 || !S_ISREG(state.st_mode))
        return STATUS_OK;
    paths_tokenizer(model, path, sizeof path);
    TRY(tokenizer_open(path, config->vocab, &tokenizer));
    status = read_prompts(options, model, tokenizer, config);
    tokenizer_close(tokenizer);
    return status;
}

static int has_devices(const struct options *options)
{
    const struct backend *backend = NULL;

    return options->ranks.backend == BACKEND_CUDA ||
           (backend_choose((enum backend_choice)options->ranks.backend, &backend) == STATUS_OK && backend != &backend_cpu);
}

/* As devices have it where the job is for them, whether or not this build and this host are. */
static enum status need_of(const struct options *options, const char *model, int width, int drafts, struct model_need *need)
{
    const struct backend *backend = has_devices(options) ? &backend_cuda_sizes : &backend_cpu;
    int asked = options->rounds.max_sequences * (options_most_drafts(options) + 1), chunk = options->rounds.prefill_chunk,
        rows = backend->step.prompt_rows;
    const struct layer_set none = {0};
    const struct model_options terms = {.backend = backend,
                                        .drafts = drafts,
                                        .max_rows = asked + (chunk > rows ? chunk : rows), /* a drafter's are fewer */
                                        .max_outputs = asked + (options_score_prompts(options) ? rows : 0),
                                        .context = options->model.context,
                                        .slots = options->rounds.max_sequences,
                                        .layers = drafts ? options->model.draft_way.layers : 0,
                                        .skip = drafts ? options->model.draft_way.skip : none,
                                        .quantise = model_quantise(options_bits(options, drafts)),
                                        .cache = options->model.cache};

    return model_need(model, width, &terms, need);
}

/* "17.6 GiB", or of small models "9.2 MiB". */
static const char *told(size_t bytes, char text[32])
{
    snprintf(text, 32, (double)bytes < GIB ? "%.1f MiB" : "%.1f GiB", (double)bytes / ((double)bytes < GIB ? (double)(1 << 20) : GIB));
    return text;
}

/* Ranks of one model, and what each of them needs. */
struct ranks_need {
    const char *who;
    int count;
    size_t each;
};

static void tell_need(const struct options *options, struct ranks_need *ranks, const struct model_need *need)
{
    size_t device = has_devices(options) ? DEVICE_BYTES : 0;
    char weights[32], cache[32], activations[32], allowed[32], sum[32];

    ranks->each = need->weights + need->cache + need->activations + device;
    log_debug("%s of each of %d %s%s: %s = %s of weights, %s of cache (%d sequences), %s of activations, %s for CUDA and NCCL",
              device > 0 ? "device memory" : "memory", ranks->count, ranks->who, ranks->count > 1 ? "s" : "", told(ranks->each, sum),
              told(need->weights, weights), told(need->cache, cache), options->rounds.max_sequences, told(need->activations, activations),
              told(device, allowed));
}

/* Another host's memory is not known here, nor a device's. */
static enum status check_host(const struct options *options, size_t all)
{
    size_t has = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);

    if (options->slurm.batch_script || options->launch.hosts != NULL || options->launch.launcher == LAUNCHER_SRUN || has_devices(options) ||
        all <= has)
        return STATUS_OK;
    log_error("the ranks need %.1f GiB of memory together and this host has %.1f: --dry-run --verbose says of what; a smaller --context, fewer "
              "--max-sequences, --cache bf16 or fp8, or --quantise q8_0 need less",
              (double)all / GIB, (double)has / GIB);
    return STATUS_INTERNAL;
}

/* What sbatch is told of a group of nodes; `more` is that of a part of a heterogeneous job. */
static void read_words(const struct options *options, const char *more, int tasks, struct launch_ask *ask)
{
    int is_apart = options->slurm.layout == SLURM_LAYOUT_HETJOB;
    char words[WORDS];

    snprintf(words, WORDS, "%s %s", options->slurm.sbatch_options != NULL ? options->slurm.sbatch_options : "", is_apart && more != NULL ? more : "");
    for (int i = 0; i < options->slurm.sbatch_word.count; i++)
        snprintf(words + strlen(words), WORDS - strlen(words), " %s", options->slurm.sbatch_word.text[i]);
    launch_ask_read(ask, words, tasks, options->slurm.cpus_per_rank);
}

/* Is the memory that SLURM is asked for enough for these ranks? A device's own memory is not asked for. */
static enum status check_group(const struct options *options, const struct launch_ask *ask, const struct ranks_need *ranks, int kinds)
{
    int64_t all = launch_ask_memory(ask), most = launch_ask_task_memory(ask), sum = 0;
    char needed[32], asked[32];

    if (most < 0 || has_devices(options)) {
        log_debug("%s", has_devices(options) ? "this is devices' memory, and SLURM is asked for that of nodes: they are not compared"
                                             : "SLURM is asked for no memory that is known here: what ranks need is only told");
        return STATUS_OK;
    }
    for (int i = 0; i < kinds; i++) {
        sum += (int64_t)ranks[i].each * ranks[i].count;
        if ((int64_t)ranks[i].each <= most || ranks[i].count == 0)
            continue;
        log_error("a %s needs %s of memory, and SLURM is asked for %s where it runs, expected more by --mem or --mem-per-cpu, a smaller "
                  "--context or "
                  "fewer --max-sequences",
                  ranks[i].who, told(ranks[i].each, needed), told((size_t)most, asked));
        return STATUS_USAGE;
    }
    if (all < 0 || sum <= all)
        return STATUS_OK;
    log_error("the ranks need %s of memory together, and SLURM is asked for %s on all their nodes, expected more by --mem or "
              "--mem-per-cpu, more --nodes, a "
              "smaller --context or fewer --max-sequences",
              told((size_t)sum, needed), told((size_t)all, asked));
    return STATUS_USAGE;
}

/* need: [1 + kinds] of the verifiers, then of the drafters of each kind. */
static enum status check_asked_memory(const struct options *options, const struct ranks_need *need, int kinds, int drafters)
{
    struct launch_ask ask;

    if (!options->slurm.batch_script)
        return STATUS_OK;
    if (options->slurm.layout == SLURM_LAYOUT_GROUP) {
        read_words(options, NULL, need[0].count + drafters, &ask);
        return check_group(options, &ask, need, 1 + kinds);
    }
    read_words(options, options->slurm.verifier_sbatch, need[0].count, &ask);
    TRY(check_group(options, &ask, need, 1));
    read_words(options, options->slurm.drafter_sbatch, drafters, &ask);
    return check_group(options, &ask, need + 1, kinds);
}

static enum status look_at_memory(const struct options *options, int drafters, int verifiers, const char *target)
{
    struct ranks_need told_of[2 + OPTIONS_MERGED_MOST] = {{"verifier", verifiers, 0}};
    int kinds = options_kinds(options);
    struct model_need need;
    struct options own;
    char draft[PATH_MAX];
    size_t all, shared; /* with the target, by a drafter of this host */

    TRY(need_of(options, target, verifiers, 0, &need));
    tell_need(options, &told_of[0], &need);
    all = told_of[0].each * (size_t)verifiers;
    for (int kind = 0; kind < kinds; kind++) {
        struct ranks_need *drafter = &told_of[1 + kind];

        *drafter = (struct ranks_need){"drafter", (drafters + kinds - 1 - kind) / kinds, 0}; /* of this kind, as ranks take turns */
        options_of_kind(options, kind, &own);
        if (drafter->count == 0 || !options_draft_runs_model(&own.model.draft_way))
            continue;
        options_draft_path(&own, draft);
        TRY(need_of(&own, draft, 1, 1, &need));
        tell_need(options, drafter, &need);
        shared = options_draft_shares(&own) && verifiers == 1 && !has_devices(options) ? need.weights : 0;
        all += (drafter->each - shared) * (size_t)drafter->count;
        if (shared > 0)
            log_debug("these weights are the target's own copy where a drafter is on its host");
    }
    TRY(check_asked_memory(options, told_of, kinds, drafters));
    return check_host(options, all);
}

/* Verifiers need a device each: NCCL takes no two ranks on one. Drafters may share theirs. */
static enum status look_at_devices(const struct options *options, int drafters, int verifiers, const char *target)
{
    char allowed[128] = "";
    struct config config;
    struct launch_ask ask;
    int number[NUMBER_LIST_MAX], listed, devices, used = verifiers + (options->slurm.layout == SLURM_LAYOUT_GROUP ? drafters : 0);

    if (!options->slurm.batch_script || options->ranks.backend != BACKEND_CUDA)
        return STATUS_OK;
    read_words(options, options->slurm.verifier_sbatch, used, &ask);
    devices = launch_ask_devices(&ask);
    listed = options->ranks.verifier_devices != NULL ? number_list_read(options->ranks.verifier_devices, INT_MAX, number) : 0;
    if (listed > 0 && ask.nodes > 0 && ask.nodes * listed < verifiers) {
        log_error("%d verifiers need a device each, and --verifier-devices names %d of %d node%s, expected more, or none, or fewer --verifiers", verifiers,
                  listed, ask.nodes, ask.nodes > 1 ? "s each" : "");
        return STATUS_USAGE;
    }
    if (devices > 0 && devices < verifiers) {
        log_error("%d verifiers need a device each, and SLURM is asked for %d, expected fewer --verifiers or more, as by --nodes=N "
                  "--gpus-per-node=M",
                  verifiers, devices);
        return STATUS_USAGE;
    }
    if (devices <= used)
        return STATUS_OK;
    TRY(config_read(target, &config));
    (void)config_allows_width(&config, verifiers, allowed, sizeof allowed);
    log_info("%d of %d devices have no rank: --parts N makes N jobs of it, each of fewer devices, and more --drafters share the sequences; "
             "the target's --verifiers may be one of: %s",
             devices - used, devices, allowed);
    return STATUS_OK;
}

enum status launch_look(const struct options *options, int drafters, int verifiers)
{
    char target[PATH_MAX];
    struct config config;

    options_target_path(options, target);
    TRY(look_at_devices(options, drafters, verifiers, target));
    TRY(look_at_memory(options, drafters, verifiers, target));
    TRY(config_read(target, &config));
    return look_at_prompts(options, target, &config);
}
