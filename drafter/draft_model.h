/* The state of a draft whose tokens come from rows of logits, a draft model's or those of a file made of texts, and what its files share.
 * draft_model.c drafts step by step and opens it; draft_model_device.c has the device draft; draft_model_tree.c drafts trees; draft_model_copies.c
 * drafts in fewer steps, or none, what a text has had before. They alone include this. */
#ifndef TANDEM_DRAFTER_DRAFT_MODEL_H
#define TANDEM_DRAFTER_DRAFT_MODEL_H

#include "common/corpus/corpus_rows.h"
#include "common/model/forward.h"
#include "common/sample/choice.h"
#include "drafter/draft.h"
#include "drafter/draft_tree.h"

enum { LISTED = 64 }; /* of a row's largest logits, from which guesses are ranked */

/* The largest logits of a row, and the winner of its noise. */
struct listed {
    int count;
    struct scored_token best[LISTED + 1];
};

struct copied;

/* The text that a slot's newest tree follows. */
struct grown {
    uint32_t opened; /* the mirror's; 0: there is none */
    int length;
};

/* What is copied for each slot, and what came of it. */
struct model_copies {
    struct arena arena;
    struct copied *slot;    /* [slots] */
    struct draft_copies are;
    int64_t whole;          /* proposals that are copies, */
    int64_t rests;          /* and those that end with some */
    int64_t steps, drafted; /* of a cascade: steps of one sequence, and tokens that were drafted in them */
    int64_t copies, right;  /* copies that were read, and those of them that the model drew */
    int64_t proposals;
    double ns[2]; /* of a token, in steps without copies and with them; 0: not known yet */
    int always;   /* copies are tried whether or not they save time */
};

struct model_draft {
    struct model *model;             /* NULL where a file of texts has its rows */
    const struct corpus_rows *found; /* where rows are; NULL where they are a model's */
    const struct backend *backend;   /* that answers queries about rows */
    struct backend_context *context;
    int vocab;    /* ids that are drafted, the length of a row */
    int max_rows; /* of a step */
    struct kv_cache cache;
    struct forward forward;
    struct arena arena;
    struct rows rows;
    int outputs;                /* of a slot */
    int jobs;                   /* of a step at most */
    int32_t *asked;             /* [jobs] */
    float *logits;              /* [jobs][vocab] */
    int32_t *tally;             /* [vocab] */
    struct kept_query *queries; /* [jobs] */
    struct scored_token *best;  /* [jobs][room_of(state)] */
    double *p;                  /* [room_of(state)] */
    struct sparse_q *q;         /* [slots][outputs][MESSAGE_MAX_DRAFT] */
    struct listed *listed;      /* [slots][outputs][MESSAGE_MAX_DRAFT + 1], where it runs ahead: the row behind so many drafts */
    struct kept_choice *choice; /* [slots][MESSAGE_MAX_DRAFT] a choice where the device drafts */
    int support;
    struct draft_tree *tree; /* [slots], where it runs ahead: trees in the making */
    struct tree_shape shape;
    struct tree_ranks ranks; /* which children of the trees were right, */
    struct grown *grown;     /* [slots] by the texts that they were for */
    struct stopping stopping;
    enum breakage breakage;
    struct model_copies *copies; /* NULL: each draft takes a step */
};

/* Of an output of the mirror's slot: [MESSAGE_MAX_DRAFT], and [MESSAGE_MAX_DRAFT + 1]. */
struct sparse_q *draft_model_q(const struct model_draft *state, const struct mirror *mirror, int output);
struct listed *draft_model_listed(const struct model_draft *state, const struct mirror *mirror, int output);
/* Adds a row of a chain that begins at the place `first`. */
void draft_model_add_row(struct model_draft *state, const struct mirror *mirror, int place, int first);
/* Adds the rows of [mirror->cached, upto), at most `room`. */
void draft_model_add_chain(struct model_draft *state, struct mirror *mirror, int upto, int room);
/* The query about a row of logits from whose answer the a-th job of a step draws its token, which stands `depth` tokens behind a text of `base`. */
struct row_query draft_model_query(const struct model_draft *state, const struct mirror *mirror, int base, int depth, int a, int listed);
/* Does the backend answer the mirror's query? If not, its logits need more than scaling, and the host processes them. */
int draft_model_is_answered(const struct model_draft *state, const struct mirror *mirror);

/* What becomes of the answer about a job's row; NULL: there is no row behind its text. */
typedef void draft_model_taking(struct model_draft *state, const struct draft_job *job, const struct row_query *query);
/* One step of at most state->jobs jobs, and so many rows as the model takes. */
enum status draft_model_step(struct model_draft *state, const struct draft_job *jobs, int count, draft_model_taking *take);
/* The largest logits of a job's row, the winner of its noise among them. */
void draft_model_list(const struct model_draft *state, const struct draft_job *job, const struct row_query *query, struct listed *listed);

/* Is a tree to be drafted for the mirror? */
int draft_model_grows(const struct model_draft *state, const struct mirror *mirror);
/* As propose of struct draft_kind, for mirrors that lack few committed tokens and for which a tree is to be drafted. */
enum status draft_model_propose_trees(struct model_draft *state, struct mirror *const *mirrors, int count, struct draft_output *const *outputs);

/* The usual taking: draws the job's next token from the answer, or ends the draft there. */
draft_model_taking draft_model_take_token;

/* Room for copies over so many slots of so many tokens, and what they are for: as draft_copy. STATUS_INTERNAL, after a line, without memory. */
enum status draft_model_copies_open(struct model_draft *state, const struct draft_copies *copies, int slots, int context);
void draft_model_copies_close(struct model_draft *state);
/* Proposes copies in place of the model's drafts, if that is to be, and enough of the text's end has occurred before. 0: it does not. */
int draft_model_copy_first(struct model_draft *state, struct mirror *mirror, struct draft_output *output);
/* Would that be so of a branch's text, once it is committed? */
int draft_model_is_to_copy(struct model_draft *state, const struct mirror *mirror, const struct branch *branch);
/* The rest of a draft or of a branch as copies, if that is to be and its first tokens are there. 0: its next token is the model's. */
int draft_model_copy_rest(struct model_draft *state, const struct draft_job *job);
/* As propose of struct draft_kind, for chains of mirrors that lack few committed tokens. */
enum status draft_model_propose_cascade(struct model_draft *state, struct mirror *const *mirrors, int count, struct draft_output *const *outputs);

/* Can the device draft all of this by itself? */
int draft_model_is_left_to_device(const struct model_draft *state, struct mirror *const *mirrors, int count);
/* As propose of struct draft_kind. */
enum status draft_model_propose_on_device(struct model_draft *state, struct mirror *const *mirrors, int count, struct draft_output *const *outputs);

#endif
