#include "verifier/accept/accept_synthetic.h"

struct verdict accept_synthetic_decide(double rate, const struct law *laws, int drafted, const struct rng_key *key)
{
    struct rng_key here = *key;
    struct verdict verdict;
    int stood = 0;

    while (stood < drafted && rng_uniform(&here, RNG_SYNTHETIC) < rate) {
        stood++;
        here.position++;
    }
    verdict = verdict_of_chain(stood, drafted, laws[stood].kind == LAW_WINNER ? DRAW_NONE : DRAW_PLAIN);
    verdict.token = laws[stood].winner;
    return verdict;
}
