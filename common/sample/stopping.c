#include "common/sample/stopping.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ENTROPY_WEIGHT 0.2 /* AdaEDL's gamma */

/* [kind], and the number that a name alone stands for */
static const struct {
    const char *name;
    double bound;
} kinds[] = {[STOPPING_NEVER] = {"never", 0},
             [STOPPING_HEURISTIC] = {"heuristic", 0},
             [STOPPING_CONFIDENCE] = {"confidence", 0.4},
             [STOPPING_ENTROPY] = {"entropy", 0.3},
             [STOPPING_BATCH] = {"batch", 0}};
_Static_assert(sizeof kinds / sizeof kinds[0] == STOPPING_KINDS, "a name for each");

int stopping_read(const char *text, struct stopping *stopping)
{
    size_t length = strcspn(text, "=");
    const char *number = text[length] == '=' ? text + length + 1 : NULL;

    for (int i = 0; i < STOPPING_KINDS; i++) {
        char *end = NULL;
        double bound = number != NULL ? strtod(number, &end) : kinds[i].bound;

        if (strlen(kinds[i].name) != length || memcmp(kinds[i].name, text, length) != 0)
            continue;
        if (number != NULL && (kinds[i].bound == 0 || end == number || *end != '\0' || number[strspn(number, "0123456789.e-")] != '\0'))
            return 0;
        if (!(bound >= 0 && bound <= 1))
            return 0;
        *stopping = (struct stopping){.kind = (enum stopping_kind)i, .bound = bound};
        return 1;
    }
    return 0;
}

int stopping_looks(const struct stopping *stopping)
{
    return stopping->kind > STOPPING_HEURISTIC;
}

void stopping_ask(const struct stopping *stopping, struct row_query *query)
{
    if (!stopping_looks(stopping))
        return;
    query->scans = 1;
    query->sums = stopping->kind == STOPPING_ENTROPY ? ROW_SUMS_BELOW : ROW_SUMS_MASS;
}

int stopping_ends(const struct stopping *stopping, const struct row_stats *stats, int drafted, double *reach)
{
    double chance;

    if (!stopping_looks(stopping) || !(stats->sum > 0))
        return 0;
    if (stopping->kind == STOPPING_CONFIDENCE)
        return 1 / stats->sum < stopping->bound;
    if (stopping->kind == STOPPING_BATCH) {
        chance = (drafted == 0 ? 1 : *reach) / stats->sum;
        if (chance < stopping->bound)
            return 1;
        *reach = chance;
        return 0;
    }
    return 1 - sqrt(ENTROPY_WEIGHT * (log(stats->sum) + stats->below / stats->sum)) < stopping->bound;
}
