#include "launch/bench/alpha/alpha.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include "common/corpus/corpus_rows.h"
#include "common/sample/choice.h"
#include "common/sample/distribution.h"
#include "common/sample/logits.h"
#include "common/sample/rule.h"
#include "drafter/ngram_index.h"
#include "launch/bench/alpha/reader.h"
#include "verifier/job/launch_check.h"
#include "verifier/round/sequence.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LISTED = 64 }; /* of a row's largest logits, from which guesses are ranked, as drafters do */

/* What a draft said at one token of a text. */
struct point {
    float share; /* sum min(p, q) */
    float ratio; /* min(1, q/p) at the target's token */
    float overlap;  /* sum min(p, q), where a rule that shares noise accepts another share */
    float rejected; /* the probability that what was drafted is */
    int is_there, agrees;
    int bonus, corrected; /* which guess of the draft is the target's token where all was accepted, and after a rejection; ALPHA_GUESSES: none */
    int support;
    int from; /* lookup: the place in the text that it copies from */
};

/* One text on its way. */
struct text {
    const struct request *request; /* NULL: the slot is free */
    int32_t *tokens;               /* [context] */
    int length, generated;
    struct bias bias;
    struct completion completion;
    struct point *point[ALPHA_DRAFTS]; /* [context] each, by generated token */
};

struct draft_side {
    const struct options *options;
    int is_model; /* it has a reader */
    int has_rows; /* of logits: a model's, or those of a file made of texts */
    int vocab;    /* of these rows */
    struct reader reader;
    struct corpus_rows found;
    float *logits;              /* [vocab] a row of these */
    int64_t looking_ns, looked; /* in making so many of them */
    struct arena arena;
    struct ngram_index *index; /* [slots], of lookup */
    int64_t choosing_ns, chosen; /* in drawing so many tokens */
    int is_damaged;              /* which has been told */
};

struct alpha {
    const struct alpha_terms *terms;
    struct alpha_result *result;
    struct reader target;
    struct draft_side draft[ALPHA_DRAFTS];
    struct request_list requests;
    int next;    /* request */
    int context; /* that all of them have */
    int slots;
    struct text *text; /* [slots] */
    struct text **row; /* [slots] those of the current step */
    int rows;
    double *p;                   /* [vocab] */
    int32_t *tally;              /* [vocab] zeros */
    struct scored_token *sorted; /* [vocab] */
    double *kept;                /* [vocab] */
    int32_t argmax;              /* of the current row */
};

static struct history history_of(const struct text *text)
{
    return (struct history){.tokens = text->tokens, .base = text->length, .prompt_count = text->request->prompt_count};
}

/* Puts p of the row into alpha->p: all of the vocabulary, or what top-k, top-p and min-p leave. */
static void weigh(struct alpha *alpha, const struct sampling *sampling, const float *logits, const struct row_stats *stats)
{
    int vocab = alpha->target.model->vocab, count;

    memset(alpha->p, 0, (size_t)vocab * sizeof *alpha->p);
    if (sampling->temperature == 0) {
        alpha->p[stats->argmax] = 1;
        return;
    }
    if (!distribution_truncates(sampling)) {
        for (int v = 0; v < vocab; v++)
            alpha->p[v] = exp((double)logits[v] - (double)stats->max) / stats->sum;
        return;
    }
    for (int v = 0; v < vocab; v++)
        alpha->sorted[v] = (struct scored_token){.score = logits[v], .token = v};
    distribution_sort(alpha->sorted, vocab);
    count = distribution_truncate(sampling, alpha->sorted, vocab, 1, stats->sum, alpha->kept);
    for (int i = 0; i < count; i++)
        alpha->p[alpha->sorted[i].token] = alpha->kept[i];
}

static int shares_noise(const struct text *text)
{
    return rule_draw(&text->request->sampling) == RULE_DRAWS_NOISE;
}

