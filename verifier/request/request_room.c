#include "verifier/request/request_room.h"

#include "common/base/log.h"
#include <stdio.h>

static int is_short(const struct request *request, int context)
{
    return request->error == NULL && request->max_tokens > context - request->prompt_count;
}

static void warn(const struct request *of, int others, int context, int most, const char *called)
{
    char line[32] = "", more[64] = "", way[64] = "";

    if (of->line > 0)
        snprintf(line, sizeof line, ": line %d", of->line);
    if (others > 0)
        snprintf(more, sizeof more, ", and so do %d more", others);
    if (context < most)
        snprintf(way, sizeof way, "; --context N makes more, N up to %d", most);
    log_warn("%s%s asks for up to %d tokens, and the context of %d has room for %d behind its prompt: it ends there at the latest%s%s", called, line,
             of->max_tokens, context, context - of->prompt_count, more, way);
}

void request_room_warn(const struct request_list *list, int context, int most, const char *called)
{
    const struct request *first = NULL;
    int count = 0;

    for (int i = 0; i < list->count; i++)
        if (is_short(&list->request[i], context) && count++ == 0)
            first = &list->request[i];
    if (first != NULL)
        warn(first, count - 1, context, most, called);
}
