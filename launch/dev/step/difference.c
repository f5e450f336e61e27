#include "launch/dev/step/difference.h"

#include <math.h>
#include <stdio.h>

static double log_of_sum(const float *logits, int vocab, double shift)
{
    double sum = 0;

    for (int i = 0; i < vocab; i++)
        sum += exp(logits[i] - shift);
    return sum > 0 ? shift + log(sum) : shift;
}

static int largest_of(const float *logits, int vocab)
{
    int best = 0;

    for (int i = 1; i < vocab; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

void difference_add(struct difference *difference, const float *exact, const float *other, int vocab)
{
    int best = largest_of(exact, vocab), found = largest_of(other, vocab);
    double exact_sum = log_of_sum(exact, vocab, exact[best]), other_sum = log_of_sum(other, vocab, other[found]), shift = 0;

    for (int i = 0; i < vocab; i++)
        shift += (double)other[i] - exact[i];
    shift /= vocab;
    for (int i = 0; i < vocab; i++) {
        double apart = fabs((double)other[i] - exact[i] - shift), log_p = exact[i] - exact_sum;

        difference->largest = apart > difference->largest ? apart : difference->largest;
        difference->kl += exp(log_p) * (log_p - (other[i] - other_sum));
    }
    difference->same += best == found;
    difference->positions++;
}

void difference_print(const struct difference *difference)
{
    double positions = difference->positions > 0 ? difference->positions : 1;

    printf("{\"positions\": %d, \"largest\": %.6g, \"kl\": %.6g, \"same\": %.6g}\n", difference->positions, difference->largest,
           difference->kl / positions, difference->same / positions);
}
