/* Trained models in llama2.c's format against what llama2.c's own run.c prints (shared/data, SOURCE.txt of each folder). */
#include "common/text/tokenizer.h"
#include "tests/support/golden.h"
#include "tests/support/model_rig.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_VOCAB = 512, MOST_PROMPT = BACKEND_MAX_ROWS, BOS = 1, STEPS = 200 };
#define LARGEST_ERROR 2e-4 /* measured: 2e-5 */
#define NEAR_TIE      1e-3

static struct model_rig rig;
static float logits[MOST_PROMPT * MOST_VOCAB];

/* The argmax of the logits after place `place - 1`, which are in `logits`; feeds it at `place`. */
static int32_t advance(int place, float *margin)
{
    int vocab = rig.model->vocab_count;
    int32_t token = model_rig_argmax(logits, vocab, margin);
    struct chain chain = {0, place, 1, &token};

    model_rig_step(&rig, &chain, 1, logits);
    return token;
}

static void prefill(const int32_t *tokens, int count)
{
    size_t vocab = (size_t)rig.model->vocab_count;

    assert_in_range(count, 1, MOST_PROMPT);
    model_rig_feed(&rig, 0, tokens, count, count, logits);
    memmove(logits, logits + (size_t)(count - 1) * vocab, vocab * sizeof *logits);
}

/* The largest error among the five best logits that run.c had. */
static double check_top(const json_t *top)
{
    double largest = 0;

    assert_int_equal(json_array_size(top), 5);
    for (size_t i = 0; i < 5; i++) {
        const json_t *pair = json_array_get(top, i);
        int64_t token = json_integer_value(json_array_get(pair, 0));

        assert_in_range(token, 0, rig.model->vocab_count - 1);
        double error = fabs((double)logits[token] - golden_number(json_array_get(pair, 1)));
        largest = error > largest ? error : largest;
    }
    return largest;
}

/* Whether the greedy ids are all the same; a near tie of ours is the only excuse. */
static int check_greedy(const json_t *line, int place)
{
    int count, same = 1;
    int32_t *expected = golden_ids(json_object_get(line, "greedy_ids"), &count);

    for (int i = 0; same && i < count; i++) {
        float margin;
        int32_t token = advance(place + i, &margin);

        same = token == expected[i];
        if (!same && margin >= NEAR_TIE)
            fail_msg("step %d: %d, expected %d, margin %g", i, token, expected[i], (double)margin);
        if (token == 1 || token == 2) /* run.c stops at BOS, EOS */
            assert_int_equal(i, count - 1);
    }
    free(expected);
    return same;
}

static void test_forward_llama2c__greedy_ids_are_those_of_run_c(void **state)
{
    const char *folder = *state;
    char path[GOLDEN_PATH], name[256];
    double error = 0;
    int same = 0;

    if (!golden_shared(folder, path))
        skip();
    model_rig_open(&rig, path, NULL, 1, NULL);
    snprintf(name, sizeof name, "%.*s/peer-greedy.jsonl", (int)strcspn(folder, "/"), folder);
    assert_true(golden_shared(name, path));
    json_t *lines = golden_lines(path);

    assert_int_equal(json_array_size(lines), 10);
    for (size_t i = 0; i < json_array_size(lines); i++) {
        const json_t *line = json_array_get(lines, i);
        int count;
        int32_t *prompt = golden_ids(json_object_get(line, "prompt_ids"), &count);

        prefill(prompt, count);
        error = fmax(error, check_top(json_object_get(line, "first_top5")));
        same += check_greedy(line, count);
        free(prompt);
    }
    print_message("%s: %d of 10 prompts the same to the end, max abs difference of the first top 5: %.3g\n", folder, same, error);
    assert_true(error < LARGEST_ERROR);
    assert_in_range(same, 9, 10);
    json_decref(lines);
    model_rig_close(&rig);
}

static void test_forward_llama2c__the_published_200_steps_print_the_published_bytes(void **state)
{
    char path[GOLDEN_PATH], text[4096];
    struct tokenizer *tokenizer;
    size_t size, used = 0, length;
    const int32_t bos = BOS;

    (void)state;
    if (!golden_shared("tinyllamas-260k/stories260K.bin", path))
        skip();
    model_rig_open(&rig, path, NULL, 2, NULL);
    assert_true(golden_shared("tinyllamas-260k/tok512.bin", path));
    assert_int_equal(tokenizer_open(path, rig.model->vocab, &tokenizer), STATUS_OK);
    prefill(&bos, 1);
    for (int i = 1; i <= STEPS; i++) {
        const char *piece = tokenizer_piece(tokenizer, advance(i, NULL), i == 1, 0, &length);

        assert_true(used + length < sizeof text);
        memcpy(text + used, piece, length);
        used += length;
    }
    assert_true(golden_shared("tinyllamas-260k/expected-greedy-200.txt", path));
    char *expected = golden_bytes(path, &size);

    assert_int_equal(size, 464);
    text[used] = '\0';
    assert_string_equal(text, expected);
    free(expected);
    tokenizer_close(tokenizer);
    model_rig_close(&rig);
}

int main(void)
{
    static char models[][40] = {"tinyllamas-260k/stories260K.bin", "llama2xs-279k/model.bin", "babyllama-tok105/model5000.bin"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_forward_llama2c__greedy_ids_are_those_of_run_c, models[0]),
        cmocka_unit_test_prestate(test_forward_llama2c__greedy_ids_are_those_of_run_c, models[1]),
        cmocka_unit_test_prestate(test_forward_llama2c__greedy_ids_are_those_of_run_c, models[2]),
        cmocka_unit_test(test_forward_llama2c__the_published_200_steps_print_the_published_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
