#include "verifier/command/sweep.h"

#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include "common/file/json_text.h"
#include "common/sample/rule.h"
#include "verifier/command/sweep_noise.h"
#include "verifier/job/stats.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH = 8, VALUES = 1 << 20, LARGEST_PLAN = 16 << 20 };

struct sweep {
    struct job *job;
    struct peers *drafters;
    const struct request_list *asked;
    FILE *results;
    struct sweep_noise noise;
    int repetitions; /* passes have had, warm-ups aside */
};

/* One way to decode the prompts. */
struct sweep_pass {
    int cell, repetition, warm_up;
    int baseline; /* the cell that it is compared with; itself: none */
    int solo;     /* nobody drafts */
    int draft_length; /* -1: the lead chooses where it may; of solo passes: rows that steps have beside those of the newest tokens */
    double temperature;
    struct rule_asked rule;
    int sequences;
    int prompts;
};

/* What became of one request. */
struct sweep_end {
    int64_t started_ns, first_ns, ended_ns;
    int prompt_tokens, tokens;
    uint64_t digest; /* of the tokens generated, and of how the completion ended */
};

static enum status read_plan(const char *path, json_t **plan)
{
    static const struct json_text_limits limits = {.depth = DEPTH, .values = VALUES};
    char fault[JSON_TEXT_FAULT], *text = NULL;
    FILE *file = fopen(path, "r");
    enum status status = STATUS_NOINPUT;
    struct stat found;

    if (file == NULL || fstat(fileno(file), &found) != 0) {
        log_error("--sweep %s: %s", path, strerror(errno));
    } else if (found.st_size > LARGEST_PLAN) {
        log_error("--sweep %s: it has %lld bytes, expected at most %d", path, (long long)found.st_size, LARGEST_PLAN);
        status = STATUS_DATA;
    } else if ((text = malloc((size_t)found.st_size + 1)) == NULL) {
        log_error("--sweep %s: no memory", path);
        status = STATUS_INTERNAL;
    } else {
        status = json_text_read(text, fread(text, 1, (size_t)found.st_size, file), 0, &limits, plan, fault);
        if (status == STATUS_DATA)
            log_error("--sweep %s: %s", path, fault);
    }
    if (file != NULL)
        fclose(file);
    free(text);
    return status;
}

static int is_index(int value)
{
    return value >= 0 && value < SWEEP_NOISE_MOST;
}

static enum status read_pass(const struct sweep *sweep, json_t *from, struct sweep_pass *pass)
{
    const char *accept;

    if (json_unpack(from, "{s:i, s:i, s:b, s:b, s:i, s:F, s:s, s:i, s:i}", "cell", &pass->cell, "repetition", &pass->repetition, "warm_up",
                    &pass->warm_up, "solo", &pass->solo, "draft_length", &pass->draft_length, "temperature", &pass->temperature, "accept",
                    &accept, "sequences", &pass->sequences, "prompts", &pass->prompts) != 0) {
        log_error("--sweep: a pass lacks one of cell, repetition, warm_up, solo, draft_length, temperature, accept, sequences, prompts");
        return STATUS_DATA;
    }
    if (!is_index(pass->cell) || !is_index(pass->repetition)) {
        log_error("--sweep: a pass has the cell %d and the repetition %d, expected 0 to %d", pass->cell, pass->repetition, SWEEP_NOISE_MOST - 1);
        return STATUS_DATA;
    }
    pass->baseline = pass->cell;
    if (json_object_get(from, "baseline") != NULL)
        pass->baseline = (int)json_integer_value(json_object_get(from, "baseline"));
    if (!is_index(pass->baseline))
        pass->baseline = pass->cell;
    if (!rule_read(accept, strlen(accept), &pass->rule)) {
        log_error("--sweep: a pass has the acceptance rule '%s', expected one of " RULE_NAMES ", or one with its number, as lenience=0.5", accept);
        return STATUS_DATA;
    }
    if (pass->draft_length >= -1 && pass->draft_length <= options_most_drafts(sweep->job->options) && pass->temperature >= 0 &&
        pass->temperature <= 100 && pass->sequences >= 1 && pass->sequences <= sweep->job->options->rounds.max_sequences && pass->prompts >= 1)
        return STATUS_OK;
    log_error("--sweep: a pass has a draft length of %d, a temperature of %g, %d sequences at once and %d prompts, expected -1 to %d, 0 to 100, "
              "1 to %d (--max-sequences), at least 1",
              pass->draft_length, pass->temperature, pass->sequences, pass->prompts, options_most_drafts(sweep->job->options),
              sweep->job->options->rounds.max_sequences);
    return STATUS_DATA;
}

