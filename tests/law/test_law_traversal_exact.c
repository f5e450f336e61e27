/* Layer 0 for a rule that judges trees from their leaves: of every tree that may be drawn of a shape, the coins at which the real accept_decide
 * changes its mind are found by halving, node after node in the order in which they are judged, and what comes after a path is read off its verdict.
 * The joint law of the tokens must be the target's, on random pairs whose rows depend on the text.
 *
 * The functions of common/base/rng.h are defined here, and the linker takes these: coins are dealt, not drawn. */
#include "common/sample/siblings.h"
#include "verifier/accept/accept.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 3, DEEPEST = 4, NODES = 6, TEXTS = 1 + 3 + 9 + 27 + 81, PAIRS_TRIED = 12, HALVINGS = 45 };
#define NEAR 2e-6 /* logits are floats */

static struct {
    double coin[NODES];
    const struct proposal *proposal;
    const struct sampling *sampling;
    int wrong; /* coins of another purpose, place or node */
} deal;

static int depth_of(const struct proposal *proposal, int node)
{
    int depth = 0;

    while ((node = proposal_parent(proposal, node)) >= 0)
        depth++;
    return depth;
}

/* A coin is its node's alone. */
double rng_coin(const struct rng_key *key, enum rng_purpose purpose, uint32_t index)
{
    for (int node = 0; node < deal.proposal->count && purpose == RNG_ACCEPT; node++) {
        int depth = depth_of(deal.proposal, node);

        if (key->position == (uint32_t)depth && index == rule_tree_coin(deal.sampling, depth, node))
            return deal.coin[node];
    }
    deal.wrong++;
    return 0;
}

double rng_uniform(const struct rng_key *key, enum rng_purpose purpose)
{
    (void)key, (void)purpose;
    deal.wrong++;
    return 0;
}

float rng_gumbel(const struct rng_key *key, enum rng_purpose purpose, uint32_t token)
{
    (void)key, (void)purpose, (void)token;
    deal.wrong++;
    return 0;
}

uint32_t rng_coin16(const struct rng_key *key, enum rng_purpose purpose, uint32_t index)
{
    (void)key, (void)purpose, (void)index;
    deal.wrong++;
    return 0;
}

void rng_words(const struct rng_key *key, enum rng_purpose purpose, uint32_t index, uint32_t words[4])
{
    (void)key, (void)purpose, (void)index;
    words[0] = 0;
    deal.wrong++;
}

/* Rows of both models by the text in front, which is a number in base VOCAB behind those that are shorter. */
struct pair {
    double p[TEXTS][VOCAB];
    uint32_t q[TEXTS][VOCAB];
};

/* By node: its parent. Siblings stand in the order in which they are drawn, parents before their children. */
struct shape {
    const char *name;
    int count;
    int8_t parent[NODES];
};

struct table {
    struct pair pair;
    struct sampling sampling;
    struct proposal proposal;
    enum target_row_kind kind;
    int text[1 + NODES]; /* [node + 1] the text that ends with it */
    struct target_row target[1 + NODES];
    struct scored_token best[TEXTS][VOCAB];
    double p[TEXTS][VOCAB];
    float logit[TEXTS][VOCAB];
    int32_t id[TEXTS][VOCAB];
    uint32_t weight[TEXTS][VOCAB];
    int named[TEXTS], kept[TEXTS];
    double law[TEXTS], accepted; /* of the tokens that come out, by the text that they make */
};

static int behind(int text, int token)
{
    return text * VOCAB + 1 + token;
}

static uint32_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void fill_row(struct table *table, int text, uint64_t *state)
{
    uint32_t p[VOCAB], q[VOCAB], all_p = 0, all_q = 0, left = MESSAGE_Q_SUM;
    struct pair *pair = &table->pair;

    for (int v = 0; v < VOCAB; v++) {
        p[v] = next(state) % 6 == 0 && v < VOCAB - 1 ? 0 : 1 + next(state) % 1000;
        q[v] = next(state) % 6 == 0 && v > 0 ? 0 : 1 + next(state) % 1000;
        all_p += p[v];
        all_q += q[v];
    }
    for (int v = VOCAB - 1; v >= 0; v--) {
        pair->q[text][v] = v == 0 ? left : (uint32_t)((uint64_t)q[v] * MESSAGE_Q_SUM / all_q);
        left -= pair->q[text][v];
        pair->p[text][v] = (double)p[v] / all_p;
    }
    for (int v = 0; v < VOCAB; v++) {
        if (pair->q[text][v] > 0) {
            table->logit[text][table->named[text]] = pair->p[text][v] > 0 ? (float)log(pair->p[text][v]) : -INFINITY;
            table->id[text][table->named[text]] = v;
            table->weight[text][table->named[text]++] = pair->q[text][v];
        }
        if (pair->p[text][v] > 0) {
            table->best[text][table->kept[text]].token = v;
            table->p[text][table->kept[text]++] = pair->p[text][v];
        }
    }
}

