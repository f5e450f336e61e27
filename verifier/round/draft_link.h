/* A draft link is one drafter's bookkeeping for one sequence: it owns the proposal that waits to be verified, and what the drafter was told and
 * asked. It holds no committed token, so a sequence has one link or several, and one truth. Invariant: a proposal that is here was computed on
 * exactly the committed tokens; whoever commits calls draft_link_use_up. On the shelf lie proposals for texts that may be committed next (the drafter
 * ran ahead). Only the lead's thread may call. Never sends, waits or allocates. */
#ifndef TANDEM_VERIFIER_ROUND_DRAFT_LINK_H
#define TANDEM_VERIFIER_ROUND_DRAFT_LINK_H

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/wire/message.h"

enum { DRAFT_SHELF = 12 }; /* proposals on a shelf at most: as many as a drafter has branches */

struct draft_link {
    int kind;          /* which of the kinds of drafters it is of */
    int drafter;       /* index of the drafter, -1 for none */
    int known;         /* the drafter was sent this request */
    int wanted;        /* tokens asked for in the next proposal; 0: no proposal is expected */
    int opened;        /* the last proposal was asked for with an Open: the drafter has tokens to read first */
    int64_t asked_ns;  /* when the last proposal was asked for */
    int missed;        /* the drafter may lack tokens (its last proposal was late, or commits were not sent): the next request is an Open with all */
    int answered;      /* committed tokens that its last proposal was computed on */
    int behind;        /* the drafter was sent a long text and has proposed nothing since: it is still reading it */
    int has_proposal;  /* the proposal below is for the committed tokens */
    int64_t came_ns;   /* when it came */
    struct proposal proposal; /* its supports lie in the link's own memory */
    struct draft_supports {
        int32_t *id;      /* [MESSAGE_MAX_DRAFT][support_room] */
        uint32_t *weight; /* [MESSAGE_MAX_DRAFT][support_room] */
    } supports;
    struct shelved {
        int is_there;
        struct proposal proposal;
        struct draft_supports supports;
    } shelf[DRAFT_SHELF];
    int next;     /* place on the shelf that is used next: round it goes */
    int verified; /* drafts in the last round, */
    int accepted; /* and how many of them were accepted: the first ones that are what was committed */
    int support_room;
};

/* Bytes that draft_link_init takes from an arena. */
size_t draft_link_bytes(int support_room);
void draft_link_init(struct draft_link *link, struct arena *arena, int kind, int support_room);
/* For a new request: no drafter yet, nothing sent, nothing asked. */
void draft_link_reset(struct draft_link *link);
/* Takes over (copies) a proposal for the committed tokens, if any was asked for and its supports have room; of more tokens than were
 * asked for the first ones. Returns whether it did. */
int draft_link_take(struct draft_link *link, const struct proposal *proposal);
/* The same for tokens that are not committed yet: it lies on the shelf. Where that is full, what came first goes: the drafter may still have sent for
 * what was committed before, and takes what it sent for the newest draft as being here. */
int draft_link_keep(struct draft_link *link, const struct proposal *proposal);
/* Takes from the shelf what is for these committed tokens, if any was asked for, and then clears the others away, as the drafter does with their
 * branches at this Commit. Returns whether it did. */
int draft_link_fetch(struct draft_link *link, int length, uint64_t digest);
/* Was all of the proposal that is here drafted before it was asked for? Of more than was asked for the first tokens are. */
int draft_link_is_hit(const struct draft_link *link);
/* To be called when tokens are committed: drops the proposal; none is expected until the next is asked for. */
void draft_link_use_up(struct draft_link *link);

#endif
