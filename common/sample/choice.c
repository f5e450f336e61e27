#include "common/sample/choice.h"

#include "common/sample/distribution.h"
#include "common/sample/rule.h"
#include <math.h>

DEVICE_CODE void choice_ask(const struct sampling *sampling, int support, int listed, struct row_query *query)
{
    enum rule_draw draw = rule_draw(sampling);

    query->purpose = RNG_NOISE;
    query->gumbel = draw == RULE_DRAWS_NOISE && !distribution_truncates(sampling);
    query->scans = !query->gumbel;
    query->sums = query->scans && sampling->temperature > 0.0
                      ? ROW_SUMS_MASS
                      : ROW_SUMS_NONE; /* what truncation keeps is known by it, also of a row whose argmax is drafted */
    query->top = draw == RULE_DRAWS_ARGMAX || query->gumbel ? 0 : support;
    query->top = query->top < listed ? listed : query->top;
}

DEVICE_CODE int choice_is_plain(const struct sampling *sampling)
{
    return rule_draw(sampling) == RULE_DRAWS_Q && !distribution_truncates(sampling);
}

DEVICE_CODE double choice_plain(const struct row_query *query, int i)
{
    return exp((double)query->best[i].score - (double)query->stats.max) / query->stats.sum;
}

/* How many of query->best the draft keeps. Their p sum to 1, or to the mass that the list covers. */
DEVICE_CODE static int keep(const struct sampling *sampling, int vocab, const struct row_query *query, double *p)
{
    int kept = 0;

    if (distribution_truncates(sampling))
        kept = distribution_truncate(sampling, query->best, query->best_count, query->best_count == vocab, query->stats.sum, p);
    if (kept > 0)
        return kept;
    for (int i = 0; i < query->best_count; i++) /* the whole distribution, or as much of it as the list has: any q is valid */
        p[i] = choice_plain(query, i);
    return query->best_count;
}

DEVICE_CODE static int32_t draw_by_noise(const struct sampling *sampling, int vocab, const struct row_query *query, double *p)
{
    int32_t winner = -1;
    float best = -INFINITY;

    if (query->gumbel)
        return query->winner.token < 0 ? 0 : query->winner.token; /* below 0: every id that may be drafted is banned, and any will do */
    for (int i = 0, kept = keep(sampling, vocab, query, p); i < kept; i++) {
        float score = query->best[i].score + rng_gumbel(&query->key, RNG_NOISE, (uint32_t)query->best[i].token);

        if (score > best) {
            best = score;
            winner = query->best[i].token;
        }
    }
    return winner < 0 ? 0 : winner;
}

DEVICE_CODE int32_t choice_draw(const struct sampling *sampling, int support, int vocab, const struct row_query *query, double *p,
                                struct sparse_q *q)
{
    enum rule_draw draw = rule_draw(sampling);

    q->count = 0;
    if (draw == RULE_DRAWS_ARGMAX)
        return query->stats.argmax;
    if (draw == RULE_DRAWS_NOISE)
        return draw_by_noise(sampling, vocab, query, p);
    sparse_q_fill(q, query->best, p, keep(sampling, vocab, query, p), 1.0, support);
    return sparse_q_draw(q, rng_coin16(&query->key, RNG_DRAFT, query->coin));
}
