#include "tests/law/naive_bias.h"

#include "tests/law/naive_law.h"
#include <math.h>

/* Would the text, with `token` behind it, end with the word? */
static int ends_with(const int32_t *history, int count, int32_t token, const int32_t *word, int length)
{
    if (length > count + 1)
        return 0;
    for (int i = 0; i < length; i++) {
        int at = count + 1 - length + i;

        if ((at == count ? token : history[at]) != word[i])
            return 0;
    }
    return 1;
}

int naive_bias_bans(const struct bias *bias, const int32_t *history, int count, int prompt_count, int32_t token)
{
    for (int w = 0; w < bias->words; w++)
        if (ends_with(history, count, token, bias->word[w], bias->length[w]))
            return 1;
    for (int e = 0; e < bias->enders; e++)
        if (bias->ender[e] == token && count - prompt_count < bias->min_tokens)
            return 1;
    return 0;
}

void naive_bias_process(const struct sampling *sampling, const struct bias *bias, const float *logits, int vocab, const int32_t *history,
                        int count, int prompt_count, float *to)
{
    float biased[NAIVE_LAW_MOST] = {0};

    for (int v = 0; v < vocab; v++) {
        double value = (double)logits[v];

        for (int i = 0; i < bias->tokens; i++)
            if (bias->token[i] == v)
                value += bias->value[i];
        biased[v] = (float)value;
    }
    naive_process(sampling, biased, vocab, history, count, prompt_count, to);
    for (int v = 0; v < vocab; v++)
        if (naive_bias_bans(bias, history, count, prompt_count, v))
            to[v] = -INFINITY;
}
