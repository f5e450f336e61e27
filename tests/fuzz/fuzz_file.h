/* Bytes for readers that open what they read by name: files in memory, and a folder in which they have names. The paths stay the same
 * from input to input; only what they lead to changes. */
#ifndef TANDEM_TESTS_FUZZ_FUZZ_FILE_H
#define TANDEM_TESTS_FUZZ_FUZZ_FILE_H

#include <stddef.h>
#include <stdint.h>

enum { FUZZ_FILES = 4 };

/* Gives file `which` these bytes and returns its path. */
const char *fuzz_file(int which, const uint8_t *bytes, size_t size);
/* A folder that is removed when the process exits. */
const char *fuzz_folder(void);
/* Whether file `which` is in the folder, under `name`. */
void fuzz_folder_show(int which, const char *name, int there);

#endif
