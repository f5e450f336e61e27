#include "common/base/shell_word.h"

#include <string.h>

/* Letters one by one: a range is another one in each language. */
static const char *const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%";

void shell_word_put(const char *text, FILE *to)
{
    if (*text != '\0' && strspn(text, plain) == strlen(text)) {
        fputs(text, to);
        return;
    }
    fputc('\'', to);
    for (; *text != '\0'; text++)
        fputs(*text == '\'' ? "'\\''" : (char[]){*text, '\0'}, to);
    fputc('\'', to);
}
