#include "tests/simulation/hostile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { HEAD = 8, AT_TYPE = 3, AT_LENGTH = 4 };

void hostile_open(struct hostile *hostile)
{
    memset(hostile, 0, sizeof *hostile);
    assert_int_equal(message_space_open(&hostile->space), STATUS_OK);
}

void hostile_close(struct hostile *hostile)
{
    message_space_close(hostile->space);
}

void hostile_see(struct hostile *hostile, struct frame frame)
{
    int at = hostile->seen++ % HOSTILE_SEEN;

    hostile->length[at] = frame.count < HOSTILE_BYTES ? frame.count : HOSTILE_BYTES;
    memcpy(hostile->bytes[at], frame.bytes, hostile->length[at]);
}

/* Which of the frames seen; -1 before there are any. */
static int pick(const struct hostile *hostile, struct dice *dice)
{
    int count = hostile->seen < HOSTILE_SEEN ? hostile->seen : HOSTILE_SEEN;

    return count == 0 ? -1 : dice_below(dice, count);
}

static void fill(struct dice *dice, unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)dice_next(dice);
}

/* Gives the frame a head that says its true length, so that what is behind it is looked at. */
static struct frame with_head(struct hostile *hostile, int type, size_t count)
{
    static const unsigned char start[] = {'T', 'D', MESSAGE_VERSION};

    count = count < HEAD ? HEAD : count;
    memcpy(hostile->made, start, sizeof start);
    hostile->made[AT_TYPE] = (unsigned char)type;
    for (int i = 0; i < 4; i++)
        hostile->made[AT_LENGTH + i] = (unsigned char)((count - HEAD) >> 8 * i);
    return (struct frame){hostile->made, count};
}

static struct frame make_random(struct hostile *hostile, struct dice *dice)
{
    size_t count = 1 + (size_t)dice_below(dice, 200);

    fill(dice, hostile->made, count);
    if (dice_chance(dice, 0.5))
        return (struct frame){hostile->made, count};
    return with_head(hostile, dice_below(dice, 12), count);
}

/* A frame that was seen, with flipped bytes, cut, made longer, with the end of another, or as another type; or as it was. */
static struct frame make_damaged(struct hostile *hostile, struct dice *dice, int from)
{
    size_t count = hostile->length[from];
    int type = hostile->bytes[from][AT_TYPE], other = pick(hostile, dice);

    memcpy(hostile->made, hostile->bytes[from], count);
    switch (dice_below(dice, 6)) {
    case 0:
        for (int flips = 1 + dice_below(dice, 4); flips > 0; flips--)
            hostile->made[dice_below(dice, (int)count)] = (unsigned char)dice_next(dice);
        return (struct frame){hostile->made, count};
    case 1:
        return with_head(hostile, type, (size_t)dice_below(dice, (int)count));
    case 2: {
        size_t more = (size_t)dice_below(dice, 40);

        more = more < HOSTILE_BYTES - count ? more : HOSTILE_BYTES - count;
        fill(dice, hostile->made + count, more);
        return with_head(hostile, type, count + more);
    }
    case 3: {
        size_t cut = (size_t)dice_below(dice, (int)count), end = hostile->length[other];

        if (cut < end)
            memcpy(hostile->made + cut, hostile->bytes[other] + cut, end - cut);
        return with_head(hostile, type, end > cut ? end : cut);
    }
    case 4:
        return with_head(hostile, 1 + dice_below(dice, 8), count);
    default:
        return (struct frame){hostile->made, count};
    }
}

static struct frame make_lying_proposal(struct hostile *hostile, struct dice *dice, struct frame seen, int vocab)
{
    struct proposal proposal;
    int at;

    if (message_unpack_proposal(hostile->space, seen, vocab, &proposal) != NULL || proposal.count == 0)
        return make_random(hostile, dice);
    at = dice_below(dice, proposal.count);
    switch (dice_below(dice, 8)) {
    case 0: /* another token than was drawn: only a point mass can be moved without a change of q */
        proposal.token[at] = proposal.q[at].count == 0 ? dice_below(dice, vocab) : proposal.q[at].id[dice_below(dice, proposal.q[at].count)];
        break;
    case 1:
        proposal.q[at].count = 0;
        break;
    case 2:
        proposal.base_length += (uint32_t)dice_below(dice, 5);
        break;
    case 3:
        proposal.base_digest ^= UINT64_C(1) << dice_below(dice, 64);
        break;
    case 4:
        proposal.request = (uint32_t)dice_below(dice, PLAN_REQUESTS);
        break;
    case 5:
        proposal.count = at;
        break;
    case 6: /* a tree */
        for (int i = 0; i < proposal.count; i++)
            proposal.parent[i] = (int8_t)(i == at ? -1 : i - 1);
        proposal.is_tree = at > 0;
        break;
    default:
        proposal.draft_us = UINT32_MAX;
        break;
    }
    return message_pack_proposal(hostile->space, &proposal);
}

