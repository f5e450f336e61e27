/* What the two latency programs share: the ranks, the channel, and where figures go. The program that opened them owns them. Only the lead writes
 * figures; MPI calls are made by the main thread. */
#ifndef TANDEM_LAUNCH_BENCH_LATENCY_LATENCY_H
#define TANDEM_LAUNCH_BENCH_LATENCY_LATENCY_H

#include "common/group/group.h"
#include "common/options/options.h"
#include "common/wire/channel.h"
#include <stdio.h>

struct latency {
    const struct options *options;
    struct world world;
    struct channel *channel;
    struct message_space *space;
    FILE *text; /* the lead's stdout; NULL elsewhere */
    FILE *json; /* --stats, one object a line; NULL: not asked for */
};

/* Times of one kind of message or operation, microseconds. */
struct latency_times {
    double avg, p50, p99, min;
};

/* us: [count], which is sorted. */
struct latency_times latency_times_of(double *us, int count);

/* Messages between the lead and the first drafter: both call it, and nobody else. Point to point. STATUS_WATCHDOG: the other did not answer. */
enum status latency_messages(struct latency *latency);
/* Collective over the team of verifiers. */
enum status latency_collectives(struct latency *latency);

#endif
