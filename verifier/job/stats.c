#include "verifier/job/stats.h"

#include "common/base/cores.h"
#include "common/base/log.h"
#include "common/file/json_text.h"
#include "common/model/model.h"
#include "common/sample/rule.h"
#include "common/wire/roll_call.h"
#include "common/world/world.h"
#include "verifier/job/why.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const rounded_to[] = {[QUANTISE_NONE] = "none", [QUANTISE_Q8_0] = "q8_0", [QUANTISE_Q4_0] = "q4_0"};

/* By an option, or by a line of input: which, in `what`. */
static int is_not_lossless(const struct stats *stats, char what[OPTIONS_NOT_LOSSLESS])
{
    if (options_not_lossless(stats->options, what))
        return 1;
    if (stats->lossy != NULL)
        snprintf(what, OPTIONS_NOT_LOSSLESS, "line %d, accept %s", stats->lossy->line, rule_of(&stats->lossy->sampling)->name);
    return stats->lossy != NULL;
}

static json_t *merge_of(const struct options *options)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = 0; i < options->rounds.merge.count; i++)
        failed |= json_array_append_new(array, json_text_string(options->rounds.merge.text[i]));
    return json_text_whole(array, failed);
}

static json_t *configuration_of(const struct stats *stats)
{
    const struct options *options = stats->options;
    const struct sampling *sampling = &options->request.sampling;
    const char *draft = roll_call_draft(stats->hello, stats->ranks);
    char option[OPTIONS_NOT_LOSSLESS];
    int failed = 0;
    json_t *object = json_pack("{s:o, s:i, s:i, s:i, s:i, s:i, s:b}", "target", json_text_string(stats->target), "max_tokens",
                               options->request.max_tokens, "draft_length", options->rounds.draft_length, "support", options->rounds.support,
                               "max_sequences", options->rounds.max_sequences, "threads", stats->threads, "solo", options->rounds.solo);

    failed |= json_object_update_new(object, json_pack("{s:i, s:i, s:s}", "drafters", stats->drafters, "verifiers", stats->ranks - stats->drafters,
                                                       "run_ahead", options_run_ahead(options)));
    if (options->rounds.branches > 0)
        failed |= json_object_set_new(object, "branches", json_integer(options->rounds.branches));
    failed |= json_object_update_new(
        object, json_pack("{s:f, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:s?}", "temperature", sampling->temperature, "top_k",
                          sampling->top_k, "top_p", sampling->top_p, "min_p", sampling->min_p, "repetition_penalty", sampling->repetition_penalty,
                          "presence_penalty", sampling->presence_penalty, "frequency_penalty", sampling->frequency_penalty, "lenience",
                          sampling->lenience, "threshold", sampling->threshold, "typical_epsilon", sampling->typical_epsilon, "typical_delta",
                          sampling->typical_delta, "seed", json_text_u64(sampling->seed), "accept", rule_name(sampling->accept)));
    failed |= json_object_set_new(object, "draft", draft != NULL ? json_text_string(draft) : json_null());
    failed |= json_object_set_new(object, "lossless", json_boolean(!is_not_lossless(stats, option)));
    if (options->model.quantise != QUANTISE_NONE)
        failed |= json_object_set_new(object, "quantise", json_string(rounded_to[options->model.quantise]));
    if (options->model.draft_quantise != QUANTISE_NONE)
        failed |= json_object_set_new(object, "draft_quantise", json_string(rounded_to[options->model.draft_quantise]));
    if (options->model.cache >= CACHE_BF16)
        failed |= json_object_set_new(object, "cache", json_string(options->model.cache == CACHE_BF16 ? "bf16" : "fp8"));
    if (options->rounds.draft_vocabulary > 0)
        failed |= json_object_set_new(object, "draft_vocabulary", json_integer(options->rounds.draft_vocabulary));
    if (options->rounds.tree != NULL && options->rounds.shape.kind != TREE_CHAIN)
        failed |= json_object_set_new(object, "tree", json_string(options->rounds.tree));
    if (options->rounds.stopping.kind != STOPPING_NEVER)
        failed |= json_object_set_new(object, "stop_drafting", json_string(options->rounds.stop_drafting));
    if (options->rounds.cascade != CASCADE_NONE)
        failed |= json_object_set_new(object, "cascade", json_string("lookup"));
    if (options->rounds.copy_first > 0)
        failed |= json_object_set_new(object, "copy_first", json_integer(options->rounds.copy_first));
    if (options->rounds.copy_after > 0)
        failed |= json_object_set_new(object, "copy_after", json_integer(options->rounds.copy_after));
    if (options->rounds.merge.count > 0)
        failed |= json_object_set_new(object, "merge", merge_of(options));
    if (options->rounds.draft_temperature >= 0)
        failed |= json_object_set_new(object, "draft_temperature", json_real(options->rounds.draft_temperature));
    if (options->rounds.synthetic_acceptance >= 0)
        failed |= json_object_set_new(object, "synthetic_acceptance", json_real(options->rounds.synthetic_acceptance));
    return json_text_whole(object, failed);
}

