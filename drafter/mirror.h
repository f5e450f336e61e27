/* A mirror is the drafter's disposable copy of one sequence: it owns the tokens that the lead has committed, and how much of the draft model's cache
 * holds them. Invariant: places [0, cached) of the slot's cache hold tokens[0 .. cached), and cached <= length - 1 when a draft begins; when it
 * goes on, cached is less than the tokens that are there. It may be behind, wrong or gone: only speed depends on it. The drafter's thread alone
 * calls; local, never sends or waits, and allocates at init alone.
 *
 * A drafter that runs ahead drafts for texts that may come of its draft: some of the drafts are accepted, and another token follows. Each such text
 * is a branch. A Commit that says just that text makes what was drafted in its branch the draft of the committed text. */
#ifndef TANDEM_DRAFTER_MIRROR_H
#define TANDEM_DRAFTER_MIRROR_H

#include "common/base/arena.h"
#include "common/sample/tree_shape.h"
#include "common/wire/message.h"

enum {
    MIRROR_ROOM = 64,     /* places that a row of a step can see one by one: BACKEND_MAX_ROWS */
    MIRROR_BRANCHES = 12, /* of one draft at most */
    MIRROR_GUESSES = 8,   /* tokens that may come in the place of one draft, at most */
};

/* A text that may be committed next: the first `after` tokens of the draft, then a guess; and what is drafted for it. The guess and the drafts lie
 * behind the draft, in tokens and cache from `place` on, and each sees those of its text alone. */
struct branch {
    int after;
    int guess;  /* which of the guesses there */
    int place;  /* tokens[place] is the guess */
    int count;  /* tokens drafted: tokens[place + 1 .. place + count]; as many from `place` on are in the cache, */
    int copies; /* but for so many: the last ones were drafted without the one before them being fed */
    int wanted; /* and so many shall be; 0: nothing can be drafted for this text before it is committed */
    int is_sent, is_stopped;
    double reach;    /* of stopping_ends */
    int output;      /* which of the slot's outputs has them */
    uint64_t digest; /* of the text */
};

/* Tokens that the lead may come to by itself behind the first drafts, best first; none of them is the draft there. */
struct guesses {
    int count;
    int32_t token[MIRROR_GUESSES];
};

/* The tokens of a tree that are in the cache behind the committed ones, as rows of a step have them: tokens[length + i] is the i-th. */
struct mirror_tree {
    int count;
    int8_t parent[MIRROR_ROOM]; /* one of these; -1: the newest committed token */
    int8_t depth[MIRROR_ROOM];  /* tokens of its path */
    uint64_t path[MIRROR_ROOM]; /* those that lead to it, and it */
};

struct mirror {
    int open;
    int slot;
    uint32_t request;
    uint32_t line; /* with the seed the key of its random numbers */
    uint32_t pass; /* of the job over its prompts */
    int context;
    uint32_t opened; /* how often it was: between two times its committed tokens only grow */
    int prompt_count;
    struct sampling sampling;
    struct bias bias;
    uint64_t sampling_digest; /* of sampling and bias */
    int32_t *tokens;          /* [context] the committed tokens, then the draft in progress, then its branches */
    int length;      /* committed */
    uint64_t digest; /* of the committed tokens */
    int cached;
    int wanted;      /* tokens to draft; 0: none are asked for */
    int asked;       /* so many were asked for with the text that is committed, */
    enum tree_kind shape; /* and in this shape, where the lead chooses it */
    int drafted;     /* tokens of the draft in progress: tokens[length .. length + drafted) */
    int is_stopped;  /* the draft ends there, however many were asked for (stopping.h) */
    double reach;    /* of stopping_ends */
    int output;      /* which of the slot's outputs has it */
    int begun;       /* of these drafted before the Commit that asked for them */
    int64_t asked_ns;
    struct mirror_tree tree; /* where a tree was drafted and no chain */
    struct {
        int is_planned;                                /* branches were chosen for this draft */
        int bonuses;                                   /* of these, how many go on from all of the draft */
        int has_looked;                                /* the draft's last token is in the cache, too, and what is expected behind it known */
        struct guesses guesses[MESSAGE_MAX_DRAFT + 1]; /* behind so many drafts; those behind all of them once it has looked */
        int branches;
        struct branch branch[MIRROR_BRANCHES];
    } ahead;
};

/* Places of the cache whose keys and values are to be copied. */
struct mirror_move {
    int from, to, count;
};

size_t mirror_bytes(int context);
void mirror_init(struct mirror *mirror, struct arena *arena, int slot, int context);
/* Starts or restarts the mirror from an Open; the cache of a common prefix stays. Returns 0 when the text does not fit the context. */
int mirror_open(struct mirror *mirror, const struct open_message *open);
void mirror_close(struct mirror *mirror);
/* Tokens that a branch of its draft may have. */
int mirror_branch_length(const struct mirror *mirror);
/* How many of these leading tokens the cache holds.  tokens: [count] */
int mirror_common(const struct mirror *mirror, const int32_t *tokens, int count);
/* Adds a branch for the text in which the first `after` drafts are accepted and the given guess there follows. Returns 0 where the context, or a step
 * of the backend, has no room for that many drafts. */
int mirror_branch(struct mirror *mirror, int after, int guess);
/* The branch of the text that the Commit makes, -1: there is none. */
int mirror_expected(const struct mirror *mirror, const struct commit *commit);
/* Adds a token of a tree behind the one at `parent` (-1: the newest committed one). Returns its index, -1 where there is no room. */
int mirror_grow(struct mirror *mirror, int parent, int32_t token);
/* The Commit's tokens that are in the cache as a path of the tree, and not where they belong: one move for each, to be done in order. To be called
 * before mirror_commit, which counts them as cached. Returns how many.  moves: [MESSAGE_MAX_COMMIT] */
int mirror_path(const struct mirror *mirror, const struct commit *commit, struct mirror_move *moves);
/* Applies a Commit: appends the tokens, truncates the cache. A Commit of tokens that the mirror has already changes nothing. Where a branch is of
 * this text, what was drafted in it is the draft now, nothing more is wanted if it was sent, and *move says what is to be copied in the cache before
 * its next use; else move->count is 0. Returns 0, and closes the mirror until the next Open, when the Commit does not continue its tokens. */
int mirror_commit(struct mirror *mirror, const struct commit *commit, struct mirror_move *move);

#endif
