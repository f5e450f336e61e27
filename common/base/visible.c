#include "common/base/visible.h"

#include <string.h>

/* Bytes of the character at the beginning of the text, 0 where there is none (RFC 3629). */
static size_t character(const unsigned char *text, size_t count)
{
    size_t length = text[0] < 0x80                      ? 1
                    : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
                    : (text[0] & 0xf0) == 0xe0          ? 3
                    : text[0] >= 0xf0 && text[0] < 0xf5 ? 4
                                                        : 0;

    if (length > count)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90)) /* a longer form of a shorter character */
        return 0;
    return length;
}

/* Is it one of those that change the direction of what is written behind it (U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069)? A line that has one
 * may read as something else than it is (Boucher, Anderson 2021). */
static int turns(const unsigned char *text)
{
    return text[0] == 0xe2 && ((text[1] == 0x80 && (text[2] == 0x8e || text[2] == 0x8f || (text[2] >= 0xaa && text[2] <= 0xae))) ||
                               (text[1] == 0x81 && text[2] >= 0xa6 && text[2] <= 0xa9));
}

size_t visible_character(const char *text, size_t count)
{
    const unsigned char *here = (const unsigned char *)text;
    size_t length = character(here, count);
    int is_control = length == 1 ? *here < ' ' || *here == 0x7f : length == 2 && here[0] == 0xc2 && here[1] < 0xa0;

    return is_control || (length == 3 && turns(here)) ? 0 : length;
}

static int is_kept(char byte, const char *kept)
{
    return byte != '\0' && strchr(kept, byte) != NULL;
}

int visible_is_plain(const char *text, size_t count, const char *kept)
{
    for (size_t at = 0, length; at < count; at += length) {
        length = is_kept(text[at], kept) ? 1 : visible_character(text + at, count - at);
        if (length == 0)
            return 0;
    }
    return 1;
}

static size_t write_escape(const char *form, unsigned char byte, char *out)
{
    static const char digits[] = "0123456789abcdef";
    size_t length = strlen(form);

    memcpy(out, form, length);
    out[length] = digits[byte >> 4];
    out[length + 1] = digits[byte & 15];
    return length + 2;
}

size_t visible_write(const char *text, size_t count, const char *kept, char *out)
{
    size_t used = 0;

    for (size_t at = 0; at < count;) {
        const unsigned char *here = (const unsigned char *)text + at;
        size_t length = is_kept(text[at], kept) ? 1 : visible_character(text + at, count - at);

        if (length > 0) {
            memcpy(out + used, here, length);
            used += length;
            at += length;
        } else if (character(here, count - at) == 2) {
            used += write_escape("\\u00", here[1], out + used);
            at += 2;
        } else {
            used += write_escape("\\x", *here, out + used);
            at++;
        }
    }
    return used;
}

/* Writes the first character, of `count` bytes, as it stands in quotes. Returns its bytes in the text.  out: [VISIBLE_MOST * those] */
static size_t quote_one(const char *text, size_t count, char *out, size_t *written)
{
    const char *name = *text == '\n' ? "\\n" : *text == '\t' ? "\\t" : *text == '"' ? "\\\"" : *text == '\\' ? "\\\\" : NULL;
    size_t length = name != NULL ? 1 : visible_character(text, count);

    if (name != NULL) {
        memcpy(out, name, 2);
        *written = 2;
        return 1;
    }
    if (length == 0)
        length = character((const unsigned char *)text, count) == 2 ? 2 : 1;
    *written = visible_write(text, length, "", out);
    return length;
}

size_t visible_quote(const char *text, size_t count, size_t most, char *out)
{
    size_t shown = count < most ? count : most, used = 0, written;

    while (shown < count && shown > 0 && ((unsigned char)text[shown] & 0xc0) == 0x80) /* not within a character */
        shown--;
    out[used++] = '"';
    for (size_t at = 0; at < shown; used += written)
        at += quote_one(text + at, shown - at, out + used, &written);
    memcpy(out + used, shown < count ? "..\"" : "\"", shown < count ? 4 : 2);
    return used + (shown < count ? 3 : 1);
}

void visible_put_quoted(const char *text, size_t count, FILE *to)
{
    char out[2 * VISIBLE_MOST];
    size_t written;

    fputc('"', to);
    for (size_t at = 0; at < count; fwrite(out, 1, written, to))
        at += quote_one(text + at, count - at, out, &written);
    fputc('"', to);
}

void visible_put(const char *text, size_t count, const char *kept, FILE *to)
{
    enum { PART = 512, LONGEST = 4 };
    char out[VISIBLE_MOST * PART];

    while (count > 0) {
        size_t part = count < PART ? count : PART, written;

        while (part < count && part > PART - LONGEST && ((unsigned char)text[part] & 0xc0) == 0x80)
            part--; /* no cut within a character */
        written = visible_write(text, part, kept, out);
        fwrite(out, 1, written, to);
        text += part;
        count -= part;
    }
}
