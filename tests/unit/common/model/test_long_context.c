/* A context of 131,072 tokens to its end: more than 16 bits count, and megabytes between two heads of a cache. `test_long_context write FOLDER`
 * writes the model for whole jobs. */
#include "tests/support/long_model.h"
#include "tests/support/model_rig.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { CONTEXT = LONG_MODEL_CONTEXT, VOCAB = LONG_MODEL_VOCAB, DIM = LONG_MODEL_HEAD_DIM, HEADS = LONG_MODEL_HEADS, TAIL = 512, EDGE = 65536 };

static int32_t tokens[CONTEXT];
static char folder[] = "/tmp/long-context-XXXXXX", path[64];

static int set_up(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    long_model_write(folder);
    snprintf(path, sizeof path, "%s/long.bin", folder);
    for (int i = 0; i < CONTEXT; i++)
        tokens[i] = i < EDGE ? i % VOCAB : i % (VOCAB / 2); /* so that it matters which half is seen */
    return 0;
}

static int tear_down(void **state)
{
    char tokenizer[64];

    (void)state;
    snprintf(tokenizer, sizeof tokenizer, "%s/tokenizer.bin", folder);
    return unlink(path) | unlink(tokenizer) | rmdir(folder);
}

/* The first `count` places of slot 0 as a prompt leaves them: rows of the only layer, which need to see nothing for that, see one place. */
static void fill(struct model_rig *rig, int count)
{
    int32_t place[MODEL_RIG_ROWS], slot[MODEL_RIG_ROWS] = {0}, base[MODEL_RIG_ROWS] = {0};
    uint64_t ancestors[MODEL_RIG_ROWS];
    struct rows rows = {0, NULL, place, slot, place, base, ancestors};

    for (int at = 0; at < count; at += rows.count) {
        rows.count = count - at < MODEL_RIG_ROWS ? count - at : MODEL_RIG_ROWS;
        rows.token = tokens + at;
        for (int r = 0; r < rows.count; r++) {
            place[r] = at + r;
            ancestors[r] = 1;
        }
        assert_int_equal(forward_run(&rig->forward, &rows, NULL, 0, NULL), STATUS_OK);
    }
}

/* Reads the places [first, end) of a slot, so many in a step, and gives the last one's logits. */
static void read_on(struct model_rig *rig, int slot, int first, int end, int stride, float *logits /* [VOCAB] */)
{
    static float all[MODEL_RIG_ROWS * VOCAB];
    struct chain chain = {.slot = slot};

    for (int at = first; at < end; at += chain.count) {
        chain.first = at;
        chain.count = end - at < stride ? end - at : stride;
        chain.tokens = tokens + at;
        model_rig_step(rig, &chain, 1, all);
    }
    memcpy(logits, all + (size_t)(chain.count - 1) * VOCAB, VOCAB * sizeof *logits);
}

static void open_rig(struct model_rig *rig, int threads, enum cache_choice cache)
{
    const struct model_options options = {.threads = threads, .max_rows = MODEL_RIG_ROWS, .context = CONTEXT, .cache = cache};

    model_rig_open_with(rig, path, NULL, &options);
    assert_int_equal(rig->cache.context, CONTEXT);
}

/* The places around 65,536, the last of the context, and with another number of threads and other steps in another slot behind a copy. */
static void check_readings(enum cache_choice cache)
{
    static const int ends[] = {EDGE - 1, EDGE, EDGE + 1, CONTEXT};
    float expected[VOCAB], found[VOCAB];
    struct model_rig one, three;

    open_rig(&one, 1, cache);
    open_rig(&three, 3, cache);
    fill(&one, CONTEXT);
    fill(&three, CONTEXT);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        int first = ends[i] - TAIL;

        read_on(&one, 0, first, ends[i], MODEL_RIG_ROWS, expected);
        read_on(&three, 0, first, ends[i], 50, found);
        assert_memory_equal(found, expected, sizeof found);
        kv_cache_copy(&three.cache, (struct cache_place){0, 0}, (struct cache_place){MODEL_RIG_SLOTS - 1, 0}, first);
        read_on(&three, MODEL_RIG_SLOTS - 1, first, ends[i], 7, found);
        assert_memory_equal(found, expected, sizeof found);
    }
    model_rig_close(&three);
    model_rig_close(&one);
}

