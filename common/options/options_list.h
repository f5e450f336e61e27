/* Options whose value is a list of numbers ("0,1,2") or a part of a whole ("3/8"). */
#ifndef TANDEM_COMMON_OPTIONS_OPTIONS_LIST_H
#define TANDEM_COMMON_OPTIONS_OPTIONS_LIST_H

#include "common/options/options.h"

enum { OPTIONS_LIST_MAX = 64 };

/* number: [OPTIONS_LIST_MAX]. How many numbers from 0 to `most` the text has, or -1 where it is no such list. */
int options_list_read(const char *text, int most, int *number);
/* Part *part of *parts. 1, or 0 where the text is no I/N with I < N. */
int options_list_part(const char *text, int *part, int *parts);
/* Looks at all options of this kind: STATUS_USAGE, with one logged line, where one is wrong. */
enum status options_list_check(const struct options *options);

#endif
