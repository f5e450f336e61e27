/* The draft model, or a file of texts in its place, which has a row of logits behind a text at once, or none, and nothing to feed. A proposal first
 * feeds what each mirror's cache lacks of the committed tokens (at least the newest one; after full acceptance also d_K, which was drawn and never
 * fed), then one row per sequence and step. Where the backend can draft by itself, all steps are given to it at once.
 *
 * q: the request's own sampling parameters are applied to the draft's logits; the result is cut to a small support, quantised to integer weights, and
 * the token is drawn from these integers, so the q that is sent is exactly the one that was sampled from. In coupled mode the draft takes the argmax
 * with the target's noise, and at temperature 0 the argmax: point masses. */
#include "drafter/draft_model.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/sample/choice.h"
#include "common/sample/distribution.h"
#include "common/sample/logits.h"
#include "common/sample/rule.h"
#include "drafter/draft_broken.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_SHARE = 32 }; /* of SPARSE_Q_SUM: less probable tokens are no guess where q alone is known */

/* Most tokens of a list that is asked for. */
static int room_of(int support, int outputs)
{
    return outputs > 1 && support < LISTED ? LISTED : support;
}

struct sparse_q *draft_model_q(const struct model_draft *state, const struct mirror *mirror, int output)
{
    return &state->q[(mirror->slot * state->outputs + output) * MESSAGE_MAX_DRAFT];
}

struct listed *draft_model_listed(const struct model_draft *state, const struct mirror *mirror, int output)
{
    return &state->listed[(mirror->slot * state->outputs + output) * (MESSAGE_MAX_DRAFT + 1)];
}

/* The target may have tokens that this model has not, added ones: any other stands for them. */
static int32_t token_at(const struct model_draft *state, const struct mirror *mirror, int place)
{
    int32_t token = mirror->tokens[place];

    return token < state->model->config.vocab ? token : 0;
}

void draft_model_add_row(struct model_draft *state, const struct mirror *mirror, int place, int first)
{
    struct rows *rows = &state->rows;
    int r = rows->count++;

    rows->token[r] = token_at(state, mirror, place);
    rows->position[r] = place;
    rows->slot[r] = mirror->slot;
    rows->place[r] = place;
    backend_see_chain(rows, r, first, place - first);
}

void draft_model_add_chain(struct model_draft *state, struct mirror *mirror, int upto, int room)
{
    int first = mirror->cached, end = upto - first < room ? upto : first + room;

    for (; mirror->cached < end; mirror->cached++)
        draft_model_add_row(state, mirror, mirror->cached, first);
}

static enum status model_read(void *opaque, struct mirror *mirror, int rows)
{
    struct model_draft *state = opaque;
    int most = state->model != NULL ? model_prompt_rows(state->model) : 0;

    if (state->found != NULL) { /* a text's last tokens are all that a row depends on */
        mirror->cached = mirror->length - 1;
        return STATUS_OK;
    }
    state->rows.count = 0;
    draft_model_add_chain(state, mirror, mirror->length - 1, rows < most ? rows : most);
    return forward_run(&state->forward, &state->rows, state->asked, 0, state->logits);
}

static void model_copy(void *opaque, struct cache_place from, struct cache_place to, int count)
{
    struct model_draft *state = opaque;

    if (state->model != NULL)
        kv_cache_copy(&state->cache, from, to, count);
}

static uint64_t low_bits(int count)
{
    return count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
}

/* The text that a job's next token follows. */
static struct history text_of(const struct draft_job *job)
{
    const struct mirror *mirror = job->mirror;
    const struct branch *branch = &mirror->ahead.branch[job->branch < 0 ? 0 : job->branch];

    if (job->branch == JOB_TREE)
        return (struct history){.tokens = mirror->tokens,
                                .base = mirror->length,
                                .ancestors = job->node < 0 ? 0 : mirror->tree.path[job->node],
                                .prompt_count = mirror->prompt_count};
    if (job->branch < 0)
        return (struct history){.tokens = mirror->tokens, .base = mirror->length + job->depth, .prompt_count = mirror->prompt_count};
    return (struct history){.tokens = mirror->tokens,
                            .base = mirror->length,
                            .ancestors = low_bits(branch->after) | low_bits(branch->count + 1) << (branch->place - mirror->length),
                            .prompt_count = mirror->prompt_count};
}

