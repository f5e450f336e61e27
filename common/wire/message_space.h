/* The memory of packing and unpacking: a region for each, taken from the front, given back as a whole at the start of each call. The
 * unpacking one is an allocator for protobuf-c with a budget: a message that wants more gets NULL, which protobuf-c turns into a
 * refusal. Used inside common/wire only. */
#ifndef TANDEM_COMMON_WIRE_MESSAGE_SPACE_H
#define TANDEM_COMMON_WIRE_MESSAGE_SPACE_H

#include "common/base/arena.h"
#include "common/wire/message.h"
#include <protobuf-c/protobuf-c.h>

struct message_region {
    struct arena arena; /* the mapping; what is taken of it is counted below, because its end is a refusal here and no fault */
    size_t used;
};

struct message_space {
    struct message_region packing, unpacking;
    ProtobufCAllocator allocator; /* alloc takes from `unpacking`, free does nothing */
};

/* `bytes`, aligned for any type, content undefined; NULL when the region is used up. */
void *message_space_take(struct message_region *region, size_t bytes);

#endif
