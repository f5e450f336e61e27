#include "verifier/accept/evidence.h"

#include "common/sample/distribution.h"
#include "common/sample/rule.h"
#include "verifier/accept/accept_rule.h"
#include "verifier/accept/evidence_join.h"
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

/* What a kind makes of a row of logits, and of what shards tell of one. */
struct kind {
    struct evidence_facts facts;
    size_t (*bytes)(const struct sampling *sampling, int support_count);
    void (*ask)(const struct sampling *sampling, const struct evidence_row *row, void *to, struct row_query *query);
    void (*put)(const struct evidence_row *row, const struct row_query *query, void *to);
    int (*is_finite)(const void *from);
    evidence_join_by *join;
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

size_t evidence_join_support_bytes(int support_count)
{
    size_t floats = ((size_t)support_count + 1) / 2 * 2;

    return sizeof(struct evidence_mass) + floats * sizeof(float);
}

static size_t bytes_of_support(const struct sampling *sampling, int support_count)
{
    (void)sampling;
    return evidence_join_support_bytes(support_count);
}

static size_t bytes_of_entropy_support(const struct sampling *sampling, int support_count)
{
    (void)sampling;
    return evidence_join_support_bytes(support_count) + sizeof(double);
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
    *(double *)(void *)((char *)to + evidence_join_support_bytes(row->support_count)) = query->stats.below;
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

/* [kind] */
static const struct kind kinds[] = {
    [EVIDENCE_BEST] = {{"best"}, bytes_of_winner, ask_best, put_best, has_winner, evidence_join_winner},
    [EVIDENCE_GUMBEL_MAX] = {{"gumbel-max"}, bytes_of_winner, ask_gumbel_max, put_gumbel_max, has_winner, evidence_join_winner},
    [EVIDENCE_LIST] = {{"list"}, bytes_of_list, ask_list, put_list, has_mass, evidence_join_list},
    [EVIDENCE_SUPPORT] =
        {{"support", .tells_support = 1, .leaves_draw = 1}, bytes_of_support, ask_support, put_support, has_mass, evidence_join_support},
    [EVIDENCE_BEST_SUPPORT] =
        {{"best-support", .tells_support = 1}, bytes_of_support, ask_support, put_best_support, has_mass, evidence_join_best_support},
    [EVIDENCE_ENTROPY_SUPPORT] = {{"entropy-support", .tells_support = 1, .leaves_draw = 1},
                                  bytes_of_entropy_support,
                                  ask_entropy_support,
                                  put_entropy_support,
                                  has_mass,
                                  evidence_join_entropy_support},
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
    const struct evidence_joining joining = {sampling, key, from, ranks, support_count, vocab, best, p, logit};

    return kind_of(sampling)->join(&joining, target);
}
