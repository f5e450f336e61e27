/* What a request asks of single tokens' logits, beside penalties: biases (OpenAI's logit_bias), bad words (Hugging Face's NoBadWordsLogitsProcessor)
 * and tokens that may not end the completion early (MinNewTokensLengthLogitsProcessor). Plain data of fixed capacity, so that a slot has its place
 * from the start and a round allocates nothing. Invariant: both models apply it, so its digest goes on from that of the sampling parameters. Only the
 * parts in use are read: an empty one needs its four counts alone. Pure. */
#ifndef TANDEM_COMMON_SAMPLE_BIAS_H
#define TANDEM_COMMON_SAMPLE_BIAS_H

#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>

enum {
    BIAS_MAX_TOKENS = 300, /* as OpenAI's */
    BIAS_MAX_WORDS = 64,
    BIAS_MAX_WORD = 16, /* tokens of one */
    BIAS_MAX_STOPS = 64,
    BIAS_MAX_ENDERS = BIAS_MAX_STOPS + 9, /* stop tokens, the model's own EOS (CONFIG_MAX_EOS), the end of a chat's answer */
};
#define BIAS_LIMIT 100.0

struct bias {
    int32_t tokens; /* biases */
    int32_t words;  /* bad words */
    int32_t enders;
    int32_t min_tokens;             /* generated tokens before which no ender comes */
    int32_t token[BIAS_MAX_TOKENS]; /* [tokens] ids, rising */
    double value[BIAS_MAX_TOKENS];  /* [tokens] added to their logits; |value| <= BIAS_LIMIT */
    int32_t length[BIAS_MAX_WORDS]; /* [words] 1 .. BIAS_MAX_WORD */
    int32_t word[BIAS_MAX_WORDS][BIAS_MAX_WORD];
    int32_t ender[BIAS_MAX_ENDERS]; /* [enders] */
};

/* Empties it. */
void bias_init(struct bias *bias);
/* Does it ask for nothing? NULL asks for nothing. */
int bias_is_empty(const struct bias *bias);
/* STATUS_OK, or STATUS_USAGE with the reason in `reason`: counts within the limits, ids in [0, vocab) and biases rising by id, values finite
 * and in range, and never so many bans that no token is left. */
enum status bias_check(const struct bias *bias, int vocab, char *reason, size_t reason_size);
/* Digest of the bias after `digest`; that of an empty one is `digest` itself. */
uint64_t bias_digest(const struct bias *bias, uint64_t digest);

/* Adds a token's bias, in its place by id. Returns 0 when the token has one already. Room is the caller's concern. */
int bias_add_token(struct bias *bias, int32_t token, double value);

#endif
