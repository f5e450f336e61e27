#include "common/wire/message.h"

#include "common/base/digest.h"
#include "common/world/world.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* needs those above */

enum { VOCAB = 128256, ROUNDS = 300, FRAMES = 200000, HEADER = 8 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS_ALLOCATIONS 0
static long allocations;
#else
/* Stands in for the C library's, so that protobuf-c's own calls are counted too. */
#define COUNTS_ALLOCATIONS 1
static long allocations;
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}
void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}
void *realloc(void *old, size_t size)
{
    allocations++;
    return __libc_realloc(old, size);
}
#endif

struct source {
    uint64_t at;
};

static uint64_t draw(struct source *source)
{
    uint64_t x = source->at += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint32_t below(struct source *source, uint32_t limit)
{
    return (uint32_t)(draw(source) % limit);
}

/* Numbers of all lengths on the wire. */
static uint32_t any32(struct source *source)
{
    return (uint32_t)draw(source) >> below(source, 32);
}

static void any_text(struct source *source, char *text, size_t size)
{
    size_t length = below(source, (uint32_t)size);

    memset(text, 0, size);
    for (size_t i = 0; i < length; i++)
        text[i] = (char)(1 + below(source, 255));
}

static int32_t *any_tokens(struct source *source, int count)
{
    static int32_t token[MESSAGE_MAX_TOKENS];

    for (int i = 0; i < count; i++)
        token[i] = (int32_t)below(source, VOCAB);
    return token;
}

static struct hello any_hello(struct source *source)
{
    struct hello hello;

    memset(&hello, 0, sizeof hello); /* compared as bytes */
    hello.protocol = any32(source);
    hello.role = below(source, 2);
    hello.run = draw(source);
    hello.vocab_digest = draw(source);
    hello.vocab_size = 1 + any32(source) / 2;
    hello.bos = (int32_t)below(source, hello.vocab_size + 1) - 1;
    hello.eos = (int32_t)below(source, hello.vocab_size + 1) - 1;
    hello.context = 1 + any32(source) / 2;
    hello.pid = any32(source);
    hello.draft_ns = any32(source);
    hello.draft_batch_ns = any32(source);
    if (hello.vocab_size > INT32_MAX)
        hello.vocab_size = INT32_MAX;
    if (hello.context > INT32_MAX)
        hello.context = INT32_MAX;
    any_text(source, hello.program, sizeof hello.program);
    any_text(source, hello.model, sizeof hello.model);
    any_text(source, hello.host, sizeof hello.host);
    any_text(source, hello.device, sizeof hello.device);
    return hello;
}

/* Now and then none; else of any size. */
static const struct bias *any_bias(struct source *source)
{
    static struct bias bias;

    bias_init(&bias);
    if (below(source, 4) == 0)
        return below(source, 2) == 0 ? NULL : &bias;
    for (int i = (int)below(source, BIAS_MAX_TOKENS + 1); i > 0; i--)
        bias_add_token(&bias, (int32_t)below(source, VOCAB), (double)below(source, 20001) / 100 - 100);
    for (int left = (int)below(source, BIAS_MAX_WORDS + 1); left > 0; left--) {
        bias.length[bias.words] = 1 + (int32_t)below(source, BIAS_MAX_WORD);
        for (int i = 0; i < bias.length[bias.words]; i++)
            bias.word[bias.words][i] = (int32_t)below(source, VOCAB);
        bias.words++;
    }
    bias.min_tokens = (int32_t)below(source, 3) * (int32_t)below(source, 1000);
    for (int left = (int)below(source, BIAS_MAX_ENDERS + 1); left > 0; left--)
        bias.ender[bias.enders++] = (int32_t)below(source, VOCAB);
    return &bias;
}

static struct open_message any_open(struct source *source)
{
    struct open_message open = {
        .run = draw(source), .request = any32(source), .line = any32(source), .pass = any32(source), .sampling = sampling_default};

    open.count = 1 + (int)below(source, 3000);
    open.tokens = any_tokens(source, open.count);
    open.prompt_count = 1 + below(source, (uint32_t)open.count);
    open.draft_length = below(source, MESSAGE_MAX_DRAFT + 1);
    open.shape = below(source, TREE_AUTO);
    open.limit = (uint32_t)open.count + below(source, 5000);
    open.sampling.temperature = (double)below(source, 200) / 100;
    open.sampling.top_p = (double)(1 + below(source, 100)) / 100;
    open.sampling.min_p = (double)below(source, 100) / 100;
    open.sampling.presence_penalty = (double)below(source, 400) / 100 - 2;
    open.sampling.top_k = (int32_t)(any32(source) / 2);
    open.sampling.lenience = (double)(1 + below(source, 100)) / 100;
    open.sampling.threshold = (double)below(source, 100) / 100;
    open.sampling.typical_epsilon = (double)below(source, 101) / 100;
    open.sampling.typical_delta = (double)below(source, 101) / 100;
    open.sampling.accept = (int32_t)below(source, ACCEPT_MODES);
    open.sampling.seed = draw(source);
    open.bias = any_bias(source);
    return open;
}

static struct commit any_commit(struct source *source)
{
    struct commit commit = {.run = draw(source), .request = any32(source), .old_length = below(source, 100000)};

    commit.count = (int)below(source, MESSAGE_MAX_COMMIT + 1);
    commit.tokens = any_tokens(source, commit.count);
    commit.accepted = below(source, (uint32_t)commit.count + 1);
    commit.keep = below(source, commit.old_length + (uint32_t)commit.count + 1);
    commit.digest = draw(source);
    commit.finish = below(source, 5);
    commit.draft_length = below(source, MESSAGE_MAX_DRAFT + 1);
    commit.shape = below(source, TREE_AUTO);
    commit.worth = below(source, MESSAGE_MOST_WORTH + 1);
    commit.price = below(source, MESSAGE_MOST_WORTH + 1);
    commit.owns = (int)below(source, MESSAGE_MAX_COMMIT + 1);
    commit.own = any_tokens(source, commit.owns);
    return commit;
}

/* A support of `count` ids with random weights; returns one of the ids. */
static int32_t any_support(struct source *source, int count, int32_t *id, uint32_t *weight, struct support *q)
{
    uint32_t left = MESSAGE_Q_SUM - (uint32_t)count;
    int32_t step = VOCAB / count;

    for (int i = 0; i < count; i++) {
        uint32_t more = i == count - 1 ? left : below(source, left / 2 + 1);

        id[i] = i * step + (int32_t)below(source, (uint32_t)step);
        weight[i] = 1 + more;
        left -= more;
    }
    *q = (struct support){.count = count, .id = id, .weight = weight};
    return id[below(source, (uint32_t)count)];
}

static struct proposal any_proposal(struct source *source, int count, int support)
{
    static int32_t id[MESSAGE_MAX_DRAFT][MESSAGE_MAX_SUPPORT];
    static uint32_t weight[MESSAGE_MAX_DRAFT][MESSAGE_MAX_SUPPORT];
    struct proposal proposal = {.run = draw(source), .request = any32(source), .base_length = below(source, 100000), .count = count};

    proposal.base_digest = draw(source);
    proposal.sampling_digest = draw(source);
    proposal.draft_us = any32(source);
    proposal.ahead = below(source, (uint32_t)count + 1);
    for (int i = 0; i < count; i++)
        if (support == 0)
            proposal.token[i] = (int32_t)below(source, VOCAB);
        else
            proposal.token[i] = any_support(source, support, id[i], weight[i], &proposal.q[i]);
    for (int i = 0; i < count; i++) {
        proposal.parent[i] = (int8_t)((int)below(source, (uint32_t)i + 1) - 1);
        proposal.is_tree |= proposal.parent[i] != i - 1;
    }
    proposal.is_tree &= (int)below(source, 2);
    return proposal;
}

static struct close_message any_close(struct source *source)
{
    return (struct close_message){.run = draw(source), .request = any32(source)};
}

static struct failure any_failure(struct source *source)
{
    struct failure failure = {.code = any32(source)};

    any_text(source, failure.text, sizeof failure.text);
    return failure;
}

#define SAME(member) assert_int_equal(a->member, b->member)

static void assert_same_open(const struct open_message *a, const struct open_message *b)
{
    SAME(run), SAME(request), SAME(line), SAME(pass), SAME(prompt_count), SAME(count), SAME(draft_length), SAME(shape), SAME(limit);
    assert_memory_equal(a->tokens, b->tokens, (size_t)a->count * sizeof *a->tokens);
    assert_int_equal(sampling_digest(&a->sampling), sampling_digest(&b->sampling));
    assert_int_equal(bias_is_empty(a->bias), bias_is_empty(b->bias));
    assert_int_equal(bias_digest(a->bias, 1), bias_digest(b->bias, 1));
}

static void assert_same_commit(const struct commit *a, const struct commit *b)
{
    SAME(run), SAME(request), SAME(old_length), SAME(accepted), SAME(count);
    SAME(keep), SAME(digest), SAME(finish), SAME(draft_length), SAME(shape), SAME(worth), SAME(price), SAME(owns);
    if (a->count > 0)
        assert_memory_equal(a->tokens, b->tokens, (size_t)a->count * sizeof *a->tokens);
    if (a->owns > 0)
        assert_memory_equal(a->own, b->own, (size_t)a->owns * sizeof *a->own);
}

static void assert_same_proposal(const struct proposal *a, const struct proposal *b)
{
    SAME(run), SAME(request), SAME(base_length), SAME(base_digest), SAME(sampling_digest), SAME(draft_us), SAME(ahead), SAME(count), SAME(is_tree);
    for (int i = 0; i < a->count; i++) {
        size_t count = (size_t)a->q[i].count;

        SAME(token[i]), SAME(q[i].count);
        assert_true(!a->is_tree || a->parent[i] == b->parent[i]);
        if (count == 0)
            continue;
        assert_memory_equal(a->q[i].id, b->q[i].id, count * sizeof *a->q[i].id);
        assert_memory_equal(a->q[i].weight, b->q[i].weight, count * sizeof *a->q[i].weight);
    }
}

static void assert_same_close(const struct close_message *a, const struct close_message *b)
{
    SAME(run), SAME(request);
}

static void assert_same_failure(const struct failure *a, const struct failure *b)
{
    SAME(code);
    assert_string_equal(a->text, b->text);
}

static void assert_same_hello(const struct hello *a, const struct hello *b)
{
    assert_memory_equal(a, b, sizeof *a);
}

static int open_space(void **state)
{
    return message_space_open((struct message_space **)state) == STATUS_OK ? 0 : -1;
}

static int close_space(void **state)
{
    message_space_close(*state);
    return 0;
}

static const char *unpack_open(struct message_space *space, struct frame frame, struct open_message *out)
{
    return message_unpack_open(space, frame, VOCAB, out);
}

static const char *unpack_proposal(struct message_space *space, struct frame frame, struct proposal *out)
{
    return message_unpack_proposal(space, frame, VOCAB, out);
}

static const char *unpack_commit(struct message_space *space, struct frame frame, struct commit *out)
{
    return message_unpack_commit(space, frame, VOCAB, out);
}

/* One of these functions, by the message's type. */
#define BY_TYPE(message, of_hello, of_open, of_close, of_proposal, of_commit, of_failure)                                                  \
    _Generic(*(message), struct hello                                                                                                      \
             : of_hello, struct open_message                                                                                               \
             : of_open, struct close_message                                                                                               \
             : of_close, struct proposal                                                                                                   \
             : of_proposal, struct commit                                                                                                  \
             : of_commit, struct failure                                                                                                   \
             : of_failure)
#define PACK(message)                                                                                                                      \
    BY_TYPE(message, message_pack_hello, message_pack_open, message_pack_close, message_pack_proposal, message_pack_commit,                \
            message_pack_failure)                                                                                                          \
    (*state, message)
#define UNPACK(frame, out)                                                                                                                 \
    BY_TYPE(out, message_unpack_hello, unpack_open, message_unpack_close, unpack_proposal, unpack_commit, message_unpack_failure)          \
    (*state, frame, out)
#define ASSERT_SAME(a, b)                                                                                                                  \
    BY_TYPE(a, assert_same_hello, assert_same_open, assert_same_close, assert_same_proposal, assert_same_commit, assert_same_failure)(a, b)

/* What was drawn is what comes out, so many times. */
#define ROUND_TRIPS(times, type, structure, drawn)                                                                                         \
    for (int i = 0; i < (times); i++) {                                                                                                    \
        const structure sent = drawn;                                                                                                      \
        struct frame packed = PACK(&sent);                                                                                                 \
        structure got;                                                                                                                     \
                                                                                                                                           \
        memset(&got, 0, sizeof got);                                                                                                       \
        assert_int_equal(message_type(packed), type);                                                                                      \
        assert_null(UNPACK(packed, &got));                                                                                                 \
        ASSERT_SAME(&sent, &got);                                                                                                          \
    }

static void test_message__hello_round_trips(void **state)
{
    struct source source = {1};

    ROUND_TRIPS(ROUNDS, MESSAGE_HELLO, struct hello, any_hello(&source));
}

static void test_message__open_round_trips(void **state)
{
    struct source source = {2};

    ROUND_TRIPS(ROUNDS, MESSAGE_OPEN, struct open_message, any_open(&source));
}

static void test_message__proposal_round_trips(void **state)
{
    static const int support[] = {0, 1, 2, 37, 256, MESSAGE_MAX_SUPPORT};
    struct source source = {3};

    ROUND_TRIPS(6 * (MESSAGE_MAX_DRAFT + 1), MESSAGE_PROPOSAL, struct proposal, any_proposal(&source, i / 6, support[i % 6]));
}

static void test_message__commit_round_trips(void **state)
{
    struct source source = {4};

    ROUND_TRIPS(ROUNDS, MESSAGE_COMMIT, struct commit, any_commit(&source));
}

static void test_message__short_messages_round_trip(void **state)
{
    static const enum message_type plain[] = {MESSAGE_HEARTBEAT, MESSAGE_SHUTDOWN, MESSAGE_DRAIN};
    struct source source = {5};

    ROUND_TRIPS(ROUNDS, MESSAGE_CLOSE, struct close_message, any_close(&source));
    ROUND_TRIPS(ROUNDS, MESSAGE_FAILURE, struct failure, any_failure(&source));
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t sent = draw(&source), got;
        struct frame packed = message_pack_plain(*state, plain[i % 3], sent);

        assert_int_equal(message_type(packed), plain[i % 3]);
        assert_null(message_unpack_plain(*state, packed, &got));
        assert_int_equal(got, sent);
    }
}