/* The prompts that can be completed, in order and again from the first, as many as this pass asks for. */
static enum status fill(const struct sweep *sweep, const struct sweep_pass *pass, struct request_list *list)
{
    int good = 0;

    for (int i = 0; i < sweep->asked->count; i++)
        good += sweep->asked->request[i].error == NULL && sweep->asked->request[i].max_tokens > 0;
    if (good == 0) {
        log_error("no prompt can be completed, expected at least one to measure with");
        return STATUS_DATA;
    }
    list->request = calloc((size_t)pass->prompts, sizeof *list->request);
    if (list->request == NULL) {
        log_error("no memory for %d prompts", pass->prompts);
        return STATUS_INTERNAL;
    }
    for (int at = 0; list->count < pass->prompts; at = (at + 1) % sweep->asked->count) {
        struct request *request = &list->request[list->count];

        if (sweep->asked->request[at].error != NULL || sweep->asked->request[at].max_tokens == 0)
            continue;
        *request = sweep->asked->request[at];
        request->index = (uint32_t)list->count++;
        request->sampling.temperature = pass->temperature;
        rule_set(&pass->rule, &request->sampling);
        request->adaptive = pass->draft_length < 0;
        request->draft_length = pass->draft_length >= 0 ? pass->draft_length : request->draft_length > 0 ? request->draft_length : 4;
        request_settle_tree(request, sweep->job->options);
    }
    return STATUS_OK;
}

static enum status keep(void *state, const struct request *request, const struct sequence *sequence)
{
    int from = request->prompt_count;
    int32_t finish;

    if (sequence == NULL)
        return STATUS_OK; /* it was wrong, and was not run */
    finish = sequence->completion.finish;
    ((struct sweep_end *)state)[request->index] =
        (struct sweep_end){.started_ns = sequence->started_ns,
                           .first_ns = sequence->first_ns,
                           .ended_ns = sequence->ended_ns,
                           .prompt_tokens = from,
                           .tokens = sequence->length - from,
                           .digest = digest_tokens(digest_tokens(DIGEST_EMPTY, sequence->tokens + from, sequence->length - from), &finish, 1)};
    return STATUS_OK;
}

static json_t *counts_of(const int64_t *counts)
{
    json_t *array = json_array();
    int failed = 0, last = MESSAGE_MAX_DRAFT;

    while (last > 0 && counts[last - 1] == 0)
        last--;
    for (int i = 0; i < last; i++)
        failed |= json_array_append_new(array, json_integer(counts[i]));
    return json_text_whole(array, failed);
}

static json_t *ends_of(const struct sweep_end *ends, int count)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = 0; i < count; i++)
        failed |= json_array_append_new(array, json_pack("[I, I, I, i, i, o]", (json_int_t)ends[i].started_ns, (json_int_t)ends[i].first_ns,
                                                         (json_int_t)ends[i].ended_ns, ends[i].prompt_tokens, ends[i].tokens,
                                                         json_sprintf("%016llx", (unsigned long long)ends[i].digest)));
    return json_text_whole(array, failed);
}

static enum status write_line(const struct sweep *sweep, json_t *object)
{
    char *text = json_text_write(object, JSON_COMPACT | JSON_REAL_PRECISION(12));
    int written = text != NULL && fprintf(sweep->results, "%s\n", text) >= 0 && fflush(sweep->results) == 0;

