#include "common/base/arena.h"

#include "common/base/log.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where lent memory goes if nothing is there: far from where the system puts a program, its libraries and what it maps, so that it is as free in who
 * borrows it. */
#define LENT_AT ((uintptr_t)0x200000000000)

#define HUGE ((size_t)2 << 20) /* bytes from which on huge pages are asked for */

size_t arena_round(size_t bytes)
{
    return (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

/* A hint: where refused, small pages do. */
static void ask_for_huge_pages(void *base, size_t bytes)
{
    if (bytes >= HUGE)
        madvise(base, bytes, MADV_HUGEPAGE);
}

enum status arena_open(struct arena *arena, size_t bytes, const char *what)
{
    size_t size = bytes > 0 ? bytes : 1;
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (base == MAP_FAILED) {
        log_error("cannot have %zu bytes for %s", size, what);
        return STATUS_INTERNAL;
    }
    ask_for_huge_pages(base, size);
    *arena = (struct arena){.base = base, .size = size};
    return STATUS_OK;
}

int arena_open_lent(struct arena *arena, size_t bytes, struct arena_loan *loan)
{
    size_t size = bytes > 0 ? bytes : 1;
    int descriptor = memfd_create("tandem", MFD_CLOEXEC);
    void *base = MAP_FAILED;
    struct stat state;

    if (descriptor < 0)
        return 0;
    if (ftruncate(descriptor, (off_t)size) == 0 && fstat(descriptor, &state) == 0)
        base = mmap((void *)LENT_AT, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0); /* a hint */
    if (base == MAP_FAILED) {
        close(descriptor);
        return 0;
    }
    ask_for_huge_pages(base, size);
    *arena = (struct arena){.base = base, .size = size};
    *loan = (struct arena_loan){
        .pid = (int)getpid(), .descriptor = descriptor, .base = base, .bytes = size, .device = state.st_dev, .file = state.st_ino};
    return 1;
}

int arena_borrow(struct arena *arena, const struct arena_loan *loan)
{
    void *base = MAP_FAILED;
    struct stat state;
    char path[64];
    int file;

    if (loan->pid == 0)
        return 0;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", loan->pid, loan->descriptor);
    file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return 0;
    if (fstat(file, &state) == 0 && state.st_dev == loan->device && state.st_ino == loan->file && state.st_size == (off_t)loan->bytes)
        base = mmap(loan->base, loan->bytes, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0);
    close(file);
    if (base != loan->base) { /* an old kernel takes the address for a hint */
        if (base != MAP_FAILED)
            munmap(base, loan->bytes);
        return 0;
    }
    ask_for_huge_pages(base, loan->bytes);
    *arena = (struct arena){.base = base, .size = loan->bytes, .used = loan->bytes};
    return 1;
}

void arena_expect_gaps(const struct arena *arena)
{
    madvise(arena->base, arena->size, MADV_NOHUGEPAGE);
}

void arena_close(struct arena *arena)
{
    if (arena->base != NULL)
        munmap(arena->base, arena->size);
    *arena = (struct arena){0};
}

void *arena_take(struct arena *arena, size_t bytes)
{
    size_t rounded = arena_round(bytes);
    void *taken = arena->base + arena->used;

    if (rounded > arena->size - arena->used) {
        log_error("internal: arena of %zu bytes has %zu left, %zu asked", arena->size, arena->size - arena->used, rounded);
        abort();
    }
    arena->used += rounded;
    return taken;
}

void arena_rewind(struct arena *arena, size_t mark)
{
    arena->used = mark;
}