/* The longest that there is, on the wire too. */
static void fill_up(struct bias *bias)
{
    bias_init(bias);
    for (int i = 0; i < BIAS_MAX_TOKENS; i++)
        bias_add_token(bias, INT32_MAX - 1 - i, -99.9);
    for (; bias->words < BIAS_MAX_WORDS; bias->words++) {
        bias->length[bias->words] = BIAS_MAX_WORD;
        for (int i = 0; i < BIAS_MAX_WORD; i++)
            bias->word[bias->words][i] = INT32_MAX - 1;
    }
    bias->min_tokens = INT32_MAX;
    for (; bias->enders < BIAS_MAX_ENDERS; bias->enders++)
        bias->ender[bias->enders] = INT32_MAX - 1;
}

static void test_message__largest_messages_fit(void **state)
{
    static int32_t highest[MESSAGE_MAX_TOKENS];
    struct source source = {6};
    struct open_message open = {.prompt_count = 1, .count = MESSAGE_MAX_TOKENS, .tokens = highest, .limit = MESSAGE_MAX_TOKENS};
    struct proposal proposal = any_proposal(&source, MESSAGE_MAX_DRAFT, MESSAGE_MAX_SUPPORT), offered;
    struct open_message opened;
    struct bias most;
    struct frame frame;

    for (int i = 0; i < MESSAGE_MAX_TOKENS; i++)
        highest[i] = INT32_MAX - 1;
    open.sampling = sampling_default;
    fill_up(&most);
    open.bias = &most;
    frame = message_pack_open(*state, &open);
    assert_true(frame.count <= message_frame_limit());
    assert_null(message_unpack_open(*state, frame, INT32_MAX, &opened));
    assert_same_open(&open, &opened);
    assert_null(UNPACK(PACK(&proposal), &offered));
    assert_same_proposal(&proposal, &offered);
}