/* Is the job's newest token behind others than those that the cache holds in a row: of a branch, or of a tree below its root? */
static int is_apart(const struct draft_job *job)
{
    return job->branch >= 0 || (job->branch == JOB_TREE && job->node >= 0);
}

/* A row that sees the committed tokens, and of those behind them the job's own text. */
static void add_apart(struct model_draft *state, const struct draft_job *job, int place, int position)
{
    struct rows *rows = &state->rows;
    int r = rows->count++;

    rows->token[r] = token_at(state, job->mirror, place);
    rows->position[r] = position;
    rows->slot[r] = job->mirror->slot;
    rows->place[r] = place;
    rows->base[r] = job->mirror->length;
    rows->ancestors[r] = text_of(job).ancestors;
}

/* The rows that a job needs: of a draft's chain, and of the root of a tree, what the cache lacks, of a branch or a tree its newest token. */
static void add_job(struct model_draft *state, const struct draft_job *job)
{
    struct mirror *mirror = job->mirror;

    if (!is_apart(job)) {
        draft_model_add_chain(state, mirror, mirror->length + job->depth, state->max_rows);
    } else if (job->branch == JOB_TREE) {
        add_apart(state, job, mirror->length + job->node, mirror->length - 1 + mirror->tree.depth[job->node]);
    } else {
        const struct branch *branch = &mirror->ahead.branch[job->branch];

        add_apart(state, job, branch->place + branch->count, mirror->length + branch->after + branch->count);
    }
}

static struct rng_key key_at(const struct mirror *mirror, int position)
{
    return (struct rng_key){.seed = mirror->sampling.seed, .request = mirror->line, .position = (uint32_t)position};
}

/* The length of the text that a job drafts for, and in *depth how many drafts there are behind it already. */
static int base_of(const struct draft_job *job, int *depth)
{
    const struct mirror *mirror = job->mirror;

    if (job->branch == JOB_TREE) {
        *depth = job->node < 0 ? 0 : mirror->tree.depth[job->node];
        return mirror->length;
    }
    *depth = job->branch < 0 ? job->depth : mirror->ahead.branch[job->branch].count;
    return mirror->length + (job->branch < 0 ? 0 : mirror->ahead.branch[job->branch].after + 1);
}

struct row_query draft_model_query(const struct model_draft *state, const struct mirror *mirror, int base, int depth, int a, int listed)
{
    struct row_query query = {.key = key_at(mirror, base + depth),
                              .coin = rule_coin(&mirror->sampling, depth),
                              .best = state->best + (size_t)a * (size_t)room_of(state->support, state->outputs)};

    choice_ask(&mirror->sampling, state->support, !listed ? 0 : mirror->sampling.temperature == 0 ? MIRROR_GUESSES + 1 : LISTED, &query);
    stopping_ask(&state->stopping, &query);
    return query;
}

static struct row_query query_of_job(const struct model_draft *state, const struct draft_job *job, int a)
{
    int depth, base = base_of(job, &depth);

    return draft_model_query(state, job->mirror, base, depth, a, state->outputs > 1);
}

enum { ANOTHER_COIN = 1 << 20 }; /* which nothing else throws */

/* Draws wrongly on purpose, for `tandem check --break`. */
static int32_t draw_broken(const struct model_draft *state, const struct branch *branch, const struct row_query *query, const struct sparse_q *q,
                           int32_t token)
{
    if (q->count > 0 && branch != NULL && state->breakage == BREAKAGE_BRANCH_NOISE)
        return draft_broken_noise(q, &query->key);
    if (q->count > 0 && branch != NULL && state->breakage == BREAKAGE_BRANCH_VALUE)
        return draft_broken_likelier(q, token, sparse_q_draw(q, rng_coin16(&query->key, RNG_DRAFT, query->coin + ANOTHER_COIN)));
    return q->count > 0 ? draft_broken_draw(q, state->breakage, rng_coin16(&query->key, RNG_DRAFT, query->coin)) : token;
}

