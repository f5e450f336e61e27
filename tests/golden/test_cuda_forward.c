/* Whole forward passes of the CUDA backend, emulated or on a device: against the CPU backend, and against itself in other company. */
#include "common/backend/cuda/context.h"
#include "tests/support/capture.h"
#include "tests/support/golden.h"
#include "tests/support/model_rig.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Products, keys and values are rounded to bfloat16: each number by at most 2^-8 of itself. What comes of that is no small thing in models
 * of random weights; an independent forward pass in float64 with the same roundings is off by 1.5 % (root of the mean square) on smollm and
 * by at most 5.8 x 2^-8 of the largest logit. Measured here: up to 6.5 x 2^-8, and 1.51 %. */
#define LARGEST_ERROR (10 * 0x1p-8) /* of the largest logit */
#define TYPICAL_ERROR 0.025         /* root of the mean square of the errors, of that of the logits */

/* With a cache in E4M3 on both sides: what differs before it is rounded may round apart, by 2^-3 of itself. Measured: up to 25.4 x 2^-8, and 4.9 %.
 */
#define LARGEST_ERROR_E4M3 0.15
#define TYPICAL_ERROR_E4M3 0.075

static const char *const models[] = {"linear", "llama2", "llama31", "longrope", "mistral", "qwen2", "qwen3", "smollm", "yarn"};
enum { MODELS = sizeof models / sizeof models[0] };

struct sample {
    struct model_rig rig;
    char folder[GOLDEN_PATH];
    int vocab;
    int count;
    int32_t *tokens; /* [count] */
};

static void sample_open_with(struct sample *sample, const char *name, enum cache_choice cache)
{
    const struct model_options options = {.threads = 1, .max_rows = MODEL_RIG_ROWS, .backend = &backend_cuda, .cache = cache};

    char path[GOLDEN_PATH + 16];
    json_t *golden;

    snprintf(path, sizeof path, "tests/golden/models/%s", name);
    golden_path(path, sample->folder);
    model_rig_open_with(&sample->rig, sample->folder, NULL, &options);
    snprintf(path, sizeof path, "%s/golden.json", sample->folder);
    golden = golden_json(path);
    sample->vocab = sample->rig.model->vocab_count;
    sample->tokens = golden_ids(json_object_get(golden, "tokens"), &sample->count);
    json_decref(golden);
}

static void sample_open(struct sample *sample, const char *name)
{
    sample_open_with(sample, name, CACHE_AUTO);
}

static void sample_close(struct sample *sample)
{
    model_rig_close(&sample->rig);
    free(sample->tokens);
}

static float *logits_of(const struct sample *sample, int rows)
{
    float *logits = calloc((size_t)rows * (size_t)sample->vocab, sizeof *logits);

    assert_non_null(logits);
    return logits;
}

static void check_against_cpu(const char *model, enum cache_choice cache, double largest_error, double typical_error)
{
    struct sample sample;
    struct model_rig cpu;
    float *got, *expected, largest = 0.0f;
    double difference, errors = 0.0, squares = 0.0;

    sample_open_with(&sample, model, cache);
    model_rig_open_narrow(&cpu, sample.folder, 1, NULL, cache);
    got = logits_of(&sample, sample.count);
    expected = logits_of(&sample, sample.count);
    model_rig_feed(&sample.rig, 0, sample.tokens, sample.count, sample.count, got);
    model_rig_feed(&cpu, 0, sample.tokens, sample.count, sample.count, expected);
    for (int i = 0; i < sample.count * sample.vocab; i++) {
        double error = (double)got[i] - (double)expected[i];

        largest = fmaxf(largest, fabsf(expected[i]));
        errors += error * error;
        squares += (double)expected[i] * (double)expected[i];
    }
    difference = golden_difference(got, expected, (size_t)(sample.count * sample.vocab));
    print_message("%s: largest difference to the CPU's logits %.3g, of logits up to %.3g: %.2f x 2^-8; typical %.2f %%\n", model, difference,
                  (double)largest, difference / (double)largest * 256.0, 100.0 * sqrt(errors / squares));
    assert_true(difference <= largest_error * (double)largest);
    assert_true(errors <= typical_error * typical_error * squares);
    free(got);
    free(expected);
    model_rig_close(&cpu);
    sample_close(&sample);
}

