#include "common/base/number_list.h"

enum { MOST_PARTS = 1000000 };

/* A number from 0 to `most` at the beginning of *text, which moves past it; -1 where there is none. */
static int take_number(const char **text, int most)
{
    int value = 0, digits = 0;

    for (; **text >= '0' && **text <= '9' && value <= most; digits++)
        value = 10 * value + (*(*text)++ - '0');
    return digits > 0 && value <= most ? value : -1;
}

int number_list_read(const char *text, int most, int *number)
{
    for (int count = 0; count < NUMBER_LIST_MAX; text++) {
        number[count] = take_number(&text, most);
        if (number[count++] < 0)
            return -1;
        if (*text == '\0')
            return count;
        if (*text != ',')
            return -1;
    }
    return -1;
}

int number_list_part(const char *text, int *part, int *parts)
{
    *part = take_number(&text, MOST_PARTS);
    if (*part < 0 || *text++ != '/')
        return 0;
    *parts = take_number(&text, MOST_PARTS);
    return *text == '\0' && *part < *parts;
}
