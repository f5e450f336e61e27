/* 64-bit digests (XXH64; XXH3 for lines of files). A digest of a token sequence grows by one token at a time, so both sides of the wire keep it up to
 * date for nothing; two sequences with the same digest and length are taken to be the same. Pure; owns nothing but the state of a sum that grows. It
 * protects from accidents and not from somebody who looks for two of one digest. */
#ifndef TANDEM_COMMON_BASE_DIGEST_H
#define TANDEM_COMMON_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/* Digest of no tokens. */
enum { DIGEST_EMPTY = 0x7a4d };

uint64_t digest_bytes(const void *bytes, size_t count, uint64_t seed);
/* Digest of the sequence that had `digest`, followed by tokens[0 .. count). */
uint64_t digest_tokens(uint64_t digest, const int32_t *tokens /* [count] */, int count);
/* The sum of a line of a journal, by its place (XXH3). */
uint64_t digest_line(const void *bytes, size_t count, uint64_t offset);

/* digest_line of each of a line's beginnings, in one pass over it. */
struct digest_growing;
struct digest_growing *digest_growing_open(uint64_t offset); /* NULL without memory */
void digest_growing_close(struct digest_growing *growing);
/* The sum of all bytes that were added. */
uint64_t digest_growing_add(struct digest_growing *growing, const void *bytes, size_t count);

#endif
