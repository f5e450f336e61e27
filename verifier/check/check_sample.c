#include "verifier/check/check_sample.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "verifier/check/check.h"
#include "verifier/check/check_law.h"
#include "verifier/check/check_row.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Requests of this check are numbered from here on: their random numbers are not those of the prompts. */
enum { FIRST_REQUEST = 1 << 20, PLACES_TRIED = 8 };
#define NEARLY_CERTAIN 0.9
#define ALARM          (CHECK_ALARM / 4)

/* One text under test, and the memory for it. */
struct trial {
    struct check *check;
    struct check_law law;
    int32_t *text;  /* [context] */
    int count;      /* tokens of the text */
    float *logits;  /* [vocab] */
    struct scored_token *order; /* [vocab] */
    double *kept;   /* [vocab] */
    double *p1, *q1;            /* [vocab] */
    double *p2, *q2;            /* [CHECK_LAW_FOLLOWED][vocab] */
    struct request *request;    /* [samples] */
    int32_t (*pair)[2];         /* [samples] the first two tokens of each */
    uint32_t first;             /* number of the first request */
};

static enum status open_trial(struct trial *trial, struct check *check)
{
    size_t vocab = (size_t)check->job->model->vocab, samples = (size_t)check->sizes.samples;

    *trial = (struct trial){.check = check};
    TRY(check_law_open(&trial->law, (int)vocab));
    trial->text = calloc((size_t)check->job->model->shape.context, sizeof *trial->text);
    trial->logits = calloc(vocab, sizeof *trial->logits);
    trial->order = calloc(vocab, sizeof *trial->order);
    trial->kept = calloc(vocab, sizeof(double));
    trial->p1 = calloc(vocab, sizeof(double));
    trial->q1 = calloc(vocab, sizeof(double));
    trial->p2 = calloc(CHECK_LAW_FOLLOWED * vocab, sizeof(double));
    trial->q2 = calloc(CHECK_LAW_FOLLOWED * vocab, sizeof(double));
    trial->request = calloc(samples, sizeof *trial->request);
    trial->pair = calloc(samples, sizeof *trial->pair);
    if (trial->text != NULL && trial->logits != NULL && trial->order != NULL && trial->kept != NULL && trial->p1 != NULL &&
        trial->q1 != NULL && trial->p2 != NULL && trial->q2 != NULL && trial->request != NULL && trial->pair != NULL)
        return STATUS_OK;
    log_error("no memory for %zu samples of the law", samples);
    return STATUS_INTERNAL;
}

static void close_trial(struct trial *trial)
{
    check_law_close(&trial->law);
    free(trial->text);
    free(trial->logits);
    free(trial->order);
    free(trial->kept);
    free(trial->p1);
    free(trial->q1);
    free(trial->p2);
    free(trial->q2);
    free(trial->request);
    free(trial->pair);
}

/* The exact law of the token after the first `count` of trial->text, of which `cached` were fed. *is_sure: no cut is a matter of rounding. */
static enum status take_law(struct trial *trial, const struct request *request, int cached, int count, double *p, int *is_sure)
{
    TRY(check_row_take(&trial->check->job->team, request, trial->text, cached, count, trial->logits));
    *is_sure = check_row_law(&request->sampling, trial->logits, trial->law.vocab, trial->order, trial->kept, p);
    return STATUS_OK;
}

static double largest(const double *p, int count)
{
    double most = 0;

    for (int i = 0; i < count; i++)
        most = fmax(most, p[i]);
    return most;
}

/* The laws of the token after the text, and of the ones after its most probable successors. */
static enum status take_laws(struct trial *trial, const struct request *request, int *is_sure)
{
    TRY(take_law(trial, request, 0, trial->count, trial->p1, is_sure));
    check_law_begin(&trial->law, trial->p1);
    for (int i = 0; i < trial->law.followed && *is_sure; i++) {
        trial->text[trial->count] = trial->law.token[i];
        TRY(take_law(trial, request, trial->count, trial->count + 1, trial->p2 + (size_t)i * (size_t)trial->law.vocab, is_sure));
    }
    return STATUS_OK;
}

