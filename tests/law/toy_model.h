/* A toy pair of models whose law can be enumerated: a table of logits by position and the two tokens before. Only the forward pass is
 * replaced (forward_open, forward_begin and the others are defined here, and the linker takes these); everything above it is the real
 * code. The toy forward writes its tokens into the real cache and reads them back from there, so that a stale place, a wrong place or a wrong
 * ancestor moves the law. */
#ifndef TANDEM_TESTS_LAW_TOY_MODEL_H
#define TANDEM_TESTS_LAW_TOY_MODEL_H

#include "common/model/forward.h"

enum {
    TOY_MOST = 16,     /* tokens that occur */
    TOY_IDS = 64,      /* ids of the vocabulary; the rest have probability 0 */
    TOY_POSITIONS = 4, /* tables; later positions begin again */
    TOY_PROMPT = 2,
    TOY_CONTEXT = 32,
};

struct toy_terms {
    int tokens;     /* 4 or 16 */
    double overlap; /* m: q = m p + (1 - m) noise */
    int zeros;      /* some p and some q are 0 */
    int flat;       /* all rows alike */
    uint64_t seed;
};

/* Logits by [position][token before][newest token][token]. */
struct toy_law {
    int tokens;
    int32_t id[TOY_MOST]; /* rising */
    int token_of[TOY_IDS];
    float p[TOY_POSITIONS][TOY_MOST][TOY_MOST][TOY_MOST];
    float q[TOY_POSITIONS][TOY_MOST][TOY_MOST][TOY_MOST];
    int wide_ids;        /* not 0: a vocabulary of so many ids, and at every position the same two rows instead of the tables: */
    const float *wide_p; /* [wide_ids] */
    const float *wide_q; /* [wide_ids] */
};

struct toy_model {
    struct model model; /* first: the forward pass finds the rest through it */
    struct backend backend;
    const struct toy_law *law;
    int is_draft;
    struct kv_cache *cache; /* the last that a forward was opened on: key [slot][place] is the token fed there, or NaN */
    /* Called after every forward, where set. */
    void (*ran)(struct toy_model *toy, const struct rows *rows);
    void *user;
};

void toy_law_fill(struct toy_law *law, const struct toy_terms *terms);
/* A law of two rows over a real vocabulary, ids a multiple of 64. The rows are the caller's. */
void toy_law_widen(struct toy_law *law, int ids, const float *p, const float *q);
/* Ids of its vocabulary. */
int toy_law_ids(const struct toy_law *law);
/* The row of the tables that predicts `position` (TOY_PROMPT is the first), over all ids; history: the tokens before it, as ids.
 * logits: [TOY_IDS] */
void toy_law_row(const struct toy_law *law, int is_draft, int position, const int32_t *history, float *logits);

/* A shard of the toy: an equal share of the ids. */
void toy_model_init(struct toy_model *toy, const struct toy_law *law, int is_draft, struct group *group, struct backend_context *context,
                    int max_rows);

#endif
