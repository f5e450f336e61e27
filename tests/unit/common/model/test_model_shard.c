/* The parts of all ranks are the whole model, each once. */
#include "common/backend/backend.h"
#include "common/model/model_shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* This part begins where the one before ended, and moves the end. */
static void follows(int *end, struct model_part part)
{
    assert_int_equal(part.first, *end);
    assert_in_range(part.count, 0, INT32_MAX);
    *end += part.count;
}

static void test_model_shard__parts_are_the_whole(void **state)
{
    static const int vocabularies[] = {64, 131, 512, 32000, 49152, 128256, 151936, 4194303};
    const struct config config = {.heads = 24, .kv_heads = 8, .ffn = 8 * 173};

    (void)state;
    for (size_t v = 0; v < sizeof vocabularies / sizeof *vocabularies; v++)
        for (int size = 1; size <= 8; size *= 2) {
            int heads = 0, kv_heads = 0, ffn = 0, vocab = 0;

            for (int rank = 0; rank < size; rank++) {
                struct model_shard shard = model_shard_of(&config, vocabularies[v], rank, size);

                follows(&heads, shard.heads);
                follows(&kv_heads, shard.kv_heads);
                follows(&ffn, shard.ffn);
                follows(&vocab, shard.vocab);
                assert_int_equal(shard.vocab.first % BACKEND_PANEL, 0);
                assert_int_equal(shard.heads.first / 3, shard.kv_heads.first); /* a query's head beside the keys that it looks at */
            }
            assert_int_equal(heads, config.heads);
            assert_int_equal(kv_heads, config.kv_heads);
            assert_int_equal(ffn, config.ffn);
            assert_int_equal(vocab, vocabularies[v]);
        }
}

/* Beyond the kv heads: each rank has the one that its query heads read, and nothing else is had twice. */
static void test_model_shard__neighbours_share_a_kv_head(void **state)
{
    const struct config config = {.heads = 64, .kv_heads = 8, .ffn = 28672};

    (void)state;
    for (int size = 8; size <= 64; size *= 2) {
        int heads = 0, ffn = 0, vocab = 0;

        for (int rank = 0; rank < size; rank++) {
            struct model_shard shard = model_shard_of(&config, 128256, rank, size);

            follows(&heads, shard.heads);
            follows(&ffn, shard.ffn);
            follows(&vocab, shard.vocab);
            assert_int_equal(shard.kv_heads.count, 1);
            for (int h = shard.heads.first; h < heads; h++)
                assert_int_equal(shard.kv_heads.first, h / 8);
        }
        assert_true(heads == 64 && ffn == 28672 && vocab == 128256);
    }
}

static void test_model_shard__too_few_ids_leave_a_rank_none(void **state)
{
    const struct config config = {.heads = 4, .kv_heads = 4, .ffn = 4};

    (void)state;
    assert_int_equal(model_shard_of(&config, 3 * BACKEND_PANEL, 0, 4).vocab.count, 0);
    assert_int_equal(model_shard_of(&config, 4 * BACKEND_PANEL, 0, 4).vocab.count, BACKEND_PANEL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_shard__parts_are_the_whole),
        cmocka_unit_test(test_model_shard__neighbours_share_a_kv_head),
        cmocka_unit_test(test_model_shard__too_few_ids_leave_a_rank_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
