/* A number in groups of three digits, as people read it: 21934 as "21,934". Pure. */
#ifndef TANDEM_COMMON_BASE_GROUPED_H
#define TANDEM_COMMON_BASE_GROUPED_H

#include <stdint.h>

enum { GROUPED_TEXT = 32 };

/* Returns `text`. */
const char *grouped_write(int64_t number, char text[GROUPED_TEXT]);

#endif
