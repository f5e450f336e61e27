/* The calls that can be made to fail. Those of files are wrapped by the linker where our own code makes them; writing to stderr always
 * works, for the line that says why is part of the promise. */
#include "tests/fault/fail_nth.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef FAIL_NTH_SANITIZED
#define MEMORY(name)      __wrap_##name
#define REAL_MEMORY(name) __real_##name
#define real_aligned_alloc __real_aligned_alloc
#else /* glibc's own names, for programs that replace malloc */
#define MEMORY(name)      name
#define REAL_MEMORY(name) __libc_##name
#define real_aligned_alloc __libc_memalign
#endif

void *REAL_MEMORY(malloc)(size_t size);
void *REAL_MEMORY(calloc)(size_t count, size_t size);
void *REAL_MEMORY(realloc)(void *old, size_t size);
void REAL_MEMORY(free)(void *old);
void *real_aligned_alloc(size_t alignment, size_t size);
void *MEMORY(malloc)(size_t size);
void *MEMORY(calloc)(size_t count, size_t size);
void *MEMORY(realloc)(void *old, size_t size);
void *MEMORY(aligned_alloc)(size_t alignment, size_t size);
void MEMORY(free)(void *old);

static int no_memory(const char *call)
{
    if (!fail_now(call))
        return 0;
    errno = ENOMEM;
    return 1;
}

static void *counted(void *taken)
{
    if (taken != NULL)
        fail_live++;
    return taken;
}

void *MEMORY(malloc)(size_t size)
{
    return no_memory("malloc") ? NULL : counted(REAL_MEMORY(malloc)(size));
}

void *MEMORY(calloc)(size_t count, size_t size)
{
    return no_memory("calloc") ? NULL : counted(REAL_MEMORY(calloc)(count, size));
}

void *MEMORY(realloc)(void *old, size_t size)
{
    void *taken;

    if (no_memory("realloc"))
        return NULL;
    taken = REAL_MEMORY(realloc)(old, size);
    return old == NULL ? counted(taken) : taken;
}

void *MEMORY(aligned_alloc)(size_t alignment, size_t size)
{
    return no_memory("aligned_alloc") ? NULL : counted(real_aligned_alloc(alignment, size));
}

void MEMORY(free)(void *old)
{
    if (old != NULL)
        fail_live--;
    REAL_MEMORY(free)(old);
}

/* An answer for a call that does not fail, and one for a call that does. */
#define WRAP(type, name, parameters, arguments, error, failure)                                                                    \
    type __real_##name parameters;                                                                                                 \
    type __wrap_##name parameters;                                                                                                 \
    type __wrap_##name parameters                                                                                                  \
    {                                                                                                                              \
        if (!fail_now(#name))                                                                                                      \
            return __real_##name arguments;                                                                                        \
        errno = error;                                                                                                             \
        return failure;                                                                                                            \
    }

static FILE *unlucky; /* the stream that could not read or write */

static int with_error(FILE *stream, int failure)
{
    unlucky = stream;
    return failure;
}

WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode), EMFILE, NULL)
WRAP(ssize_t, read, (int file, void *bytes, size_t count), (file, bytes, count), EIO, -1)
WRAP(ssize_t, pread, (int file, void *bytes, size_t count, off_t at), (file, bytes, count, at), EIO, -1)
WRAP(ssize_t, pwrite, (int file, const void *bytes, size_t count, off_t at), (file, bytes, count, at), ENOSPC, -1)
WRAP(int, fsync, (int file), (file), EIO, -1)
WRAP(int, fdatasync, (int file), (file), EIO, -1)
WRAP(int, ftruncate, (int file, off_t size), (file, size), EIO, -1)
WRAP(int, rename, (const char *from, const char *to), (from, to), EIO, -1)
WRAP(int, unlink, (const char *path), (path), EACCES, -1)
WRAP(int, lstat, (const char *path, struct stat *about), (path, about), EACCES, -1)
WRAP(FILE *, fdopen, (int file, const char *mode), (file, mode), ENOMEM, NULL)
WRAP(size_t, fwrite, (const void *bytes, size_t size, size_t count, FILE *stream), (bytes, size, count, stream), ENOSPC,
     (size_t)with_error(stream, 0))
WRAP(int, fstat, (int file, struct stat *about), (file, about), EIO, -1)
WRAP(int, stat, (const char *path, struct stat *about), (path, about), EACCES, -1)
WRAP(int, access, (const char *path, int mode), (path, mode), EACCES, -1)
WRAP(ssize_t, getline, (char **line, size_t *room, FILE *stream), (line, room, stream), EIO, with_error(stream, -1))
WRAP(size_t, fread, (void *bytes, size_t size, size_t count, FILE *stream), (bytes, size, count, stream), EIO, (size_t)with_error(stream, 0))
WRAP(char *, fgets, (char *text, int size, FILE *stream), (text, size, stream), EIO, (with_error(stream, 0), NULL))
WRAP(int, fflush, (FILE *stream), (stream), ENOSPC, with_error(stream, EOF))

void *__real_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset);
int __real_munmap(void *at, size_t size);
int __wrap_munmap(void *at, size_t size);
int __real_ferror(FILE *stream);
int __wrap_ferror(FILE *stream);
int __real_fclose(FILE *stream);
int __wrap_fclose(FILE *stream);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
ssize_t __real_write(int file, const void *bytes, size_t count);
ssize_t __wrap_write(int file, const void *bytes, size_t count);
int __wrap_fprintf(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument);

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset)
{
    void *mapped;

    if (no_memory("mmap"))
        return MAP_FAILED;
    mapped = __real_mmap(at, size, protection, flags, file, offset);
    fail_live += mapped != MAP_FAILED;
    return mapped;
}

int __wrap_munmap(void *at, size_t size)
{
    fail_live--;
    return __real_munmap(at, size);
}

int __wrap_ferror(FILE *stream)
{
    return stream == unlucky || __real_ferror(stream);
}

/* Closes all the same, as the kernel does. */
int __wrap_fclose(FILE *stream)
{
    int fails = fail_now("fclose"), closed;

    if (stream == unlucky)
        unlucky = NULL;
    closed = __real_fclose(stream);
    if (!fails)
        return closed;
    errno = ENOSPC;
    return EOF;
}

int __wrap_open(const char *path, int flags, ...)
{
    va_list arguments;
    int mode;

    va_start(arguments, flags);
    mode = flags & O_CREAT ? va_arg(arguments, int) : 0;
    va_end(arguments);
    if (!fail_now("open"))
        return __real_open(path, flags, mode);
    errno = EMFILE;
    return -1;
}

ssize_t __wrap_write(int file, const void *bytes, size_t count)
{
    if (file == STDERR_FILENO || !fail_now("write"))
        return __real_write(file, bytes, count);
    errno = ENOSPC;
    return -1;
}

int __wrap_fprintf(FILE *stream, const char *format, ...)
{
    va_list arguments;
    int count;

    if (fail_now("fprintf")) {
        errno = ENOSPC;
        return with_error(stream, -1);
    }
    va_start(arguments, format);
    count = vfprintf(stream, format, arguments);
    va_end(arguments);
    return count;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    return fail_now("pthread_create") ? EAGAIN : __real_pthread_create(thread, attributes, start, argument);
}