/* The token that the target decodes alone: the argmax of its logits with the noise of a plain draw, or with that which drafts share. */
static int32_t draw(const struct alpha *alpha, const struct text *text, const float *logits)
{
    const struct sampling *sampling = &text->request->sampling;
    struct rng_key key = {.seed = sampling->seed, .request = text->request->index, .position = (uint32_t)text->length};
    enum rng_purpose purpose = rule_of(sampling)->matches ? RNG_NOISE : RNG_RESIDUAL;
    float best = -INFINITY;
    int32_t token = alpha->argmax;

    for (int v = 0; sampling->temperature > 0 && v < alpha->target.model->vocab; v++)
        if (alpha->p[v] > 0) {
            float score = logits[v] + rng_gumbel(&key, purpose, (uint32_t)v);

            if (score > best) {
                best = score;
                token = v;
            }
        }
    return token;
}

static enum status decode(struct alpha *alpha, int row, int32_t *token)
{
    const struct text *text = alpha->row[row];
    const struct history history = history_of(text);
    const struct model *model = alpha->target.model;
    float *logits = reader_logits(&alpha->target, row);
    struct row_stats stats;

    logits_process(&text->request->sampling, &text->bias, &history, logits, 0, model->vocab, alpha->tally);
    model->backend->row.scan(model->context, logits, model->vocab, ROW_SUMS_MASS, &stats);
    if (!isfinite(stats.max)) {
        log_error("request %u: the target gives no finite logit: its weights are damaged", text->request->index);
        return STATUS_DATA;
    }
    alpha->argmax = stats.argmax;
    weigh(alpha, &text->request->sampling, logits, &stats);
    *token = draw(alpha, text, logits);
    return STATUS_OK;
}

/* A draft that is one token, of which q is 1. */
static struct point point_mass(const struct alpha *alpha, int32_t drafted, int32_t token)
{
    return (struct point){.is_there = 1, .share = (float)alpha->p[drafted], .ratio = (float)(drafted == token), .agrees = drafted == alpha->argmax};
}

/* A draft that is drawn from q. */
static struct point point_of_q(const struct alpha *alpha, const struct sparse_q *q, int32_t token)
{
    struct point point = {.is_there = 1, .support = q->count};

    for (int i = 0; i < q->count; i++) {
        double weight = (double)q->weight[i] / SPARSE_Q_SUM, of_target = alpha->p[q->id[i]];

        point.share += (float)fmin(weight, of_target);
        if (q->id[i] == token)
            point.ratio = (float)fmin(1, weight / of_target);
    }
    return point;
}

static double weight_of(const struct sparse_q *q, int32_t token)
{
    for (int i = 0; i < q->count; i++)
        if (q->id[i] == token)
            return (double)q->weight[i] / SPARSE_Q_SUM;
    return 0;
}

/* What a draft model makes of one row of its logits, as in a job. */
struct drafted {
    struct sampling sampling;
    struct row_query query;
    struct sparse_q q; /* none of a point mass */
    int32_t token;
};

/* The draft's row behind a text, the row-th of the step; NULL: it has none. */
static float *logits_of(const struct alpha *alpha, struct draft_side *draft, int row)
{
    const struct history history = history_of(alpha->row[row]);
    int32_t last[CORPUS_ROWS_LONGEST];
    int64_t began = clock_ns();
    int there;

    if (draft->is_model)
        return reader_logits(&draft->reader, row);
    there = corpus_rows_row(&draft->found, last, history_last(&history, last, CORPUS_ROWS_LONGEST), draft->vocab, draft->logits);
    draft->looking_ns += clock_ns() - began;
    draft->looked++;
    return there ? draft->logits : NULL;
}

