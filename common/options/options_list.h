/* Options whose value is a list of numbers ("0,1,2") or a part of a whole ("3/8"): whether their texts are such. Owns nothing; local; for options.c,
 * before anything is started. */
#ifndef TANDEM_COMMON_OPTIONS_OPTIONS_LIST_H
#define TANDEM_COMMON_OPTIONS_OPTIONS_LIST_H

#include "common/options/options.h"

/* Looks at all options of this kind: STATUS_USAGE, with one logged line, where one is wrong. */
enum status options_list_check(const struct options *options);

#endif
