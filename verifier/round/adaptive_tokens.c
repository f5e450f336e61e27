#include "verifier/round/adaptive_tokens.h"

#include "common/wire/message.h"
#include <math.h>

#define PRIOR_TESTED 8.0
#define PRIOR_ALPHA  0.7
#define SECOND_GAIN  0.67 /* of a second node over that of the first, and */
#define DOUBLE_GAIN                                                                                                                                  \
    0.9 /* of a doubling over that of the one before, where they were not tried: as on the embedded pair (launch/bench/results/trees.md) */

enum { MOST_JUDGED = 256 };

/* [size - 1] of trees */
static const int nodes[ADAPTIVE_MOST] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, MESSAGE_MAX_DRAFT};
_Static_assert((int)MESSAGE_MAX_DRAFT > 48, "sizes rise");

int adaptive_tokens_drafts(const struct adaptive_tokens *tokens, int size)
{
    return !tokens->is_tree || size == 0 ? size : nodes[size - 1];
}

int adaptive_tokens_size(const struct adaptive_tokens *tokens, int drafts)
{
    int size = 0;

    if (!tokens->is_tree)
        return drafts;
    while (size < ADAPTIVE_MOST && nodes[size] <= drafts)
        size++;
    return size;
}

static void count(struct adaptive_tokens *tokens, int at, int accepted)
{
    if (tokens->tested[at] >= MOST_JUDGED) {
        tokens->tested[at] /= 2;
        tokens->accepted[at] /= 2;
    }
    tokens->tested[at]++;
    tokens->accepted[at] += accepted;
}

void adaptive_tokens_add(struct adaptive_tokens *tokens, int drafted, int accepted)
{
    if (tokens->is_tree && drafted > 0)
        count(tokens, adaptive_tokens_size(tokens, drafted) - 1, accepted);
    for (int i = 0; !tokens->is_tree && i < ADAPTIVE_MOST && i < drafted && i <= accepted; i++)
        count(tokens, i, i < accepted);
}

void adaptive_tokens_recall(struct adaptive_tokens *tokens, const struct adaptive_tokens *earlier, double most)
{
    for (int i = 0; i < ADAPTIVE_MOST; i++) {
        double share = earlier->tested[i] > most ? most / earlier->tested[i] : 1;

        tokens->tested[i] = share * earlier->tested[i];
        tokens->accepted[i] = fmin(share * earlier->accepted[i], tokens->tested[i] * (tokens->is_tree ? nodes[i] : 1));
    }
}

int adaptive_tokens_known(const struct adaptive_tokens *tokens)
{
    for (int i = 0; i < ADAPTIVE_MOST; i++)
        if (tokens->tested[i] > 0)
            return 1;
    return 0;
}

/* E(K) with the measured acceptance rates. A place of the proposal that was seldom tested, or is behind those that are counted, is assumed to be like
 * the place before it. */
static double of_chain(const struct adaptive_tokens *tokens, int length)
{
    double sum = 1, power = 1, alpha = PRIOR_ALPHA;

    for (int i = 0; i < length; i++) {
        if (i < ADAPTIVE_MOST)
            alpha = (tokens->accepted[i] + PRIOR_TESTED * alpha) / (tokens->tested[i] + PRIOR_TESTED);
        sum += power *= alpha;
    }
    return sum;
}

/* What the node or nodes of this size give beyond the size before, by what that gave. */
static double next_gain(int size, double gain)
{
    if (size == 1)
        return PRIOR_ALPHA;
    if (size == 2)
        return SECOND_GAIN * gain;
    return DOUBLE_GAIN * gain * log2((double)nodes[size - 1] / nodes[size - 2]) / log2((double)nodes[size - 2] / nodes[size - 3]);
}

/* More nodes never give less: sizes whose counts say otherwise are taken together, each as much as it was tried (isotonic regression). expected:
 * [size] of size 1 .. */
static void fill_tree(const struct adaptive_tokens *tokens, double expected[ADAPTIVE_MOST])
{
    double mean[ADAPTIVE_MOST], weight[ADAPTIVE_MOST], before = 1, gain = 0;
    int sizes[ADAPTIVE_MOST], blocks = 0, at = 0;

    for (int size = 1; size <= ADAPTIVE_MOST; size++) {
        double guess = before + next_gain(size, gain), tested = tokens->tested[size - 1] + PRIOR_TESTED;
        double here = (tokens->tested[size - 1] + tokens->accepted[size - 1] + PRIOR_TESTED * guess) / tested;

        gain = fmax(here - before, 0);
        before = fmax(here, before);
        mean[blocks] = here;
        weight[blocks] = tested;
        sizes[blocks++] = 1;
        for (; blocks > 1 && mean[blocks - 2] > mean[blocks - 1]; blocks--) {
            double both = weight[blocks - 2] + weight[blocks - 1];

            mean[blocks - 2] = (weight[blocks - 2] * mean[blocks - 2] + weight[blocks - 1] * mean[blocks - 1]) / both;
            weight[blocks - 2] = both;
            sizes[blocks - 2] += sizes[blocks - 1];
        }
    }
    for (int block = 0; block < blocks; block++)
        for (int i = 0; i < sizes[block]; i++)
            expected[at++] = mean[block];
}

double adaptive_tokens_expected(const struct adaptive_tokens *tokens, int size)
{
    double expected[ADAPTIVE_MOST];

    if (!tokens->is_tree || size == 0)
        return of_chain(tokens, size);
    fill_tree(tokens, expected);
    return expected[size - 1];
}
