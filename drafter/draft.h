/* A draft proposes tokens for several sequences at once, each with the q that it was drawn from. It owns the state of its kind: caches and workspace,
 * or an index; a draft model is borrowed. Invariant: q is the distribution that the token was sampled from, whatever the kind. The drafter's thread
 * alone calls; local: nothing here sends or waits for other ranks. Allocates at open alone. A kind is a table of functions here and a row of the
 * registry in common/options/options_draft.h; the loop around it (drafter.h) does not depend on the kind. */
#ifndef TANDEM_DRAFTER_DRAFT_H
#define TANDEM_DRAFTER_DRAFT_H

#include "common/base/breakage.h"
#include "common/corpus/corpus_rows.h"
#include "common/model/model.h"
#include "common/options/options_draft.h"
#include "common/sample/stopping.h"
#include "common/sample/tree_shape.h"
#include "drafter/mirror.h"

/* The drafted tokens of one mirror and their distributions, laid out as in a proposal; the supports lie in the draft's memory. */
struct draft_output {
    int count;
    int32_t token[MESSAGE_MAX_DRAFT];
    struct support q[MESSAGE_MAX_DRAFT];
    int is_tree; /* this and parent: as in struct proposal */
    int8_t parent[MESSAGE_MAX_DRAFT];
};

/* The draft of that token behind that parent (-1: the newest committed token) in a tree of point masses: one that is there, or a new one, for which
 * there must be room. Returns its index. */
int draft_output_grow(struct draft_output *output, int parent, int32_t token);

struct draft;

/* What draft_open is given. */
struct draft_parts {
    const struct options_draft *way; /* the kind and its parameters */
    struct model *model;             /* NULL for a kind that runs none; borrowed until draft_close */
    const struct corpus_rows *found; /* the file of a kind that has one, else NULL; the same */
    int vocab;                       /* with that, ids that are drafted: the first so many; 0: all of its */
    int slots;
    int support; /* most tokens in the support of a q */
    int context; /* most tokens of a sequence */
    int runs_ahead; /* room for branches is made, and for trees and a cascade */
};

/* What copies of what followed the last tokens before are beside a draft model; all 0: there are none. */
struct draft_copies {
    int cascade; /* they draft for the draft model, which reads several in one step: the same proposals in fewer steps */
    int first;   /* where the last so many tokens of a text or more have occurred before, they are the proposal; 0: nowhere */
    int after; /* behind so many of the model's drafts they are the rest of the proposal, which ends there where nothing is to be copied; 0: never */
};

/* One token of one text: the next one of a mirror's draft, or of one of its branches, or none. */
enum { JOB_DRAFT = -1, JOB_LOOK = -2, JOB_TREE = -3 };
struct draft_job {
    struct mirror *mirror;
    int branch;                  /* of the mirror; JOB_DRAFT: the draft itself; JOB_LOOK: feeds its last token, so that guesses behind it are known */
    struct draft_output *output; /* what it is drafted into; of JOB_LOOK, what the draft is in */
    int depth;                   /* of JOB_DRAFT and JOB_LOOK: tokens of the draft in front of the next one */
    int node;                    /* of JOB_TREE: a token of the mirror's tree, which is fed; -1: its root, the newest committed token */
};

