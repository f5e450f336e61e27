#include "tests/law/toy_exact.h"

#include "common/sample/distribution.h"
#include "common/sample/sparse_q.h"
#include "tests/law/naive_law.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

void toy_exact_init(struct toy_exact *exact, const struct toy_law *law, const struct toy_run *run)
{
    memset(exact, 0, sizeof *exact);
    exact->law = law;
    exact->run = run;
}

const char *toy_exact_name(enum toy_mutant mutant)
{
    static const char *const names[TOY_MUTANTS] = {"right",
                                                   "residual = p",
                                                   "residual = |p - q|",
                                                   "residual's largest",
                                                   "q of the next row",
                                                   "q of the first row",
                                                   "p of the next row",
                                                   "q^0.8",
                                                   "same coin",
                                                   "draft's coin",
                                                   "all stand",
                                                   "bonus from the drafter",
                                                   "bonus of the row before",
                                                   "p^(1/1.1)"};

    return names[mutant];
}

int toy_exact_cells(const struct toy_law *law, const struct toy_run *run)
{
    int cells = 1;

    for (int i = 0; i < run->length; i++)
        cells *= law->tokens;
    return cells;
}

int toy_exact_cell(const struct toy_law *law, const struct toy_run *run, const int32_t *tokens)
{
    int cell = 0;

    for (int i = 0; i < run->length; i++)
        cell = cell * law->tokens + law->token_of[tokens[i]];
    return cell;
}

/* The q that the real code ships for the processed law p.  p, q: [TOY_IDS] */
static void quantise(const double *p, int support, double *q)
{
    struct scored_token best[TOY_IDS];
    double falling[TOY_IDS];
    struct sparse_q sparse;

    for (int i = 0; i < TOY_IDS; i++)
        best[i] = (struct scored_token){.score = (float)p[i], .token = i};
    distribution_sort(best, TOY_IDS);
    for (int i = 0; i < TOY_IDS; i++) {
        falling[i] = p[best[i].token];
        q[i] = 0;
    }
    sparse_q_fill(&sparse, best, falling, TOY_IDS, 1.0, support);
    for (int i = 0; i < sparse.count; i++)
        q[sparse.id[i]] = (double)sparse.weight[i] / SPARSE_Q_SUM;
}

static void fill_rows(const struct toy_law *law, const struct toy_run *run, const int32_t *history, int count, struct toy_rows *rows)
{
    float logits[TOY_IDS];
    double p[TOY_IDS], draft[TOY_IDS], q[TOY_IDS];

    toy_law_row(law, 0, count, history, logits);
    naive_law(&run->sampling, logits, TOY_IDS, history, count, TOY_PROMPT, p);
    toy_law_row(law, 1, count, history, logits);
    naive_law(&run->sampling, logits, TOY_IDS, history, count, TOY_PROMPT, draft);
    quantise(draft, run->support, q);
    for (int v = 0; v < law->tokens; v++) {
        rows->p[v] = p[law->id[v]];
        rows->q[v] = q[law->id[v]];
    }
    rows->known = 1;
}

/* One walk over all prefixes. */
struct walk {
    struct toy_exact *exact;
    enum toy_mutant mutant;
    double *cells;
    int tokens;
    int32_t history[TOY_CONTEXT];
    int node[TOY_CONTEXT]; /* of history[0 .. count) */
};

static int child_of(const struct walk *walk, int node, int token)
{
    return node * walk->tokens + token + 1;
}

static const struct toy_rows *rows_at(struct walk *walk, int count, int node)
{
    struct toy_rows *rows = &walk->exact->rows[node];

    assert_in_range(node, 0, TOY_NODES - 1);
    if (!rows->known)
        fill_rows(walk->exact->law, walk->exact->run, walk->history, count, rows);
    return rows;
}

static const struct toy_rows *rows_behind(struct walk *walk, int count, int token)
{
    walk->history[count] = walk->exact->law->id[token];
    return rows_at(walk, count + 1, child_of(walk, walk->node[count], token));
}

static void bend(const double *from, double power, int tokens, double *to)
{
    double sum = 0;

    for (int v = 0; v < tokens; v++)
        sum += to[v] = from[v] > 0 ? pow(from[v], power) : 0;
    for (int v = 0; v < tokens; v++)
        to[v] /= sum;
}

