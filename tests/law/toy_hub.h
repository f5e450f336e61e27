/* A verifier group whose ranks take turns in one process: what the lead broadcasts is kept until it gathers, then each follower catches up in
 * team_follow. */
#ifndef TANDEM_TESTS_LAW_TOY_HUB_H
#define TANDEM_TESTS_LAW_TOY_HUB_H

#include "verifier/team/team.h"

enum { TOY_HUB_QUEUE = 16, TOY_HUB_BYTES = 1 << 16 };

struct toy_hub {
    int ranks;
    int posts; /* broadcasts since the lead last gathered */
    size_t bytes[TOY_HUB_QUEUE];
    unsigned char post[TOY_HUB_QUEUE][TOY_HUB_BYTES];
    int read; /* by the follower whose turn it is */
    unsigned char *all;
    struct team *team; /* [ranks] borrowed */
};

/* groups: [ranks], filled; the teams may be opened later, on them. */
void toy_hub_init(struct toy_hub *hub, struct team *team, int ranks, struct group *groups);

#endif