/* Rounds with drafts of each shape that there were any of. */
static json_t *shapes_of(const struct figures *figures)
{
    json_t *object = json_object();
    int failed = object == NULL;

    for (int kind = 0; kind < TREE_KINDS; kind++)
        if (figures->shape_rounds[kind] > 0)
            failed |= json_object_set_new(object, tree_shape_name((enum tree_kind)kind), json_integer(figures->shape_rounds[kind]));
    return json_text_whole(object, failed);
}

static json_t *ranks_of(const struct stats *stats)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = 0; i < stats->ranks; i++) {
        const struct hello *hello = &stats->hello[i];

        failed |= json_array_append_new(array, json_pack("{s:i, s:s, s:s, s:i, s:s, s:o}", "rank", i, "role",
                                               hello->role == ROLE_DRAFTER ? "drafter" : "verifier", "host", hello->host, "pid",
                                               (int)hello->pid, "device", hello->device, "model", json_text_string(hello->model)));
    }
    return json_text_whole(array, failed);
}

static json_t *totals_of(const struct figures *figures)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "tokens", (json_int_t)figures->tokens, "rounds", (json_int_t)figures->rounds,
                     "drafted", (json_int_t)figures->drafted, "accepted", (json_int_t)figures->accepted, "alpha", figures_alpha(figures),
                     "tokens_per_second", figures_tokens_per_second(figures), "mean_accepted_length", figures_mean_accepted_length(figures));
}

static json_t *positions_of(const struct figures *figures)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = 0; i < MESSAGE_MAX_DRAFT && figures->tested[i] > 0; i++)
        failed |= json_array_append_new(array, json_real((double)figures->accepted_at[i] / (double)figures->tested[i]));
    return json_text_whole(array, failed);
}

/* Drafters that were lost at some time, also those that came back. */
static json_t *lost_of(const struct peers *peers)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = 0; i < peers->count; i++)
        if (peers->peer[i].why != NULL)
            failed |= json_array_append_new(array, json_pack("{s:i, s:s, s:b}", "rank", peers->peer[i].name, "reason", peers->peer[i].why,
                                                             "back", !peers->peer[i].lost));
    return json_text_whole(array, failed);
}

static json_t *speeds_of(const double *speed, int count)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = 0; i < count; i++)
        failed |= json_array_append_new(array, json_real(speed[i]));
    return json_text_whole(array, failed);
}

/* All passes of a comparison; totals and solo are those of the first two. */
static json_t *comparison_of(const struct comparison *comparison)
{
    double error, speedup = comparison_speedup(comparison, &error);

    return json_pack("{s:o, s:o, s:f, s:f, s:b}", "solo_tokens_per_second", speeds_of(comparison->solo, comparison->passes), "tokens_per_second",
                     speeds_of(comparison->drafted, comparison->passes), "speedup", speedup, "standard_error", error, "settled",
                     comparison_is_settled(comparison));
}

