#include "verifier/check.h"

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "verifier/check_report.h"
#include <limits.h>
#include <stdlib.h>

#define USUAL_TEMPERATURE 0.8 /* where the user asks for none: at 0 there is no law to test */

static struct check_sizes sizes_of(const struct options *options)
{
    static const struct check_sizes usual[] = {
        [CHECK_BRIEF] = {.prompts = 6, .tokens = 32, .contexts = 12, .samples = 1000},
        [CHECK_QUICK] = {.prompts = 24, .tokens = 64, .contexts = 12, .samples = 4000},
        [CHECK_LONG] = {.prompts = INT_MAX, .tokens = INT_MAX, .contexts = 12, .samples = 40000},
    };
    struct check_sizes sizes = usual[options->check];

    if (options->law_contexts > 0)
        sizes.contexts = options->law_contexts;
    if (options->law_samples > 0)
        sizes.samples = options->law_samples;
    return sizes;
}

struct request check_request(const struct check *check, const struct request *prompt, int accept, int draft_length)
{
    struct request request = *prompt;

    request.sampling.accept = accept;
    request.draft_length = draft_length;
    request.paced = 0;
    if (request.sampling.temperature == 0.0)
        request.sampling.temperature = check->temperature;
    return request;
}

void check_progress(const struct check *check, const char *what, int at, int of)
{
    const struct options *options = check->job->options;

    if (!options->quiet && (options->terminal & 2) != 0)
        fprintf(stderr, "\r\033[Kchecking %s: %d of %d ", what, at + 1, of);
}

/* The prompts that can be completed, as many as the size has. */
static enum status choose_prompts(struct check *check)
{
    int context = check->job->model->longest;

    check->prompt = calloc((size_t)check->asked->count + 1, sizeof *check->prompt);
    if (check->prompt == NULL)
        return STATUS_INTERNAL;
    for (int i = 0; i < check->asked->count && check->prompts < check->sizes.prompts; i++) {
        const struct request *request = &check->asked->request[i];
        int room = context - request->prompt_count, most = check->sizes.tokens < room ? check->sizes.tokens : room;

        if (request->error != NULL) {
            log_warn("request %u is left out: %s", request->index, request->error);
            continue;
        }
        if (request->max_tokens == 0)
            continue;
        check->prompt[check->prompts] = *request;
        check->prompt[check->prompts].max_tokens = request->max_tokens < most ? request->max_tokens : most;
        check->prompts++;
    }
    if (check->prompts > 0)
        return STATUS_OK;
    log_error("no prompt can be completed, expected at least one to check with");
    return STATUS_DATA;
}

static enum status run_checks(struct check *check)
{
    int64_t started = clock_ns();

    TRY(choose_prompts(check));
    TRY(check_equal_run(check));
    TRY(check_sample_run(check));
    check->seconds = (double)(clock_ns() - started) / 1e9;
    return check_report(check);
}

enum status check_run(struct job *job, struct peers *peers, const struct request_list *asked)
{
    struct check check = {
        .job = job, .peers = peers, .asked = asked, .sizes = sizes_of(job->options), .temperature = USUAL_TEMPERATURE};
    enum status status;

    if (job->options->breakage != BREAKAGE_NONE)
        log_warn("NOT LOSSLESS: broken on purpose by --break %s", breakage_table[job->options->breakage].name);
    status = run_checks(&check);
    check_equal_release(&check.equal);
    check_sample_release(&check.sample);
    free(check.prompt);
    return status;
}
