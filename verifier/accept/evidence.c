#include "verifier/accept/evidence.h"

#include "common/sample/distribution.h"
#include "common/sample/rule.h"
#include "verifier/accept/accept_rule.h"
#include <math.h>
#include <string.h>

enum evidence_kind evidence_kind(const struct sampling *sampling)
{
    const struct accept_rule *rule = accept_rule(sampling);

    if (sampling->temperature == 0.0 && rule_of(sampling)->cold)
        return rule->cold;
    return distribution_truncates(sampling) ? rule->truncated : rule->evidence;
}

int evidence_list_length(const struct sampling *sampling)
{
    if (sampling->top_k == 0)
        return EVIDENCE_LIST_DEFAULT;
    return sampling->top_k < EVIDENCE_LIST_MOST ? sampling->top_k : EVIDENCE_LIST_MOST;
}

/* What shards tell of one row, and where it goes: as evidence_join. */
struct joining {
    const struct sampling *sampling;
    const struct rng_key *key;
    const void *const *from; /* [ranks] */
    int ranks, support_count, vocab;
    struct scored_token *best; /* [room], and p */
    double *p;
    float *logit; /* [support_count] */
};

/* What a kind makes of a row of logits, and of what shards tell of one. */
struct kind {
    struct evidence_facts facts;
    size_t (*bytes)(const struct sampling *sampling, int support_count);
    void (*ask)(const struct sampling *sampling, const struct evidence_row *row, void *to, struct row_query *query);
    void (*put)(const struct evidence_row *row, const struct row_query *query, void *to);
    int (*is_finite)(const void *from);
    int (*join)(const struct joining *joining, struct target_row *target);
};

static size_t bytes_of_winner(const struct sampling *sampling, int support_count)
{
    (void)sampling;
    (void)support_count;
    return sizeof(struct evidence_winner);
}

static size_t bytes_of_list(const struct sampling *sampling, int support_count)
{
    (void)support_count;
    return sizeof(struct evidence_mass) + (size_t)evidence_list_length(sampling) * sizeof(struct scored_token);
}

static size_t bytes_of_support(const struct sampling *sampling, int support_count)
{
    size_t floats = ((size_t)support_count + 1) / 2 * 2;

    (void)sampling;
    return sizeof(struct evidence_mass) + floats * sizeof(float);
}

static size_t bytes_of_entropy_support(const struct sampling *sampling, int support_count)
{
    return bytes_of_support(sampling, support_count) + sizeof(double);
}

static void ask_best(const struct sampling *sampling, const struct evidence_row *row, void *to, struct row_query *query)
{
    (void)sampling;
    (void)row;
    (void)to;
    query->scans = 1;
}

static void ask_gumbel_max(const struct sampling *sampling, const struct evidence_row *row, void *to, struct row_query *query)
{
    (void)sampling;
    (void)row;
    (void)to;
    query->gumbel = 1;
}

static void ask_list(const struct sampling *sampling, const struct evidence_row *row, void *to, struct row_query *query)
{
    struct evidence_mass *mass = to;

    (void)row;
    query->scans = 1;
    query->sums = ROW_SUMS_MASS;
    query->top = evidence_list_length(sampling);
    query->best = (struct scored_token *)(mass + 1);
}

static void ask_support(const struct sampling *sampling, const struct evidence_row *row, void *to, struct row_query *query)
{
    struct evidence_mass *mass = to;

    (void)sampling;
    query->scans = 1;
    query->sums = ROW_SUMS_MASS;
    query->token = row->support;
    query->tokens = row->support_count;
    query->logit = (float *)(mass + 1);
}

static void ask_entropy_support(const struct sampling *sampling, const struct evidence_row *row, void *to, struct row_query *query)
{
    ask_support(sampling, row, to, query);
    query->sums = ROW_SUMS_BELOW;
}

static void put_best(const struct evidence_row *row, const struct row_query *query, void *to)
{
    *(struct evidence_winner *)to = (struct evidence_winner){.score = query->stats.max, .token = query->stats.argmax + row->first};
}

static void put_gumbel_max(const struct evidence_row *row, const struct row_query *query, void *to)
{
    int32_t token = query->winner.token;

    *(struct evidence_winner *)to = (struct evidence_winner){.score = query->winner.score, .token = token < 0 ? -1 : token + row->first};
}

static void put_list(const struct evidence_row *row, const struct row_query *query, void *to)
{
    *(struct evidence_mass *)to = (struct evidence_mass){.sum = query->stats.sum, .max = query->stats.max, .count = query->best_count};
    for (int i = 0; i < query->best_count; i++)
        query->best[i].token += row->first;
}

static void put_support(const struct evidence_row *row, const struct row_query *query, void *to)
{
    *(struct evidence_mass *)to = (struct evidence_mass){.sum = query->stats.sum, .max = query->stats.max, .count = row->support_count};
}

static void put_best_support(const struct evidence_row *row, const struct row_query *query, void *to)
{
    *(struct evidence_mass *)to = (struct evidence_mass){.sum = query->stats.sum, .max = query->stats.max, .count = query->stats.argmax + row->first};
}