static void test_cuda_forward__logits_match_cpu(void **state)
{
    (void)state;
    for (int m = 0; m < MODELS; m++)
        check_against_cpu(models[m], CACHE_AUTO, LARGEST_ERROR, TYPICAL_ERROR);
}

/* And a row has the same bits in any company. */
static void test_cuda_forward__a_cache_in_e4m3_matches_cpu(void **state)
{
    struct sample sample;
    float *alone, *together;

    (void)state;
    for (int m = 1; m < MODELS; m += 3)
        check_against_cpu(models[m], CACHE_E4M3, LARGEST_ERROR_E4M3, TYPICAL_ERROR_E4M3);
    sample_open_with(&sample, "qwen3", CACHE_E4M3);
    sample.count = 14;
    alone = logits_of(&sample, sample.count);
    together = logits_of(&sample, sample.count);
    model_rig_feed(&sample.rig, 0, sample.tokens, sample.count, 1, alone);
    model_rig_feed(&sample.rig, 1, sample.tokens, sample.count, sample.count, together);
    assert_memory_equal(together, alone, (size_t)(sample.count * sample.vocab) * sizeof *alone);
    model_rig_assert_copied(&sample.rig, sample.tokens, sample.count, 9);
    free(alone);
    free(together);
    sample_close(&sample);
}

/* One row in a step, a few, all at once, and among rows of other sequences. */
static void test_cuda_forward__a_row_has_the_same_bits_in_any_company(void **state)
{
    static const int strides[] = {3, 64};

    (void)state;
    for (int m = 0; m < MODELS; m += 6) {
        struct sample sample;
        float *alone, *together;
        size_t count;

        sample_open(&sample, models[m]);
        sample.count = 14; /* steps of one row are slow in the emulation */
        count = (size_t)(sample.count * sample.vocab);
        alone = logits_of(&sample, sample.count);
        together = logits_of(&sample, 2 * sample.count);
        model_rig_feed(&sample.rig, 0, sample.tokens, sample.count, 1, alone);
        for (int s = 0; s < 2; s++) {
            model_rig_feed(&sample.rig, 1 + s % 2, sample.tokens, sample.count, strides[s], together);
            assert_memory_equal(together, alone, count * sizeof *alone);
        }
        struct chain chains[2] = {{2, 0, sample.count, sample.tokens}, {0, 0, sample.count - 5, sample.tokens + 5}};
        model_rig_step(&sample.rig, chains, 2, together);
        assert_memory_equal(together, alone, count * sizeof *alone);
        assert_int_equal(golden_difference(alone, alone, count), 0); /* no NaN */
        free(alone);
        free(together);
        sample_close(&sample);
    }
}

/* A prompt of more rows than the mask has bits goes in one step, and so may go what was in several. */
static void test_cuda_forward__a_long_prompt_has_the_same_bits_at_once_and_in_parts(void **state)
{
    enum { PLACES = 90, PART = 45 };

    (void)state;
    for (int m = 0; m < MODELS; m++) {
        struct sample sample;
        int32_t tokens[PLACES];
        float *parts, *at_once, *cpu_parts, *cpu_at_once;
        struct model_rig cpu;
        size_t bytes;

        sample_open(&sample, models[m]);
        model_rig_open(&cpu, sample.folder, NULL, 1, NULL);
        for (int i = 0; i < PLACES; i++)
            tokens[i] = sample.tokens[i % sample.count];
        bytes = (size_t)(PLACES * sample.vocab) * sizeof(float);
        parts = logits_of(&sample, PLACES);
        at_once = logits_of(&sample, PLACES);
        cpu_parts = logits_of(&sample, PLACES);
        cpu_at_once = logits_of(&sample, PLACES);
        model_rig_feed(&sample.rig, 0, tokens, PLACES, PART, parts);
        model_rig_feed(&sample.rig, 1, tokens, PLACES, PLACES, at_once);
        assert_memory_equal(at_once, parts, bytes);
        model_rig_feed(&cpu, 0, tokens, PLACES, PART, cpu_parts);
        model_rig_feed(&cpu, 1, tokens, PLACES, PLACES, cpu_at_once);
        assert_memory_equal(cpu_at_once, cpu_parts, bytes);
        assert_int_equal(golden_difference(parts, parts, (size_t)(PLACES * sample.vocab)), 0); /* no NaN */
        free(parts);
        free(at_once);
        free(cpu_parts);
        free(cpu_at_once);
        model_rig_close(&cpu);
        sample_close(&sample);
    }
}

