#include "common/wire/loop_frame.h"

#include <stdlib.h>

enum { USUAL_BYTES = 64 << 10 }; /* records hold this from the start, so that they need not grow */

struct loop_frame *loop_frame_take(struct loop_frame **spare, size_t count)
{
    struct loop_frame *frame = *spare != NULL ? *spare : calloc(1, sizeof *frame);

    if (frame == NULL)
        return NULL;
    if (frame == *spare)
        *spare = frame->next;
    if (frame->capacity < count) {
        size_t capacity = count < USUAL_BYTES ? USUAL_BYTES : count;
        unsigned char *bytes = realloc(frame->bytes, capacity);

        if (bytes == NULL) {
            loop_frame_give_back(spare, frame);
            return NULL;
        }
        frame->bytes = bytes;
        frame->capacity = capacity;
    }
    frame->count = count;
    return frame;
}

void loop_frame_give_back(struct loop_frame **spare, struct loop_frame *frame)
{
    if (frame == NULL)
        return;
    frame->next = *spare;
    *spare = frame;
}

void loop_frame_swap(struct loop_frame *a, struct loop_frame *b)
{
    struct loop_frame old = *a;

    a->count = b->count, a->capacity = b->capacity, a->bytes = b->bytes;
    b->count = old.count, b->capacity = old.capacity, b->bytes = old.bytes;
}

struct frame loop_frame_content(const struct loop_frame *frame)
{
    return (struct frame){.bytes = frame->bytes, .count = frame->count};
}

void loop_frame_free(struct loop_frame *frame)
{
    while (frame != NULL) {
        struct loop_frame *next = frame->next;

        free(frame->bytes);
        free(frame);
        frame = next;
    }
}
