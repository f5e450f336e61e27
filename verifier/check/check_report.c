#include "verifier/check/check_report.h"

#include "common/base/grouped.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include "common/base/visible.h"
#include "common/sample/rule.h"
#include "verifier/job/colour.h"
#include <math.h>
#include <string.h>

enum { VERDICT = 600 };

static const char too_few[] = "too few samples to see anything";

static int is_shown(const struct check_result *result)
{
    return result->holds && !result->is_starved && !result->is_blind;
}

static void write_starved(const struct check_share *share, struct check_result *result)
{
    char asked[32], answered[32], drafted[32];

    snprintf(result->found, sizeof result->found, "%s of %s rounds had a proposal, %.0f %% of the least pass; %s had a draft in it: nothing is shown",
             grouped_write(share->answered, answered), grouped_write(share->asked, asked), 100 * share->least,
             grouped_write(share->drafted, drafted));
}

static void sum_equal(const struct check *check, struct check_result *result)
{
    const struct check_equal *equal = &check->equal;
    char outputs[32], unequal[32], tokens[32], lengths[64] = "";

    for (int i = 0; i < equal->lengths; i++)
        snprintf(lengths + strlen(lengths), sizeof lengths - strlen(lengths), "%s%d", i > 0 ? ", " : "", equal->draft_length[i]);
    *result = (struct check_result){
        .name = "equality", .holds = check_equal_holds(equal), .is_starved = equal->accepted == 0 || !check_share_suffices(&equal->share)};
    snprintf(result->what, sizeof result->what, "%d prompt%s, greedy and %s, draft lengths %s, against solo", check->prompts,
             check->prompts == 1 ? "" : "s", rule_name(check_rule(check, 0)), lengths);
    if (equal->unequal > 0)
        snprintf(result->found, sizeof result->found, "%s of %s outputs differ", grouped_write(equal->unequal, unequal),
                 grouped_write(equal->outputs, outputs));
    else if (result->is_starved)
        write_starved(&equal->share, result);
    else
        snprintf(result->found, sizeof result->found, "%s outputs equal, %s tokens", grouped_write(equal->outputs, outputs),
                 grouped_write(equal->tokens, tokens));
}

enum { PLACES = 120 };

/* Where it is told how often drafts should be accepted: of the place that is farthest off. text: [PLACES] */
static const char *write_places(const struct check_sample *sample, char *text)
{
    text[0] = '\0';
    if (sample->place_bar > 0)
        snprintf(text, PLACES, ", draft %d of a proposal accepted %+.0f times beyond what p and q say of at most %.0f", sample->worst_place + 1,
                 sample->place[sample->worst_place].excess, sample->place_bar);
    return text;
}

static void sum_sample(const struct check *check, struct check_result *result)
{
    char places[PLACES];
    const struct check_sample *sample = &check->sample;
    const struct check_context *worst = &sample->context[sample->worst];
    char samples[32];

    *result = (struct check_result){.name = "law", .holds = check_sample_holds(sample), .is_starved = !check_share_suffices(&sample->share)};
    snprintf(result->what, sizeof result->what, "%d texts x %s requests, draft lengths %d and %d, %d cells", sample->contexts,
             grouped_write(check->sizes.samples, samples), sample->draft_length[0], sample->draft_length[1], sample->cells);
    result->is_blind = result->holds && !check_sample_sees(sample);
    if (result->holds && result->is_starved)
        write_starved(&sample->share, result);
    else if (result->is_blind)
        snprintf(result->found, sizeof result->found, "%s", too_few);
    else
        snprintf(result->found, sizeof result->found,
                 "G %.0f of at most %.0f, its worst text %.0f of %.0f, tokens with p > q %+.2f %% of %.2f %%%s%s", sample->g, sample->g_bar,
                 worst->fit.g, sample->worst_bar, 100 * sample->lean, 100 * sample->lean_bar, write_places(sample, places),
                 sample->impossible > 0 ? ", and tokens with p = 0" : "");
}