static void fill(struct table *table, uint64_t seed, int accept, enum target_row_kind kind)
{
    memset(table, 0, sizeof *table);
    table->sampling = sampling_default;
    table->sampling.temperature = 1;
    table->sampling.accept = accept;
    table->kind = kind;
    for (int text = 0; text < TEXTS; text++)
        fill_row(table, text, &seed);
    deal.sampling = &table->sampling;
    deal.proposal = &table->proposal;
}

static void set_row(struct table *table, int row, int text)
{
    table->text[row] = text;
    table->target[row] = (struct target_row){.kind = table->kind,
                                             .count = table->kind == TARGET_LIST ? table->kept[text] : table->named[text],
                                             .best = table->best[text],
                                             .p = table->p[text],
                                             .logit = table->logit[text]};
}

static struct verdict decide(const struct table *table)
{
    const struct rng_key key = {.seed = 1};

    return accept_decide(&table->sampling, table->target, &table->proposal, table->proposal.count, &key);
}

/* What comes out where this verdict is given, with the token behind the path. */
static void commit(struct table *table, const struct verdict *verdict, double weight)
{
    int row = verdict_row(verdict, verdict->accepted), text = table->text[row];
    double left[VOCAB], sum = 0;

    table->accepted += weight * verdict->accepted;
    for (int v = 0; v < VOCAB; v++) {
        double q = (double)table->pair.q[text][v] / MESSAGE_Q_SUM;

        left[v] = verdict->draw == DRAW_PLAIN ? table->pair.p[text][v] : fmax(0, table->pair.p[text][v] - verdict->residual.of_q * q);
        sum += left[v];
    }
    assert_true(sum > 1e-9 || weight < NEAR);
    for (int v = 0; v < VOCAB && sum > 1e-9; v++)
        table->law[behind(text, v)] += weight * left[v] / sum;
}

static int ends_with(const struct verdict *verdict, int node)
{
    return verdict->accepted > 0 && verdict->node[verdict->accepted - 1] == node;
}

/* Nodes in the order in which they are judged, children before their parent. Returns how many.  order: [NODES] */
static int list(const struct proposal *proposal, int parent, int *order)
{
    int count = 0;

    for (int child = proposal_child(proposal, parent, 0); child >= 0; child = proposal_child(proposal, parent, child + 1)) {
        count += list(proposal, child, order + count);
        order[count++] = child;
    }
    return count;
}

static void play(struct table *table, double weight)
{
    int order[NODES], count = list(&table->proposal, -1, order);
    struct verdict verdict;

    for (int i = 0; i < NODES; i++)
        deal.coin[i] = nextafter(1, 0);
    for (int i = 0; i < count; i++) {
        double low = 0, high = 1;

        for (int h = 0; h < HALVINGS; h++) {
            deal.coin[order[i]] = (low + high) / 2;
            verdict = decide(table);
            if (ends_with(&verdict, order[i]))
                low = deal.coin[order[i]];
            else
                high = deal.coin[order[i]];
        }
        if (low > 0) {
            deal.coin[order[i]] = low / 2;
            verdict = decide(table);
            assert_true(ends_with(&verdict, order[i]));
            commit(table, &verdict, weight * low);
        }
        weight *= 1 - low;
        deal.coin[order[i]] = nextafter(1, 0);
        if (low > 1 - 1e-12)
            return;
    }
    verdict = decide(table);
    assert_int_equal(verdict.accepted, 0);
    commit(table, &verdict, weight);
}

/* A shape's node of each number of the proposal; nodes for which q has no token are left out, and what follows them. */
struct grown {
    const struct shape *shape;
    int8_t node[NODES]; /* the proposal's, by the shape's; -1: left out */
};

static void grow(struct table *table, struct grown *grown, int at, double weight)
{
    const struct shape *shape = grown->shape;
    struct proposal *proposal = &table->proposal;
    int parent, text, first, number = 0;
    int32_t before[NODES];
    uint32_t left;

    if (at == shape->count) {
        play(table, weight);
        return;
    }
    parent = shape->parent[at] < 0 ? -1 : grown->node[shape->parent[at]];
    grown->node[at] = -1;
    if (shape->parent[at] >= 0 && parent < 0) {
        grow(table, grown, at + 1, weight);
        return;
    }
    text = table->text[parent + 1];
    first = proposal->count > 0 ? proposal_child(proposal, parent, 0) : -1;
    for (int i = first; i >= 0; i = proposal_child(proposal, parent, i + 1))
        before[number++] = proposal->token[i];
    const struct siblings_q q = {.count = table->named[text], .id = table->id[text], .weight = table->weight[text]};

    left = siblings_left(&q, RULE_SIBLINGS_WITHOUT, before, number);
    if (left == 0) {
        grow(table, grown, at + 1, weight);
        return;
    }
    for (int v = 0; v < VOCAB; v++) {
        int comes_again = 0, node = proposal->count;

        for (int i = 0; i < number; i++)
            comes_again |= before[i] == v;
        if (table->pair.q[text][v] == 0 || comes_again)
            continue;
        proposal->token[node] = v;
        proposal->parent[node] = (int8_t)parent;
        proposal->q[node] =
            first < 0 ? (struct support){.count = table->named[text], .id = table->id[text], .weight = table->weight[text]} : (struct support){0};
        grown->node[at] = (int8_t)node;
        set_row(table, node + 1, behind(text, v));
        proposal->count++;
        grow(table, grown, at + 1, weight * table->pair.q[text][v] / left);
        proposal->count--;
    }
}