/* The lists of proto/README.md. */
static void test_message__usual_messages_are_below_the_eager_limits(void **state)
{
    struct source source = {7};
    struct proposal greedy = any_proposal(&source, 8, 0), usual = any_proposal(&source, 8, 256);
    struct commit commit = any_commit(&source);

    commit.count = MESSAGE_MAX_COMMIT;
    commit.tokens = any_tokens(&source, commit.count);
    commit.owns = 0;
    assert_true(message_pack_proposal(*state, &greedy).count < 256);
    assert_true(message_pack_proposal(*state, &usual).count < 16384);
    assert_true(message_pack_commit(*state, &commit).count < 256);
}

/* A tree costs two bytes and one for each token; a chain, whose parents are known, nothing, and one that is sent as a tree comes out as a chain. */
static void test_message__a_chain_is_sent_without_parents(void **state)
{
    struct source source = {8};
    struct proposal chain = any_proposal(&source, 8, 0), got;
    size_t bytes;

    chain.is_tree = 0;
    bytes = message_pack_proposal(*state, &chain).count;
    for (int i = 0; i < chain.count; i++)
        chain.parent[i] = (int8_t)(i - 1);
    chain.is_tree = 1;
    assert_int_equal(message_pack_proposal(*state, &chain).count, bytes + 2 + 8);
    assert_null(UNPACK(PACK(&chain), &got));
    assert_false(got.is_tree);
    chain.parent[5] = -1;
    assert_null(UNPACK(PACK(&chain), &got));
    assert_true(got.is_tree && got.parent[5] == -1 && got.parent[6] == 5);
}