static void draft_token(struct alpha *alpha, struct draft_side *draft, const struct text *text, float *logits, struct drafted *drafted)
{
    static struct scored_token best[ROW_MAX_ASKED];
    static double p[ROW_MAX_ASKED];
    const struct history history = history_of(text);
    const struct model *model = draft->is_model ? draft->reader.model : alpha->target.model; /* whose backend answers */
    struct sampling *sampling = &drafted->sampling;
    int support = draft->options->rounds.support < draft->vocab ? draft->options->rounds.support : draft->vocab;
    int64_t began = clock_ns();

    *sampling = text->request->sampling;
    drafted->query =
        (struct row_query){.key = {.seed = sampling->seed, .request = text->request->index, .position = (uint32_t)text->length}, .best = best};
    if (draft->options->rounds.draft_temperature >= 0 && rule_draw(sampling) == RULE_DRAWS_Q)
        sampling->temperature = draft->options->rounds.draft_temperature;
    logits_process(sampling, &text->bias, &history, logits, 0, draft->vocab, alpha->tally);
    choice_ask(sampling, support, sampling->temperature == 0 ? ALPHA_GUESSES + 1 : LISTED, &drafted->query);
    drafted->query.scans = 1;
    backend_answer(model->backend, model->context, logits, 0, draft->vocab, NULL, &drafted->query);
    if (!isfinite(drafted->query.stats.max) && !draft->is_damaged) {
        log_warn("--draft %s gives no finite logit: its weights are damaged, and what is told of it is worth nothing", draft->options->model.draft);
        draft->is_damaged = 1;
    }
    drafted->token = choice_draw(sampling, support, draft->vocab, &drafted->query, p, &drafted->q);
    draft->choosing_ns += clock_ns() - began;
    draft->chosen++;
}

/* The place of the target's token among the draft's guesses, as a drafter ranks them that runs ahead; ALPHA_GUESSES: it is none of them.
 * without: a token that is none of them, -1: any may be */
static int guess_of(const struct drafted *drafted, int vocab, int32_t without, int32_t token)
{
    static double p[ROW_MAX_ASKED];
    struct scored_token best[LISTED];
    int32_t guess[ALPHA_GUESSES];
    int count = choice_listed(&drafted->sampling, vocab, &drafted->query, p);

    count = count < LISTED ? count : LISTED;
    memcpy(best, drafted->query.best, (size_t)count * sizeof *best);
    count = choice_rank(&drafted->sampling, &drafted->query.key, without, best, count, ALPHA_GUESSES, guess, NULL);
    for (int i = 0; i < count; i++)
        if (guess[i] == token)
            return i;
    return ALPHA_GUESSES;
}

/* The target's token after a rejection of a draft from q: the argmax of log (p - q) with the noise of such tokens. */
static int32_t correction(struct alpha *alpha, const struct drafted *drafted)
{
    int vocab = alpha->target.model->vocab;
    double *left = alpha->kept;
    float best = -INFINITY;
    int32_t token = alpha->argmax;

    memcpy(left, alpha->p, (size_t)vocab * sizeof *left);
    for (int i = 0; i < drafted->q.count; i++)
        left[drafted->q.id[i]] -= (double)drafted->q.weight[i] / SPARSE_Q_SUM;
    for (int v = 0; v < vocab; v++) {
        float score = left[v] > 0 ? (float)log(left[v]) + rng_gumbel(&drafted->query.key, RNG_RESIDUAL, (uint32_t)v) : -INFINITY;

        if (score > best) {
            best = score;
            token = v;
        }
    }
    return token;
}

/* sum min(p, q) of a draft that is no draw from q: as if it were one. */
static float overlap_of(struct alpha *alpha, const struct draft_side *draft, const struct drafted *drafted, const float *logits)
{
    static struct scored_token best[ROW_MAX_ASKED];
    static double p[ROW_MAX_ASKED];
    static struct sparse_q q;
    const struct model *model = draft->is_model ? draft->reader.model : alpha->target.model;
    struct sampling sampling = drafted->sampling;
    struct row_query query = {.key = drafted->query.key, .best = best};
    int support = draft->options->rounds.support < draft->vocab ? draft->options->rounds.support : draft->vocab;

    for (int i = 0; rule_row(i) != NULL && rule_draw(&sampling) != RULE_DRAWS_Q; i++)
        sampling.accept = i;
    choice_ask(&sampling, support, 0, &query);
    query.scans = 1;
    backend_answer(model->backend, model->context, logits, 0, draft->vocab, NULL, &query);
    (void)choice_draw(&sampling, support, draft->vocab, &query, p, &q);
    return q.count > 0 ? point_of_q(alpha, &q, 0).share : 0;
}

