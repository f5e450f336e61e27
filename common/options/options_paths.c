#include "common/options/options_paths.h"

#include "common/base/paths.h"
#include <limits.h>
#include <stdio.h>

void options_target_path(const struct options *options, char *path)
{
    if (options->target != NULL)
        snprintf(path, PATH_MAX, "%s", options->target);
    else
        paths_demo("target", path, PATH_MAX);
}

void options_draft_path(const struct options *options, char *path)
{
    if (options_draft_kind(&options->draft_way)->target_model)
        options_target_path(options, path);
    else if (!options_draft_runs_model(&options->draft_way))
        path[0] = '\0';
    else if (options->draft != NULL)
        snprintf(path, PATH_MAX, "%s", options->draft);
    else
        paths_demo("draft", path, PATH_MAX);
}
