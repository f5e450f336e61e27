#include "verifier/command/complete.h"

#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include "common/model/model_identity.h"
#include "common/options/options_merge.h"
#include "common/sample/rule.h"
#include "verifier/job/audience.h"
#include "verifier/job/comparison.h"
#include "verifier/job/measuring.h"
#include "verifier/job/why.h"
#include "verifier/result/journal_terms.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TELLING_STEPS = 64, /* steps from where on it is said that most rounds were without drafts: before, that is a guess, and nobody waited for it */
    LEAST_SHOWN = 2     /* drafts, where they are shown */
};

#define NEARLY 0.9 /* what is less at the end of a completion stays above it */

/* One pass over the requests, with these drafters. */
static enum status pass(struct job *job, struct lead *lead, struct peers *peers)
{
    struct verify verify = {0};
    enum status status;

    TRY(job_open_lead(job, peers, &verify, lead));
    status = lead_run(lead);
    job_close_lead(job, lead);
    return status;
}

/* Where the completion, and where everything else goes. */
static void set_up_show(const struct job *job, const struct request_list *requests, struct show *show)
{
    const struct options *options = job->options;
    int terminal = options->launch.terminal & TERMINAL_STDOUT, compare = options->report.compare;

    *show = (struct show){.total = requests->count, .bar = options_have_bar(options)};
    show->notes = options->report.quiet ? NULL : compare ? stdout : options_notes(options);
    if (options->results.path == NULL && (options->input.prompt != NULL || compare))
        show->text = stdout;
    show->drafts = options->report.show_drafts || (compare && options->input.prompt == NULL && options->input.prompts == NULL);
    show->explains = options->report.explain;
    show->colour = options_have_colours(options);
    show->text_is_terminal = terminal;
    show->notes_is_terminal = options->launch.terminal & (show->notes == stdout ? TERMINAL_STDOUT : TERMINAL_STDERR);
    show->reading.to = options->report.quiet || show->text == NULL ? NULL : terminal ? stdout : stderr;
    show->reading.redrawn = options->launch.terminal & (terminal ? TERMINAL_STDOUT : TERMINAL_STDERR);
    show->reading.clears_errors = options->launch.terminal & TERMINAL_STDERR;
    if (options->input.prompt != NULL && !terminal && !compare)
        show->notes = NULL; /* in a pipe there is the text alone; the figures follow on stderr */
}

/* A pass that is there to be measured: its text goes nowhere, so it says how far it is. */
static enum status measure(struct job *job, struct peers *drafters, const struct request_list *requests, int solo, struct measuring *measuring,
                           struct figures *figures)
{
    enum status status;

    measuring_begin(measuring, solo ? "solo" : "with drafts", requests);
    status = job_pass(job, requests, drafters, solo ? JOB_SOLO : JOB_DRAFTED, 0, &measuring->watch, figures);
    measuring_end(measuring);
    return status;
}

/* Passes of both ways, in turns, and what each measured. */
struct passes {
    struct comparison speeds;
    struct figures solo[COMPARISON_MOST], drafted[COMPARISON_MOST];
};

static void keep(struct passes *passes, const struct figures *solo, const struct figures *drafted)
{
    passes->solo[passes->speeds.passes] = *solo;
    passes->drafted[passes->speeds.passes] = *drafted;
    comparison_add(&passes->speeds, figures_tokens_per_second(solo), figures_tokens_per_second(drafted));
}

/* More of them, until their speeds are known. Where logits are hashed there are none: they would be hashed, too. */
static enum status repeat(struct job *job, struct peers *drafters, const struct request_list *requests, struct measuring *measuring,
                          struct passes *passes)
{
    int64_t began = clock_ns() - passes->solo[0].wall_ns - passes->drafted[0].wall_ns;
    struct figures solo, drafted;

    while (!job->options->report.hash_logits && !comparison_is_enough(&passes->speeds, (double)(clock_ns() - began) / 1e9)) {
        TRY(measure(job, drafters, requests, 1, measuring, &solo));
        TRY(measure(job, drafters, requests, 0, measuring, &drafted));
        keep(passes, &solo, &drafted);
    }
    return STATUS_OK;
}

/* Reports the passes of the median speeds; the first one, which is the output's, meets caches and clocks that are cold. */
static enum status report_passes(struct job *job, struct peers *drafters, const struct passes *passes, const struct adaptive_terms *terms)
{
    const struct comparison *speeds = &passes->speeds;
    const struct figures *solo = &passes->solo[comparison_middle(speeds->solo, speeds->passes)];
    const struct figures *drafted = &passes->drafted[comparison_middle(speeds->drafted, speeds->passes)];

