/* Opens files whose names come from outside, so that what is there instead of a file can neither block the process (a pipe) nor redirect it (a link
 * that would be written through). Local; owns nothing. */
#ifndef TANDEM_COMMON_BASE_PLAIN_FILE_H
#define TANDEM_COMMON_BASE_PLAIN_FILE_H

#include <stdio.h>

/* To read: a regular file, through links; NULL with errno, EINVAL where it is something else. */
FILE *plain_file_read(const char *path);
/* To write anew: a regular file or none, no link; NULL with errno, as above. */
FILE *plain_file_write(const char *path);
/* Why there is none, in words, from errno; valid as long as strerror's. */
const char *plain_file_fault(void);

#endif
