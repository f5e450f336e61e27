#include "verifier/accept/evidence.h"

#include "common/sample/distribution.h"
#include "verifier/accept/accept_rule.h"
#include <math.h>
#include <string.h>

enum evidence_kind evidence_kind(const struct sampling *sampling)
{
    const struct accept_rule *rule = accept_rule(sampling);

    return distribution_truncates(sampling) ? rule->truncated : rule->evidence;
}

int evidence_list_length(const struct sampling *sampling)
{
    if (sampling->top_k == 0)
        return EVIDENCE_LIST_DEFAULT;
    return sampling->top_k < EVIDENCE_LIST_MOST ? sampling->top_k : EVIDENCE_LIST_MOST;
}

size_t evidence_bytes(const struct sampling *sampling, int support_count)
{
    size_t floats = ((size_t)support_count + 1) / 2 * 2;

    switch (evidence_kind(sampling)) {
    case EVIDENCE_LIST:
        return sizeof(struct evidence_mass) + (size_t)evidence_list_length(sampling) * sizeof(struct scored_token);
    case EVIDENCE_SUPPORT:
        return sizeof(struct evidence_mass) + floats * sizeof(float);
    case EVIDENCE_BEST:
    case EVIDENCE_GUMBEL_MAX:
        break;
    }
    return sizeof(struct evidence_winner);
}

void evidence_ask(const struct sampling *sampling, const struct evidence_row *row, void *to, struct row_query *query)
{
    struct evidence_mass *mass = to;

    *query = (struct row_query){.key = row->key, .purpose = RNG_NOISE};
    switch (evidence_kind(sampling)) {
    case EVIDENCE_LIST:
        query->top = evidence_list_length(sampling);
        query->best = (struct scored_token *)(mass + 1);
        break;
    case EVIDENCE_SUPPORT:
        query->token = row->support;
        query->tokens = row->support_count;
        query->logit = (float *)(mass + 1);
        break;
    case EVIDENCE_GUMBEL_MAX:
        query->gumbel = 1;
        return;
    case EVIDENCE_BEST:
        query->scans = 1;
        return;
    }
    query->scans = query->sums = 1;
}

void evidence_put(const struct sampling *sampling, const struct evidence_row *row, const struct row_query *query, void *to)
{
    enum evidence_kind kind = evidence_kind(sampling);
    struct evidence_winner *winner = to;
    struct evidence_mass *mass = to;

    if (kind == EVIDENCE_GUMBEL_MAX) {
        *winner = (struct evidence_winner){.score = query->winner.score, .token = query->winner.token < 0 ? -1 : query->winner.token + row->first};
        return;
    }
    if (kind == EVIDENCE_BEST) {
        *winner = (struct evidence_winner){.score = query->stats.max, .token = query->stats.argmax + row->first};
        return;
    }
    *mass = (struct evidence_mass){
        .sum = query->stats.sum, .max = query->stats.max, .count = kind == EVIDENCE_LIST ? query->best_count : row->support_count};
    for (int i = 0; i < query->best_count; i++)
        query->best[i].token += row->first;
}

void evidence_take(const struct backend *backend, struct backend_context *context, const struct sampling *sampling,
                   const struct evidence_row *row, void *to)
{
    struct row_query query;

    evidence_ask(sampling, row, to, &query);
    backend_answer(backend, context, row->logits, row->first, row->count, NULL, &query);
    evidence_put(sampling, row, &query, to);
}

int evidence_is_finite(const struct sampling *sampling, const void *const *from, int ranks)
{
    enum evidence_kind kind = evidence_kind(sampling);

    for (int r = 0; r < ranks; r++) {
        const struct evidence_winner *winner = from[r];
        const struct evidence_mass *mass = from[r];

        if (kind == EVIDENCE_BEST || kind == EVIDENCE_GUMBEL_MAX ? winner->token >= 0 && isfinite(winner->score)
                                                            : isfinite(mass->max) && isfinite(mass->sum))
            return 1;
    }
    return 0;
}

