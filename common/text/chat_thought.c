#include "common/text/chat_thought.h"

#include <string.h>

static const char begin[] = "<think>", end[] = "</think>";

/* Moves the front of the text behind the last `mark` in it. */
static void skip_behind(const char **text, size_t *length, const char *mark, size_t size)
{
    for (const char *found; (found = memmem(*text, *length, mark, size)) != NULL; *text = found + size)
        *length -= (size_t)(found - *text) + size;
}

static void trim_front(const char **text, size_t *length)
{
    for (; *length > 0 && **text == '\n'; --*length)
        ++*text;
}

size_t chat_thought_take(const char **text, size_t *length, const char **thought)
{
    const char *found = memmem(*text, *length, end, sizeof end - 1);
    size_t size = found != NULL ? (size_t)(found - *text) : 0;

    *thought = *text;
    if (found == NULL)
        return 0;
    skip_behind(text, length, end, sizeof end - 1);
    trim_front(text, length);
    skip_behind(thought, &size, begin, sizeof begin - 1);
    trim_front(thought, &size);
    while (size > 0 && (*thought)[size - 1] == '\n')
        size--;
    return size;
}

const struct chat_message *chat_thought_question(const struct chat_message *messages, size_t count)
{
    static const char head[] = "<tool_response>", tail[] = "</tool_response>";
    const size_t head_size = sizeof head - 1, tail_size = sizeof tail - 1;

    for (size_t i = count; i-- > 0;) {
        const struct chat_message *one = &messages[i];

        if (one->role == CHAT_USER && !(one->length >= tail_size && memcmp(one->content, head, head_size) == 0 &&
                                        memcmp(one->content + one->length - tail_size, tail, tail_size) == 0))
            return one;
    }
    return &messages[count - 1];
}