/* Rows 2 and 3 are two guesses for place 2 of one sequence; row 4 continues row 3. */
static void test_cuda_forward__a_branch_of_a_tree_gets_the_bits_of_its_chain(void **state)
{
    struct sample sample;

    (void)state;
    sample_open(&sample, "qwen3");
    const int32_t *from = sample.tokens;
    int32_t token[5] = {from[0], from[1], from[7], from[2], from[3]}, position[5] = {0, 1, 2, 2, 3}, place[5] = {0, 1, 2, 3, 4};
    int32_t slot[5] = {0}, base[5] = {0};
    uint64_t ancestors[5] = {1, 3, 7, 8 | 3, 16 | 8 | 3};
    const struct rows rows = {5, token, position, slot, place, base, ancestors};
    size_t vocab = (size_t)sample.vocab;
    float *chain = logits_of(&sample, 4), *tree = logits_of(&sample, 5);

    model_rig_feed(&sample.rig, 1, from, 4, 4, chain);
    assert_int_equal(forward_run(&sample.rig.forward, &rows, (const int32_t[]){0, 1, 2, 3, 4}, 5, tree), STATUS_OK);
    assert_memory_equal(tree, chain, 2 * vocab * sizeof *tree);
    assert_memory_equal(tree + 3 * vocab, chain + 2 * vocab, 2 * vocab * sizeof *tree);
    free(chain);
    free(tree);
    sample_close(&sample);
}

/* Three rows of which two are asked, after steps of two rows of which both are.  expected: of the places from 0 on */
static void step_of_three(struct sample *sample, const float *expected)
{
    struct backend_context *context = sample->rig.model->context;
    size_t vocab = (size_t)sample->vocab;
    float *got = logits_of(sample, 2);
    int32_t zero[3] = {0}, place[3] = {0, 1, 2};
    uint64_t ancestors[3] = {1, 3, 7};
    const struct rows rows = {3, sample->tokens, place, zero, place, zero, ancestors};

    assert_int_equal(forward_begin(&sample->rig.forward, &rows, (const int32_t[]){1, 2}, 2, NULL, NULL), STATUS_OK);
    for (int r = 0; r < 2; r++)
        backend_cuda.output.fetch(context, r, got + (size_t)r * vocab);
    assert_int_equal(forward_end(&sample->rig.forward), STATUS_OK);
    assert_memory_equal(got, expected + vocab, 2 * vocab * sizeof *got);
    free(got);
}

static void test_cuda_forward__a_copied_prefix_gives_the_bits_of_one_that_is_fed(void **state)
{
    (void)state;
    for (int m = 1; m < MODELS; m += 4) {
        struct sample sample;

        sample_open(&sample, models[m]);
        model_rig_assert_copied(&sample.rig, sample.tokens, 20, 17);
        sample_close(&sample);
    }
}