static struct point point_of_rows(struct alpha *alpha, struct draft_side *draft, int row, int32_t token)
{
    static struct drafted drafted;
    const struct text *text = alpha->row[row];
    float *logits = logits_of(alpha, draft, row);
    int vocab = draft->vocab, draws_q;
    struct point point;

    if (logits == NULL)
        return (struct point){.bonus = ALPHA_GUESSES, .corrected = ALPHA_GUESSES};
    draft_token(alpha, draft, text, logits, &drafted);
    draws_q = drafted.q.count > 0;
    point = draws_q ? point_of_q(alpha, &drafted.q, token) : point_mass(alpha, drafted.token, token);
    point.overlap = point.share;
    if (shares_noise(text)) { /* then it is accepted where both draw the same */
        point.overlap = overlap_of(alpha, draft, &drafted, logits);
        point.share = point.ratio;
    }
    point.agrees = drafted.query.stats.argmax == alpha->argmax;
    point.rejected = draws_q ? (float)(1 - fmin(1, alpha->p[drafted.token] / weight_of(&drafted.q, drafted.token))) : (float)(drafted.token != token);
    point.bonus = guess_of(&drafted, vocab, -1, token);
    point.corrected = point.rejected > 0 ? guess_of(&drafted, vocab, drafted.token, draws_q ? correction(alpha, &drafted) : token) : ALPHA_GUESSES;
    return point;
}

static struct point point_of_lookup(const struct alpha *alpha, struct draft_side *draft, int row, int32_t token)
{
    const struct text *text = alpha->row[row];
    struct ngram_index *index = &draft->index[text - alpha->text];
    const struct ngram_text known = {.tokens = text->tokens, .length = text->length};
    struct point point = {0};
    int from;

    ngram_index_grow(index, text->tokens, text->length - 1);
    from = ngram_index_find(index, &known);
    if (from > 0)
        point = point_mass(alpha, text->tokens[from], token);
    point.overlap = point.share;
    point.bonus = point.corrected = ALPHA_GUESSES; /* what it runs ahead with is not known here */
    point.from = from;
    return point;
}

/* Was the draft that began at generated token `first` accepted at its place `depth`, where those before were? A copy goes on from where it began. */
static double accepted_at(const struct draft_side *draft, const struct text *text, const struct point *point, int first, int depth)
{
    int place = text->length - text->generated + first + depth;

    if (draft->has_rows)
        return (double)point[first + depth].ratio;
    return text->tokens[point[first].from + depth] == text->tokens[place];
}

/* Which guess came, where a draft of so much weight left it to the target. */
static void count_guesses(const struct text *text, const struct point *point, struct alpha_figures *figures)
{
    double bonus[ALPHA_GUESSES + 1] = {0}, corrected[ALPHA_GUESSES + 1] = {0}, there = 0, rejected = 0;

    for (int i = 0; i < text->generated; i++) {
        there += point[i].is_there;
        bonus[point[i].bonus] += point[i].is_there;
        rejected += (double)point[i].rejected;
        corrected[point[i].corrected] += (double)point[i].rejected;
    }
    for (int n = 0; n < ALPHA_GUESSES; n++) {
        share_add(&figures->bonus[n], bonus[n], there);
        share_add(&figures->corrected[n], corrected[n], rejected);
    }
}

/* What a text, which has ended, says of a draft's places where all before them were accepted, or where `children` is not 0 of a tree whose every node
 * has so many, the best ones: where the target's token was among them (SpecInfer, table 1, has its first level). */
static void count_places(const struct draft_side *draft, const struct text *text, const struct point *point, int children,
                         struct share place[ALPHA_DEPTH])
{
    double sum[ALPHA_DEPTH] = {0}, weight[ALPHA_DEPTH] = {0};

