/* The group of one: each operation does what it does in a larger group, for a single rank. */
#include "common/group/group.h"

#include <string.h>

static enum status self_sum(struct group *group, float *x, size_t count)
{
    (void)group, (void)x, (void)count; /* the sum over one rank is its own value */
    return STATUS_OK;
}

static enum status self_broadcast(struct group *group, void *bytes, size_t count)
{
    (void)group, (void)bytes, (void)count; /* rank 0 has them */
    return STATUS_OK;
}

static enum status self_gather(struct group *group, const void *mine, size_t count, void *all)
{
    (void)group;
    memcpy(all, mine, count);
    return STATUS_OK;
}

static void self_close(struct group *group)
{
    (void)group;
}

static const struct group_kind self_kind = {
    .name = "self",
    .sum = self_sum,
    .broadcast = self_broadcast,
    .gather = self_gather,
    .close = self_close,
};

void group_open_self(struct group *group)
{
    *group = (struct group){.rank = 0, .size = 1, .kind = &self_kind};
}
