/* The configurations that the joint law and the coupled tokens are tested on. Every way of sampling meets every regime of acceptance, draft
 * length and number of shards, in 64 of them. */
#ifndef TANDEM_TESTS_LAW_TOY_SETTINGS_H
#define TANDEM_TESTS_LAW_TOY_SETTINGS_H

#include "tests/law/toy_round.h"

enum { TOY_SETTINGS = 64, TOY_WAYS = 12, TOY_REGIMES = 3, TOY_DRAFTS = 4, TOY_SHARDINGS = 3 };

struct toy_setting {
    int way, regime, draft, sharding; /* which of each */
    struct toy_terms terms;
    struct toy_run run; /* all but its count */
    char name[160];
};

/* Number i of TOY_SETTINGS. The seed is that of the draws; the tables of the toy pair are the same for all seeds, and so is the power of what
 * is tested on them. */
void toy_setting_fill(struct toy_setting *setting, int i, uint64_t seed);

#endif
