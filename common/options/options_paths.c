#include "common/options/options_paths.h"

#include "common/base/paths.h"
#include <limits.h>
#include <stdio.h>

void options_target_path(const struct options *options, char *path)
{
    if (options->model.target != NULL)
        snprintf(path, PATH_MAX, "%s", options->model.target);
    else
        paths_demo("target", path, PATH_MAX);
}

void options_draft_path(const struct options *options, char *path)
{
    if (options_draft_kind(&options->model.draft_way)->target_model)
        options_target_path(options, path);
    else if (!options_draft_runs_model(&options->model.draft_way))
        path[0] = '\0';
    else if (options->model.draft != NULL)
        snprintf(path, PATH_MAX, "%s", options->model.draft);
    else
        paths_demo("draft", path, PATH_MAX);
}
