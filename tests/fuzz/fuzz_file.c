#include "tests/fuzz/fuzz_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
    int open[FUZZ_FILES];
    int descriptor[FUZZ_FILES];
    char path[FUZZ_FILES][64];
    char named[FUZZ_FILES][256]; /* where it is in the folder, or "" */
    char folder[64];
} files;

const char *fuzz_file(int which, const uint8_t *bytes, size_t size)
{
    if (!files.open[which]) {
        files.descriptor[which] = memfd_create("fuzz", MFD_CLOEXEC);
        if (files.descriptor[which] < 0)
            abort();
        snprintf(files.path[which], sizeof files.path[which], "/proc/self/fd/%d", files.descriptor[which]);
        files.open[which] = 1;
    }
    if (ftruncate(files.descriptor[which], 0) != 0 || pwrite(files.descriptor[which], bytes, size, 0) != (ssize_t)size)
        abort();
    return files.path[which];
}

static void remove_folder(void)
{
    for (int i = 0; i < FUZZ_FILES; i++)
        if (files.named[i][0] != '\0')
            unlink(files.named[i]);
    rmdir(files.folder);
}

const char *fuzz_folder(void)
{
    if (files.folder[0] == '\0') {
        snprintf(files.folder, sizeof files.folder, "/tmp/tandem-fuzz.XXXXXX");
        if (mkdtemp(files.folder) == NULL || atexit(remove_folder) != 0)
            abort();
    }
    return files.folder;
}

void fuzz_folder_show(int which, const char *name, int there)
{
    char *named = files.named[which];

    if ((named[0] != '\0') == there)
        return;
    if (there) {
        snprintf(named, sizeof files.named[which], "%s/%s", fuzz_folder(), name);
        if (symlink(fuzz_file(which, NULL, 0), named) != 0)
            abort();
    } else {
        if (unlink(named) != 0)
            abort();
        named[0] = '\0';
    }
}
