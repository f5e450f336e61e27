#include "launch/bench/report/text_file.h"

#include "common/base/log.h"
#include "common/base/plain_file.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status text_file_read(const char *path, char **text, size_t *size)
{
    FILE *file = plain_file_read(path);
    size_t room = 1 << 16, count = 0, came = 1;
    char *bytes = NULL;

    if (file == NULL) {
        log_error("%s: %s", path, plain_file_fault());
        return STATUS_NOINPUT;
    }
    while (came > 0) {
        char *grown = realloc(bytes, room + 1);

        if (grown == NULL)
            break;
        bytes = grown;
        came = fread(bytes + count, 1, room - count, file);
        count += came;
        room = count == room ? 2 * room : room;
    }
    if (bytes == NULL || came > 0 || ferror(file)) {
        log_error("%s: %s", path, ferror(file) ? strerror(errno) : "no memory");
        fclose(file);
        free(bytes);
        return STATUS_NOINPUT;
    }
    fclose(file);
    bytes[count] = '\0';
    *text = bytes;
    *size = count;
    return STATUS_OK;
}
