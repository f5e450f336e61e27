#include "common/wire/roll_call.h"

#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROOM = 2048 }; /* bytes for one packed Hello */

struct entry {
    uint32_t bytes;
    unsigned char frame[ROOM];
};

static enum status draw_run(struct world *world, uint64_t *run)
{
    uint64_t seeds[2] = {(uint64_t)clock_ns(), (uint64_t)getpid()};
    MPI_Request request;

    *run = digest_bytes(seeds, sizeof seeds, 0);
    TRY_MPI(MPI_Ibcast(run, 1, MPI_UINT64_T, 0, world->wire, &request));
    world_await(world, &request);
    return STATUS_OK;
}

static enum status gather(struct world *world, const struct entry *mine, struct entry *entries)
{
    MPI_Request request;

    TRY_MPI(MPI_Iallgather(mine, sizeof *mine, MPI_BYTE, entries, sizeof *entries, MPI_BYTE, world->wire, &request));
    world_await(world, &request);
    return STATUS_OK;
}

/* What a rank must have in common with a verifier; NULL: it has. */
static const char *difference(const struct hello *verifier, const struct hello *rank)
{
    if (verifier->protocol != rank->protocol)
        return "speak different versions of the protocol, expected one build of both programs";
    if (rank->vocab_size == 0)
        return NULL; /* it takes the verifier's */
    if (verifier->vocab_digest != rank->vocab_digest || (rank->role != ROLE_DRAFTER && verifier->vocab_size != rank->vocab_size))
        return "have different vocabularies, expected one tokenizer for both models";
    if (rank->vocab_size > verifier->vocab_size) /* in added tokens; where the drafter has the target's files it drafts none of them */
        return "have vocabularies of other sizes, expected --draft-vocabulary, at most the target's";
    return NULL;
}

static enum status compare(const struct world *world, const struct hello *all)
{
    int first = 0; /* the first verifier */

    while (first + 1 < world->size && all[first].role == ROLE_DRAFTER)
        first++;
    for (int i = 0; i < world->size; i++) {
        const char *what = difference(&all[first], &all[i]);

        if (what == NULL)
            continue;
        if (world->rank == 0)
            log_error("%s (rank %d, %u tokens) and %s (rank %d, %u tokens) %s", all[first].model, first, all[first].vocab_size, all[i].model, i,
                      all[i].vocab_size, what);
        return STATUS_DATA;
    }
    return STATUS_OK;
}

static enum status unpack_all(const struct world *world, struct message_space *space, const struct entry *entries, struct hello *all)
{
    for (int i = 0; i < world->size; i++) {
        struct frame frame = {.bytes = entries[i].frame, .count = entries[i].bytes <= ROOM ? entries[i].bytes : 0};
        const char *wrong = message_unpack_hello(space, frame, &all[i]);

        if (wrong != NULL) {
            if (world->rank == 0)
                log_error("the Hello of rank %d is not one: %s", i, wrong);
            return STATUS_DATA;
        }
    }
    return STATUS_OK;
}

enum status roll_call(struct world *world, struct message_space *space, struct hello *mine, struct hello *all)
{
    struct entry *entries = calloc((size_t)world->size + 1, sizeof *entries), *own = entries + world->size;
    enum status status;
    struct frame frame;

    if (entries == NULL) {
        log_error("no memory for the roll call of %d ranks", world->size);
        return STATUS_INTERNAL;
    }
    TRY_TO(draw_run(world, &mine->run), free_entries);
    frame = message_pack_hello(space, mine);
    own->bytes = (uint32_t)frame.count;
    memcpy(own->frame, frame.bytes, frame.count < ROOM ? frame.count : ROOM);
    TRY_TO(gather(world, own, entries), free_entries);
    TRY_TO(unpack_all(world, space, entries, all), free_entries);
    status = compare(world, all);
    for (int i = 0; i < world->size; i++)
        if (i != world->rank)
            world_watch(world, i, all[i].host, all[i].pid);

free_entries:
    free(entries);
    return status;
}

const char *roll_call_draft(const struct hello *all, int ranks)
{
    for (int i = 0; i < ranks; i++)
        if (all[i].role == ROLE_DRAFTER)
            return all[i].model;
    return NULL;
}
