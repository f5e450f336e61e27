/* The angles of rotary position embedding (Su et al. 2021), as Hugging Face transformers computes them: frequencies in single precision, with linear
 * or Llama-3.1 scaling. Owns nothing; pure. */
#ifndef TANDEM_COMMON_MODEL_ROPE_H
#define TANDEM_COMMON_MODEL_ROPE_H

#include "common/model/config.h"

/* cosine, sine: [context][head_dim / 2] */
void rope_fill(const struct config *config, int context, float *cosine, float *sine);

#endif