/* A request that goes on after the text. Nothing ends it before its tokens are there: one more than what is drafted is asked for, so that
 * nothing cuts the first proposal. */
static struct request law_request(const struct trial *trial, int prompt, int draft_length)
{
    struct request request = check_request(trial->check, &trial->check->prompt[prompt], check_rule(trial->check, 1), draft_length);

    request.tokens = trial->text;
    request.prompt_count = trial->count;
    request.max_tokens = draft_length + 1;
    request.ignore_eos = 1;
    request.stops = request.stop_tokens = 0;
    return request;
}

/* Text number `at`: a prompt with none, a quarter, a half or three quarters of its solo completion at a temperature; a little later where the next
 * token is nearly certain, for there is little to see there. The choice looks at p alone. Returns 0 for *is_found when none will do. */
static enum status choose_text(struct trial *trial, int prompt, int at, int *is_found)
{
    const struct check *check = trial->check;
    const struct check_output *output = &check->equal.solo[prompt];
    const struct request *request = &check->prompt[prompt];
    struct request asked = law_request(trial, prompt, 1);
    int most = output->count - (output->finish == FINISH_STOP), from = most * (at % 4) / 4;
    int room = check->job->model->longest - request->prompt_count - check->sample.draft_length[1] - 1, is_sure;

    *is_found = 0;
    memcpy(trial->text, request->tokens, (size_t)request->prompt_count * sizeof *trial->text);
    for (int i = 0; i < PLACES_TRIED && from + i <= most && from + i <= room; i++) {
        memcpy(trial->text + request->prompt_count, output->token, (size_t)(from + i) * sizeof *trial->text);
        trial->count = request->prompt_count + from + i;
        asked.prompt_count = trial->count;
        TRY(take_laws(trial, &asked, &is_sure));
        *is_found = is_sure;
        if (is_sure && largest(trial->p1, trial->law.vocab) < NEARLY_CERTAIN)
            return STATUS_OK;
    }
    return STATUS_OK;
}

static void take_q(const struct support *from, int32_t drawn, double *q)
{
    if (from->count == 0)
        q[drawn] = 1; /* a point mass */
    for (int i = 0; i < from->count; i++)
        q[from->id[i]] = (double)from->weight[i] / MESSAGE_Q_SUM;
}

/* What a drafter sends as q is a function of the tokens before it: the same from every request, so it may shape the cells. */
static void see_proposal(void *state, const struct sequence *sequence)
{
    struct trial *trial = state;
    const struct proposal *proposal = sequence_proposal(sequence);
    int32_t before = -1;
    int row = 0, i; /* the draft whose q is that of the second token */

    check_draws_add(&trial->check->draws, &sequence->request->sampling, sequence->request->index, sequence->length, proposal,
                    sequence->merged.is_there ? sequence->merged.source : NULL);
    trial->check->sample.drafted += proposal->count;
    if (sequence->length == trial->count && proposal->count > 0) {
        take_q(&proposal->q[0], proposal->token[0], trial->q1);
        trial->check->sample.tested++;
        before = proposal->token[0];
        row = proposal_child(proposal, 0, 1);
    } else if (sequence->length == trial->count + 1) {
        before = sequence->tokens[trial->count];
    }
    i = before >= 0 && row >= 0 && row < proposal->count ? check_law_followed(&trial->law, before) : -1;
    if (i >= 0)
        take_q(&proposal->q[row], proposal->token[row], trial->q2 + (size_t)i * (size_t)trial->law.vocab);
}

static enum status see_end(void *state, const struct request *request, const struct sequence *sequence)
{
    struct trial *trial = state;

    memcpy(trial->pair[request->index - trial->first], sequence->tokens + trial->count, sizeof *trial->pair);
    return STATUS_OK;
}

static void see_turn(void *state, const struct figures *figures)
{
    const struct trial *trial = state;

    check_progress_within(trial->check, figures->tokens);
}

