#include "verifier/round/draft_link.h"

#include <string.h>

static size_t support_bytes(int support_room)
{
    return arena_round((size_t)MESSAGE_MAX_DRAFT * (size_t)support_room * sizeof(int32_t));
}

size_t draft_link_bytes(int support_room)
{
    return 2 * support_bytes(support_room);
}

void draft_link_init(struct draft_link *link, struct arena *arena, int support_room)
{
    *link = (struct draft_link){.drafter = -1, .support_room = support_room};
    link->support_id = arena_take(arena, support_bytes(support_room));
    link->support_weight = arena_take(arena, support_bytes(support_room));
}

void draft_link_reset(struct draft_link *link)
{
    link->has_proposal = 0;
    link->wanted = 0;
    link->missed = 0;
    link->known = 0;
    link->answered = 0;
    link->behind = 0;
    link->drafter = -1;
}

int draft_link_take(struct draft_link *link, const struct proposal *proposal)
{
    if (proposal->count > link->wanted)
        return 0;
    if (proposal->is_tree) /* the acceptance rules verify chains only */
        return 0;
    for (int i = 0; i < proposal->count; i++)
        if (proposal->q[i].count > link->support_room)
            return 0;
    link->proposal = *proposal;
    for (int i = 0; i < proposal->count; i++) {
        size_t count = (size_t)proposal->q[i].count, at = (size_t)i * (size_t)link->support_room;

        if (count > 0) { /* a point mass has no arrays */
            memcpy(link->support_id + at, proposal->q[i].id, count * sizeof(int32_t));
            memcpy(link->support_weight + at, proposal->q[i].weight, count * sizeof(uint32_t));
        }
        link->proposal.q[i].id = link->support_id + at;
        link->proposal.q[i].weight = link->support_weight + at;
    }
    link->has_proposal = 1;
    link->came_ns = clock_ns();
    return 1;
}

void draft_link_use_up(struct draft_link *link)
{
    link->has_proposal = 0;
    link->wanted = 0;
}
