#include "verifier/round/figures.h"

double figures_alpha(const struct figures *figures)
{
    int64_t tested = 0, accepted = 0;

    for (int i = 0; i < MESSAGE_MAX_DRAFT; i++) {
        tested += figures->tested[i];
        accepted += figures->accepted_at[i];
    }
    return tested > 0 ? (double)accepted / (double)tested : 0.0;
}

double figures_kept(const struct figures *figures)
{
    return figures->drafted > 0 ? (double)figures->accepted / (double)figures->drafted : 0.0;
}

double figures_drafted_rounds(const struct figures *figures)
{
    return figures->rounds > 0 ? (double)figures->drafted_rounds / (double)figures->rounds : 0.0;
}

double figures_tokens_per_second(const struct figures *figures)
{
    return figures->wall_ns > 0 ? (double)figures->tokens * 1e9 / (double)figures->wall_ns : 0.0;
}

double figures_drafts_per_proposal(const struct figures *figures)
{
    return figures->answered_rounds > 0 ? (double)figures->drafted / (double)figures->answered_rounds : 0.0;
}

double figures_mean_accepted_length(const struct figures *figures)
{
    return figures->rounds > 0 ? (double)figures->tokens / (double)figures->rounds : 0.0;
}

double figures_us_per_round(const struct figures *figures, const struct span_sum *spans)
{
    return figures->rounds > 0 ? (double)spans->ns / 1000.0 / (double)figures->rounds : 0.0;
}

double figures_ahead_hit_rate(const struct figures *figures)
{
    return figures->answered_rounds > 0 ? (double)figures->ahead.hits / (double)figures->answered_rounds : 0.0;
}
