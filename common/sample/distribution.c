#include "common/sample/distribution.h"

#include <math.h>

#define LARGEST_SCALE 1e30

DEVICE_CODE float distribution_scale(const struct sampling *sampling)
{
    return sampling->temperature == 0.0 ? 1.0f : (float)fmin(1.0 / sampling->temperature, LARGEST_SCALE);
}

DEVICE_CODE int distribution_truncates(const struct sampling *sampling)
{
    return sampling->top_k > 0 || sampling->top_p < 1.0 || sampling->min_p > 0.0;
}

DEVICE_CODE static double weight(const struct scored_token *best, int i)
{
    return exp((double)best[i].score - (double)best[0].score);
}

/* How many of the first `count` top-p keeps: those before which less than top_p of `mass` lies. 0 when the list ends first. */
DEVICE_CODE static int cut_top_p(const struct sampling *sampling, const struct scored_token *best, int count, int whole, double mass)
{
    double before = 0;

    for (int i = 0; i < count; i++) {
        if (i > 0 && before >= sampling->top_p * mass)
            return i;
        before += weight(best, i);
    }
    return whole || before >= sampling->top_p * mass ? count : 0;
}

/* The first token of the list that min-p drops, or `count`. */
DEVICE_CODE static int cut_min_p(const struct sampling *sampling, const struct scored_token *best, int count)
{
    int first = 1;

    while (first < count && weight(best, first) >= sampling->min_p)
        first++;
    return first;
}

DEVICE_CODE static int normalise(const struct scored_token *best, int kept, double *p)
{
    double mass = 0;

    for (int i = 0; i < kept; i++)
        mass += p[i] = weight(best, i);
    for (int i = 0; i < kept; i++)
        p[i] /= mass;
    return kept;
}

DEVICE_CODE int distribution_truncate(const struct sampling *sampling, const struct scored_token *best, int count, int complete, double sum,
                          double *p)
{
    int kept = count, whole = complete; /* whole: no token outside the list's first `kept` can be kept */
    int cut;
    double mass = sum;

    if (sampling->top_k > 0 && (sampling->top_k <= count || complete)) {
        kept = sampling->top_k < count ? sampling->top_k : count;
        whole = 1;
        mass = 0;
        for (int i = 0; i < kept; i++)
            mass += weight(best, i);
    } else if (sampling->top_k > 0 && sampling->top_p < 1.0) {
        return 0; /* top-p cuts at a share of the mass, which is not known here */
    }
    if (sampling->top_p < 1.0) {
        cut = cut_top_p(sampling, best, kept, whole, mass);
        whole = whole || cut > 0;
        kept = cut > 0 ? cut : kept; /* otherwise top-p ends beyond the list; min-p may still cut within it */
    }
    if (sampling->min_p > 0.0) {
        cut = cut_min_p(sampling, best, kept);
        whole = whole || cut < kept;
        kept = cut;
    }
    return whole ? normalise(best, kept, p) : 0;
}

DEVICE_CODE static int before(const struct scored_token *a, const struct scored_token *b)
{
    return a->score > b->score || (a->score == b->score && a->token < b->token);
}

DEVICE_CODE static void sink(struct scored_token *tokens, int at, int count)
{
    struct scored_token moved = tokens[at];

    for (int child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && before(&tokens[child], &tokens[child + 1]))
            child++;
        if (!before(&moved, &tokens[child]))
            break;
        tokens[at] = tokens[child];
    }
    tokens[at] = moved;
}

DEVICE_CODE void distribution_merge(struct scored_token *tokens, int count, const struct scored_token *more, int more_count)
{
    for (int to = count + more_count - 1; more_count > 0; to--) {
        int is_last = count > 0 && before(&more[more_count - 1], &tokens[count - 1]);

        tokens[to] = is_last ? tokens[--count] : more[--more_count];
    }
}

/* Heap sort: in place, and never quadratic. The heap's top is the token that comes last. */
DEVICE_CODE void distribution_sort(struct scored_token *tokens, int count)
{
    for (int i = count / 2 - 1; i >= 0; i--)
        sink(tokens, i, count);
    for (int end = count - 1; end > 0; end--) {
        struct scored_token last = tokens[0];

        tokens[0] = tokens[end];
        tokens[end] = last;
        sink(tokens, 0, end);
    }
}