/* Shards are in rising order of ids, so requiring a strictly larger score gives ties to the lowest id. */
static int32_t join_winner(const void *const *from, int ranks)
{
    struct evidence_winner best = {.token = -1};

    for (int r = 0; r < ranks; r++) {
        struct evidence_winner winner;

        memcpy(&winner, from[r], sizeof winner);
        if (winner.token >= 0 && (best.token < 0 || winner.score > best.score))
            best = winner;
    }
    return best.token < 0 ? 0 : best.token;
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
static int settle_list(const struct sampling *sampling, const struct rng_key *key, const struct scored_token *best, int count,
                       int complete, double sum, double *p, struct target_row *target)
{
    int kept = distribution_truncate(sampling, best, count, complete, sum, p);

    if (kept == 0)
        return 0;
    *target = (struct target_row){.kind = TARGET_LIST, .count = kept, .best = best, .p = p};
    if (accept_rule(sampling)->matches) {
        target->winner = accept_draw_list(target, NULL, -1, DRAW_PLAIN, key, RNG_NOISE);
        target->kind = TARGET_WINNER;
    }
    return 1;
}

static int join_list(const struct sampling *sampling, const struct rng_key *key, const void *const *from, int ranks, int vocab,
                     struct scored_token *best, double *p, struct target_row *target)
{
    int count = 0, unlisted = 0, wanted = evidence_list_length(sampling);
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
    if (!unlisted || count == vocab)
        return settle_list(sampling, key, best, count, 1, sum, p, target);
    /* The list is complete only above the floor. Ties with the floor are cut too, or their order would depend on the number of shards. */
    int sure = 0;
    while (sure < count && best[sure].score > floor)
        sure++;
    if (sampling->top_k > 0 && sampling->top_k <= EVIDENCE_LIST_MOST)
        sure = sampling->top_k < count ? sampling->top_k : count; /* each shard listed as many tokens as top-k can keep */
    return sure > 0 && settle_list(sampling, key, best, sure, 0, sum, p, target);
}

static void join_support(const void *const *from, int ranks, int support_count, float *logit, struct target_row *target)
{
    float max;
    double sum = join_mass(from, ranks, &max);

    for (int i = 0; i < support_count; i++) {
        logit[i] = -INFINITY; /* ids that no shard owns have p = 0 */
        for (int r = 0; r < ranks; r++) {
            const struct evidence_mass *mass = from[r];
            float value = ((const float *)(mass + 1))[i];

            logit[i] = value > logit[i] ? value : logit[i];
        }
    }
    *target = (struct target_row){.kind = TARGET_SUPPORT, .count = support_count, .logit = logit, .log_z = (double)max + log(sum)};
}

int evidence_join(const struct sampling *sampling, const struct rng_key *key, const void *const *from, int ranks, int support_count,
                  int vocab, struct scored_token *best, double *p, float *logit, struct target_row *target)
{
    switch (evidence_kind(sampling)) {
    case EVIDENCE_LIST:
        return join_list(sampling, key, from, ranks, vocab, best, p, target);
    case EVIDENCE_SUPPORT:
        join_support(from, ranks, support_count, logit, target);
        return 1;
    case EVIDENCE_BEST:
    case EVIDENCE_GUMBEL_MAX:
        break;
    }
    *target = (struct target_row){.kind = TARGET_WINNER, .winner = join_winner(from, ranks)};
    return 1;
}

void evidence_join_whole(const struct sampling *sampling, const struct rng_key *key, const float *logits, int vocab,
                         struct scored_token *best, double *p, struct target_row *target)
{
    double sum = 0;

    for (int i = 0; i < vocab; i++)
        best[i] = (struct scored_token){.score = logits[i], .token = i};
    distribution_sort(best, vocab);
    for (int i = 0; i < vocab; i++)
        sum += exp((double)best[i].score - (double)best[0].score);
    settle_list(sampling, key, best, vocab, 1, sum, p, target);
}
