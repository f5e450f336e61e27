/* When drafting stops: by how the proposals before went, or by what a draft model knows of the next token's distribution before that is drawn, and
 * never by the token. A rule that looked at the token first would send likely ones alone, which is another q than the one that is sent. Plain data;
 * pure. */
#ifndef TANDEM_COMMON_SAMPLE_STOPPING_H
#define TANDEM_COMMON_SAMPLE_STOPPING_H

#include "common/sample/row.h"
#include <stddef.h>

enum stopping_kind {
    STOPPING_NEVER,
    STOPPING_HEURISTIC,  /* after two drafts more than last time where all of those stood, else after one fewer (Hugging Face's heuristic schedule):
                            the lead's, see adaptive_next */
    STOPPING_CONFIDENCE, /* its most probable token has less than `bound` (Hugging Face's assistant_confidence_threshold, llama.cpp's p-min) */
    STOPPING_ENTROPY,    /* 1 - sqrt(0.2 H) is less than `bound`, with H the entropy in nats: a lower bound of alpha (AdaEDL, Agrawal et al. 2024) */
    STOPPING_KINDS
};

struct stopping {
    enum stopping_kind kind;
    double bound; /* [0, 1]; 0 of the first two */
};

/* Reads "never", "heuristic", "confidence=0.4" or "entropy=0.3", or one of the last two names alone, with those numbers. 1, or 0 with *stopping as it
 * was. */
int stopping_read(const char *text, struct stopping *stopping);
/* The names, for whoever is told another one. */
#define STOPPING_NAMES "never, heuristic, confidence=P or entropy=L, with a number from 0 to 1"
/* Sets what must be asked of the row, beside what is asked already. */
void stopping_ask(const struct stopping *stopping, struct row_query *query);
/* Does it look at rows of a draft model? */
int stopping_looks(const struct stopping *stopping);
/* Is nothing to be drawn from the row of these statistics? */
int stopping_ends(const struct stopping *stopping, const struct row_stats *stats);

#endif
