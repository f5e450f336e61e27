#include "tests/law/toy_hub.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static enum status hub_broadcast(struct group *group, void *bytes, size_t count)
{
    struct toy_hub *hub = group->state;

    if (group->rank == 0) {
        assert_true(hub->posts < TOY_HUB_QUEUE && count <= TOY_HUB_BYTES);
        memcpy(hub->post[hub->posts], bytes, count);
        hub->bytes[hub->posts++] = count;
        return STATUS_OK;
    }
    if (hub->read == hub->posts)
        return STATUS_DRAINED; /* the follower has caught up: back to the lead */
    assert_int_equal(hub->bytes[hub->read], count);
    memcpy(bytes, hub->post[hub->read++], count);
    return STATUS_OK;
}

static enum status hub_gather(struct group *group, const void *mine, size_t count, void *all)
{
    struct toy_hub *hub = group->state;

    if (group->rank > 0) {
        memcpy(hub->all + (size_t)group->rank * count, mine, count);
        return STATUS_OK;
    }
    hub->all = all;
    memcpy(all, mine, count);
    for (int r = 1; r < hub->ranks; r++) {
        hub->read = 0;
        assert_int_equal(team_follow(&hub->team[r]), STATUS_DRAINED);
        assert_int_equal(hub->read, hub->posts);
    }
    hub->posts = 0;
    return STATUS_OK;
}

static const struct group_kind hub_kind = {.name = "hub", .broadcast = hub_broadcast, .gather = hub_gather};

void toy_hub_init(struct toy_hub *hub, struct team *team, int ranks, struct group *groups)
{
    hub->ranks = ranks;
    hub->posts = 0;
    hub->team = team;
    for (int r = 0; r < ranks; r++)
        groups[r] = (struct group){.rank = r, .size = ranks, .kind = &hub_kind, .state = hub};
}