static void test_message__packing_and_unpacking_allocate_nothing(void **state)
{
    struct source source = {8};
    struct proposal proposal = any_proposal(&source, MESSAGE_MAX_DRAFT, 256), offered;
    struct open_message open = any_open(&source), opened;
    struct commit commit = any_commit(&source), committed;
    struct hello hello = any_hello(&source), met;
    long before = allocations;

    if (!COUNTS_ALLOCATIONS)
        skip();
    for (int i = 0; i < 100; i++) {
        assert_null(UNPACK(PACK(&proposal), &offered));
        assert_null(UNPACK(PACK(&open), &opened));
        assert_null(UNPACK(PACK(&commit), &committed));
        assert_null(UNPACK(PACK(&hello), &met));
    }
    assert_int_equal(allocations, before);
    void *volatile some = malloc(1); /* the compiler must not see that nobody needs it */
    free(some);
    assert_true(allocations > before);
}

/* Refusals: each case is a message with one thing wrong, and the reason. A case that fails is told by its line. */

static const char *verdict(const char *reason)
{
    return reason == NULL ? "taken" : reason;
}

/* Of `good` with this change of one of its members. */
#define SAYS(reason, change)                                                                                                               \
    do {                                                                                                                                   \
        bad = good;                                                                                                                        \
        bad.change;                                                                                                                        \
        assert_string_equal(verdict(UNPACK(PACK(&bad), &got)), reason);                                                                    \
    } while (0)

/* A payload written by hand: its head, and then `times` times its tail. */
struct payload {
    const unsigned char *head, *tail;
    size_t head_count, tail_count;
    int times;
};

static struct frame by_hand(enum message_type type, struct payload payload)
{
    static unsigned char bytes[1 << 16];
    unsigned char *at = bytes + HEADER;

    memcpy(at, payload.head, payload.head_count);
    at += payload.head_count;
    for (int i = 0; i < payload.times; i++, at += payload.tail_count)
        memcpy(at, payload.tail, payload.tail_count);
    memcpy(bytes, (unsigned char[]){'T', 'D', MESSAGE_VERSION, (unsigned char)type}, 4);
    for (int i = 0; i < 4; i++)
        bytes[4 + i] = (unsigned char)((size_t)(at - bytes - HEADER) >> 8 * i);
    return (struct frame){bytes, (size_t)(at - bytes)};
}

#define BYTES(...)                      ((const unsigned char[]){__VA_ARGS__})
#define HEAD(...)                       .head = BYTES(__VA_ARGS__), .head_count = sizeof(BYTES(__VA_ARGS__))
#define TAIL(count, ...)                .times = (count), .tail = BYTES(__VA_ARGS__), .tail_count = sizeof(BYTES(__VA_ARGS__))
#define REFUSED(type, out, reason, ...) assert_string_equal(verdict(UNPACK(by_hand(type, (struct payload){__VA_ARGS__}), out)), reason)

static void test_message__bad_frames_are_refused(void **state)
{
    const struct close_message sent = {.run = 1, .request = 2};
    struct frame frame = PACK(&sent);
    unsigned char *byte = (unsigned char *)frame.bytes;
    struct close_message got;

/* With this one byte of its header changed. */
#define PATCHED(reason, at, value)                                                                                                         \
    do {                                                                                                                                   \
        PACK(&sent);                                                                                                                       \
        byte[at] = (value);                                                                                                                \
        assert_string_equal(verdict(UNPACK(frame, &got)), reason);                                                                         \
    } while (0)
    PATCHED("a frame has the wrong magic", 0, 'X');
    PATCHED("a frame has the wrong magic", 1, 'X');
    PATCHED("a frame is of another version", 2, MESSAGE_VERSION + 1);
    PATCHED("a frame is of another type", 3, MESSAGE_OPEN);
    PATCHED("a frame is of another type", 3, 0);
    PATCHED("a frame's length is not what it says", 4, 1);
    PATCHED("a frame's length is not what it says", 7, 0x80);
#undef PATCHED
    PACK(&sent);
    for (size_t count = 0; count < frame.count; count++)
        assert_int_equal(message_type((struct frame){frame.bytes, count}), 0);
    assert_string_equal(verdict(UNPACK(((struct frame){frame.bytes, 7}), &got)), "a frame is shorter than its header");
    assert_string_equal(verdict(UNPACK(((struct frame){frame.bytes, message_frame_limit() + 1}), &got)),
                        "a frame is longer than any message");
    byte[3] = MESSAGE_TYPES + 1;
    assert_int_equal(message_type(frame), 0);
}

