/* Files whose names come from outside, opened so that what lies there in place of a file neither holds the process up (a pipe) nor leads it elsewhere (a
 * link that is written through). Local. */
#ifndef TANDEM_COMMON_BASE_PLAIN_FILE_H
#define TANDEM_COMMON_BASE_PLAIN_FILE_H

#include <stdio.h>

/* To read: a regular file, through links; NULL with errno, EINVAL where it is something else. */
FILE *plain_file_read(const char *path);
/* To write anew: a regular file or none, no link; NULL with errno, as above. */
FILE *plain_file_write(const char *path);

#endif
