/* What the CPU's head finds as it goes, beside backend_answer over the logits that it wrote: the same bits, for any number of rows, panels and
 * threads. */
#include "tests/backend/rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HIDDEN = 12, FIRST = 100, MOST_ROWS = 70, MOST_QUERIES = 128, LISTED = 9, TOP = 7, KINDS = 7, PATTERNS = 37 };

static const int outputs_of[] = {1, 15, 16, 17, 100, 385, 999, 1900};
enum { SIZES = sizeof outputs_of / sizeof *outputs_of };

/* A head, what it is asked, and its answers. */
struct head {
    struct backend_context *context;
    struct weights weights;
    struct arena arena;
    struct matrix *matrix;
    float norm[HIDDEN], x[MOST_ROWS * HIDDEN];
    float *logits; /* [rows][outputs] */
    int rows, outputs, queries;
    int32_t token[LISTED];
    struct kept_query query[MOST_QUERIES];
    float logit[MOST_QUERIES][LISTED];
    struct scored_token best[MOST_QUERIES][TOP];
};

/* Few patterns, so that the largest logit stands in many panels, of all threads. Of inputs above zero, weights of minus infinity make such logits:
 * all, or some. */
static void spread_patterns(struct weights *weights, int nothing)
{
    float *data = weights->data;

    for (int o = 0; o < weights->outputs; o++)
        for (int c = 0; c < HIDDEN; c++)
            data[o * HIDDEN + c] = nothing || o % 11 == 3 ? -INFINITY : data[o * 5 % PATTERNS % weights->outputs * HIDDEN + c];
}

static void head_open(struct head *head, struct backend_context *context, int rows, int outputs, int nothing)
{
    struct random random = {.state = (uint32_t)(100 * outputs + rows)};

    *head = (struct head){.context = context, .rows = rows, .outputs = outputs};
    weights_init(&head->weights, &random, DTYPE_F32, outputs, HIDDEN);
    spread_patterns(&head->weights, nothing);
    head->matrix = weights_pack(&head->weights, context, (const int[]){0, HIDDEN}, 1, &head->arena);
    for (int i = 0; i < HIDDEN; i++)
        head->norm[i] = 1.5f;
    for (int i = 0; i < rows * HIDDEN; i++)
        head->x[i] = 1.01f + random_float(&random);
    head->logits = zeroed((size_t)(rows * outputs), sizeof *head->logits);
    for (int i = 0; i < LISTED; i++) /* the first is another shard's, and so is the last of most */
        head->token[i] = i == 0 ? 7 : FIRST + (i - 1) * 13;
}

static void head_release(struct head *head)
{
    free(head->logits);
    arena_close(&head->arena);
    weights_release(&head->weights);
}

static void add_query(struct head *head, int row, int kind)
{
    int i = head->queries++, lists = kind == 3 || kind >= 5;

    head->query[i] = (struct kept_query){.row = row, .scale = (row + kind) % 2 == 0 ? 1.0f : 1.25f};
    head->query[i].query = (struct row_query){.scans = kind != 2 && kind != 3 && kind != 6,
                                              .sums = kind == 4                ? ROW_SUMS_BELOW
                                                      : kind == 1 || kind == 5 ? ROW_SUMS_MASS
                                                                               : ROW_SUMS_NONE,
                                              .gumbel = kind == 2 || kind == 3 || kind == 5,
                                              .excludes = kind == 3 || (kind == 5 && row % 2 == 0),
                                              .key = {.seed = 5, .request = 2, .position = (uint32_t)row},
                                              .purpose = kind == 2 ? RNG_NOISE : RNG_RESIDUAL,
                                              .token = head->token,
                                              .tokens = lists ? LISTED : 0,
                                              .logit = lists ? head->logit[i] : NULL,
                                              .top = kind == 4 || kind == 5 ? TOP : 0,
                                              .best = head->best[i]};
}

/* Of every kind about every row, not in order, or of one kind each where there are many rows. */
static void ask_all(struct head *head)
{
    for (int r = head->rows - 1; r >= 0; r--)
        for (int kind = 0; kind < KINDS; kind++)
            if (head->rows * KINDS <= MOST_QUERIES || kind == r % KINDS)
                add_query(head, r, kind);
}

static void run_head(struct head *head)
{
    backend_cpu.output.head(head->context, HIDDEN, 1e-5f, head->norm, head->matrix, head->rows, head->x, head->logits);
}

static void ask_with(struct head *head)
{
    (void)backend_cpu.output.ask_begin(head->context, FIRST, head->query, head->queries, head->queries);
    run_head(head);
    backend_cpu.output.ask_run(head->context);
    backend_cpu.output.ask_end(head->context);
    assert_int_equal(backend_cpu.step.finish(head->context), STATUS_OK);
}