struct draft_kind {
    const char *name;
    enum status (*open)(struct draft *draft, const struct draft_parts *terms);
    /* Drafts mirrors[i]->wanted tokens, or fewer where it stops or has none, for each of `count` mirrors, in one batch. outputs: [count], valid until
     * the next call. Also writes the draft into the mirror: its tokens after the committed ones, their number `drafted`, and `cached` for the tokens
     * that were fed. */
    enum status (*propose)(void *state, struct mirror *const *mirrors, int count, struct draft_output *const *outputs);
    /* One step: a token or more for each job, at most draft_jobs of them. It goes on with outputs of before. A branch for which there is nothing to
     * draft gets a `wanted` of 0. NULL: the kind cannot run ahead. */
    enum status (*step)(void *state, const struct draft_job *jobs, int count);
    /* What the target may come to by itself behind the first `after` drafts of the mirror, or all of them, after JOB_LOOK. With step. */
    void (*guess)(void *state, const struct mirror *mirror, int after, struct guesses *guesses);
    /* Feeds at most `rows` more of the mirror's committed tokens, never the newest, so that the drafter can answer messages between parts of a long
     * text. NULL: reading takes no time worth splitting. */
    enum status (*read)(void *state, struct mirror *mirror, int rows);
    /* Copies the cache of `count` places. Not NULL where `read` or `step` is not. */
    void (*copy)(void *state, struct cache_place from, struct cache_place to, int count);
    /* What it proposes where the rule decides about trees, from then on; at first chains. NULL: the kind knows chains alone. */
    void (*shape)(void *state, const struct tree_shape *shape);
    /* As draft_copy. NULL: the kind has no steps to save. */
    enum status (*copies)(void *state, const struct draft_copies *copies, int slots, int context);
    /* When it is to stop before a proposal is full. NULL: the kind has no distribution to tell by. */
    void (*stop)(void *state, const struct stopping *stopping);
    /* As draft_learn. NULL: the kind hears nothing of its drafts. */
    void (*learn)(void *state, const struct mirror *mirror, const struct commit *commit);
    /* As draft_price. NULL where stop is. */
    void (*price)(void *state, double price);
    /* Makes it draw wrongly on purpose, for `tandem check --break`. NULL: the kind draws nothing. */
    void (*draw_wrong)(void *state, enum breakage breakage);
    void (*close)(void *state);
};

struct draft {
    const struct draft_kind *kind;
    void *state;
};

/* The tables of drafter/draft_NAME.c. A separate draft model, the target's own weights with fewer layers or bits, and files made of texts, which have
 * rows of logits as they have, use the same table. */
extern const struct draft_kind draft_model_kind, draft_lookup_kind, draft_lookahead_kind;

/* Opens the kind that the parts name. draft_close may be called twice. */
enum status draft_open(struct draft *draft, const struct draft_parts *terms);
/* The table of functions of a kind. */
const struct draft_kind *draft_kind_of(enum drafter_kind kind);
/* Most tokens of a sequence for a kind without a model: --context, or if that is not given as many as any target may have. */
int draft_context(int asked);
/* Opens a draft model on this rank.  support: most tokens in the support of a q  runs_ahead: as in draft_parts */
enum status draft_open_model(struct draft *draft, struct model *model, int slots, int support, int runs_ahead);
/* Opens a draft of the rows of a file. */
enum status draft_open_found(struct draft *draft, const struct corpus_rows *found, const struct draft_parts *terms);
/* Rows of logits that a step of so many slots may ask for: what a model must be opened with, and most jobs of a step. */
int draft_jobs(int slots, int runs_ahead);
/* Opens prompt lookup, which needs no model. Sequences have up to `context` tokens. */
enum status draft_open_lookup(struct draft *draft, const struct options_draft *way, int slots, int context);
/* Microseconds of a step of so many sequences, at most draft_parts.slots, each its first token; the least of a few tries. To be called before the
 * first sequence is begun, and leaves nothing behind. 0 of a kind without a model. STATUS_INTERNAL without memory. */
enum status draft_time_step(struct draft *draft, int sequences, double *us);
/* When it is to stop before a proposal is full; at first never. No effect on a kind without a distribution. */
void draft_stop(struct draft *draft, const struct stopping *stopping);
/* What a draft costs the target, in tokens of the job, from now on: where it stops by that (STOPPING_BATCH). */
void draft_price(struct draft *draft, double price);
/* What became of a mirror's drafts, and what the target said behind them (commit.own): before the mirror has the Commit. */
void draft_learn(struct draft *draft, const struct mirror *mirror, const struct commit *commit);
/* What it proposes where the rule decides about trees; at first chains. A tree needs the room that running ahead does. No effect on a kind that knows
 * chains alone. */
void draft_shape(struct draft *draft, const struct tree_shape *shape);
/* From then on there are copies of what followed the last tokens before. It must have room for branches (draft_parts.runs_ahead). To be called once,
 * after it is opened; no effect on a kind without a model. STATUS_INTERNAL, after a line, without memory. */
enum status draft_copy(struct draft *draft, const struct draft_copies *copies, int slots, int context);
/* Makes it draw wrongly on purpose, for `tandem check --break`. No effect on a kind that draws nothing. */
void draft_break(struct draft *draft, enum breakage breakage);
void draft_close(struct draft *draft);

#endif