    return job_report(job, drafters, solo, drafted, speeds, terms);
}

/* Those that can be completed, for passes that are measured: what is wrong with the others is said once. Borrows them; its array is to be freed. */
static enum status take_good(const struct request_list *requests, struct request_list *good)
{
    *good = (struct request_list){.request = calloc((size_t)requests->count + 1, sizeof *good->request)};
    if (good->request == NULL) {
        log_error("no memory for %d prompts", requests->count);
        return STATUS_INTERNAL;
    }
    for (int i = 0; i < requests->count; i++)
        if (requests->request[i].error == NULL)
            good->request[good->count++] = requests->request[i];
    return STATUS_OK;
}

/* What drafts, as a drafter says it: a model by its file, or by its name where only its own rank can see it; another kind by its
 * name and keys and, where it reads the target's file, the target, or by what is in a file of its own. */
static enum status identify_draft(const char *name, uint64_t target, uint64_t *identity)
{
    const struct options_draft_kind *kind;
    char text[OPTIONS_DRAFT_TEXT];
    struct options_draft draft;

    TRY(options_draft_read(name, &draft));
    options_draft_write(&draft, text);
    kind = options_draft_kind(&draft);
    if (kind->own_model && access(name, R_OK) == 0)
        return model_identity(name, identity);
    if (kind->made_by != NULL && strrchr(name, '@') != NULL)
        name = strrchr(name, '@'); /* the digest of its file, wherever that lies */
    else if (!kind->own_model)
        name = text;
    *identity = digest_bytes(name, strlen(name), kind->target_model ? target : DIGEST_EMPTY);
    return STATUS_OK;
}

/* The same of all kinds that draft for a request. */
static enum status identify_drafts(const struct job *job, uint64_t target, uint64_t *identity)
{
    TRY(identify_draft(job->hello[job->world.drafter_rank[0]].model, target, identity));
    for (int kind = 1; kind < options_kinds(job->options); kind++) {
        uint64_t other;

        TRY(identify_draft(job->hello[job->world.drafter_rank[kind]].model, target, &other));
        *identity = digest_bytes(&other, sizeof other, *identity);
    }
    return STATUS_OK;
}

/* Tells the output what it is for. */
static enum status begin_output(struct job *job, const struct request_list *requests)
{
    struct options meant = *job->options;
    struct journal_terms terms = {.options = &meant, .requests = requests, .context = job->model->longest, .width = model_own_width(job->model)};
    const struct journal_job begun = {.requests = requests, .run = job->hello[0].run, .host = job->world.host};

    if (!job->output.journaled)
        return output_begin(&job->output, &begun);
    if (meant.model.cache == CACHE_AUTO)
        meant.model.cache = job->model->cache_dtype == DTYPE_BF16 ? CACHE_BF16 : CACHE_F32;
    TRY(model_identity(job->target, &terms.target));
    if (journal_terms_need_drafts(requests) && !job->options->rounds.solo && job->world.drafters > 0)
        TRY(identify_drafts(job, terms.target, &terms.draft));
    return output_begin_under(&job->output, &terms, &begun);
}

/* Each wrong request was reported when its turn came, which in a long log is far above; so their number is said again at the end. A file without
 * one valid line is an error of its own. */
static enum status say_wrong(const struct request_list *requests)
{
    int wrong = 0;

    for (int i = 0; i < requests->count; i++)
        wrong += requests->request[i].error != NULL;
    if (wrong > 0)
        log_info("%d of %d prompts could not be completed: their lines of output say why", wrong, requests->count);
    return wrong > 0 && wrong == requests->count ? STATUS_DATA : STATUS_OK;
}

/* Did proposals have the length that was asked for, or nearly, so that its terms are those of the rounds? Drafting may stop earlier, and what copies
 * may have nothing to copy. */
static int are_whole(const struct figures *figures, int length)
{
    return figures->answered_rounds == 0 || figures_drafts_per_proposal(figures) >= NEARLY * length;
}

/* Did drafts make it slower than decoding without? Gives both speeds, as passes of both ways measured them. Where there are none, rounds with drafts
 * are measured, and those without follow from timed steps. speeds: NULL where nothing is compared */
static int drafts_cost(const struct comparison *speeds, const struct adaptive *adaptive, double *with, double *without)
{
    double spread, error;

    if (speeds == NULL)
        return adaptive_drafts_cost(adaptive, with, without);
    *with = comparison_median(speeds->drafted, speeds->passes, &spread);
    *without = comparison_median(speeds->solo, speeds->passes, &spread);
    return why_is_asked(comparison_speedup(speeds, &error)) && *with < *without;
}

