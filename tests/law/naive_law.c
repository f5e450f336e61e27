#include "tests/law/naive_law.h"

#include <math.h>

static float penalised(const struct sampling *s, float logit, int seen, int generated)
{
    double value = (double)logit;

    if (seen && s->repetition_penalty != 1.0)
        value = value > 0 ? value / s->repetition_penalty : value * s->repetition_penalty;
    if (generated > 0)
        value -= s->presence_penalty + s->frequency_penalty * generated;
    return (float)value;
}

void naive_process(const struct sampling *s, const float *logits, int vocab, const int32_t *history, int count, int prompt_count,
                   float *to)
{
    float scale = s->temperature > 0 ? (float)(1.0 / s->temperature) : 1.0f;

    for (int v = 0; v < vocab; v++) {
        int seen = 0, generated = 0;

        for (int i = 0; i < count; i++)
            if (history[i] == v) {
                seen = 1;
                generated += i >= prompt_count;
            }
        to[v] = penalised(s, logits[v], seen, generated) * scale;
    }
}

static void normalise(double *p, int vocab)
{
    double sum = 0;

    for (int v = 0; v < vocab; v++)
        sum += p[v];
    for (int v = 0; v < vocab; v++)
        p[v] /= sum;
}

/* ids by falling score, ties by rising id: insertion sort. */
static void rank_tokens(const float *score, int vocab, int *order)
{
    for (int v = 0; v < vocab; v++) {
        int at = v;

        for (; at > 0 && score[order[at - 1]] < score[v]; at--)
            order[at] = order[at - 1];
        order[at] = v;
    }
}

static double cut_top_p(double top_p, const int *order, int vocab, double *p)
{
    double before = 0, margin = 1;

    for (int i = 0; i < vocab; i++) {
        double own = p[order[i]];

        margin = fmin(margin, fabs(before - top_p));
        if (i > 0 && before >= top_p)
            p[order[i]] = 0;
        before += own;
    }
    normalise(p, vocab);
    return margin;
}

static double cut_min_p(double min_p, const int *order, int vocab, double *p)
{
    double best = p[order[0]], margin = 1;

    for (int v = 0; v < vocab; v++) {
        margin = fmin(margin, fabs(p[v] / best - min_p));
        if (p[v] < min_p * best)
            p[v] = 0;
    }
    normalise(p, vocab);
    return margin;
}

double naive_law(const struct sampling *s, const float *logits, int vocab, const int32_t *history, int count, int prompt_count, double *p)
{
    float score[NAIVE_LAW_MOST];
    int order[NAIVE_LAW_MOST];
    double margin = 1;

    naive_process(s, logits, vocab, history, count, prompt_count, score);
    rank_tokens(score, vocab, order);
    for (int i = 0; i < vocab; i++) {
        int kept = s->temperature > 0 ? s->top_k == 0 || i < s->top_k : i == 0;

        p[order[i]] = kept ? exp((double)score[order[i]] - (double)score[order[0]]) : 0;
    }
    normalise(p, vocab);
    if (s->temperature == 0)
        return 1;
    if (s->top_p < 1)
        margin = cut_top_p(s->top_p, order, vocab, p);
    if (s->min_p > 0)
        margin = fmin(margin, cut_min_p(s->min_p, order, vocab, p));
    return margin;
}
