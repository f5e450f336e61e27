/* How far the logits of a model are from those of the same weights in float32, over the positions of a text. */
#ifndef TANDEM_LAUNCH_BENCH_STEP_QUALITY_H
#define TANDEM_LAUNCH_BENCH_STEP_QUALITY_H

#include "common/base/status.h"

struct quality {
    int positions;
    double largest; /* difference of two logits, after each row's mean difference is taken out: a shift of a whole row changes nothing */
    double kl;      /* mean of KL(float32 || model), nats */
    double same;    /* part of the positions with the same largest logit */
};

/* In chunks of 512 tokens from the text's beginning, each fed anew behind nothing, the second half of each compared: what llama-perplexity does.
 * STATUS_NOINPUT, STATUS_DATA (a text that is too short), STATUS_INTERNAL, logged. */
enum status quality_measure(const char *reference, const char *model, const char *text, int threads, int positions, struct quality *quality);

#endif
