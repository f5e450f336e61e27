#include "common/backend/cuda/switches.h"

#include "common/base/log.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *word, *told;
    size_t at;
} ways[] = {
    {"nooverlap", "overlapping kernels", offsetof(struct switches, no_overlap)},
    {"nograph", "recorded steps", offsetof(struct switches, no_graph)},
    {"nooneshot", "one-shot sums", offsetof(struct switches, no_one_shot)},
    {"noclusters", "clusters of blocks", offsetof(struct switches, no_clusters)},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

enum status switches_read(const char *words, struct switches *switches)
{
    *switches = (struct switches){0};
    for (const char *at = words != NULL ? words : ""; *at != '\0';) {
        size_t length = strcspn(at, ",");
        int i = 0;

        while (i < WAYS && (strlen(ways[i].word) != length || memcmp(ways[i].word, at, length) != 0))
            i++;
        if (i == WAYS) {
            log_error("TANDEM_CUDA has '%.*s', expected some of nooverlap, nograph, nooneshot and noclusters, separated by commas", (int)length, at);
            return STATUS_USAGE;
        }
        *(int *)(void *)((char *)switches + ways[i].at) = 1;
        at += length + (at[length] == ',');
    }
    return STATUS_OK;
}

const char *switches_describe(const struct switches *switches, char text[96])
{
    size_t length = 0;

    text[0] = '\0';
    for (int i = 0; i < WAYS; i++)
        if (*(const int *)(const void *)((const char *)switches + ways[i].at))
            length += (size_t)snprintf(text + length, 96 - length, "%s%s", length == 0 ? ", without " : ", ", ways[i].told);
    return text;
}