/* A token of no probability makes both numbers infinite, for which JSON has none. */
static json_t *number_or_null(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

static json_t *perplexity_of(const struct perplexity *perplexity)
{
    return json_pack("{s:o, s:o, s:I, s:i, s:i}", "value", number_or_null(perplexity_value(perplexity)), "standard_error",
                     number_or_null(perplexity_error(perplexity)), "tokens", (json_int_t)perplexity->tokens, "windows", perplexity->windows, "window",
                     perplexity->window);
}

static json_t *terms_of(const struct adaptive_terms *terms)
{
    return json_pack("{s:i, s:f, s:f, s:f, s:f}", "draft_length", terms->length, "v", terms->v, "c", terms->c, "alpha", terms->alpha,
                     "expected_speedup", terms->speedup);
}

static json_t *outcome_of(const struct ahead_outcome *outcome)
{
    return json_pack("{s:I, s:I}", "rounds", (json_int_t)outcome->rounds, "hits", (json_int_t)outcome->hits);
}

json_t *stats_ahead(const struct figures *figures)
{
    const struct ahead_figures *ahead = &figures->ahead;
    json_t *rejected = json_array();

    for (int i = 0; i < MESSAGE_MAX_DRAFT; i++)
        if (ahead->rejected[i].rounds > 0)
            json_array_append_new(rejected, json_pack("{s:i, s:I, s:I}", "accepted", i, "rounds", (json_int_t)ahead->rejected[i].rounds, "hits",
                                                      (json_int_t)ahead->rejected[i].hits));
    return json_pack("{s:I, s:I, s:I, s:f, s:f, s:o, s:o}", "proposals", (json_int_t)ahead->proposals, "bytes", (json_int_t)ahead->bytes, "hits",
                     (json_int_t)ahead->hits, "hit_rate", figures_ahead_hit_rate(figures), "hit_wait_us", clock_mean_us(&ahead->wait), "all_accepted",
                     outcome_of(&ahead->all), "rejected", rejected);
}

/* What went over the wire. A round is of one sequence: of several in a step each has its own messages. */
static json_t *wire_of(const struct figures *figures)
{
    const struct wire_figures *wire = &figures->wire;
    double rounds = figures->rounds > 0 ? (double)figures->rounds : 1.0;

    return json_pack("{s:I, s:I, s:f, s:I, s:I, s:f}", "sent", (json_int_t)wire->sent, "sent_bytes", (json_int_t)wire->sent_bytes,
                     "sent_bytes_per_round", (double)wire->sent_bytes / rounds, "received", (json_int_t)wire->received, "received_bytes",
                     (json_int_t)wire->received_bytes, "received_bytes_per_round", (double)wire->received_bytes / rounds);
}

/* What each kind of drafter gave to the proposals that were merged. */
static json_t *merged_of(const struct stats *stats)
{
    const char *first = roll_call_draft(stats->hello, stats->ranks);
    json_t *array = json_array();
    int failed = 0;

    for (int i = 0; i < stats->figures->kinds; i++) {
        const struct kind_figures *kind = &stats->figures->kind[i];
        const char *name = i > 0 ? stats->options->rounds.merge.text[i - 1] : first != NULL ? first : "";

        failed |= json_array_append_new(array, json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "draft", json_text_string(name), "missed",
                                                         (json_int_t)kind->missed, "proposals", (json_int_t)kind->proposals, "drafted",
                                                         (json_int_t)kind->drafted, "agreed", (json_int_t)kind->agreed, "accepted",
                                                         (json_int_t)kind->accepted, "accepted_alone", (json_int_t)kind->alone));
    }
    return json_text_whole(array, failed);
}

static void library_version(char mpi[MPI_MAX_LIBRARY_VERSION_STRING])
{
    int length;

    MPI_Get_library_version(mpi, &length);
    mpi[strcspn(mpi, ",")] = '\0';
}

/* Where the noise that draws from p is known to the drafter there is one token, and no p left to tell of. */
static int tells_of_p(const struct sampling *sampling)
{
    return sampling->temperature == 0.0 || !rule_of(sampling)->matches;
}