/* Steps that are recorded and played, in two slots in turns, against steps that are not. */
static void test_cuda_forward__a_recorded_step_gives_the_bits_of_a_new_one(void **state)
{
    enum { STEPS = 9, ROWS = 2 };
    struct sample sample;

    (void)state;
    sample_open(&sample, "qwen3");
    struct backend_context *context = sample.rig.model->context;
    size_t vocab = (size_t)sample.vocab;
    float *expected = logits_of(&sample, STEPS * ROWS), *got = logits_of(&sample, ROWS);

    model_rig_feed(&sample.rig, 2, sample.tokens, STEPS * ROWS, ROWS, expected);
    assert_int_equal(context->replayed, 0); /* those logits go to the host */
    for (int i = 0; i < 2 * STEPS; i++) {
        int32_t first = i / 2 * ROWS, slot = i % 2;
        int32_t token[ROWS] = {sample.tokens[first], sample.tokens[first + 1]}, place[ROWS] = {first, first + 1};
        int32_t slots[ROWS] = {slot, slot}, base[ROWS] = {first, first}, asked[2][2] = {{0, 1}, {1, 0}};
        uint64_t ancestors[ROWS] = {1, 3};
        const struct rows rows = {ROWS, token, place, slots, place, base, ancestors};

        assert_int_equal(forward_begin(&sample.rig.forward, &rows, asked[slot], ROWS, NULL, NULL), STATUS_OK);
        for (int r = 0; r < ROWS; r++)
            backend_cuda.output.fetch(context, r, got + (size_t)asked[slot][r] * vocab);
        assert_int_equal(forward_end(&sample.rig.forward), STATUS_OK);
        assert_memory_equal(got, expected + (size_t)first * vocab, ROWS * vocab * sizeof *got);
    }
    assert_int_equal(context->steps, 2 * STEPS);
    assert_int_equal(context->replayed, 2 * STEPS - 2); /* the first is not recorded, and the second played as it was recorded */
    step_of_three(&sample, expected);
    free(expected);
    free(got);
    sample_close(&sample);
}

enum { TOP = 3 };

struct answer {
    struct kept_query kept;
    int32_t token[2];
    float logit[2];
    struct scored_token best[TOP];
};

/* Rows of a chain from `first` on, in slot 1, each with a question of its own.  answers: [count] */
static void ask_chain(struct sample *sample, int first, int count, struct answer *answers)
{
    int32_t place[BACKEND_MAX_ROWS], slot[BACKEND_MAX_ROWS], base[BACKEND_MAX_ROWS], asked[BACKEND_MAX_ROWS] = {0};
    uint64_t ancestors[BACKEND_MAX_ROWS];
    struct rows rows = {count, sample->tokens + first, place, slot, place, base, ancestors};
    struct kept_query queries[BACKEND_MAX_ROWS];
    const struct forward_questions questions = {0, queries, count};

    for (int i = 0; i < count; i++) {
        struct answer *answer = &answers[i];
        int at = first + i;

        place[i] = at;
        slot[i] = 1;
        asked[i] = i;
        backend_see_chain(&rows, i, first, i);
        *answer = (struct answer){.token = {at % 7, 40 + at}};
        queries[i] = (struct kept_query){.row = i,
                                         .scale = 1,
                                         .query = {.scans = 1,
                                                   .sums = ROW_SUMS_MASS,
                                                   .gumbel = at % 2,
                                                   .key = {.seed = 5, .position = (uint32_t)at},
                                                   .purpose = RNG_NOISE,
                                                   .token = answer->token,
                                                   .tokens = 2,
                                                   .logit = answer->logit,
                                                   .top = at % 3 == 0 ? TOP : 0,
                                                   .best = answer->best}};
    }
    assert_int_equal(forward_begin(&sample->rig.forward, &rows, asked, count, NULL, &questions), STATUS_OK);
    assert_int_equal(forward_end(&sample->rig.forward), STATUS_OK);
    for (int i = 0; i < count; i++)
        answers[i].kept = queries[i];
}

static void compare_answers(const struct answer *a, const struct answer *b)
{
    const struct row_query *one = &a->kept.query, *other = &b->kept.query;

    assert_memory_equal(&one->stats.max, &other->stats.max, sizeof one->stats.max);
    assert_int_equal(one->stats.argmax, other->stats.argmax);
    assert_true(fabs(one->stats.sum - other->stats.sum) < 1e-5 * one->stats.sum); /* whose order is another one where lists are asked for */
    if (one->gumbel)
        assert_memory_equal(&one->winner, &other->winner, sizeof one->winner);
    assert_memory_equal(a->logit, b->logit, sizeof a->logit);
    assert_int_equal(one->best_count, other->best_count);
    assert_memory_equal(a->best, b->best, sizeof a->best);
}

