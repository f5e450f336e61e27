#include "verifier/check/check_equal.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/sample/rule.h"
#include "verifier/check/check.h"
#include "verifier/check/check_row.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { AROUND = 12 /* tokens of text before a difference, and a third of that after it */ };

struct pass {
    struct check *check;
    struct check_output *outputs;
};

static enum status keep(void *state, const struct request *request, const struct sequence *sequence)
{
    const struct pass *pass = state;
    struct check_output *output = pass->outputs + request->index;
    int from = request->prompt_count;

    output->count = sequence->length - from;
    output->finish = sequence->completion.finish;
    memcpy(output->token, sequence->tokens + from, (size_t)output->count * sizeof *output->token);
    return STATUS_OK;
}

static void see_turn(void *state, const struct figures *figures)
{
    const struct pass *pass = state;

    check_progress_within(pass->check, figures->tokens);
}

/* All prompts once; draft_length 0 is solo. */
static enum status run(struct check *check, int greedy, int draft_length, struct check_output *outputs)
{
    struct request_list list = {.count = check->prompts};
    struct pass pass = {.check = check, .outputs = outputs};
    struct lead_watch watch = {.state = &pass, .end = keep, .turn = see_turn};
    struct figures figures = {0};
    enum status status;

    list.request = calloc((size_t)check->prompts, sizeof *list.request);
    if (list.request == NULL)
        return STATUS_INTERNAL;
    for (int i = 0; i < check->prompts; i++) {
        list.request[i] = check_request(check, &check->prompt[i], check_rule(check, 0), draft_length);
        list.request[i].index = (uint32_t)i;
        if (greedy)
            list.request[i].sampling.temperature = 0;
    }
    status = job_pass(check->job, &list, check->peers, draft_length == 0 ? JOB_SOLO : JOB_DRAFTED, 0, &watch, &figures);
    check->equal.drafted += figures.drafted;
    check->equal.accepted += figures.accepted;
    if (draft_length > 0)
        check_share_add(&check->equal.share, figures.asked_rounds, figures.answered_rounds, figures.drafted_rounds);
    free(list.request);
    return status;
}

/* Text of tokens [from, upto) of an output, cut to it; whole characters. */
static char *text_of(const struct check *check, const struct check_output *output, int from, int upto)
{
    size_t room = 4, used = 0, length;
    struct utf8_stream stream;
    char *text;

    from = from > 0 ? from : 0;
    upto = upto < output->count ? upto : output->count;
    for (int i = from; i < upto; i++) {
        tokenizer_piece(check->job->tokenizer, output->token[i], 0, 0, &length);
        room += 3 * (length + 3);
    }
    text = malloc(room);
    if (text == NULL)
        return NULL;
    utf8_stream_init(&stream);
    for (int i = from; i < upto; i++) {
        const char *piece = tokenizer_piece(check->job->tokenizer, output->token[i], 0, 0, &length);

        used += utf8_stream_push(&stream, piece, length, text + used);
    }
    used += utf8_stream_finish(&stream, text + used);
    text[used] = '\0';
    return text;
}

/* The two best of the row that decided, noise included. */
static void take_margin(const struct sampling *sampling, const struct rng_key *key, const float *logits, int vocab,
                        struct check_difference *difference)
{
    double score[2] = {-INFINITY, -INFINITY};

    for (int32_t t = 0; t < vocab; t++) {
        double here = (double)logits[t] + (sampling->temperature > 0 ? (double)rng_gumbel(key, RNG_NOISE, (uint32_t)t) : 0);
        int place = here > score[0] ? 0 : 1;

        if (here <= score[1])
            continue;
        if (place == 0) {
            score[1] = score[0];
            difference->best[1] = difference->best[0];
        }
        score[place] = here;
        difference->best[place] = t;
    }
    difference->margin = score[0] - score[1];
}

static enum status look_closer(struct check *check, int prompt, struct check_difference *difference)
{
    const struct request *request = &check->prompt[prompt];
    struct request asked = check_request(check, request, check_rule(check, 0), 0);
    int count = request->prompt_count + difference->position, vocab = check->job->model->vocab;
    int32_t *tokens = calloc((size_t)count, sizeof *tokens);
    float *logits = calloc((size_t)vocab, sizeof *logits);
    enum status status = STATUS_INTERNAL;

    if (difference->greedy)
        asked.sampling.temperature = 0;
    difference->rule = rule_of(&asked.sampling)->name;
    const struct rng_key key = {.seed = asked.sampling.seed, .request = (uint32_t)prompt, .position = (uint32_t)count};