/* How one drafted token is judged. */
struct test {
    double stands;
    double residual[TOY_MOST]; /* law of what replaces it */
};

static double chance(const struct walk *walk, const double *p, const double *q, const double *drawn_from, int token)
{
    double below = 0;

    if (walk->mutant == TOY_ALL_STAND)
        return p[token] > 0;
    for (int v = 0; walk->mutant == TOY_DRAFT_COIN && v < token; v++)
        below += drawn_from[v];
    if (walk->mutant == TOY_DRAFT_COIN) /* u lies in [below, below + q) */
        return fmax(0, fmin(1, (p[token] / q[token] - below) / q[token]));
    return q[token] > p[token] ? p[token] / q[token] : p[token] > 0;
}

static double residual_weight(enum toy_mutant mutant, double p, double q)
{
    if (mutant == TOY_RESIDUAL_IS_P)
        return p;
    return mutant == TOY_RESIDUAL_IS_DISTANCE ? fabs(p - q) : fmax(0, p - q);
}

/* Token 0 has the words of the accept coin u, and u is at least `stands`: its share w of the Gumbel-max becomes w (1 - stands)^((1 - w) / w). */
static void reuse_coin(double stands, int tokens, double *residual)
{
    double own = residual[0], won = own > 0 ? own * pow(1 - stands, (1 - own) / own) : 0;

    if (own >= 1)
        return;
    for (int v = 0; v < tokens; v++)
        residual[v] = v == 0 ? won : residual[v] * (1 - won) / (1 - own);
}

static struct test judge(const struct walk *walk, const double *p, const double *q, const double *drawn_from, int token)
{
    struct test test = {.stands = chance(walk, p, q, drawn_from, token)};
    double mass = 0;
    int largest = 0;

    for (int v = 0; v < walk->tokens; v++) {
        test.residual[v] = residual_weight(walk->mutant, p[v], q[v]);
        mass += test.residual[v];
        largest = test.residual[v] > test.residual[largest] ? v : largest;
    }
    for (int v = 0; v < walk->tokens; v++) {
        test.residual[v] = mass > 0 ? test.residual[v] / mass : p[v];
        if (walk->mutant == TOY_RESIDUAL_IS_LARGEST && mass > 0)
            test.residual[v] = v == largest;
    }
    if (walk->mutant == TOY_SAME_COIN)
        reuse_coin(test.stands, walk->tokens, test.residual);
    return test;
}

static void visit(struct walk *walk, int count, int begun, double weight);

static void append(struct walk *walk, int count, int token, int begun, double weight)
{
    if (weight <= 0)
        return;
    walk->history[count] = walk->exact->law->id[token];
    walk->node[count + 1] = child_of(walk, walk->node[count], token);
    visit(walk, count + 1, begun, weight);
}

/* A row with a draft, of a round of `drafts` that began at `begun`. */
static void visit_drafted(struct walk *walk, int count, int begun, int drafts, const double *p, double weight)
{
    const double *q = rows_at(walk, count, walk->node[count])->q;

    for (int x = 0; x < walk->tokens; x++) {
        const double *tested = q, *target = p;
        double bent[TOY_MOST];

        if (q[x] <= 0)
            continue;
        if (walk->mutant == TOY_Q_OF_NEXT_ROW && count + 1 - begun < drafts)
            tested = rows_behind(walk, count, x)->q;
        if (walk->mutant == TOY_Q_OF_FIRST_ROW)
            tested = walk->exact->rows[walk->node[begun]].q;
        if (walk->mutant == TOY_P_OF_NEXT_ROW)
            target = rows_behind(walk, count, x)->p;
        if (walk->mutant == TOY_Q_IS_WARMER) {
            bend(q, 0.8, walk->tokens, bent);
            tested = bent;
        }
        struct test test = judge(walk, target, tested, q, x);
        append(walk, count, x, begun, weight * q[x] * test.stands);
        for (int v = 0; v < walk->tokens; v++)
            append(walk, count, v, count + 1, weight * q[x] * (1 - test.stands) * test.residual[v]);
    }
}

