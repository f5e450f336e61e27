/* A head that is asked about its rows beforehand tells without keeping logits; one that is asked afterwards keeps them. Both must say the same, to
 * the bit but for the order of one sum. Emulated, or on a device. */
#include "common/backend/cuda/context.h"
#include "tests/backend/cuda_rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HIDDEN = 64, MOST_ROWS = KERNEL_ROWS, LISTED = 6, FIRST = 64, MOST_OUTPUTS = 16 * 8200 + 5 };

struct head {
    struct cuda_rig rig;
    struct weights weights;
    struct cuda_pair pair;
    float *norm, *x; /* on the device */
    int rows, outputs;
    int32_t token[MOST_ROWS][LISTED];
    float logit[MOST_ROWS][LISTED];
    struct kept_query query[MOST_ROWS];
};

static void head_open(struct head *head, enum dtype dtype, int outputs, int rows)
{
    float x[MOST_ROWS * HIDDEN], norm[HIDDEN];
    struct random random = {(uint32_t)(outputs * 70 + rows)};

    head->rows = rows;
    head->outputs = outputs;
    cuda_rig_open(&head->rig, HIDDEN, 0, 0, MOST_OUTPUTS);
    weights_init(&head->weights, &random, dtype, outputs, HIDDEN);
    cuda_rig_pack(&head->rig, &head->weights, 0, HIDDEN, &head->pair);
    random_floats(&random, x, (size_t)rows * HIDDEN);
    random_floats(&random, norm, HIDDEN);
    head->x = cuda_rig_put(&head->rig, x, (size_t)rows * HIDDEN);
    head->norm = cuda_rig_put(&head->rig, norm, HIDDEN);
}

static void head_close(struct head *head)
{
    arena_close(&head->pair.arena);
    weights_release(&head->weights);
    cuda_rig_close(&head->rig);
}

/* Of every kind: statistics alone, Gumbel-max with either noise, without the listed tokens; ids of this shard and of others. */
static void write_queries(struct head *head)
{
    int apart = head->outputs / (LISTED - 2) > 0 ? head->outputs / (LISTED - 2) : 1;

    for (int r = 0; r < head->rows; r++) {
        struct row_query *query = &head->query[r].query;

        for (int i = 0; i < LISTED; i++)
            head->token[r][i] = i == 0 ? r % FIRST : FIRST + (i - 1) * apart + r % 3; /* rising; the last may be beyond */
        head->query[r] = (struct kept_query){.row = r, .scale = r % 4 == 0 ? 1.0f : 1.3f};
        *query = (struct row_query){.scans = 1,
                                    .sums = 1,
                                    .gumbel = r % 3 != 0,
                                    .excludes = r % 5 == 1,
                                    .key = {.seed = 5, .request = 2, .position = (uint32_t)r},
                                    .purpose = r % 3 == 1 ? RNG_NOISE : RNG_RESIDUAL,
                                    .token = head->token[r],
                                    .tokens = r % 2 == 0 ? LISTED : 0,
                                    .logit = head->logit[r]};
    }
}

static void begin_step(struct head *head)
{
    static const float table[HIDDEN];
    int32_t zero[MOST_ROWS] = {0}, asked[MOST_ROWS];
    uint64_t ancestors[MOST_ROWS];

    for (int r = 0; r < head->rows; r++) {
        asked[r] = r;
        ancestors[r] = 1;
    }
    const struct rows rows = {head->rows, zero, zero, zero, zero, zero, ancestors};
    float *away = cuda_rig_put(&head->rig, NULL, (size_t)head->rows * HIDDEN);

    backend_cuda.step.embed(head->rig.cuda, &rows, asked, head->rows, DTYPE_F32, table, HIDDEN, away);
}

static void run_head(struct head *head)
{
    backend_cuda.output.head(head->rig.cuda, HIDDEN, 1e-5f, head->norm, head->pair.cuda, head->rows, head->x, NULL);
}

/* Asked beforehand. Whether the head kept no logits */
static int ask_before(struct head *head)
{
    struct backend_context *context = head->rig.cuda;
    int told;

    begin_step(head);
    (void)backend_cuda.output.ask_begin(context, FIRST, head->query, head->rows, head->rows);
    run_head(head);
    told = context->head.told;
    backend_cuda.output.ask_run(context);
    backend_cuda.output.ask_end(context);
    assert_int_equal(backend_cuda.step.finish(context), STATUS_OK);
    return told;
}

static void ask_after(struct head *head)
{
    begin_step(head);
    run_head(head);
    backend_cuda.output.ask(head->rig.cuda, FIRST, head->query, head->rows);
    assert_int_equal(backend_cuda.step.finish(head->rig.cuda), STATUS_OK);
}

static void compare(const struct head *before, const struct head *after)
{
    for (int r = 0; r < after->rows; r++) {
        const struct row_query *a = &before->query[r].query, *b = &after->query[r].query;

        assert_same_bits(&a->stats.max, &b->stats.max, 1);
        assert_int_equal(a->stats.argmax, b->stats.argmax);
        assert_true(fabs(a->stats.sum - b->stats.sum) <= 1e-5 * b->stats.sum);
        if (a->gumbel) {
            assert_int_equal(a->winner.token, b->winner.token);
            assert_same_bits(&a->winner.score, &b->winner.score, 1);
        }
        assert_same_bits(before->logit[r], after->logit[r], (size_t)a->tokens);
    }
}

