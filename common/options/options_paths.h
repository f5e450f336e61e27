/* Where the models are that the options name. Owns nothing: paths are written to the caller's memory. Local; it looks at the file system and opens no
 * file. */
#ifndef TANDEM_COMMON_OPTIONS_OPTIONS_PATHS_H
#define TANDEM_COMMON_OPTIONS_OPTIONS_PATHS_H

#include "common/options/options.h"

/* The target's path, as it was given or of the embedded pair.  path: [PATH_MAX] */
void options_target_path(const struct options *options, char *path);
/* The path of the model that drafts: the target's for a drafter kind that reads that; "" where none is needed.  path: [PATH_MAX] */
void options_draft_path(const struct options *options, char *path);

#endif
