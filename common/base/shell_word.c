#include "common/base/shell_word.h"

#include "common/base/visible.h"
#include <string.h>

/* Letters one by one: a range is another one in each language. */
static const char *const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%";

/* As $'...', in which bash reads escapes: three octal digits, for a digit behind them is no part. */
static void put_by_escapes(const char *text, size_t length, FILE *to)
{
    fputs("$'", to);
    for (size_t at = 0; at < length;) {
        size_t bytes = visible_character(text + at, length - at);

        if (bytes == 0)
            fprintf(to, text[at] == '\n' ? "\\n" : "\\%03o", (unsigned char)text[at]);
        else
            fprintf(to, text[at] == '\'' || text[at] == '\\' ? "\\%.*s" : "%.*s", (int)bytes, text + at);
        at += bytes > 0 ? bytes : 1;
    }
    fputc('\'', to);
}

void shell_word_put(const char *text, FILE *to)
{
    if (!visible_is_plain(text, strlen(text), "")) {
        put_by_escapes(text, strlen(text), to);
        return;
    }
    if (*text != '\0' && strspn(text, plain) == strlen(text)) {
        fputs(text, to);
        return;
    }
    fputc('\'', to);
    for (; *text != '\0'; text++)
        fputs(*text == '\'' ? "'\\''" : (char[]){*text, '\0'}, to);
    fputc('\'', to);
}