/* What is to be left out for the length to be the lead's choice: a tree of drawn drafts has a size of its own. */
static const char *what_sets_length(const struct options *options)
{
    struct options without = *options;

    without.rounds.draft_length = -1;
    if (options->rounds.shape.kind == TREE_OWN)
        return "--draft";
    if (options_length(&without) < 0)
        return "--draft-length";
    return options->rounds.draft_length < 0 ? "--tree" : "--tree and --draft-length";
}

/* Warns where drafts of the length that was asked for cost speed. Where most rounds went without, as a drafter was lost, they are not what it was
 * slow by. speeds, terms: NULL where nothing is compared, or known; with both the table has said why. */
static void warn_of_cost(const struct job *job, const struct figures *figures, const struct adaptive *adaptive, const struct comparison *speeds,
                         const struct adaptive_terms *terms)
{
    int length = options_length(job->options);
    double with, without;
    char why[WHY_TEXT] = "", mean[64] = "";

    if (length <= 0 || job->options->report.quiet || 2 * figures->answered_rounds < figures->rounds ||
        !drafts_cost(speeds, adaptive, &with, &without))
        return;
    if (terms != NULL && speeds == NULL)
        why_write(terms, with / without, why);
    if (!are_whole(figures, length))
        snprintf(mean, sizeof mean, " at most, %.1f a round in the mean,", figures_drafts_per_proposal(figures));
    log_warn("drafts of %d%s cost speed here: %.0f tokens/s%s %.0f; leave %s out, or --solo%s%s", length, mean, with,
             speeds != NULL ? ", without them" : " while decoding, without them about", without, what_sets_length(job->options),
             *why != '\0' ? ": " : "", why);
}

/* Says why, where the draft length was left to the lead and most rounds were without drafts. */
static void say_if_rested(const struct job *job, const struct figures *figures, const struct adaptive_terms *terms)
{
    char why[WHY_TEXT];

    if (options_length(job->options) >= 0 || job->options->report.quiet || figures->steps < TELLING_STEPS ||
        2 * figures->asked_rounds >= figures->rounds)
        return;
    why_write(terms, 0, why);
    log_info("%lld of %lld rounds were without drafts, which %s: %s", (long long)(figures->rounds - figures->asked_rounds),
             (long long)figures->rounds, why_is_asked(terms->speedup) ? "do not pay here" : "did not seem to pay then; by now", why);
}

/* Says which shapes --tree auto chose. */
static void say_shapes(const struct job *job, const struct lead *lead)
{
    const struct figures *figures = &lead->figures;
    char text[160] = "";

    if (job->options->rounds.shape.kind != TREE_AUTO || job->options->report.quiet)
        return;
    for (int kind = 0; kind < TREE_KINDS; kind++)
        if (figures->shape_rounds[kind] > 0) {
            size_t used = strlen(text);

            snprintf(text + used, sizeof text - used, "%s%s %lld", used > 0 ? ", " : "", tree_shape_name((enum tree_kind)kind),
                     (long long)figures->shape_rounds[kind]);
        }
    if (figures->drafted_rounds > 0)
        log_info("--tree %s: %lld of %lld rounds had drafts, by shape: %s; %s was the fastest in the end", job->options->rounds.tree,
                 (long long)figures->drafted_rounds, (long long)figures->rounds, text, tree_shape_name(adaptive_shape_best(&lead->drafting.shape)));
    else
        log_info("--tree %s: no round had drafts, so no shape was tried", job->options->rounds.tree);
}

/* How many sequences a step had, in the mean. */
static int at_once(const struct figures *figures)
{
    int64_t mean = figures->steps > 0 ? (figures->rounds + figures->steps / 2) / figures->steps : 1;

    return mean > 1 ? (int)mean : 1;
}

/* Under some rules a text above temperature 0 depends on what was drafted, and so on time. */
static void say_if_it_varies(const struct job *job, const struct peers *peers)
{
    const struct options *options = job->options;
    const struct rule *rule = rule_of(&options->request.sampling);
    int by_price = options->rounds.stopping.kind == STOPPING_BATCH;

    if (options->request.sampling.seed != 0 && (options_length(options) < 0 || by_price) && peers->count > 0 && !options->report.quiet &&
        rule != NULL && rule->depends_on_drafts)
        log_info("--seed alone does not repeat a text, whose draft lengths depend on time here: %s--accept coupled does",
                 options->rounds.stopping.kind == STOPPING_HEURISTIC || by_price ? "" : "--draft-length K or ");
}

