/* Drafting: proposing tokens for several sequences at once, with the q that each was drawn from. A drafter kind has a table of functions here and a row of
 * the registry in common/options/options_draft.h; the loop around it does not care where proposals come from. */
#ifndef TANDEM_DRAFTER_DRAFT_H
#define TANDEM_DRAFTER_DRAFT_H

#include "common/base/breakage.h"
#include "common/model/model.h"
#include "common/options/options_draft.h"
#include "drafter/mirror.h"

/* The drafted tokens and their distributions, for one mirror: filled as a wire proposal whose supports lie in the draft's memory. */
struct draft_output {
    int count;
    int32_t token[MESSAGE_MAX_DRAFT];
    struct support q[MESSAGE_MAX_DRAFT];
    int is_tree; /* with parent: as in struct proposal */
    int8_t parent[MESSAGE_MAX_DRAFT];
};

struct draft;

/* What a kind is opened with. */
struct draft_parts {
    const struct options_draft *way; /* its keys */
    struct model *model;             /* NULL for a kind that runs none; borrowed until draft_close */
    int slots;
    int support; /* tokens that a q keeps at most */
    int context; /* tokens of a sequence */
};

struct draft_kind {
    const char *name;
    enum status (*open)(struct draft *draft, const struct draft_parts *terms);
    /* Drafts mirrors[i]->wanted tokens, or fewer where it has none, for each of `count` mirrors, in one batch; outputs: [count], alive until the
     * next call. The draft stands in the mirror, too: its tokens behind the committed ones, `drafted` of them, and `cached` at what it has read. */
    enum status (*propose)(void *state, struct mirror *const *mirrors, int count, struct draft_output *outputs);
    /* Reads at most `rows` more of the mirror's committed tokens, all but the newest, so that a long text is no long silence. NULL: propose reads all as
     * quickly. */
    enum status (*read)(void *state, struct mirror *mirror, int rows);
    /* The places [first, first + count) of the slot `from` are those of `to`, too. With `read`. */
    void (*copy)(void *state, int from, int to, int first, int count);
    /* Puts a fault into how it draws. NULL: it draws nothing. */
    void (*draw_wrong)(void *state, enum breakage breakage);
    void (*close)(void *state);
};

struct draft {
    const struct draft_kind *kind;
    void *state;
};

/* Those of drafter/draft_NAME.c. A draft model and the target's own weights are one thing to who drafts with them. */
extern const struct draft_kind draft_model_kind, draft_lookup_kind;

/* By the kind that the terms name. Closing leaves nothing, and may be done twice. */
enum status draft_open(struct draft *draft, const struct draft_parts *terms);
/* The drafter's part of a kind. */
const struct draft_kind *draft_kind_of(enum drafter_kind kind);
/* Tokens of a sequence where no model says it: what --context asks for, or as many as any target has unless it is asked for. */
int draft_context(int asked);
/* A draft model: the transformer on this rank. `support`: tokens that a q keeps at most. */
enum status draft_open_model(struct draft *draft, struct model *model, int slots, int support);
/* Copies of what followed the last tokens before: no model. Sequences have up to `context` tokens. */
enum status draft_open_lookup(struct draft *draft, const struct options_draft *way, int slots, int context);
/* Puts a fault into how a draft model draws, for `tandem check`. What draws nothing stays as it is. */
void draft_break(struct draft *draft, enum breakage breakage);
void draft_close(struct draft *draft);

#endif