    for (int first = 0; first < text->generated; first++) {
        double all = point[first].is_there;

        for (int depth = 0; depth < ALPHA_DEPTH && first + depth < text->generated && all > 0; depth++) {
            weight[depth] += all;
            all *= children > 0 ? point[first + depth].bonus < children : accepted_at(draft, text, point, first, depth);
            sum[depth] += all;
        }
    }
    for (int depth = 0; depth < ALPHA_DEPTH; depth++)
        share_add(&place[depth], sum[depth], weight[depth]);
}

static void count_text(struct alpha *alpha, const struct text *text)
{
    for (int d = 0; d < alpha->terms->drafts; d++) {
        struct alpha_figures *figures = &alpha->result->draft[d];
        const struct point *point = text->point[d];
        double share = 0, overlap = 0, agreed = 0, there = 0, support = 0;

        for (int i = 0; i < text->generated; i++) {
            share += point[i].is_there ? (double)point[i].share : 0;
            overlap += point[i].is_there ? (double)point[i].overlap : 0;
            agreed += point[i].agrees;
            support += point[i].support;
            there += point[i].is_there;
        }
        share_add(&figures->alpha, share, there);
        share_add(&figures->overlap, overlap, there);
        share_add(&figures->agreement, agreed, there);
        share_add(&figures->support, support, there);
        share_add(&figures->proposals, there, text->generated);
        count_places(&alpha->draft[d], text, point, 0, figures->place);
        count_guesses(text, point, figures);
        for (int n = 0; n < ALPHA_BEST && alpha->draft[d].has_rows; n++)
            count_places(&alpha->draft[d], text, point, n + 1, figures->among[n]);
    }
    alpha->result->texts++;
}

static enum status open_text(struct alpha *alpha, struct text *text, const struct request *request)
{
    const struct config *config = &alpha->target.model->config;
    int slot = (int)(text - alpha->text), room = alpha->context - request->prompt_count;

    text->request = request;
    text->length = request->prompt_count;
    text->generated = 0;
    memcpy(text->tokens, request->tokens, (size_t)request->prompt_count * sizeof *text->tokens);
    sequence_fill_bias(request, config->eos, config->eos_count, &text->bias);
    TRY(completion_open(&text->completion, request, alpha->target.tokenizer, config->eos, config->eos_count,
                        request->max_tokens < room ? request->max_tokens : room));
    TRY(reader_feed(&alpha->target, slot, text->tokens, text->length - 1));
    for (int d = 0; d < alpha->terms->drafts; d++)
        if (alpha->draft[d].is_model)
            TRY(reader_feed(&alpha->draft[d].reader, slot, text->tokens, text->length - 1));
        else if (!alpha->draft[d].has_rows)
            ngram_index_clear(&alpha->draft[d].index[slot]);
    return STATUS_OK;
}

static void close_text(struct alpha *alpha, struct text *text)
{
    if (text->request == NULL)
        return;
    count_text(alpha, text);
    completion_close(&text->completion);
    text->request = NULL;
}

/* Fills free slots with what is left to read. A line that is wrong is told of, and left out. */
static enum status admit(struct alpha *alpha)
{
    const char *path = alpha->terms->target->input.prompts;

    for (int i = 0; i < alpha->slots; i++)
        while (alpha->text[i].request == NULL && alpha->next < alpha->requests.count) {
            const struct request *request = &alpha->requests.request[alpha->next++];

            if (request->error != NULL)
                log_error("%s%srequest %u: %s", path != NULL ? path : "", path != NULL ? ": " : "", request->index, request->error);
            else if (request->prompt_count >= alpha->context)
                log_error("request %u: the prompt has %d tokens, and a draft's context has room for %d", request->index, request->prompt_count,
                          alpha->context);
            else if (request->max_tokens > 0)
                TRY(open_text(alpha, &alpha->text[i], request));
        }
    return STATUS_OK;
}

static enum status take_token(struct alpha *alpha, int row)
{
    struct text *text = alpha->row[row];
    int32_t token;

