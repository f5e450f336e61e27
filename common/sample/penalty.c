#include "common/sample/penalty.h"

/* The tally counts a token's generated occurrences in steps of 2; bit 0 says that it was seen at all. */
enum { SEEN = 1, GENERATED = 2 };

static void penalise(const struct sampling *sampling, float *logit, int32_t tally)
{
    double value = (double)*logit;
    int generated = tally / GENERATED;

    if (sampling->repetition_penalty != 1.0)
        value = value > 0 ? value / sampling->repetition_penalty : value * sampling->repetition_penalty;
    if (generated > 0)
        value -= sampling->presence_penalty + generated * sampling->frequency_penalty;
    *logit = (float)value;
}

void penalty_apply(const struct sampling *sampling, const struct history *history, float *logits, int vocab_first, int vocab_count,
                   int32_t *tally)
{
    for (int place = history_after(history, -1); place >= 0; place = history_after(history, place)) {
        int at = history->tokens[place] - vocab_first;

        if (at >= 0 && at < vocab_count)
            tally[at] = (tally[at] | SEEN) + (place >= history->prompt_count ? GENERATED : 0);
    }
    for (int place = history_after(history, -1); place >= 0; place = history_after(history, place)) {
        int at = history->tokens[place] - vocab_first;

        if (at < 0 || at >= vocab_count || tally[at] == 0)
            continue;
        penalise(sampling, &logits[at], tally[at]);
        tally[at] = 0; /* each token once */
    }
}
