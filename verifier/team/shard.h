/* A shard is what one verifier rank computes: it owns this rank's part of the KV cache, the logits and the token history of every slot, and takes
 * evidence and Gumbel-max draws from them. Invariant: after a step all ranks' shards have the same tokens in the same places of the same slots; lead
 * and followers run the same code. The rank's main thread calls; a step is collective over the model's group, all else is local. Never accepts,
 * rejects or commits: only the lead decides. Allocates at open alone. */
#ifndef TANDEM_VERIFIER_TEAM_SHARD_H
#define TANDEM_VERIFIER_TEAM_SHARD_H

#include "common/model/forward.h"
#include "common/sample/bias.h"
#include "common/sample/sampling.h"
#include "verifier/accept/evidence.h"
#include "verifier/team/step.h"

struct slot_terms {
    struct sampling sampling;
    uint32_t request;
    int32_t prompt_count;
    int32_t slot;
    int32_t spare;
    struct bias bias;
};

struct draw_order {
    int32_t output; /* index of the output row of the last step */
    int32_t residual; /* 1: draw among tokens outside q's support */
};

struct commit_note {
    int32_t output;
    int32_t token;
};

/* Asks for log p of a token at an output row of the last step, a scored one or not, and of the `top` most probable ones. */
struct logprob_order {
    int32_t output;
    int32_t token;
    int32_t top; /* 0 .. ROW_MAX_LOGPROBS */
};

/* What a shard says to it, of the logits as the model gave them. */
struct logprob_share {
    double sum;  /* of exp(logit - max) over the shard */
    float max;
    float logit; /* of the token; minus infinity where it is another shard's */
    int32_t count, spare;
    struct scored_token best[ROW_MAX_LOGPROBS]; /* [count], largest first; token: id, score: logit */
};

struct shard {
    struct model *model;
    struct kv_cache cache;
    struct forward forward;
    struct arena arena;
    struct slot_terms *terms; /* [slots] */
    int32_t *history;         /* [slots][context] tokens that were fed */
    float *logits;            /* [max_outputs][vocab_count] as the model gave them; a row that a device keeps is valid here only after fetch */
    struct kept_query *queries; /* [max_outputs] */
    struct evidence_winner *drawn; /* [max_outputs] draws that the device made together with the last step's evidence */
    char *is_drawn;                /* [max_outputs] was there one? */
    float *processed;         /* [max_outputs][vocab_count] after biases, penalties and temperature; only of rows that the host processes */
    int32_t *tally;           /* [vocab_count] zero between rows */
    uint32_t *excluded;       /* [(vocab_count + 31) / 32] bits, zero between draws */
    int max_outputs;
    uint64_t hash; /* sum of hashes over the committed tokens that this shard owns; for --hash-logits */
};

enum status shard_open(struct shard *shard, struct model *model, int slots, int max_outputs);
void shard_close(struct shard *shard);

/* Begins a new sequence in a slot. */
void shard_open_slot(struct shard *shard, const struct slot_terms *terms);
/* Copies a common prefix: cache and history of the places [first, first + count) of slot `from` to slot `to`. */
struct copy_order {
    int32_t from, to; /* slots */
    int32_t first, count;
};
void shard_copy(struct shard *shard, const struct copy_order *order);
/* A token of a tree that was accepted goes to the place of its position: cache and history of one place of the slot. */
struct keep_order {
    int32_t slot;
    int32_t from, to; /* places, to < from */
};
void shard_keep(struct shard *shard, const struct keep_order *orders, int count);
/* Bytes of the evidence of all output rows of a step. */
size_t shard_evidence_bytes(const struct shard *shard, const struct step *step);
/* Collective over the model's group. One forward pass, then the evidence of the output rows, one after the other, into `evidence`. */
enum status shard_step(struct shard *shard, const struct step *step, void *evidence);
/* Local. The token of the largest logit + noise (RNG_RESIDUAL) at each ordered row, on this shard.  winners: [count] */
enum status shard_draws(struct shard *shard, const struct step *step, const struct draw_order *orders, int count,
                 struct evidence_winner *winners);
/* Local. Processed logits of an output row.  logits: [vocab_count] */
enum status shard_row(struct shard *shard, const struct step *step, int output, const float **logits);
/* Local. Adds the committed tokens that this shard owns to the hash.  notes: [count], count <= max_outputs */
enum status shard_note(struct shard *shard, const struct step *step, const struct commit_note *notes, int count);

/* Local. orders: [count], at most max_outputs, which may overlap the shares */
enum status shard_logprobs(struct shard *shard, const struct step *step, const struct logprob_order *orders, int count, struct logprob_share *shares);

/* The key of an output row's coins and noise. Its position is the one that the row predicts. */
struct rng_key shard_key(const struct slot_terms *terms, const struct step *step, int output);

#endif