static json_t *object_of(const struct stats *stats)
{
    const struct figures *figures = stats->figures;
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int failed = 0;

    library_version(mpi);
    json_t *object = json_pack("{s:o, s:{s:s, s:i, s:s}, s:o, s:o}", "configuration", configuration_of(stats), "versions", "tandem",
                               stats->hello[0].program, "protocol", MESSAGE_VERSION, "mpi", mpi, "ranks", ranks_of(stats), "totals",
                               totals_of(figures));

    failed |= json_object_set_new(object, "round_us",
                        json_pack("{s:f, s:f, s:f, s:f, s:f}", "draft", figures->draft_us, "wire", figures->wire_us, "verify",
                                  figures->verify_us, "decide", figures->decide_us, "group", figures->group_us));
    failed |= json_object_set_new(object, "drained", json_boolean(figures->drained));
    failed |= json_object_set_new(object, "resumed", json_integer(figures->resumed));
    failed |= json_object_set_new(object, "steps", json_integer(figures->steps));
    failed |= json_object_set_new(object, "prompt_tokens_read", json_integer(figures->prompt_tokens));
    failed |= json_object_set_new(object, "prefix_tokens_reused", json_integer(figures->prefix_tokens_reused));
    failed |= json_object_set_new(object, "accepted_per_position", positions_of(figures));
    if (stats->drafters > 0 && stats->options->rounds.run_ahead != RUN_AHEAD_OFF)
        failed |= json_object_set_new(object, "run_ahead", stats_ahead(figures));
    failed |= json_object_set_new(object, "wire", wire_of(figures));
    if (stats->options->rounds.shape.kind == TREE_AUTO)
        failed |= json_object_set_new(object, "shape_rounds", shapes_of(figures));
    if (figures->kinds > 1)
        failed |= json_object_set_new(object, "merged", merged_of(stats));
    failed |= json_object_set_new(object, "stale_proposals", json_integer(figures->stale));
    failed |= json_object_set_new(object, "refused_messages", json_integer(figures->refused));
    failed |= json_object_set_new(object, "lost_drafters", lost_of(stats->peers));
    failed |= json_object_set_new(object, "full_rounds", json_integer(figures->full_rounds));
    failed |= json_object_set_new(object, "full_round_tokens", json_integer(figures->full_tokens));
    failed |= json_object_set_new(object, "fallback_rounds", json_integer(figures->fallback_rounds));
    failed |= json_object_set_new(object, "drafted_rounds", json_integer(figures->drafted_rounds));
    failed |= json_object_set_new(object, "empty_rounds", json_integer(figures->empty_rounds));
    if (figures->overlap > 0 && tells_of_p(&stats->options->request.sampling))
        failed |=
            json_object_set_new(object, "alpha_expected",
                                json_pack("{s:f, s:f}", "mean_sum_min_p_q", figures->overlap, "standard_error", figures->overlap_error));
    if (stats->solo != NULL)
        failed |= json_object_set_new(object, "solo", totals_of(stats->solo));
    if (stats->perplexity != NULL)
        failed |= json_object_set_new(object, "perplexity", perplexity_of(stats->perplexity));
    if (stats->comparison != NULL)
        failed |= json_object_set_new(object, "comparison", comparison_of(stats->comparison));
    if (stats->options->report.plain_speed > 0)
        failed |= json_object_set_new(object, "plain", json_pack("{s:f, s:i}", "tokens_per_second", stats->options->report.plain_speed, "threads",
                                                                 stats->options->report.plain_threads));
    if (stats->terms != NULL)
        failed |= json_object_set_new(object, "drafts_expected", terms_of(stats->terms));
    if (stats->options->report.hash_logits) {
        failed |= json_object_set_new(object, "logits_hash", json_sprintf("%016llx", (unsigned long long)stats->hash));
    }
    return json_text_whole(object, failed);
}

struct json_t *stats_job(const struct stats *stats, const char *group, int lead)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";

    library_version(mpi);
    return json_pack("{s:o, s:o, s:s, s:s, s:s, s:i, s:b}", "configuration", configuration_of(stats), "ranks", ranks_of(stats), "tandem",
                     stats->hello[0].program, "mpi", mpi, "group", group, "lead", lead, "crowded", stats->crowded);
}

