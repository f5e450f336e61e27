/* Which model is this? A number that tells two models apart without reading them whole: names, sizes, all of every small file, samples of every large
 * one. Invariant: it does not depend on where the files are. Owns nothing; local. It is no proof: who wants to can make two models of one number. */
#ifndef TANDEM_COMMON_MODEL_MODEL_IDENTITY_H
#define TANDEM_COMMON_MODEL_MODEL_IDENTITY_H

#include "common/base/status.h"
#include <stdint.h>

/* Of the files of a model (`path` as in model_open) and its tokenizer. STATUS_DATA when they cannot be read. */
enum status model_identity(const char *path, uint64_t *identity);

#endif
