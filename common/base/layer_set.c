#include "common/base/layer_set.h"

#include <stdio.h>
#include <string.h>

int layer_set_has(const struct layer_set *set, int layer)
{
    return layer >= 0 && layer < LAYER_SET_LAYERS && (set->bits[layer / 64] >> layer % 64 & 1) != 0;
}

void layer_set_add(struct layer_set *set, int layer)
{
    set->bits[layer / 64] |= (uint64_t)1 << layer % 64;
}

void layer_set_remove(struct layer_set *set, int layer)
{
    set->bits[layer / 64] &= ~((uint64_t)1 << layer % 64);
}

int layer_set_count(const struct layer_set *set, int layers)
{
    int count = 0;

    for (int i = 0; i < layers; i++)
        count += layer_set_has(set, i);
    return count;
}

/* A number above `least` at the beginning of *text, which moves past it; -1 where there is none. */
static int take_number(const char **text, int least)
{
    int value = 0, digits = 0;

    for (; **text >= '0' && **text <= '9' && value < LAYER_SET_LAYERS; digits++)
        value = 10 * value + (*(*text)++ - '0');
    return digits > 0 && value > least && value < LAYER_SET_LAYERS ? value : -1;
}

int layer_set_read(const char *text, struct layer_set *set)
{
    struct layer_set read = {0};
    char again[LAYER_SET_TEXT];

    for (int last = -1;; text++) {
        int first = take_number(&text, last);

        last = first >= 0 && *text == '-' ? (text++, take_number(&text, first)) : first;
        if (last < 0)
            return 0;
        for (int i = first; i <= last; i++)
            layer_set_add(&read, i);
        if (*text == '\0')
            break;
        if (*text != '+')
            return 0;
    }
    if (layer_set_write(&read, again) >= LAYER_SET_TEXT)
        return 0;
    *set = read;
    return 1;
}

int layer_set_write(const struct layer_set *set, char *text)
{
    char part[16];
    int used = 0;

    text[0] = '\0';
    for (int first = 0, last; first < LAYER_SET_LAYERS; first = last + 1) {
        last = first;
        if (!layer_set_has(set, first))
            continue;
        while (layer_set_has(set, last + 1))
            last++;
        if (last > first)
            snprintf(part, sizeof part, "%s%d-%d", used > 0 ? "+" : "", first, last);
        else
            snprintf(part, sizeof part, "%s%d", used > 0 ? "+" : "", first);
        if (used < LAYER_SET_TEXT)
            snprintf(text + used, (size_t)(LAYER_SET_TEXT - used), "%s", part);
        used += (int)strlen(part);
    }
    return used;
}
