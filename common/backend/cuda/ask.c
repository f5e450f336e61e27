/* Questions about logits that stay on the device. They are written into pinned memory, go over in one copy, and so do the answers; finish
 * takes these to where the queries want them. */
#include "common/backend/cuda/context.h"

#include "common/base/digest.h"
#include <string.h>

static size_t many(int rows)
{
    return (size_t)rows * ROW_MAX_ASKED;
}

size_t ask_bytes(int rows)
{
    size_t all = (size_t)rows, four = arena_round(all * sizeof(int32_t)), offsets = arena_round((all + 1) * sizeof(int32_t));

    return arena_round(all * sizeof(struct rng_key)) + 4 * four + 2 * offsets + 2 * arena_round(many(rows) * sizeof(int32_t)) +
           arena_round(all * sizeof(struct row_stats)) + arena_round(all * sizeof(struct scored_token)) +
           arena_round(many(rows) * sizeof(struct scored_token));
}

void ask_lay_out(struct ask_arrays *arrays, struct arena *arena, int rows)
{
    size_t all = (size_t)rows;

    arrays->key = arena_take(arena, all * sizeof *arrays->key);
    arrays->row = arena_take(arena, all * sizeof *arrays->row);
    arrays->excludes = arena_take(arena, all * sizeof *arrays->excludes);
    arrays->purpose = arena_take(arena, all * sizeof *arrays->purpose);
    arrays->scale = arena_take(arena, all * sizeof *arrays->scale);
    arrays->token_first = arena_take(arena, (all + 1) * sizeof *arrays->token_first);
    arrays->best_first = arena_take(arena, (all + 1) * sizeof *arrays->best_first);
    arrays->token = arena_take(arena, many(rows) * sizeof *arrays->token);
    arrays->stats = arena_take(arena, all * sizeof *arrays->stats);
    arrays->winner = arena_take(arena, all * sizeof *arrays->winner);
    arrays->logit = arena_take(arena, many(rows) * sizeof *arrays->logit);
    arrays->best = arena_take(arena, many(rows) * sizeof *arrays->best);
}

size_t ask_between(const void *from, const void *to)
{
    return (size_t)((const char *)to - (const char *)from);
}

void ask_write(struct ask_arrays *to, int i, const struct kept_query *kept)
{
    const struct row_query *query = &kept->query;

    to->key[i] = query->key;
    to->row[i] = kept->row;
    to->excludes[i] = query->excludes;
    to->purpose[i] = query->gumbel ? (int32_t)query->purpose : -1;
    to->scale[i] = kept->scale;
    for (int t = 0; t < query->tokens; t++)
        to->token[to->token_first[i] + t] = query->token[t];
    to->token_first[i + 1] = to->token_first[i] + query->tokens;
    to->best_first[i + 1] = to->best_first[i] + query->top;
}

static struct kernel_logits rows_of(const struct backend_context *context, int first, int rows)
{
    return (struct kernel_logits){.logits = context->logits,
                                  .rows = rows,
                                  .count = context->logits_columns,
                                  .row = context->ask.row + first,
                                  .scale = context->ask.scale + first};
}

/* The scratch has room for KERNEL_ROWS rows. */
static void find_top(struct backend_context *context, int first, int count)
{
    for (int at = 0; at < count; at += KERNEL_ROWS) {
        int rows = count - at < KERNEL_ROWS ? count - at : KERNEL_ROWS;
        struct top_launch launch = {.from = rows_of(context, first + at, rows),
                                    .best_first = context->ask.best_first + first + at,
                                    .best = context->ask.best,
                                    .scratch = context->top_scratch};

        top_start(&launch, device_stream(context->device));
        device_launched(context->device, "the largest logits");
    }
}

int ask_is_of_all(const struct ask_terms *terms, int rows)
{
    return terms->count == rows && rows <= KERNEL_ROWS && terms->in_order && !terms->tops && !terms->below;
}

struct evidence_launch ask_launch(const struct backend_context *context, int32_t first_token, int first, int count, int gumbel)
{
    const struct ask_arrays *ask = &context->ask;

    return (struct evidence_launch){.from = rows_of(context, first, count),
                                    .key = gumbel ? ask->key + first : NULL,
                                    .purpose = ask->purpose + first,
                                    .first_token = first_token,
                                    .excludes = ask->excludes + first,
                                    .token_first = ask->token_first + first,
                                    .token = ask->token,
                                    .logit = ask->logit,
                                    .stats = ask->stats + first,
                                    .winner = ask->winner + first,
                                    .scratch = context->evidence_scratch};
}

void ask_start(struct backend_context *context, int first, const struct ask_terms *terms)
{
    struct evidence_launch launch = ask_launch(context, terms->first, first, terms->count, terms->gumbel);

    launch.below = terms->below;
    evidence_start(&launch, device_stream(context->device));
    device_launched(context->device, "evidence");
    if (terms->tops)
        find_top(context, first, terms->count);
}

