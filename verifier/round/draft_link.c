#include "verifier/round/draft_link.h"

#include <string.h>

static size_t support_bytes(int support_room)
{
    return arena_round((size_t)MESSAGE_MAX_DRAFT * (size_t)support_room * sizeof(int32_t));
}

size_t draft_link_bytes(int support_room)
{
    return 2 * (1 + DRAFT_SHELF) * support_bytes(support_room);
}

static void take_supports(struct draft_supports *supports, struct arena *arena, int support_room)
{
    supports->id = arena_take(arena, support_bytes(support_room));
    supports->weight = arena_take(arena, support_bytes(support_room));
}

void draft_link_init(struct draft_link *link, struct arena *arena, int kind, int support_room)
{
    *link = (struct draft_link){.kind = kind, .drafter = -1, .support_room = support_room};
    take_supports(&link->supports, arena, support_room);
    for (int i = 0; i < DRAFT_SHELF; i++)
        take_supports(&link->shelf[i].supports, arena, support_room);
}

void draft_link_reset(struct draft_link *link)
{
    link->has_proposal = 0;
    for (int i = 0; i < DRAFT_SHELF; i++)
        link->shelf[i].is_there = 0;
    link->verified = link->accepted = 0;
    link->wanted = 0;
    link->opened = 0;
    link->missed = 0;
    link->known = 0;
    link->answered = 0;
    link->behind = 0;
    link->drafter = -1;
}

/* May it be used at all? */
static int fits(const struct draft_link *link, const struct proposal *proposal)
{
    for (int i = 0; i < proposal->count; i++)
        if (proposal->q[i].count > link->support_room)
            return 0;
    return 1;
}

static void copy(const struct draft_link *link, const struct draft_supports *supports, const struct proposal *from, struct proposal *to)
{
    *to = *from;
    for (int i = 0; i < from->count; i++) {
        size_t count = (size_t)from->q[i].count, at = (size_t)i * (size_t)link->support_room;

        if (count > 0) { /* a point mass has no arrays */
            memcpy(supports->id + at, from->q[i].id, count * sizeof(int32_t));
            memcpy(supports->weight + at, from->q[i].weight, count * sizeof(uint32_t));
        }
        to->q[i].id = supports->id + at;
        to->q[i].weight = supports->weight + at;
    }
}

/* The number of tokens was asked for before any of them was known, so cutting to it does not choose by what they are. */
static void cut(struct draft_link *link)
{
    if (link->proposal.count > link->wanted)
        link->proposal.count = link->wanted;
    link->has_proposal = 1;
    link->came_ns = clock_ns();
}

int draft_link_take(struct draft_link *link, const struct proposal *proposal)
{
    if (link->wanted == 0 || !fits(link, proposal))
        return 0;
    copy(link, &link->supports, proposal, &link->proposal);
    cut(link);
    return 1;
}

int draft_link_keep(struct draft_link *link, const struct proposal *proposal)
{
    struct shelved *place = &link->shelf[link->next];

    if (!fits(link, proposal))
        return 0;
    copy(link, &place->supports, proposal, &place->proposal);
    place->is_there = 1;
    link->next = (link->next + 1) % DRAFT_SHELF;
    return 1;
}

static void fetch(struct draft_link *link, struct shelved *from)
{
    struct draft_supports supports = link->supports;

    link->proposal = from->proposal; /* and the supports that it has */
    link->supports = from->supports;
    from->supports = supports;
    cut(link);
}

int draft_link_fetch(struct draft_link *link, int length, uint64_t digest)
{
    int is_found = 0;

    if (link->wanted == 0)
        return 0;
    for (int i = 0; i < DRAFT_SHELF; i++) {
        struct shelved *shelved = &link->shelf[i];

        if (!is_found && shelved->is_there && shelved->proposal.base_length == (uint32_t)length && shelved->proposal.base_digest == digest) {
            fetch(link, shelved);
            is_found = 1;
        }
        shelved->is_there = 0;
    }
    return is_found;
}

int draft_link_is_hit(const struct draft_link *link)
{
    return link->has_proposal && link->proposal.count > 0 && link->proposal.ahead >= (uint32_t)link->proposal.count;
}

void draft_link_use_up(struct draft_link *link)
{
    link->verified = link->has_proposal ? link->proposal.count : 0;
    link->has_proposal = 0;
    link->wanted = 0;
}
