#include "verifier/job/perplexity.h"

#include <math.h>

int perplexity_counted(int window)
{
    return window - window / 2 - 1;
}

void perplexity_add(struct perplexity *perplexity, double log_p)
{
    perplexity->tokens++;
    perplexity->sum += log_p;
    perplexity->squares += log_p * log_p;
}

double perplexity_value(const struct perplexity *perplexity)
{
    return exp(-perplexity->sum / (double)perplexity->tokens);
}

double perplexity_error(const struct perplexity *perplexity)
{
    double count = (double)perplexity->tokens, mean = perplexity->sum / count, variance = perplexity->squares / count - mean * mean;

    return count > 1 && variance > 0 ? sqrt(variance / (count - 1)) * perplexity_value(perplexity) : 0;
}
