/* `tandem alpha`: what drafts are worth on the target's own texts, without a speculative round (alpha.h). */
#include "launch/bench/alpha/alpha.h"
#include "launch/bench/alpha/alpha_command.h"

#include "common/base/cores.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/standard_output.h"
#include "common/base/try.h"
#include "common/base/wrapped.h"
#include "common/file/json_text.h"
#include "common/sample/rule.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 30, TOKENS = 10000, TOKENS_MOST = 100000000, SEQUENCES = 8 };

struct command {
    struct alpha_terms terms;
    struct options draft[ALPHA_DRAFTS]; /* those of the run, each with its draft; the first one's are the target's */
    const char *name[ALPHA_DRAFTS];     /* as given; NULL: the embedded draft */
    const char *json;
    double load;        /* of this host before anything was measured */
    int sets_sequences; /* something may say how many texts are read at once */
    int argc;           /* what is left for the options of a run, the program's name first */
    char **argv;
};

static void print_usage(void)
{
    wrapped_put_help(
        stdout,
        "Usage: tandem alpha [--target M] --draft D[,D2...] [--prompts FILE] [OPTION]... [options of tandem run]\n"
        "The target decodes the prompts alone, in one process, and at each token every draft says what it would have proposed: which "
        "share of drafts is accepted, at which place of a proposal, and how many tokens a round would have. Nothing is drafted, so many drafts take "
        "one run.\n\n"
        "  --draft D[,D2...]     what --draft of tandem run may be, but lookup:job=1 and lookahead; may be given several times, 8 in all\n"
        "  --tokens N            tokens that the target decodes at most; default 10000\n"
        "  --json FILE           the figures, too, with errors: guessed_after_all is the table of first choices, one by one, and among_best that of "
        "trees\n\n"
        "Errors are standard errors over texts. Exit codes: 0 done; 64 usage; 65 a model or a prompt; 66 a file that is missing; 74 I/O.\n");
}

/* The comma behind the first draft of "self:bits=4,layers=2,lookup": one before a key belongs to the draft. NULL: there is one draft. */
static char *end_of_draft(char *list)
{
    for (char *comma = strchr(list, ','); comma != NULL; comma = strchr(comma + 1, ','))
        if (comma[1 + strcspn(comma + 1, ",:=")] != '=')
            return comma;
    return NULL;
}

static enum status add_drafts(struct command *command, char *list)
{
    for (char *end; list != NULL; list = end != NULL ? end + 1 : NULL) {
        end = end_of_draft(list);
        if (end != NULL)
            *end = '\0';
        if (command->terms.drafts == ALPHA_DRAFTS) {
            log_error("--draft names more than %d drafts", ALPHA_DRAFTS);
            return STATUS_USAGE;
        }
        command->name[command->terms.drafts++] = list;
    }
    return STATUS_OK;
}

static enum status take(void *state, const char *name, char *value)
{
    struct command *command = state;

    if (strcmp(name, "draft") == 0)
        return add_drafts(command, value);
    if (strcmp(name, "tokens") == 0)
        return alpha_command_read(name, value, 1, TOKENS_MOST, &command->terms.tokens);
    command->json = value;
    return STATUS_OK;
}

static void see(void *state, const struct option_entry *entry)
{
    ((struct command *)state)->sets_sequences |= strcmp(entry->name, "max-sequences") == 0 || strcmp(entry->name, "config") == 0;
}

/* Takes the options that are this command's own. */
static enum status take_own(struct command *command, int argc, char **argv)
{
    static const char *const own[] = {"draft", "json", "tokens", NULL};
    const struct alpha_command_own options = {"alpha", own, take, see, command};

    return alpha_command_take(&options, argc, argv, command->argv, &command->argc);
}

/* What a rule accepts has to be the share that the two models agree in. */
static enum status check_rule(const struct options *options)
{
    const struct rule *rule = rule_of(&options->request.sampling);

    if (rule->overlaps)
        return STATUS_OK;
    log_error("--accept is %s, which accepts another share of drafts than sum min(p, q), expected rejection, coupled or walk", rule->name);
    return STATUS_USAGE;
}

/* The options of a run, with this draft. */
static enum status parse(struct command *command, const char *draft, struct options *options)
{
    static char option[] = "--draft";
    char *argv[command->argc + 3];
    int argc = command->argc;

