/* Each kind of scaling is one row of a table: its names in rope_type (or type, the older key) and what reads its keys. They are those of Hugging
 * Face transformers, and so is what stands for a key that is absent. */
#include "common/model/config_rope.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/model/rope.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char ORIGINAL[] = "original_max_position_embeddings";

/* Beside rope_scaling, where Phi-3 has it, it goes before what is inside. Its logarithm is divided by, so it is not 1. */
static enum status original_read(const struct checkpoint_json *json, const struct checkpoint_json *rope, enum checkpoint_json_need need,
                                 struct config *config)
{
    const struct checkpoint_json *owner = checkpoint_json_get(json, ORIGINAL) != NULL ? json : rope;

    return checkpoint_json_real(owner, ORIGINAL, need, 2, CONFIG_MAX_CONTEXT, &config->rope_original_context);
}

static enum status factor_read(const struct checkpoint_json *rope, enum checkpoint_json_need need, struct config *config)
{
    return checkpoint_json_real(rope, "factor", need, 1, 1e6, &config->rope_factor);
}

static enum status attention_read(const struct checkpoint_json *rope, double otherwise, struct config *config)
{
    config->rope_attention = otherwise;
    return checkpoint_json_real(rope, "attention_factor", CHECKPOINT_JSON_OPTIONAL, 1e-3, 1e3, &config->rope_attention);
}

static enum status plain_read(const struct checkpoint_json *json, const struct checkpoint_json *rope, struct config *config)
{
    (void)json, (void)rope, (void)config;
    return STATUS_OK;
}

static enum status linear_read(const struct checkpoint_json *json, const struct checkpoint_json *rope, struct config *config)
{
    (void)json;
    return factor_read(rope, CHECKPOINT_JSON_NEEDED, config);
}

static enum status llama3_read(const struct checkpoint_json *json, const struct checkpoint_json *rope, struct config *config)
{
    char expected[64];

    TRY(factor_read(rope, CHECKPOINT_JSON_NEEDED, config));
    TRY(checkpoint_json_real(rope, "low_freq_factor", CHECKPOINT_JSON_NEEDED, 1e-3, 1e6, &config->rope_low_frequency));
    TRY(checkpoint_json_real(rope, "high_freq_factor", CHECKPOINT_JSON_NEEDED, 1e-3, 1e6, &config->rope_high_frequency));
    TRY(original_read(json, rope, CHECKPOINT_JSON_NEEDED, config));
    if (config->rope_high_frequency > config->rope_low_frequency)
        return STATUS_OK;
    snprintf(expected, sizeof expected, "more than low_freq_factor, which is %g", config->rope_low_frequency);
    return checkpoint_json_refuse(rope, "high_freq_factor", expected);
}

static enum status yarn_ramp_read(const struct checkpoint_json *rope, struct config *config)
{
    char expected[64];

    TRY(checkpoint_json_real(rope, "beta_fast", CHECKPOINT_JSON_OPTIONAL, 1e-3, 1e6, &config->rope_beta_fast));
    TRY(checkpoint_json_real(rope, "beta_slow", CHECKPOINT_JSON_OPTIONAL, 1e-3, 1e6, &config->rope_beta_slow));
    TRY(checkpoint_json_flag(rope, "truncate", &config->rope_truncate));
    if (config->rope_beta_fast > config->rope_beta_slow)
        return STATUS_OK;
    snprintf(expected, sizeof expected, "more than beta_slow, which is %g", config->rope_beta_slow);
    return checkpoint_json_refuse(rope, "beta_fast", expected);
}

/* mscale and mscale_all_dim count together or not at all; 0 is as if absent. */
static enum status yarn_attention_read(const struct checkpoint_json *rope, struct config *config)
{
    double mscale = 0, all = 0;

    TRY(checkpoint_json_real(rope, "mscale", CHECKPOINT_JSON_OPTIONAL, 0, 1e3, &mscale));
    TRY(checkpoint_json_real(rope, "mscale_all_dim", CHECKPOINT_JSON_OPTIONAL, 0, 1e3, &all));
    if (mscale > 0 && all > 0)
        return attention_read(rope, rope_yarn_attention(config->rope_factor, mscale, all), config);
    return attention_read(rope, rope_yarn_attention(config->rope_factor, 1, 0), config);
}

