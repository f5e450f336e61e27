#include "common/base/spelling.h"

#include <string.h>

char spelling_fold(char c)
{
    return c == '_' ? '-' : c;
}

int spelling_distance(const char *a, const char *b)
{
    int row[32], lengths[2] = {(int)strnlen(a, 31), (int)strnlen(b, 31)};

    for (int j = 0; j <= lengths[1]; j++)
        row[j] = j;
    for (int i = 1; i <= lengths[0]; i++) {
        int diagonal = row[0];

        row[0] = i;
        for (int j = 1; j <= lengths[1]; j++) {
            int change = diagonal + (spelling_fold(a[i - 1]) != spelling_fold(b[j - 1])), least = row[j] < row[j - 1] ? row[j] : row[j - 1];

            diagonal = row[j];
            row[j] = change < least + 1 ? change : least + 1;
        }
    }
    return row[lengths[1]];
}
