/* When a draft model stops before a proposal is full: by what it knows of the next token's distribution before that is drawn, and never by the token.
 * A rule that looked at the token first would send likely ones alone, which is another q than the one that is sent. Plain data; pure. */
#ifndef TANDEM_COMMON_SAMPLE_STOPPING_H
#define TANDEM_COMMON_SAMPLE_STOPPING_H

#include "common/sample/row.h"
#include <stddef.h>

enum stopping_kind {
    STOPPING_NEVER,
    STOPPING_CONFIDENCE, /* its most probable token has less than `bound` (Hugging Face's assistant_confidence_threshold, llama.cpp's p-min) */
    STOPPING_ENTROPY,    /* 1 - sqrt(0.2 H) is less than `bound`, with H the entropy in nats: a lower bound of alpha (AdaEDL, Agrawal et al. 2024) */
    STOPPING_KINDS
};

struct stopping {
    enum stopping_kind kind;
    double bound; /* [0, 1] */
};

/* Reads "never", "confidence=0.4" or "entropy=0.3", or such a name alone, with those numbers. 1, or 0 with *stopping as it was. */
int stopping_read(const char *text, struct stopping *stopping);
/* The names, for whoever is told another one. */
#define STOPPING_NAMES "never, confidence=P or entropy=L, with a number from 0 to 1"
/* Sets what must be asked of the row, beside what is asked already. */
void stopping_ask(const struct stopping *stopping, struct row_query *query);
/* Is nothing to be drawn from the row of these statistics? */
int stopping_ends(const struct stopping *stopping, const struct row_stats *stats);

#endif
