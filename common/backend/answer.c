#include "common/backend/backend.h"

#include <math.h>

void backend_exclude(const struct row_query *query, int32_t first, int count, uint32_t *excluded, int on)
{
    for (int i = 0; i < query->tokens; i++) {
        int32_t at = query->token[i] - first;

        if (at >= 0 && at < count)
            excluded[at / 32] = on ? excluded[at / 32] | UINT32_C(1) << (at % 32) : 0;
    }
}

void backend_look_up(struct row_query *query, const float *logits, float scale, int32_t first, int count)
{
    for (int i = 0; i < query->tokens; i++) {
        int32_t at = query->token[i] - first;

        query->logit[i] = at >= 0 && at < count ? logits[at] * scale : -INFINITY;
    }
}

void backend_answer(const struct backend *backend, struct backend_context *context, const float *logits, int32_t first, int count,
                    uint32_t *excluded, struct row_query *query)
{
    if (query->scans)
        backend->row.scan(context, logits, count, query->sums, &query->stats);
    if (query->gumbel && query->excludes)
        backend_exclude(query, first, count, excluded, 1);
    if (query->gumbel)
        backend->row.gumbel_max(context, logits, count, first, &query->key, query->purpose, query->excludes ? excluded : NULL, &query->winner);
    if (query->gumbel && query->excludes)
        backend_exclude(query, first, count, excluded, 0);
    if (query->logit != NULL)
        backend_look_up(query, logits, 1.0f, first, count);
    query->best_count = query->top > 0 ? backend->row.top(context, logits, count, query->top, query->best) : 0;
}

int backend_drafts_at(const struct kept_draft *drafts, int count, int step)
{
    int still = 0;

    for (int d = 0; d < count; d++)
        still += drafts[d].wanted > step;
    return still;
}
