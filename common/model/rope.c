#include "common/model/rope.h"

#include <math.h>

/* Llama 3.1 keeps short wavelengths, divides long ones by the factor, and blends in between. */
static double scale_llama3(const struct config *config, double frequency)
{
    double wavelength = 2.0 * M_PI / frequency;
    double low = config->rope_original_context / config->rope_low_frequency;
    double high = config->rope_original_context / config->rope_high_frequency;
    double blend;

    if (wavelength < high)
        return frequency;
    if (wavelength > low)
        return frequency / config->rope_factor;
    blend = (config->rope_original_context / wavelength - config->rope_low_frequency) /
            (config->rope_high_frequency - config->rope_low_frequency);
    return (1.0 - blend) * frequency / config->rope_factor + blend * frequency;
}

/* The pair, counted from 0 and with a fraction, that turns so many times over the original context. */
static double pair_of_turns(const struct config *config, double turns)
{
    return config->head_dim * log(config->rope_original_context / (turns * 2.0 * M_PI)) / (2.0 * log(config->rope_theta));
}

/* YaRN keeps the frequency of pairs that turn often, divides that of those which turn seldom by the factor, and blends along the pairs in between. */
static double scale_yarn(const struct config *config, int pair, double frequency)
{
    double first = pair_of_turns(config, config->rope_beta_fast), last = pair_of_turns(config, config->rope_beta_slow), blend;

    if (config->rope_truncate) {
        first = floor(first);
        last = ceil(last);
    }
    first = fmax(first, 0);
    last = fmin(last, config->head_dim - 1);
    blend = fmin(fmax((pair - first) / (last != first ? last - first : 0.001), 0), 1);
    return (1.0 - blend) * frequency + blend * frequency / config->rope_factor;
}

static float frequency_of(const struct config *config, int longest, int i)
{
    double frequency = (double)(float)pow(config->rope_theta, -2.0 * i / config->head_dim);

    switch (config->rope) {
    case ROPE_PLAIN:
        break;
    case ROPE_LINEAR:
        frequency /= config->rope_factor;
        break;
    case ROPE_LLAMA3:
        frequency = scale_llama3(config, frequency);
        break;
    case ROPE_DIVISORS:
        frequency /= (double)config->rope_divisor[i];
        break;
    case ROPE_YARN:
        frequency = scale_yarn(config, i, frequency);
        break;
    case ROPE_LONGROPE:
        frequency /= (double)(longest > config->rope_original_context ? config->rope_long_divisor[i] : config->rope_divisor[i]);
        break;
    }
    return (float)frequency;
}

void rope_fill(const struct config *config, int longest, int context, float *cosine, float *sine)
{
    int half = config->head_dim / 2, has_attention = config->rope == ROPE_YARN || config->rope == ROPE_LONGROPE;
    float attention = has_attention ? (float)config->rope_attention : 1.0f;

    for (int i = 0; i < half; i++) {
        float frequency = frequency_of(config, longest, i);

        for (int position = 0; position < context; position++) {
            float angle = (float)position * frequency;

            cosine[position * half + i] = (float)cos((double)angle) * attention;
            sine[position * half + i] = (float)sin((double)angle) * attention;
        }
    }
}

void rope_yarn_init(struct config *config)
{
    config->rope = ROPE_YARN;
    config->rope_original_context = config->context;
    config->rope_beta_fast = 32;
    config->rope_beta_slow = 1;
    config->rope_truncate = 1;
}

int rope_yarn_context(const struct config *config)
{
    return (int)fmin(fmax(config->rope_original_context * config->rope_factor, config->context), CONFIG_MAX_CONTEXT);
}

double rope_yarn_attention(double factor, double mscale, double all)
{
    return (0.1 * mscale * log(factor) + 1.0) / (0.1 * all * log(factor) + 1.0);
}

double rope_longrope_attention(double factor, double original)
{
    return factor > 1 ? sqrt(1.0 + log(factor) / log(original)) : 1.0;
}