    TRY(decode(alpha, row, &token));
    for (int d = 0; d < alpha->terms->drafts; d++)
        text->point[d][text->generated] =
            alpha->draft[d].has_rows ? point_of_rows(alpha, &alpha->draft[d], row, token) : point_of_lookup(alpha, &alpha->draft[d], row, token);
    text->tokens[text->length++] = token;
    text->generated++;
    alpha->result->tokens++;
    (void)completion_push(&text->completion, &token, 1);
    if (text->completion.finish != FINISH_NOT)
        close_text(alpha, text);
    return STATUS_OK;
}

static enum status step(struct alpha *alpha)
{
    alpha->rows = 0;
    for (int i = 0; i < alpha->slots; i++)
        if (alpha->text[i].request != NULL)
            alpha->row[alpha->rows++] = &alpha->text[i];
    for (int d = -1; d < alpha->terms->drafts && alpha->rows > 0; d++) {
        struct reader *reader = d < 0 ? &alpha->target : &alpha->draft[d].reader;

        if (d >= 0 && !alpha->draft[d].is_model)
            continue;
        for (int i = 0; i < alpha->rows; i++)
            reader_add(reader, (int)(alpha->row[i] - alpha->text), alpha->row[i]->length - 1, alpha->row[i]->tokens[alpha->row[i]->length - 1]);
        TRY(reader_run(reader));
    }
    for (int i = 0; i < alpha->rows && alpha->result->tokens < alpha->terms->tokens; i++)
        TRY(take_token(alpha, i));
    progress_made("measuring alpha");
    return STATUS_OK;
}

static enum status read_requests(struct alpha *alpha)
{
    const struct options *options = alpha->terms->target;
    struct chat_template chat;
    struct request_terms terms = {.options = options,
                                  .tokenizer = alpha->target.tokenizer,
                                  .chat = &chat,
                                  .context = alpha->target.model->longest,
                                  .vocab = alpha->target.model->vocab};
    char demo[PATH_MAX];
    enum status status;

    paths_demo("check.jsonl", demo, sizeof demo);
    TRY(chat_template_open(alpha->target.path, (enum chat_family)options->input.chat_family, &chat));
    if (options->input.prompt != NULL)
        status = request_add_text(&alpha->requests, &terms, options->input.prompt, strlen(options->input.prompt));
    else
        status = request_read(&alpha->requests, &terms, options->input.prompts != NULL ? options->input.prompts : demo);
    chat_template_release(&chat);
    return status == STATUS_OK ? request_expect_single(&alpha->requests, "alpha") : status;
}

static enum status open_lookup(struct alpha *alpha, struct draft_side *draft)
{
    const struct options_draft *way = &draft->options->model.draft_way;
    size_t all = arena_round((size_t)alpha->slots * sizeof *draft->index) +
                 (size_t)alpha->slots * ngram_index_bytes(way->min, way->max, alpha->target.model->longest);

    if (way->job) {
        log_error("--draft lookup:job=1 copies from what else a job has by then, expected lookup without it: alpha drafts nothing");
        return STATUS_USAGE;
    }
    TRY(arena_open(&draft->arena, all, "the n-grams"));
    draft->index = arena_take(&draft->arena, (size_t)alpha->slots * sizeof *draft->index);
    for (int i = 0; i < alpha->slots; i++)
        ngram_index_init(&draft->index[i], &draft->arena, way->min, way->max, alpha->target.model->longest);
    return STATUS_OK;
}

static enum status open_found(const struct alpha *alpha, struct draft_side *draft)
{
    const struct options_draft *way = &draft->options->model.draft_way;

    if (way->file != NULL)
        TRY(corpus_rows_open(way->file, options_draft_kind(way)->made_by, &draft->found));
    else
        corpus_rows_random(tokenizer_size(alpha->target.tokenizer), tokenizer_digest(alpha->target.tokenizer), &draft->found);
    draft->vocab = tokenizer_size(alpha->target.tokenizer);
    draft->vocab = options_draft_vocab(draft->options, draft->found.vocab < draft->vocab ? draft->found.vocab : draft->vocab);
    draft->logits = malloc((size_t)draft->vocab * sizeof *draft->logits);
    if (draft->logits != NULL)
        return STATUS_OK;
    log_error("no memory for a row of %d logits", draft->vocab);
    return STATUS_INTERNAL;
}

