/* `tandem layers`: which layers a target may do without as its own drafter (layer_search.h). */
#include "launch/bench/alpha/alpha_command.h"
#include "launch/bench/alpha/layer_search.h"

#include "common/base/cores.h"
#include "common/base/log.h"
#include "common/base/standard_output.h"
#include "common/base/try.h"
#include "common/base/wrapped.h"
#include "common/file/json_text.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 1000, TOKENS_MOST = 1000000 };

struct command {
    struct layer_terms terms;
    struct options options;
    const char *json;
    double load; /* of this host before anything was measured */
    int argc; /* what is left for the options of a run, the program's name first */
    char **argv;
};

static void print_usage(void)
{
    wrapped_put_help(stdout,
                     "Usage: tandem layers [--target M] [--prompts FILE] [OPTION]... [options of tandem run]\n"
                     "Looks for the layers that a target may leave out where it drafts for itself (--draft self:skip=LIST): the target decodes the "
                     "prompts, greedily, without penalties and biases, and layers are taken out one after the other, each time of the six that seem "
                     "cheapest the one without which the rest still names the most of these tokens. Half of the texts choose, the other half says "
                     "what each set is worth.\n\n"
                     "  --least N      layers that are left at the end; default half of them\n"
                     "  --tokens N     tokens that the target decodes at most, over all texts; default 1000\n"
                     "  --json FILE    the figures, too\n\n"
                     "Errors are standard errors over texts. Exit codes: 0 done; 64 usage; 65 a model or a prompt; 66 a file that is missing; 74 "
                     "I/O.\n");
}

static enum status no_draft(void)
{
    log_error("--draft is not for tandem layers, which looks for one");
    return STATUS_USAGE;
}

static enum status take(void *state, const char *name, char *value)
{
    struct command *command = state;

    if (strcmp(name, "least") == 0)
        return alpha_command_read(name, value, 1, LAYER_SET_LAYERS - 1, &command->terms.least);
    if (strcmp(name, "tokens") == 0)
        return alpha_command_read(name, value, 2, TOKENS_MOST, &command->terms.tokens);
    if (strcmp(name, "draft") == 0)
        return no_draft();
    command->json = value;
    return STATUS_OK;
}

static enum status parse(struct command *command)
{
    const struct options *options = &command->options;
    static char solo[] = "--solo"; /* the draft is what is looked for */
    static const char *const used[] = {NULL};

    command->argv[command->argc] = NULL;
    command->argv[command->argc++] = solo;
    command->argv[command->argc] = NULL;
    TRY(options_parse(command->argc, command->argv, &command->options));
    command->terms.target = options;
    if (options->model.draft != NULL) /* of a config */
        return no_draft();
    if (options->input.prompt != NULL)
        log_error("--prompt is one text, expected --prompts with two or more: half of them choose");
    else if (options_score_prompts(options))
        log_error("--perplexity is not for tandem layers, which scores no text");
    else {
        TRY(alpha_command_check(options, "layers"));
        alpha_command_say_idle(options, "layers", used, 1);
        return STATUS_OK;
    }
    return STATUS_USAGE;
}

/* The length of drafts by which a set would be fastest. */
static int best_length(const struct layer_result *result, int step, int waits)
{
    int best = 0;

    for (int i = 1; i < ALPHA_LENGTHS; i++)
        if (layer_speedup(result, step, i, waits) > layer_speedup(result, step, best, waits))
            best = i;
    return best;
}

/* The set by which rounds would be fastest. */
static int best_step(const struct layer_result *result, int waits)
{
    int best = 0;

    for (int i = 1; i < result->steps; i++)
        if (layer_speedup(result, i, best_length(result, i, waits), waits) > layer_speedup(result, best, best_length(result, best, waits), waits))
            best = i;
    return best;
}

static void print_best(const struct layer_result *result, int waits, const char *where)
{
    int step = best_step(result, waits), which = best_length(result, step, waits);
    double speedup = layer_speedup(result, step, which, waits);
    char skip[LAYER_SET_TEXT];

    layer_set_write(&result->step[step].skip, skip);
    if (speedup > 1)
        printf("%s: --draft self:skip=%s, K %d, %.2fx the target alone.\n", where, skip, alpha_lengths[which], speedup);
    else
        printf("%s: none pays; the nearest is self:skip=%s, K %d, %.2fx.\n", where, skip, alpha_lengths[which], speedup);
}

