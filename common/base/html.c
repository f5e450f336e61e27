#include "common/base/html.h"

void html_put(const char *text, size_t count, FILE *to)
{
    for (const char *end = text + count; text < end; text++)
        switch (*text) {
        case '&':
            fputs("&amp;", to);
            break;
        case '<':
            fputs("&lt;", to);
            break;
        case '>':
            fputs("&gt;", to);
            break;
        case '"':
            fputs("&quot;", to);
            break;
        default:
            if ((unsigned char)*text >= ' ' || *text == '\n' || *text == '\t')
                fputc(*text, to);
        }
}