/* The winner of the noise may be none of the largest. */
void draft_model_list(const struct model_draft *state, const struct draft_job *job, const struct row_query *query, struct listed *listed)
{
    int has_winner = !query->gumbel || query->winner.token < 0;

    listed->count = choice_listed(&job->mirror->sampling, state->vocab, query, state->p);
    listed->count = listed->count < LISTED ? listed->count : LISTED;
    for (int i = 0; i < listed->count; i++) {
        listed->best[i] = query->best[i];
        has_winner |= query->best[i].token == query->winner.token;
    }
    if (!has_winner)
        listed->best[listed->count++] = (struct scored_token){
            .score = query->winner.score - rng_gumbel(&query->key, query->purpose, (uint32_t)query->winner.token), .token = query->winner.token};
}

/* Keeps what is known of the row behind the job's drafts so far. */
static void list(const struct model_draft *state, const struct draft_job *job, const struct row_query *query)
{
    struct listed *listed =
        draft_model_listed(state, job->mirror, job->branch < 0 ? job->mirror->output : job->mirror->ahead.branch[job->branch].output);

    listed += job->branch < 0 ? job->mirror->drafted : job->mirror->ahead.branch[job->branch].count;
    if (query != NULL)
        draft_model_list(state, job, query, listed);
    else
        listed->count = 0;
}

/* The draft, or the branch, ends before the job's next token, of which the query tells, or for which there is no row. */
static int stops(const struct model_draft *state, const struct draft_job *job, const struct row_query *query)
{
    struct branch *branch = job->branch < 0 ? NULL : &job->mirror->ahead.branch[job->branch];
    int drafted = branch == NULL ? job->mirror->drafted : branch->count;

    if (query != NULL && !stopping_ends(&state->stopping, &query->stats, drafted, branch == NULL ? &job->mirror->reach : &branch->reach))
        return 0;
    if (branch == NULL)
        return job->mirror->is_stopped = 1;
    branch->wanted = branch->count;
    return branch->is_stopped = 1;
}

/* Draws the next token of a job from the answer to its query. */
static void choose(struct model_draft *state, const struct draft_job *job, const struct row_query *query)
{
    struct mirror *mirror = job->mirror;
    struct branch *branch = job->branch < 0 ? NULL : &mirror->ahead.branch[job->branch];
    struct draft_output *output = job->output;
    struct sparse_q *q = &draft_model_q(state, mirror, branch != NULL ? branch->output : mirror->output)[output->count];
    int32_t token = choice_draw(&mirror->sampling, state->support, state->vocab, query, state->p, q);

    if (state->breakage != BREAKAGE_NONE)
        token = draw_broken(state, branch, query, q, token);
    output->q[output->count] = (struct support){.count = q->count, .id = q->id, .weight = q->weight};
    output->token[output->count++] = token;
    if (branch != NULL)
        mirror->tokens[branch->place + ++branch->count] = token;
    else
        mirror->tokens[mirror->length + mirror->drafted++] = token;
}

int draft_model_is_answered(const struct model_draft *state, const struct mirror *mirror)
{
    return state->model != NULL && state->backend->output.ask != NULL && logits_are_only_scaled(&mirror->sampling, &mirror->bias);
}

/* Lays out and feeds the rows of the jobs, and has the backend answer the queries that it can; the other rows are copied to the host. */
static enum status run_forward(struct model_draft *state, const struct draft_job *jobs, int count)
{
    int fetches = state->backend->output.fetch != NULL;
    struct forward_questions questions = {.first = 0, .queries = state->queries};

