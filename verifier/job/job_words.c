#include "verifier/job/job_words.h"

#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/options/options_idle.h"
#include "common/options/options_merge.h"
#include "common/sample/rule.h"
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say_if_crowded(const struct job *job)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int verifiers = job->world.node_role_size, drafters = job->world.node_size - verifiers;

    if (job->world.node_size <= cores)
        return;
    if (verifiers > cores)
        log_info("%d verifiers share %ld cores, and each waits for the others: fewer --verifiers are faster", verifiers, cores);
    else if (drafters > cores)
        log_info("%d ranks share %ld cores: fewer %s may be as fast", job->world.node_size, cores,
                 options_kinds(job->options) > 1 ? "--merge" : "--drafters");
    else
        log_info("%d ranks share %ld cores: drafters and verifiers take turns, as one waits while the other works", job->world.node_size, cores);
}

static void say_what_drafts(const struct job *job)
{
    const struct options *options = job->options;

    if (options->model.draft_is_known && options->input.perplexity == NULL && !options->report.quiet)
        log_info("the model that belongs to the target drafts for it: %s; --draft says another, --solo none", options->model.draft);
}

/* Whoever gives an option of sampling has thought of it. */
static void say_what_is_advised(const struct job *job)
{
    const struct sampling *own = &job->options->request.sampling, *none = &sampling_default;
    char advice[CONFIG_ADVICE_TEXT];

    config_advice_write(&job->model->config.advice, advice);
    if (advice[0] != '\0' && !job->options->report.quiet && own->temperature == none->temperature && own->top_k == none->top_k &&
        own->top_p == none->top_p && own->min_p == none->min_p && own->repetition_penalty == none->repetition_penalty)
        log_info("who made the target advises %s; none of it is taken unless it is given", advice);
}

/* One line for each reason. */
static void say_what_is_idle(const struct job *job)
{
    struct options_idle idle[OPTIONS_IDLE_MOST];
    int count = options_find_idle(job->options, idle);

    for (int i = 0; i < count; i++) {
        struct options_names names = {0};
        const char *why = idle[i].why;

        for (int j = i; why != NULL && j < count; j++) {
            if (idle[j].why != why)
                continue;
            options_add_name(&names, idle[j].name);
            idle[j].why = NULL; /* told */
        }
        if (why != NULL)
            log_info("%s change%s nothing%s: %s", names.text, names.count > 1 ? "" : "s",
                     idle[i].lines_may && job->options->input.prompts != NULL ? ", but in lines that ask for more themselves" : "", why);
    }
}

static void say_if_nothing_is_rounded(const struct job *job)
{
    const struct options *options = job->options;
    const char *why = options->rounds.solo                 ? "nothing is drafted"
                      : !options_kinds_run_models(options) ? "what drafts has no weights"
                      : options->model.draft_way.bits > 0  ? "--draft self:bits=N says it of what drafts"
                                                           : NULL;

    if (options->model.draft_quantise != QUANTISE_NONE && why != NULL)
        log_warn("--draft-quantise rounds nothing here: %s", why);
}

static void say_if_not_lossless(const struct job *job)
{
    char option[OPTIONS_NOT_LOSSLESS];

    if (options_not_lossless(job->options, option))
        log_warn("NOT LOSSLESS, by %s: what comes out does not have the target's distribution", option);
}

void job_words_begin(const struct job *job)
{
    say_if_crowded(job);
    say_what_drafts(job);
    say_what_is_advised(job);
    say_if_nothing_is_rounded(job);
    if (!job->options->report.quiet)
        say_what_is_idle(job);
    say_if_not_lossless(job);
}

void job_words_requests(struct job *job, const struct request_list *requests)
{
    char option[OPTIONS_NOT_LOSSLESS], more[32] = "";
    int others = 0;

    job->lossy = options_drafts(job->options) ? request_lossy(requests) : NULL;
    if (job->lossy == NULL || options_not_lossless(job->options, option))
        return;
    for (const struct request *request = job->lossy + 1; request < requests->request + requests->count; request++)
        others += request_is_lossy(request);
    if (others > 0)
        snprintf(more, sizeof more, ", and %d further line%s", others, others > 1 ? "s" : "");
    log_warn("NOT LOSSLESS, by line %d, accept %s%s: what comes out of %s does not have the target's distribution", job->lossy->line,
             rule_of(&job->lossy->sampling)->name, more, others > 0 ? "them" : "it");
}

void job_words_drained(const struct job *job, int count)
{
    const struct journal *journal = &job->output.journal;

    if (job->output.journaled)
        log_info("drained: %d of %d results are in %s; the same command with --resume goes on", journal->held, count, journal->file.path);
    else
        log_info("drained: not all of the %d prompts have a result; --output with a file and --resume would go on", count);
}

/* Where a model is, as a short name and a number: whatever else is called so in another folder is another one. */
struct place {
    char text[96];
};

static struct place place_of(const char *path)
{
    char whole[PATH_MAX], name[PATH_MAX];
    struct place place;
    const char *is = realpath(path, whole) != NULL ? whole : path; /* a way to draft is no path */

    snprintf(name, sizeof name, "%s", is);
    snprintf(place.text, sizeof place.text, "%.60s (%016llx)", basename(name), (unsigned long long)digest_bytes(is, strlen(is), 0));
    return place;
}

void job_words_kind(const struct job *job, char *text, size_t size)
{
    const struct world *world = &job->world;
    uint64_t places = 0;

    for (int i = 0; i < world->size; i++)
        places = digest_bytes(job->hello[i].host, strlen(job->hello[i].host), places + job->hello[i].role);
    snprintf(text, size, "tandem %s: %s of %zu bytes, drafted by %s; %d drafters, %d verifiers, %d threads, %d sequences, cache %s, on %s (%016llx); %s",
             options_version(), place_of(job->target).text, model_bytes(job->model),
             place_of(job->options->model.draft != NULL ? job->options->model.draft : "its own").text, world->drafters, world->verifiers,
             job->threads, job->options->rounds.max_sequences, dtype_name(job->model->cache_dtype), world->host, (unsigned long long)places,
             job->model->backend->describe(job->model->context));
}

/* Did more run here before the job than this host has cores for, and than a job like it leaves behind? What drafts cost beside other programs says
 * nothing of an idle host, and the other way round. */
static int is_busy(const struct job *job)
{
    return job->load > job->world.cores + world_claimed_threads(&job->world);
}

void job_words_terms(const struct job *job, char *text, size_t size)
{
    const struct sampling *sampling = &job->options->request.sampling;

    snprintf(text, size, "%s, temperature %g, run-ahead %s, rounded %d%s, copies of %d after %d", rule_of(sampling)->name, sampling->temperature,
             options_run_ahead(job->options), job->options->model.draft_quantise, job->options->rounds.cascade != CASCADE_NONE ? ", a cascade" : "",
             job->options->rounds.copy_first, job->options->rounds.copy_after);
    if (is_busy(job))
        snprintf(text + strlen(text), size - strlen(text), ", on a busy host");
    if (job->options->rounds.tree != NULL)
        snprintf(text + strlen(text), size - strlen(text), ", tree %s", job->options->rounds.tree);
    if (job->options->rounds.stopping.kind != STOPPING_NEVER)
        snprintf(text + strlen(text), size - strlen(text), ", stopped by %s", job->options->rounds.stop_drafting);
    for (int i = 0; i + 1 < options_kinds(job->options); i++) {
        size_t used = strlen(text);

        snprintf(text + used, size - used, ", with %s", place_of(job->options->rounds.merge.text[i]).text);
    }
}