/* What the first published YaRN models could have, and transformers does not compute. */
static enum status yarn_others_check(const struct checkpoint_json *rope)
{
    double one = 1;

    TRY(checkpoint_json_real(rope, "attn_factor", CHECKPOINT_JSON_OPTIONAL, 1, 1, &one));
    return checkpoint_json_real(rope, "extrapolation_factor", CHECKPOINT_JSON_OPTIONAL, 1, 1, &one);
}

static enum status yarn_read(const struct checkpoint_json *json, const struct checkpoint_json *rope, struct config *config)
{
    rope_yarn_init(config);
    TRY(factor_read(rope, CHECKPOINT_JSON_NEEDED, config));
    TRY(original_read(json, rope, CHECKPOINT_JSON_OPTIONAL, config));
    TRY(yarn_ramp_read(rope, config));
    TRY(yarn_attention_read(rope, config));
    TRY(yarn_others_check(rope));
    config->context = rope_yarn_context(config);
    return STATUS_OK;
}

/* divisor: [count] */
static enum status divisors_read(const struct checkpoint_json *rope, const char *key, int count, float *divisor)
{
    json_t *list = checkpoint_json_get(rope, key);
    char expected[64];

    snprintf(expected, sizeof expected, "a list of %d numbers from 0.001 to 1e+06", count);
    if (!json_is_array(list) || json_array_size(list) != (size_t)count)
        return checkpoint_json_refuse(rope, key, expected);
    for (int i = 0; i < count; i++) {
        double value = json_number_value(json_array_get(list, (size_t)i)); /* 0 where it is no number */

        if (!(value >= 1e-3 && value <= 1e6))
            return checkpoint_json_refuse(rope, key, expected);
        divisor[i] = (float)value;
    }
    return STATUS_OK;
}

static enum status longrope_read(const struct checkpoint_json *json, const struct checkpoint_json *rope, struct config *config)
{
    TRY(original_read(json, rope, CHECKPOINT_JSON_NEEDED, config));
    config->rope_factor = config->context / config->rope_original_context;
    TRY(factor_read(rope, CHECKPOINT_JSON_OPTIONAL, config));
    TRY(divisors_read(rope, "short_factor", config->head_dim / 2, config->rope_divisor));
    TRY(divisors_read(rope, "long_factor", config->head_dim / 2, config->rope_long_divisor));
    return attention_read(rope, rope_longrope_attention(config->rope_factor, config->rope_original_context), config);
}

/* Keys between blanks. ANY: what every kind may have; "finetuned" says how a model came about. */
#define ANY      " rope_type type rope_theta partial_rotary_factor "
#define LONGROPE " factor original_max_position_embeddings short_factor long_factor attention_factor "

static const struct kind {
    const char *name, *keys;
    enum rope_kind rope;
    enum status (*read)(const struct checkpoint_json *json, const struct checkpoint_json *rope, struct config *config);
} kinds[] = {
    {"default", "", ROPE_PLAIN, plain_read},
    {"linear", " factor ", ROPE_LINEAR, linear_read},
    {"llama3", " factor low_freq_factor high_freq_factor original_max_position_embeddings ", ROPE_LLAMA3, llama3_read},
    {"yarn",
     " factor original_max_position_embeddings beta_fast beta_slow truncate mscale mscale_all_dim attention_factor attn_factor extrapolation_factor "
     "finetuned ",
     ROPE_YARN, yarn_read},
    {"longrope", LONGROPE, ROPE_LONGROPE, longrope_read},
    {"su", LONGROPE, ROPE_LONGROPE, longrope_read}, /* its older name */
};

/* Is the key one of these? */
static int is_of(const char *keys, const char *key)
{
    const size_t length = strlen(key);

    for (const char *at = keys; (at = strstr(at, key)) != NULL && length > 0; at += length)
        if (at > keys && at[-1] == ' ' && at[length] == ' ')
            return 1;
    return 0;
}

/* The first key that has a value and means nothing here, or NULL. keys: those of the kind, beside what every one may have. */
static const char *find_unknown(const struct checkpoint_json *rope, const char *keys)
{
    const char *key;
    json_t *value;

    json_object_foreach (rope->object, key, value)
        if (!json_is_null(value) && !is_of(ANY, key) && !is_of(keys, key))
            return key;
    return NULL;
}