    state->rows.count = 0;
    for (int a = 0; a < count; a++) {
        add_job(state, &jobs[a]);
        state->asked[a] = state->rows.count - 1;
    }
    for (int a = 0; a < count; a++)
        if (draft_model_is_answered(state, jobs[a].mirror))
            state->queries[questions.count++] =
                (struct kept_query){a, distribution_scale(&jobs[a].mirror->sampling), query_of_job(state, &jobs[a], a)};
    TRY(forward_begin(&state->forward, &state->rows, state->asked, count, state->logits, &questions));
    for (int a = 0; fetches && a < count; a++)
        if (!draft_model_is_answered(state, jobs[a].mirror))
            state->backend->output.fetch(state->context, a, state->logits + (size_t)a * (size_t)state->vocab);
    return forward_end(&state->forward);
}

/* The rows of the jobs, from the last tokens of their texts; which there are goes to `there`. */
static enum status look_up(struct model_draft *state, const struct draft_job *jobs, int count, char *there)
{
    for (int a = 0; a < count; a++) {
        const struct history text = text_of(&jobs[a]);
        int32_t last[CORPUS_ROWS_LONGEST];
        int known = history_last(&text, last, CORPUS_ROWS_LONGEST);

        if (!is_apart(&jobs[a]))
            jobs[a].mirror->cached = jobs[a].mirror->length + jobs[a].depth;
        there[a] = (char)corpus_rows_row(state->found, last, known, state->vocab, state->logits + (size_t)a * (size_t)state->vocab);
    }
    return STATUS_OK;
}

/* Answers a query from logits in the host's memory. Penalties count the tokens of the job's text. */
static struct row_query answer_here(struct model_draft *state, const struct draft_job *job, int a)
{
    const struct mirror *mirror = job->mirror;
    const struct history history = text_of(job);
    float *logits = state->logits + (size_t)a * (size_t)state->vocab;
    struct row_query query = query_of_job(state, job, a);

    logits_process(&mirror->sampling, &mirror->bias, &history, logits, 0, state->vocab, state->tally);
    backend_answer(state->backend, state->context, logits, 0, state->vocab, NULL, &query);
    return query;
}

enum status draft_model_step(struct model_draft *state, const struct draft_job *jobs, int count, draft_model_taking *take)
{
    char there[count];
    int queries = 0;

    memset(there, 1, (size_t)count);
    TRY(state->found != NULL ? look_up(state, jobs, count, there) : run_forward(state, jobs, count));
    for (int a = 0; a < count; a++) {
        struct row_query here, *query = &here;

        if (!there[a])
            query = NULL;
        else if (draft_model_is_answered(state, jobs[a].mirror))
            query = &state->queries[queries++].query;
        else
            here = answer_here(state, &jobs[a], a);
        take(state, &jobs[a], query);
    }
    return STATUS_OK;
}

void draft_model_take_token(struct model_draft *state, const struct draft_job *job, const struct row_query *query)
{
    if (state->outputs > 1)
        list(state, job, query);
    if (job->branch != JOB_LOOK && !stops(state, job, query))
        choose(state, job, query);
}

/* Copies that were proposed are not in the cache yet, but for the newest, whose row is asked about. */
static enum status feed_copies(struct model_draft *state, const struct draft_job *job)
{
    struct mirror *mirror = job->mirror;
    int newest = mirror->length + job->depth - 1;

    while (mirror->cached < newest) {
        state->rows.count = 0;
        draft_model_add_chain(state, mirror, newest, model_prompt_rows(state->model));
        TRY(forward_run(&state->forward, &state->rows, state->asked, 0, state->logits));
    }
    return STATUS_OK;
}

/* Where copies are to be proposed for a branch's text, nothing is drafted for it before: they take no time. */
static enum status step_beside_copies(struct model_draft *state, const struct draft_job *jobs, int count)
{
    struct draft_job left[count];
    int some = 0;