static void check_head(enum dtype dtype, int outputs, int rows)
{
    static struct head head, before;
    static float kept[MOST_OUTPUTS], expected[MOST_OUTPUTS];

    head_open(&head, dtype, outputs, rows);
    write_queries(&head);
    assert_true(ask_before(&head));
    before = head;
    memset(head.logit, 0, sizeof head.logit);
    backend_cuda.output.fetch(head.rig.cuda, rows - 1, kept); /* which it has not kept */
    assert_int_equal(backend_cuda.step.finish(head.rig.cuda), STATUS_OK);
    write_queries(&head);
    ask_after(&head);
    backend_cuda.output.fetch(head.rig.cuda, rows - 1, expected);
    assert_int_equal(backend_cuda.step.finish(head.rig.cuda), STATUS_OK);
    compare(&before, &head);
    assert_same_bits(kept, expected, (size_t)outputs);
    head_close(&head);
}

/* Pinned memory for two rows: the others wait for room. The order is theirs who ask. */
static void test_cuda_head__more_rows_are_fetched_than_pinned_memory_holds(void **state)
{
    enum { ROWS = 7, OUTPUTS = 90 };
    static float expected[ROWS * OUTPUTS], got[ROWS * OUTPUTS];
    static struct head head;

    (void)state;
    head_open(&head, DTYPE_BF16, OUTPUTS, ROWS);
    backend_cuda.output.head(head.rig.cuda, HIDDEN, 1e-5f, head.norm, head.pair.cuda, ROWS, head.x, expected);
    assert_int_equal(backend_cuda.step.finish(head.rig.cuda), STATUS_OK);
    head.rig.cuda->fetch_rows = 2;
    backend_cuda.output.head(head.rig.cuda, HIDDEN, 1e-5f, head.norm, head.pair.cuda, ROWS, head.x, got);
    assert_int_equal(backend_cuda.step.finish(head.rig.cuda), STATUS_OK);
    assert_same_bits(got, expected, ROWS * OUTPUTS);
    memset(got, 0, sizeof got);
    write_queries(&head);
    begin_step(&head);
    run_head(&head);
    backend_cuda.output.ask(head.rig.cuda, FIRST, head.query, ROWS); /* is answered all the same */
    for (int r = ROWS - 1; r >= 0; r--)
        backend_cuda.output.fetch(head.rig.cuda, r, got + (size_t)r * OUTPUTS);
    assert_int_equal(backend_cuda.step.finish(head.rig.cuda), STATUS_OK);
    assert_same_bits(got, expected, ROWS * OUTPUTS);
    for (int r = 0; r < ROWS; r++) {
        const struct row_stats *stats = &head.query[r].query.stats;
        float largest = got[r * OUTPUTS + stats->argmax] * head.query[r].scale;

        assert_same_bits(&stats->max, &largest, 1);
    }
    head_close(&head);
}

/* 16 sequences of 33 rows and a vocabulary of 128,256: all logits would be 271 MB of pinned memory. */
static void test_cuda_head__pinned_memory_does_not_grow_with_rows_and_vocabulary(void **state)
{
    const struct backend_options options = {.threads = 1, .max_rows = 16 * 33, .max_vocab = 128256};
    struct backend_context *context = NULL;

    (void)state;
    assert_int_equal(backend_cuda.open(&options, &context), STATUS_OK);
    assert_true(context->fetch_rows >= 32);
    assert_true(context->pinned.size < (size_t)64 << 20);
    backend_cuda.close(context);
}

static void test_cuda_head__tells_what_its_logits_would(void **state)
{
    static const int shapes[][2] = {{1, 1}, {40, 1}, {97, 3}, {250, 8}, {31, 9}, {16 * 13, 17}, {16 * 24 + 3, 2}, {16 * 30, 33}, {599, MOST_ROWS}};

    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        cuda_rig_order((unsigned)s);
        check_head(DTYPE_BF16, shapes[s][0], shapes[s][1]);
        check_head(DTYPE_F16, shapes[s][0], shapes[s][1]);
        check_head(s % 2 == 0 ? DTYPE_Q8_0 : DTYPE_Q5_1, shapes[s][0], shapes[s][1]);
    }
    check_head(DTYPE_BF16, MOST_OUTPUTS, 2); /* more parts than are put together at once */
    cuda_rig_order(0);
}

/* The largest in order take the logits themselves, and so do what lies below the largest and a question that leaves rows out. */
static void test_cuda_head__keeps_logits_that_are_asked_for(void **state)
{
    static struct head head;
    struct scored_token best[2];

    (void)state;
    head_open(&head, DTYPE_BF16, 97, 3);
    write_queries(&head);
    head.query[1].query.top = 2;
    head.query[1].query.best = best;
    assert_false(ask_before(&head));
    assert_int_equal(head.query[1].query.best_count, 2);
    assert_same_bits(&best[0].score, &head.query[1].query.stats.max, 1);
    write_queries(&head);
    head.query[2].query.sums = ROW_SUMS_BELOW;
    assert_false(ask_before(&head));
    assert_true(head.query[2].query.stats.below > 0);
    write_queries(&head);
    begin_step(&head);
    (void)backend_cuda.output.ask_begin(head.rig.cuda, FIRST, head.query + 1, 2, 2);
    run_head(&head);
    assert_false(head.rig.cuda->head.told);
    backend_cuda.output.ask_run(head.rig.cuda);
    backend_cuda.output.ask_end(head.rig.cuda);
    assert_int_equal(backend_cuda.step.finish(head.rig.cuda), STATUS_OK);
    head_close(&head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_head__more_rows_are_fetched_than_pinned_memory_holds),
        cmocka_unit_test(test_cuda_head__pinned_memory_does_not_grow_with_rows_and_vocabulary),
        cmocka_unit_test(test_cuda_head__tells_what_its_logits_would),
        cmocka_unit_test(test_cuda_head__keeps_logits_that_are_asked_for),
    };
    int skipped = cuda_rig_skip();

    return skipped != 0 ? skipped : cmocka_run_group_tests(tests, NULL, NULL);
}
