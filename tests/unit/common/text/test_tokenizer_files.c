#include "test_tokenizer_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* cmocka needs these four in front of it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

char *test_tokenizer_files_read(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    struct stat about;
    char *bytes;

    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &about), 0);
    bytes = malloc((size_t)about.st_size + 1);
    assert_non_null(bytes);
    *length = fread(bytes, 1, (size_t)about.st_size, file);
    assert_int_equal(*length, about.st_size);
    bytes[*length] = '\0';
    fclose(file);
    return bytes;
}

void test_tokenizer_files_write(const char *path, const char *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static const char *path_of(const char *folder, const char *name)
{
    static char paths[4][512];
    static int turn;
    char *path = paths[turn++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

const char *test_tokenizer_files_scratch(const char *name)
{
    static char folder[256];

    snprintf(folder, sizeof folder, TANDEM_BINARY_DIR "/tests/%s.files", program_invocation_short_name);
    mkdir(folder, 0777);
    return path_of(folder, name);
}

const char *test_tokenizer_files_shared(const char *name)
{
    const char *path = path_of(TANDEM_SOURCE_DIR "/../shared/data", name);

    if (access(path, R_OK) == 0)
        return path;
    print_message("skipped: %s is absent\n", path);
    return NULL;
}

const char *test_tokenizer_files_unpack(const char *gz, const char *name)
{
    const char *path = test_tokenizer_files_scratch(name);
    char command[1200], block[65536];
    FILE *from, *to = fopen(path, "wb");
    size_t count;

    snprintf(command, sizeof command, "gzip -dc '%s'", gz);
    from = popen(command, "r");
    assert_non_null(from);
    assert_non_null(to);
    while ((count = fread(block, 1, sizeof block, from)) > 0)
        assert_int_equal(fwrite(block, 1, count, to), count);
    assert_int_equal(pclose(from), 0);
    assert_int_equal(fclose(to), 0);
    return path;
}