static void sum_draws(const struct check *check, struct check_result *result)
{
    const struct check_draws *draws = &check->draws;
    char drawn[32], wrong[32];

    *result = (struct check_result){.name = "draws", .holds = draws->wrong == 0,
                                    .is_starved = draws->drawn + draws->certain == 0 || !check_share_suffices(&check->sample.share)};
    snprintf(result->what, sizeof result->what, "every draft drawn again from the q that came with it");
    if (draws->drawn == 0 && draws->certain > 0)
        snprintf(result->found, sizeof result->found, "nothing to draw: %s drafts are copies, each the point mass that came with it",
                 grouped_write(draws->certain, drawn));
    else if (draws->drawn == 0)
        snprintf(result->found, sizeof result->found, "no draft came: nothing was drawn again");
    else if (draws->wrong > 0)
        snprintf(result->found, sizeof result->found, "%s of %s are another token", grouped_write(draws->wrong, wrong),
                 grouped_write(draws->drawn, drawn));
    else
        snprintf(result->found, sizeof result->found, "%s equal", grouped_write(draws->drawn, drawn));
}

/* A text in one line, without its line breaks. */
static void put_text(FILE *to, const char *name, const char *text)
{
    fprintf(to, "    %-8s", name);
    visible_put_quoted(text, text != NULL ? strlen(text) : 0, to);
    fputc('\n', to);
}

static void put_token(FILE *to, const struct check *check, int32_t token)
{
    size_t length;
    const char *piece;

    if (token < 0) {
        fputs("the end", to);
        return;
    }
    piece = tokenizer_piece(check->job->tokenizer, token, 0, 0, &length);
    fprintf(to, "%d ", token);
    visible_put_quoted(piece, length, to);
}

static void put_difference(FILE *to, const struct check *check, const struct check_difference *difference)
{
    fprintf(to, "  prompt %d, %s, draft length %d: token %d is ", difference->prompt, difference->rule, difference->draft_length,
            difference->position);
    put_token(to, check, difference->drafted);
    fputs(", solo's ", to);
    put_token(to, check, difference->solo);
    fputs("\n    the target's two best there are ", to);
    put_token(to, check, difference->best[0]);
    fputs(" and ", to);
    put_token(to, check, difference->best[1]);
    fprintf(to, ", %.3g apart\n", difference->margin);
    put_text(to, "solo", difference->solo_text);
    put_text(to, "drafted", difference->drafted_text);
}

static void put_table(FILE *to, const struct check *check, const struct check_result *results, int colour)
{
    for (int i = 0; i < CHECK_KINDS; i++) {
        const struct check_result *result = &results[i];

        int is_blind = result->holds && (result->is_blind || result->is_starved);

        fprintf(to, "%s%s%s  %-9s %s\n%-17s %s\n", colour ? (is_blind ? COLOUR_YELLOW : result->holds ? COLOUR_GREEN : COLOUR_RED) : "",
                is_blind ? "blind" : result->holds ? "holds" : "FAILS",
                colour ? COLOUR_NONE : "", result->name, result->what, "", result->found);
    }
    for (int i = 0; i < check->equal.differences; i++)
        put_difference(to, check, &check->equal.difference[i]);
    if (check->draws.wrong > 0) {
        fprintf(to, "  request %u, position %u: the q that came gives token ", check->draws.request, check->draws.position);
        put_token(to, check, check->draws.expected);
        fputs(", the draft is ", to);
        put_token(to, check, check->draws.sent);
        fputc('\n', to);
    }
}

/* What the law's check says where it holds. */
static void write_law(const struct check *check, int is_blind, char words[160])
{
    const struct check_sample *sample = &check->sample;
    char samples[32];

    if (is_blind)
        snprintf(words, 160, "law: %s", too_few);
    else
        snprintf(words, 160, "law p %.2g over %d texts x %s, smallest TV seen %.1f %%, %.1f %% towards the draft", sample->p_chi_square,
                 sample->contexts, grouped_write(check->sizes.samples, samples), 100 * sample->variation, 100 * sample->lean_seen);
}

/* A rule that is not lossless by intent: by how much. */
static void write_lossy(const struct check *check, const struct rule *rule, char verdict[VERDICT])
{
    const struct check_sample *sample = &check->sample;
    char samples[32];

    snprintf(verdict, VERDICT,
             "NOT LOSSLESS, by --accept %s: the law of two tokens is %.1f %% off (total variation over %d cells; %.1f %% come by chance), over %d "
             "texts x %s",
             rule->name, 100 * sample->distance, sample->cells, 100 * sample->by_chance, sample->contexts,
             grouped_write(check->sizes.samples, samples));
}