static void spoil(struct head *head)
{
    for (int i = 0; i < head->queries; i++) {
        head->query[i].query.stats = (struct row_stats){.max = 3e38f, .argmax = -7, .sum = -1, .below = -1};
        head->query[i].query.winner = (struct scored_token){.score = 3e38f, .token = -7};
        head->query[i].query.best_count = -1;
    }
    memset(head->logit, 0x7f, sizeof head->logit);
    memset(head->best, 0x7f, sizeof head->best);
}

static void check_answer(const struct head *head, const struct kept_query *kept, struct backend_context *plain)
{
    const struct row_query *query = &kept->query;
    float scaled[1900], logit[LISTED];
    uint32_t excluded[1900 / 32 + 1] = {0};
    struct scored_token best[TOP];
    struct row_query expected = *query;

    for (int i = 0; i < head->outputs; i++)
        scaled[i] = head->logits[kept->row * head->outputs + i] * kept->scale;
    expected.logit = query->logit != NULL ? logit : NULL;
    expected.best = best;
    backend_answer(&backend_cpu, plain, scaled, FIRST, head->outputs, excluded, &expected);
    if (query->scans) {
        assert_int_equal(query->stats.argmax, expected.stats.argmax);
        assert_same_bits(&query->stats.max, &expected.stats.max, 1);
    }
    if (query->sums)
        assert_memory_equal(&query->stats.sum, &expected.stats.sum, sizeof expected.stats.sum);
    if (query->sums == ROW_SUMS_BELOW)
        assert_memory_equal(&query->stats.below, &expected.stats.below, sizeof expected.stats.below);
    if (query->gumbel) {
        assert_int_equal(query->winner.token, expected.winner.token);
        assert_same_bits(&query->winner.score, &expected.winner.score, 1);
    }
    assert_int_equal(query->best_count, expected.best_count);
    assert_memory_equal(query->best, best, (size_t)expected.best_count * sizeof *best);
    if (query->logit != NULL)
        assert_same_bits(query->logit, logit, LISTED);
}

static void check_answers(const struct head *head, struct backend_context *plain)
{
    for (int i = 0; i < head->queries; i++)
        check_answer(head, &head->query[i], plain);
}

/* Asked before the head, and once more behind it. */
static void check_head(struct backend_context *context, struct backend_context *plain, int rows, int outputs, int nothing)
{
    static struct head head;

    head_open(&head, context, rows, outputs, nothing);
    ask_all(&head);
    spoil(&head);
    ask_with(&head);
    check_answers(&head, plain);
    spoil(&head);
    backend_cpu.output.ask(context, FIRST, head.query, head.queries);
    assert_int_equal(backend_cpu.step.finish(context), STATUS_OK);
    check_answers(&head, plain);
    head_release(&head);
}

static void test_backend_ask__answers_are_those_of_the_whole_row(void **state)
{
    static const int rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, MOST_ROWS};
    struct backend_context *plain = rig_open(0);

    (void)state;
    for (int i = 0; i < RIGS; i++) {
        struct backend_context *context = rig_open(i);

        for (int s = 0; s < SIZES && context != NULL; s++)
            for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
                check_head(context, plain, rows[r], outputs_of[s], 0);
        backend_cpu.close(context);
    }
    backend_cpu.close(plain);
}

static void test_backend_ask__minus_infinity_alone_has_no_winner(void **state)
{
    static struct head head;

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct backend_context *context = rig_open(i), *plain = rig_open(0);

        check_head(context, plain, 3, 999, 1);
        head_open(&head, context, 2, 385, 1);
        ask_all(&head);
        ask_with(&head);
        for (int q = 0; q < head.queries; q++) {
            const struct row_query *query = &head.query[q].query;

            assert_true(!query->scans || (query->stats.argmax == 0 && query->stats.max == -INFINITY && query->stats.sum == 0));
            assert_true(!query->gumbel || query->winner.token == -1);
        }
        head_release(&head);
        backend_cpu.close(context);
        backend_cpu.close(plain);
    }
}

static void test_backend_ask__a_head_that_is_not_asked_answers_nothing(void **state)
{
    static struct head head;
    struct backend_context *context = rig_open(1);

    (void)state;
    head_open(&head, context, 5, 385, 0);
    ask_all(&head);
    ask_with(&head);
    spoil(&head);
    run_head(&head);
    for (int i = 0; i < head.queries; i++) {
        assert_int_equal(head.query[i].query.stats.argmax, -7);
        assert_int_equal(head.query[i].query.winner.token, -7);
        assert_int_equal(head.query[i].query.best_count, -1);
    }
    head_release(&head);
    backend_cpu.close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backend_ask__answers_are_those_of_the_whole_row),
        cmocka_unit_test(test_backend_ask__minus_infinity_alone_has_no_winner),
        cmocka_unit_test(test_backend_ask__a_head_that_is_not_asked_answers_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
