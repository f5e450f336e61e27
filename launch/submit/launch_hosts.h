/* The hosts of --hosts, HOST[:SLOTS],..., filled in order: drafters first, then verifiers, each host before the next one. mpirun would begin with the
 * host that it runs on, wherever that stands in the list; so it is told a host at a time. Names point into the option's text; pure. */
#ifndef TANDEM_LAUNCH_SUBMIT_LAUNCH_HOSTS_H
#define TANDEM_LAUNCH_SUBMIT_LAUNCH_HOSTS_H

#include "common/options/options.h"

enum { LAUNCH_HOSTS_NAME = 256 /* bytes of a host's name at most */ };

/* Where the filling is. */
struct launch_hosts {
    const char *list; /* whole */
    const char *at;   /* the host that is filled */
    int used;         /* slots of it */
};

/* Ranks that go to one host together. */
struct launch_share {
    const char *name; /* of the host: [length], in the list */
    int length;
    int slots; /* that the host has in the whole list, by all its mentions */
    int ranks;
};

/* STATUS_USAGE, with a line, where the list is none, or has fewer slots than there are ranks and mpirun was not told to put more there. */
enum status launch_hosts_check(const struct options *options, int drafters, int verifiers);
/* Puts up to `most` ranks, at least one, on the next host with a free slot; behind the last slot, all of them on the last host. */
struct launch_share launch_hosts_next(struct launch_hosts *hosts, int most);

#endif
