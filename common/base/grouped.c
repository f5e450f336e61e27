#include "common/base/grouped.h"

#include <ctype.h>
#include <stdio.h>

const char *grouped_write(int64_t number, char text[GROUPED_TEXT])
{
    char plain[GROUPED_TEXT];
    int length = snprintf(plain, sizeof plain, "%lld", (long long)number), used = 0;

    for (int i = 0; i < length; i++) {
        text[used++] = plain[i];
        if (isdigit((unsigned char)plain[i]) && (length - 1 - i) % 3 == 0 && i + 1 < length)
            text[used++] = ',';
    }
    text[used] = '\0';
    return text;
}