/* The head has made the parts. */
static void ask_join(struct backend_context *context, const struct ask_terms *terms)
{
    struct evidence_launch launch = ask_launch(context, terms->first, 0, terms->count, terms->gumbel);

    launch.from.logits = NULL;
    evidence_join_start(&launch, linear_parts(context->logits_layout, context->logits_columns, device_processors(context->device)),
                        device_stream(context->device));
    device_launched(context->device, "evidence");
}

/* The query again, of this row, for nobody. */
static void write_copy(struct ask_arrays *to, int i, const struct kept_query *of)
{
    struct kept_query copy = *of;

    copy.row = i;
    copy.query.tokens = copy.query.top = 0;
    ask_write(to, i, &copy);
}

uint64_t cuda_ask_begin(struct backend_context *context, int32_t first, struct kept_query *queries, int count, int padded)
{
    struct ask_arrays *asked = &context->pinned_ask;
    struct ask_terms *terms = &context->asking;

    if (context->asked > 0)
        (void)cuda_finish(context); /* the first answers leave the room; a failure stays */
    context_keep_logits(context);
    *terms = (struct ask_terms){.first = first, .count = padded, .in_order = 1};
    context->begun = count;
    asked->token_first[0] = asked->best_first[0] = 0;
    for (int i = 0; i < count; i++) {
        ask_write(asked, i, &queries[i]);
        terms->gumbel |= queries[i].query.gumbel;
        terms->tops |= queries[i].query.top > 0;
        terms->below |= queries[i].query.sums == ROW_SUMS_BELOW;
        terms->in_order &= queries[i].row == i;
    }
    for (int i = count; i < padded; i++)
        write_copy(asked, i, &queries[count - 1]);
    context->queries = queries;
    device_copy_in(context->device, context->ask.key, asked->key, ask_between(asked->key, asked->token + asked->token_first[padded]));
    return digest_bytes(terms, sizeof *terms, DIGEST_EMPTY);
}

void cuda_ask_run(struct backend_context *context)
{
    const struct ask_terms *terms = &context->asking;

    if (context->head.told)
        ask_join(context, terms);
    else
        ask_start(context, 0, terms);
}

void cuda_ask_end(struct backend_context *context)
{
    const struct ask_arrays *asked = &context->pinned_ask, *on_device = &context->ask;

    context->asked = context->begun;
    device_copy_out(context->device, asked->stats, on_device->stats,
                    ask_between(asked->stats, asked->logit + asked->token_first[context->asked]));
    device_copy_out(context->device, asked->best, on_device->best, (size_t)asked->best_first[context->asked] * sizeof *asked->best);
}

void cuda_ask(struct backend_context *context, int32_t first, struct kept_query *queries, int count)
{
    (void)cuda_ask_begin(context, first, queries, count, count);
    cuda_ask_run(context);
    cuda_ask_end(context);
}

void ask_answer(struct backend_context *context)
{
    const struct ask_arrays *from = &context->pinned_ask;

    for (int i = 0; i < context->asked; i++) {
        struct row_query *query = &context->queries[i].query;

        query->stats = from->stats[i];
        query->winner = from->winner[i];
        query->best_count = query->top < context->logits_columns ? query->top : context->logits_columns;
        if (query->logit != NULL)
            memcpy(query->logit, from->logit + from->token_first[i], (size_t)query->tokens * sizeof *query->logit);
        if (query->best_count > 0)
            memcpy(query->best, from->best + from->best_first[i], (size_t)query->best_count * sizeof *query->best);
    }
}

void ask_fetch(struct backend_context *context, int first, int rows, float *to)
{
    size_t columns = (size_t)context->logits_columns;

    for (int done = 0, now; done < rows; done += now) {
        int room = context->fetch_rows - context->fetches;

        if (room == 0) {
            ask_take_rows(context, device_finish(context->device));
            room = context->fetch_rows;
        }
        now = room < rows - done ? room : rows - done;
        device_copy_out(context->device, context->pinned_logits + (size_t)context->fetches * columns,
                        context->logits + (size_t)(first + done) * columns, (size_t)now * columns * sizeof *to);
        for (int r = 0; r < now; r++)
            context->fetched[context->fetches++] = to + (size_t)(done + r) * columns;
    }
}

void cuda_fetch(struct backend_context *context, int row, float *to)
{
    context_keep_logits(context);
    ask_fetch(context, row, 1, to);
}

void ask_take_rows(struct backend_context *context, enum status status)
{
    size_t columns = (size_t)context->logits_columns;

    for (int r = 0; r < context->fetches && status == STATUS_OK; r++)
        memcpy(context->fetched[r], context->pinned_logits + (size_t)r * columns, columns * sizeof(float));
    context->fetches = 0;
}
