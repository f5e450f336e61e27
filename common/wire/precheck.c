#include "common/wire/precheck.h"

#include <stdint.h>
#include <string.h>

/* Wire types of the protobuf encoding. */
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LENGTH = 2 };

struct cursor {
    const unsigned char *at, *end;
};

static size_t left(const struct cursor *cursor)
{
    return (size_t)(cursor->end - cursor->at);
}

/* A varint of at most 32 bits in at most 5 bytes. */
static int read_word(struct cursor *cursor, uint32_t *value)
{
    uint64_t sum = 0;

    for (unsigned shift = 0; shift < 35; shift += 7) {
        if (cursor->at == cursor->end)
            return 0;
        unsigned char byte = *cursor->at++;
        sum |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = (uint32_t)sum;
            return sum <= UINT32_MAX;
        }
    }
    return 0;
}

/* How many varints the bytes hold: as many as have a byte without the continuation bit. This is what protobuf-c allocates by. Eight
 * bytes at a time, because a proposal is mostly this. */
static size_t count_varints(const unsigned char *bytes, size_t count)
{
    size_t found = 0, i = 0;

    for (; i + 8 <= count; i += 8) {
        uint64_t word;

        memcpy(&word, bytes + i, sizeof word);
        found += (size_t)__builtin_popcountll(~word & UINT64_C(0x8080808080808080));
    }
    for (; i < count; i++)
        found += bytes[i] < 0x80;
    return found;
}

static const char *check_content(const struct precheck_field *field, const unsigned char *bytes, size_t count)
{
    switch (field->kind) {
    case PRECHECK_TEXT:
        if (count > field->limit)
            return "a text is too long";
        return memchr(bytes, 0, count) != NULL ? "a text holds NUL" : NULL;
    case PRECHECK_PACKED:
        if (count > 0 && bytes[count - 1] >= 0x80)
            return "a list ends inside a number";
        return count_varints(bytes, count) > field->limit ? "a list is too long" : NULL;
    default:
        return precheck_walk(field->inner, bytes, count);
    }
}

static const char *walk_field(const struct precheck_field *field, unsigned wire_type, struct cursor *cursor)
{
    static const unsigned char expected[] = {[PRECHECK_WORD] = WIRE_VARINT,
                                             [PRECHECK_FIXED64] = WIRE_FIXED64,
                                             [PRECHECK_TEXT] = WIRE_LENGTH,
                                             [PRECHECK_PACKED] = WIRE_LENGTH,
                                             [PRECHECK_INNER] = WIRE_LENGTH};
    const unsigned char *content;
    uint32_t value;

    if (wire_type != expected[field->kind])
        return "a field has the wrong wire type";
    if (wire_type == WIRE_FIXED64) {
        if (left(cursor) < 8)
            return "a field is cut off";
        cursor->at += 8;
        return NULL;
    }
    if (!read_word(cursor, &value))
        return "a number is cut off or too large";
    if (wire_type == WIRE_VARINT)
        return NULL;
    if (value > left(cursor))
        return "a length goes beyond the end";
    content = cursor->at;
    cursor->at += value;
    return check_content(field, content, value);
}

const char *precheck_walk(const struct precheck_message *rules, const unsigned char *bytes, size_t count)
{
    struct cursor cursor = {.at = bytes, .end = bytes + count};
    unsigned seen[PRECHECK_MAX_FIELDS] = {0};

    while (cursor.at < cursor.end) {
        unsigned key = *cursor.at++, number = key >> 3;

        /* Keys are one byte: a longer one has the top bit set, which makes its number more than any schema has. */
        if (number < 1 || number > (unsigned)rules->fields)
            return "a field is unknown";
        const struct precheck_field *field = &rules->field[number - 1];
        if (seen[number - 1]++ >= (field->kind == PRECHECK_INNER ? field->limit : 1))
            return "a field comes too often";
        const char *wrong = walk_field(field, key & 7, &cursor);
        if (wrong != NULL)
            return wrong;
    }
    return NULL;
}