static void test_message__payloads_that_packing_never_makes_are_refused(void **state)
{
    struct close_message close;
    struct failure failure;
    struct commit commit;
    struct proposal proposal;
    struct open_message open;

    REFUSED(MESSAGE_CLOSE, &close, "a field is unknown", HEAD(3 << 3, 1));
    REFUSED(MESSAGE_CLOSE, &close, "a field is unknown", HEAD(0, 1));
    REFUSED(MESSAGE_CLOSE, &close, "a field is unknown", HEAD(0x90, 1, 1));
    REFUSED(MESSAGE_CLOSE, &close, "a field has the wrong wire type", HEAD(2 << 3 | 1, 1));
    REFUSED(MESSAGE_CLOSE, &close, "a field is cut off", HEAD(1 << 3 | 1, 1));
    REFUSED(MESSAGE_CLOSE, &close, "a field comes too often", HEAD(2 << 3, 1, 2 << 3, 1));
    REFUSED(MESSAGE_CLOSE, &close, "a number is cut off or too large", HEAD(2 << 3, 0x80));
    REFUSED(MESSAGE_CLOSE, &close, "a number is cut off or too large", HEAD(2 << 3, 0xff, 0xff, 0xff, 0xff, 0x1f));
    REFUSED(MESSAGE_CLOSE, &close, "a number is cut off or too large", HEAD(2 << 3, 0x80, 0x80, 0x80, 0x80, 0x80, 0));
    REFUSED(MESSAGE_FAILURE, &failure, "a length goes beyond the end", HEAD(2 << 3 | 2, 2, 'a'));
    REFUSED(MESSAGE_FAILURE, &failure, "a text holds NUL", HEAD(2 << 3 | 2, 2, 'a', 0));
    REFUSED(MESSAGE_FAILURE, &failure, "a text is too long", HEAD(2 << 3 | 2, 0x80, 0x02), TAIL(256, 'a'));
    REFUSED(MESSAGE_COMMIT, &commit, "a list ends inside a number", HEAD(5 << 3 | 2, 1, 0x80));
    REFUSED(MESSAGE_COMMIT, &commit, "a list is too long", HEAD(5 << 3 | 2, MESSAGE_MAX_COMMIT + 1), TAIL(MESSAGE_MAX_COMMIT + 1, 1));
    /* Eleven bytes of one number in a list pass the walk, which counts, and not protobuf-c. */
    REFUSED(MESSAGE_COMMIT, &commit, "a message does not unpack",
            HEAD(5 << 3 | 2, 11, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1));
    REFUSED(MESSAGE_PROPOSAL, &proposal, "a field comes too often", HEAD(6 << 3 | 2, 0), TAIL(MESSAGE_MAX_DRAFT, 6 << 3 | 2, 0));
    /* Nesting beyond the schema's: a submessage in a place that has none. */
    REFUSED(MESSAGE_PROPOSAL, &proposal, "a field is unknown", HEAD(6 << 3 | 2, 4, 6 << 3 | 2, 2, 1 << 3, 1));
    REFUSED(MESSAGE_PROPOSAL, &proposal, "a support has not as many weights as ids", HEAD(6 << 3 | 2, 5, 2 << 3 | 2, 1, 3, 1 << 3, 3));
    REFUSED(MESSAGE_PROPOSAL, &proposal, "a tree has not as many parents as tokens", HEAD(6 << 3 | 2, 2, 1 << 3, 3, 8 << 3 | 2, 2, 0, 1));
    REFUSED(MESSAGE_PROPOSAL, &proposal, "a parent does not come before its child", HEAD(6 << 3 | 2, 2, 1 << 3, 3, 8 << 3 | 2, 1, 1));
    REFUSED(MESSAGE_PROPOSAL, &proposal, "a list is too long", HEAD(8 << 3 | 2, MESSAGE_MAX_DRAFT + 1), TAIL(MESSAGE_MAX_DRAFT + 1, 0));
    REFUSED(MESSAGE_OPEN, &open, "sampling parameters are missing", HEAD(4 << 3 | 2, 1, 7));
}

static void test_message__hellos_out_of_range_are_refused(void **state)
{
    struct source source = {9};
    struct hello good = any_hello(&source), bad, got;

    good.role = ROLE_VERIFIER;
    good.vocab_size = 100;
    good.bos = 1;
    good.eos = 99;
    SAYS("taken", role = ROLE_VERIFIER);
    SAYS("a role is unknown", role = 2);
    SAYS("a vocabulary's size is out of range", vocab_size = 0);
    SAYS("a vocabulary's size is out of range", vocab_size = UINT32_MAX);
    SAYS("a special token is outside the vocabulary", bos = -2);
    SAYS("a special token is outside the vocabulary", bos = 100);
    SAYS("a special token is outside the vocabulary", eos = 100);
    SAYS("a context's length is out of range", context = 0);
    SAYS("a context's length is out of range", context = UINT32_MAX);
    good.role = ROLE_DRAFTER; /* it may have no model, and then no vocabulary */
    SAYS("a special token is outside the vocabulary", vocab_size = 0);
    good = (struct hello){.role = ROLE_DRAFTER, .bos = -1, .eos = -1, .context = 1};
    SAYS("taken", vocab_size = 0);
}

