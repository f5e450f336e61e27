#include "verifier/request/request_ids.h"

#include "common/base/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 100 }; /* bytes of an id, which may be any JSON */

/* By id, and the same ids in the order of the file. */
static int compare(const void *left, const void *right)
{
    const struct request *a = *(const struct request *const *)left, *b = *(const struct request *const *)right;
    int order = strcmp(a->id, b->id);

    return order != 0 ? order : (a > b) - (a < b);
}

static void warn(const struct request *of, const struct request *first, int repeats, const char *path)
{
    const int length = (int)strlen(of->id), shown = length < SHOWN ? length : SHOWN;

    char more[64] = "";

    if (repeats > 1)
        snprintf(more, sizeof more, ", and %d more have that of an earlier one", repeats - 1);
    log_warn("--prompts %s: line %d has the %s of line %d, %.*s%s%s; their results are told apart by their order%s", path, of->line,
             of->openai ? "custom_id" : "id", first->line, shown, of->id, shown < length ? "..." : "", more, of->openai ? "" : " and index");
}

enum status request_ids_warn(const struct request_list *list, const char *path)
{
    const struct request **by_id = malloc(((size_t)list->count + 1) * sizeof *by_id), *of = NULL, *first = NULL;
    int count = 0, repeats = 0;

    if (by_id == NULL) {
        log_error("no memory for the ids of %d requests", list->count);
        return STATUS_INTERNAL;
    }
    for (int i = 0; i < list->count; i++)
        if (list->request[i].id != NULL && strcmp(list->request[i].id, "null") != 0)
            by_id[count++] = &list->request[i];
    qsort(by_id, (size_t)count, sizeof *by_id, compare);
    for (int i = 1, begin = 0; i < count; i++) {
        if (strcmp(by_id[i]->id, by_id[begin]->id) != 0) {
            begin = i;
            continue;
        }
        repeats++;
        if (of == NULL || by_id[i] < of) {
            of = by_id[i];
            first = by_id[begin];
        }
    }
    if (of != NULL)
        warn(of, first, repeats, path);
    free(by_id);
    return STATUS_OK;
}
