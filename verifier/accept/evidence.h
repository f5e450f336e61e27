/* Evidence is what a shard reports to the lead about one row of logits: a few numbers instead of the row. A kind is a row of the
 * table in evidence.c. Each has a fixed size that every rank knows beforehand, so that one gather of equal blocks carries all rows. It owns nothing:
 * all memory is the caller's. Local; nothing here sends, waits, allocates or decides. */
#ifndef TANDEM_VERIFIER_ACCEPT_EVIDENCE_H
#define TANDEM_VERIFIER_ACCEPT_EVIDENCE_H

#include "common/backend/backend.h"
#include "common/sample/sampling.h"
#include "verifier/accept/accept.h"

enum evidence_kind {
    EVIDENCE_BEST,         /* greedy: the largest logit and its lowest id */
    EVIDENCE_GUMBEL_MAX,   /* rules that compare tokens: the largest logit + noise */
    EVIDENCE_LIST,         /* truncated sampling: the best tokens, and the shard's mass */
    EVIDENCE_SUPPORT,      /* rules that need q, without truncation: the shard's mass, and the logits of q's support */
    EVIDENCE_BEST_SUPPORT, /* rules of their own at temperature 0: the largest logit and its lowest id, the shard's mass, and the logits of drafts */
    EVIDENCE_ENTROPY_SUPPORT, /* rules that need p's entropy, without truncation: as SUPPORT, and behind it a double, row_stats.below */
    EVIDENCE_KINDS
};

/* What others ask of a kind, so that none of them compares kinds. How it is computed, sent and joined is beside it in the table of evidence.c. */
struct evidence_facts {
    const char *name;
    int tells_support; /* the logits of q's support, which the lead has to name */
    int leaves_draw;   /* the token after a rejected draft is in none of it: drawn from the row, by RNG_RESIDUAL, outside q's support */
};

enum { EVIDENCE_LIST_DEFAULT = 256, EVIDENCE_LIST_MOST = ROW_MAX_ASKED };

struct evidence_winner {
    float score;
    int32_t token; /* token id; -1: none on this shard */
};

struct evidence_mass {
    double sum; /* of exp(logit - max) over the shard */
    float max;
    int32_t count; /* LIST: tokens that follow; SUPPORT, ENTROPY_SUPPORT: floats that follow; BEST_SUPPORT: id of the largest logit, whose floats are
                      as many as asked */
};

enum evidence_kind evidence_kind(const struct sampling *sampling);
const struct evidence_facts *evidence_facts(const struct sampling *sampling);
/* Tokens that a shard lists for a LIST row. */
int evidence_list_length(const struct sampling *sampling);
/* Bytes of one row's evidence, a multiple of 8. */
size_t evidence_bytes(const struct sampling *sampling, int support_count);
/* Bytes that suffice for so many rows of any kinds, with so many ids of supports in all. */
size_t evidence_room(int rows, int ids);

/* One row's input: its logits after penalties and temperature, the key of its noise, q's support. */
struct evidence_row {
    const float *logits; /* [count] of ids first .. first + count - 1, for evidence_take */
    int32_t first;
    int32_t count;
    struct rng_key key; /* position: the one that the row predicts */
    const int32_t *support; /* [support_count] ids */
    int support_count;
};

/* Makes the backend query for a row's evidence; lists are answered directly into `to`, and evidence_put writes the rest there. Local, pure. */
void evidence_ask(const struct sampling *sampling, const struct evidence_row *row, void *to, struct row_query *query);
void evidence_put(const struct sampling *sampling, const struct evidence_row *row, const struct row_query *query, void *to);
/* evidence_ask, backend_answer and evidence_put in one: computes one row's evidence into `to`. Local. */
void evidence_take(const struct backend *backend, struct backend_context *context, const struct sampling *sampling,
                   const struct evidence_row *row, void *to);

/* Has the row a finite logit? If not, there is no distribution, and the weights are damaged.  from[r]: rank r's bytes */
int evidence_is_finite(const struct sampling *sampling, const void *const *from, int ranks);

/* Joins the shards' evidence of one row into a target row. from[r]: rank r's bytes; best, p: [room] for lists; logit: [support_count] for q's
 * support. Returns 1, or 0 when the lists are too short for top-p or min-p and the whole row is needed. */
int evidence_join(const struct sampling *sampling, const struct rng_key *key, const void *const *from, int ranks, int support_count,
                  int vocab, struct scored_token *best, double *p, float *logit, struct target_row *target);

/* The same from whole rows: logits of all ids, in rank order.  best, p: [vocab] */
void evidence_join_whole(const struct sampling *sampling, const struct rng_key *key, const float *logits, int vocab,
                         struct scored_token *best, double *p, struct target_row *target);

#endif
