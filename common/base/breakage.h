/* Faults that can be put into the real code on purpose, so that a user of `tandem check --break KIND` sees which check notices it. Each resembles one
 * that was published, or asked about. It owns the one choice of the process, which is made before threads start. Invariant: off by default, and
 * refused outside a check: no result that is kept can come from broken code. Four places look at it: drafter/draft_broken.c,
 * verifier/accept/accept_broken.c, verifier/round/verify.c, for the rows that it asks for and the places that it keeps, and common/options, for what
 * it needs. */
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
    BREAKAGE_LATE_ACCEPT,
    BREAKAGE_BRANCH_NOISE,
    BREAKAGE_BRANCH_VALUE,
    BREAKAGE_STALE_PATH,
    BREAKAGE_SIBLING_Q,
    BREAKAGE_SIBLING_P,
    BREAKAGE_SIBLING_ORDER,
    BREAKAGE_SIBLING_TOP_K,
    BREAKAGE_COUNT,
};

/* The names in the order of the enum, for the table of options. */
#define BREAKAGE_NAMES                                                                                                                               \
    "none|q-temperature|q-top-k|q-row|shared-coin|residual-p|accept-all|stale-row|drafter-bonus|late-accept|branch-noise|branch-value|"              \
    "stale-path|sibling-q|sibling-p|sibling-order|sibling-top-k"

/* What a fault is about. */
enum breakage_of {
    BREAKAGE_OF_CHAINS,
    BREAKAGE_OF_BRANCHES, /* what a draft model drafts ahead, so that has to be there on a busy machine, too */
    BREAKAGE_OF_TREES,    /* whatever the rule */
    BREAKAGE_OF_SIBLINGS, /* drafts of a tree that were drawn from one q */
};

struct breakage_entry {
    const char *name;
    const char *what;      /* what goes wrong */
    const char *resembles; /* a published fault of this kind */
    const char *seen_by;   /* the check that must notice it: equality, law or draws */
    enum breakage_of of;
    const char *rules; /* of siblings: the rules that have it, with | between them */
};

extern const struct breakage_entry breakage_table[BREAKAGE_COUNT];

#endif
