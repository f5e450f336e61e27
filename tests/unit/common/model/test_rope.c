/* The position tables of each kind of scaling, read from a config.json, against the inverse frequencies and attention factors that Hugging Face
 * transformers 5.24.0 (modeling_rope_utils.ROPE_INIT_FUNCTIONS, torch 2.15.0) gives for it. */
#include "common/model/model.h"
#include "common/model/rope.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAIRS = 8, POSITIONS = 512 };

static char folder[] = "/tmp/test_rope.XXXXXX", path[64];

#define FACTORS "\"short_factor\": [1, 1.05, 1.1, 1.25, 1.5, 2, 2.5, 3], \"long_factor\": [1, 1.5, 2.25, 4, 9.5, 16, 30.25, 64]"
static const double with_short[PAIRS] = {1, 0.301169306, 0.0909090936, 0.0252982229, 0.00666666683, 0.00158113893, 0.00039999999, 0.000105409257};
static const double with_long[PAIRS] = {1, 0.210818499, 0.0444444455, 0.00790569466, 0.00105263153, 0.000197642366, 3.30578514e-05, 4.94105916e-06};

static const struct known {
    const char *keys; /* of config.json */
    int longest;
    double attention;
    const double *frequency; /* [PAIRS] */
} known[] = {
    {"\"max_position_embeddings\": 256, \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4.0, \"original_max_position_embeddings\": 64}", 256,
     1.13862944, (const double[PAIRS]){1, 0.237170815, 0.049999997, 0.00790569466, 0.00249999994, 0.000790569466, 0.000250000012, 7.90569466e-05}},
    /* A ramp whose ends are no whole pairs, and an attention factor that is a quotient. */
    {"\"max_position_embeddings\": 256, \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4, \"original_max_position_embeddings\": 64,"
     "\"beta_fast\": 4, \"beta_slow\": 0.5, \"truncate\": false, \"mscale\": 1.5, \"mscale_all_dim\": 0.5}",
     256, 1.1296432,
     (const double[PAIRS]){1, 0.291525632, 0.0506643951, 0.00790569466, 0.00249999994, 0.000790569466, 0.000250000012, 7.90569466e-05}},
    {"\"max_position_embeddings\": 256, \"rope_theta\": 1000000, \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 40,"
     "\"original_max_position_embeddings\": 4096, \"attention_factor\": 1.25}",
     256, 1.25, (const double[PAIRS]){1, 0.177827939, 0.0213453751, 0.0019681945, 2.49999994e-05, 4.44569832e-06, 7.90569402e-07, 1.40585328e-07}},
    /* The original context is that of the config. */
    {"\"max_position_embeddings\": 4096, \"rope_theta\": 1000000, \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 2}", 256, 1.06931472,
     (const double[PAIRS]){1, 0.177827939, 0.0263523161, 0.00374894217, 0.000500000024, 8.89139701e-05, 1.58113871e-05, 2.81170674e-06}},
    /* A ramp without a length; an mscale alone counts for nothing. */
    {"\"max_position_embeddings\": 256, \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 8, \"original_max_position_embeddings\": 6, \"mscale\": "
     "0.7}",
     256, 1.20794415,
     (const double[PAIRS]){1, 0.0395284705, 0.0125000002, 0.00395284733, 0.00124999997, 0.000395284733, 0.000125000006, 3.95284733e-05}},
    {"\"max_position_embeddings\": 512, \"rope_scaling\": {\"type\": \"longrope\", \"original_max_position_embeddings\": 64, " FACTORS "}", 64,
     1.22474492, with_short},
    {"\"max_position_embeddings\": 512, \"rope_scaling\": {\"type\": \"su\", \"original_max_position_embeddings\": 64, " FACTORS "}", 65, 1.22474492,
     with_long},
    /* Beside rope_scaling, as Phi-3 has it; a factor that is not the quotient of the two contexts. */
    {"\"max_position_embeddings\": 512, \"original_max_position_embeddings\": 128, \"rope_scaling\": {\"rope_type\": \"longrope\", \"factor\": 32.0,"
     "\"original_max_position_embeddings\": 512, " FACTORS "}",
     512, 1.30930734, with_long},
    {"\"max_position_embeddings\": 512, \"rope_scaling\": {\"rope_type\": \"longrope\", \"original_max_position_embeddings\": 512, " FACTORS "}", 512,
     1, with_short},
    {"\"max_position_embeddings\": 512, \"rope_scaling\": {\"rope_type\": \"longrope\", \"original_max_position_embeddings\": 64,"
     "\"attention_factor\": 1.5, " FACTORS "}",
     512, 1.5, with_long},
};

static struct config config_with(const char *keys)
{
    FILE *file = fopen(path, "w");
    struct config config;

    assert_non_null(file);
    fprintf(file,
            "{\"model_type\": \"llama\", \"hidden_size\": 32, \"intermediate_size\": 32, \"num_hidden_layers\": 1, \"num_attention_heads\": 2,"
            "\"vocab_size\": 16, \"rms_norm_eps\": 1e-5, %s}",
            keys);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(config_read(folder, &config), STATUS_OK);
    assert_int_equal(config.head_dim, 2 * PAIRS);
    return config;
}

/* A frequency may be apart by two roundings to single precision, which grow with the place, and a cosine by one. */
static void assert_near(double found, double expected, double attention, double angle)
{
    if (!(fabs(found - expected) <= attention * (2.4e-7 * angle + 1.2e-7)))
        fail_msg("%.9g instead of %.9g at an angle of %g", found, expected, angle);
}

static void test_rope__tables_are_those_of_transformers(void **state)
{
    static float cosine[POSITIONS * PAIRS], sine[POSITIONS * PAIRS];

    (void)state;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        struct config config = config_with(known[k].keys);

        print_message("%s\n", known[k].keys);
        rope_fill(&config, known[k].longest, POSITIONS, cosine, sine);
        for (int position = 0; position < POSITIONS; position++)
            for (int i = 0; i < PAIRS; i++) {
                double angle = position * known[k].frequency[i], attention = known[k].attention;

                assert_near((double)cosine[position * PAIRS + i], attention * cos(angle), attention, angle);
                assert_near((double)sine[position * PAIRS + i], attention * sin(angle), attention, angle);
            }
    }
}

/* The original context of this model is 4 tokens; its cache has 16 places for 4 tokens as for 5. */
static void test_rope__longrope_goes_by_the_context_that_is_asked_for(void **state)
{
    struct group self;

    (void)state;
    group_open_self(&self);
    for (int context = 4; context <= 5; context++) {
        const struct model_options options = {.threads = 1, .max_rows = 1, .context = context};
        float cosine[2 * PAIRS], sine[2 * PAIRS];
        struct model *model;

        assert_int_equal(model_open(TANDEM_SOURCE_DIR "/tests/golden/models/longrope", &self, &options, &model), STATUS_OK);
        rope_fill(&model->config, context, 2, cosine, sine);
        assert_memory_equal(model->cosine, cosine, sizeof cosine);
        assert_memory_equal(model->sine, sine, sizeof sine);
        model_close(model);
    }
}

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/config.json", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return unlink(path) | rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rope__tables_are_those_of_transformers),
        cmocka_unit_test(test_rope__longrope_goes_by_the_context_that_is_asked_for),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
