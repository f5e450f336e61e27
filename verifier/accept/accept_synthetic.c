#include "verifier/accept/accept_synthetic.h"

struct verdict accept_synthetic_decide(double rate, const struct law *laws, int drafted, const struct rng_key *key)
{
    struct rng_key here = *key;
    int stood = 0;

    while (stood < drafted && rng_uniform(&here, RNG_SYNTHETIC) < rate) {
        stood++;
        here.position++;
    }
    if (laws[stood].kind == LAW_WINNER)
        return (struct verdict){.accepted = stood, .row = stood, .draw = DRAW_NONE, .token = laws[stood].winner};
    return (struct verdict){.accepted = stood, .row = stood, .draw = DRAW_PLAIN};
}
