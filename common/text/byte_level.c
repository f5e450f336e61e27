#include "common/text/byte_level.h"

/* Bytes that do not print: 0-32, 127-160 and 173. */
static int byte_of_shifted(unsigned code)
{
    unsigned index = code - 0x100;

    if (index <= 32)
        return (int)index;
    if (index <= 32 + 34)
        return (int)(index - 33 + 127);
    return index == 67 ? 173 : -1;
}

static int byte_of(unsigned code)
{
    if (code >= 0x100)
        return byte_of_shifted(code);
    return (code >= 33 && code <= 126) || (code >= 161 && code != 173) ? (int)code : -1;
}

ptrdiff_t byte_level_decode(const char *text, size_t count, char *out)
{
    const unsigned char *bytes = (const unsigned char *)text;
    ptrdiff_t written = 0;

    for (size_t i = 0; i < count; i++) {
        unsigned code = bytes[i];
        int byte;

        if (code >= 0xC0 && code < 0xE0 && i + 1 < count)
            code = (code & 0x1F) << 6 | (bytes[++i] & 0x3FU);
        else if (code >= 0x80)
            return -1; /* three bytes and more: beyond U+0143 */
        byte = byte_of(code);
        if (byte < 0)
            return -1;
        out[written++] = (char)byte;
    }
    return written;
}
