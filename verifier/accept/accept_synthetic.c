#include "verifier/accept/accept_synthetic.h"

struct verdict accept_synthetic_decide(double rate, const struct target_row *targets, int drafted, const struct rng_key *key)
{
    struct rng_key here = *key;
    int accepted = 0;

    while (accepted < drafted && rng_uniform(&here, RNG_SYNTHETIC) < rate) {
        accepted++;
        here.position++;
    }
    if (targets[accepted].kind == TARGET_WINNER)
        return (struct verdict){.accepted = accepted, .row = accepted, .draw = DRAW_NONE, .token = targets[accepted].winner};
    return (struct verdict){.accepted = accepted, .row = accepted, .draw = DRAW_PLAIN};
}
