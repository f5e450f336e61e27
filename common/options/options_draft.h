/* What --draft says: the path of a draft model, or a way to draft without one. `lookup` and `self`, alone or with keys behind a colon, are such
 * ways; anything else is a path, so a folder of that name is ./lookup. Local and pure. */
#ifndef TANDEM_COMMON_OPTIONS_OPTIONS_DRAFT_H
#define TANDEM_COMMON_OPTIONS_OPTIONS_DRAFT_H

#include "common/base/status.h"

enum options_draft_way { DRAFT_MODEL, DRAFT_LOOKUP, DRAFT_SELF };
enum { OPTIONS_DRAFT_LONGEST = 16, OPTIONS_DRAFT_TEXT = 64 };

struct options_draft {
    enum options_draft_way way;
    int min, max; /* lookup: tokens that must be the same, and as many as are looked for: 1 .. OPTIONS_DRAFT_LONGEST */
    int bits;     /* self: 4 or 8 of the target's weights; 0: all that it has */
    int layers;   /* self: the first so many of the target's; 0: all */
};

/* "lookup", "lookup:min=2,max=6", "self:bits=4", "self:layers=12", or a path; NULL is one. STATUS_USAGE with a line that names the key or its value. */
enum status options_draft_read(const char *text, struct options_draft *draft);
/* The same with every key that has a value, so that what means the same reads the same; "" for a path.  text: [OPTIONS_DRAFT_TEXT] */
void options_draft_write(const struct options_draft *draft, char *text);

#endif