/* Half of the requests draft one token, half more. */
static void fill_requests(struct trial *trial, int prompt, int at)
{
    const struct check *check = trial->check;

    trial->first = FIRST_REQUEST + (uint32_t)at * (uint32_t)check->sizes.samples;
    for (int i = 0; i < check->sizes.samples; i++) {
        struct request *request = &trial->request[i];

        *request = law_request(trial, prompt, check->sample.draft_length[i % 2]);
        request->index = trial->first + (uint32_t)i;
    }
}

static enum status draw_samples(struct trial *trial)
{
    const struct request_list list = {.request = trial->request, .count = trial->check->sizes.samples};
    const struct lead_watch watch = {.state = trial, .proposal = see_proposal, .end = see_end, .turn = see_turn};
    size_t vocab = (size_t)trial->law.vocab;
    struct figures figures = {0};
    enum status status;

    memset(trial->q1, 0, vocab * sizeof(double));
    memset(trial->q2, 0, CHECK_LAW_FOLLOWED * vocab * sizeof(double));
    status = job_pass(trial->check->job, &list, trial->check->peers, JOB_DRAFTED, 0, &watch, &figures);
    for (int i = 0; i < MESSAGE_MAX_DRAFT; i++) {
        trial->check->sample.place[i].tested += figures.overlap_at[i].tested;
        trial->check->sample.place[i].excess += figures.overlap_at[i].excess;
    }
    check_share_add(&trial->check->sample.share, figures.asked_rounds, figures.answered_rounds, figures.drafted_rounds);
    return status;
}

static void judge(struct trial *trial, struct check_context *context)
{
    struct check_law *law = &trial->law;
    struct check_sample *sample = &trial->check->sample;
    double found, by_chance;

    check_law_cut_first(law, trial->p1, trial->q1);
    for (int i = 0; i < law->followed; i++)
        check_law_cut_second(law, i, trial->p2 + (size_t)i * (size_t)law->vocab, trial->q2 + (size_t)i * (size_t)law->vocab);
    for (int i = 0; i < trial->check->sizes.samples; i++)
        check_law_add(law, trial->pair[i][0], trial->pair[i][1]);
    check_law_distance(law, &found, &by_chance);
    sample->distance += found;
    sample->by_chance += by_chance;
    context->fit = bounds_compare(law->count, law->expected, law->cells);
    context->cells = context->fit.df + 1;
    context->top_p = largest(trial->p1, law->vocab);
    sample->samples += law->samples;
    sample->lean += (double)law->leaning - (double)law->samples * law->lean_expected;
}

static enum status run_context(struct trial *trial, int at)
{
    struct check *check = trial->check;
    struct check_sample *sample = &check->sample;
    int prompt = check->sizes.contexts < check->prompts ? at * check->prompts / check->sizes.contexts : at % check->prompts, is_found;

    TRY(choose_text(trial, prompt, at, &is_found));
    if (!is_found) {
        log_warn("prompt %u has no place where the law can be tested", check->prompt[prompt].index);
        return STATUS_OK;
    }
    fill_requests(trial, prompt, at);
    TRY(draw_samples(trial));
    sample->context[sample->contexts] = (struct check_context){.prompt = (int)check->prompt[prompt].index, .tokens = trial->count};
    judge(trial, &sample->context[sample->contexts++]);
    return STATUS_OK;
}

/* Wilson and Hilferty 1931. */
static double chi_square_p(double g, double df)
{
    double spread = 2 / (9 * df);

    return df > 0 ? erfc((cbrt(g / df) - (1 - spread)) / sqrt(2 * spread)) / 2 : 1;
}

/* A request of L drafts a round tests a draft at place d in L - d rounds at most, as it has L + 1 tokens: so many values of a martingale there are,
 * whatever comes, those that are not tested being 0. Each is in an interval of length 1 that is known before its coins are (Azuma 1967). Sets
 * worst_place and returns the logarithm of a bound on the p-value of all places. */
