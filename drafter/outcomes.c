#include "drafter/outcomes.h"

#define FADE           0.98 /* of a place's counts with each verdict there */
#define PRIOR_WEIGHT   8.0  /* verdicts that the priors count as */
#define PRIOR_ACCEPTED 0.7

/* As measured on the embedded pair; what was counted soon says more. */
static const double prior_corrected[MIRROR_GUESSES + 1] = {0.45, 0.17, 0.09, 0.06, 0.04, 0.03, 0.02, 0.02, 0.12};
static const double prior_bonus[MIRROR_GUESSES + 1] = {0.68, 0.15, 0.06, 0.03, 0.02, 0.01, 0.01, 0.01, 0.03};

static void count(double *counts, int which)
{
    for (int i = 0; i <= MIRROR_GUESSES; i++)
        counts[i] *= FADE;
    counts[which]++;
}

void outcomes_add(struct outcomes *outcomes, int drafted, int accepted, int guess)
{
    for (int i = 0; i < drafted && i <= accepted; i++) {
        outcomes->tested[i] = FADE * outcomes->tested[i] + 1;
        outcomes->accepted[i] = FADE * outcomes->accepted[i] + (i < accepted);
    }
    if (guess >= 0)
        count(accepted < drafted ? outcomes->corrected[accepted] : outcomes->bonus, guess);
}

/* The probability that this many are accepted and no more. A place that was seldom tested is assumed to be as the place before it. */
static double share_of_length(const struct outcomes *outcomes, int drafted, int after)
{
    double share = 1, alpha = PRIOR_ACCEPTED;

    for (int i = 0; i <= after && i < drafted; i++) {
        alpha = (outcomes->accepted[i] + PRIOR_WEIGHT * alpha) / (outcomes->tested[i] + PRIOR_WEIGHT);
        share *= i < after ? alpha : 1 - alpha;
    }
    return share;
}

double outcomes_share(const struct outcomes *outcomes, int drafted, int after, int guess)
{
    const double *counts = after < drafted ? outcomes->corrected[after] : outcomes->bonus;
    const double *prior = after < drafted ? prior_corrected : prior_bonus;
    double sum = PRIOR_WEIGHT;

    for (int i = 0; i <= MIRROR_GUESSES; i++)
        sum += counts[i];
    return share_of_length(outcomes, drafted, after) * (counts[guess] + PRIOR_WEIGHT * prior[guess]) / sum;
}

int outcomes_choose(const struct outcomes *outcomes, int drafted, const int *guesses, int most, double least, struct outcome_choice *to)
{
    int next[MESSAGE_MAX_DRAFT + 1] = {0}, count = 0;

    for (; count < most; count++) {
        double best = 0;
        int where = -1;

        for (int after = 0; after <= drafted; after++) {
            double share = next[after] < guesses[after] ? outcomes_share(outcomes, drafted, after, next[after]) : 0;

            if (share > best) {
                best = share;
                where = after;
            }
        }
        if (where < 0 || best < least)
            break;
        to[count] = (struct outcome_choice){where, next[where]++};
    }
    return count;
}
