/* What a request asks of sampling: plain data that crosses the wire unchanged, with its defaults, its limits and its digest. Invariant: both models
 * apply it in the same way, so a digest that differs between drafter and verifier is a protocol error. Pure; the acceptance rules that it names are
 * the rows of rule.h. */
#ifndef TANDEM_COMMON_SAMPLE_SAMPLING_H
#define TANDEM_COMMON_SAMPLE_SAMPLING_H

#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>

/* The rows of common/sample/rule.h; the numbers go over the wire. */
enum accept_mode {
    ACCEPT_REJECTION = 0,
    ACCEPT_COUPLED = 1,
    ACCEPT_WALK = 2,
    ACCEPT_BLOCK = 3,
    ACCEPT_CLASSIC = 4,
    ACCEPT_LENIENCE = 5,
    ACCEPT_THRESHOLD = 6,
    ACCEPT_TYPICAL = 7,
    ACCEPT_MULTISTEP = 8,
    ACCEPT_WITHOUT_REPLACEMENT = 9,
    ACCEPT_K_SEQUENTIAL = 10,
    ACCEPT_TRAVERSAL = 11,
    ACCEPT_MODES
};

enum { SAMPLING_MAX_DRAFT = 63 /* tokens of a proposal: with the one that they follow as many rows as a tree's may see one by one */ };

struct sampling {
    double temperature;        /* >= 0; 0 is greedy */
    double top_p;              /* (0, 1]; 1 is off */
    double min_p;              /* [0, 1); 0 is off */
    double repetition_penalty; /* > 0; 1 is off (Keskar et al. 2019, as in Hugging Face transformers) */
    double presence_penalty;   /* [-2, 2]; 0 is off; over generated tokens */
    double frequency_penalty;  /* [-2, 2]; 0 is off; over generated tokens */
    double lenience;           /* (0, 1], of the rule lenience: what q is multiplied by before p is compared with it; 1 is rejection */
    double threshold;          /* [0, 1), of the rule threshold: p of a draft that is accepted is above it */
    double typical_epsilon;    /* [0, 1], of the rule typical: p of a draft that is accepted is above this, or above .. */
    double typical_delta;      /* [0, 1] .. this times exp(-entropy of p), whichever is less */
    int32_t top_k;             /* >= 0; 0 is off */
    int32_t accept;            /* enum accept_mode */
    uint64_t seed;
    int32_t drafter; /* which of several drafters for one request draws, whose coins are its own. No part of the request: neither sent nor
                        in the digest */
};

extern const struct sampling sampling_default;

/* Ranges with an open end, in words. */
#define SAMPLING_TOP_P "a number above 0 and at most 1"
#define SAMPLING_MIN_P "a number from 0 to below 1"

#define SAMPLING_LENIENCE  "a number above 0 and at most 1"
#define SAMPLING_THRESHOLD "a number from 0 to below 1"

/* STATUS_OK, or STATUS_USAGE with the reason in `reason` ("temperature is -1, expected a number of at least 0"). */
enum status sampling_check(const struct sampling *sampling, char *reason, size_t reason_size);
uint64_t sampling_digest(const struct sampling *sampling);
/* Does it change the order of the logits by history (any penalty)? */
int sampling_has_penalties(const struct sampling *sampling);

#endif
