#include "common/sample/bias.h"

#include "common/base/digest.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

void bias_init(struct bias *bias)
{
    bias->tokens = bias->words = bias->enders = bias->min_tokens = 0;
}

static int has_enders(const struct bias *bias)
{
    return bias->min_tokens > 0 && bias->enders > 0;
}

int bias_is_empty(const struct bias *bias)
{
    return bias == NULL || (bias->tokens == 0 && bias->words == 0 && !has_enders(bias));
}

static int is_token(int32_t token, int vocab)
{
    return token >= 0 && token < vocab;
}

static enum status check_tokens(const struct bias *bias, int vocab, char *reason, size_t size)
{
    if (bias->tokens < 0 || bias->tokens > BIAS_MAX_TOKENS) {
        snprintf(reason, size, "logit_bias has %d tokens, expected at most %d", bias->tokens, BIAS_MAX_TOKENS);
        return STATUS_USAGE;
    }
    for (int i = 0; i < bias->tokens; i++) {
        if (!is_token(bias->token[i], vocab))
            snprintf(reason, size, "logit_bias is for token %d, expected an id from 0 to %d", bias->token[i], vocab - 1);
        else if (i > 0 && bias->token[i] <= bias->token[i - 1])
            snprintf(reason, size, "logit_bias is for token %d twice", bias->token[i]);
        else if (!(fabs(bias->value[i]) <= BIAS_LIMIT))
            snprintf(reason, size, "logit_bias of token %d is %.10g, expected a number from -%g to %g", bias->token[i], bias->value[i],
                     BIAS_LIMIT, BIAS_LIMIT);
        else
            continue;
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

static enum status check_words(const struct bias *bias, int vocab, char *reason, size_t size)
{
    if (bias->words < 0 || bias->words > BIAS_MAX_WORDS) {
        snprintf(reason, size, "bad_words has %d token sequences, expected at most %d", bias->words, BIAS_MAX_WORDS);
        return STATUS_USAGE;
    }
    for (int i = 0; i < bias->words; i++) {
        if (bias->length[i] < 1 || bias->length[i] > BIAS_MAX_WORD) {
            snprintf(reason, size, "a sequence of bad_words has %d tokens, expected 1 to %d", bias->length[i], BIAS_MAX_WORD);
            return STATUS_USAGE;
        }
        for (int j = 0; j < bias->length[i]; j++)
            if (!is_token(bias->word[i][j], vocab)) {
                snprintf(reason, size, "bad_words has token %d, expected an id from 0 to %d", bias->word[i][j], vocab - 1);
                return STATUS_USAGE;
            }
    }
    return STATUS_OK;
}

static enum status check_enders(const struct bias *bias, int vocab, char *reason, size_t size)
{
    if (bias->enders < 0 || bias->enders > BIAS_MAX_ENDERS) {
        snprintf(reason, size, "stop_token_ids has %d tokens, expected at most %d", bias->enders, BIAS_MAX_STOPS);
        return STATUS_USAGE;
    }
    if (bias->min_tokens < 0) {
        snprintf(reason, size, "min_tokens is %d, expected a whole number of at least 0", bias->min_tokens);
        return STATUS_USAGE;
    }
    for (int i = 0; i < bias->enders; i++)
        if (!is_token(bias->ender[i], vocab)) {
            snprintf(reason, size, "stop_token_ids has token %d, expected an id from 0 to %d", bias->ender[i], vocab - 1);
            return STATUS_USAGE;
        }
    return STATUS_OK;
}

enum status bias_check(const struct bias *bias, int vocab, char *reason, size_t size)
{
    if (check_tokens(bias, vocab, reason, size) != STATUS_OK || check_words(bias, vocab, reason, size) != STATUS_OK ||
        check_enders(bias, vocab, reason, size) != STATUS_OK)
        return STATUS_USAGE;
    if (bias->words + bias->enders >= vocab) { /* each may ban one token of a row */
        snprintf(reason, size, "bad_words and stop_token_ids could ban all %d tokens", vocab);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

/* Each list begins with its count, so that no two blocks have the same bytes. */
static uint64_t digest_list(uint64_t digest, const int32_t *list, int32_t count)
{
    return digest_tokens(digest_tokens(digest, &count, 1), list, count);
}

uint64_t bias_digest(const struct bias *bias, uint64_t digest)
{
    if (bias_is_empty(bias))
        return digest;
    digest = digest_list(digest, bias->token, bias->tokens);
    for (int i = 0; i < bias->tokens; i++) {
        double value = bias->value[i] + 0.0; /* -0 and +0 are one value */

        digest = digest_bytes(&value, sizeof value, digest);
    }
    digest = digest_tokens(digest, &bias->words, 1);
    for (int i = 0; i < bias->words; i++)
        digest = digest_list(digest, bias->word[i], bias->length[i]);
    if (!has_enders(bias))
        return digest;
    return digest_list(digest_tokens(digest, &bias->min_tokens, 1), bias->ender, bias->enders);
}

int bias_add_token(struct bias *bias, int32_t token, double value)
{
    int at = bias->tokens;

    while (at > 0 && bias->token[at - 1] > token)
        at--;
    if (at > 0 && bias->token[at - 1] == token)
        return 0;
    memmove(bias->token + at + 1, bias->token + at, (size_t)(bias->tokens - at) * sizeof *bias->token);
    memmove(bias->value + at + 1, bias->value + at, (size_t)(bias->tokens - at) * sizeof *bias->value);
    bias->token[at] = token;
    bias->value[at] = value;
    bias->tokens++;
    return 1;
}
