#include "common/model/config_advice.h"

#include "common/file/gguf.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>

/* What is advised at these values holds without it. */
static const struct {
    const char *option, *key, *gguf;
    double above, most, idle;
    int is_whole;
} known[CONFIG_ADVICES] = {
    {"--temperature", "temperature", "general.sampling.temp", 0, 100, 0, 0},
    {"--top-k", "top_k", "general.sampling.top_k", 0, 99999, 0, 1},
    {"--top-p", "top_p", "general.sampling.top_p", 0, 1, 1, 0},
    {"--min-p", "min_p", "general.sampling.min_p", 0, 0.999, 0, 0},
    {"--repetition-penalty", "repetition_penalty", "general.sampling.penalty_repeat", 0.01, 100, 1, 0},
};

static void take(struct config_advice *advice, int i, double value)
{
    int is_one = value > known[i].above && value <= known[i].most && (!known[i].is_whole || value == floor(value));

    advice->value[i] = is_one && value != known[i].idle ? value : 0;
}

/* A model whose publisher says that it is not to be sampled has temperatures that say nothing. */
void config_advice_of_json(const json_t *object, struct config_advice *advice)
{
    if (json_is_false(json_object_get(object, "do_sample")))
        return;
    for (int i = 0; i < CONFIG_ADVICES; i++)
        take(advice, i, json_number_value(json_object_get(object, known[i].key)));
}

void config_advice_of_gguf(const struct gguf *gguf, struct config_advice *advice)
{
    for (int i = 0; i < CONFIG_ADVICES; i++)
        take(advice, i, gguf_number(gguf, known[i].gguf));
}

void config_advice_write(const struct config_advice *advice, char text[CONFIG_ADVICE_TEXT])
{
    int length = 0;

    text[0] = '\0';
    for (int i = 0; i < CONFIG_ADVICES; i++)
        if (advice->value[i] != 0)
            length +=
                snprintf(text + length, (size_t)(CONFIG_ADVICE_TEXT - length), "%s%s %.6g", length > 0 ? " " : "", known[i].option, advice->value[i]);
}