static void test_message__opens_out_of_range_are_refused(void **state)
{
    static const int32_t inside[] = {0, 5, VOCAB - 1}, outside[] = {0, 5, VOCAB}, negative[] = {0, -1, 5};
    struct open_message good = {.prompt_count = 2, .tokens = inside, .count = 3, .sampling = sampling_default, .limit = 3}, bad, got;

    SAYS("taken", count = 3);
    SAYS("a request has no tokens", count = 0);
    SAYS("a prompt's length does not agree with the tokens", prompt_count = 0);
    SAYS("a prompt's length does not agree with the tokens", prompt_count = 4);
    SAYS("a token is outside the vocabulary", tokens = outside);
    SAYS("a token is outside the vocabulary", tokens = negative);
    SAYS("a draft length is out of range", draft_length = MESSAGE_MAX_DRAFT + 1);
    SAYS("taken", shape = TREE_IID);
    SAYS("a tree's shape is unknown", shape = TREE_AUTO);
    SAYS("a length limit is out of range", limit = 2);
    SAYS("a length limit is out of range", limit = MESSAGE_MAX_TOKENS + 1);
    SAYS("sampling parameters are out of range", sampling.temperature = (double)NAN);
    SAYS("sampling parameters are out of range", sampling.temperature = (double)INFINITY);
    SAYS("sampling parameters are out of range", sampling.top_p = 0);
    SAYS("sampling parameters are out of range", sampling.min_p = -0.5);
    SAYS("sampling parameters are out of range", sampling.repetition_penalty = (double)NAN);
    SAYS("sampling parameters are out of range", sampling.lenience = 0);
    SAYS("sampling parameters are out of range", sampling.threshold = 1);
    SAYS("sampling parameters are out of range", sampling.typical_epsilon = 1.5);
    SAYS("sampling parameters are out of range", sampling.typical_delta = -1);
    SAYS("sampling parameters are out of range", sampling.presence_penalty = 3);
    SAYS("sampling parameters are out of range", sampling.frequency_penalty = -3);
    SAYS("sampling parameters are out of range", sampling.top_k = -1);
    SAYS("sampling parameters are out of range", sampling.accept = ACCEPT_MODES);
    for (int vocab = -1; vocab <= 0; vocab++)
        assert_non_null(message_unpack_open(*state, PACK(&good), vocab, &got));
}

static void test_message__biases_out_of_range_are_refused(void **state)
{
    static const int32_t tokens[] = {1};
    struct open_message good = {.prompt_count = 1, .tokens = tokens, .count = 1, .sampling = sampling_default, .limit = 3}, bad, got;
    struct bias bias, spoiled;

    bias_init(&bias);
    bias_add_token(&bias, 3, 1);
    bias_add_token(&bias, 4, 1);
    bias.words = 1;
    bias.length[0] = 2;
    bias.word[0][0] = bias.word[0][1] = 5;
    bias.min_tokens = 1;
    bias.enders = 1;
    bias.ender[0] = VOCAB - 1;
    SAYS("taken", bias = &bias);
#define SPOILED(change)                                                                                                                    \
    do {                                                                                                                                   \
        spoiled = bias;                                                                                                                    \
        spoiled.change;                                                                                                                    \
        SAYS("token biases are out of range", bias = &spoiled);                                                                            \
    } while (0)
    SPOILED(token[1] = 3);
    SPOILED(token[1] = 2);
    SPOILED(token[1] = VOCAB);
    SPOILED(token[0] = -1);
    SPOILED(value[0] = (double)NAN);
    SPOILED(value[0] = (double)-INFINITY);
    SPOILED(value[1] = 101);
    SPOILED(length[0] = 0);
    SPOILED(word[0][1] = VOCAB);
    SPOILED(word[0][1] = -1);
    SPOILED(ender[0] = VOCAB);
    SPOILED(min_tokens = -1);
#undef SPOILED
    /* Longer than the block has room for: the walk sees it. */
    enum { WORDS = BIAS_MAX_WORDS + 1 };
    REFUSED(MESSAGE_OPEN, &got, "a field comes too often", HEAD(8 << 3 | 2, (2 * WORDS & 0x7f) | 0x80, 2 * WORDS >> 7),
            TAIL(WORDS, 2 << 3 | 2, 0));
    REFUSED(MESSAGE_OPEN, &got, "a list is too long",
            HEAD(8 << 3 | 2, BIAS_MAX_WORD + 5, 2 << 3 | 2, BIAS_MAX_WORD + 3, 1 << 3 | 2, BIAS_MAX_WORD + 1), TAIL(BIAS_MAX_WORD + 1, 1));
}

static void test_message__commits_out_of_range_are_refused(void **state)
{
    static const int32_t inside[] = {0, VOCAB - 1}, outside[] = {0, VOCAB};
    struct commit good = {.old_length = 10, .accepted = 1, .tokens = inside, .count = 2, .keep = 11}, bad, got;

    SAYS("taken", count = 2);
    SAYS("a token is outside the vocabulary", tokens = outside);
    SAYS("a committed length is out of range", old_length = MESSAGE_MAX_TOKENS - 1);
    SAYS("a committed length is out of range", old_length = UINT32_MAX);
    SAYS("more tokens are accepted than committed", accepted = 3);
    SAYS("a truncation point is beyond the committed tokens", keep = 13);
    SAYS("a draft length is out of range", draft_length = MESSAGE_MAX_DRAFT + 1);
    SAYS("taken", shape = TREE_IID);
    SAYS("a tree's shape is unknown", shape = TREE_AUTO);
    SAYS("taken", worth = MESSAGE_MOST_WORTH);
    SAYS("a probability is out of range", worth = MESSAGE_MOST_WORTH + 1);
    SAYS("taken", price = MESSAGE_MOST_WORTH);
    SAYS("a probability is out of range", price = MESSAGE_MOST_WORTH + 1);
    good.own = outside;
    SAYS("a token is outside the vocabulary", owns = 2);
    SAYS("taken", owns = 1);
}