static void write_verdict(const struct check *check, const struct check_result *results, char verdict[VERDICT])
{
    const struct rule *rule = rule_row(check->job->options->request.sampling.accept);
    int breakage = check->job->options->checks.breakage, failing = 0, starving = 0, lost = peers_absent(check->peers);
    char failed[64] = "", starved[64] = "", without[192] = "", law[160], drawn[32], outputs[32];

    if (!rule->lossless && breakage == BREAKAGE_NONE) {
        write_lossy(check, rule, verdict);
        return;
    }
    write_law(check, results[1].is_blind, law);
    for (int i = 0; i < CHECK_KINDS; i++)
        if (!results[i].holds)
            snprintf(failed + strlen(failed), sizeof failed - strlen(failed), "%s%s", failing++ > 0 ? ", " : "", results[i].name);
        else if (results[i].is_starved)
            snprintf(starved + strlen(starved), sizeof starved - strlen(starved), "%s%s", starving++ > 0 ? ", " : "", results[i].name);
    if (starving > 0)
        snprintf(without, sizeof without, "too few drafts came for %s (%d of %d drafters lost)", starved, lost, check->peers->count);
    else if (results[1].is_blind)
        snprintf(without, sizeof without, "%s", law);
    if (breakage != BREAKAGE_NONE)
        snprintf(verdict, VERDICT, "NOT LOSSLESS, broken on purpose by --break %s (%s): %s%s%s%s", breakage_table[breakage].name,
                 breakage_table[breakage].what, failing > 0 ? "seen by " : "no check saw it", failed, without[0] != '\0' ? "; " : "", without);
    else if (failing > 0)
        snprintf(verdict, VERDICT, "NOT LOSSLESS: %s of 3 checks fail%s (%s)",
                 failing == 1   ? "1"
                 : failing == 2 ? "2"
                                : "3",
                 failing == 1 ? "s" : "", failed);
    else if (without[0] != '\0')
        snprintf(verdict, VERDICT, "NOT SHOWN TO BE LOSSLESS: %s", without);
    else
        snprintf(verdict, VERDICT, "lossless%s: 3 checks hold (%s outputs equal, %s, %s drafts %s)",
                 check->sample.variation > CHECK_SEEN_MOST ? ", coarsely" : "", grouped_write(check->equal.outputs, outputs), law,
                 grouped_write(check->draws.drawn > 0 ? check->draws.drawn : check->draws.certain, drawn),
                 check->draws.drawn > 0 ? "drawn again" : "copied");
}

enum status check_report(const struct check *check)
{
    const struct options *options = check->job->options;
    struct check_result results[CHECK_KINDS];
    char verdict[VERDICT];
    int json_to_stdout = options->checks.json != NULL && strcmp(options->checks.json, "-") == 0;
    FILE *to = json_to_stdout ? stderr : stdout;

    sum_equal(check, &results[0]);
    sum_sample(check, &results[1]);
    sum_draws(check, &results[2]);
    write_verdict(check, results, verdict);
    if (options_have_bar(options))
        fputs("\r\033[K", stderr);
    if (!options->report.quiet)
        put_table(to, check, results, options_have_colours(options) && !json_to_stdout);
    fprintf(to, "%s\n", verdict);
    if (options->checks.json != NULL)
        TRY(check_report_json(check, results, verdict, options->checks.json));
    if (fflush(to) != 0 || ferror(to)) {
        log_error("the verdict could not be written");
        return STATUS_IO;
    }
    if (!rule_row(options->request.sampling.accept)->lossless)
        return STATUS_CHECK;
    for (int i = 0; i < CHECK_KINDS; i++)
        if (!is_shown(&results[i]))
            return STATUS_CHECK;
    /* a fault was put in on purpose (--break), and no check noticed it */
    return options->checks.breakage == BREAKAGE_NONE ? STATUS_OK : STATUS_CHECK;
}
