#include "common/base/wrapped.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

int wrapped_width(FILE *to)
{
    enum { LEAST = 40, MOST = 110 };
    const char *told = getenv("COLUMNS");
    struct winsize size = {0};
    int width = told != NULL ? atoi(told) : 0;

    if (width <= 0)
        width = ioctl(fileno(to), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : MOST;
    return width < LEAST ? LEAST : width > MOST ? MOST : width;
}

static void put_words(FILE *to, const char *text, size_t length, int indent, int width)
{
    const char *end = text + length;
    int column = indent;

    for (text += strspn(text, " "); text < end; text += strspn(text, " ")) {
        int word = (int)strcspn(text, " \n");

        if (column > indent && column + 1 + word > width) {
            fprintf(to, "\n%*s", indent, "");
            column = indent;
        }
        column += fprintf(to, "%s%.*s", column > indent ? " " : "", word, text);
        text += word;
        if (*text == '\n')
            break;
    }
    fputc('\n', to);
}

void wrapped_put(FILE *to, const char *text, int indent, int width)
{
    put_words(to, text, strlen(text), indent, width);
}

void wrapped_put_choices(FILE *to, const char *choices, int indent, int width)
{
    int column = indent + 1;

    while (*choices != '\0') {
        int length = (int)strcspn(choices, "|") + 1; /* with its bar, or the parenthesis that ends all */

        if (column > indent + 1 && column + length > width) {
            fprintf(to, "\n%*s", indent + 1, "");
            column = indent + 1;
        }
        column += fprintf(to, "%.*s", length, choices);
        choices += choices[length - 1] == '|' ? length : length - 1;
    }
    fputs(")\n", to);
}

/* Where the words of a row begin: behind a name and two spaces or more. NULL: it has no name. */
static const char *words_of(const char *line, size_t length)
{
    const char *name = line + strspn(line, " "), *at;

    for (at = name; at + 1 < line + length; at++)
        if (at[0] == ' ' && at[1] == ' ')
            return name > line ? at + strspn(at, " ") : NULL;
    return NULL;
}

static void put_row(FILE *to, const char *line, const char *words, size_t length, int width)
{
    int indent = width < 70 ? 8 : (int)(words - line), name = (int)(words - line);

    if (width < 70) {
        while (name > 0 && line[name - 1] == ' ')
            name--;
        fprintf(to, "%.*s\n%*s", name, line, indent, "");
    } else {
        fprintf(to, "%.*s", name, line);
    }
    put_words(to, words, length - (size_t)(words - line), indent, width);
}

void wrapped_put_help(FILE *to, const char *text)
{
    const int width = wrapped_width(to);

    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        const char *words = words_of(text, length);

        if (words != NULL)
            put_row(to, text, words, length, width);
        else
            put_words(to, text, length, 0, width);
        text += length + (text[length] == '\n');
    }
}
