#include "tests/law/toy_exact.h"

#include "common/sample/distribution.h"
#include "common/sample/sparse_q.h"
#include "tests/law/naive_law.h"
#include <math.h>
#include <string.h>

int toy_exact_cells(const struct toy_law *law, const struct toy_run *run)
{
    int cells = 1;

    for (int i = 0; i < run->length; i++)
        cells *= law->tokens;
    return cells;
}

static void row(const struct toy_law *law, const struct toy_run *run, int is_draft, const int32_t *history, int count, double *p)
{
    float logits[TOY_IDS];

    toy_law_row(law, is_draft, count, history, logits);
    naive_law(&run->sampling, logits, TOY_IDS, history, count, TOY_PROMPT, p);
}

void toy_exact_p(const struct toy_law *law, const struct toy_run *run, const int32_t *history, int count, double *p)
{
    row(law, run, 0, history, count, p);
}

void toy_exact_q(const struct toy_law *law, const struct toy_run *run, const int32_t *history, int count, double *q)
{
    struct scored_token best[TOY_IDS];
    double p[TOY_IDS], falling[TOY_IDS];
    struct sparse_q sparse;

    row(law, run, 1, history, count, p);
    for (int i = 0; i < TOY_IDS; i++)
        best[i] = (struct scored_token){.score = (float)p[i], .token = i};
    distribution_sort(best, TOY_IDS);
    for (int i = 0; i < TOY_IDS; i++) {
        falling[i] = p[best[i].token];
        q[i] = 0;
    }
    sparse_q_fill(&sparse, best, falling, TOY_IDS, 1.0, run->support);
    for (int i = 0; i < sparse.count; i++)
        q[sparse.id[i]] = (double)sparse.weight[i] / SPARSE_Q_SUM;
}

/* One walk over all prefixes. */
struct walk {
    const struct toy_law *law;
    const struct toy_run *run;
    enum toy_mutant mutant;
    double *cells;
    int32_t history[TOY_CONTEXT];
    double first_q[TOY_CONTEXT][TOY_IDS]; /* by where a round began */
};

static void warm(const double *q, double *to)
{
    double sum = 0;

    for (int i = 0; i < TOY_IDS; i++)
        sum += to[i] = q[i] > 0 ? pow(q[i], 0.8) : 0;
    for (int i = 0; i < TOY_IDS; i++)
        to[i] /= sum;
}

/* The residual that the mutant draws from, normalised, and the chance that a draft of each token stands. */
static void judge(const struct walk *walk, const double *p, const double *q, const double *tested, double *stands, double *residual)
{
    double mass = 0;
    int largest = 0;

    for (int i = 0; i < TOY_IDS; i++) {
        stands[i] = q[i] <= 0 ? 0 : tested[i] > p[i] ? p[i] / tested[i] : p[i] > 0;
        residual[i] = walk->mutant == TOY_RESIDUAL_IS_P ? p[i] : fmax(0, p[i] - tested[i]);
        mass += residual[i];
        largest = residual[i] > residual[largest] ? i : largest;
    }
    for (int i = 0; i < TOY_IDS; i++) {
        residual[i] = mass > 0 ? residual[i] / mass : p[i];
        if (walk->mutant == TOY_RESIDUAL_IS_LARGEST && mass > 0)
            residual[i] = i == largest;
    }
}

static void visit(struct walk *walk, int count, int begun, double weight);

static void append(struct walk *walk, int count, int token, int begun, double weight)
{
    if (weight <= 0)
        return;
    walk->history[count] = walk->law->id[token];
    visit(walk, count + 1, begun, weight);
}

static void visit_drafted(struct walk *walk, int count, int begun, const double *p, double weight)
{
    double q[TOY_IDS], tested[TOY_IDS], stands[TOY_IDS], residual[TOY_IDS], refused = 0;

    toy_exact_q(walk->law, walk->run, walk->history, count, q);
    if (count == begun)
        memcpy(walk->first_q[begun], q, sizeof q);
    memcpy(tested, walk->mutant == TOY_ONE_Q_FOR_ALL ? walk->first_q[begun] : q, sizeof tested);
    if (walk->mutant == TOY_Q_IS_WARMER)
        warm(q, tested);
    judge(walk, p, q, tested, stands, residual);
    for (int i = 0; i < TOY_IDS; i++)
        refused += q[i] * (1 - stands[i]);
    for (int v = 0; v < walk->law->tokens; v++) {
        int id = walk->law->id[v];

        append(walk, count, v, begun, weight * q[id] * stands[id]);
        append(walk, count, v, count + 1, weight * refused * residual[id]);
    }
}

/* All completions of history[0 .. count) in a round that began at `begun`. */
static void visit(struct walk *walk, int count, int begun, double weight)
{
    int end = TOY_PROMPT + walk->run->length, left = end + walk->run->beyond - begun - 1, index = 0;
    int drafts = walk->mutant == TOY_RIGHT ? 0 : walk->run->draft_length < left ? walk->run->draft_length : left;
    double p[TOY_IDS], lost = count == begun && drafts > 0 ? 1 - pow(1 - walk->run->loss, 2) : 0;

    if (count == end) {
        for (int i = TOY_PROMPT; i < end; i++)
            index = index * walk->law->tokens + walk->law->token_of[walk->history[i]];
        walk->cells[index] += weight;
        return;
    }
    toy_exact_p(walk->law, walk->run, walk->history, count, p);
    if (count - begun < drafts)
        visit_drafted(walk, count, begun, p, weight * (1 - lost));
    if (count - begun >= drafts || lost > 0)
        for (int v = 0; v < walk->law->tokens; v++)
            append(walk, count, v, count + 1, weight * p[walk->law->id[v]] * (lost > 0 ? lost : 1));
}

void toy_exact_joint(const struct toy_law *law, const struct toy_run *run, enum toy_mutant mutant, double *cells)
{
    struct walk walk = {.law = law, .run = run, .mutant = mutant, .cells = cells};

    memset(cells, 0, (size_t)toy_exact_cells(law, run) * sizeof *cells);
    for (int i = 0; i < TOY_PROMPT; i++)
        walk.history[i] = law->id[i + 1];
    visit(&walk, TOY_PROMPT, TOY_PROMPT, 1);
}

static double rest_of_round(const struct toy_law *law, const struct toy_run *run, int32_t *history, int count)
{
    double p[TOY_IDS], q[TOY_IDS], sum = 0;

    if (count - TOY_PROMPT == run->draft_length)
        return 0;
    toy_exact_p(law, run, history, count, p);
    toy_exact_q(law, run, history, count, q);
    for (int v = 0; v < law->tokens; v++) {
        int id = law->id[v];

        history[count] = id;
        if (fmin(p[id], q[id]) > 0)
            sum += fmin(p[id], q[id]) * (1 + rest_of_round(law, run, history, count + 1));
    }
    return sum;
}

double toy_exact_first_round(const struct toy_law *law, const struct toy_run *run)
{
    int32_t history[TOY_CONTEXT];

    for (int i = 0; i < TOY_PROMPT; i++)
        history[i] = law->id[i + 1];
    return 1 + rest_of_round(law, run, history, TOY_PROMPT);
}
