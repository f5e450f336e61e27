/* How a model's publisher advises to sample: generation_config.json, or the keys of a GGUF file. It is told and never taken, for the output is to be
 * that of the options. Plain data; what is no number in an option's range is no advice. Local. */
#ifndef TANDEM_COMMON_MODEL_CONFIG_ADVICE_H
#define TANDEM_COMMON_MODEL_CONFIG_ADVICE_H

struct json_t;
struct gguf;

enum { CONFIG_ADVICES = 5, CONFIG_ADVICE_TEXT = 160 };

struct config_advice {
    double value[CONFIG_ADVICES]; /* by the table in config_advice.c; 0: none, or what holds anyway */
};

void config_advice_of_json(const struct json_t *object, struct config_advice *advice);
void config_advice_of_gguf(const struct gguf *gguf, struct config_advice *advice);
/* As options of `tandem run`, "--temperature 0.7 --top-k 20"; "" where there is none. */
void config_advice_write(const struct config_advice *advice, char text[CONFIG_ADVICE_TEXT]);

#endif