/* Five to eight rows are one shape, of which the first makes no recording and the second does; nine are another. What is asked about each row, and
 * what later rows see of it, is as if it had come alone. */
static void test_cuda_forward__steps_of_nearly_as_many_rows_are_one_recording(void **state)
{
    enum { TURNS = 4, ALL = 5 + 6 + 7 + 8 + 9 };
    static const int counts[TURNS + 1] = {5, 6, 7, 8, 9};
    static struct answer alone[ALL], together[ALL];
    struct sample sample;
    int first = 0;

    (void)state;
    sample_open(&sample, "qwen3");
    for (int i = 0; i < ALL; i++)
        ask_chain(&sample, i, 1, &alone[i]);
    struct backend_context *context = sample.rig.model->context;
    int64_t before = context->replayed;

    for (int turn = 0; turn <= TURNS; turn++) {
        ask_chain(&sample, first, counts[turn], &together[first]);
        first += counts[turn];
        assert_int_equal(context->replayed - before, turn < 2 ? 0 : turn == TURNS ? 2 : turn - 1);
    }
    for (int i = 0; i < ALL; i++)
        compare_answers(&alone[i], &together[i]);
    sample_close(&sample);
}

/* One token after the other.  logits: [count][vocab] */
static void decode_solo(struct sample *sample, int prompt, int count, int32_t *tokens, float *logits)
{
    size_t vocab = (size_t)sample->vocab;
    float *last = logits_of(sample, prompt);

    model_rig_feed(&sample->rig, 0, sample->tokens, prompt, prompt, last);
    memcpy(logits, last + (size_t)(prompt - 1) * vocab, vocab * sizeof *last);
    for (int i = 0; i < count; i++) {
        struct chain chain = {0, prompt + i, 1, &tokens[i]};

        tokens[i] = model_rig_argmax(logits + (size_t)i * vocab, sample->vocab, NULL);
        if (i + 1 < count)
            model_rig_step(&sample->rig, &chain, 1, logits + (size_t)(i + 1) * vocab);
    }
    free(last);
}

/* Rounds of a drafter that knows the text and errs at every place that `errs` divides: the newest token and the guesses are fed together,
 * and a guess is kept while it is what the target says. Truncation is feeding from an earlier place. */
static void decode_speculatively(struct sample *sample, int prompt, int count, int guesses, int errs, const int32_t *known, int32_t *tokens,
                                 float *logits)
{
    size_t vocab = (size_t)sample->vocab;
    float *round = logits_of(sample, prompt + guesses);
    int at = 0;

    model_rig_feed(&sample->rig, 1, sample->tokens, prompt, prompt, round);
    memcpy(logits, round + (size_t)(prompt - 1) * vocab, vocab * sizeof *round);
    tokens[0] = model_rig_argmax(logits, sample->vocab, NULL);
    while (at + 1 < count) {
        int32_t fed[BACKEND_MAX_ROWS] = {tokens[at]};
        int drafted = guesses < count - 1 - at ? guesses : count - 1 - at, kept = 0;
        struct chain chain = {1, prompt + at, drafted + 1, fed};

        for (int i = 1; i <= drafted; i++)
            fed[i] = (at + i) % errs == 0 ? (known[at + i] + 1) % sample->vocab : known[at + i];
        model_rig_step(&sample->rig, &chain, 1, round);
        for (int more = 1; more && at + 1 < count; kept++) {
            memcpy(logits + (size_t)(at + 1) * vocab, round + (size_t)kept * vocab, vocab * sizeof *round);
            tokens[at + 1] = model_rig_argmax(round + (size_t)kept * vocab, sample->vocab, NULL);
            more = kept < drafted && fed[kept + 1] == tokens[at + 1];
            at++;
        }
    }
    free(round);
}

