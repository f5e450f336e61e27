#include "verifier/check/check.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include "common/sample/rule.h"
#include "verifier/check/check_report.h"
#include "verifier/job/progress_line.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#define LINE_NS ((int64_t)5 * 1000000000) /* between two lines where no terminal is */
#define BAR_NS ((int64_t)500 * 1000000)    /* between two of one that is redrawn */
#define PATIENCE_S 120 /* a check that takes longer says how to make it smaller */
#define USUAL_TEMPERATURE 0.8 /* where the user asks for none: at 0 there is no law to test */

static struct check_sizes sizes_of(const struct options *options)
{
    static const struct check_sizes usual[] = {
        [CHECK_BRIEF] = {.prompts = 6, .tokens = 32, .contexts = 12, .samples = 1000},
        [CHECK_QUICK] = {.prompts = 24, .tokens = 64, .contexts = 12, .samples = 4000},
        [CHECK_LONG] = {.prompts = INT_MAX, .tokens = INT_MAX, .contexts = 12, .samples = 40000},
    };
    struct check_sizes sizes = usual[options->checks.size];

    if (options->checks.law_contexts > 0)
        sizes.contexts = options->checks.law_contexts;
    if (options->checks.law_samples > 0)
        sizes.samples = options->checks.law_samples;
    return sizes;
}

/* Are trees proposed that a rule with q decides about? */
static int has_trees(const struct options *options)
{
    return options->rounds.shape.kind != TREE_CHAIN && options->rounds.shape.kind != TREE_OWN;
}

int check_rule(const struct check *check, int depends_on_drafts)
{
    int asked = check->job->options->request.sampling.accept, first = 0, trees = has_trees(check->job->options);

    if (rule_row(asked)->depends_on_drafts == depends_on_drafts && rule_row(asked)->trees >= trees)
        return asked;
    while (!rule_row(first)->lossless || rule_row(first)->depends_on_drafts != depends_on_drafts ||
           rule_row(first)->trees < trees) /* there is one of each sort (test_rule) */
        first++;
    return first;
}

int check_draft_length(const struct check *check)
{
    int asked = check->job->options->rounds.draft_length;

    return asked < 0 && check->job->options->rounds.shape.kind != TREE_CHAIN ? TREE_USUAL : asked;
}

struct request check_request(const struct check *check, const struct request *prompt, int accept, int draft_length)
{
    struct request request = *prompt;

    request.sampling.accept = accept;
    request.draft_length = draft_length;
    request.adaptive = 0;
    if (request.sampling.temperature == 0.0)
        request.sampling.temperature = check->temperature;
    return request;
}

/* Tokens of one pass over the prompts, and of the requests behind one text. Their times are taken to be in proportion to these. */
static double pass_work(const struct check *check)
{
    double tokens = 0;

    for (int i = 0; i < check->prompts; i++)
        tokens += check->prompt[i].max_tokens;
    return tokens;
}

static double text_work(const struct check *check)
{
    return (double)check_sample_tokens(check);
}

static int passes_of(const struct check *check)
{
    return 2 * (check->equal.lengths + 1);
}

static double step_work(const struct check *check)
{
    return check->is_law ? text_work(check) : pass_work(check);
}

/* The part of the work that is done, 0 to 1. A completion that ends before its limit leaves less work than is counted here. */
static double part_done(const struct check *check, int64_t tokens)
{
    double begun = fmin((double)tokens, step_work(check)), passes = passes_of(check) * pass_work(check);
    double behind = begun + (check->is_law ? passes + check->at * text_work(check) : check->at * pass_work(check));

    return behind / (passes + check->sizes.contexts * text_work(check));
}

