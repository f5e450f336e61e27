/* Faults that can be put into the real code on purpose, so that a user of `tandem check --break KIND` sees which check notices it. Each resembles one
 * that was published. It owns the one choice of the process, which is made before threads start. Invariant: off by default, and refused outside a
 * check: no result that is kept can come from broken code. Three places look at it: drafter/draft_broken.c, verifier/accept/accept_broken.c, and
 * verifier/round/verify.c, for the rows that it asks for and the places that it keeps. */
#ifndef TANDEM_COMMON_BASE_BREAKAGE_H
#define TANDEM_COMMON_BASE_BREAKAGE_H

enum breakage {
    BREAKAGE_NONE,
    BREAKAGE_Q_TEMPERATURE,
    BREAKAGE_Q_TOP_K,
    BREAKAGE_Q_ROW,
    BREAKAGE_SHARED_COIN,
    BREAKAGE_RESIDUAL_P,
    BREAKAGE_ACCEPT_ALL,
    BREAKAGE_STALE_ROW,
    BREAKAGE_DRAFTER_BONUS,
    BREAKAGE_BRANCH_NOISE,
    BREAKAGE_STALE_PATH,
    BREAKAGE_COUNT,
};

/* The names in the order of the enum, for the table of options. */
#define BREAKAGE_NAMES "none|q-temperature|q-top-k|q-row|shared-coin|residual-p|accept-all|stale-row|drafter-bonus|branch-noise|stale-path"

struct breakage_entry {
    const char *name;
    const char *what;      /* what goes wrong */
    const char *resembles; /* a published fault of this kind */
    const char *seen_by;   /* the check that must notice it: equality, law or draws */
};

extern const struct breakage_entry breakage_table[BREAKAGE_COUNT];

#endif