    for (int i = 0; i < count; i++) {
        struct branch *branch = jobs[i].branch < 0 ? NULL : &jobs[i].mirror->ahead.branch[jobs[i].branch];

        if (branch != NULL && branch->count == 0 && draft_model_is_to_copy(state, jobs[i].mirror, branch)) {
            branch->wanted = 0;
            continue;
        }
        if (draft_model_copy_rest(state, &jobs[i]))
            continue;
        if (jobs[i].branch == JOB_LOOK)
            TRY(feed_copies(state, &jobs[i]));
        left[some++] = jobs[i];
    }
    return some > 0 ? draft_model_step(state, left, some, draft_model_take_token) : STATUS_OK;
}

static enum status model_step(void *opaque, const struct draft_job *jobs, int count)
{
    struct model_draft *state = opaque;

    return state->copies != NULL ? step_beside_copies(state, jobs, count) : draft_model_step(state, jobs, count, draft_model_take_token);
}

/* Where the device drafted, of a row q alone is known, and of a point mass nothing. */
static void list_support(const struct sparse_q *q, struct listed *listed)
{
    listed->count = 0;
    for (int i = 0; i < q->count && listed->count < LISTED; i++)
        if (q->weight[i] >= LEAST_SHARE)
            listed->best[listed->count++] = (struct scored_token){.score = logf((float)q->weight[i]), .token = q->id[i]};
}

static void model_guess(void *opaque, const struct mirror *mirror, int after, struct guesses *guesses)
{
    const struct model_draft *state = opaque;
    struct listed *listed = &draft_model_listed(state, mirror, mirror->output)[after];
    const struct rng_key key = key_at(mirror, mirror->length + after);
    int32_t drafted = after < mirror->drafted ? mirror->tokens[mirror->length + after] : -1;

    if (after < mirror->drafted && listed->count == 0)
        list_support(&draft_model_q(state, mirror, mirror->output)[after], listed);
    guesses->count = choice_rank(&mirror->sampling, &key, drafted, listed->best, listed->count, MIRROR_GUESSES, guesses->token, NULL);
}

/* Step by step, as long as any of them wants a token. */
static enum status propose_here(struct model_draft *state, struct mirror *const *mirrors, int count, struct draft_output *const *outputs)
{
    struct draft_job jobs[count];
    int asking;

    do {
        asking = 0;
        for (int i = 0; i < count; i++)
            if (mirrors[i]->drafted < mirrors[i]->wanted && !mirrors[i]->is_stopped)
                jobs[asking++] = (struct draft_job){.mirror = mirrors[i], .branch = JOB_DRAFT, .output = outputs[i], .depth = mirrors[i]->drafted};
        if (asking > 0)
            TRY(model_step(state, jobs, asking));
    } while (asking > 0);
    return STATUS_OK;
}

static enum status propose_chains(struct model_draft *state, struct mirror *const *mirrors, int count, struct draft_output *const *outputs)
{
    int drafted = 0;

    for (int i = 0; i < count; i++) {
        outputs[i]->count = mirrors[i]->drafted;
        drafted += mirrors[i]->drafted;
    }
    if (state->copies != NULL && state->copies->are.cascade)
        return draft_model_propose_cascade(state, mirrors, count, outputs);
    if (drafted == 0 && (state->copies == NULL || state->copies->are.after == 0) && draft_model_is_left_to_device(state, mirrors, count))
        return draft_model_propose_on_device(state, mirrors, count, outputs);
    return propose_here(state, mirrors, count, outputs);
}

static enum status model_propose(void *opaque, struct mirror *const *mirrors, int count, struct draft_output *const *outputs)
{
    struct model_draft *state = opaque;
    char is_copied[count];

