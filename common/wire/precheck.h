/* A walk over the bytes of a message before protobuf-c sees them. protobuf-c 1.4 has no depth limit, allocates for every unknown field
 * and every empty submessage, and merges what is sent twice; the walk lets through only what our own packing could have made: known
 * fields, of their wire type, at most as often and as long as the schema's rules say, nested no deeper than the rules are. It looks at
 * each byte once and allocates nothing. */
#ifndef TANDEM_COMMON_WIRE_PRECHECK_H
#define TANDEM_COMMON_WIRE_PRECHECK_H

#include <stddef.h>

enum precheck_kind {
    PRECHECK_WORD,    /* varint that fits 32 bits */
    PRECHECK_FIXED64, /* 8 bytes: fixed64, double */
    PRECHECK_TEXT,    /* at most `limit` bytes, none of them NUL */
    PRECHECK_PACKED,  /* packed varints, at most `limit` of them */
    PRECHECK_INNER,   /* a submessage by the rules `inner`, at most `limit` of them; all other kinds come once */
};

struct precheck_message;

struct precheck_field {
    enum precheck_kind kind;
    unsigned limit;
    const struct precheck_message *inner;
};

enum { PRECHECK_MAX_FIELDS = 15 }; /* field numbers of one byte */

struct precheck_message {
    int fields;
    const struct precheck_field *field; /* [fields], by field number - 1 */
};

/* NULL, or a static text that says what is wrong. */
const char *precheck_walk(const struct precheck_message *rules, const unsigned char *bytes, size_t count);

#endif
