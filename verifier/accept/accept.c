#include "verifier/accept/accept.h"

#include "common/sample/rule.h"
#include "common/sample/sparse_q.h"
#include "verifier/accept/accept_rule.h"
#include <math.h>

struct rng_key accept_key(const struct rng_key *key, int i)
{
    struct rng_key here = *key;

    here.position += (uint32_t)i;
    return here;
}

int accept_test(double u, double q, double p)
{
    return u * q < p;
}

double accept_q(const struct support *q, int32_t drawn, int32_t token)
{
    if (q->count == 0)
        return token == drawn ? 1.0 : 0.0;
    return (double)sparse_q_weight(q->id, q->weight, q->count, token) / SPARSE_Q_SUM;
}

/* p of the i-th token of the support. */
static double support_p(const struct target_row *target, int i)
{
    return exp((double)target->logit[i] - target->log_z);
}

double accept_p(const struct target_row *target, const struct support *q, int32_t token)
{
    if (target->kind == TARGET_LIST) {
        for (int i = 0; i < target->count; i++)
            if (target->best[i].token == token)
                return target->p[i];
        return 0.0;
    }
    if (q->count == 0)
        return support_p(target, 0); /* a point mass: its one token is the drafted one */
    for (int i = 0; i < q->count; i++)
        if (q->id[i] == token)
            return support_p(target, i);
    return 0.0;
}

/* The i-th of the `count` tokens that the row tells p of. */
static int32_t told(const struct target_row *target, const struct support *q, int32_t drawn, int i, double *p)
{
    *p = target->kind == TARGET_LIST ? target->p[i] : support_p(target, i);
    return target->kind == TARGET_LIST ? target->best[i].token : q->count == 0 ? drawn : q->id[i];
}

double accept_overlap_of(const struct target_row *target, const struct support *q, int32_t drawn, double share)
{
    double sum = 0, p;

    for (int i = 0; i < target->count; i++) {
        int32_t token = told(target, q, drawn, i, &p);

        sum += fmin(share * p, accept_q(q, drawn, token));
    }
    return sum;
}

double accept_several(const struct residual *residual, int32_t token)
{
    double sum = 0;

    for (int i = 0; i < residual->several; i++)
        sum += residual->share[i].of_q * accept_q(residual->share[i].q, residual->share[i].drawn, token);
    return sum;
}

double accept_overlap_of_several(const struct target_row *target, const struct support *asked, int32_t drawn, const struct residual *residual)
{
    double sum = 0, p;

    for (int i = 0; i < target->count; i++) {
        int32_t token = told(target, asked, drawn, i, &p);

        sum += fmin(p, accept_several(residual, token));
    }
    return sum;
}

double accept_overlap(const struct target_row *target, const struct support *q, int32_t drawn)
{
    return target->kind == TARGET_WINNER ? target->winner == drawn : accept_overlap_of(target, q, drawn, 1);
}

int accept_takes_trees(const struct sampling *sampling)
{
    return rule_of(sampling)->trees;
}

int accept_merges(const struct sampling *sampling)
{
    return rule_of(sampling)->merges;
}

int accept_compares_tokens(const struct sampling *sampling)
{
    return rule_of(sampling)->matches;
}

int accept_needs_q(const struct sampling *sampling)
{
    return rule_of(sampling)->needs_q;
}

int accept_overlap_tells(const struct sampling *sampling)
{
    return rule_of(sampling)->overlaps;
}

double accept_most(const struct target_row *target, const struct support *q, int32_t drawn)
{
    double most = 1, p;

    for (int i = 0; i < target->count; i++) {
        double of_q = accept_q(q, drawn, told(target, q, drawn, i, &p));

        if (of_q > 0)
            most = fmax(most, p / of_q);
    }
    return most;
}

int verdict_row(const struct verdict *verdict, int depth)
{
    return depth == 0 ? 0 : verdict->node[depth - 1] + 1;
}

struct verdict verdict_of_chain(int accepted, int drafted, enum draw_kind draw)
{
    struct verdict verdict = {
        .accepted = accepted, .refused = accepted < drafted ? (int8_t)accepted : -1, .draw = draw, .residual = {.of_p = 1, .of_q = 1}};

    for (int i = 0; i < accepted; i++)
        verdict.node[i] = (int8_t)i;
    return verdict;
}

struct verdict accept_decide(const struct sampling *sampling, const struct target_row *targets, const struct proposal *proposal, int drafted,
                             const struct rng_key *key)
{
    return accept_rule(sampling)->decide(sampling, targets, proposal, drafted, key);
}

/* Of a token of this p. */
static double weight_of(const struct residual *residual, double p, const struct support *of, int32_t drawn, int32_t token)
{
    double q, taken;

    if (residual->several > 0)
        return p - accept_several(residual, token);
    q = accept_q(of, drawn, token);
    taken = residual->most > 0 ? fmin(q, residual->most * p) : q;
    return q > 0 ? residual->of_p * p - residual->of_q * taken : p;
}

int32_t accept_draw_list(const struct target_row *target, const struct support *q, int32_t drawn, const struct residual *residual,
                         const struct rng_key *key, enum rng_purpose purpose)
{
    int32_t token = -1;
    double best = -INFINITY;

    for (int i = 0; i < target->count; i++) {
        double p = target->p[i], weight = residual == NULL ? p : weight_of(residual, p, q, drawn, target->best[i].token), score;

        if (weight <= 0)
            continue;
        score = log(weight) + (double)rng_gumbel(key, purpose, (uint32_t)target->best[i].token);
        if (score > best || (score == best && target->best[i].token < token)) {
            best = score;
            token = target->best[i].token;
        }
    }
    if (token < 0) /* the residual is empty up to rounding (p = q): draws from p */
        return accept_draw_list(target, q, drawn, NULL, key, purpose);
    return token;
}

struct scored_token accept_gumbel_max_support(const struct target_row *target, const struct support *q, int32_t drawn,
                                              const struct residual *residual, const struct rng_key *key)
{
    struct scored_token winner = {.score = -INFINITY, .token = -1};

    for (int i = 0; i < target->count; i++) {
        double p;
        int32_t token = told(target, q, drawn, i, &p);
        double weight = weight_of(residual, p, q, drawn, token);
        float score;

        if (weight <= 0)
            continue;
        score = (float)(log(weight) + target->log_z) + rng_gumbel(key, RNG_RESIDUAL, (uint32_t)token);
        if (score > winner.score)
            winner = (struct scored_token){.score = score, .token = token};
    }
    return winner;
}
