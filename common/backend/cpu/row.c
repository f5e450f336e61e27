/* The operations on one row of logits. They are short and run in the caller's thread. */
#include "common/backend/cpu/context.h"

void cpu_row_scan(struct backend_context *context, const float *logits, int count, struct row_stats *stats)
{
    context->kernels->row_scan(logits, count, stats);
}

void cpu_row_race(struct backend_context *context, const float *logits, int count, int32_t first_token, const struct rng_key *key,
                  enum rng_purpose purpose, const uint32_t *excluded, struct scored_token *winner)
{
    context->kernels->row_race(logits, count, first_token, key, purpose, excluded, winner);
}

/* Is a to be listed after b? */
static int is_worse(struct scored_token a, struct scored_token b)
{
    return a.score < b.score || (a.score == b.score && a.token > b.token);
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

/* A heap of the best so far, worst on top; the kernel finds the next logit above the worst. Later ties lose, as they should. */
int cpu_row_top(struct backend_context *context, const float *logits, int count, int wanted, struct scored_token *best)
{
    int kept = wanted < count ? wanted : count;

    if (kept <= 0)
        return 0;
    for (int i = 0; i < kept; i++)
        best[i] = (struct scored_token){.score = logits[i], .token = i};
    for (int i = kept / 2 - 1; i >= 0; i--)
        sink(best, i, kept);
    for (int i = kept;; i++) {
        i = context->kernels->row_find(logits, i, count, best[0].score);
        if (i >= count)
            break;
        best[0] = (struct scored_token){.score = logits[i], .token = i};
        sink(best, 0, kept);
    }
    for (int last = kept - 1; last > 0; last--) {
        struct scored_token worst = best[0];

        best[0] = best[last];
        best[last] = worst;
        sink(best, 0, last);
    }
    return kept;
}
