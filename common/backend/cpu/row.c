/* The operations on one row of logits, each by one thread. */
#include "common/backend/cpu/context.h"

#include <math.h>

void cpu_row_scan(struct backend_context *context, const float *logits, int count, enum row_sums sums, struct row_stats *stats)
{
    struct scored_token best = {.score = -INFINITY};

    context->kernels->row_max(logits, 1.0f, 0, count, &best);
    *stats = (struct row_stats){.max = best.score, .argmax = best.token};
    if (sums != ROW_SUMS_NONE)
        stats->sum = context->kernels->row_sum(logits, 1.0f, count, best.score);
    if (sums == ROW_SUMS_BELOW)
        stats->below = context->kernels->row_below(logits, 1.0f, count, best.score);
}

void cpu_row_gumbel_max(struct backend_context *context, const float *logits, int count, int32_t first_token, const struct rng_key *key,
                  enum rng_purpose purpose, const uint32_t *excluded, struct scored_token *winner)
{
    *winner = (struct scored_token){.score = -INFINITY, .token = -1};
    context->kernels->row_gumbel_max(logits, 1.0f, 0, count, first_token, key, purpose, excluded, winner);
}

/* Does a come after b in a list, best first? */
static int is_worse(struct scored_token a, struct scored_token b)
{
    return a.score < b.score || (a.score == b.score && a.token > b.token);
}

/* For few tokens, or such as are nearly in order: by insertion. */
static void sort_few(struct scored_token *tokens /* [count] */, int count)
{
    for (int i = 1; i < count; i++) {
        struct scored_token moved = tokens[i];
        int at = i;

        for (; at > 0 && is_worse(tokens[at - 1], moved); at--)
            tokens[at] = tokens[at - 1];
        tokens[at] = moved;
    }
}

/* heap[0] is the worst: moves it down to where it belongs among `count`. */
static void sink(struct scored_token *heap /* [count] */, int at, int count)
{
    struct scored_token moved = heap[at];

    for (int child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && is_worse(heap[child + 1], heap[child]))
            child++;
        if (!is_worse(heap[child], moved))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

/* Turns a heap, worst on top, into a list, best first. */
static void unheap(struct scored_token *heap /* [count] */, int count)
{
    for (int last = count - 1; last > 0; last--) {
        struct scored_token worst = heap[0];

        heap[0] = heap[last];
        heap[last] = worst;
        sink(heap, 0, last);
    }
}

/* The `kept` best of many logits, by a heap of the best so far with the worst on top; the kernel finds the next logit above the worst. Of ties the
 * later one loses, as the lowest id is to win. */
static void top_by_heap(const struct kernels *kernels, const float *logits, float scale, int count, int kept, struct scored_token *best)
{
    for (int i = 0; i < kept; i++)
        best[i] = (struct scored_token){.score = logits[i] * scale, .token = i};
    for (int i = kept / 2 - 1; i >= 0; i--)
        sink(best, i, kept);
    for (int i = kept;; i++) {
        i = kernels->row_find(logits, scale, i, count, best[0].score);
        if (i >= count)
            break;
        best[0] = (struct scored_token){.score = logits[i] * scale, .token = i};
        sink(best, 0, kept);
    }
    unheap(best, kept);
}

/* Shorter rows than BIN_LEAST: a heap is cheaper than clearing the bins, and where all of few tokens are wanted, insertion. Rows beyond BIN_LIMIT put
 * too many tokens into each bin. */
enum { FEW = 64, BINS = 256, BIN_LEAST = 128, BIN_LIMIT = 8192 };

/* Distance from the largest logit in eighths: it never falls when the logit falls, so bins are in order. */
static int bin_of(float largest, float logit)
{
    float eighths = (largest - logit) * 8.0f;

    return eighths < (float)(BINS - 1) ? (int)eighths : BINS - 1;
}

/* Keeps the best `room` of the tokens of the last bin that has any in the list. */
static void push_last(struct scored_token *heap, int *held, int room, struct scored_token token)
{
    if (*held < room) {
        heap[(*held)++] = token;
        for (int i = *held / 2 - 1; *held == room && i >= 0; i--)
            sink(heap, i, room);
    } else if (is_worse(heap[0], token)) {
        heap[0] = token;
        sink(heap, 0, room);
    }
}

/* Where floats are finer than an eighth, a bound that is one too low lies below all of a bin however it is rounded. */
#define FINE 0x1p20f

/* The first token from i on that may be in a bin up to `last`, or `count`. */
static int find_near(const struct kernels *kernels, const float *logits, float scale, int i, int count, float largest, int last)
{
    if (last == BINS - 1 || fabsf(largest) >= FINE)
        return i;
    return kernels->row_find(logits, scale, i, count, largest - (float)(last + 2) / 8.0f);
}

/* The `kept` best of a short row: counted into bins by distance from the largest, then placed bin by bin; bins hold few tokens each. */
static void top_by_bins(const struct kernels *kernels, const float *logits, float scale, int count, int kept, struct scored_token *best)
{
    int start[BINS + 1] = {0}, next[BINS], last = 0, held = 0;
    struct scored_token largest = {.score = -INFINITY};

    kernels->row_max(logits, scale, 0, count, &largest);
    if (!isfinite(largest.score)) { /* there is no finite maximum to measure distances from */
        top_by_heap(kernels, logits, scale, count, kept, best);
        return;
    }
    for (int i = 0; i < count; i++)
        start[bin_of(largest.score, logits[i] * scale) + 1]++;
    for (int b = 0; b < BINS; b++) {
        start[b + 1] += start[b];
        next[b] = start[b];
    }
    while (start[last + 1] < kept)
        last++;
    for (int i = find_near(kernels, logits, scale, 0, count, largest.score, last); i < count;
         i = find_near(kernels, logits, scale, i + 1, count, largest.score, last)) {
        struct scored_token token = {.score = logits[i] * scale, .token = i};
        int bin = bin_of(largest.score, token.score);

        if (bin < last)
            best[next[bin]++] = token;
        else if (bin == last)
            push_last(best + start[last], &held, kept - start[last], token);
    }
    for (int b = 0; b < last; b++)
        sort_few(best + start[b], start[b + 1] - start[b]);
    unheap(best + start[last], kept - start[last]);
}

static void top_of_all(const float *logits, float scale, int count, struct scored_token *best)
{
    for (int i = 0; i < count; i++)
        best[i] = (struct scored_token){.score = logits[i] * scale, .token = i};
    sort_few(best, count);
}

int cpu_row_top_scaled(const struct backend_context *context, const float *logits, float scale, int count, int wanted,
                       struct scored_token *best)
{
    int kept = wanted < count ? wanted : count;

    if (kept <= 0)
        return 0;
    if (kept == count && count <= FEW)
        top_of_all(logits, scale, count, best);
    else if (count >= BIN_LEAST && count <= BIN_LIMIT)
        top_by_bins(context->kernels, logits, scale, count, kept, best);
    else
        top_by_heap(context->kernels, logits, scale, count, kept, best);
    return kept;
}

int cpu_row_top(struct backend_context *context, const float *logits, int count, int wanted, struct scored_token *best)
{
    return cpu_row_top_scaled(context, logits, 1.0f, count, wanted, best);
}
