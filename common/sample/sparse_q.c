#include "common/sample/sparse_q.h"

DEVICE_CODE void sparse_q_settle(uint32_t *weight, int64_t missing)
{
    if (missing >= 0)
        weight[0] += (uint32_t)missing;
    for (int i = 0; missing < 0; i++) {
        int64_t spare = (int64_t)weight[i] - 1, taken = spare < -missing ? spare : -missing;

        weight[i] -= (uint32_t)taken;
        missing += taken;
    }
}

/* Shell sort by id: in place, for a few hundred. */
DEVICE_CODE static void sort_by_id(struct sparse_q *q)
{
    for (int gap = q->count / 2; gap > 0; gap /= 2)
        for (int i = gap; i < q->count; i++) {
            int32_t id = q->id[i];
            uint32_t weight = q->weight[i];
            int at = i;

            for (; at >= gap && q->id[at - gap] > id; at -= gap) {
                q->id[at] = q->id[at - gap];
                q->weight[at] = q->weight[at - gap];
            }
            q->id[at] = id;
            q->weight[at] = weight;
        }
}

DEVICE_CODE uint64_t sparse_q_part(double p)
{
    return !(p < 1) ? SPARSE_Q_ONE : p > 0 ? (uint64_t)(p * (double)SPARSE_Q_ONE) : 0;
}

DEVICE_CODE uint32_t sparse_q_share(uint64_t part, uint64_t held)
{
    uint64_t share = held > 0 ? part * SPARSE_Q_SUM / held : 0;

    return share > 1 ? (uint32_t)share : 1;
}

DEVICE_CODE void sparse_q_fill(struct sparse_q *q, const struct scored_token *best, const double *p, int count, double mass, int most)
{
    uint64_t held = 0;
    int64_t missing = SPARSE_Q_SUM;

    for (q->count = 0; q->count < count && q->count < most && q->count < SPARSE_Q_MAX && (q->count == 0 || held < SPARSE_Q_COVERED); q->count++)
        held += sparse_q_part(p[q->count] / mass);
    for (int i = 0; i < q->count; i++) {
        q->id[i] = best[i].token;
        q->weight[i] = sparse_q_share(sparse_q_part(p[i] / mass), held);
        missing -= q->weight[i];
    }
    sparse_q_settle(q->weight, missing);
    sort_by_id(q);
}

DEVICE_CODE int32_t sparse_q_draw(const struct sparse_q *q, uint32_t u)
{
    uint32_t upto = 0;

    for (int i = 0; i < q->count; i++) {
        upto += q->weight[i];
        if (u < upto)
            return q->id[i];
    }
    return q->id[q->count - 1]; /* not reached: u < SPARSE_Q_SUM */
}

DEVICE_CODE uint32_t sparse_q_weight(const int32_t *id, const uint32_t *weight, int count, int32_t token)
{
    int low = 0, high = count;

    while (low < high) {
        int middle = (low + high) / 2;

        if (id[middle] < token)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && id[low] == token ? weight[low] : 0;
}
