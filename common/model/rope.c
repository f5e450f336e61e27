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

static float frequency_of(const struct config *config, int i)
{
    double frequency = (double)(float)pow(config->rope_theta, -2.0 * i / config->head_dim);

    if (config->rope == ROPE_LINEAR)
        frequency /= config->rope_factor;
    if (config->rope == ROPE_LLAMA3)
        frequency = scale_llama3(config, frequency);
    if (config->rope == ROPE_DIVISORS)
        frequency /= (double)config->rope_divisor[i];
    return (float)frequency;
}

void rope_fill(const struct config *config, int context, float *cosine, float *sine)
{
    int half = config->head_dim / 2;

    for (int i = 0; i < half; i++) {
        float frequency = frequency_of(config, i);

        for (int position = 0; position < context; position++) {
            float angle = (float)position * frequency;

            cosine[position * half + i] = (float)cos((double)angle);
            sine[position * half + i] = (float)sin((double)angle);
        }
    }
}
