/* The angles of rotary position embedding (Su et al. 2021), as Hugging Face transformers computes them: frequencies in single precision, with linear,
 * Llama-3.1, YaRN (Peng et al. 2023) or LongRoPE (Ding et al. 2024) scaling. Owns nothing; pure. */
#ifndef TANDEM_COMMON_MODEL_ROPE_H
#define TANDEM_COMMON_MODEL_ROPE_H

#include "common/model/config.h"

enum { ROPE_LEAST_THETA = 2 }; /* YaRN divides by its logarithm */

/* cosine, sine: [context][head_dim / 2]. A sequence has at most `longest` tokens: LongRoPE takes its divisors for long sequences where these are more
 * than the original context. */
void rope_fill(const struct config *config, int longest, int context, float *cosine, float *sine);

/* For readers of files. YaRN's fields as they are where a file does not give them; the original context is config.context. */
void rope_yarn_init(struct config *config);
/* The original context times the factor, or config.context where that is more. */
int rope_yarn_context(const struct config *config);
/* (0.1 mscale ln factor + 1) / (0.1 all ln factor + 1), which is the paper's square root of 1 / t for mscale = 1 and all = 0. */
double rope_yarn_attention(double factor, double mscale, double all);
/* sqrt(1 + ln factor / ln original), 1 where the factor is at most 1. */
double rope_longrope_attention(double factor, double original);

#endif
