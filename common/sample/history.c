#include "common/sample/history.h"

#include <string.h>

int history_count(const struct history *history)
{
    return history->base + __builtin_popcountll(history->ancestors);
}

int history_ends_with(const struct history *history, const int32_t *tokens, int count)
{
    if (count > history_count(history))
        return 0;
    for (uint64_t left = history->ancestors; left != 0 && count > 0; count--) {
        int last = 63 - __builtin_clzll(left);

        if (history->tokens[history->base + last] != tokens[count - 1])
            return 0;
        left ^= UINT64_C(1) << last;
    }
    return memcmp(history->tokens + history->base - count, tokens, (size_t)count * sizeof *tokens) == 0;
}

int history_last(const struct history *history, int32_t *tokens, int most)
{
    int seen = history_count(history), count = seen < most ? seen : most, left = count;

    for (uint64_t ancestors = history->ancestors; ancestors != 0 && left > 0;) {
        int last = 63 - __builtin_clzll(ancestors);

        tokens[--left] = history->tokens[history->base + last];
        ancestors ^= UINT64_C(1) << last;
    }
    if (left > 0)
        memcpy(tokens, history->tokens + history->base - left, (size_t)left * sizeof *tokens);
    return count;
}