static uint64_t other_run(struct dice *dice, uint64_t run)
{
    return dice_chance(dice, 0.3) ? dice_next(dice) : run;
}

static struct frame make_lying_open(struct hostile *hostile, struct dice *dice, struct frame seen, int vocab)
{
    int32_t tokens[2 * TOY_CONTEXT];
    struct open_message open;

    if (message_unpack_open(hostile->space, seen, vocab, &open) != NULL || open.count > TOY_CONTEXT)
        return make_random(hostile, dice);
    memcpy(tokens, open.tokens, (size_t)open.count * sizeof *tokens);
    open.tokens = tokens;
    open.run = other_run(dice, open.run);
    switch (dice_below(dice, 5)) {
    case 0:
        tokens[dice_below(dice, open.count)] = dice_below(dice, vocab);
        break;
    case 1:
        while (open.count < 2 * TOY_CONTEXT && dice_chance(dice, 0.9))
            tokens[open.count++] = dice_below(dice, vocab);
        open.limit = open.limit < (uint32_t)open.count ? (uint32_t)open.count : open.limit;
        break;
    case 2:
        open.draft_length = (uint32_t)dice_below(dice, MESSAGE_MAX_DRAFT + 1);
        break;
    case 3:
        open.request = (uint32_t)dice_next(dice);
        break;
    default:
        open.sampling.seed++;
        break;
    }
    return message_pack_open(hostile->space, &open);
}

static struct frame make_lying_commit(struct hostile *hostile, struct dice *dice, struct frame seen, int vocab)
{
    int32_t tokens[MESSAGE_MAX_COMMIT];
    struct commit commit;

    if (message_unpack_commit(hostile->space, seen, vocab, &commit) != NULL)
        return make_random(hostile, dice);
    if (commit.count > 0) /* else there is no array */
        memcpy(tokens, commit.tokens, (size_t)commit.count * sizeof *tokens);
    commit.tokens = tokens;
    commit.run = other_run(dice, commit.run);
    switch (dice_below(dice, 5)) {
    case 0:
        if (commit.count > 0)
            tokens[dice_below(dice, commit.count)] = dice_below(dice, vocab);
        break;
    case 1:
        commit.old_length += (uint32_t)dice_below(dice, 3);
        break;
    case 2:
        commit.keep = (uint32_t)dice_below(dice, (int)commit.old_length + commit.count + 1);
        break;
    case 3:
        commit.draft_length = (uint32_t)dice_below(dice, MESSAGE_MAX_DRAFT + 1);
        break;
    default:
        commit.finish = 1;
        break;
    }
    return message_pack_commit(hostile->space, &commit);
}

/* A message that was seen, with one thing changed. */
static struct frame make_lie_of(struct hostile *hostile, struct dice *dice, struct frame seen, int vocab)
{
    switch (message_type(seen)) {
    case MESSAGE_OPEN:
        return make_lying_open(hostile, dice, seen, vocab);
    case MESSAGE_COMMIT:
        return make_lying_commit(hostile, dice, seen, vocab);
    default:
        return make_lying_proposal(hostile, dice, seen, vocab);
    }
}

static struct frame make_lie(struct hostile *hostile, struct dice *dice, uint64_t run)
{
    static const enum message_type plain[] = {MESSAGE_HEARTBEAT, MESSAGE_SHUTDOWN};
    const struct close_message close = {.run = other_run(dice, run), .request = (uint32_t)dice_below(dice, PLAN_REQUESTS)};
    const struct failure failure = {.code = STATUS_INTERNAL, .text = "so it says"};

    switch (dice_below(dice, 4)) {
    case 0:
        return message_pack_close(hostile->space, &close);
    case 1:
        return message_pack_failure(hostile->space, &failure);
    default:
        return message_pack_plain(hostile->space, plain[dice_below(dice, 2)], other_run(dice, run));
    }
}

struct frame hostile_make(struct hostile *hostile, struct dice *dice, uint64_t run, int vocab)
{
    int from = pick(hostile, dice);
    double kind = dice_uniform(dice);

    if (from < 0 || kind < 0.2)
        return make_random(hostile, dice);
    if (kind < 0.6)
        return make_damaged(hostile, dice, from);
    if (kind < 0.9)
        return make_lie_of(hostile, dice, (struct frame){hostile->bytes[from], hostile->length[from]}, vocab);
    return make_lie(hostile, dice, run);
}
