#include "verifier/check/check_law.h"

#include "common/base/log.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { IMPOSSIBLE = 0, NOT_CUT = -1 };

struct check_law_entry {
    double key; /* p/q */
    double p;
    int32_t token;
};

enum status check_law_open(struct check_law *law, int vocab)
{
    size_t count = (size_t)vocab;

    *law = (struct check_law){.vocab = vocab};
    law->first = calloc(count, sizeof *law->first);
    law->second = calloc(CHECK_LAW_FOLLOWED * count, sizeof *law->second);
    law->order = calloc(count, sizeof *law->order);
    law->leans = calloc(count, sizeof *law->leans);
    if (law->first != NULL && law->second != NULL && law->order != NULL && law->leans != NULL)
        return STATUS_OK;
    log_error("no memory for the law of %d tokens", vocab);
    return STATUS_INTERNAL;
}

void check_law_close(struct check_law *law)
{
    free(law->first);
    free(law->second);
    free(law->order);
    free(law->leans);
}

/* A first token is split further by what follows it when its probability is enough for two cells or more. */
void check_law_begin(struct check_law *law, const double *p)
{
    law->followed = 0;
    while (law->followed < CHECK_LAW_FOLLOWED) {
        int32_t best = -1;

        for (int32_t t = 0; t < law->vocab; t++)
            if (check_law_followed(law, t) < 0 && (best < 0 || p[t] > p[best]))
                best = t;
        if (best < 0 || p[best] < 2.0 / CHECK_LAW_CELLS)
            break;
        law->share[law->followed] = p[best];
        law->token[law->followed++] = best;
    }
    memset(law->count, 0, sizeof law->count);
    law->expected[IMPOSSIBLE] = 0;
    law->cells = 1;
    law->leaning = law->samples = 0;
}

int check_law_followed(const struct check_law *law, int32_t token)
{
    for (int i = 0; i < law->followed; i++)
        if (law->token[i] == token)
            return i;
    return -1;
}

static int by_key(const void *left, const void *right)
{
    const struct check_law_entry *a = left, *b = right;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    if (a->p != b->p)
        return a->p < b->p ? -1 : 1;
    return a->token < b->token ? -1 : a->token > b->token;
}

/* Cuts the `count` entries of law->order, whose p is to be multiplied with `share`, into runs of at least 1 / CHECK_LAW_CELLS. */
static void cut(struct check_law *law, int count, double share, int32_t *cell_of)
{
    double mass = 0;

    qsort(law->order, (size_t)count, sizeof *law->order, by_key);
    for (int i = 0; i < count; i++) {
        cell_of[law->order[i].token] = law->cells;
        mass += law->order[i].p * share;
        law->expected[law->cells] = mass;
        if (i + 1 == count || mass >= 1.0 / CHECK_LAW_CELLS) {
            law->cells++;
            mass = 0;
        }
    }
}

static struct check_law_entry entry_of(int32_t token, const double *p, const double *q)
{
    return (struct check_law_entry){.key = q[token] > 0 ? p[token] / q[token] : INFINITY, .p = p[token], .token = token};
}

void check_law_cut_first(struct check_law *law, const double *p, const double *q)
{
    int count = 0;

    law->lean_expected = 0;
    for (int32_t t = 0; t < law->vocab; t++) {
        law->leans[t] = p[t] > q[t];
        law->lean_expected += law->leans[t] ? p[t] : 0;
        law->first[t] = check_law_followed(law, t) >= 0 ? NOT_CUT : IMPOSSIBLE;
        if (law->first[t] == IMPOSSIBLE && p[t] > 0)
            law->order[count++] = entry_of(t, p, q);
    }
    cut(law, count, 1.0, law->first);
}

void check_law_cut_second(struct check_law *law, int i, const double *p, const double *q)
{
    int32_t *cell_of = law->second + (size_t)i * (size_t)law->vocab;
    int count = 0;

    for (int32_t t = 0; t < law->vocab; t++) {
        cell_of[t] = IMPOSSIBLE;
        if (p[t] > 0)
            law->order[count++] = entry_of(t, p, q);
    }
    cut(law, count, law->share[i], cell_of);
}

void check_law_add(struct check_law *law, int32_t x1, int32_t x2)
{
    int i = check_law_followed(law, x1);
    int32_t cell = i < 0 ? law->first[x1] : law->second[(size_t)i * (size_t)law->vocab + (size_t)x2];

    law->count[cell]++;
    law->leaning += law->leans[x1];
    law->samples++;
}

void check_law_distance(const struct check_law *law, double *found, double *by_chance)
{
    double n = (double)law->samples;

    *found = *by_chance = 0;
    for (int i = 0; i < law->cells && n > 0; i++) {
        *found += fabs((double)law->count[i] / n - law->expected[i]) / 2;
        *by_chance += sqrt(2 / M_PI * law->expected[i] * (1 - law->expected[i]) / n) / 2;
    }
}
