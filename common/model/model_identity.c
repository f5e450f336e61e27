#include "common/model/model_identity.h"

#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file of at most SAMPLES * SAMPLE_BYTES is read whole. A finetuned model differs from its base nearly everywhere. */
enum { SAMPLES = 256, SAMPLE_BYTES = 16 << 10 };

static enum status cannot_read(const char *path)
{
    log_error("%s: %s", path, errno != 0 ? strerror(errno) : "it became shorter");
    return STATUS_DATA;
}

static enum status add_samples(int fd, const char *path, int64_t size, uint64_t *identity)
{
    int64_t samples = (size + SAMPLE_BYTES - 1) / SAMPLE_BYTES;
    char bytes[SAMPLE_BYTES];

    samples = samples < SAMPLES ? samples : SAMPLES;
    for (int64_t i = 0; i < samples; i++) {
        int64_t whole = size - SAMPLE_BYTES, at = samples < SAMPLES ? i * SAMPLE_BYTES : whole / (SAMPLES - 1) * i;
        ssize_t count;

        progress_made("looking at the model's files");
        errno = 0;
        count = pread(fd, bytes, SAMPLE_BYTES, (off_t)at);
        if (count <= 0)
            return cannot_read(path);
        *identity = digest_bytes(bytes, (size_t)count, *identity);
    }
    return STATUS_OK;
}

static enum status add_file(const char *path, uint64_t *identity)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* without O_NONBLOCK a pipe of that name would block here */
    enum status status;
    struct stat found;

    if (fd < 0 || fstat(fd, &found) != 0) {
        status = cannot_read(path);
    } else {
        int64_t size = found.st_size;

        *identity = digest_bytes(name, strlen(name), *identity);
        *identity = digest_bytes(&size, sizeof size, *identity);
        status = add_samples(fd, path, size, identity);
    }
    if (fd >= 0)
        close(fd);
    return status;
}

/* The files that decide what the model's tokens and numbers are. */
static int is_of_model(const struct dirent *entry)
{
    static const char *const names[] = {"config.json", "generation_config.json", "tokenizer.json", "model.safetensors.index.json"};
    size_t length = strlen(entry->d_name);

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(entry->d_name, names[i]) == 0)
            return 1;
    return length > 12 && strcmp(entry->d_name + length - 12, ".safetensors") == 0;
}

static enum status add_folder(const char *path, uint64_t *identity)
{
    enum status status = STATUS_OK;
    struct dirent **entry;
    char file[PATH_MAX];
    int count = scandir(path, &entry, is_of_model, alphasort);

    if (count < 0)
        return cannot_read(path);
    for (int i = 0; i < count; i++) {
        snprintf(file, sizeof file, "%s/%s", path, entry[i]->d_name);
        if (status == STATUS_OK)
            status = add_file(file, identity);
        free(entry[i]);
    }
    free(entry);
    return status;
}

enum status model_identity(const char *path, uint64_t *out)
{
    uint64_t identity = DIGEST_EMPTY;
    char tokenizer[PATH_MAX], file[PATH_MAX];
    struct stat found;

    if (stat(path, &found) != 0)
        return cannot_read(path);
    if (paths_gguf(path, file, sizeof file) == 1) { /* a GGUF file holds its own tokenizer */
        TRY(add_file(file, &identity));
    } else if (S_ISDIR(found.st_mode)) {
        TRY(add_folder(path, &identity));
    } else {
        TRY(add_file(path, &identity));
        paths_tokenizer(path, tokenizer, sizeof tokenizer);
        TRY(add_file(tokenizer, &identity));
    }
    *out = identity;
    return STATUS_OK;
}
