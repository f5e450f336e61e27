/* What --draft says: the path of a draft model, or a drafter kind that needs none. The registry of the kinds has a row for each, with what the
 * command line, the launcher's checks, reports and both roles must know of it; no other file compares the values of the enum. The drafter has its
 * own part of each row (drafter/draft.h). The name of a kind, alone or with keys behind a colon, is that kind; anything else is a path, so a
 * folder of that name is ./lookup. Constant; reading and writing are local and pure. */
#ifndef TANDEM_COMMON_OPTIONS_OPTIONS_DRAFT_H
#define TANDEM_COMMON_OPTIONS_OPTIONS_DRAFT_H

#include "common/base/layer_set.h"
#include "common/base/status.h"
#include <stddef.h>

enum drafter_kind { DRAFT_MODEL, DRAFT_LOOKUP, DRAFT_SELF, DRAFT_NGRAM, DRAFT_RETRIEVAL, DRAFT_RANDOM, DRAFT_LOOKAHEAD, DRAFTER_KINDS };
enum { OPTIONS_DRAFT_LONGEST = 16, OPTIONS_DRAFT_TEXT = LAYER_SET_TEXT + 64, OPTIONS_DRAFT_KEYS = 4 };

struct options_draft {
    enum drafter_kind kind;
    int min, max; /* lookup: tokens that must be the same, and as many as are looked for: 1 .. OPTIONS_DRAFT_LONGEST */
    int job;      /* lookup: 1: it copies from the job's other sequences, too, and from those that ended */
    int bits;     /* self: 4 or 8 of the target's weights; 0: all that it has */
    int layers;   /* self: the first so many of the target's; 0: all */
    struct layer_set skip;      /* self: of these, those that are left out */
    int window, ngram, guesses; /* lookahead: places that are guessed at once, tokens of an n-gram, n-grams that are tried */
    const char *file; /* ngram, retrieval: its path, a part of the text that was read; else NULL */
};

/* A key of a kind, with a whole number as its value, or a set of layers. */
struct options_draft_key {
    const char *name; /* NULL: no key */
    size_t at;        /* offset in struct options_draft */
    int step;         /* it is one of step, 2 step .. most; 0: not given */
    int most;         /* 0: at `at` is a struct layer_set */
    const char *expected;
};

/* A kind is identified, in the journal and in Hello, by the model file that it reads for itself, or else by its name with all its keys and, where
 * it reads the target's file, the target; or by what is in a file of its own. */
struct options_draft_kind {
    const char *name, *form; /* and how it is said: PATH, NAME, NAME:KEY=... */
    const char *what, *source;
    int own_model;      /* reads the model that --draft names, which needs a target to be named, too */
    int target_model;   /* reads the target's file */
    const char *made_by; /* what stands behind its colon is the path of a file that this command of tandem made; it has no keys. NULL: none */
    int target_tokens;   /* needs to know the target's tokens, and so its tokenizer, and nothing else of it */
    int needs_features; /* of the target, for each committed token; no kind does, and no message carries them */
    int own_tree;       /* what it proposes is a tree of its own (TREE_OWN), and none of another shape, .. */
    int hears_target;   /* .. made of the target's own tokens behind its drafts, which each Commit has for it */
    int draws;          /* q is more than a point mass: a fault in how it draws is one */
    const char *architecture; /* in a bench's record, where no config.json has it; NULL: its model's */
    struct options_draft usual; /* where no key says otherwise */
    struct options_draft_key key[OPTIONS_DRAFT_KEYS];
    enum status (*check)(const struct options_draft *draft); /* of all keys together, with a logged line; NULL: nothing */
};

extern const struct options_draft_kind options_draft_kinds[DRAFTER_KINDS];

/* The row of what was read. */
const struct options_draft_kind *options_draft_kind(const struct options_draft *draft);
/* Drafts of a round of a kind with a tree of its own; 0 of another. */
int options_draft_own_tree(const struct options_draft *draft);
/* The names of all kinds but models, "lookup|self|...".  text: [OPTIONS_DRAFT_TEXT] */
void options_draft_names(char *text);
/* How many of `all` layers a model has that drafts so. */
int options_draft_layers(const struct options_draft *draft, int all);
/* Does the drafter's rank run a model, which needs weights, a tokenizer, memory, and cores or a device? */
int options_draft_runs_model(const struct options_draft *draft);
/* "lookup", "lookup:min=2,max=6", "lookup:job=1", "self:bits=4", "self:layers=12", "self:skip=3+8-11", "ngram:FILE", "retrieval:FILE", "random",
 * "lookahead:window=4", or a path; NULL is one. STATUS_USAGE with a line that names the key or its value. */
enum status options_draft_read(const char *text, struct options_draft *draft);
/* The same with every key that has a value, so that what means the same reads the same; "" for a path; of a file its name alone, without its folders,
 * and cut to what there is room for.  text: [OPTIONS_DRAFT_TEXT] */
void options_draft_write(const struct options_draft *draft, char *text);

#endif
