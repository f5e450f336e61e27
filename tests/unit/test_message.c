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
    struct open_message open = {.run = draw(source), .request = any32(source), .sampling = sampling_default};

    open.count = 1 + (int)below(source, 3000);
    open.tokens = any_tokens(source, open.count);
    open.prompt_count = 1 + below(source, (uint32_t)open.count);
    open.draft_length = below(source, MESSAGE_MAX_DRAFT + 1);
    open.limit = (uint32_t)open.count + below(source, 5000);
    open.sampling.temperature = (double)below(source, 200) / 100;
    open.sampling.top_p = (double)(1 + below(source, 100)) / 100;
    open.sampling.min_p = (double)below(source, 100) / 100;
    open.sampling.presence_penalty = (double)below(source, 400) / 100 - 2;
    open.sampling.top_k = (int32_t)(any32(source) / 2);
    open.sampling.accept = (int32_t)below(source, 2);
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
    for (int i = 0; i < count; i++)
        if (support == 0)
            proposal.token[i] = (int32_t)below(source, VOCAB);
        else
            proposal.token[i] = any_support(source, support, id[i], weight[i], &proposal.q[i]);
    return proposal;
}

static void assert_same_open(const struct open_message *a, const struct open_message *b)
{
    assert_int_equal(a->run, b->run);
    assert_int_equal(a->request, b->request);
    assert_int_equal(a->prompt_count, b->prompt_count);
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->tokens, b->tokens, (size_t)a->count * sizeof *a->tokens);
    assert_int_equal(sampling_digest(&a->sampling), sampling_digest(&b->sampling));
    assert_int_equal(bias_is_empty(a->bias), bias_is_empty(b->bias));
    assert_int_equal(bias_digest(a->bias, 1), bias_digest(b->bias, 1));
    assert_int_equal(a->draft_length, b->draft_length);
    assert_int_equal(a->limit, b->limit);
}

static void assert_same_commit(const struct commit *a, const struct commit *b)
{
    assert_int_equal(a->run, b->run);
    assert_int_equal(a->request, b->request);
    assert_int_equal(a->old_length, b->old_length);
    assert_int_equal(a->accepted, b->accepted);
    assert_int_equal(a->count, b->count);
    if (a->count > 0)
        assert_memory_equal(a->tokens, b->tokens, (size_t)a->count * sizeof *a->tokens);
    assert_int_equal(a->keep, b->keep);
    assert_int_equal(a->digest, b->digest);
    assert_int_equal(a->finish, b->finish);
    assert_int_equal(a->draft_length, b->draft_length);
}

