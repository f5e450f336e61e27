#include "launch/bench/report/theory.h"

enum { HALVINGS = 60 };

double theory_tokens(double alpha, int gamma)
{
    double sum = 1, power = 1;

    for (int i = 0; i < gamma; i++)
        sum += power *= alpha;
    return sum;
}

double theory_improvement(double alpha, int gamma, double c)
{
    return theory_tokens(alpha, gamma) / (gamma * c + 1);
}

double theory_improvement_measured(double alpha, int gamma, double c, double v, double rest)
{
    return theory_tokens(alpha, gamma) / (gamma * c + v + rest);
}

double theory_operations(double alpha, int gamma, double c_hat)
{
    return (gamma * c_hat + gamma + 1) / theory_tokens(alpha, gamma);
}

double theory_reads(double alpha, int gamma, double size)
{
    return (gamma * size + 1) / theory_tokens(alpha, gamma);
}

double theory_oracle(double alpha, double c)
{
    return 1 / (1 - alpha + alpha * c);
}

int theory_best_gamma(double alpha, double c, int most)
{
    int best = 0;

    for (int gamma = 1; gamma <= most; gamma++)
        if (theory_improvement(alpha, gamma, c) > theory_improvement(alpha, best, c))
            best = gamma;
    return best;
}

double theory_alpha_mixed(const double *rounds, int most, double tokens)
{
    double low = 0, high = 1;

    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2, expected = 0;

        for (int gamma = 0; gamma <= most; gamma++)
            expected += rounds[gamma] * theory_tokens(middle, gamma);
        if (expected < tokens)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

double theory_alpha(double tokens, int gamma)
{
    double rounds[THEORY_MOST_GAMMA + 1] = {0};

    rounds[gamma < THEORY_MOST_GAMMA ? gamma : THEORY_MOST_GAMMA] = 1;
    return theory_alpha_mixed(rounds, THEORY_MOST_GAMMA, tokens);
}
