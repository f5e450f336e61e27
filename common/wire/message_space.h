/* A message space owns the memory of packing and of unpacking: one region for each, used from the front and emptied at the start of each call. So a
 * frame is valid until the next packing, an unpacked message until the next unpacking. The unpacking region is protobuf-c's allocator, with a fixed
 * budget: a message that wants more gets NULL, and is refused. For one thread; never grows after open. Used inside common/wire only. */
#ifndef TANDEM_COMMON_WIRE_MESSAGE_SPACE_H
#define TANDEM_COMMON_WIRE_MESSAGE_SPACE_H

#include "common/base/arena.h"
#include "common/wire/message.h"
#include <protobuf-c/protobuf-c.h>

struct message_region {
    struct arena arena; /* the mapping; use is counted by region, as running out is a refusal here and not an internal error */
    size_t used;
};

struct message_space {
    struct message_region packing, unpacking;
    ProtobufCAllocator allocator; /* alloc takes from `unpacking`, free does nothing */
};

/* `bytes`, aligned for any type, content undefined; NULL when the region is used up. */
void *message_space_take(struct message_region *region, size_t bytes);

#endif