static enum status check_kind(const struct options_draft_kind *kind)
{
    if (!kind->hears_target)
        return STATUS_OK;
    log_error("--draft %s drafts what the target said of its earlier drafts, expected another one: alpha drafts nothing", kind->name);
    return STATUS_USAGE;
}

static int outputs_of(const struct alpha *alpha)
{
    return alpha->slots > READER_LONGEST ? alpha->slots : READER_LONGEST;
}

static enum status open_models(struct alpha *alpha)
{
    TRY(reader_open(&alpha->target, alpha->terms->target, 0, alpha->slots, outputs_of(alpha)));
    alpha->context = alpha->target.model->longest;
    for (int d = 0; d < alpha->terms->drafts; d++) {
        struct draft_side *draft = &alpha->draft[d];

        draft->options = alpha->terms->draft[d];
        TRY(check_kind(options_draft_kind(&draft->options->model.draft_way)));
        TRY(launch_check(draft->options));
        draft->is_model = options_draft_runs_model(&draft->options->model.draft_way);
        draft->has_rows =
            draft->is_model || draft->options->model.draft_way.file != NULL || options_draft_kind(&draft->options->model.draft_way)->target_tokens;
        if (!draft->is_model) {
            TRY(draft->has_rows ? open_found(alpha, draft) : open_lookup(alpha, draft));
            continue;
        }
        TRY(reader_open(&draft->reader, draft->options, tokenizer_size(alpha->target.tokenizer), alpha->slots, outputs_of(alpha)));
        draft->vocab = draft->reader.model->vocab;
        if (draft->reader.model->longest < alpha->context) {
            alpha->context = draft->reader.model->longest;
            log_warn("--draft %s has a context of %d tokens, the target of %d: no text is longer here", draft->reader.path, alpha->context,
                     alpha->target.model->longest);
        }
    }
    return STATUS_OK;
}

static void *room(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (memory == NULL)
        log_error("no memory for %zu numbers", count);
    return memory;
}

static enum status open_texts(struct alpha *alpha)
{
    size_t vocab = (size_t)alpha->target.model->vocab, context = (size_t)alpha->context;
    int is_there = 1;

    alpha->text = room((size_t)alpha->slots, sizeof *alpha->text);
    alpha->row = room((size_t)alpha->slots, sizeof *alpha->row);
    alpha->p = room(vocab, sizeof *alpha->p);
    alpha->kept = room(vocab, sizeof *alpha->kept);
    alpha->tally = room(vocab, sizeof *alpha->tally);
    alpha->sorted = room(vocab, sizeof *alpha->sorted);
    for (int i = 0; alpha->text != NULL && i < alpha->slots; i++) {
        alpha->text[i].tokens = room(context, sizeof *alpha->text[i].tokens);
        is_there &= alpha->text[i].tokens != NULL;
        for (int d = 0; d < alpha->terms->drafts; d++) {
            alpha->text[i].point[d] = room(context, sizeof *alpha->text[i].point[d]);
            is_there &= alpha->text[i].point[d] != NULL;
        }
    }
    is_there &= alpha->text != NULL && alpha->row != NULL && alpha->p != NULL && alpha->kept != NULL && alpha->tally != NULL && alpha->sorted != NULL;
    return is_there ? STATUS_OK : STATUS_INTERNAL;
}

static void close_all(struct alpha *alpha)
{
    for (int i = 0; alpha->text != NULL && i < alpha->slots; i++) {
        free(alpha->text[i].tokens);
        for (int d = 0; d < alpha->terms->drafts; d++)
            free(alpha->text[i].point[d]);
    }
    free(alpha->text);
    free(alpha->row);
    free(alpha->p);
    free(alpha->kept);
    free(alpha->tally);
    free(alpha->sorted);
    request_release(&alpha->requests);
    for (int d = 0; d < alpha->terms->drafts; d++) {
        arena_close(&alpha->draft[d].arena);
        corpus_rows_close(&alpha->draft[d].found);
        free(alpha->draft[d].logits);
        reader_close(&alpha->draft[d].reader);
    }
    reader_close(&alpha->target);
}

