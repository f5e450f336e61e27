/* The folder that everything of a bench goes to. */
#include "launch/bench/sweep/bench.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/file/json_text.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum status bench_make_folder(const char *path)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return STATUS_OK;
    log_error("%s: %s", path, strerror(errno));
    return STATUS_IO;
}

/* A new folder, or one that is empty. */
enum status bench_open_output(struct bench *bench)
{
    time_t now = time(NULL);
    struct dirent *entry;
    DIR *folder;

    if (bench->output == NULL) {
        strftime(bench->made_output, sizeof bench->made_output, "tandem-bench-%Y%m%d-%H%M%S", localtime(&now));
        bench->output = bench->made_output;
    }
    TRY(bench_make_folder(bench->output));
    folder = opendir(bench->output);
    if (folder == NULL) {
        log_error("--output %s: %s", bench->output, strerror(errno));
        return STATUS_IO;
    }
    while ((entry = readdir(folder)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            break;
    closedir(folder);
    if (entry != NULL) {
        log_error("--output %s is not empty, expected a new folder: nothing that was measured is written over", bench->output);
        return STATUS_USAGE;
    }
    /* Ranks may be started elsewhere: they get the whole path. */
    if (bench->output != bench->made_output || bench->output[0] != '/') {
        char whole[PATH_MAX];

        if (realpath(bench->output, whole) == NULL)
            return STATUS_IO;
        memcpy(bench->made_output, whole, sizeof whole);
        bench->output = bench->made_output;
    }
    return STATUS_OK;
}

/* Whatever is in the folders that a bench makes, two levels deep, is the bench's. */
static void empty(const char *path, int depth)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    char inner[PATH_MAX];

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(inner, sizeof inner, "%.3000s/%.255s", path, entry->d_name);
        if (unlink(inner) != 0 && depth > 0) {
            empty(inner, depth - 1);
            rmdir(inner);
        }
    }
    if (folder != NULL)
        closedir(folder);
}

void bench_forget(const struct bench *bench)
{
    enum { DEEPEST = 4 };

    empty(bench->output, DEEPEST);
}

enum status bench_write_json(const char *folder, const char *name, json_t *object)
{
    char path[PATH_MAX], *text = json_text_write(object, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    FILE *file;
    int written;

    snprintf(path, sizeof path, "%.4000s/%s", folder, name);
    file = text != NULL ? fopen(path, "w") : NULL;
    written = file != NULL && fprintf(file, "%s\n", text) >= 0;
    if (file != NULL && fclose(file) != 0)
        written = 0;
    free(text);
    json_decref(object);
    if (written)
        return STATUS_OK;
    log_error("%s: %s", path, text == NULL ? "no memory" : strerror(errno));
    return STATUS_IO;
}
