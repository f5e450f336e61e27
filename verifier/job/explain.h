/* A round as text, for `tandem run --explain`: each draft on a line, with what drafter and target found it worth, and why it stands or not. In a
 * tree each is below what it follows, with its number in the order of drafting. A terminal gets no byte of a token that it would obey, and nobody a
 * token that breaks the line. Local; owns nothing. */
#ifndef TANDEM_VERIFIER_JOB_EXPLAIN_H
#define TANDEM_VERIFIER_JOB_EXPLAIN_H

#include "common/text/tokenizer.h"
#include "verifier/round/verify.h"
#include <stdio.h>

/* round: its number, from 1 on. kept: its tokens that were committed, fewer than it found where the completion ends in between. */
void explain_round(const struct explained *explained, const struct tokenizer *tokenizer, int round, int kept, int colour, FILE *to);
/* Its parts: how the round went; what became of a draft and why; what the last token was drawn from; and, a line behind `before`, where the
 * completion ends in between. */
void explain_head(const struct explained *explained, int round, FILE *to);
void explain_fate(const struct explained *explained, int node, const struct tokenizer *tokenizer, FILE *to);
void explain_draw(const struct explained *explained, FILE *to);
void explain_end(const struct explained *explained, int kept, const char *before, FILE *to);

#endif
