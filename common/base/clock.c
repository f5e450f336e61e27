#include "common/base/clock.h"

#include <stddef.h>
#include <time.h>

static const int64_t *pretended;

void clock_pretend(const int64_t *now)
{
    pretended = now;
}

int64_t clock_ns(void)
{
    struct timespec now;

    if (pretended != NULL)
        return *pretended;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void clock_add(struct span_sum *sum, int64_t ns)
{
    sum->ns += ns;
    sum->count += 1;
}

double clock_mean_us(const struct span_sum *sum)
{
    return sum->count == 0 ? 0.0 : (double)sum->ns / (double)sum->count / 1000.0;
}
