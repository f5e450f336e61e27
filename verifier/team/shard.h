/* A shard is what one verifier rank computes: its part of the target over the slots, the evidence of the output rows, and the Gumbel-max draws that
 * the lead asks for. The lead's shard and the followers' are the same code; only the lead decides. */
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
    int32_t residual; /* 1: outside the row's support */
};

struct commit_note {
    int32_t output;
    int32_t token;
};

struct shard {
    struct model *model;
    struct kv_cache cache;
    struct forward forward;
    struct arena arena;
    struct slot_terms *terms; /* [slots] */
    int32_t *history;         /* [slots][context] tokens fed */
    float *logits;            /* [max_outputs][vocab_count] as the model gave them; rows that a device keeps are here once they are fetched */
    struct kept_query *queries; /* [max_outputs] */
    struct evidence_winner *drawn; /* [max_outputs] of the last step: a draw that the device made beforehand; */
    char *is_drawn;                /* [max_outputs] whether it did */
    float *processed;         /* [max_outputs][vocab_count] after biases, penalties and temperature; rows that have any, when the host reads them */
    int32_t *tally;           /* [vocab_count] zero between rows */
    uint32_t *excluded;       /* [(vocab_count + 31) / 32] zero between gumbel */
    int max_outputs;
    uint64_t hash; /* sum over committed tokens of this shard; see --hash-logits */
};

enum status shard_open(struct shard *shard, struct model *model, int slots, int max_outputs);
void shard_close(struct shard *shard);

/* A new sequence in a slot. */
void shard_open_slot(struct shard *shard, const struct slot_terms *terms);
/* The first tokens of one slot are those of another, too: what the cache and the history have of the places [first, first + count) is copied. */
struct copy_order {
    int32_t from, to; /* slots */
    int32_t first, count;
};
void shard_copy(struct shard *shard, const struct copy_order *order);
/* Bytes of the evidence of all output rows of a step. */
size_t shard_evidence_bytes(const struct shard *shard, const struct step *step);
/* Collective over the model's group: one forward; then the evidence of the output rows, one after the other, into `evidence`. */
enum status shard_step(struct shard *shard, const struct step *step, void *evidence);
/* Local. The winner of logit + RESIDUAL noise at each ordered row, by id. winners: [count] */
enum status shard_draws(struct shard *shard, const struct step *step, const struct draw_order *orders, int count,
                 struct evidence_winner *winners);
/* Local. Processed logits of an output row.  logits: [vocab_count] */
enum status shard_row(struct shard *shard, const struct step *step, int output, const float **logits);
/* Local. Adds the committed tokens that this shard owns to the hash.  notes: [count], count <= max_outputs */
enum status shard_note(struct shard *shard, const struct step *step, const struct commit_note *notes, int count);

/* The key of the noise of an output row: the position that it predicts. */
struct rng_key shard_key(const struct slot_terms *terms, const struct step *step, int output);

#endif
