/* Frames: what every message has in common. */
#include "common/wire/message.h"

#include "common/wire/frame_header.h"

enum { MAGIC_0 = 'T', MAGIC_1 = 'D', AT_VERSION = 2, AT_TYPE = 3, AT_LENGTH = 4 };

/* The largest message is an Open: ids are below 2^31, so at most 5 bytes each; the biases are below BIAS_PAYLOAD, and the rest of it is
 * far below 1 KiB. A proposal of
 * MESSAGE_MAX_DRAFT full supports has at most 8 bytes for each entry. */
enum { BIAS_PAYLOAD = 20 * BIAS_MAX_TOKENS + BIAS_MAX_WORDS * (5 * BIAS_MAX_WORD + 8) + 5 * BIAS_MAX_ENDERS };
enum { OPEN_PAYLOAD = 5 * MESSAGE_MAX_TOKENS + BIAS_PAYLOAD + 1024, PROPOSAL_PAYLOAD = MESSAGE_MAX_DRAFT * (8 * MESSAGE_MAX_SUPPORT + 32) + 1024 };
_Static_assert(OPEN_PAYLOAD >= PROPOSAL_PAYLOAD, "an Open is the largest message");

size_t message_frame_limit(void)
{
    return FRAME_HEADER_BYTES + OPEN_PAYLOAD;
}

void frame_header_write(unsigned char bytes[FRAME_HEADER_BYTES], enum message_type type, size_t payload)
{
    bytes[0] = MAGIC_0;
    bytes[1] = MAGIC_1;
    bytes[AT_VERSION] = MESSAGE_VERSION;
    bytes[AT_TYPE] = (unsigned char)type;
    for (int i = 0; i < 4; i++)
        bytes[AT_LENGTH + i] = (unsigned char)(payload >> 8 * i);
}

static size_t payload_length(const unsigned char *bytes)
{
    size_t length = 0;

    for (int i = 0; i < 4; i++)
        length |= (size_t)bytes[AT_LENGTH + i] << 8 * i;
    return length;
}

const char *frame_header_check(struct frame frame, int type)
{
    if (frame.count < FRAME_HEADER_BYTES)
        return "a frame is shorter than its header";
    if (frame.count > message_frame_limit())
        return "a frame is longer than any message";
    if (frame.bytes[0] != MAGIC_0 || frame.bytes[1] != MAGIC_1)
        return "a frame has the wrong magic";
    if (frame.bytes[AT_VERSION] != MESSAGE_VERSION)
        return "a frame is of another version";
    if (type == 0 ? frame.bytes[AT_TYPE] < MESSAGE_HELLO || frame.bytes[AT_TYPE] > MESSAGE_TYPES : frame.bytes[AT_TYPE] != type)
        return "a frame is of another type";
    if (payload_length(frame.bytes) != frame.count - FRAME_HEADER_BYTES)
        return "a frame's length is not what it says";
    return NULL;
}

int message_type(struct frame frame)
{
    return frame_header_check(frame, 0) == NULL ? frame.bytes[AT_TYPE] : 0;
}
