#include "common/wire/message_space.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <stddef.h>
#include <stdlib.h>

/* The largest user of both is an Open of MESSAGE_MAX_TOKENS tokens: 4 bytes each unpacked, up to 5 each packed. Pages are touched by
 * use, so a role that never sees a long request never pays for them. */
enum { REGION_BYTES = 6 * MESSAGE_MAX_TOKENS };
_Static_assert(REGION_BYTES >= 5 * MESSAGE_MAX_TOKENS + MESSAGE_MAX_DRAFT * MESSAGE_MAX_SUPPORT * 16, "room for any message");

void *message_space_take(struct message_region *region, size_t bytes)
{
    size_t at = region->used, align = _Alignof(max_align_t);

    if (bytes > region->arena.size - at)
        return NULL;
    bytes = (bytes + align - 1) / align * align; /* the region's size is a multiple, so this stays inside */
    region->used = at + bytes;
    return region->arena.base + at;
}

static void *allocate(void *region, size_t bytes)
{
    return message_space_take(region, bytes);
}

static void release_nothing(void *region, void *pointer)
{
    (void)region;
    (void)pointer;
}

enum status message_space_open(struct message_space **space)
{
    struct message_space *opened = calloc(1, sizeof *opened);
    enum status status;

    if (opened == NULL) {
        log_error("no memory for the messages");
        return STATUS_INTERNAL;
    }
    TRY_TO(arena_open(&opened->packing.arena, REGION_BYTES, "packing messages"), free_opened);
    TRY_TO(arena_open(&opened->unpacking.arena, REGION_BYTES, "unpacking messages"), close_packing);
    opened->allocator = (ProtobufCAllocator){.alloc = allocate, .free = release_nothing, .allocator_data = &opened->unpacking};
    *space = opened;
    return STATUS_OK;
close_packing:
    arena_close(&opened->packing.arena);
free_opened:
    free(opened);
    return status;
}

void message_space_close(struct message_space *space)
{
    if (space == NULL)
        return;
    arena_close(&space->unpacking.arena);
    arena_close(&space->packing.arena);
    free(space);
}