static void print_result(const struct layer_result *result, double load)
{
    printf("%d tokens of the target's own in %d text%s; what is told is of the half that has chosen nothing.\n", result->tokens, result->texts,
           result->texts == 1 ? "" : "s");
    cores_put_busy(load, stdout);
    printf("\nlayers  alpha  error      c   fastest: waits / ahead   --draft\n");
    for (int i = 0; i < result->steps; i++) {
        const struct layer_step *step = &result->step[i];
        int waits = best_length(result, i, 1), ahead = best_length(result, i, 0);
        char skip[LAYER_SET_TEXT];

        layer_set_write(&step->skip, skip);
        printf("%6d ", step->left);
        alpha_command_print(share_mean(&step->figures.alpha));
        putchar(' ');
        alpha_command_print(share_error(&step->figures.alpha));
        printf(" %6.3f   K %d %4.2fx / K %d %4.2fx      self:skip=%s\n", step->figures.c, alpha_lengths[waits], layer_speedup(result, i, waits, 1),
               alpha_lengths[ahead], layer_speedup(result, i, ahead, 0), skip);
    }
    printf(
        "error: standard error of alpha over texts; c: a step of these layers over one of all.\n"
        "\nPredicted for ranks of %d thread%s, greedy, without messages; tandem run or bench measures it. What follows is the best of this table.\n",
        result->threads, result->threads == 1 ? "" : "s");
    print_best(result, 1, "Where each round waits for its drafts");
    print_best(result, 0, "Where none does, at most, as the drafter runs ahead");
}

static json_t *step_json(const struct layer_result *result, int i)
{
    const struct layer_step *step = &result->step[i];
    json_t *speedups = json_array();
    char skip[LAYER_SET_TEXT];

    for (int k = 0; k < ALPHA_LENGTHS; k++)
        json_array_append_new(speedups, json_pack("{s:i, s:o, s:o}", "draft_length", alpha_lengths[k], "waits",
                                                  alpha_command_number(layer_speedup(result, i, k, 1)), "ahead",
                                                  alpha_command_number(layer_speedup(result, i, k, 0))));
    layer_set_write(&step->skip, skip);
    return json_pack("{s:o, s:i, s:o, s:o, s:f, s:o}", "draft", json_sprintf("self:skip=%s", skip), "layers", step->left, "alpha",
                     alpha_command_number(share_mean(&step->figures.alpha)), "alpha_error", alpha_command_number(share_error(&step->figures.alpha)),
                     "c", step->figures.c, "predicted_speedup", speedups);
}

static enum status write_json(const struct command *command, const struct layer_result *result)
{
    json_t *root =
        json_pack("{s:o, s:i, s:i, s:i, s:i, s:f}", "target",
                  json_text_string(command->options.model.target != NULL ? command->options.model.target : "embedded"), "layers", result->layers,
                  "texts", result->texts, "tokens", result->tokens, "threads", result->threads, "step_us", result->step_us);
    json_t *steps = json_array();

    for (int i = 0; i < result->steps; i++)
        json_array_append_new(steps, step_json(result, i));
    json_object_set_new(root, "steps", steps);
    return alpha_command_write_json(command->json, root);
}

static enum status run(struct command *command, struct layer_result *result, int argc, char **argv)
{
    static const char *const own[] = {"draft", "json", "least", "tokens", NULL};
    const struct alpha_command_own taken = {"layers", own, take, NULL, command};

    command->load = cores_load();
    TRY(alpha_command_take(&taken, argc, argv, command->argv, &command->argc));
    TRY(parse(command));
    TRY(alpha_command_check_json(command->json, &command->terms.target, 1));
    TRY(layer_search(&command->terms, result));
    print_result(result, command->load);
    return command->json != NULL ? write_json(command, result) : STATUS_OK;
}

int main(int argc, char **argv)
{
    static struct command command = {.terms.tokens = TOKENS};
    static struct layer_result result;
    enum status status;

    log_init("tandem layers", LOG_INFO);
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0) {
            print_usage();
            return standard_output_end(0);
        }
    command.argv = calloc((size_t)argc + 2, sizeof *command.argv);
    if (command.argv == NULL)
        return STATUS_INTERNAL;
    status = run(&command, &result, argc, argv);
    free(result.step);
    options_release(&command.options);
    free(command.argv);
    return standard_output_end((int)status);
}