static void test_long_context__its_end_is_read_alike_in_any_steps_and_threads(void **state)
{
    (void)state;
    check_readings(CACHE_F32);
    check_readings(CACHE_BF16);
    check_readings(CACHE_E4M3);
}

static size_t head_at(int slot, int h)
{
    return (size_t)(slot * HEADS + h) * CONTEXT * DIM;
}

static double key_of(const struct model_rig *rig, int slot, int h, int place, int d)
{
    const float *keys = (const float *)rig->cache.layer[0].keys + head_at(slot, h) + (size_t)(place / BACKEND_PANEL) * DIM * BACKEND_PANEL;

    return keys[d * BACKEND_PANEL + place % BACKEND_PANEL];
}

/* The key of a place is that of the same token in the first place, turned by the angles of its own. */
static void test_long_context__keys_lie_at_their_places_turned_by_their_angles(void **state)
{
    static const int places[] = {VOCAB, EDGE - VOCAB, EDGE, EDGE + VOCAB, CONTEXT - VOCAB};
    struct model_rig rig;

    (void)state;
    open_rig(&rig, 1, CACHE_F32);
    fill(&rig, CONTEXT);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (int h = 0; h < HEADS; h++)
            for (int d = 0; d < DIM / 2; d++) {
                double angle = places[i] * pow(10000, -2.0 * d / DIM), a = key_of(&rig, 0, h, 0, d), b = key_of(&rig, 0, h, 0, d + DIM / 2);

                assert_true(fabs(a) + fabs(b) > 1e-3);
                assert_true(fabs(key_of(&rig, 0, h, places[i], d) - (a * cos(angle) - b * sin(angle))) < 1e-3);
                assert_true(fabs(key_of(&rig, 0, h, places[i], d + DIM / 2) - (b * cos(angle) + a * sin(angle))) < 1e-3);
            }
    model_rig_close(&rig);
}

/* Attention of one head of the last step's row by its definition. */
static void naive(const struct model_rig *rig, int slot, int h, int row, int places, double *to /* [DIM] */)
{
    const float *q = rig->forward.q + (size_t)(row * HEADS + h) * DIM, *values = (const float *)rig->cache.layer[0].values + head_at(slot, h);
    double total = 0;

    memset(to, 0, DIM * sizeof *to);
    for (int place = 0; place < places; place++) {
        double score = 0, weight;

        for (int d = 0; d < DIM; d++)
            score += (double)q[d] * key_of(rig, slot, h, place, d);
        total += weight = exp(score);
        for (int d = 0; d < DIM; d++)
            to[d] += weight * (double)values[(size_t)place * DIM + (size_t)d];
    }
    for (int d = 0; d < DIM; d++)
        to[d] /= total;
}

/* In the last slot, whose heads lie farthest from the beginning. */
static void test_long_context__the_last_token_sees_all_places(void **state)
{
    const int slot = MODEL_RIG_SLOTS - 1, row = 4;
    float logits[VOCAB];
    struct model_rig rig;

    (void)state;
    open_rig(&rig, 1, CACHE_F32);
    fill(&rig, CONTEXT);
    kv_cache_copy(&rig.cache, (struct cache_place){0, 0}, (struct cache_place){slot, 0}, CONTEXT - 1 - row);
    read_on(&rig, slot, CONTEXT - 1 - row, CONTEXT, 1 + row, logits);
    for (int h = 0; h < HEADS; h++) {
        double expected[DIM];

        naive(&rig, slot, h, row, CONTEXT, expected);
        for (int d = 0; d < DIM; d++)
            assert_true(fabs((double)rig.forward.attended[(row * HEADS + h) * DIM + d] - expected[d]) < 3e-5);
    }
    model_rig_close(&rig);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_context__its_end_is_read_alike_in_any_steps_and_threads),
        cmocka_unit_test(test_long_context__keys_lie_at_their_places_turned_by_their_angles),
        cmocka_unit_test(test_long_context__the_last_token_sees_all_places),
    };

    if (count == 3 && strcmp(arguments[1], "write") == 0) {
        long_model_write(arguments[2]);
        return 0;
    }
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
