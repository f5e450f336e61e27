#include "common/base/paths.h"

#include "common/base/log.h"
#include "common/base/spelling.h"
#include <dirent.h>
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef TANDEM_DEMO
#define TANDEM_DEMO "."
#endif

int paths_programs(char *folder)
{
    char self[PATH_MAX] = "";
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

    snprintf(folder, PATH_MAX, "%s", length > 0 ? dirname(self) : ".");
    return length > 0;
}

void paths_demo(const char *part, char *path, size_t size)
{
    char folder[PATH_MAX];

    if (paths_programs(folder)) {
        snprintf(path, size, "%s/../share/tandem/demo/%s", folder, part);
        if (access(path, R_OK) == 0)
            return;
    }
    snprintf(path, size, "%s/%s", TANDEM_DEMO, part);
}

/* Names of `tandem fetch`, and what drafts for them; launch/tandem knows where they come from. Names of the Hugging Face hub have no list. */
static const struct fetched {
    const char *name, *draft;
} fetched[] = {{"smollm2", NULL},
               {"qwen2.5-coder", "qwen2.5-coder-draft"},
               {"qwen2.5-coder-draft", NULL},
               {"llama-3.2", "llama-3.2-draft"},
               {"llama-3.2-draft", NULL},
               {"qwen3", "qwen3-draft"},
               {"qwen3-draft", NULL}};
enum { FETCHED = sizeof fetched / sizeof *fetched, MISSPELT = 2 /* characters */ };
static const char hub[] = "hf:";

static int is_of_hub(const char *model)
{
    return strncmp(model, hub, strlen(hub)) == 0;
}

int paths_cache(const char *name, char *path, size_t size)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

    if (cache != NULL && *cache != '\0')
        snprintf(path, size, "%s/tandem/%s", cache, name);
    else
        snprintf(path, size, "%s/.cache/tandem/%s", home != NULL ? home : "", name);
    return (cache != NULL && *cache != '\0') || (home != NULL && *home != '\0');
}

/* hf:OWNER/NAME/FILE lies in hf/OWNER/NAME/FILE. */
static void write_fetched(const char *name, char *path, size_t size)
{
    char file[PATH_MAX];

    if (is_of_hub(name))
        snprintf(file, sizeof file, "hf/%s", name + strlen(hub));
    else
        snprintf(file, sizeof file, "%s.gguf", name);
    paths_cache(file, path, size);
}

static const struct fetched *find_fetched(const char *model)
{
    for (int i = 0; i < FETCHED; i++)
        if (strcmp(model, fetched[i].name) == 0)
            return &fetched[i];
    return NULL;
}

/* Is it what `tandem fetch` takes? */
static int is_fetched(const char *model)
{
    return is_of_hub(model) || find_fetched(model) != NULL;
}

const char *paths_draft_of(const char *model)
{
    const struct fetched *found = access(model, F_OK) != 0 ? find_fetched(model) : NULL;

    return found != NULL ? found->draft : NULL;
}

int paths_model(const char *model, char *path, size_t size)
{
    snprintf(path, size, "%s", model);
    if (!is_fetched(model) || access(model, F_OK) == 0)
        return 1;
    write_fetched(model, path, size);
    return access(path, R_OK) == 0;
}

void paths_tell_taken(const char *option, const char *model)
{
    char path[PATH_MAX];

    if (model == NULL || !is_fetched(model) || access(model, F_OK) != 0)
        return;
    write_fetched(model, path, sizeof path);
    if (access(path, R_OK) == 0)
        log_warn("--%s %s is the file or folder of that name here, not the fetched %s; ./%s says so, too", option, model, path, model);
}

enum status paths_check(const char *option, const char *model, const char *others)
{
    char name[NAME_MAX], advice[SPELLING_ADVICE];
    const char *near = NULL;

    if (model == NULL || access(model, F_OK) == 0)
        return STATUS_OK;
    for (int i = 0; i < FETCHED && near == NULL; i++)
        if (strcasecmp(model, fetched[i].name) == 0 || spelling_distance(model, fetched[i].name) <= MISSPELT)
            near = fetched[i].name;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(model, ":"), model);
    spelling_advise(near == NULL ? others : "", name, advice);
    log_error("--%s %s: no such file or folder, expected a model's folder, a .gguf or llama2.c .bin file, or a name that launch/tandem fetch "
              "lists%s%s%s%s",
              option, model, near != NULL ? "; did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?" : "", advice);
    return STATUS_NOINPUT;
}

int paths_end_in(const char *path, const char *end)
{
    size_t length = strlen(path), tail = strlen(end);

    return length >= tail && strcmp(path + length - tail, end) == 0;
}

static int is_gguf(const struct dirent *entry)
{
    return paths_end_in(entry->d_name, ".gguf");
}

int paths_are_one(const char *a, const char *b)
{
    struct stat first, second;

    return a != NULL && b != NULL && stat(a, &first) == 0 && stat(b, &second) == 0 && (S_ISREG(first.st_mode) || S_ISDIR(first.st_mode)) &&
           first.st_dev == second.st_dev && first.st_ino == second.st_ino;
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
        return paths_end_in(model, ".gguf");
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
    if (!paths_end_in(model, ".bin"))
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
