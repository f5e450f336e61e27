#include "common/base/paths.h"

#include <dirent.h>
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef TANDEM_DEMO
#define TANDEM_DEMO "."
#endif

void paths_demo(const char *part, char *path, size_t size)
{
    char self[PATH_MAX] = "";
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

    if (length > 0) {
        snprintf(path, size, "%s/../share/tandem/demo/%s", dirname(self), part);
        if (access(path, R_OK) == 0)
            return;
    }
    snprintf(path, size, "%s/%s", TANDEM_DEMO, part);
}

static int ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);

    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static int is_gguf(const struct dirent *entry)
{
    return ends_in(entry->d_name, ".gguf");
}

int paths_gguf(const char *model, char *path, size_t size)
{
    char config[PATH_MAX];
    struct dirent **entry;
    struct stat about;
    int count;

    if (stat(model, &about) != 0)
        return 0;
    if (!S_ISDIR(about.st_mode)) {
        snprintf(path, size, "%s", model);
        return ends_in(model, ".gguf");
    }
    snprintf(config, sizeof config, "%s/config.json", model);
    if (access(config, F_OK) == 0 || (count = scandir(model, &entry, is_gguf, alphasort)) < 0)
        return 0;
    if (count > 0)
        snprintf(path, size, "%s/%s", model, entry[0]->d_name);
    for (int i = 0; i < count; i++)
        free(entry[i]);
    free(entry);
    return count;
}

void paths_tokenizer(const char *model, char *path, size_t size)
{
    char folder[PATH_MAX], pattern[PATH_MAX + 16];
    glob_t found;

    if (paths_gguf(model, path, size) == 1)
        return;
    snprintf(path, size, "%s", model);
    if (!ends_in(model, ".bin"))
        return;
    snprintf(folder, sizeof folder, "%s", model);
    snprintf(path, size, "%s/tokenizer.bin", dirname(folder));
    if (access(path, R_OK) == 0)
        return;
    snprintf(folder, sizeof folder, "%s", model);
    snprintf(pattern, sizeof pattern, "%s/tok*.bin", dirname(folder));
    if (glob(pattern, 0, NULL, &found) == 0) {
        snprintf(path, size, "%s", found.gl_pathv[0]);
        globfree(&found);
    }
}
