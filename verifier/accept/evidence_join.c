#include "verifier/accept/evidence_join.h"

#include "common/sample/distribution.h"
#include "common/sample/rule.h"
#include <math.h>
#include <string.h>

/* Shards are in rising order of ids, so requiring a strictly larger score gives ties to the lowest id. */
int evidence_join_winner(const struct evidence_joining *joining, struct target_row *target)
{
    struct evidence_winner best = {.token = -1};

    for (int r = 0; r < joining->ranks; r++) {
        struct evidence_winner winner;

        memcpy(&winner, joining->from[r], sizeof winner);
        if (winner.token >= 0 && (best.token < 0 || winner.score > best.score))
            best = winner;
    }
    *target = (struct target_row){.kind = TARGET_WINNER, .winner = best.token < 0 ? 0 : best.token};
    return 1;
}

/* The largest logit of all shards, and the sum over the vocabulary of exp(logit - max). */
static double join_mass(const void *const *from, int ranks, float *max)
{
    double sum = 0;

    *max = -INFINITY;
    for (int r = 0; r < ranks; r++) {
        const struct evidence_mass *mass = from[r];

        *max = mass->max > *max ? mass->max : *max;
    }
    for (int r = 0; r < ranks; r++) {
        const struct evidence_mass *mass = from[r];

        sum += mass->sum * exp((double)mass->max - (double)*max);
    }
    return sum;
}

/* Applies truncation to a sorted list and, where drafts are compared with the target's own token, draws that token. */
static int settle_list(const struct sampling *sampling, const struct rng_key *key, const struct scored_token *best, int count, int complete,
                       double sum, double *p, struct target_row *target)
{
    int kept = distribution_truncate(sampling, best, count, complete, sum, p);

    if (kept == 0)
        return 0;
    *target = (struct target_row){.kind = TARGET_LIST, .count = kept, .best = best, .p = p};
    if (rule_of(sampling)->matches) {
        target->winner = accept_draw_list(target, NULL, -1, NULL, key, RNG_NOISE);
        target->kind = TARGET_WINNER;
    }
    return 1;
}

int evidence_join_list(const struct evidence_joining *joining, struct target_row *target)
{
    const struct sampling *sampling = joining->sampling;
    const struct rng_key *key = joining->key;
    const void *const *from = joining->from;
    struct scored_token *best = joining->best;
    double *p = joining->p;
    int count = 0, unlisted = 0, wanted = evidence_list_length(sampling), ranks = joining->ranks;
    float max, floor = -INFINITY;
    double sum = join_mass(from, ranks, &max);

    for (int r = 0; r < ranks; r++) {
        const struct evidence_mass *mass = from[r];
        const struct scored_token *listed = (const struct scored_token *)(mass + 1);

        distribution_merge(best, count, listed, mass->count);
        count += mass->count;
        if (mass->count == wanted) { /* the shard has more tokens, none better than the last one listed */
            unlisted = 1;
            floor = listed[mass->count - 1].score > floor ? listed[mass->count - 1].score : floor;
        }
    }
    if (!unlisted || count == joining->vocab)
        return settle_list(sampling, key, best, count, 1, sum, p, target);
    /* The list is complete only above the floor. Ties with the floor are cut too, or their order would depend on the number of shards. */
    int sure = 0;
    while (sure < count && best[sure].score > floor)
        sure++;
    if (sampling->top_k > 0 && sampling->top_k <= EVIDENCE_LIST_MOST)
        sure = sampling->top_k < count ? sampling->top_k : count; /* each shard listed as many tokens as top-k can keep */
    return sure > 0 && settle_list(sampling, key, best, sure, 0, sum, p, target);
}

int evidence_join_support(const struct evidence_joining *joining, struct target_row *target)
{
    float max, *logit = joining->logit;
    double sum = join_mass(joining->from, joining->ranks, &max);

    for (int i = 0; i < joining->support_count; i++) {
        logit[i] = -INFINITY; /* ids that no shard owns have p = 0 */
        for (int r = 0; r < joining->ranks; r++) {
            const struct evidence_mass *mass = joining->from[r];
            float value = ((const float *)(mass + 1))[i];

            logit[i] = value > logit[i] ? value : logit[i];
        }
    }
    *target = (struct target_row){.kind = TARGET_SUPPORT, .count = joining->support_count, .logit = logit, .log_z = (double)max + log(sum)};
    return 1;
}

/* H = log Z - the mean logit; a shard tells how far below its own largest that lies. */
int evidence_join_entropy_support(const struct evidence_joining *joining, struct target_row *target)
{
    float max;
    double sum = join_mass(joining->from, joining->ranks, &max), below = 0;

    for (int r = 0; r < joining->ranks; r++) {
        const struct evidence_mass *mass = joining->from[r];
        double own = *(const double *)(const void *)((const char *)mass + evidence_join_support_bytes(joining->support_count));
        double apart = (double)max - (double)mass->max;

        if (isfinite(apart))
            below += (own + apart * mass->sum) * exp(-apart);
    }
    (void)evidence_join_support(joining, target);
    target->entropy = log(sum) + below / sum;
    return 1;
}

/* Ties go to the lowest id, as in evidence_join_winner. */
int evidence_join_best_support(const struct evidence_joining *joining, struct target_row *target)
{
    float max = -INFINITY;
    int32_t winner = 0;

    (void)evidence_join_support(joining, target);
    for (int r = 0; r < joining->ranks; r++) {
        const struct evidence_mass *mass = joining->from[r];

        if (mass->max > max) {
            max = mass->max;
            winner = mass->count;
        }
    }
    target->winner = winner;
    target->most = exp((double)max - target->log_z);
    return 1;
}

void evidence_join_whole(const struct sampling *sampling, const struct rng_key *key, const float *logits, int vocab, struct scored_token *best,
                         double *p, struct target_row *target)
{
    double sum = 0;

    for (int i = 0; i < vocab; i++)
        best[i] = (struct scored_token){.score = logits[i], .token = i};
    distribution_sort(best, vocab);
    for (int i = 0; i < vocab; i++)
        sum += exp((double)best[i].score - (double)best[0].score);
    settle_list(sampling, key, best, vocab, 1, sum, p, target);
}
