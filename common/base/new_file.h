/* Files that take another's place as a whole: written beside it first, made durable, then renamed. Whoever reads sees the old one or the new one, and
 * so does whoever comes after a power cut. Local; owns nothing. */
#ifndef TANDEM_COMMON_BASE_NEW_FILE_H
#define TANDEM_COMMON_BASE_NEW_FILE_H

#include <stdio.h>
#include <sys/types.h>

/* A file at `beside`, of ours alone: what lies there is left over from a process that was killed, and goes. It gets the permissions of the file at
 * `like`, or where there is none (a link is none) `mode` less the umask. NULL with errno. */
FILE *new_file_open(const char *beside, const char *like, mode_t mode);
/* Puts it at `path` if everything was written (whole). 1; else 0 with errno, and nothing is left beside. The file is closed. */
int new_file_put(FILE *file, int whole, const char *beside, const char *path);

#endif
