/* What is asked of one row of logits, or of one shard of it, and what it answers: its statistics, its largest logits, the winner of a draw. Plain
 * data that the backend fills in, and that drafting and deciding read. Compiled for the device, too. */
#ifndef TANDEM_COMMON_SAMPLE_ROW_H
#define TANDEM_COMMON_SAMPLE_ROW_H

#include "common/base/rng.h"
#include <stdint.h>

enum {
    ROW_MAX_ASKED = 1024, /* tokens of one row that are asked for: a support of q, or a list of the largest logits */
    ROW_MAX_LOGPROBS = 20 /* of the most probable ones that a result has, as OpenAI has it */
};

/* What is summed over a row. */
enum row_sums { ROW_SUMS_NONE, ROW_SUMS_MASS, ROW_SUMS_BELOW /* both */ };

/* What one shard knows of one row of logits. */
struct row_stats {
    float max;      /* the largest logit */
    int32_t argmax; /* its lowest index in the shard */
    double sum;     /* of exp(logit - max) over the shard; 0 when max is minus infinity */
    double below;   /* of (max - logit) exp(logit - max), so that log sum + below / sum is the entropy in nats; 0 likewise */
};

struct scored_token {
    float score;
    int32_t token; /* index in the shard */
};

/* What is asked of one row of logits, and what it answers, which may be more. The logits are those of ids first .. first + count - 1. */
struct row_query {
    int scans;             /* whether max and argmax of `stats` are asked for */
    enum row_sums sums;    /* which of its sums are, with these */
    int gumbel;             /* whether `winner` is: the largest logit + gumbel(key, purpose, id) */
    int excludes;          /* whether the ids of `token` take no part in the Gumbel-max */
    struct rng_key key;
    uint32_t coin; /* index of the coin that a token is drawn from q with (rule_coin), beside the key */
    enum rng_purpose purpose;
    const int32_t *token;  /* [tokens] ids, rising, of any shard; at most ROW_MAX_ASKED */
    int tokens;
    int top;               /* so many of the largest are asked for, at most ROW_MAX_ASKED */

    struct row_stats stats;
    struct scored_token winner; /* token: an index in the row, -1 when none is above minus infinity */
    float *logit;               /* [tokens] or NULL: of each token, minus infinity where it is another shard's */
    struct scored_token *best;  /* [best_count] of [top]: largest first, ties to the lower index */
    int best_count;             /* min(top, count) */
};

#endif
