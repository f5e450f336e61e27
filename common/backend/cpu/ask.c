/* Answers queries about the rows of a head. Each thread finds the largest logit and the Gumbel-max winner among its panels while it computes them;
 * the best of all threads, and of equals the lowest id, is the row's, however panels are shared out. The sum of exp has an order of its own, and
 * lists, noise that excludes tokens and single logits need the whole row: these follow after the head, one thread per row. */
#include "common/backend/cpu/context.h"

#include <math.h>

static const struct finding nothing = {.best = {.score = -INFINITY, .token = 0}, .winner = {.score = -INFINITY, .token = -1}};

static const float *row_of(const struct backend_context *context, const struct kept_query *kept)
{
    return context->logits + (size_t)kept->row * (size_t)context->logits_columns;
}

static void gumbel_max(const struct backend_context *context, const struct kept_query *kept, int first, int last, const uint32_t *excluded,
                 struct scored_token *winner)
{
    context->kernels->row_gumbel_max(row_of(context, kept), kept->scale, first, last, context->asking.first, &kept->query.key, kept->query.purpose,
                               excluded, winner);
}

/* Goes on with the logits [first, last) of the query's row. */
static void look(const struct backend_context *context, const struct kept_query *kept, int first, int last, struct finding *finding)
{
    if (kept->query.scans)
        context->kernels->row_max(row_of(context, kept), kept->scale, first, last, &finding->best);
    if (kept->query.gumbel && !kept->query.excludes)
        gumbel_max(context, kept, first, last, NULL, &finding->winner);
}

void cpu_ask_clear(const struct backend_context *context, int thread)
{
    for (int i = 0; i < context->asking.count; i++)
        context->scratch[thread].finding[i] = nothing;
}

void cpu_ask_look(const struct backend_context *context, const struct sweep *sweep, int first, int last, int thread)
{
    const struct asking *asking = &context->asking;

    for (int i = 0; i < asking->count; i++) {
        int row = asking->queries[i].row;

        if (row >= sweep->first && row < sweep->first + sweep->count)
            look(context, &asking->queries[i], first, last, &context->scratch[thread].finding[i]);
    }
}

/* Threads have rising panels, so a strictly larger score keeps ties at the lowest index. */
static void keep_better(struct scored_token *kept, struct scored_token found)
{
    if (found.score > kept->score)
        *kept = found;
}

static struct finding join(const struct backend_context *context, int i)
{
    struct finding joined = nothing;

    for (int t = 0; t < pool_threads(context->pool); t++) {
        keep_better(&joined.best, context->scratch[t].finding[i].best);
        keep_better(&joined.winner, context->scratch[t].finding[i].winner);
    }
    return joined;
}

static void gumbel_max_outside(const struct backend_context *context, const struct kept_query *kept, uint32_t *excluded, struct scored_token *winner)
{
    int32_t first = context->asking.first;

    backend_exclude(&kept->query, first, context->logits_columns, excluded, 1);
    gumbel_max(context, kept, 0, context->logits_columns, excluded, winner);
    backend_exclude(&kept->query, first, context->logits_columns, excluded, 0);
}

static void answer(const struct backend_context *context, int i, int thread)
{
    struct kept_query *kept = &context->asking.queries[i];
    struct row_query *query = &kept->query;
    const float *row = row_of(context, kept);
    int columns = context->logits_columns;
    struct finding finding = nothing;

    if (context->asking.found)
        finding = join(context, i);
    else
        look(context, kept, 0, columns, &finding);
    if (query->gumbel && query->excludes)
        gumbel_max_outside(context, kept, context->scratch[thread].excluded, &finding.winner);
    query->winner = finding.winner;
    query->stats = (struct row_stats){.max = finding.best.score, .argmax = finding.best.token};
    if (query->sums != ROW_SUMS_NONE)
        query->stats.sum = context->kernels->row_sum(row, kept->scale, columns, query->stats.max);
    if (query->sums == ROW_SUMS_BELOW)
        query->stats.below = context->kernels->row_below(row, kept->scale, columns, query->stats.max);
    if (query->logit != NULL)
        backend_look_up(query, row, kept->scale, context->asking.first, columns);
    query->best_count = cpu_row_top_scaled(context, row, kept->scale, columns, query->top, query->best);
}

/* Does the answer need the whole row? */
static int is_long(const struct asking *asking, const struct row_query *query)
{
    return query->sums != ROW_SUMS_NONE || query->top > 0 || (query->gumbel && query->excludes) ||
           (!asking->found && (query->scans || query->gumbel));
}

static void answer_part(void *argument, int thread)
{
    const struct backend_context *context = argument;

    for (int i = thread; i < context->asking.count; i += pool_threads(context->pool))
        answer(context, i, thread);
}

uint64_t cpu_ask_begin(struct backend_context *context, int32_t first, struct kept_query *queries, int count, int padded)
{
    (void)padded; /* nothing is recorded */
    context->asking = (struct asking){.first = first, .queries = queries, .count = count};
    return 0;
}

/* The other threads take part only where there are several rows. */
void cpu_ask_run(struct backend_context *context)
{
    const struct asking *asking = &context->asking;
    int many = 0;

    for (int i = 0; i < asking->count; i++)
        many += is_long(asking, &asking->queries[i].query);
    if (many > 1) {
        pool_run(context->pool, answer_part, context);
        return;
    }
    for (int i = 0; i < asking->count; i++)
        answer(context, i, 0);
}

void cpu_ask_end(struct backend_context *context)
{
    context->asking.count = 0;
}

void cpu_ask(struct backend_context *context, int32_t first, struct kept_query *queries, int count)
{
    (void)cpu_ask_begin(context, first, queries, count, count);
    cpu_ask_run(context);
    cpu_ask_end(context);
}