static void assert_same_proposal(const struct proposal *a, const struct proposal *b)
{
    assert_int_equal(a->run, b->run);
    assert_int_equal(a->request, b->request);
    assert_int_equal(a->base_length, b->base_length);
    assert_int_equal(a->base_digest, b->base_digest);
    assert_int_equal(a->sampling_digest, b->sampling_digest);
    assert_int_equal(a->draft_us, b->draft_us);
    assert_int_equal(a->count, b->count);
    for (int i = 0; i < a->count; i++) {
        size_t count = (size_t)a->q[i].count;

        assert_int_equal(a->token[i], b->token[i]);
        assert_int_equal(a->q[i].count, b->q[i].count);
        if (count == 0)
            continue;
        assert_memory_equal(a->q[i].id, b->q[i].id, count * sizeof *a->q[i].id);
        assert_memory_equal(a->q[i].weight, b->q[i].weight, count * sizeof *a->q[i].weight);
    }
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

static void test_message__hello_round_trips(void **state)
{
    struct source source = {1};

    for (int i = 0; i < ROUNDS; i++) {
        struct hello sent = any_hello(&source), got;
        struct frame frame = message_pack_hello(*state, &sent);

        memset(&got, 0, sizeof got);
        assert_int_equal(message_type(frame), MESSAGE_HELLO);
        assert_null(message_unpack_hello(*state, frame, &got));
        assert_memory_equal(&sent, &got, sizeof got);
    }
}

static void test_message__open_round_trips(void **state)
{
    struct source source = {2};

    for (int i = 0; i < ROUNDS; i++) {
        struct open_message sent = any_open(&source), got;
        struct frame frame = message_pack_open(*state, &sent);

        assert_int_equal(message_type(frame), MESSAGE_OPEN);
        assert_null(message_unpack_open(*state, frame, VOCAB, &got));
        assert_same_open(&sent, &got);
    }
}

static void test_message__proposal_round_trips(void **state)
{
    static const int support[] = {0, 1, 2, 37, 256, MESSAGE_MAX_SUPPORT};
    struct source source = {3};

    for (int count = 0; count <= MESSAGE_MAX_DRAFT; count++)
        for (int i = 0; i < 6; i++) {
            struct proposal sent = any_proposal(&source, count, support[i]), got;
            struct frame frame = message_pack_proposal(*state, &sent);

            assert_int_equal(message_type(frame), MESSAGE_PROPOSAL);
            assert_null(message_unpack_proposal(*state, frame, VOCAB, &got));
            assert_same_proposal(&sent, &got);
        }
}

static void test_message__commit_round_trips(void **state)
{
    struct source source = {4};

    for (int i = 0; i < ROUNDS; i++) {
        struct commit sent = any_commit(&source), got;
        struct frame frame = message_pack_commit(*state, &sent);

        assert_int_equal(message_type(frame), MESSAGE_COMMIT);
        assert_null(message_unpack_commit(*state, frame, VOCAB, &got));
        assert_same_commit(&sent, &got);
    }
}

static void test_message__short_messages_round_trip(void **state)
{
    struct source source = {5};

    for (int i = 0; i < ROUNDS; i++) {
        struct close_message sent = {.run = draw(&source), .request = any32(&source)}, got;
        struct failure failed = {.code = any32(&source)}, told;
        enum message_type type = (enum message_type[]){MESSAGE_HEARTBEAT, MESSAGE_SHUTDOWN, MESSAGE_DRAIN}[i % 3];
        uint64_t run;
        struct frame frame;

        any_text(&source, failed.text, sizeof failed.text);
        assert_null(message_unpack_close(*state, message_pack_close(*state, &sent), &got));
        assert_true(got.run == sent.run && got.request == sent.request);
        assert_null(message_unpack_failure(*state, message_pack_failure(*state, &failed), &told));
        assert_int_equal(told.code, failed.code);
        assert_string_equal(told.text, failed.text);
        frame = message_pack_plain(*state, type, sent.run);
        assert_int_equal(message_type(frame), type);
        assert_null(message_unpack_plain(*state, frame, &run));
        assert_int_equal(run, sent.run);
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
    assert_null(message_unpack_proposal(*state, message_pack_proposal(*state, &proposal), VOCAB, &offered));
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
    assert_true(message_pack_proposal(*state, &greedy).count < 256);
    assert_true(message_pack_proposal(*state, &usual).count < 16384);
    assert_true(message_pack_commit(*state, &commit).count < 256);
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
        assert_null(message_unpack_proposal(*state, message_pack_proposal(*state, &proposal), VOCAB, &offered));
        assert_null(message_unpack_open(*state, message_pack_open(*state, &open), VOCAB, &opened));
        assert_null(message_unpack_commit(*state, message_pack_commit(*state, &commit), VOCAB, &committed));
        assert_null(message_unpack_hello(*state, message_pack_hello(*state, &hello), &met));
    }
    assert_int_equal(allocations, before);
    void *volatile some = malloc(1); /* the compiler must not see that nobody needs it */
    free(some);
    assert_true(allocations > before);
}

/* Refusals: each case packs a message with one thing wrong and names the reason. */

static struct frame patch(struct frame frame, size_t at, unsigned char byte)
{
    ((unsigned char *)frame.bytes)[at] = byte;
    return frame;
}

/* A frame of `type` around a payload written by hand. */
static struct frame by_hand(enum message_type type, const unsigned char *payload, size_t count)
{
    static unsigned char bytes[1 << 16];

    memcpy(bytes, (unsigned char[]){'T', 'D', MESSAGE_VERSION, (unsigned char)type}, 4);
    for (int i = 0; i < 4; i++)
        bytes[4 + i] = (unsigned char)(count >> 8 * i);
    memcpy(bytes + HEADER, payload, count);
    return (struct frame){bytes, HEADER + count};
}
#define BY_HAND(type, ...) by_hand(type, (const unsigned char[]){__VA_ARGS__}, sizeof((const unsigned char[]){__VA_ARGS__}))

static void test_message__bad_frames_are_refused(void **state)
{
    struct close_message sent = {.run = 1, .request = 2}, got;
    struct frame frame = message_pack_close(*state, &sent);
    static const struct {
        int at;
        unsigned char byte;
        const char *reason;
    } cases[] = {
        {0, 'X', "a frame has the wrong magic"},
        {1, 'X', "a frame has the wrong magic"},
        {2, MESSAGE_VERSION + 1, "a frame is of another version"},
        {3, MESSAGE_OPEN, "a frame is of another type"},
        {3, 0, "a frame is of another type"},
        {4, 1, "a frame's length is not what it says"},
        {7, 0x80, "a frame's length is not what it says"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frame = patch(message_pack_close(*state, &sent), (size_t)cases[i].at, cases[i].byte);
        assert_string_equal(message_unpack_close(*state, frame, &got), cases[i].reason);
    }
    frame = message_pack_close(*state, &sent);
    for (size_t count = 0; count < frame.count; count++)
        assert_int_equal(message_type((struct frame){frame.bytes, count}), 0);
    assert_string_equal(message_unpack_close(*state, (struct frame){frame.bytes, 7}, &got), "a frame is shorter than its header");
    assert_string_equal(message_unpack_close(*state, (struct frame){frame.bytes, message_frame_limit() + 1}, &got),
                        "a frame is longer than any message");
    assert_int_equal(message_type(patch(message_pack_close(*state, &sent), 3, MESSAGE_TYPES + 1)), 0);
}

static void test_message__payloads_that_packing_never_makes_are_refused(void **state)
{
    struct close_message close;
    struct failure failure;
    struct commit commit;
    struct proposal proposal;
    struct open_message open;
    unsigned char long_text[300], many[3 + 2 * (MESSAGE_MAX_DRAFT + 1)], list[3 + MESSAGE_MAX_COMMIT + 1];

    assert_string_equal(message_unpack_close(*state, BY_HAND(MESSAGE_CLOSE, 3 << 3, 1), &close), "a field is unknown");
    assert_string_equal(message_unpack_close(*state, BY_HAND(MESSAGE_CLOSE, 0, 1), &close), "a field is unknown");
    assert_string_equal(message_unpack_close(*state, BY_HAND(MESSAGE_CLOSE, 0x90, 1, 1), &close), "a field is unknown");
    assert_string_equal(message_unpack_close(*state, BY_HAND(MESSAGE_CLOSE, 2 << 3 | 1, 1), &close), "a field has the wrong wire type");
    assert_string_equal(message_unpack_close(*state, BY_HAND(MESSAGE_CLOSE, 1 << 3 | 1, 1), &close), "a field is cut off");
    assert_string_equal(message_unpack_close(*state, BY_HAND(MESSAGE_CLOSE, 2 << 3, 1, 2 << 3, 1), &close), "a field comes too often");
    assert_string_equal(message_unpack_close(*state, BY_HAND(MESSAGE_CLOSE, 2 << 3, 0x80), &close), "a number is cut off or too large");
    assert_string_equal(message_unpack_close(*state, BY_HAND(MESSAGE_CLOSE, 2 << 3, 0xff, 0xff, 0xff, 0xff, 0x1f), &close),
                        "a number is cut off or too large");
    assert_string_equal(message_unpack_close(*state, BY_HAND(MESSAGE_CLOSE, 2 << 3, 0x80, 0x80, 0x80, 0x80, 0x80, 0), &close),
                        "a number is cut off or too large");
    assert_string_equal(message_unpack_failure(*state, BY_HAND(MESSAGE_FAILURE, 2 << 3 | 2, 2, 'a'), &failure),
                        "a length goes beyond the end");
    assert_string_equal(message_unpack_failure(*state, BY_HAND(MESSAGE_FAILURE, 2 << 3 | 2, 2, 'a', 0), &failure), "a text holds NUL");
    memset(long_text, 'a', sizeof long_text);
    memcpy(long_text, (unsigned char[]){2 << 3 | 2, 0x80, 0x02}, 3);
    assert_string_equal(message_unpack_failure(*state, by_hand(MESSAGE_FAILURE, long_text, 3 + 256), &failure), "a text is too long");
    assert_string_equal(message_unpack_commit(*state, BY_HAND(MESSAGE_COMMIT, 5 << 3 | 2, 1, 0x80), VOCAB, &commit),
                        "a list ends inside a number");
    memset(list, 1, sizeof list);
    memcpy(list, (unsigned char[]){5 << 3 | 2, MESSAGE_MAX_COMMIT + 1}, 2);
    assert_string_equal(message_unpack_commit(*state, by_hand(MESSAGE_COMMIT, list, 2 + MESSAGE_MAX_COMMIT + 1), VOCAB, &commit),
                        "a list is too long");
    /* Eleven bytes of one number in a list pass the walk, which counts, and not protobuf-c. */
    assert_string_equal(
        message_unpack_commit(
            *state, BY_HAND(MESSAGE_COMMIT, 5 << 3 | 2, 11, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1), VOCAB, &commit),
        "a message does not unpack");
    for (int i = 0; i <= MESSAGE_MAX_DRAFT; i++)
        memcpy(many + 2 * i, (unsigned char[]){6 << 3 | 2, 0}, 2);
    assert_string_equal(message_unpack_proposal(*state, by_hand(MESSAGE_PROPOSAL, many, 2 * (MESSAGE_MAX_DRAFT + 1)), VOCAB, &proposal),
                        "a field comes too often");
    /* Nesting beyond the schema's: a submessage in a place that has none. */
    assert_string_equal(
        message_unpack_proposal(*state, BY_HAND(MESSAGE_PROPOSAL, 6 << 3 | 2, 4, 6 << 3 | 2, 2, 1 << 3, 1), VOCAB, &proposal),
        "a field is unknown");
    assert_string_equal(message_unpack_open(*state, BY_HAND(MESSAGE_OPEN, 4 << 3 | 2, 1, 7), VOCAB, &open),
                        "sampling parameters are missing");
}

static void test_message__hellos_out_of_range_are_refused(void **state)
{
    struct source source = {9};
    struct hello good = any_hello(&source), bad, got;

    good.role = ROLE_VERIFIER;
    good.vocab_size = 100;
    good.bos = 1;
    good.eos = 99;
#define REFUSED(change, reason)                                                                                                            \
    do {                                                                                                                                   \
        bad = good;                                                                                                                        \
        bad.change;                                                                                                                        \
        assert_string_equal(message_unpack_hello(*state, message_pack_hello(*state, &bad), &got), reason);                                 \
    } while (0)
    assert_null(message_unpack_hello(*state, message_pack_hello(*state, &good), &got));
    REFUSED(role = 2, "a role is unknown");
    REFUSED(vocab_size = 0, "a vocabulary's size is out of range");
    good.role = ROLE_DRAFTER; /* it may have no model, and then no vocabulary */
    REFUSED(vocab_size = 0, "a special token is outside the vocabulary");
    bad = (struct hello){.role = ROLE_DRAFTER, .bos = -1, .eos = -1, .context = 1};
    assert_null(message_unpack_hello(*state, message_pack_hello(*state, &bad), &got));
    good.role = ROLE_VERIFIER;
    REFUSED(vocab_size = UINT32_MAX, "a vocabulary's size is out of range");
    REFUSED(bos = -2, "a special token is outside the vocabulary");
    REFUSED(bos = 100, "a special token is outside the vocabulary");
    REFUSED(eos = 100, "a special token is outside the vocabulary");
    REFUSED(context = 0, "a context's length is out of range");
    REFUSED(context = UINT32_MAX, "a context's length is out of range");
#undef REFUSED
}

static void test_message__opens_out_of_range_are_refused(void **state)
{
    static const int32_t inside[] = {0, 5, VOCAB - 1}, outside[] = {0, 5, VOCAB}, negative[] = {0, -1, 5};
    struct open_message good = {.prompt_count = 2, .tokens = inside, .count = 3, .sampling = sampling_default, .limit = 3}, bad, got;

#define REFUSED(change, reason)                                                                                                            \
    do {                                                                                                                                   \
        bad = good;                                                                                                                        \
        bad.change;                                                                                                                        \
        assert_string_equal(message_unpack_open(*state, message_pack_open(*state, &bad), VOCAB, &got), reason);                            \
    } while (0)
    assert_null(message_unpack_open(*state, message_pack_open(*state, &good), VOCAB, &got));
    REFUSED(count = 0, "a request has no tokens");
    REFUSED(prompt_count = 0, "a prompt's length does not agree with the tokens");
    REFUSED(prompt_count = 4, "a prompt's length does not agree with the tokens");
    REFUSED(tokens = outside, "a token is outside the vocabulary");
    REFUSED(tokens = negative, "a token is outside the vocabulary");
    REFUSED(draft_length = MESSAGE_MAX_DRAFT + 1, "a draft length is out of range");
    REFUSED(limit = 2, "a length limit is out of range");
    REFUSED(limit = MESSAGE_MAX_TOKENS + 1, "a length limit is out of range");
    REFUSED(sampling.temperature = (double)NAN, "sampling parameters are out of range");
    REFUSED(sampling.temperature = (double)INFINITY, "sampling parameters are out of range");
    REFUSED(sampling.top_p = 0, "sampling parameters are out of range");
    REFUSED(sampling.min_p = -0.5, "sampling parameters are out of range");
    REFUSED(sampling.repetition_penalty = (double)NAN, "sampling parameters are out of range");
    REFUSED(sampling.presence_penalty = 3, "sampling parameters are out of range");
    REFUSED(sampling.frequency_penalty = -3, "sampling parameters are out of range");
    REFUSED(sampling.top_k = -1, "sampling parameters are out of range");
    REFUSED(sampling.accept = 2, "sampling parameters are out of range");
#undef REFUSED
    for (int vocab = -1; vocab <= 0; vocab++)
        assert_non_null(message_unpack_open(*state, message_pack_open(*state, &good), vocab, &got));
}

static void test_message__biases_out_of_range_are_refused(void **state)
{
    static const int32_t tokens[] = {1};
    struct open_message open = {.prompt_count = 1, .tokens = tokens, .count = 1, .sampling = sampling_default, .limit = 3}, got;
    struct bias good, bad;
    unsigned char many[3 + 2 * (BIAS_MAX_WORDS + 1)], list[7 + BIAS_MAX_WORD];

    bias_init(&good);
    bias_add_token(&good, 3, 1);
    bias_add_token(&good, 4, 1);
    good.words = 1;
    good.length[0] = 2;
    good.word[0][0] = good.word[0][1] = 5;
    good.min_tokens = 1;
    good.enders = 1;
    good.ender[0] = VOCAB - 1;
#define REFUSED(change)                                                                                                                    \
    do {                                                                                                                                   \
        bad = good;                                                                                                                        \
        bad.change;                                                                                                                        \
        open.bias = &bad;                                                                                                                  \
        assert_string_equal(message_unpack_open(*state, message_pack_open(*state, &open), VOCAB, &got), "token biases are out of range");  \
    } while (0)
    open.bias = &good;
    assert_null(message_unpack_open(*state, message_pack_open(*state, &open), VOCAB, &got));
    REFUSED(token[1] = 3);
    REFUSED(token[1] = 2);
    REFUSED(token[1] = VOCAB);
    REFUSED(token[0] = -1);
    REFUSED(value[0] = (double)NAN);
    REFUSED(value[0] = (double)-INFINITY);
    REFUSED(value[1] = 101);
    REFUSED(length[0] = 0);
    REFUSED(word[0][1] = VOCAB);
    REFUSED(word[0][1] = -1);
    REFUSED(ender[0] = VOCAB);
    REFUSED(min_tokens = -1);
#undef REFUSED
    /* Longer than the block has room for: the walk sees it. */
    memcpy(many, (unsigned char[]){8 << 3 | 2, (2 * (BIAS_MAX_WORDS + 1) & 0x7f) | 0x80, 2 * (BIAS_MAX_WORDS + 1) >> 7}, 3);
    for (int i = 0; i <= BIAS_MAX_WORDS; i++)
        memcpy(many + 3 + 2 * i, (unsigned char[]){2 << 3 | 2, 0}, 2);
    assert_string_equal(message_unpack_open(*state, by_hand(MESSAGE_OPEN, many, sizeof many), VOCAB, &got), "a field comes too often");
    memset(list, 1, sizeof list);
    memcpy(list, (unsigned char[]){8 << 3 | 2, BIAS_MAX_WORD + 5, 2 << 3 | 2, BIAS_MAX_WORD + 3, 1 << 3 | 2, BIAS_MAX_WORD + 1}, 6);
    assert_string_equal(message_unpack_open(*state, by_hand(MESSAGE_OPEN, list, sizeof list), VOCAB, &got), "a list is too long");
}

static void test_message__commits_out_of_range_are_refused(void **state)
{
    static const int32_t inside[] = {0, VOCAB - 1}, outside[] = {0, VOCAB};
    struct commit good = {.old_length = 10, .accepted = 1, .tokens = inside, .count = 2, .keep = 11}, bad, got;

#define REFUSED(change, reason)                                                                                                            \
    do {                                                                                                                                   \
        bad = good;                                                                                                                        \
        bad.change;                                                                                                                        \
        assert_string_equal(message_unpack_commit(*state, message_pack_commit(*state, &bad), VOCAB, &got), reason);                        \
    } while (0)
    assert_null(message_unpack_commit(*state, message_pack_commit(*state, &good), VOCAB, &got));
    REFUSED(tokens = outside, "a token is outside the vocabulary");
    REFUSED(old_length = MESSAGE_MAX_TOKENS - 1, "a committed length is out of range");
    REFUSED(old_length = UINT32_MAX, "a committed length is out of range");
    REFUSED(accepted = 3, "more tokens are accepted than committed");
    REFUSED(keep = 13, "a truncation point is beyond the committed tokens");
    REFUSED(draft_length = MESSAGE_MAX_DRAFT + 1, "a draft length is out of range");
#undef REFUSED
}

static const char *refusal(void *space, const struct proposal *proposal)
{
    struct proposal got;

    return message_unpack_proposal(space, message_pack_proposal(space, proposal), VOCAB, &got);
}

static void test_message__proposals_out_of_range_are_refused(void **state)
{
    int32_t id[] = {3, 10, 500};
    uint32_t weight[] = {1, 65534, 1};
    struct proposal p = {.base_length = 5, .count = 2, .token = {7, 10}, .q[1] = {.count = 3, .id = id, .weight = weight}}, got;
    static const unsigned char ragged[] = {6 << 3 | 2, 5, 2 << 3 | 2, 1, 3, 1 << 3, 3};

    assert_null(refusal(*state, &p));
    p.base_length = MESSAGE_MAX_TOKENS + 1;
    assert_string_equal(refusal(*state, &p), "a base length is out of range");
    p.base_length = 5;
    p.token[0] = VOCAB;
    assert_string_equal(refusal(*state, &p), "a token is outside the vocabulary");
    p.token[0] = -1;
    assert_string_equal(refusal(*state, &p), "a token is outside the vocabulary");
    p.token[0] = 7;
    p.token[1] = 11;
    assert_string_equal(refusal(*state, &p), "a drafted token is not in its own support");
    p.token[1] = 10;
    id[1] = 3;
    assert_string_equal(refusal(*state, &p), "a support's ids do not rise");
    id[1] = 2; /* a fall is a gap of nearly 2^32 on the wire */
    assert_string_equal(refusal(*state, &p), "a support's id is outside the vocabulary");
    id[1] = 10;
    id[2] = VOCAB;
    assert_string_equal(refusal(*state, &p), "a support's id is outside the vocabulary");
    id[2] = 500;
    weight[0] = 0;
    assert_string_equal(refusal(*state, &p), "a support has a weight of 0");
    weight[0] = 2;
    assert_string_equal(refusal(*state, &p), "a support's weights have the wrong sum");
    weight[0] = UINT32_MAX; /* 2^32 + 65536 in all: not to be taken modulo 2^32 */
    weight[2] = 3;
    assert_string_equal(refusal(*state, &p), "a support's weights have the wrong sum");
    assert_string_equal(message_unpack_proposal(*state, by_hand(MESSAGE_PROPOSAL, ragged, sizeof ragged), VOCAB, &got),
                        "a support has not as many weights as ids");
}

static void test_message__a_refusal_leaves_the_output_untouched(void **state)
{
    struct source source = {10};
    struct proposal p = any_proposal(&source, 3, 5), got, before;

    memset(&got, 0x5a, sizeof got);
    before = got;
    p.base_length = MESSAGE_MAX_TOKENS + 1;
    assert_non_null(message_unpack_proposal(*state, message_pack_proposal(*state, &p), VOCAB, &got));
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
    for (int i = 0; i < commit->count; i++)
        assert_in_range(commit->tokens[i], 0, VOCAB - 1);
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
static int unpack_all(void *space, struct frame frame)
{
    struct hello hello;
    struct open_message open;
    struct close_message close;
    struct proposal proposal;
    struct commit commit;
    struct failure failure;
    uint64_t run;
    int taken = 0;

    if (message_unpack_hello(space, frame, &hello) == NULL)
        assert_good_hello(&hello), taken++;
    if (message_unpack_open(space, frame, VOCAB, &open) == NULL)
        assert_good_open(&open), taken++;
    if (message_unpack_close(space, frame, &close) == NULL)
        taken++;
    if (message_unpack_proposal(space, frame, VOCAB, &proposal) == NULL)
        assert_good_proposal(&proposal), taken++;
    if (message_unpack_commit(space, frame, VOCAB, &commit) == NULL)
        assert_good_commit(&commit), taken++;
    if (message_unpack_failure(space, frame, &failure) == NULL)
        assert_non_null(memchr(failure.text, 0, sizeof failure.text)), taken++;
    if (message_unpack_plain(space, frame, &run) == NULL)
        taken++;
    assert_true(taken <= 1);
    return taken;
}

static struct frame any_frame(struct message_space *space, struct source *source)
{
    struct failure failure = {.code = 7, .text = "out of memory"};

    switch (1 + below(source, MESSAGE_TYPES)) {
    case MESSAGE_HELLO: {
        struct hello hello = any_hello(source);
        return message_pack_hello(space, &hello);
    }
    case MESSAGE_OPEN: {
        struct open_message open = any_open(source);
        open.count = 1 + open.count % 40;
        open.prompt_count = 1;
        return message_pack_open(space, &open);
    }
    case MESSAGE_PROPOSAL: {
        struct proposal proposal = any_proposal(source, (int)below(source, 6), (int)below(source, 20));
        return message_pack_proposal(space, &proposal);
    }
    case MESSAGE_COMMIT: {
        struct commit commit = any_commit(source);
        return message_pack_commit(space, &commit);
    }
    case MESSAGE_FAILURE:
        return message_pack_failure(space, &failure);
    case MESSAGE_CLOSE:
        return message_pack_close(space, &(struct close_message){.run = draw(source), .request = any32(source)});
    default:
        return message_pack_plain(space, MESSAGE_HEARTBEAT, draw(source));
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
        struct frame frame = any_frame(*state, &source);
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
        taken += unpack_all(*state, (struct frame){bytes, frame.count});
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
