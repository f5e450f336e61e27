/* The perplexity of a text: exp of minus the mean log p of its tokens, and how well that is known. It owns the sums. Of each window of tokens the
 * second half is counted, which has the first before it. Windows, counts and error are those of llama.cpp's llama-perplexity, so that the figures of
 * both can be compared. Pure. */
#ifndef TANDEM_VERIFIER_JOB_PERPLEXITY_H
#define TANDEM_VERIFIER_JOB_PERPLEXITY_H

#include <stdint.h>

struct perplexity {
    int window;  /* tokens of each window */
    int windows; /* that were counted */
    int64_t tokens;
    double sum, squares; /* of log p */
};

/* Tokens at the end of a window that are counted: those that the rows from its middle on predict. */
int perplexity_counted(int window);
void perplexity_add(struct perplexity *perplexity, double log_p);
double perplexity_value(const struct perplexity *perplexity);
/* Its standard error: that of the mean log p, times the value. 0 of fewer than two tokens. */
double perplexity_error(const struct perplexity *perplexity);

#endif
