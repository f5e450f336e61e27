/* The tokens that a row follows, by place of its slot: those before `base`, then those of its ancestors among the next 64 places, as struct rows of
 * common/backend says which places a row sees. So siblings of a tree do not see each other. Plain data; pure. */
#ifndef TANDEM_COMMON_SAMPLE_HISTORY_H
#define TANDEM_COMMON_SAMPLE_HISTORY_H

#include <stdint.h>

struct history {
    const int32_t *tokens; /* [base and up to 64] by place */
    int base;              /* all of these are seen */
    uint64_t ancestors;    /* bit b: so is the one of place base + b; 0 where base holds all */
    int prompt_count;      /* the first so many are the prompt */
};

/* The next place behind `place` whose token is seen, -1 when there is none; the first is behind -1. */
static inline int history_after(const struct history *history, int place)
{
    int beyond = place + 1 - history->base;
    uint64_t left;

    if (beyond < 0)
        return place + 1;
    left = beyond < 64 ? history->ancestors >> beyond : 0;
    return left == 0 ? -1 : place + 1 + __builtin_ctzll(left);
}

/* Tokens that are seen. */
int history_count(const struct history *history);
/* Are the last seen ones these?  tokens: [count] */
int history_ends_with(const struct history *history, const int32_t *tokens, int count);

/* The last seen ones, at most `most`, the newest last; returns how many.  tokens: [most] */
int history_last(const struct history *history, int32_t *tokens, int most);

#endif
