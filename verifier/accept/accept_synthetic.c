#include "verifier/accept/accept_synthetic.h"

struct verdict accept_synthetic_decide(double rate, const struct sampling *sampling, const struct target_row *targets, int drafted,
                                       const struct rng_key *key)
{
    struct verdict verdict;
    int accepted = 0;

    for (; accepted < drafted; accepted++) {
        const struct rng_key here = accept_key(key, accepted);

        if (rng_uniform(&here, RNG_SYNTHETIC) >= rate)
            break;
    }
    verdict = verdict_of_chain(accepted, drafted, sampling->temperature == 0.0 || targets[accepted].kind == TARGET_WINNER ? DRAW_NONE : DRAW_PLAIN);
    verdict.token = targets[accepted].winner;
    return verdict;
}