/* A step of fewer rows cannot take longer than one of more: where it did, something else ran. ns: [count], by rising numbers of rows */
static void mend_outliers(double *ns, int count)
{
    for (int i = count - 2; i >= 0; i--)
        ns[i] = fmin(ns[i], ns[i + 1]);
}

/* Of one text, as a job has it that is asked for one thing at a time. */
static enum status time_steps(struct alpha *alpha)
{
    double step[1 + ALPHA_LENGTHS], alone, ns;

    for (int i = 0; i <= ALPHA_LENGTHS; i++)
        TRY(reader_time(&alpha->target, i == 0 ? 1 : alpha_lengths[i - 1] + 1, &step[i]));
    mend_outliers(step, 1 + ALPHA_LENGTHS);
    alone = step[0];
    for (int i = 0; i < ALPHA_LENGTHS; i++)
        alpha->result->v[i] = step[i + 1] / alone;
    alpha->result->step_us = alone / 1000;
    for (int d = 0; d < alpha->terms->drafts; d++) {
        struct draft_side *draft = &alpha->draft[d];
        struct alpha_figures *figures = &alpha->result->draft[d];

        for (int i = 0; i < ALPHA_ROWS && draft->has_rows; i++) {
            ns = draft->looked > 0 ? (double)(alpha_rows[i] * draft->looking_ns) / (double)draft->looked : 0;
            if (draft->is_model)
                TRY(reader_time(&draft->reader, alpha_rows[i], &ns));
            figures->step_us[i] = ns / 1000;
        }
        mend_outliers(figures->step_us, ALPHA_ROWS);
        figures->c = figures->step_us[0] / alpha->result->step_us;
        figures->choose_us = draft->chosen > 0 ? (double)draft->choosing_ns / 1000 / (double)draft->chosen : 0;
    }
    alpha->result->threads = reader_threads(alpha->terms->target);
    return STATUS_OK;
}

static enum status run(struct alpha *alpha)
{
    TRY(open_models(alpha));
    TRY(read_requests(alpha));
    TRY(open_texts(alpha));
    TRY(admit(alpha));
    do {
        TRY(step(alpha));
        if (alpha->result->tokens < alpha->terms->tokens)
            TRY(admit(alpha));
    } while (alpha->rows > 0 && alpha->result->tokens < alpha->terms->tokens);
    for (int i = 0; i < alpha->slots; i++)
        close_text(alpha, &alpha->text[i]);
    return time_steps(alpha);
}

enum status alpha_measure(const struct alpha_terms *terms, struct alpha_result *result)
{
    struct alpha alpha = {.terms = terms, .result = result, .slots = terms->target->rounds.max_sequences};
    enum status status;

    *result = (struct alpha_result){0};
    status = run(&alpha);
    close_all(&alpha);
    return status;
}

double alpha_tokens_by_place(const struct alpha_figures *figures, int drafts)
{
    double tokens = 1, all = share_mean(&figures->proposals);

    for (int k = 0; k < drafts && k < ALPHA_DEPTH && figures->place[k].texts > 0; k++) {
        all *= share_mean(&figures->place[k]);
        tokens += all;
    }
    return tokens;
}

double alpha_tokens_by_mean(const struct alpha_figures *figures, int drafts)
{
    double tokens = 1, all = share_mean(&figures->proposals);

    for (int k = 0; k < drafts && all > 0; k++) {
        all *= share_mean(&figures->alpha);
        tokens += all;
    }
    return tokens;
}

double alpha_speedup(const struct alpha_result *result, int draft, int which, int waits)
{
    const struct alpha_figures *figures = &result->draft[draft];
    double there = share_mean(&figures->proposals), round = there * result->v[which] + 1 - there;

    return alpha_tokens_by_place(figures, alpha_lengths[which]) / (round + (waits ? alpha_lengths[which] * figures->c : 0));
}