static void tell(const struct check *check, int64_t tokens, double left)
{
    const char *what = check->is_law ? "law and draws" : "equality";
    char within[64] = "", rest[48] = "";
    int of = check->is_law ? check->sizes.contexts : passes_of(check);

    if (tokens > 0)
        snprintf(within, sizeof within, ", %.0f of %.0f tokens", fmin((double)tokens, step_work(check)), step_work(check));
    if (left >= 0)
        snprintf(rest, sizeof rest, left >= 100 ? ", about %.0f min left" : ", about %.0f s left", left >= 100 ? left / 60 : left);
    if (options_have_bar(check->job->options))
        fprintf(stderr, "\r\033[Kchecking %s: %d of %d%s%s ", what, check->at + 1, of, within, rest);
    else
        log_info("checking %s: %d of %d%s%s", what, check->at + 1, of, within, rest);
}

/* Once, where the rest takes minutes: at the first guess, for what takes hours should not be long under way. */
static void advise(struct check *check, double seconds, double part)
{
    double left = part > 0 ? seconds * (1 - part) / part : 0;

    if (check->has_advised || left < PATIENCE_S)
        return;
    check->has_advised = 1;
    log_info(
        "this check takes about %.0f min more; fewer than %d --law-samples or %d --law-contexts, fewer prompts or a smaller --max-tokens make it "
        "smaller, and it sees less",
        left / 60, check->sizes.samples, check->sizes.contexts);
}

void check_progress(struct check *check, int is_law, int at)
{
    check->is_law = is_law;
    check->at = at;
    if (options_have_bar(check->job->options))
        check->told_ns = 0; /* a line that is redrawn shows each step */
    check_progress_within(check, 0);
}

void check_progress_within(struct check *check, int64_t tokens)
{
    const struct options *options = check->job->options;
    int64_t now = clock_ns(), pause = options_have_bar(options) ? BAR_NS : LINE_NS;
    double seconds = (double)(now - check->started_ns) / 1e9, part = part_done(check, tokens);

    if (options->report.quiet)
        return;
    if (check->told_ns != 0 && now - check->told_ns < pause)
        return;
    advise(check, seconds, part);
    check->told_ns = now;
    tell(check, tokens, progress_line_left(seconds, part, 1));
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
    check->started_ns = clock_ns();
    TRY(request_expect_single(check->asked, "a check"));
    TRY(choose_prompts(check));
    TRY(check_equal_run(check));
    TRY(check_sample_run(check));
    check->seconds = (double)(clock_ns() - check->started_ns) / 1e9;
    return check_report(check);
}

enum status check_run(struct job *job, struct peers *peers, const struct request_list *asked)
{
    struct check check = {
        .job = job, .peers = peers, .asked = asked, .sizes = sizes_of(job->options), .temperature = USUAL_TEMPERATURE};
    enum status status;

    if (job->options->checks.breakage != BREAKAGE_NONE)
        log_warn("NOT LOSSLESS: broken on purpose by --break %s", breakage_table[job->options->checks.breakage].name);
    if (has_trees(job->options))
        log_info("the law of trees is tested by --accept %s%s", rule_name(check_rule(&check, 1)),
                 job->options->rounds.shape.kind == TREE_DYNAMIC ? " and --tree top-k, for dynamic chooses drafts by what they are"
                 : job->options->rounds.shape.kind == TREE_AUTO
                     ? " and --tree top-k, for auto drafts dynamic trees here, which choose drafts by what they are"
                 : job->options->rounds.shape.kind == TREE_SEQUOIA ? " and --tree top-k, for sequoia follows what became of drafts"
                                                                   : "");
    if (job->options->rounds.shape.kind == TREE_OWN)
        log_info("the trees of --draft %s are tested against the target's own output; the law is tested by --accept %s, for which it drafts chains",
                 options_draft_kind(&job->options->model.draft_way)->name, rule_name(check_rule(&check, 1)));
    if (job->options->rounds.merge.count > 0)
        log_info("what --merge joins is tested against the target's own output; the law is tested by --accept %s, for which %s",
                 rule_name(check_rule(&check, 1)), rule_row(check_rule(&check, 1))->merges ? "all kinds draft" : "the first kind drafts alone");
    status = run_checks(&check);
    check_equal_release(&check.equal);
    check_sample_release(&check.sample);
    free(check.prompt);
    return status;
}
