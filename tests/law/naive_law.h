/* The target's law as Hugging Face's processors define it, written out in double with no thought for speed: what the real code is
 * compared with. It shares no code with common/sample. */
#ifndef TANDEM_TESTS_LAW_NAIVE_LAW_H
#define TANDEM_TESTS_LAW_NAIVE_LAW_H

#include "common/sample/sampling.h"

enum { NAIVE_LAW_MOST = 4096 };

/* p: [vocab]. history: [count] earlier tokens, of which prompt_count are the prompt. Returns how far the nearest cut of top-p or min-p
 * was from being made elsewhere, relative to 1: a row that is near a cut may lawfully be cut otherwise by rounding. */
double naive_law(const struct sampling *sampling, const float *logits, int vocab, const int32_t *history, int count, int prompt_count,
                 double *p);
/* The logits after penalties and temperature, as float.  to: [vocab] */
void naive_process(const struct sampling *sampling, const float *logits, int vocab, const int32_t *history, int count, int prompt_count,
                   float *to);

#endif