static const struct kind *kind_of(const json_t *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (json_is_string(name) && strcmp(json_string_value(name), kinds[i].name) == 0)
            return &kinds[i];
    return NULL;
}

static enum status kind_read(const struct checkpoint_json *json, const struct checkpoint_json *rope, struct config *config)
{
    const char *key = checkpoint_json_get(rope, "rope_type") != NULL ? "rope_type" : "type"; /* the older name */
    json_t *name = checkpoint_json_get(rope, key);
    const struct kind *kind = kind_of(name);
    const char *unknown;

    if (name == NULL && find_unknown(rope, "") == NULL)
        return STATUS_OK;
    if (kind == NULL)
        return checkpoint_json_refuse(rope, name != NULL ? key : "rope_type",
                                      "\"default\", \"linear\", \"llama3\", \"yarn\", \"longrope\" or \"su\"");
    config->rope = kind->rope;
    unknown = find_unknown(rope, kind->keys);
    if (unknown != NULL) /* models have keys that are of no effect; one that should have any would spoil the text */
        log_file_warning("%s: key \"%.60s\" of %s rotary positions is not known here, and left out", rope->file, unknown, kind->name);
    return kind->read(json, rope, config);
}

/* What stands for a number that nothing gives; NAN, which is no number's equal: the key has no default. theta: what counts */
static double number_otherwise(const char *key, double theta)
{
    if (strcmp(key, "rope_theta") == 0)
        return theta;
    return strcmp(key, "partial_rotary_factor") == 0 ? 1 : NAN;
}

/* Whether a key of rope_parameters says what counts without it: what rope_scaling or the config says, or else the default. */
static int says_the_same(const struct checkpoint_json *json, const struct checkpoint_json *scaling, double theta, const char *key,
                         const json_t *value)
{
    const json_t *counts = checkpoint_json_get(scaling, key);

    if (counts == NULL && (strcmp(key, "rope_type") == 0 || strcmp(key, "type") == 0))
        counts = checkpoint_json_get(scaling, key[0] == 't' ? "rope_type" : "type");
    if (counts == NULL)
        counts = checkpoint_json_get(json, key);
    if (json_is_number(value) && (counts == NULL || json_is_number(counts)))
        return json_number_value(value) == (counts != NULL ? json_number_value(counts) : number_otherwise(key, theta));
    return json_is_null(value) || json_equal(counts, value);
}

/* Of a config with both, rope_parameters is a copy as a rule. theta: what counts */
static void warn_of_parameters(const struct checkpoint_json *json, const struct checkpoint_json *scaling, double theta)
{
    const char *key;
    json_t *value;

    json_object_foreach(checkpoint_json_get(json, "rope_parameters"), key, value)
    {
        if (says_the_same(json, scaling, theta, key, value))
            continue;
        log_file_warning("%s: key \"%.60s\" of rope_parameters is left out: rope_scaling is there, and counts alone", json->file, key);
        return;
    }
}

enum status config_rope_read(const struct checkpoint_json *json, struct config *config)
{
    const json_t *scaling = checkpoint_json_get(json, "rope_scaling");
    int scales = scaling != NULL && !(json_is_object(scaling) && json_object_size(scaling) == 0); /* then it counts alone, as in transformers */
    const char *key = scales ? "rope_scaling" : "rope_parameters";
    struct checkpoint_json rope = {json->file, checkpoint_json_get(json, key)};
    double rotated = 1;

    config->rope_theta = 10000;
    config->rope_factor = 1;
    TRY(checkpoint_json_real(json, "rope_theta", CHECKPOINT_JSON_OPTIONAL, ROPE_LEAST_THETA, 1e12, &config->rope_theta));
    if (rope.object == NULL)
        return STATUS_OK;
    if (!json_is_object(rope.object))
        return checkpoint_json_refuse(json, key, "an object or null");
    TRY(checkpoint_json_real(&rope, "rope_theta", CHECKPOINT_JSON_OPTIONAL, ROPE_LEAST_THETA, 1e12, &config->rope_theta));
    if (scales)
        warn_of_parameters(json, &rope, config->rope_theta);
    TRY(checkpoint_json_real(&rope, "partial_rotary_factor", CHECKPOINT_JSON_OPTIONAL, 1, 1, &rotated));
    return kind_read(json, &rope, config);
}