static void put_entropy_support(const struct evidence_row *row, const struct row_query *query, void *to)
{
    put_support(row, query, to);
    *(double *)(void *)((char *)to + bytes_of_support(NULL, row->support_count)) = query->stats.below;
}

static int has_winner(const void *from)
{
    const struct evidence_winner *winner = from;

    return winner->token >= 0 && isfinite(winner->score);
}

static int has_mass(const void *from)
{
    const struct evidence_mass *mass = from;

    return isfinite(mass->max) && isfinite(mass->sum);
}

/* Shards are in rising order of ids, so requiring a strictly larger score gives ties to the lowest id. */
static int join_winner(const struct joining *joining, struct target_row *target)
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
static int settle_list(const struct sampling *sampling, const struct rng_key *key, const struct scored_token *best, int count,
                       int complete, double sum, double *p, struct target_row *target)
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

static int join_list(const struct joining *joining, struct target_row *target)
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

static int join_support(const struct joining *joining, struct target_row *target)
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
static int join_entropy_support(const struct joining *joining, struct target_row *target)
{
    float max;
    double sum = join_mass(joining->from, joining->ranks, &max), below = 0;

    for (int r = 0; r < joining->ranks; r++) {
        const struct evidence_mass *mass = joining->from[r];
        double own = *(const double *)(const void *)((const char *)mass + bytes_of_support(NULL, joining->support_count));
        double apart = (double)max - (double)mass->max;

        if (isfinite(apart))
            below += (own + apart * mass->sum) * exp(-apart);
    }
    (void)join_support(joining, target);
    target->entropy = log(sum) + below / sum;
    return 1;
}

/* Ties go to the lowest id, as in join_winner. */
static int join_best_support(const struct joining *joining, struct target_row *target)
{
    float max = -INFINITY;
    int32_t winner = 0;

    (void)join_support(joining, target);
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

/* [kind] */
static const struct kind kinds[] = {
    [EVIDENCE_BEST] = {{"best"}, bytes_of_winner, ask_best, put_best, has_winner, join_winner},
    [EVIDENCE_GUMBEL_MAX] = {{"gumbel-max"}, bytes_of_winner, ask_gumbel_max, put_gumbel_max, has_winner, join_winner},
    [EVIDENCE_LIST] = {{"list"}, bytes_of_list, ask_list, put_list, has_mass, join_list},
    [EVIDENCE_SUPPORT] = {{"support", .tells_support = 1, .leaves_draw = 1}, bytes_of_support, ask_support, put_support, has_mass, join_support},
    [EVIDENCE_BEST_SUPPORT] = {{"best-support", .tells_support = 1}, bytes_of_support, ask_support, put_best_support, has_mass, join_best_support},
    [EVIDENCE_ENTROPY_SUPPORT] = {{"entropy-support", .tells_support = 1, .leaves_draw = 1},
                                  bytes_of_entropy_support,
                                  ask_entropy_support,
                                  put_entropy_support,
                                  has_mass,
                                  join_entropy_support},
};
_Static_assert(sizeof kinds / sizeof kinds[0] == EVIDENCE_KINDS, "a row for each kind");

static const struct kind *kind_of(const struct sampling *sampling)
{
    return &kinds[evidence_kind(sampling)];
}

const struct evidence_facts *evidence_facts(const struct sampling *sampling)
{
    return &kind_of(sampling)->facts;
}

size_t evidence_bytes(const struct sampling *sampling, int support_count)
{
    return kind_of(sampling)->bytes(sampling, support_count);
}

/* A list is the longest kind but for the logits of a support, which are one for each id, or one more. */
size_t evidence_room(int rows, int ids)
{
    size_t list = sizeof(struct evidence_mass) + EVIDENCE_LIST_MOST * sizeof(struct scored_token);

    return (size_t)rows * list + (size_t)ids * sizeof(float);
}

void evidence_ask(const struct sampling *sampling, const struct evidence_row *row, void *to, struct row_query *query)
{
    *query = (struct row_query){.key = row->key, .purpose = RNG_NOISE};
    kind_of(sampling)->ask(sampling, row, to, query);
}

void evidence_put(const struct sampling *sampling, const struct evidence_row *row, const struct row_query *query, void *to)
{
    kind_of(sampling)->put(row, query, to);
}

void evidence_take(const struct backend *backend, struct backend_context *context, const struct sampling *sampling, const struct evidence_row *row,
                   void *to)
{
    struct row_query query;

    evidence_ask(sampling, row, to, &query);
    backend_answer(backend, context, row->logits, row->first, row->count, NULL, &query);
    evidence_put(sampling, row, &query, to);
}

int evidence_is_finite(const struct sampling *sampling, const void *const *from, int ranks)
{
    for (int r = 0; r < ranks; r++)
        if (kind_of(sampling)->is_finite(from[r]))
            return 1;
    return 0;
}

int evidence_join(const struct sampling *sampling, const struct rng_key *key, const void *const *from, int ranks, int support_count,
                  int vocab, struct scored_token *best, double *p, float *logit, struct target_row *target)
{
    const struct joining joining = {sampling, key, from, ranks, support_count, vocab, best, p, logit};

    return kind_of(sampling)->join(&joining, target);
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
