/* libFuzzer entry over every unpacker: the first two bytes choose the message and whether the header is made true, so that the fuzzer
 * reaches the payload at once; what is accepted is packed again and must be accepted again. */
#include "common/wire/message.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { VOCAB = 128256, HEADER = 8, MAX_INPUT = 1 << 16 };

static void require(int holds)
{
    if (!holds)
        abort();
}

static void try_proposal(struct message_space *space, struct frame frame)
{
    struct proposal proposal, again;

    if (message_unpack_proposal(space, frame, VOCAB, &proposal) != NULL)
        return;
    for (int i = 0; i < proposal.count; i++) {
        uint64_t sum = 0;

        for (int j = 0; j < proposal.q[i].count; j++) {
            require(proposal.q[i].id[j] > (j > 0 ? proposal.q[i].id[j - 1] : -1) && proposal.q[i].id[j] < VOCAB);
            sum += proposal.q[i].weight[j];
        }
        require(proposal.q[i].count == 0 || sum == MESSAGE_Q_SUM);
        require(proposal.token[i] >= 0 && proposal.token[i] < VOCAB);
        require(!proposal.is_tree || (proposal.parent[i] >= -1 && proposal.parent[i] < i));
    }
    require(message_unpack_proposal(space, message_pack_proposal(space, &proposal), VOCAB, &again) == NULL);
    require(again.count == proposal.count && again.is_tree == proposal.is_tree && again.base_digest == proposal.base_digest);
}

static void try_open(struct message_space *space, struct frame frame)
{
    struct open_message open, again;
    char reason[160];
    uint64_t digest;

    if (message_unpack_open(space, frame, VOCAB, &open) != NULL)
        return;
    for (int i = 0; i < open.count; i++)
        require(open.tokens[i] >= 0 && open.tokens[i] < VOCAB);
    require(open.bias == NULL || bias_check(open.bias, VOCAB, reason, sizeof reason) == STATUS_OK);
    digest = bias_digest(open.bias, 0);
    require(message_unpack_open(space, message_pack_open(space, &open), VOCAB, &again) == NULL);
    require(again.count == open.count && again.limit == open.limit && bias_digest(again.bias, 0) == digest);
}

static void try_commit(struct message_space *space, struct frame frame)
{
    struct commit commit, again;

    if (message_unpack_commit(space, frame, VOCAB, &commit) != NULL)
        return;
    for (int i = 0; i < commit.count; i++)
        require(commit.tokens[i] >= 0 && commit.tokens[i] < VOCAB);
    for (int i = 0; i < commit.owns; i++)
        require(commit.own[i] >= 0 && commit.own[i] < VOCAB);
    require(message_unpack_commit(space, message_pack_commit(space, &commit), VOCAB, &again) == NULL);
    require(again.count == commit.count && again.keep == commit.keep && again.owns == commit.owns);
}

static void try_rest(struct message_space *space, struct frame frame)
{
    struct hello hello;
    struct close_message close;
    struct failure failure;
    uint64_t run;

    if (message_unpack_hello(space, frame, &hello) == NULL)
        require(message_unpack_hello(space, message_pack_hello(space, &hello), &hello) == NULL);
    if (message_unpack_close(space, frame, &close) == NULL)
        require(message_unpack_close(space, message_pack_close(space, &close), &close) == NULL);
    if (message_unpack_failure(space, frame, &failure) == NULL)
        require(message_unpack_failure(space, message_pack_failure(space, &failure), &failure) == NULL);
    (void)message_unpack_plain(space, frame, &run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct message_space *space;
    unsigned char *bytes;
    struct frame frame;

    if (size < 2 || size > MAX_INPUT)
        return 0;
    if (space == NULL)
        require(message_space_open(&space) == STATUS_OK);
    bytes = malloc(size - 2 + HEADER); /* of its exact size, so that a read beyond its end is seen */
    require(bytes != NULL);
    frame = (struct frame){bytes, data[1] % 2 ? size - 2 + HEADER : size - 2};
    memcpy(bytes, (unsigned char[]){'T', 'D', MESSAGE_VERSION, (unsigned char)(1 + data[0] % MESSAGE_TYPES)}, 4);
    for (int i = 0; i < 4; i++)
        bytes[4 + i] = (unsigned char)((size - 2) >> 8 * i);
    memcpy(bytes + (data[1] % 2 ? HEADER : 0), data + 2, size - 2);
    try_proposal(space, frame);
    try_open(space, frame);
    try_commit(space, frame);
    try_rest(space, frame);
    free(bytes);
    return 0;
}