    memcpy(argv, command->argv, (size_t)argc * sizeof *argv);
    if (draft != NULL) {
        argv[argc++] = option;
        argv[argc++] = (char *)(uintptr_t)draft;
    }
    argv[argc] = NULL;
    TRY(options_parse(argc, argv, options));
    if (!command->sets_sequences)
        options->rounds.max_sequences = SEQUENCES;
    if (options_score_prompts(options)) {
        log_error("--perplexity is not for tandem alpha, which scores no text");
        return STATUS_USAGE;
    }
    if (options->rounds.solo) {
        log_error("--solo is not for tandem alpha, which runs no job");
        return STATUS_USAGE;
    }
    TRY(alpha_command_check(options, "alpha"));
    TRY(check_rule(options));
    if (options->model.target != NULL && options->model.draft == NULL) {
        log_error("expected --draft D beside --target");
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

/* Are drafts drawn from a q that may have a temperature of its own? */
static int draws_q(const struct options *options)
{
    return rule_draw(&options->request.sampling) == RULE_DRAWS_Q;
}

static int is_one(const struct options *a, const struct options *b)
{
    const struct options_draft *first = &a->model.draft_way, *second = &b->model.draft_way;
    char text[2][OPTIONS_DRAFT_TEXT];

    if (first->kind != second->kind)
        return 0;
    if (options_draft_kind(first)->own_model)
        return paths_are_one(a->model.draft, b->model.draft);
    if (first->file != NULL)
        return paths_are_one(first->file, second->file);
    options_draft_write(first, text[0]);
    options_draft_write(second, text[1]);
    return strcmp(text[0], text[1]) == 0;
}

/* Two rows of one draft would say the same. */
static enum status check_twice(const struct command *command)
{
    for (int d = 1; d < command->terms.drafts; d++)
        for (int before = 0; before < d; before++)
            if (is_one(&command->draft[before], &command->draft[d])) {
                log_error("--draft names %s twice, expected each draft once", command->name[d]);
                return STATUS_USAGE;
            }
    return STATUS_OK;
}

static enum status parse_all(struct command *command)
{
    static const char *const used[] = {"draft-temperature", "accept", "support", NULL};

    if (command->terms.drafts == 0)
        command->terms.drafts = 1;
    for (int d = 0; d < command->terms.drafts; d++) {
        TRY(parse(command, command->name[d], &command->draft[d]));
        command->terms.draft[d] = &command->draft[d];
    }
    TRY(check_twice(command));
    command->terms.target = &command->draft[0];
    alpha_command_say_idle(&command->draft[0], "alpha", draws_q(&command->draft[0]) ? used : used + 1, 0);
    return STATUS_OK;
}

struct label {
    char text[33];
};

/* As the table calls it: a kind by its name, and a file without its folders. */
static struct label name_of(const struct command *command, int d)
{
    const char *given = command->name[d], *slash;
    const char *name = given != NULL && strcmp(given, "auto") != 0 ? given : command->draft[d].model.draft;
    struct label label = {"the embedded draft"};
    size_t kind;

    if (name == NULL)
        return label;
    kind = strcspn(name, ":/");
    kind = name[kind] == ':' ? kind + 1 : 0;
    slash = strrchr(name + kind, '/');
    snprintf(label.text, sizeof label.text, "%.*s%s", (int)kind, name, slash != NULL && slash[1] != '\0' ? slash + 1 : name + kind);
    return label;
}

static const int shown[] = {0, 1, 2, 3, 5, 7}; /* places of which tables tell */

static void print_share(const struct share *share)
{
    alpha_command_print(share_mean(share));
}

/* least: what came seldomer is not told */
static void print_places(const struct share place[ALPHA_DEPTH], double least)
{
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        alpha_command_print(place[shown[i]].weight >= least ? share_mean(&place[shown[i]]) : NAN);
    putchar('\n');
}

static void print_result(const struct command *command, const struct alpha_result *result)
{
    printf("%d tokens of the target's own in %d text%s, temperature %g", result->tokens, result->texts, result->texts == 1 ? "" : "s",
           command->draft[0].request.sampling.temperature);
    if (command->draft[0].rounds.draft_temperature >= 0 && draws_q(&command->draft[0]))
        printf(" (drafts: %g)", command->draft[0].rounds.draft_temperature);
    printf(".\n");
    cores_put_busy(command->load, stdout);
    printf("\n%-32s  alpha  error  greedy  drafts      c   accepted at place 1, 2, 3, 4, 6, 8\n", "draft");
    for (int d = 0; d < command->terms.drafts; d++) {
        const struct alpha_figures *figures = &result->draft[d];

        printf("%-32s ", name_of(command, d).text);
        print_share(&figures->alpha);
        putchar(' ');
        alpha_command_print(share_error(&figures->alpha));
        printf("  ");
        print_share(&figures->agreement);
        printf("  ");
        print_share(&figures->proposals);
        printf(" %6.3f  ", figures->c);
        print_places(figures->place, 0);
    }
    printf("alpha: what p and q share, the part of drafts that is accepted; error: its standard error over texts; greedy: one likeliest token;\n"
           "drafts: places where it proposes; c: a step of its own over one of the target's; a place: where all before it were accepted.\n");
}

/* Are the choices of the draft known, and not only the text that it copies? */
static int knows_choices(const struct alpha_figures *figures)
{
    return figures->among[0]->texts > 0;
}

/* How wide a tree pays. */
static void print_best(const struct command *command, const struct alpha_result *result)
{
    printf("\nThe target's token is among a draft's first 1, 2, 3 .. choices (--tree):\n%-32s", "draft");
    for (int n = 0; n < ALPHA_GUESSES; n++)
        printf("%6d", n + 1);
    putchar('\n');
    for (int d = 0; d < command->terms.drafts; d++) {
        double among = 0;

        printf("%-32s", name_of(command, d).text);
        for (int n = 0; n < ALPHA_GUESSES; n++) {
            among += share_mean(&result->draft[d].bonus[n]);
            alpha_command_print(knows_choices(&result->draft[d]) ? among : NAN);
        }
        putchar('\n');
    }
}

/* How deep one goes that is so wide, where more than a few came so far. */
static void print_depths(const struct command *command, const struct alpha_result *result)
{
    printf("\nOf a tree whose every node has a draft's first N choices: the target's token is among them, where it was at all places before:\n"
           "%-32s  N  at place 1, 2, 3, 4, 6, 8\n",
           "draft");
    for (int d = 0; d < command->terms.drafts; d++)
        for (int n = 0; n < ALPHA_BEST && (n == 0 || knows_choices(&result->draft[d])); n++) {
            printf("%-32s  %d  ", n == 0 ? name_of(command, d).text : "", n + 1);
            print_places(result->draft[d].among[n], FEW);
        }
}

/* A table by draft and number of drafts. */
static void print_rounds(const struct command *command, const struct alpha_result *result, const char *title,
                         void (*cell)(const struct alpha_result *result, int draft, int which))
{
    printf("\n%s\n%-32s", title, "draft");
    for (int i = 0; i < ALPHA_LENGTHS; i++)
        printf("           K %d", alpha_lengths[i]);
    putchar('\n');
    for (int d = 0; d < command->terms.drafts; d++) {
        printf("%-32s", name_of(command, d).text);
        for (int i = 0; i < ALPHA_LENGTHS; i++)
            cell(result, d, i);
        putchar('\n');
    }
}

static void print_tokens(const struct alpha_result *result, int draft, int which)
{
    printf("   %4.2f / %4.2f", alpha_tokens_by_place(&result->draft[draft], alpha_lengths[which]),
           alpha_tokens_by_mean(&result->draft[draft], alpha_lengths[which]));
}

static void print_speedup(const struct alpha_result *result, int draft, int which)
{
    printf("   %4.2f / %4.2f", alpha_speedup(result, draft, which, 1), alpha_speedup(result, draft, which, 0));
}

static void print_all(const struct command *command, const struct alpha_result *result)
{
    char title[160];

    print_result(command, result);
    print_best(command, result);
    print_depths(command, result);
    print_rounds(command, result, "Tokens of a round with K drafts, by place / if alpha held at each:", print_tokens);
    snprintf(title, sizeof title,
             "Speed over the target alone, predicted for ranks of %d thread%s: each round waits for its drafts / none does:", result->threads,
             result->threads == 1 ? "" : "s");
    print_rounds(command, result, title, print_speedup);
    printf("v, a step with K drafts over one without:");
    for (int i = 0; i < ALPHA_LENGTHS; i++)
        printf("%s K %d %.2f", i == 0 ? "" : ",", alpha_lengths[i], result->v[i]);
    putchar('\n');
}

static json_t *share_json(const struct share *share)
{
    return json_pack("{s:o, s:o}", "mean", alpha_command_number(share_mean(share)), "error", alpha_command_number(share_error(share)));
}

/* What a drafter's time, and that of what it sends, follow from. */
static json_t *running_ahead_json(const struct alpha_figures *figures)
{
    json_t *corrected = json_array(), *bonus = json_array(), *steps = json_array();

    for (int n = 0; n < ALPHA_GUESSES; n++) {
        json_array_append_new(corrected, alpha_command_number(knows_choices(figures) ? share_mean(&figures->corrected[n]) : NAN));
        json_array_append_new(bonus, alpha_command_number(knows_choices(figures) ? share_mean(&figures->bonus[n]) : NAN));
    }
    for (int i = 0; i < ALPHA_ROWS; i++)
        json_array_append_new(steps, json_pack("{s:i, s:f}", "rows", alpha_rows[i], "us", figures->step_us[i]));
    return json_pack("{s:o, s:o, s:o, s:o, s:f}", "guessed_after_rejection", corrected, "guessed_after_all", bonus, "support",
                     alpha_command_number(share_mean(&figures->support)), "step_us", steps, "choose_us", figures->choose_us);
}

/* By how many of its best are looked at. */
static json_t *among_json(const struct alpha_figures *figures)
{
    json_t *choices = json_array();

    for (int n = 0; n < ALPHA_BEST; n++) {
        json_t *place = json_array();

        for (int k = 0; k < ALPHA_DEPTH; k++)
            json_array_append_new(place, share_json(&figures->among[n][k]));
        json_array_append_new(choices, json_pack("{s:i, s:o}", "choices", n + 1, "at_place", place));
    }
    return choices;
}

static json_t *draft_json(const struct command *command, int d, const struct alpha_result *result)
{
    const struct alpha_figures *figures = &result->draft[d];
    json_t *place = json_array(), *tokens = json_array(), *speedups = json_array(), *object;

    for (int k = 0; k < ALPHA_DEPTH; k++) {
        json_array_append_new(place, share_json(&figures->place[k]));
        json_array_append_new(tokens, json_pack("{s:i, s:o, s:o}", "draft_length", k + 1, "by_place",
                                                alpha_command_number(alpha_tokens_by_place(figures, k + 1)), "by_alpha",
                                                alpha_command_number(alpha_tokens_by_mean(figures, k + 1))));
    }
    for (int i = 0; i < ALPHA_LENGTHS; i++)
        json_array_append_new(speedups, json_pack("{s:i, s:o, s:o}", "draft_length", alpha_lengths[i], "waits",
                                                  alpha_command_number(alpha_speedup(result, d, i, 1)), "ahead",
                                                  alpha_command_number(alpha_speedup(result, d, i, 0))));
    object = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "draft",
                       json_text_string(command->name[d] != NULL ? command->name[d] : "embedded"), "alpha",
                       alpha_command_number(share_mean(&figures->alpha)), "alpha_error", alpha_command_number(share_error(&figures->alpha)),
                       "divergence", alpha_command_number(1 - share_mean(&figures->overlap)), "greedy_agreement", share_json(&figures->agreement),
                       "proposals", share_json(&figures->proposals), "c", alpha_command_number(figures->c), "accepted_at_place", place,
                       "tokens_per_round", tokens, "predicted_speedup", speedups);
    json_object_update_new(object, running_ahead_json(figures));
    json_object_set_new(object, "among_best", among_json(figures));
    return object;
}

static enum status write_json(const struct command *command, const struct alpha_result *result)
{
    const struct options *options = &command->draft[0];
    const struct sampling *sampling = &options->request.sampling;
    json_t *root =
        json_pack("{s:o, s:i, s:i, s:f, s:s, s:o}", "target", json_text_string(options->model.target != NULL ? options->model.target : "embedded"),
                  "texts", result->texts, "tokens", result->tokens, "temperature", sampling->temperature, "accept", rule_name(sampling->accept),
                  "draft_temperature", options->rounds.draft_temperature >= 0 ? json_real(options->rounds.draft_temperature) : json_null());
    json_t *drafts = json_array(), *v = json_array();

