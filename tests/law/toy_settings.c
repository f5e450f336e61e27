#include "tests/law/toy_settings.h"

#include <stdio.h>

enum { TABLE_SEED = 20240607 };

/* The ways of sampling, in turn. */
static struct sampling sampling_of(int way, const char **name)
{
    static const char *const names[TOY_WAYS] = {"T 1",          "T 0.7",     "top-k 3",     "top-p 0.85", "min-p 0.2", "repetition 1.4",
                                                "penalties",    "all, T 0.7", "T 1.3",       "top-k 3, top-p 0.9", "coupled", "penalties, T 0.7"};
    struct sampling s = sampling_default;

    s.temperature = way == 1 || way == 7 || way == 11 ? 0.7 : way == 8 ? 1.3 : 1.0;
    s.top_k = way == 2 || way == 9 ? 3 : way == 7 ? 10 : 0;
    s.top_p = way == 3 ? 0.85 : way == 9 ? 0.9 : way == 7 ? 0.95 : 1.0;
    s.min_p = way == 4 ? 0.2 : way == 7 ? 0.05 : 0.0;
    s.repetition_penalty = way == 5 || way == 7 ? 1.4 : 1.0;
    s.presence_penalty = way == 6 || way == 11 ? 0.4 : 0.0;
    s.frequency_penalty = way == 6 || way == 11 ? 0.3 : 0.0;
    s.accept = way == 10 ? ACCEPT_COUPLED : ACCEPT_REJECTION;
    *name = names[way];
    return s;
}

void toy_setting_fill(struct toy_setting *setting, int i, uint64_t seed)
{
    static const int drafts[TOY_DRAFTS] = {1, 2, 3, 5}, shards[TOY_SHARDINGS] = {1, 2, 4}, supports[] = {TOY_MOST, 2, 3};
    static const double regimes[TOY_REGIMES] = {0, 0.5, 0.95};
    int size = (i + i / 12) % 4, zeros = (i + i / 4) % 2, lost = (i + i / 9) % 4 == 1;
    const char *name;

    *setting = (struct toy_setting){.way = i % TOY_WAYS,
                                    .regime = (i + i / 7) % TOY_REGIMES,
                                    .draft = (3 * i + i / 8) % TOY_DRAFTS,
                                    .sharding = (2 * i + i / 11) % TOY_SHARDINGS};
    /* 4 tokens in a row of 4 or 3, or 16 tokens in a row of 2. What lies beyond is drafted, verified and cut off. */
    setting->run = (struct toy_run){.sampling = sampling_of(setting->way, &name),
                                   .shards = shards[setting->sharding],
                                   .slots = i % 5 == 2 ? 1 : TOY_SLOTS,
                                   .draft_length = drafts[setting->draft],
                                   .support = supports[2 * i % 3],
                                   .length = size == 3 ? 2 : size == 1 ? 3 : 4,
                                   .beyond = size == 3 ? 4 : (i + i / 5) % 2 == 0 ? 6 : 1,
                                   .run_ahead = (i + i / 6) % 2,
                                   .loss = lost ? 0.3 : 0};
    setting->run.sampling.seed = seed + (uint64_t)i;
    setting->terms = (struct toy_terms){
        .tokens = size == 3 ? TOY_MOST : 4, .overlap = regimes[setting->regime], .zeros = zeros, .seed = TABLE_SEED + (uint64_t)i};
    snprintf(setting->name, sizeof setting->name, "%2d: %s, V %d, L %d, K %d, m %.2f, %d shards, %d slots, support %d%s%s%s", i, name,
             setting->terms.tokens, setting->run.length, setting->run.draft_length, setting->terms.overlap, setting->run.shards,
             setting->run.slots, setting->run.support, zeros ? ", zeros" : "", lost ? ", loss" : "", setting->run.run_ahead ? ", ahead" : "");
}
