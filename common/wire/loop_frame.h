/* A frame on its way inside a loop. Records are used again, so that a long run allocates only at its start. Used by channel_loop.c only. */
#ifndef TANDEM_COMMON_WIRE_LOOP_FRAME_H
#define TANDEM_COMMON_WIRE_LOOP_FRAME_H

#include "common/wire/message.h"

struct loop_frame {
    struct loop_frame *next;
    int from;
    int64_t due_ns;
    uint64_t order; /* of sending: decides between frames due at the same time */
    size_t count, capacity;
    unsigned char *bytes;
};

/* A record that holds `count` bytes, from the list of spare ones where there is one. NULL: no memory. */
struct loop_frame *loop_frame_take(struct loop_frame **spare, size_t count);
/* Puts it on the list. NULL is allowed. */
void loop_frame_give_back(struct loop_frame **spare, struct loop_frame *frame);
/* Each gets the other's bytes, and keeps its place and time. */
void loop_frame_swap(struct loop_frame *a, struct loop_frame *b);
struct frame loop_frame_content(const struct loop_frame *frame);
/* Frees a whole list. */
void loop_frame_free(struct loop_frame *frame);

#endif
