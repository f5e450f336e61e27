#include "launch/bench/alpha/share.h"

#include <math.h>

void share_add(struct share *share, double sum, double weight)
{
    if (weight <= 0)
        return;
    share->sum += sum;
    share->weight += weight;
    share->sum_sum += sum * sum;
    share->sum_weight += sum * weight;
    share->weight_weight += weight * weight;
    share->texts++;
}

double share_mean(const struct share *share)
{
    return share->texts > 0 ? share->sum / share->weight : NAN;
}

double share_error(const struct share *share)
{
    double mean = share_mean(share), n = share->texts;
    double squares = share->sum_sum - 2 * mean * share->sum_weight + mean * mean * share->weight_weight;

    return n > 1 ? sqrt(fmax(squares, 0) * n / (n - 1)) / share->weight : NAN;
}
