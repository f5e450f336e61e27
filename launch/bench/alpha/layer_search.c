#include "launch/bench/alpha/layer_search.h"

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include "common/text/chat_template.h"
#include "launch/bench/alpha/reader.h"
#include "verifier/job/launch_check.h"
#include "verifier/request/completion.h"
#include "verifier/request/request.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = 8,    /* texts that are decoded at once */
    OUTPUTS = 64, /* rows of logits of a step */
    TRIES = 6,    /* sets that are judged for each layer that goes */
    LEAST_TEXTS = 2,
};

struct text {
    const struct request *request;
    int32_t *tokens; /* [prompt + room] */
    int prompt, length, room;
};

struct search {
    const struct layer_terms *terms;
    struct reader reader;
    struct request_list requests;
    struct text *text; /* [texts]; every other one judges, the others are told of */
    int texts, tokens;
    struct model *whole, part; /* all layers, and those that a set leaves, of the same weights */
    int *cost;                 /* [layers] tokens of the judging half that were others when the layer was taken out last */
    char *agrees;              /* [longest text] of the text that was fed last */
};

static int32_t largest(const float *logits, int count)
{
    int best = 0;

    for (int i = 1; i < count; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

static enum status no_memory(void)
{
    log_error("no memory for the texts and layers of a search");
    return STATUS_INTERNAL;
}

static enum status open_texts(struct search *search)
{
    const struct options *options = search->terms->target;
    int context = search->reader.model->longest, most = 0;
    struct chat_template chat;
    const struct request_terms terms = {
        .options = options, .tokenizer = search->reader.tokenizer, .chat = &chat, .context = context, .vocab = search->reader.model->vocab};
    char demo[PATH_MAX];
    enum status status;

    paths_demo("bench.jsonl", demo, sizeof demo);
    TRY(chat_template_open(search->reader.path, (enum chat_family)options->input.chat_family, &chat));
    status = request_read(&search->requests, &terms, options->input.prompts != NULL ? options->input.prompts : demo);
    chat_template_release(&chat);
    TRY(status);
    TRY(request_expect_single(&search->requests, "tandem layers"));
    search->text = calloc((size_t)search->requests.count, sizeof *search->text);
    if (search->text == NULL)
        return no_memory();
    for (int i = 0, tokens = 0; i < search->requests.count && tokens < search->terms->tokens; i++) {
        const struct request *request = &search->requests.request[i];
        struct text *text = &search->text[search->texts];
        int room = context - request->prompt_count, left = search->terms->tokens - tokens, half = (search->terms->tokens + 1) / LEAST_TEXTS;

        if (request->error != NULL)
            log_warn("%s%s%s", options->input.prompts != NULL ? options->input.prompts : "", options->input.prompts != NULL ? ": " : "",
                     request->error);
        if (request->error != NULL || room < 1 || request->max_tokens < 1)
            continue;
        room = request->max_tokens < room ? request->max_tokens : room;
        room = room < left ? room : left;
        text->request = request;
        text->room = room < half ? room : half;
        text->prompt = text->length = request->prompt_count;
        text->tokens = malloc((size_t)(text->prompt + text->room) * sizeof *text->tokens);
        if (text->tokens == NULL)
            return no_memory();
        memcpy(text->tokens, request->tokens, (size_t)text->prompt * sizeof *text->tokens);
        search->texts++;
        tokens += text->room;
        most = text->prompt + text->room > most ? text->prompt + text->room : most;
    }
    search->agrees = malloc((size_t)most + 1);
    if (search->agrees == NULL)
        return no_memory();
    if (search->texts >= LEAST_TEXTS)
        return STATUS_OK;
    log_error("%d prompt%s can be completed, expected %d or more: half of the texts choose layers, and the others say what the choice is worth",
              search->texts, search->texts == 1 ? "" : "s", LEAST_TEXTS);
    return STATUS_DATA;
}

/* So many texts from `text` on, each in a slot of its own, by the target alone.  completion: [texts], open */
static enum status decode(struct search *search, struct text *text, struct completion *completion, int texts)
{
    struct reader *reader = &search->reader;

    for (int i = 0; i < texts; i++)
        TRY(reader_feed(reader, i, text[i].tokens, text[i].length - 1));
    for (;;) {
        int row[SLOTS], rows = 0;

        for (int i = 0; i < texts; i++)
            if (completion[i].finish == FINISH_NOT) {
                row[rows++] = i;
                reader_add(reader, i, text[i].length - 1, text[i].tokens[text[i].length - 1]);
            }
        if (rows == 0)
            return STATUS_OK;
        TRY(reader_run(reader));
        for (int r = 0; r < rows; r++) {
            int32_t token = largest(reader_logits(reader, r), reader->model->vocab);

            text[row[r]].tokens[text[row[r]].length++] = token;
            (void)completion_push(&completion[row[r]], &token, 1);
        }
        search->tokens += rows;
        progress_made("decoding texts");
    }
}

static enum status decode_all(struct search *search)
{
    const struct config *config = &search->whole->config;

    for (int first = 0, texts; first < search->texts; first += texts) {
        struct completion completion[SLOTS] = {{0}};
        enum status status = STATUS_OK;

        texts = search->texts - first < SLOTS ? search->texts - first : SLOTS;
        for (int i = 0; i < texts && status == STATUS_OK; i++)
            status = completion_open(&completion[i], search->text[first + i].request, search->reader.tokenizer, config->eos, config->eos_count,
                                     search->text[first + i].room);
        if (status == STATUS_OK)
            status = decode(search, search->text + first, completion, texts);
        for (int i = 0; i < texts; i++)
            completion_close(&completion[i]);
        TRY(status);
    }
    return STATUS_OK;
}

/* The reader computes with the layers that are not in the set. */
static void leave_out(struct search *search, const struct layer_set *skip)
{
    int left = 0;

    for (int i = 0; i < search->whole->config.layers; i++)
        if (!layer_set_has(skip, i))
            search->part.layer[left++] = search->whole->layer[i];
    search->part.config.layers = left;
    search->reader.forward.model = &search->part;
}

struct judged {
    const struct text *text;
    const struct search *search;
    int agree;
};

static void judge_row(void *opaque, int place, const float *logits)
{
    struct judged *judged = opaque;
    int agrees = largest(logits, judged->search->whole->vocab) == judged->text->tokens[place + 1];

    judged->search->agrees[place + 1 - judged->text->prompt] = (char)agrees;
    judged->agree += agrees;
}

/* Tokens of the text that the reader's layers name, too. search->agrees has which. */
static enum status judge(struct search *search, const struct text *text, int *agree)
{
    struct judged judged = {text, search, 0};

    TRY(reader_see(&search->reader, 0, text->tokens, text->length - 1, text->prompt - 1, judge_row, &judged));
    *agree = judged.agree;
    return STATUS_OK;
}

/* Tokens of the judging half that this set does not name. */
static enum status cost_of(struct search *search, const struct layer_set *skip, int *cost)
{
    *cost = 0;
    leave_out(search, skip);
    for (int i = 0; i < search->texts; i += 2) {
        int agree;

        TRY(judge(search, &search->text[i], &agree));
        *cost += search->text[i].length - search->text[i].prompt - agree;
        progress_made("judging layers");
    }
    return STATUS_OK;
}

static void add_text(struct alpha_figures *figures, const char *agrees, int count)
{
    double sum[ALPHA_DEPTH] = {0}, weight[ALPHA_DEPTH] = {0};

    for (int first = 0; first < count; first++)
        for (int k = 0; k < ALPHA_DEPTH && first + k < count; k++) {
            weight[k]++;
            sum[k] += agrees[first + k];
            if (!agrees[first + k])
                break;
        }
    for (int k = 0; k < ALPHA_DEPTH; k++)
        share_add(&figures->place[k], sum[k], weight[k]);
    share_add(&figures->alpha, sum[0], weight[0]);
    share_add(&figures->agreement, sum[0], weight[0]);
    share_add(&figures->proposals, count, count);
}

/* What a set is worth on the other half, and its time, compared with that of all layers right behind it. */
static enum status tell(struct search *search, const struct layer_set *skip, struct layer_step *step)
{
    static const struct layer_set none = {0};
    double ns, step_ns;

    *step = (struct layer_step){.skip = *skip};
    leave_out(search, skip);
    step->left = search->part.config.layers;
    for (int i = 1; i < search->texts; i += 2) {
        int agree;

        TRY(judge(search, &search->text[i], &agree));
        add_text(&step->figures, search->agrees, search->text[i].length - search->text[i].prompt);
    }
    TRY(reader_time(&search->reader, 1, &ns));
    leave_out(search, &none);
    TRY(reader_time(&search->reader, 1, &step_ns));
    step->figures.c = ns / step_ns;
    return STATUS_OK;
}

/* The layer to take out beside those of the set: of the cheapest, by what each cost when it was looked at last, that which is cheapest now. */
static enum status choose(struct search *search, const struct layer_set *out, int *chosen)
{
    int layers = search->whole->config.layers, cost = INT_MAX;
    struct layer_set tried = *out;

    for (int tries = 0; tries < TRIES; tries++) {
        struct layer_set with = *out;
        int next = -1;

        for (int i = 0; i < layers; i++)
            if (!layer_set_has(&tried, i) && (next < 0 || search->cost[i] < search->cost[next]))
                next = i;
        if (next < 0 || search->cost[next] >= cost)
            break; /* it cost more with fewer of them out */
        layer_set_add(&tried, next);
        layer_set_add(&with, next);
        TRY(cost_of(search, &with, &search->cost[next]));
        if (search->cost[next] < cost) {
            cost = search->cost[next];
            *chosen = next;
        }
    }
    return STATUS_OK;
}

static enum status take_out(struct search *search, struct layer_result *result)
{
    int layers = search->whole->config.layers, least = search->terms->least > 0 ? search->terms->least : (layers + 1) / 2;
    struct layer_set out = {0};

    for (int i = 0; i < layers; i++) {
        struct layer_set one = {0};

        layer_set_add(&one, i);
        TRY(cost_of(search, &one, &search->cost[i]));
    }
    while (layers - result->steps > least) {
        struct layer_step *step = &result->step[result->steps];
        int chosen = -1;

        TRY(choose(search, &out, &chosen));
        layer_set_add(&out, chosen);
        TRY(tell(search, &out, step));
        result->steps++;
        log_info("without layer %d%s: %d of %d layers name %.3f of the target's tokens", chosen, result->steps > 1 ? ", too" : "", step->left, layers,
                 share_mean(&step->figures.agreement));
    }
    return STATUS_OK;
}

static enum status run(struct search *search, struct layer_result *result)
{
    int layers = search->whole->config.layers;
    double ns, step_ns;

    if (layers > LAYER_SET_LAYERS || layers < 2) {
        log_error("%s has %d layers, expected 2 to %d", search->reader.path, layers, LAYER_SET_LAYERS);
        return STATUS_DATA;
    }
    if (search->terms->least >= layers) {
        log_error("--least is %d and %s has %d layers, expected fewer", search->terms->least, search->reader.path, layers);
        return STATUS_USAGE;
    }
    TRY(open_texts(search));
    TRY(reader_time(&search->reader, 1, &step_ns));
    for (int i = 0; i < ALPHA_LENGTHS; i++) {
        TRY(reader_time(&search->reader, alpha_lengths[i] + 1, &ns));
        result->v[i] = fmax(ns / step_ns, i > 0 ? result->v[i - 1] : 1); /* more rows never take less */
    }
    result->step_us = step_ns / 1e3;
    log_info("decoding %d texts", search->texts);
    TRY(decode_all(search));
    search->part = *search->whole;
    search->part.layer = malloc((size_t)layers * sizeof *search->part.layer);
    search->cost = calloc((size_t)layers, sizeof *search->cost);
    result->step = calloc((size_t)layers, sizeof *result->step);
    if (search->part.layer == NULL || search->cost == NULL || result->step == NULL)
        return no_memory();
    result->layers = layers;
    result->texts = search->texts;
    result->tokens = search->tokens;
    return take_out(search, result);
}

enum status layer_search(const struct layer_terms *terms, struct layer_result *result)
{
    struct search search = {.terms = terms};
    enum status status;

    *result = (struct layer_result){.threads = reader_threads(terms->target)};
    TRY(launch_check(terms->target));
    TRY(reader_open(&search.reader, terms->target, 0, SLOTS, OUTPUTS));
    search.whole = search.reader.model;
    status = run(&search, result);
    search.reader.forward.model = search.whole;
    for (int i = 0; i < search.texts; i++)
        free(search.text[i].tokens);
    free(search.text);
    free(search.agrees);
    free(search.cost);
    if (search.part.layer != search.whole->layer)
        free(search.part.layer);
    request_release(&search.requests);
    reader_close(&search.reader);
    return status;
}

double layer_speedup(const struct layer_result *result, int step, int which, int waits)
{
    const struct alpha_figures *figures = &result->step[step].figures;
    double drafting = alpha_lengths[which] * figures->c, verifying = result->v[which];

    return alpha_tokens_by_place(figures, alpha_lengths[which]) / (waits ? drafting + verifying : fmax(drafting, verifying));
}
