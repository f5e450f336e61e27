/* Every random number of the program: Philox4x32-10 (Salmon et al. 2011, Random123) as a pure function of what it is for. Key =
 * seed; counter = (index, position, request, purpose). Nothing is keyed by slot, batch row or rank and nothing is a sequential
 * stream, so a draw is the same whatever was batched, retried or sharded. Purposes are disjoint: a coin is never used twice
 * (reusing the draft's noise for the residual changes the distribution). */
#ifndef TANDEM_COMMON_BASE_RNG_H
#define TANDEM_COMMON_BASE_RNG_H

#include <stdint.h>

/* __device__ in a kernel's file, which includes rng.c: see math32.h. */
#ifndef DEVICE_CODE
#define DEVICE_CODE
#endif

enum rng_purpose {
    RNG_DRAFT = 1,    /* the drafter's draw from its quantised q */
    RNG_ACCEPT = 2,   /* the coin u of the accept test */
    RNG_RESIDUAL = 3, /* Gumbel noise of the residual, the bonus and the plain draw, by token */
    RNG_NOISE = 4,    /* Gumbel noise of the target's own token where drafts are compared with it, by token; coupled drafts share it */
    RNG_TREE = 5,
    RNG_SYNTHETIC = 6, /* the coin of --synthetic-acceptance */
};

/* Where a draw is made: seed of the request, its number, and the position of the token that is being decided. */
struct rng_key {
    uint64_t seed;
    uint32_t request;
    uint32_t position;
};

/* Four 32-bit words for index. */
DEVICE_CODE void rng_words(const struct rng_key *key, enum rng_purpose purpose, uint32_t index, uint32_t words[4]);
/* Uniform in [0, 1) with 53 bits. */
DEVICE_CODE double rng_uniform(const struct rng_key *key, enum rng_purpose purpose);
/* The same for index: a position may have several coins of one purpose. rng_uniform is that of index 0. */
DEVICE_CODE double rng_coin(const struct rng_key *key, enum rng_purpose purpose, uint32_t index);
/* Uniform integer in [0, 65536) for index. */
DEVICE_CODE uint32_t rng_coin16(const struct rng_key *key, enum rng_purpose purpose, uint32_t index);
/* Standard Gumbel noise of one token: G = -log(-log1p(-v)), v = (w + 1/2) 2^-32, with w word (token % 4) of index token / 4. Small
 * v, which win, keep their full relative precision. The vector form in common/backend/cpu gives the same bits. */
DEVICE_CODE float rng_gumbel(const struct rng_key *key, enum rng_purpose purpose, uint32_t token);
/* The same from a given word. */
DEVICE_CODE float rng_gumbel_of(uint32_t word);
/* No Gumbel value is larger than this: 33 log 2 and a margin. */
#define RNG_GUMBEL_MAX 22.9f

#endif