static void play_all(struct table *table, const struct shape *shape)
{
    struct grown grown = {.shape = shape};

    memset(table->law, 0, sizeof table->law);
    table->accepted = 0;
    table->proposal = (struct proposal){.is_tree = 1};
    set_row(table, 0, 0);
    grow(table, &grown, 0, 1);
}

/* The law of all texts of `tokens` more tokens is the product of the rows, where what comes out goes on as the target would. */
static double most_off(const struct table *table, int text, int tokens, double weight, double committed)
{
    double most = 0;

    committed += table->law[text];
    if (tokens == 0)
        return fabs(committed - weight);
    for (int v = 0; v < VOCAB; v++)
        most = fmax(most, most_off(table, behind(text, v), tokens - 1, weight * table->pair.p[text][v], committed * table->pair.p[text][v]));
    return most;
}

static const struct shape shapes[] = {
    {"1", 1, {-1}},
    {"2", 2, {-1, -1}},
    {"3", 3, {-1, -1, -1}},
    {"1,1", 2, {-1, 0}},
    {"1,2", 3, {-1, 0, 0}},
    {"2,1", 4, {-1, -1, 0, 1}},
    {"2,2", 6, {-1, -1, 0, 0, 1, 1}},
    {"2, the first 2", 4, {-1, -1, 0, 0}},
    {"1,1,1", 3, {-1, 0, 1}},
    {"2, the first 1,1", 4, {-1, -1, 0, 2}},
};

static void test_law_traversal_exact__the_tokens_follow_the_targets_law(void **state)
{
    static struct table table;

    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        double accepted = 0;

        for (int seed = 0; seed < PAIRS_TRIED; seed++)
            for (int kind = TARGET_LIST; kind <= TARGET_SUPPORT; kind++) {
                fill(&table, (uint64_t)seed, ACCEPT_TRAVERSAL, (enum target_row_kind)kind);
                play_all(&table, &shapes[s]);
                assert_true(most_off(&table, 0, DEEPEST, 1, 0) < NEAR);
                accepted += table.accepted / (2 * PAIRS_TRIED);
            }
        print_message("[%s]: %.4f are accepted\n", shapes[s].name, accepted);
    }
    assert_int_equal(deal.wrong, 0);
}

/* On a chain it is block verification: the same verdict by the same coins. */
static void test_law_traversal_exact__a_chain_is_judged_as_a_block(void **state)
{
    static struct table table;
    uint64_t random = 3;
    int accepted = 0, all = 0;

    (void)state;
    for (int seed = 0; seed < 400; seed++) {
        struct verdict verdict, expected;
        int length = 1 + seed % (DEEPEST - 1), text = 0;

        fill(&table, (uint64_t)seed, ACCEPT_TRAVERSAL, TARGET_SUPPORT);
        table.proposal = (struct proposal){.count = length};
        set_row(&table, 0, 0);
        for (int i = 0; i < length; i++) {
            table.proposal.token[i] = table.id[text][next(&random) % (uint32_t)table.named[text]];
            table.proposal.q[i] = (struct support){.count = table.named[text], .id = table.id[text], .weight = table.weight[text]};
            text = behind(text, table.proposal.token[i]);
            set_row(&table, i + 1, text);
            deal.coin[i] = (double)next(&random) / 0x1p31;
        }
        verdict = decide(&table);
        table.sampling.accept = ACCEPT_BLOCK;
        expected = decide(&table);
        assert_int_equal(verdict.accepted, expected.accepted);
        assert_int_equal(verdict.refused, expected.refused);
        assert_int_equal(verdict.draw, expected.draw);
        assert_true(verdict.draw == DRAW_PLAIN || fabs(verdict.residual.of_q - expected.residual.of_q) <= 1e-9 * expected.residual.of_q);
        accepted += verdict.accepted;
        all += length;
    }
    assert_true(accepted > all / 5 && accepted < all * 4 / 5);
    assert_int_equal(deal.wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_law_traversal_exact__the_tokens_follow_the_targets_law),
        cmocka_unit_test(test_law_traversal_exact__a_chain_is_judged_as_a_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
