#include "verifier/launch_look.h"

#include "common/backend/choose.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/model/model.h"
#include "common/text/chat_template.h"
#include "common/text/tokenizer.h"
#include "common/wire/message.h"
#include "verifier/request.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_WRONG = 3, WORDS = 4096 };
#define GIB ((double)(1 << 30))
#define DEVICE_BYTES ((size_t)1 << 30) /* allowed for CUDA's own memory and NCCL's buffers, of a rank with a device */

static enum status tell_prompts(const struct options *options, const struct request_list *requests)
{
    int64_t tokens = 0;
    int wrong = 0, longest = 0;

    for (int i = 0; i < requests->count; i++) {
        const struct request *request = &requests->request[i];

        wrong += request->error != NULL;
        tokens += request->error == NULL ? request->prompt_count : 0;
        longest = request->error == NULL && request->prompt_count > longest ? request->prompt_count : longest;
    }
    log_debug("--prompts %s: %d lines, %lld tokens, at most %d in one", options->prompts, requests->count, (long long)tokens, longest);
    if (wrong == 0)
        return STATUS_OK;
    log_warn("--prompts %s: %d of %d lines are wrong, and will get a result that says so; the first:", options->prompts, wrong, requests->count);
    for (int i = 0, told = 0; i < requests->count && told < FIRST_WRONG; i++)
        if (requests->request[i].error != NULL) {
            log_warn("%s", requests->request[i].error);
            told++;
        }
    if (wrong < requests->count)
        return STATUS_OK;
    log_error("--prompts %s has no line that can be completed", options->prompts);
    return STATUS_DATA;
}

static enum status read_prompts(const struct options *options, const char *model, const struct tokenizer *tokenizer, const struct config *config)
{
    struct chat_template chat;
    int size = tokenizer_size(tokenizer);
    struct request_terms terms = {.options = options,
                                  .tokenizer = tokenizer,
                                  .chat = &chat,
                                  .context = options->context > 0 ? options->context : config->context < MODEL_DEFAULT_CONTEXT ? config->context : MODEL_DEFAULT_CONTEXT,
                                  .vocab = size < config->vocab ? size : config->vocab};
    struct request_list requests = {0};
    enum status status;

    TRY(chat_template_open(model, (enum chat_family)options->chat_family, &chat));
    status = request_read(&requests, &terms, options->prompts);
    if (status == STATUS_OK)
        status = tell_prompts(options, &requests);
    request_release(&requests);
    chat_template_release(&chat);
    return status;
}

/* A pipe is read by the job alone. */
static enum status look_at_prompts(const struct options *options, const char *model, const struct config *config)
{
    struct tokenizer *tokenizer;
    char path[PATH_MAX];
    struct stat state;
    enum status status;

    if (options->prompts == NULL || stat(options->prompts, &state) != 0 || !S_ISREG(state.st_mode))
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

    return options->backend == BACKEND_CUDA || (backend_choose((enum backend_choice)options->backend, &backend) == STATUS_OK && backend != &backend_cpu);
}

/* Where this build has no CUDA the weights are counted as the CPU packs them: 16 bits are 16 bits there, too. */
static enum status need_of(const struct options *options, const char *model, int width, int drafts, struct model_need *need)
{
    int asked = options->max_sequences * MESSAGE_MAX_COMMIT, chunk = options->prefill_chunk, rows = backend_cpu.prompt_rows;
    const struct model_options terms = {.max_rows = asked + (chunk > rows ? chunk : rows), /* a drafter's are fewer */
                                        .max_asked = asked,
                                        .context = options->context,
                                        .slots = options->max_sequences,
                                        .layers = drafts ? options->draft_way.layers : 0,
                                        .quantise = model_quantise(options, drafts),
                                        .cache = has_devices(options) ? CACHE_BF16 : options->cache};

    return model_need(model, width, &terms, need);
}

/* "17.6 GiB", or of small models "9.2 MiB". */
static const char *told(size_t bytes, char text[32])
{
    snprintf(text, 32, bytes < GIB ? "%.1f MiB" : "%.1f GiB", (double)bytes / (bytes < GIB ? (double)(1 << 20) : GIB));
    return text;
}

static size_t tell_need(const struct options *options, const char *who, int count, const struct model_need *need)
{
    size_t device = has_devices(options) ? DEVICE_BYTES : 0, all = need->weights + need->cache + need->activations + device;
    char weights[32], cache[32], activations[32], allowed[32], sum[32];

    log_debug("memory of each of %d %s%s: %s = %s of weights, %s of cache (%d sequences), %s of activations, %s for CUDA and NCCL", count, who,
              count > 1 ? "s" : "", told(all, sum), told(need->weights, weights), told(need->cache, cache), options->max_sequences,
              told(need->activations, activations), told(device, allowed));
    return all * (size_t)count;
}

