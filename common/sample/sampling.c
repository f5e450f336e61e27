#include "common/sample/sampling.h"

#include "common/base/digest.h"
#include "common/sample/rule.h"
#include <math.h>
#include <stdio.h>

const struct sampling sampling_default = {
    .temperature = 0.0,
    .top_p = 1.0,
    .min_p = 0.0,
    .repetition_penalty = 1.0,
    .presence_penalty = 0.0,
    .frequency_penalty = 0.0,
    .lenience = 0.5,
    .threshold = 0.3,
    .typical_epsilon = 0.09,
    .typical_delta = 0.3,
    .top_k = 0,
    .accept = ACCEPT_REJECTION,
    .seed = 0,
};

static enum status refuse(char *reason, size_t size, const char *name, double value, const char *expected)
{
    snprintf(reason, size, "%s is %.10g, expected %s", name, value, expected);
    return STATUS_USAGE;
}

enum status sampling_check(const struct sampling *s, char *reason, size_t size)
{
    if (!(s->temperature >= 0.0 && s->temperature <= 100.0))
        return refuse(reason, size, "temperature", s->temperature, "a number from 0 to 100");
    if (!(s->top_p > 0.0 && s->top_p <= 1.0))
        return refuse(reason, size, "top_p", s->top_p, SAMPLING_TOP_P);
    if (!(s->min_p >= 0.0 && s->min_p < 1.0))
        return refuse(reason, size, "min_p", s->min_p, SAMPLING_MIN_P);
    if (!(s->repetition_penalty >= 0.01 && s->repetition_penalty <= 100.0)) /* less would take logits beyond float's range */
        return refuse(reason, size, "repetition_penalty", s->repetition_penalty, "a number from 0.01 to 100");
    if (!(fabs(s->presence_penalty) <= 2.0))
        return refuse(reason, size, "presence_penalty", s->presence_penalty, "a number from -2 to 2");
    if (!(fabs(s->frequency_penalty) <= 2.0))
        return refuse(reason, size, "frequency_penalty", s->frequency_penalty, "a number from -2 to 2");
    if (!(s->lenience > 0.0 && s->lenience <= 1.0))
        return refuse(reason, size, "lenience", s->lenience, SAMPLING_LENIENCE);
    if (!(s->threshold >= 0.0 && s->threshold < 1.0))
        return refuse(reason, size, "threshold", s->threshold, SAMPLING_THRESHOLD);
    if (!(s->typical_epsilon >= 0.0 && s->typical_epsilon <= 1.0))
        return refuse(reason, size, "typical_epsilon", s->typical_epsilon, "a number from 0 to 1");
    if (!(s->typical_delta >= 0.0 && s->typical_delta <= 1.0))
        return refuse(reason, size, "typical_delta", s->typical_delta, "a number from 0 to 1");
    if (s->top_k < 0)
        return refuse(reason, size, "top_k", s->top_k, "a whole number of at least 0");
    if (rule_name(s->accept) == NULL)
        return refuse(reason, size, "accept", s->accept, "the number of one of " RULE_NAMES);
    return STATUS_OK;
}

uint64_t sampling_digest(const struct sampling *s)
{
    /* Field by field: the struct may have padding. */
    double numbers[] = {s->temperature,       s->top_p,    s->min_p,     s->repetition_penalty, s->presence_penalty,
                        s->frequency_penalty, s->lenience, s->threshold, s->typical_epsilon,    s->typical_delta};
    int32_t integers[2] = {s->top_k, s->accept};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        numbers[i] += 0.0; /* -0 and +0 are one value; the wire keeps only one of them */

    return digest_bytes(integers, sizeof integers, digest_bytes(numbers, sizeof numbers, s->seed));
}

int sampling_has_penalties(const struct sampling *s)
{
    return s->repetition_penalty != 1.0 || s->presence_penalty != 0.0 || s->frequency_penalty != 0.0;
}
