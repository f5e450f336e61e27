/* The 8 bytes before each protobuf: "TD", version, type, and the payload's length in bytes, little-endian. Used inside common/wire
 * only. */
#ifndef TANDEM_COMMON_WIRE_FRAME_HEADER_H
#define TANDEM_COMMON_WIRE_FRAME_HEADER_H

#include "common/wire/message.h"

enum { FRAME_HEADER_BYTES = 8 };

void frame_header_write(unsigned char bytes[FRAME_HEADER_BYTES], enum message_type type, size_t payload);
/* NULL when the frame is one of `type` (0: of any type), or a static text that says what is wrong. */
const char *frame_header_check(struct frame frame, int type);

#endif