enum status stats_write(const struct stats *stats, const char *path)
{
    json_t *object = object_of(stats);
    char *text = json_text_write(object, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    FILE *file = text != NULL ? fopen(path, "w") : NULL;
    int written = file != NULL && fprintf(file, "%s", text) >= 0;

    if (text == NULL)
        errno = ENOMEM;
    if (file != NULL && fclose(file) != 0)
        written = 0;
    json_decref(object);
    free(text);
    if (written)
        return STATUS_OK;
    log_error("--stats %s: %s", path, strerror(errno));
    return STATUS_IO;
}

void stats_line(const struct stats *stats, FILE *to)
{
    const struct figures *figures = stats->figures;
    char option[OPTIONS_NOT_LOSSLESS];

    fprintf(to, "%lld tokens in %.2f s: %.0f tokens/s", (long long)figures->tokens, (double)figures->wall_ns / 1e9,
            figures_tokens_per_second(figures));
    if (figures->drafted > 0)
        fprintf(to, "; alpha %.3f, %.2f tokens per round; %.0f %% of drafts accepted, %.0f %% of rounds had one", figures_alpha(figures),
                figures_mean_accepted_length(figures), 100 * figures_kept(figures), 100 * figures_drafted_rounds(figures));
    if (is_not_lossless(stats, option))
        fprintf(to, "; NOT LOSSLESS, by %s", option);
    fputc('\n', to);
}

/* Speeds and their spread, which one pass of each way does not have. */
static void print_speeds(const struct comparison *comparison, FILE *to)
{
    double slow_spread, fast_spread, slow = comparison_median(comparison->solo, comparison->passes, &slow_spread);
    double fast = comparison_median(comparison->drafted, comparison->passes, &fast_spread);
    double error, speedup = comparison_speedup(comparison, &error);
    const char *settled = comparison_is_settled(comparison) ? "" : "not settled";
    char passes[32];

    fprintf(to, "%-26s %12.0f %12.0f\n", "tokens per second", slow, fast);
    snprintf(passes, sizeof passes, "  median of %d, spread", comparison->passes);
    if (comparison->passes == 1)
        fprintf(to, "  1 pass\n");
    else
        fprintf(to, "%-26s %10.1f %% %10.1f %%\n", passes, 100 * slow_spread, 100 * fast_spread);
    fprintf(to, "%-26s %12s %11.2fx\n", "speedup, of pairs", "", speedup);
    if (comparison->passes > 1)
        fprintf(to, "%-26s %12s %10.1f %%\n", "  its standard error", settled, 100 * error);
}

static double fastest_of(const struct comparison *comparison)
{
    double spread, solo = comparison_median(comparison->solo, comparison->passes, &spread);

    return fmax(solo, comparison_median(comparison->drafted, comparison->passes, &spread));
}

/* What stands in the two columns, and what one process does that has no drafter beside it. */
static void print_compared(const struct stats *stats, FILE *to)
{
    int verifiers = stats->ranks - stats->drafters;

    fprintf(to, "\nCompared: %d verifier%s of %d thread%s, alone (solo) and with %d drafter%s (speculative)", verifiers, verifiers == 1 ? "" : "s",
            stats->threads, stats->threads == 1 ? "" : "s", stats->drafters, stats->drafters == 1 ? "" : "s");
    if (stats->options->report.plain_speed > 0)
        fprintf(to, "; one process with %d thread%s and no drafts: %.0f tokens/s%s", stats->options->report.plain_threads,
                stats->options->report.plain_threads == 1 ? "" : "s", stats->options->report.plain_speed,
                stats->options->report.plain_speed > fastest_of(stats->comparison) ? ", the fastest of the three" : "");
    fputs(".\n", to);
    cores_put_busy(stats->load, to);
}

static void print_why(const struct stats *stats, FILE *to)
{
    char text[WHY_TEXT];
    double error, speedup = comparison_speedup(stats->comparison, &error);

    if (stats->terms == NULL || !why_is_asked(speedup))
        return;
    why_write(stats->terms, speedup, text);
    fprintf(to, "\nWhy %.2fx: %s%s.\n", speedup,
            2 * stats->figures->asked_rounds < stats->figures->rounds ? "most rounds were without drafts, which would not pay: " : "", text);
}

void stats_table(const struct stats *stats, FILE *to)
{
    const struct figures *solo = stats->solo, *figures = stats->figures;
    double round = figures->draft_us + figures->wire_us + figures->verify_us + figures->decide_us;
    char option[OPTIONS_NOT_LOSSLESS];

    if (is_not_lossless(stats, option))
        fprintf(to, "\nNOT LOSSLESS, by %s\n", option);
    print_compared(stats, to);
    fprintf(to, "\n%-26s %12s %12s\n", "", "solo", "speculative");
    print_speeds(stats->comparison, to);
    if (figures->drafted > 0) {
        fprintf(to, "%-26s %12s %12.3f\n", "alpha (of tested drafts)", "", figures_alpha(figures));
        fprintf(to, "%-26s %12s %10.0f %%\n", "drafts accepted, of all", "", 100 * figures_kept(figures));
    }
    fprintf(to, "%-26s %12s %10.0f %%\n", "rounds with a draft", "", 100 * figures_drafted_rounds(figures));
    fprintf(to, "%-26s %12.2f %12.2f\n", "tokens per round", figures_mean_accepted_length(solo), figures_mean_accepted_length(figures));
    fprintf(to, "%-26s %9.0f us %9.0f us\n", "time per round", solo->verify_us + solo->decide_us, round);
    fprintf(to, "  %-24s %12s %9.0f us\n", "draft", "", figures->draft_us);
    fprintf(to, "  %-24s %12s %9.0f us\n", "wire", "", figures->wire_us);
    fprintf(to, "  %-24s %9.0f us %9.0f us\n", "verify", solo->verify_us, figures->verify_us);
    fprintf(to, "  %-24s %9.0f us %9.0f us\n", "decide", solo->decide_us, figures->decide_us);
    print_why(stats, to);
}
