/* When drafting stops: by how the proposals before went, by what a draft model knows of the next token's distribution before that is drawn, or by
 * that and what a row costs, and never by the token. A rule that looked at the token first would send likely ones alone, which is another q than the
 * one that is sent. Plain data; pure. */
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
    STOPPING_BATCH, /* the chance that the draft stands, for which the products of the largest probabilities of its row and of those before it are
                       taken, is less than its row of the target's step costs (adaptive_price): with more sequences, or a step whose rows cost
                       more, drafts are shorter */
    STOPPING_KINDS
};

struct stopping {
    enum stopping_kind kind;
    double bound; /* [0, 1]; 0 of the first two; of the last one the price of a row, in tokens of the job, which changes: 0 where it is not known */
};

/* Reads "never", "heuristic", "batch", "confidence=0.4" or "entropy=0.3", or one of the last two names alone, with those numbers. 1, or 0 with
 * *stopping as it was. */
int stopping_read(const char *text, struct stopping *stopping);
/* The names, for whoever is told another one. */
#define STOPPING_NAMES "never, heuristic, batch, confidence=P or entropy=L, with a number from 0 to 1"
/* Sets what must be asked of the row, beside what is asked already. */
void stopping_ask(const struct stopping *stopping, struct row_query *query);
/* Does it look at rows of a draft model? */
int stopping_looks(const struct stopping *stopping);
/* Is nothing to be drawn from the row of these statistics, for the proposal that has so many drafts? Else *reach becomes the product of the largest
 * probabilities of its rows, this one included, where the kind goes by it; it is the caller's, one for each proposal. */
int stopping_ends(const struct stopping *stopping, const struct row_stats *stats, int drafted, double *reach);

#endif