    for (int d = 0; d < command->terms.drafts; d++)
        json_array_append_new(drafts, draft_json(command, d, result));
    for (int i = 0; i < ALPHA_LENGTHS; i++)
        json_array_append_new(v, json_pack("{s:i, s:f}", "rows", alpha_lengths[i] + 1, "v", result->v[i]));
    json_object_set_new(root, "threads", json_integer(result->threads));
    json_object_set_new(root, "prompts", json_text_string(options->input.prompts != NULL ? options->input.prompts : "-"));
    json_object_set_new(root, "step_us", json_real(result->step_us));
    json_object_set_new(root, "v", v);
    json_object_set_new(root, "drafts", drafts);
    return alpha_command_write_json(command->json, root);
}

static enum status run(struct command *command, int argc, char **argv)
{
    struct alpha_result result;

    command->load = cores_load();
    TRY(take_own(command, argc, argv));
    TRY(parse_all(command));
    TRY(alpha_command_check_json(command->json, command->terms.draft, command->terms.drafts));
    TRY(alpha_measure(&command->terms, &result));
    if (result.tokens == 0) {
        log_error("no prompt could be completed");
        return STATUS_DATA;
    }
    print_all(command, &result);
    return command->json != NULL ? write_json(command, &result) : STATUS_OK;
}

int main(int argc, char **argv)
{
    static struct command command = {.terms.tokens = TOKENS};
    enum status status;

    log_init("tandem alpha", LOG_INFO);
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0) {
            print_usage();
            return standard_output_end(0);
        }
    command.argv = calloc((size_t)argc + 1, sizeof *command.argv);
    if (command.argv == NULL)
        return STATUS_INTERNAL;
    status = run(&command, argc, argv);
    for (int d = 0; d < command.terms.drafts; d++)
        options_release(&command.draft[d]);
    free(command.argv);
    return standard_output_end((int)status);
}
