/* Random settings of every sampling parameter together, as lines of JSON. A setting is a function of (seed, number), and of what the target says
 * without it: stop texts, stop tokens and bad words are cut from that, so that they are met. */
#ifndef TANDEM_TESTS_LAW_SETTINGS_H
#define TANDEM_TESTS_LAW_SETTINGS_H

#include "tests/support/model_rig.h"
#include "tests/support/pair.h"
#include <jansson.h>

enum settings_mode {
    SETTINGS_EQUAL,    /* greedy or coupled: the output is a function of seed and target */
    SETTINGS_REJECTION /* Algorithm 1 at a temperature */
};

/* The parameters that make the distribution, the prompt, max_tokens and draft_length. The caller gives it back. */
json_t *settings_probe(uint64_t seed, int number, enum settings_mode mode);
/* The same setting with biases, bad words, stops, min_tokens and ignore_eos.  probe: what the target said to the line of settings_probe */
json_t *settings_whole(uint64_t seed, int number, enum settings_mode mode, const struct pair_result *probe);

/* Reads the lines as a file of prompts. lines: [count] */
void settings_read(struct request_list *requests, const struct request_terms *terms, json_t *const *lines, int count);

/* Fails unless each token of a greedy or coupled result is the one that the definitions give, written out in naive_bias.c and naive_law.c on the
 * target's own logits: the argmax, or that of log p + noise. Returns how many tokens were looked at: a row that rounding may cut otherwise is not. */
int settings_assert_defined(const struct request *request, const struct pair_result *result, struct model_rig *target);

/* Fails unless the result keeps what the request asks: bans, min_tokens, max_tokens, and an end that has its reason. Its eos: [eos_count]. */
void settings_assert_kept(const struct request *request, const struct pair_result *result, const int32_t *eos, int eos_count);

#endif