    if (tokens != NULL && logits != NULL) {
        memcpy(tokens, request->tokens, (size_t)request->prompt_count * sizeof *tokens);
        memcpy(tokens + request->prompt_count, check->equal.solo[prompt].token, (size_t)difference->position * sizeof *tokens);
        status = check_row_take(&check->job->team, &asked, tokens, 0, count, logits);
        if (status == STATUS_OK)
            take_margin(&asked.sampling, &key, logits, vocab, difference);
    }
    free(tokens);
    free(logits);
    return status;
}

static enum status note_difference(struct check *check, int greedy, int draft_length, int prompt, int position)
{
    struct check_equal *equal = &check->equal;
    const struct check_output *solo = &equal->solo[prompt], *spoken = &equal->spoken[prompt];
    struct check_difference *difference = &equal->difference[equal->differences];

    if (equal->differences == CHECK_EQUAL_SHOWN)
        return STATUS_OK;
    *difference = (struct check_difference){.greedy = greedy,
                                            .draft_length = draft_length,
                                            .prompt = (int)check->prompt[prompt].index,
                                            .position = position,
                                            .solo = position < solo->count ? solo->token[position] : -1,
                                            .drafted = position < spoken->count ? spoken->token[position] : -1};
    difference->solo_text = text_of(check, solo, position - AROUND, position + AROUND / 3);
    difference->drafted_text = text_of(check, spoken, position - AROUND, position + AROUND / 3);
    equal->differences++;
    return look_closer(check, prompt, difference);
}

static enum status compare(struct check *check, int greedy, int draft_length)
{
    struct check_equal *equal = &check->equal;

    for (int i = 0; i < check->prompts; i++) {
        const struct check_output *solo = &equal->solo[i], *spoken = &equal->spoken[i];
        int same = 0;

        while (same < solo->count && same < spoken->count && solo->token[same] == spoken->token[same])
            same++;
        equal->outputs++;
        equal->tokens += same;
        if (same == solo->count && same == spoken->count && solo->finish == spoken->finish)
            continue;
        equal->unequal++;
        TRY(note_difference(check, greedy, draft_length, i, same));
    }
    return STATUS_OK;
}

static struct check_output *open_outputs(const struct check *check)
{
    struct check_output *outputs = calloc((size_t)check->prompts, sizeof *outputs);

    for (int i = 0; outputs != NULL && i < check->prompts; i++) {
        outputs[i].token = calloc((size_t)check->prompt[i].max_tokens + 1, sizeof *outputs[i].token);
        if (outputs[i].token == NULL)
            return NULL; /* the process is about to end, so nothing is freed here */
    }
    return outputs;
}

/* One token, several, and more than usual: each makes its own rows. */
static void choose_lengths(struct check_equal *equal, int asked)
{
    static const int usual[] = {1, 4, 8};

    for (int i = 0; i < CHECK_EQUAL_LENGTHS; i++)
        equal->draft_length[i] = usual[i];
    equal->lengths = CHECK_EQUAL_LENGTHS;
    if (asked > 0) {
        equal->draft_length[1] = asked;
        equal->lengths = asked == 1 ? 1 : 2;
    }
}

enum status check_equal_run(struct check *check)
{
    struct check_equal *equal = &check->equal;
    int at = 0;

    equal->outputs_room = check->prompts;
    equal->solo = open_outputs(check);
    equal->spoken = open_outputs(check);
    if (equal->solo == NULL || equal->spoken == NULL) {
        log_error("no memory for the outputs of %d prompts", check->prompts);
        return STATUS_INTERNAL;
    }
    choose_lengths(equal, check_draft_length(check));
    for (int greedy = 1; greedy >= 0; greedy--) {
        check_progress(check, 0, at++);
        TRY(run(check, greedy, 0, equal->solo));
        for (int l = 0; l < equal->lengths; l++) {
            check_progress(check, 0, at++);
            TRY(run(check, greedy, equal->draft_length[l], equal->spoken));
            TRY(compare(check, greedy, equal->draft_length[l]));
        }
    }
    return STATUS_OK;
}

int check_equal_holds(const struct check_equal *equal)
{
    return equal->unequal == 0;
}

void check_equal_release(struct check_equal *equal)
{
    for (int i = 0; i < equal->outputs_room; i++) {
        free(equal->solo != NULL ? equal->solo[i].token : NULL);
        free(equal->spoken != NULL ? equal->spoken[i].token : NULL);
    }
    free(equal->solo);
    free(equal->spoken);
    for (int i = 0; i < equal->differences; i++) {
        free(equal->difference[i].solo_text);
        free(equal->difference[i].drafted_text);
    }
}