    json_decref(object);
    free(text);
    if (written)
        return STATUS_OK;
    log_error("the results of the sweep cannot be written: %s", text == NULL ? "no memory" : strerror(errno));
    return STATUS_IO;
}

/* The hash of all logits so far; 0 where nobody asks for it. Collective over the group, on the lead. */
static enum status hash_so_far(const struct sweep *sweep, uint64_t *hash)
{
    *hash = 0;
    return sweep->job->options->report.hash_logits ? team_hash(&sweep->job->team, hash) : STATUS_OK;
}

/* hash: of this pass */
static enum status write_pass(const struct sweep *sweep, const struct sweep_pass *pass, int64_t start_ns, const struct figures *figures,
                              const struct sweep_end *ends, uint64_t hash)
{
    json_t *object = json_pack("{s:i, s:i, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "cell", pass->cell, "repetition", pass->repetition, "warm_up",
                               pass->warm_up, "start_ns", (json_int_t)start_ns, "wall_ns", (json_int_t)figures->wall_ns, "tokens",
                               (json_int_t)figures->tokens, "rounds", (json_int_t)figures->rounds, "steps", (json_int_t)figures->steps,
                               "drafted", (json_int_t)figures->drafted, "accepted", (json_int_t)figures->accepted);
    int failed = json_object_update_new(
        object, json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:o, s:f, s:f, s:o}", "tested", counts_of(figures->tested), "accepted_at",
                          counts_of(figures->accepted_at), "full_rounds", (json_int_t)figures->full_rounds, "full_tokens",
                          (json_int_t)figures->full_tokens, "fallback_rounds", (json_int_t)figures->fallback_rounds, "answered_rounds",
                          (json_int_t)figures->answered_rounds, "run_ahead", stats_ahead(figures), "mean_sum_min_p_q", figures->overlap,
                          "overlap_error", figures->overlap_error, "ends", ends_of(ends, pass->prompts)));

    if (sweep->job->options->report.hash_logits)
        failed |= json_object_set_new(object, "logits_hash", json_sprintf("%016llx", (unsigned long long)hash));
    return write_line(sweep, json_text_whole(object, failed));
}

static enum job_drafts drafts_of(const struct sweep_pass *pass)
{
    return !pass->solo ? JOB_DRAFTED : pass->draft_length > 0 ? JOB_FILLED : JOB_SOLO;
}

static enum status run_pass(struct sweep *sweep, const struct sweep_pass *pass)
{
    struct request_list list = {0};
    struct figures figures = {0};
    struct sweep_end *ends = calloc((size_t)pass->prompts, sizeof *ends);
    struct lead_watch watch = {.state = ends, .end = keep};
    uint64_t before, after;
    int64_t start_ns;
    enum status status = STATUS_INTERNAL;

    if (ends == NULL)
        return status;
    TRY_TO(fill(sweep, pass, &list), release);
    TRY_TO(hash_so_far(sweep, &before), release);
    start_ns = clock_ns();
    TRY_TO(job_pass(sweep->job, &list, sweep->drafters, drafts_of(pass), pass->sequences, &watch, &figures), release);
    TRY_TO(hash_so_far(sweep, &after), release);
    TRY_TO(write_pass(sweep, pass, start_ns, &figures, ends, after - before), release);
    if (!pass->warm_up) {
        sweep->repetitions = pass->repetition < sweep->repetitions ? sweep->repetitions : pass->repetition + 1;
        status = sweep_noise_add(&sweep->noise, pass->cell, pass->baseline, pass->repetition, figures_tokens_per_second(&figures));
    }
release:
    free(list.request);
    free(ends);
    return status;
}

/* How far it is, on a terminal; a total of 0: nobody knows of how many. */
static void tell(const struct sweep *sweep, size_t at, size_t total)
{
    if ((sweep->job->options->launch.terminal & TERMINAL_STDERR) == 0)
        return;
    if (total > 0)
        fprintf(stderr, "\r\033[Kmeasuring: %zu of %zu ", at, total);
    else
        fprintf(stderr, "\r\033[Kmeasuring again what is noisy: repetition %zu ", at);
}

