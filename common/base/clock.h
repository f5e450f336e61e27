/* Monotonic time, and the means by phase that a report is made of. Owns nothing but the time that a test pretends. Invariant: it never goes back, and
 * nobody sets it; what people call the time of day is not here. Any thread. */
#ifndef TANDEM_COMMON_BASE_CLOCK_H
#define TANDEM_COMMON_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds of the monotonic clock of this host, or of the pretended one. */
int64_t clock_ns(void);

/* For tests, in which an hour must pass in a moment: from here on clock_ns gives *now, which the test moves; NULL gives the host's clock back.
 * There is one for the process, because there is one time: else every struct that waits would carry a clock. Not while another thread looks
 * at the clock. */
void clock_pretend(const int64_t *now);

/* A sum of durations and how many there were; mean in microseconds, 0 when empty. */
struct span_sum {
    int64_t ns;
    int64_t count;
};

void clock_add(struct span_sum *sum, int64_t ns);
double clock_mean_us(const struct span_sum *sum);

#endif
