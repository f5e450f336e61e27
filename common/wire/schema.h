/* What each type of message is on the wire: the rules of the walk and protobuf-c's descriptor. Used inside common/wire only. */
#ifndef TANDEM_COMMON_WIRE_SCHEMA_H
#define TANDEM_COMMON_WIRE_SCHEMA_H

#include "common/wire/message.h"
#include "common/wire/precheck.h"
#include <protobuf-c/protobuf-c.h>

struct schema {
    const struct precheck_message *rules;
    const ProtobufCMessageDescriptor *descriptor;
};

/* NULL when `type` is none. */
const struct schema *schema_of(int type);

#endif
