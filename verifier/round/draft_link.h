/* A draft link is one drafter's bookkeeping for one sequence: what the drafter was told and asked, and the proposal of it that waits to be verified. It
 * holds no committed token, so that a sequence may have several links and keep one truth. The proposal is always for the committed tokens of the moment:
 * whoever commits calls draft_link_use_up. On the shelf lies one for tokens that may come to be committed (the drafter ran ahead). Only the lead's thread may call; nothing here sends, waits or allocates. */
#ifndef TANDEM_VERIFIER_ROUND_DRAFT_LINK_H
#define TANDEM_VERIFIER_ROUND_DRAFT_LINK_H

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/wire/message.h"

struct draft_link {
    int drafter;       /* index of the drafter, -1 for none */
    int known;         /* it was told of the request */
    int wanted;        /* tokens asked for in the next proposal; 0: no proposal is expected */
    int opened;        /* that was asked with an Open: the drafter has tokens to catch up on first */
    int64_t asked_ns;  /* when that was asked */
    int missed;        /* the drafter lacks something, or may: the last proposal did not come in time, or the last commits were not sent */
    int answered;      /* tokens that its last proposal was computed on */
    int behind;        /* it was sent a long text and has proposed nothing since: it is still reading */
    int has_proposal;  /* the proposal below is for the committed tokens */
    int64_t came_ns;   /* when it came */
    struct proposal proposal; /* its supports lie in the link's own memory */
    int has_shelf;
    struct proposal shelf;
    struct draft_supports {
        int32_t *id;      /* [MESSAGE_MAX_DRAFT][support_room] */
        uint32_t *weight; /* [MESSAGE_MAX_DRAFT][support_room] */
    } supports, shelf_supports; /* of the two proposals */
    int support_room;
};

/* Bytes that draft_link_init takes from an arena. */
size_t draft_link_bytes(int support_room);
void draft_link_init(struct draft_link *link, struct arena *arena, int support_room);
/* A request begins: there is no drafter yet, and nothing was asked or told. */
void draft_link_reset(struct draft_link *link);
/* Takes over (copies) a proposal for the committed tokens, if any was asked for, it is a chain and its supports have room; of more tokens than were asked for
 * the first ones. Returns whether it did. */
int draft_link_take(struct draft_link *link, const struct proposal *proposal);
/* The same for tokens that are not committed yet: it lies on the shelf, in the place of what lay there. */
int draft_link_keep(struct draft_link *link, const struct proposal *proposal);
/* Takes what lies on the shelf, if it is for these committed tokens and any was asked for. Returns whether it did. */
int draft_link_fetch(struct draft_link *link, int length, uint64_t digest);
/* Tokens were committed: the proposal that was there is used up, and none is expected until the next is asked for. */
void draft_link_use_up(struct draft_link *link);

#endif