static void test_message__proposals_out_of_range_are_refused(void **state)
{
    static const int32_t id[] = {3, 10, 500};
    static const uint32_t weight[] = {1, 65534, 1};
    struct proposal good = {.base_length = 5, .count = 2, .token = {7, 10}, .q[1] = {.count = 3, .id = id, .weight = weight}}, bad, got;

#define IDS(...)     q[1].id = ((const int32_t[]){__VA_ARGS__})
#define WEIGHTS(...) q[1].weight = ((const uint32_t[]){__VA_ARGS__})
    SAYS("taken", count = 2);
    SAYS("a base length is out of range", base_length = MESSAGE_MAX_TOKENS + 1);
    SAYS("more tokens were drafted beforehand than there are", ahead = 3);
    SAYS("a token is outside the vocabulary", token[0] = VOCAB);
    SAYS("a token is outside the vocabulary", token[0] = -1);
    SAYS("a drafted token is not in its own support", token[1] = 11);
    SAYS("a support's ids do not rise", IDS(3, 3, 500));
    SAYS("a support's id is outside the vocabulary", IDS(3, 2, 500)); /* a fall is a gap of nearly 2^32 on the wire */
    SAYS("a support's id is outside the vocabulary", IDS(3, 10, VOCAB));
    SAYS("a support has a weight of 0", WEIGHTS(0, 65534, 1));
    SAYS("a support's weights have the wrong sum", WEIGHTS(2, 65534, 1));
    SAYS("a support's weights have the wrong sum", WEIGHTS(UINT32_MAX, 65534, 3)); /* 2^32 + 65536 in all: not to be taken modulo 2^32 */
#undef IDS
#undef WEIGHTS
}

static void test_message__a_refusal_leaves_the_output_untouched(void **state)
{
    struct source source = {10};
    struct proposal p = any_proposal(&source, 3, 5), got, before;

    memset(&got, 0x5a, sizeof got);
    before = got;
    p.base_length = MESSAGE_MAX_TOKENS + 1;
    assert_non_null(UNPACK(PACK(&p), &got));
    assert_memory_equal(&got, &before, sizeof got);
}

/* Mutated frames: whatever is accepted must hold all that message.h promises. */

static void assert_good_proposal(const struct proposal *p)
{
    assert_in_range(p->count, 0, MESSAGE_MAX_DRAFT);
    for (int i = 0; i < p->count; i++) {
        const struct support *q = &p->q[i];
        uint64_t sum = 0;
        int own = q->count == 0;

        assert_in_range(p->token[i], 0, VOCAB - 1);
        assert_true(!p->is_tree || (p->parent[i] >= -1 && p->parent[i] < i));
        assert_in_range(q->count, 0, MESSAGE_MAX_SUPPORT);
        for (int j = 0; j < q->count; j++) {
            assert_in_range(q->id[j], j > 0 ? q->id[j - 1] + 1 : 0, VOCAB - 1);
            assert_in_range(q->weight[j], 1, MESSAGE_Q_SUM);
            sum += q->weight[j];
            own |= q->id[j] == p->token[i];
        }
        assert_true(own && (q->count == 0 || sum == MESSAGE_Q_SUM));
    }
}

static void assert_good_open(const struct open_message *open)
{
    char reason[200];

    assert_in_range(open->count, 1, MESSAGE_MAX_TOKENS);
    assert_in_range(open->prompt_count, 1, open->count);
    assert_in_range(open->limit, open->count, MESSAGE_MAX_TOKENS);
    assert_int_equal(sampling_check(&open->sampling, reason, sizeof reason), STATUS_OK);
    for (int i = 0; i < open->count; i++)
        assert_in_range(open->tokens[i], 0, VOCAB - 1);
    assert_true(open->bias == NULL || bias_check(open->bias, VOCAB, reason, sizeof reason) == STATUS_OK);
}

static void assert_good_commit(const struct commit *commit)
{
    assert_in_range(commit->count, 0, MESSAGE_MAX_COMMIT);
    assert_in_range(commit->accepted, 0, commit->count);
    assert_in_range(commit->keep, 0, commit->old_length + (uint32_t)commit->count);
    assert_in_range(commit->draft_length, 0, MESSAGE_MAX_DRAFT);
    assert_in_range(commit->worth, 0, MESSAGE_MOST_WORTH);
    assert_in_range(commit->price, 0, MESSAGE_MOST_WORTH);
    for (int i = 0; i < commit->count; i++)
        assert_in_range(commit->tokens[i], 0, VOCAB - 1);
    assert_in_range(commit->owns, 0, MESSAGE_MAX_COMMIT);
    for (int i = 0; i < commit->owns; i++)
        assert_in_range(commit->own[i], 0, VOCAB - 1);
}

