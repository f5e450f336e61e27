/* What every fuzzer of tokenizer files does with a tokenizer that opened: it must encode and spell without a fault, and give only tokens
 * that it has. */
#ifndef TANDEM_TESTS_FUZZ_FUZZ_TOKENIZER_USE_H
#define TANDEM_TESTS_FUZZ_FUZZ_TOKENIZER_USE_H

#include "common/text/tokenizer.h"

void fuzz_tokenizer_use(const struct tokenizer *tokenizer);

#endif