static void test_cuda_forward__greedy_speculation_gives_the_bits_of_solo(void **state)
{
    enum { PROMPT = 5, COUNT = 11 };

    (void)state;
    for (int m = 1; m < MODELS; m += 4) {
        int32_t solo[COUNT], tokens[COUNT];
        struct sample sample;
        float *expected, *logits;

        sample_open(&sample, models[m]);
        expected = logits_of(&sample, COUNT);
        logits = logits_of(&sample, COUNT);
        decode_solo(&sample, PROMPT, COUNT, solo, expected);
        for (int guesses = 1; guesses <= 4; guesses *= 4) {
            decode_speculatively(&sample, PROMPT, COUNT, guesses, 5, solo, tokens, logits);
            assert_memory_equal(tokens, solo, sizeof solo);
            assert_memory_equal(logits, expected, (size_t)(COUNT * sample.vocab) * sizeof *logits);
        }
        free(expected);
        free(logits);
        sample_close(&sample);
    }
}

/* A model with these options is not opened, and one line says why. */
static void assert_refused(const struct model_options *options, enum status status, const char *why)
{
    struct model *model = NULL;
    struct capture capture;
    char folder[GOLDEN_PATH], text[512];
    struct group self;

    group_open_self(&self);
    golden_path("tests/golden/models/llama2", folder);
    capture_begin(&capture);
    assert_int_equal(model_open(folder, &self, options, &model), status);
    capture_end(&capture, text, sizeof text);
    capture_assert_one_line(text, why);
    assert_null(model);
    group_close(&self);
}

/* Weights and cache together are more than any device has: said before anything is loaded. */
static void test_cuda_forward__what_does_not_fit_is_refused_before_it_is_loaded(void **state)
{
    const struct model_options options = {.threads = 1, .max_rows = 1, .slots = 1 << 30, .backend = &backend_cuda};

    (void)state;
    assert_refused(&options, STATUS_INTERNAL, "(--context times --max-sequences, --cache) and 0.0 GiB of activations, takes ");
}

static void test_cuda_forward__quantising_is_refused_before_anything_is_loaded(void **state)
{
    const struct model_options options = {.threads = 1, .max_rows = 1, .quantise = DTYPE_Q8_0, .backend = &backend_cuda};

    (void)state;
    assert_refused(&options, STATUS_USAGE,
                   "the cuda backend rounds no weights to Q8_0, as --quantise, --draft-quantise and --draft self:bits=N ask for, expected --backend "
                   "cpu");
}

static void test_cuda_forward__a_cache_of_float32_is_refused(void **state)
{
    const struct model_options options = {.threads = 1, .max_rows = 1, .cache = CACHE_F32, .backend = &backend_cuda};

    (void)state;
    assert_refused(&options, STATUS_USAGE,
                   "the cuda backend keeps no cache in F32, which --cache asks for, expected --cache auto or --backend cpu");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_forward__what_does_not_fit_is_refused_before_it_is_loaded),
        cmocka_unit_test(test_cuda_forward__quantising_is_refused_before_anything_is_loaded),
        cmocka_unit_test(test_cuda_forward__a_cache_of_float32_is_refused),
        cmocka_unit_test(test_cuda_forward__logits_match_cpu),
        cmocka_unit_test(test_cuda_forward__a_cache_in_e4m3_matches_cpu),
        cmocka_unit_test(test_cuda_forward__a_row_has_the_same_bits_in_any_company),
        cmocka_unit_test(test_cuda_forward__a_long_prompt_has_the_same_bits_at_once_and_in_parts),
        cmocka_unit_test(test_cuda_forward__a_branch_of_a_tree_gets_the_bits_of_its_chain),
        cmocka_unit_test(test_cuda_forward__a_copied_prefix_gives_the_bits_of_one_that_is_fed),
        cmocka_unit_test(test_cuda_forward__a_recorded_step_gives_the_bits_of_a_new_one),
        cmocka_unit_test(test_cuda_forward__steps_of_nearly_as_many_rows_are_one_recording),
        cmocka_unit_test(test_cuda_forward__greedy_speculation_gives_the_bits_of_solo),
    };
    struct device_lack lack;

    if (device_count(&lack) == 0) {
        printf("skipped: no CUDA device: %s\n", lack.why);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