static void assert_good_hello(const struct hello *hello)
{
    assert_in_range(hello->role, 0, ROLE_VERIFIER);
    assert_true(hello->bos < (int64_t)hello->vocab_size && hello->eos < (int64_t)hello->vocab_size);
    assert_non_null(memchr(hello->program, 0, sizeof hello->program));
    assert_non_null(memchr(hello->model, 0, sizeof hello->model));
    assert_non_null(memchr(hello->host, 0, sizeof hello->host));
    assert_non_null(memchr(hello->device, 0, sizeof hello->device));
}

/* Returns whether any unpacker took the frame. */
static int unpack_all(void **state, struct frame frame)
{
    struct hello hello;
    struct open_message open;
    struct close_message close;
    struct proposal proposal;
    struct commit commit;
    struct failure failure;
    uint64_t run;
    int taken = 0;

    if (UNPACK(frame, &hello) == NULL)
        assert_good_hello(&hello), taken++;
    if (UNPACK(frame, &open) == NULL)
        assert_good_open(&open), taken++;
    if (UNPACK(frame, &close) == NULL)
        taken++;
    if (UNPACK(frame, &proposal) == NULL)
        assert_good_proposal(&proposal), taken++;
    if (UNPACK(frame, &commit) == NULL)
        assert_good_commit(&commit), taken++;
    if (UNPACK(frame, &failure) == NULL)
        assert_non_null(memchr(failure.text, 0, sizeof failure.text)), taken++;
    if (message_unpack_plain(*state, frame, &run) == NULL)
        taken++;
    assert_true(taken <= 1);
    return taken;
}

/* A value as something that has an address. */
#define KEPT(structure, value) ((structure[]){value})

static struct frame any_frame(void **state, struct source *source)
{
    switch (1 + below(source, MESSAGE_TYPES)) {
    case MESSAGE_HELLO:
        return PACK(KEPT(struct hello, any_hello(source)));
    case MESSAGE_OPEN: {
        struct open_message open = any_open(source);
        open.count = 1 + open.count % 40;
        open.prompt_count = 1;
        return PACK(&open);
    }
    case MESSAGE_PROPOSAL:
        return PACK(KEPT(struct proposal, any_proposal(source, (int)below(source, 6), (int)below(source, 20))));
    case MESSAGE_COMMIT:
        return PACK(KEPT(struct commit, any_commit(source)));
    case MESSAGE_FAILURE:
        return PACK((&(struct failure){.code = 7, .text = "out of memory"}));
    case MESSAGE_CLOSE:
        return PACK(KEPT(struct close_message, any_close(source)));
    default:
        return message_pack_plain(*state, MESSAGE_HEARTBEAT, draw(source));
    }
}

/* Changes some bytes behind the header, and the length now and then; keeps the header true, so that the walk is reached. */
static size_t mutate(struct source *source, unsigned char *bytes, size_t count)
{
    uint32_t changes = below(source, 4);

    if (below(source, 4) == 0)
        count = HEADER + below(source, (uint32_t)(count - HEADER + 1));
    for (uint32_t i = 0; i < changes && count > HEADER; i++) {
        size_t at = HEADER + below(source, (uint32_t)(count - HEADER));

        unsigned changed = below(source, 2) ? (unsigned)draw(source) : bytes[at] ^ 1u << below(source, 8);

        bytes[at] = (unsigned char)changed;
    }
    for (int i = 0; i < 4; i++)
        bytes[4 + i] = (unsigned char)((count - HEADER) >> 8 * i);
    if (below(source, 8) == 0)
        bytes[below(source, HEADER)] = (unsigned char)draw(source);
    return count;
}

static void test_message__mutated_frames_are_refused_or_good(void **state)
{
    struct source source = {11};
    int taken = 0;

    for (int i = 0; i < FRAMES; i++) {
        struct frame frame = any_frame(state, &source);
        unsigned char *bytes = malloc(frame.count); /* of its own, so that a sanitizer sees a read beyond its end */

        assert_non_null(bytes);
        memcpy(bytes, frame.bytes, frame.count);
        if (i % 10 == 0)
            for (size_t at = HEADER; at < frame.count; at++)
                bytes[at] = (unsigned char)draw(&source);
        else
            frame.count = mutate(&source, bytes, frame.count);
        bytes = realloc(bytes, frame.count);
        assert_non_null(bytes);
        taken += unpack_all(state, (struct frame){bytes, frame.count});
        free(bytes);
    }
    /* Neither all nor none: the mutations reach behind the first check. */
    assert_in_range(taken, FRAMES / 20, FRAMES - FRAMES / 20);
}

#define FACT(name) cmocka_unit_test_setup_teardown(name, open_space, close_space)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FACT(test_message__hello_round_trips),
        FACT(test_message__open_round_trips),
        FACT(test_message__proposal_round_trips),
        FACT(test_message__a_chain_is_sent_without_parents),
        FACT(test_message__commit_round_trips),
        FACT(test_message__short_messages_round_trip),
        FACT(test_message__largest_messages_fit),
        FACT(test_message__usual_messages_are_below_the_eager_limits),
        FACT(test_message__packing_and_unpacking_allocate_nothing),
        FACT(test_message__bad_frames_are_refused),
        FACT(test_message__payloads_that_packing_never_makes_are_refused),
        FACT(test_message__hellos_out_of_range_are_refused),
        FACT(test_message__opens_out_of_range_are_refused),
        FACT(test_message__biases_out_of_range_are_refused),
        FACT(test_message__commits_out_of_range_are_refused),
        FACT(test_message__proposals_out_of_range_are_refused),
        FACT(test_message__a_refusal_leaves_the_output_untouched),
        FACT(test_message__mutated_frames_are_refused_or_good),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