    for (int i = 0; i < count; i++)
        is_copied[i] = !draft_model_grows(state, mirrors[i]) && draft_model_copy_first(state, mirrors[i], outputs[i]);
    for (int i = 0; i < count; i++) /* it must not fall behind so far that the text counts as a long one */
        if (is_copied[i] && mirrors[i]->length - mirrors[i]->cached > MESSAGE_LONG_TEXT / 4)
            TRY(model_read(state, mirrors[i], MESSAGE_LONG_TEXT));
    for (int i = 0; i < count; i++)
        while (!is_copied[i] &&
               mirrors[i]->length - mirrors[i]->cached > 2) /* one or two tokens, as usual after a commit, are fed in the first step */
            TRY(model_read(state, mirrors[i], mirrors[i]->length));
    for (int trees = 0; trees < 2; trees++) {
        struct draft_output *to[count];
        struct mirror *some[count];
        int which = 0;

        for (int i = 0; i < count; i++)
            if (!is_copied[i] && draft_model_grows(state, mirrors[i]) == trees) {
                some[which] = mirrors[i];
                to[which++] = outputs[i];
            }
        if (which > 0)
            TRY(trees ? draft_model_propose_trees(state, some, which, to) : propose_chains(state, some, which, to));
    }
    return STATUS_OK;
}

static void model_draft_close(void *opaque)
{
    struct model_draft *state = opaque;

    draft_model_copies_close(state);
    arena_close(&state->arena);
    forward_close(&state->forward);
    kv_cache_close(&state->cache);
    if (state->found != NULL && state->context != NULL)
        state->backend->close(state->context);
    free(state);
}

static void model_break(void *opaque, enum breakage breakage)
{
    ((struct model_draft *)opaque)->breakage = breakage;
}

static void model_stop(void *opaque, const struct stopping *stopping)
{
    ((struct model_draft *)opaque)->stopping = *stopping;
}

static void model_price(void *opaque, double price)
{
    struct model_draft *state = opaque;

    if (state->stopping.kind == STOPPING_BATCH)
        state->stopping.bound = price;
}

static void model_shape(void *opaque, const struct tree_shape *shape)
{
    struct model_draft *state = opaque;

    if (state->tree != NULL)
        state->shape = *shape;
}

/* A file's rows are there at once: nothing is saved. */
static enum status model_copies(void *opaque, const struct draft_copies *copies, int slots, int context)
{
    struct model_draft *state = opaque;

    return state->model != NULL ? draft_model_copies_open(state, copies, slots, context) : STATUS_OK;
}

static enum status model_draft_open(struct draft *draft, const struct draft_parts *terms)
{
    if (terms->found != NULL)
        return draft_open_found(draft, terms->found, terms);
    return draft_open_model(draft, terms->model, terms->slots, terms->support, terms->runs_ahead);
}

const struct draft_kind draft_model_kind = {.name = "model",
                                            .open = model_draft_open,
                                            .propose = model_propose,
                                            .step = model_step,
                                            .guess = model_guess,
                                            .read = model_read,
                                            .copy = model_copy,
                                            .shape = model_shape,
                                            .copies = model_copies,
                                            .stop = model_stop,
                                            .price = model_price,
                                            .draw_wrong = model_break,
                                            .close = model_draft_close};

static enum status lay_out(struct model_draft *state, int slots)
{
    size_t rows = (size_t)state->max_rows, vocab = (size_t)state->vocab, list = (size_t)room_of(state->support, state->outputs);
    size_t words = arena_round(rows * sizeof(int32_t)), jobs = (size_t)state->jobs, outputs = (size_t)(slots * state->outputs);
    size_t supports = outputs * MESSAGE_MAX_DRAFT, lists = state->outputs > 1 ? outputs * (MESSAGE_MAX_DRAFT + 1) : 0;
    size_t trees = state->outputs > 1 ? (size_t)slots : 0;
    size_t bytes = 5 * words + arena_round(rows * sizeof(uint64_t)) + arena_round(jobs * sizeof(int32_t)) +
                   arena_round(jobs * vocab * sizeof(float)) + arena_round(vocab * sizeof(int32_t)) + arena_round(jobs * sizeof(struct kept_query)) +
                   arena_round(jobs * list * sizeof(struct scored_token)) + arena_round(list * sizeof(double)) +
                   arena_round(supports * sizeof(struct sparse_q)) + arena_round(lists * sizeof(struct listed)) +
                   arena_round((size_t)slots * MESSAGE_MAX_DRAFT * sizeof(struct kept_choice)) + arena_round(trees * sizeof *state->tree) +
                   arena_round(trees * sizeof *state->grown);

