/* A drafter that runs a model, or has a file made of texts, with a mirror of each of a few sequences, and no lead: the test proposes and commits. */
#ifndef TANDEM_TESTS_SUPPORT_DRAFT_RIG_H
#define TANDEM_TESTS_SUPPORT_DRAFT_RIG_H

#include "drafter/draft.h"

enum { DRAFT_RIG_SLOTS = 8, DRAFT_RIG_CONTEXT = 128, DRAFT_RIG_SUPPORT = 24 };

struct draft_rig {
    struct group self;
    struct model *model;
    struct corpus_rows found;
    struct draft draft;
    struct arena arena;
    int slots;
    int runs_ahead; /* set before it is opened: room for branches is made */
    int support;    /* so, too; 0: DRAFT_RIG_SUPPORT */
    struct mirror mirror[DRAFT_RIG_SLOTS], *batch[DRAFT_RIG_SLOTS];
    struct draft_output output[DRAFT_RIG_SLOTS];
};

/* model: its path; or "ngram" or "datastore", for such a file of a seeded text, which no backend has a part in. Each sequence has a prompt of its
 * own, the last one of more than BACKEND_MAX_ROWS tokens, and first wants a token more than the one before. */
void draft_rig_open(struct draft_rig *rig, const char *model, const struct backend *backend, int threads, int slots,
                    struct sampling (*sampling_of)(int slot));
void draft_rig_close(struct draft_rig *rig);
void draft_rig_propose(struct draft_rig *rig);
/* The first `accepted` of what the sequence drafted stand, and `token` follows; then it wants so many. */
void draft_rig_commit(struct draft_rig *rig, int slot, int accepted, int32_t token, int wanted);

#endif