static void say_if_colours_lack(const struct options *options)
{
    if (options->report.show_drafts && !options_have_colours(options) && !options->report.quiet)
        log_info("--show-drafts shows drafts by colours, which stdout has not here: --colour always writes them");
}

/* good: those of the requests that can be completed; passes: zeros, absent where nothing is compared; page: absent where none is asked for */
static enum status complete(struct job *job, struct peers *drafters, const struct request_list *requests, const struct request_list *good,
                            struct passes *passes, struct explain_page *page)
{
    struct peers none = {0}, *peers = job->options->rounds.solo ? &none : drafters;
    struct figures solo = {0};
    struct audience audience;
    struct measuring measuring;
    struct show show;
    struct lead lead = {.watch = &audience.watch, .queue.requests = requests, .resting = job->options->rounds.solo ? drafters : NULL};
    const struct adaptive *adaptive = &lead.drafting.adaptive;
    struct adaptive_terms terms;
    enum status status, wrong;
    int length, known;

    job->learns = passes != NULL;
    say_if_it_varies(job, peers);
    say_if_colours_lack(job->options);
    set_up_show(job, requests, &show);
    show.page = page;
    lead.drafting.least = show.drafts || options_explains(job->options) ? LEAST_SHOWN : 0;
    measuring = (struct measuring){.line = show.reading};
    audience_init(&audience, &job->output, &show, NULL);
    if (passes != NULL)
        TRY(measure(job, drafters, good, 1, &measuring, &solo)); /* solo first */
    job->team.shard.hash = 0;
    TRY(begin_output(job, requests));
    show_begin(&show, requests, &job->output);
    status = pass(job, &lead, peers);
    audience_release(&audience);
    if (status != STATUS_DRAINED)
        TRY(status);
    TRY(output_finish(&job->output));
    if (show.text != NULL && (fflush(show.text) != 0 || ferror(show.text))) {
        log_error("the completion could not be written to stdout");
        return STATUS_IO;
    }
    if (options_show_whole(job->options) && (job->options->launch.terminal & TERMINAL_ONE_PLACE) != 0)
        log_to(STDOUT_FILENO);
    if (passes != NULL) {
        keep(passes, &solo, &lead.figures);
        if (status == STATUS_OK)
            status = repeat(job, drafters, good, &measuring, passes);
        if (status != STATUS_DRAINED)
            TRY(status);
        adaptive = &job->learnt; /* by the last pass */
    }
    length = options_length(job->options);
    known = peers->count > 0 &&
            (length < 0 || (job->options->rounds.shape.kind == TREE_CHAIN && are_whole(&lead.figures, length))) && /* of trees sizes that it chose */
            adaptive_explain(adaptive, at_once(&lead.figures), length, &terms);
    if (passes != NULL)
        TRY(report_passes(job, drafters, passes, known ? &terms : NULL));
    else
        TRY(job_report(job, drafters, NULL, &lead.figures, NULL, known ? &terms : NULL));
    fflush(stdout);
    warn_of_cost(job, &lead.figures, adaptive, passes != NULL ? &passes->speeds : NULL, known ? &terms : NULL);
    if (known && passes == NULL) {
        say_shapes(job, &lead);
        say_if_rested(job, &lead.figures, &terms);
    }
    if (page != NULL)
        TRY(explain_page_write(page, job->options->report.explain_page));
    wrong = say_wrong(requests);
    return status == STATUS_OK ? wrong : status; /* a job that is drained goes on */
}

enum status complete_run(struct job *job, struct peers *drafters, const struct request_list *requests)
{
    const int has_page = job->options->report.explain_page != NULL;
    struct passes *passes = NULL;
    struct explain_page page = {.text = NULL};
    struct request_list good;
    enum status status;

    TRY(take_good(requests, &good));
    if (job->options->report.compare && drafters->count > 0 && !job->options->rounds.solo && good.count > 0) {
        passes = calloc(1, sizeof *passes);
        if (passes == NULL) {
            free(good.request);
            log_error("no memory for the figures of %d passes", COMPARISON_MOST);
            return STATUS_INTERNAL;
        }
    }
    status = has_page ? explain_page_open(&page) : STATUS_OK;
    if (status == STATUS_OK)
        status = complete(job, drafters, requests, &good, passes, has_page ? &page : NULL);
    explain_page_close(&page);
    free(passes);
    free(good.request);
    return status;
}