/* The law of a token that no draft was made for: the bonus, or a plain step. */
static const double *plain(struct walk *walk, int count, int is_bonus, const double *p)
{
    if (is_bonus && walk->mutant == TOY_BONUS_FROM_DRAFTER)
        return rows_at(walk, count, walk->node[count])->q;
    if (is_bonus && walk->mutant == TOY_BONUS_OF_ROW_BEFORE)
        return walk->exact->rows[walk->node[count - 1]].p;
    return p;
}

/* All completions of history[0 .. count) in a round that began at `begun`. */
static void visit(struct walk *walk, int count, int begun, double weight)
{
    const struct toy_run *run = walk->exact->run;
    int end = TOY_PROMPT + run->length, left = end + run->beyond - begun - 1;
    int drafts = walk->mutant == TOY_RIGHT ? 0 : run->draft_length < left ? run->draft_length : left;
    double p[TOY_MOST], lost = count == begun && drafts > 0 ? 1 - pow(1 - run->loss, 2) : 0;

    if (count == end) {
        walk->cells[walk->node[count] - (toy_exact_cells(walk->exact->law, run) - 1) / (walk->tokens - 1)] += weight;
        return;
    }
    memcpy(p, rows_at(walk, count, walk->node[count])->p, sizeof p);
    if (walk->mutant == TOY_P_IS_WARMER)
        bend(p, 1 / 1.1, walk->tokens, p);
    if (count - begun < drafts)
        visit_drafted(walk, count, begun, drafts, p, weight * (1 - lost));
    if (count - begun >= drafts || lost > 0) {
        const double *from = plain(walk, count, drafts > 0 && count - begun == drafts, p);

        for (int v = 0; v < walk->tokens; v++)
            append(walk, count, v, count + 1, weight * from[v] * (lost > 0 ? lost : 1));
    }
}

void toy_exact_joint(struct toy_exact *exact, enum toy_mutant mutant, double *cells)
{
    struct walk walk = {.exact = exact, .mutant = mutant, .cells = cells, .tokens = exact->law->tokens};

    memset(cells, 0, (size_t)toy_exact_cells(exact->law, exact->run) * sizeof *cells);
    for (int i = 0; i < TOY_PROMPT; i++)
        walk.history[i] = exact->law->id[i + 1];
    visit(&walk, TOY_PROMPT, TOY_PROMPT, 1);
}

/* The chance that a draft is accepted after the history (.., a, b), token by token. */
static void overlap(const struct toy_law *law, const struct toy_run *run, int count, int a, int b, enum toy_speed speed, double *stands)
{
    int32_t history[TOY_CONTEXT] = {0};
    struct toy_rows rows;

    history[count - 2] = law->id[a];
    history[count - 1] = law->id[b];
    fill_rows(law, run, history, count, &rows);
    for (int v = 0; v < law->tokens; v++)
        stands[v] = speed == TOY_SPEED_POINT_MASS ? rows.p[v] * rows.q[v] : fmin(rows.p[v], rows.q[v]);
}

double toy_exact_first_round(const struct toy_law *law, const struct toy_run *run, enum toy_speed speed)
{
    double from[TOY_MOST][TOY_MOST], next[TOY_MOST][TOY_MOST], stands[TOY_MOST];

    assert_false(sampling_has_penalties(&run->sampling)); /* a row would depend on more than two tokens */
    for (int a = 0; a < law->tokens; a++)
        for (int b = 0; b < law->tokens; b++)
            from[a][b] = speed != TOY_SPEED_NO_BONUS; /* tokens still to come after all drafts were accepted */
    for (int i = run->draft_length - 1; i >= 0; i--) {
        memcpy(next, from, sizeof next);
        for (int a = 0; a < law->tokens; a++)
            for (int b = 0; b < law->tokens; b++) {
                overlap(law, run, TOY_PROMPT + i, a, b, speed, stands);
                from[a][b] = 1; /* a draft that falls is replaced, one that stands counts itself */
                for (int v = 0; v < law->tokens; v++)
                    from[a][b] += stands[v] * next[b][v];
            }
    }
    return from[1][2]; /* the prompt's tokens */
}