/* Another host's memory is not known here, nor a device's. */
static enum status check_host(const struct options *options, size_t all)
{
    size_t has = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);

    if (options->batch_script || options->hosts != NULL || options->launcher == LAUNCHER_SRUN || has_devices(options) || all <= has)
        return STATUS_OK;
    log_error("the ranks need %.1f GiB of memory together and this host has %.1f: --dry-run --verbose says of what; a smaller --context, fewer "
              "--max-sequences, --cache bf16 or --quantise q8_0 need less",
              (double)all / GIB, (double)has / GIB);
    return STATUS_INTERNAL;
}

static enum status look_at_memory(const struct launch_ranks *ranks, const char *target)
{
    const struct options *options = ranks->options;
    struct model_need need;
    char draft[PATH_MAX];
    size_t all;

    TRY(need_of(options, target, ranks->verifiers, 0, &need));
    all = tell_need(options, "verifier", ranks->verifiers, &need);
    if (ranks->drafters > 0 && options->draft_way.way != DRAFT_LOOKUP) {
        paths_draft(options, draft);
        TRY(need_of(options, draft, 1, 1, &need));
        all += tell_need(options, "drafter", ranks->drafters, &need);
    }
    return check_host(options, all);
}

/* The number of "--name=N", "--name=TYPE:N" or "-xN", or -1 where the word is another one. */
static int number_behind(const char *word, const char *name)
{
    const char *text = word + strlen(name), *colon;

    if (strncmp(word, name, strlen(name)) != 0 || *text == '\0')
        return -1;
    colon = strrchr(text, ':');
    return atoi(colon != NULL ? colon + 1 : text);
}

int launch_look_devices(const char *text)
{
    int nodes = 0, each = 0, all = 0;
    char *words = strdup(text), *rest = words, *last = "";

    for (char *word = strsep(&rest, " \t"); words != NULL && word != NULL; word = strsep(&rest, " \t")) {
        char joined[256]; /* "-N 2" is "-N2" */

        if (*word == '\0')
            continue;
        snprintf(joined, sizeof joined, "%s%s%s", *word != '-' ? last : "", *word != '-' && last[1] == '-' ? "=" : "", word);
        last = word;
        nodes = number_behind(joined, "--nodes=") > 0 ? number_behind(joined, "--nodes=") : number_behind(joined, "-N") > 0 ? number_behind(joined, "-N") : nodes;
        each = number_behind(joined, "--gpus-per-node=") >= 0 ? number_behind(joined, "--gpus-per-node=") : each;
        each = number_behind(joined, "--gres=gpu:") >= 0 ? number_behind(joined, "--gres=gpu:") : each;
        all = number_behind(joined, "--gpus=") >= 0 ? number_behind(joined, "--gpus=") : number_behind(joined, "-G") >= 0 ? number_behind(joined, "-G") : all;
    }
    free(words);
    return all > 0 ? all : each == 0 ? 0 : nodes > 0 ? nodes * each : -1;
}

/* What sbatch is told of the verifiers' nodes. */
static void join_words(const struct options *options, char words[WORDS])
{
    int is_apart = options->slurm_layout == SLURM_LAYOUT_HETJOB;

    snprintf(words, WORDS, "%s %s", options->sbatch_options != NULL ? options->sbatch_options : "",
             is_apart && options->verifier_sbatch != NULL ? options->verifier_sbatch : "");
    for (int i = 0; i < options->sbatch_word.count; i++)
        snprintf(words + strlen(words), WORDS - strlen(words), " %s", options->sbatch_word.text[i]);
}

/* Verifiers need a device each: NCCL takes no two ranks on one. Drafters may share theirs. */
static enum status look_at_devices(const struct launch_ranks *ranks)
{
    const struct options *options = ranks->options;
    char words[WORDS];
    int devices, used = ranks->verifiers + (options->slurm_layout == SLURM_LAYOUT_GROUP ? ranks->drafters : 0);

    if (!options->batch_script || options->backend != BACKEND_CUDA)
        return STATUS_OK;
    join_words(options, words);
    devices = launch_look_devices(words);
    if (devices > 0 && devices < ranks->verifiers) {
        log_error("%d verifiers need a device each, and SLURM is asked for %d, expected fewer --verifiers or more, as by --nodes=N --gpus-per-node=M",
                  ranks->verifiers, devices);
        return STATUS_USAGE;
    }
    if (devices > used)
        log_info("%d of %d devices have no rank: --shards N makes N jobs of it, each of fewer devices, and more --drafters share the sequences; more "
                 "--verifiers than the target's kv heads there cannot be yet",
                 devices - used, devices);
    return STATUS_OK;
}

enum status launch_look(const struct launch_ranks *ranks)
{
    char target[PATH_MAX];
    struct config config;

    paths_target(ranks->options, target);
    TRY(look_at_devices(ranks));
    TRY(look_at_memory(ranks, target));
    TRY(config_read(target, &config));
    return look_at_prompts(ranks->options, target, &config);
}
