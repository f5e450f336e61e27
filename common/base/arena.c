#include "common/base/arena.h"

#include "common/base/log.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

size_t arena_round(size_t bytes)
{
    return (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

enum status arena_open(struct arena *arena, size_t bytes, const char *what)
{
    size_t size = bytes > 0 ? bytes : 1;
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (base == MAP_FAILED) {
        log_error("cannot have %zu bytes for %s", size, what);
        return STATUS_INTERNAL;
    }
    if (size >= (size_t)2 << 20)
        madvise(base, size, MADV_HUGEPAGE); /* a hint: where refused, small pages do */
    *arena = (struct arena){.base = base, .size = size};
    return STATUS_OK;
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