static enum status run_passes(struct sweep *sweep, json_t *passes)
{
    size_t at, count = json_array_size(passes);
    json_t *from;

    json_array_foreach (passes, at, from) {
        struct sweep_pass pass;

        TRY(read_pass(sweep, from, &pass));
        tell(sweep, at + 1, count);
        TRY(run_pass(sweep, &pass));
    }
    return STATUS_OK;
}

/* A further repetition, of the cells that want it, in the order of one that was planned. */
static enum status run_again(struct sweep *sweep, json_t *passes, int like)
{
    int repetition = sweep->repetitions;
    size_t at;
    json_t *from;

    json_array_foreach (passes, at, from) {
        struct sweep_pass pass;

        TRY(read_pass(sweep, from, &pass));
        if (pass.warm_up || pass.repetition != like || !sweep_noise_wants(&sweep->noise, pass.cell))
            continue;
        pass.repetition = repetition;
        TRY(run_pass(sweep, &pass));
    }
    return STATUS_OK;
}

/* Repetitions beyond those of the plan, until every cell is known well enough or the time is up. */
static enum status run_more(struct sweep *sweep, json_t *passes, json_t *more)
{
    int planned = sweep->repetitions;
    double seconds = json_number_value(json_object_get(more, "seconds"));
    int64_t began = clock_ns();

    sweep->noise.limit = json_number_value(json_object_get(more, "noise_limit"));
    while (planned > 0 && sweep_noise_goes_on(&sweep->noise, sweep->repetitions, (double)(clock_ns() - began) / 1e9, seconds)) {
        int before = sweep->repetitions;

        tell(sweep, (size_t)before + 1, 0);
        TRY(run_again(sweep, passes, planned > 1 ? planned - 2 + (before - planned) % 2 : 0));
        if (sweep->repetitions == before)
            break; /* no pass of the plan is of a cell that wants one */
    }
    return STATUS_OK;
}

static enum status run_plan(struct sweep *sweep, json_t *plan)
{
    const struct job *job = sweep->job;
    json_t *passes = json_object_get(plan, "passes");
    const char *path = json_string_value(json_object_get(plan, "results"));
    struct stats stats = {.options = job->options,
                          .target = job->target,
                          .hello = job->hello,
                          .ranks = job->world.size,
                          .drafters = job->world.drafters,
                          .threads = job->threads,
                          .crowded = world_is_crowded(&job->world)};
    enum status status;

    if (path == NULL || !json_is_array(passes)) {
        log_error("--sweep %s: expected an object with results, a file, and passes, a list", job->options->report.sweep);
        return STATUS_DATA;
    }
    sweep->results = fopen(path, "w");
    if (sweep->results == NULL) {
        log_error("--sweep: %s: %s", path, strerror(errno));
        return STATUS_IO;
    }
    status = write_line(sweep, stats_job(&stats, group_describe(&job->group), job->world.lead));
    if (status == STATUS_OK)
        status = run_passes(sweep, passes);
    if (status == STATUS_OK && json_object_get(plan, "more") != NULL)
        status = run_more(sweep, passes, json_object_get(plan, "more"));
    if ((job->options->launch.terminal & TERMINAL_STDERR) != 0)
        fputs("\r\033[K", stderr);
    if (fclose(sweep->results) != 0 && status == STATUS_OK)
        status = STATUS_IO;
    return status;
}

enum status sweep_run(struct job *job, struct peers *drafters, const struct request_list *requests)
{
    struct sweep sweep = {.job = job, .drafters = drafters, .asked = requests};
    json_t *plan = NULL;
    enum status status;

    TRY(request_expect_single(requests, "a bench"));
    TRY(read_plan(job->options->report.sweep, &plan));
    status = run_plan(&sweep, plan);
    sweep_noise_release(&sweep.noise);
    json_decref(plan);
    return status;
}
