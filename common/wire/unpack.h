/* The part of unpacking that all messages share. Used inside common/wire only. */
#ifndef TANDEM_COMMON_WIRE_UNPACK_H
#define TANDEM_COMMON_WIRE_UNPACK_H

#include "common/wire/message.h"
#include <protobuf-c/protobuf-c.h>

/* Header, walk, protobuf-c, in this order. NULL and `*message` (in the space), or a static text that says what is wrong. */
const char *unpack_frame(struct message_space *space, struct frame frame, enum message_type type, const ProtobufCMessage **message);
/* Are all of token[0 .. count) in [0, vocab)? */
int unpack_in_vocab(const uint32_t *token, size_t count, int vocab);

#endif