static double judge_places(struct check_sample *sample)
{
    double worst = INFINITY;
    int places = sample->draft_length[1];

    for (int i = 0; i < places; i++) {
        double most = (double)sample->samples / 2 * (places - i + (i == 0)), excess = sample->place[i].excess;
        double log_p = log(2 * places) - 2 * excess * excess / most;

        if (sample->place[i].tested > 0 && log_p < worst) {
            worst = log_p;
            sample->worst_place = i;
            sample->place_bar = most * bounds_mean(1, most, ALARM / places);
        }
    }
    return fmin(worst, 0);
}

/* Four statistics share the chance of a false alarm: the sum over texts, the worst text, the lean, and what is accepted by place. */
static void sum_up(struct check_sample *sample)
{
    double n = (double)sample->samples, worst = 0;

    for (int i = 0; i < sample->contexts; i++) {
        const struct bounds_fit *fit = &sample->context[i].fit;

        sample->impossible += fit->impossible;
        if (fit->df < 1)
            continue; /* one cell: nothing to see */
        sample->g += fit->g;
        sample->df += fit->df;
        sample->cells += fit->df + 1;
        if (bounds_log_p(fit->g, fit->df) < worst) {
            worst = bounds_log_p(fit->g, fit->df);
            sample->worst = i;
        }
    }
    if (sample->samples == 0)
        return;
    sample->lean /= n;
    sample->distance /= sample->contexts;
    sample->by_chance /= sample->contexts;
    sample->g_bar = bounds_g(sample->df, ALARM);
    sample->worst_bar = bounds_g(sample->context[sample->worst].fit.df, ALARM / sample->contexts);
    sample->lean_bar = bounds_mean(1, n, ALARM);
    sample->log_p = fmin(bounds_log_p(sample->g, sample->df), worst + log(sample->contexts));
    sample->log_p = fmin(sample->log_p, log(2) - 2 * n * sample->lean * sample->lean);
    sample->log_p = fmin(sample->log_p, judge_places(sample));
    sample->log_p = sample->impossible > 0 ? -INFINITY : fmin(0, sample->log_p + log(4));
    sample->p_chi_square = chi_square_p(sample->g, sample->df);
    sample->variation = check_share_found(bounds_variation(sample->df, ALARM, n), sample->tested, sample->samples);
    sample->lean_seen = check_share_found(bounds_mean_found(1, n, ALARM), sample->tested, sample->samples);
}

/* Drafts of the half of the requests that has more than one: so many in a tree that siblings are among them, and in a chain that some stand behind
 * others. */
static int longer_draft(const struct check *check)
{
    int asked = check_draft_length(check), most = check->job->options->rounds.shape.kind == TREE_CHAIN ? 4 : TREE_USUAL;

    return asked < 0 ? most : asked < 2 ? 2 : asked < most ? asked : most;
}

int64_t check_sample_tokens(const struct check *check)
{
    int64_t samples = check->sizes.samples, ones = samples - samples / 2;

    return 2 * ones + (longer_draft(check) + 1) * (samples / 2); /* what is drafted and one more */
}

enum status check_sample_run(struct check *check)
{
    struct check_sample *sample = &check->sample;
    struct trial trial;
    enum status status;

    sample->draft_length[0] = 1;
    sample->draft_length[1] = longer_draft(check);
    sample->context = calloc((size_t)check->sizes.contexts, sizeof *sample->context);
    status = open_trial(&trial, check);
    if (status == STATUS_OK && sample->context == NULL)
        status = STATUS_INTERNAL;
    for (int i = 0; i < check->sizes.contexts && status == STATUS_OK; i++) {
        check_progress(check, 1, i);
        status = run_context(&trial, i);
    }
    close_trial(&trial);
    sum_up(sample);
    return status;
}

int check_sample_holds(const struct check_sample *sample)
{
    return sample->log_p > log(CHECK_ALARM);
}

int check_sample_sees(const struct check_sample *sample)
{
    return sample->variation <= CHECK_SEEN_MOST || sample->lean_seen <= CHECK_SEEN_MOST;
}

void check_sample_release(struct check_sample *sample)
{
    free(sample->context);
}