    TRY(arena_open(&state->arena, bytes, "the draft's rows"));
    arena_expect_gaps(&state->arena);
    state->rows.token = arena_take(&state->arena, words);
    state->rows.position = arena_take(&state->arena, words);
    state->rows.slot = arena_take(&state->arena, words);
    state->rows.place = arena_take(&state->arena, words);
    state->rows.base = arena_take(&state->arena, words);
    state->rows.ancestors = arena_take(&state->arena, rows * sizeof(uint64_t));
    state->asked = arena_take(&state->arena, jobs * sizeof(int32_t));
    state->logits = arena_take(&state->arena, jobs * vocab * sizeof(float));
    state->tally = arena_take(&state->arena, vocab * sizeof(int32_t));
    state->queries = arena_take(&state->arena, jobs * sizeof *state->queries);
    state->best = arena_take(&state->arena, jobs * list * sizeof *state->best);
    state->p = arena_take(&state->arena, list * sizeof(double));
    state->q = arena_take(&state->arena, supports * sizeof *state->q);
    state->listed = arena_take(&state->arena, lists * sizeof *state->listed);
    state->choice = arena_take(&state->arena, (size_t)slots * MESSAGE_MAX_DRAFT * sizeof *state->choice);
    state->tree = trees > 0 ? arena_take(&state->arena, trees * sizeof *state->tree) : NULL;
    state->grown = trees > 0 ? arena_take(&state->arena, trees * sizeof *state->grown) : NULL;
    return STATUS_OK;
}

int draft_jobs(int slots, int runs_ahead)
{
    return runs_ahead && slots < BACKEND_MAX_ROWS ? BACKEND_MAX_ROWS : slots;
}

/* What a draft of rows of so many logits has, whoever makes them. NULL, after a line, without memory. */
static struct model_draft *begin(int vocab, int slots, int support, int runs_ahead)
{
    struct model_draft *state = calloc(1, sizeof *state);

    if (state == NULL) {
        log_error("no memory for a draft");
        return NULL;
    }
    state->vocab = vocab;
    state->support = support < vocab ? support : vocab;
    state->outputs = runs_ahead ? 1 + MIRROR_BRANCHES : 1;
    state->jobs = draft_jobs(slots, runs_ahead);
    return state;
}

enum status draft_open_model(struct draft *draft, struct model *model, int slots, int support, int runs_ahead)
{
    struct model_draft *state = begin(model->vocab, slots, support, runs_ahead);
    enum status status;

    if (state == NULL)
        return STATUS_INTERNAL;
    state->model = model;
    state->backend = model->backend;
    state->context = model->context;
    state->max_rows = model->max_rows;
    TRY_TO(kv_cache_open(&state->cache, model, slots), release);
    TRY_TO(forward_open(&state->forward, model, &state->cache), release);
    TRY_TO(lay_out(state, slots), release);
    *draft = (struct draft){.kind = &draft_model_kind, .state = state};
    return STATUS_OK;

release:
    model_draft_close(state);
    return status;
}

enum status draft_open_found(struct draft *draft, const struct corpus_rows *found, const struct draft_parts *terms)
{
    int vocab = terms->vocab > 0 && terms->vocab < found->vocab ? terms->vocab : found->vocab;
    struct model_draft *state = begin(vocab, terms->slots, terms->support, terms->runs_ahead);
    enum status status;

    if (state == NULL)
        return STATUS_INTERNAL;
    state->found = found;
    state->backend = &backend_cpu;
    state->max_rows = state->jobs;
    const struct backend_options options = {.threads = 1, .max_rows = state->max_rows, .max_vocab = vocab};

    TRY_TO(state->backend->open(&options, &state->context), release);
    TRY_TO(lay_out(state, terms->slots), release);
    *draft = (struct draft){.kind = &draft_model_kind, .state = state};
    return STATUS_OK;

release:
    model_draft_close(state);
    return status;
}
