#include "common/base/spelling.h"

#include <stdio.h>
#include <string.h>

enum { FARTHEST = 2, CHOICE = 32 };

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

void spelling_advise(const char *choices, const char *text, char advice[SPELLING_ADVICE])
{
    int least = FARTHEST + 1;

    advice[0] = '\0';
    for (const char *at = choices; at != NULL;) {
        const char *bar = strchr(at, '|');
        int width = bar != NULL ? (int)(bar - at) : (int)strlen(at), distance;
        char choice[CHOICE];

        snprintf(choice, sizeof choice, "%.*s", width, at);
        distance = spelling_distance(choice, text);
        if (distance < least && distance < width) { /* else any other of as few characters would be as near */
            least = distance;
            snprintf(advice, SPELLING_ADVICE, "; did you mean '%s'?", choice);
        }
        at = bar != NULL ? bar + 1 : NULL;
    }
}
