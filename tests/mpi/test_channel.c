/* Three ranks: 0 is the lead, which receives most of the time; 1 and 2 are drafters. Every test ends in a barrier. */
#include "common/base/clock.h"
#include "common/wire/channel.h"
#include "common/world/world.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h> /* needs those above */

enum { MS = 1000000, LONGEST = 1 << 20, RENDEZVOUS = 100000 /* above the eager limits: not gone before it is received */ };

static struct world world;
static struct channel *channel;

static void barrier(void)
{
    assert_int_equal(MPI_Barrier(world.wire), MPI_SUCCESS);
}

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * (long)MS}, NULL);
}

/* The content of the frame that `from` sends as its number `number`. */
static void paint(unsigned char *bytes, size_t count, int from, int number)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)(i * 31 + i / 251 + (size_t)(from * 97 + number * 13));
}

static struct frame painted(size_t count, int from, int number)
{
    static unsigned char bytes[LONGEST];

    paint(bytes, count, from, number);
    return (struct frame){bytes, count};
}

static void assert_painted(struct frame frame, size_t count, int from, int number)
{
    static unsigned char expected[LONGEST];

    paint(expected, count, from, number);
    assert_int_equal(frame.count, count);
    assert_memory_equal(frame.bytes, expected, count);
}

/* 1, 2, 3, ... bytes, growing faster and faster up to 1 MiB, then small ones again. */
static size_t size_of(int number)
{
    double size = 1;

    for (int i = 0; i < number % 120; i++)
        size = size * 1.13 + 0.6;
    return size < LONGEST ? (size_t)size : LONGEST;
}

static void send_surely(int peer, struct frame frame)
{
    int taken = 0;

    while (!taken)
        assert_int_equal(channel_send(channel, peer, frame, &taken), STATUS_OK);
}

static void await(int *peer, struct frame *frame, int *refused)
{
    assert_int_equal(channel_wait(channel, clock_ns() + 20000 * (int64_t)MS, peer, frame, refused), STATUS_OK);
    assert_true(frame->count > 0 || *refused);
}

/* Sends what is left in the outbox on its way, which takes calls of MPI. */
static void settle(int peer)
{
    int64_t deadline = clock_ns() + 20000 * (int64_t)MS;

    while (channel_pending(channel, peer) > 0)
        assert_true(clock_ns() < deadline);
}

static void test_channel_mpi__frames_of_all_sizes_arrive_whole_and_in_order(void **state)
{
    enum { FRAMES = 360 };
    int next[3] = {0};

    (void)state;
    assert_int_equal(size_of(119), LONGEST);
    if (world.rank > 0) {
        for (int i = 0; i < FRAMES; i++)
            send_surely(0, painted(size_of(i), world.rank, i));
        settle(0);
    }
    for (int i = 0; world.rank == 0 && i < 2 * FRAMES; i++) {
        struct frame frame;
        int peer, refused;

        await(&peer, &frame, &refused);
        assert_int_equal(refused, 0);
        assert_in_range(peer, 1, 2);
        assert_painted(frame, size_of(next[peer]), peer, next[peer]);
        next[peer]++;
    }
    barrier();
}

/* A frame as long as that of eight drafts with 256 candidates each, and longer, is there although its sender does not look at MPI again before the
 * lead has it and says so by a signal. */
static void test_channel_mpi__a_proposal_with_its_q_is_sent_at_once(void **state)
{
    int peer, refused, pid = getpid(), signal = SIGRTMIN;
    struct frame frame;
    sigset_t told;

    (void)state;
    sigemptyset(&told);
    sigaddset(&told, signal);
    assert_int_equal(MPI_Bcast(&pid, 1, MPI_INT, 1, world.wire), MPI_SUCCESS);
    for (size_t count = 64; count < WORLD_EAGER_BYTES; count *= 2) {
        barrier();
        if (world.rank == 1) {
            send_surely(0, painted(count, 1, 0));
            assert_int_equal(sigtimedwait(&told, NULL, &(struct timespec){.tv_sec = 30}), signal);
        } else if (world.rank == 0) {
            await(&peer, &frame, &refused);
            assert_painted(frame, count, 1, 0);
            assert_int_equal(kill(pid, signal), 0);
        }
    }
    barrier();
}

static void test_channel_mpi__an_answer_comes_back(void **state)
{
    enum { ROUNDS = 2000 };

    (void)state;
    if (world.rank == 2) {
        barrier();
        return;
    }
    for (int i = 0; i < ROUNDS; i++) {
        size_t count = 1 + (size_t)i * 7 % 5000;
        struct frame frame;
        int peer, refused;

        if (world.rank == 0)
            send_surely(1, painted(count, 0, i));
        await(&peer, &frame, &refused);
        assert_painted(frame, count, 1 - world.rank, i);
        if (world.rank == 1)
            send_surely(0, painted(count, 1, i));
    }
    barrier();
}

/* A peer that breaks the rules, and keeps to them afterwards. */
static void test_channel_mpi__frames_that_cannot_be_are_refused(void **state)
{
    const size_t size[] = {message_frame_limit() + 1, 0, 20 << 20};

    (void)state;
    for (size_t i = 0; world.rank == 1 && i < 3; i++) {
        unsigned char *bytes = calloc(size[i] + 1, 1);

        assert_non_null(bytes);
        assert_int_equal(MPI_Send(bytes, (int)size[i], MPI_BYTE, 0, CHANNEL_TAG, world.wire), MPI_SUCCESS);
        free(bytes);
    }
    if (world.rank == 1)
        send_surely(0, painted(5000, 1, 4));
    for (int i = 0; world.rank == 0 && i < 4; i++) {
        struct frame frame;
        int peer, refused;

        await(&peer, &frame, &refused);
        assert_int_equal(peer, 1);
        assert_int_equal(refused, i < 3);
        if (i < 3)
            assert_int_equal(frame.count, 0);
        else
            assert_painted(frame, 5000, 1, 4);
    }
    barrier();
}

static void test_channel_mpi__the_largest_frame_arrives(void **state)
{
    size_t count = message_frame_limit();

    (void)state;
    if (world.rank == 2) {
        unsigned char *bytes = malloc(count);

        assert_non_null(bytes);
        paint(bytes, count, 2, 1);
        send_surely(0, (struct frame){bytes, count});
        free(bytes); /* it was copied */
        settle(0);
    }
    if (world.rank == 0) {
        unsigned char *expected = malloc(count);
        struct frame frame;
        int peer, refused;

        assert_non_null(expected);
        paint(expected, count, 2, 1);
        await(&peer, &frame, &refused);
        assert_int_equal(frame.count, count);
        assert_memory_equal(frame.bytes, expected, count);
        free(expected);
    }
    barrier();
}

static void test_channel_mpi__a_full_outbox_takes_nothing_and_does_not_wait(void **state)
{
    int taken;

    (void)state;
    if (world.rank == 1) {
        int64_t start = clock_ns();

        for (int i = 0; i < CHANNEL_OUTBOX; i++) {
            assert_int_equal(channel_send(channel, 0, painted(RENDEZVOUS, 1, i), &taken), STATUS_OK);
            assert_int_equal(taken, 1);
        }
        assert_int_equal(channel_pending(channel, 0), CHANNEL_OUTBOX);
        assert_int_equal(channel_send(channel, 0, painted(1, 1, 0), &taken), STATUS_OK);
        assert_int_equal(taken, 0);
        assert_true(clock_ns() - start < 5000 * (int64_t)MS);
        /* Another peer's outbox is another matter. */
        assert_int_equal(channel_send(channel, 2, painted(1, 1, 0), &taken), STATUS_OK);
        assert_int_equal(taken, 1);
    }
    barrier();
    for (int i = 0; world.rank != 1 && i < (world.rank == 0 ? CHANNEL_OUTBOX : 1); i++) {
        struct frame frame;
        int peer, refused;

        await(&peer, &frame, &refused);
        assert_painted(frame, world.rank == 0 ? RENDEZVOUS : 1, 1, i);
    }
    if (world.rank == 1)
        settle(0);
    barrier();
}

/* Rank 1 stops calling MPI behind a long frame (over TCP its content stays behind, too); rank 2 is heard nevertheless. */
static void test_channel_mpi__a_stopped_sender_does_not_hold_up_another(void **state)
{
    int64_t start, heard = 0;

    (void)state;
    barrier();
    start = clock_ns();
    if (world.rank == 1) {
        send_surely(0, painted(LONGEST, 1, 1));
        sleep_ms(2000);
        send_surely(0, painted(10, 1, 2));
        settle(0);
    }
    if (world.rank == 2) {
        sleep_ms(100);
        send_surely(0, painted(10, 2, 1));
    }
    for (int i = 0, of_1 = 0; world.rank == 0 && i < 3; i++) {
        struct frame frame;
        int peer, refused;

        await(&peer, &frame, &refused);
        if (peer == 2)
            heard = clock_ns();
        else
            of_1++;
        if (peer == 1)
            assert_painted(frame, of_1 == 1 ? LONGEST : 10, 1, of_1);
    }
    assert_true(world.rank > 0 || heard - start < 1500 * (int64_t)MS);
    barrier();
}

static void test_channel_mpi__a_wait_ends_at_its_deadline(void **state)
{
    struct frame frame;
    int peer, refused;
    int64_t start;

    (void)state;
    for (int ms = 0; ms <= 60; ms += 20) {
        start = clock_ns();
        assert_int_equal(channel_wait(channel, start + ms * (int64_t)MS, &peer, &frame, &refused), STATUS_OK);
        assert_true(frame.count == 0 && !refused);
        assert_true(clock_ns() - start >= ms * (int64_t)MS);
        assert_true(clock_ns() - start < (ms + 1000) * (int64_t)MS);
    }
    barrier();
}

/* Frames on their way outlive the channel that sent them. */
static void test_channel_mpi__closing_does_not_wait_and_loses_nothing_sent(void **state)
{
    enum { FRAMES = 5 };

    (void)state;
    if (world.rank == 1) {
        int64_t start = clock_ns();

        for (int i = 0; i < FRAMES; i++)
            send_surely(0, painted(i % 2 ? RENDEZVOUS : 10000, 1, i));
        channel_close(channel);
        channel = NULL;
        assert_true(clock_ns() - start < 5000 * (int64_t)MS);
    }
    barrier();
    for (int i = 0; world.rank == 0 && i < FRAMES; i++) {
        struct frame frame;
        int peer, refused;

        await(&peer, &frame, &refused);
        assert_painted(frame, i % 2 ? RENDEZVOUS : 10000, 1, i);
    }
    barrier();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_channel_mpi__frames_of_all_sizes_arrive_whole_and_in_order),
        cmocka_unit_test(test_channel_mpi__a_proposal_with_its_q_is_sent_at_once),
        cmocka_unit_test(test_channel_mpi__an_answer_comes_back),
        cmocka_unit_test(test_channel_mpi__frames_that_cannot_be_are_refused),
        cmocka_unit_test(test_channel_mpi__the_largest_frame_arrives),
        cmocka_unit_test(test_channel_mpi__a_full_outbox_takes_nothing_and_does_not_wait),
        cmocka_unit_test(test_channel_mpi__a_stopped_sender_does_not_hold_up_another),
        cmocka_unit_test(test_channel_mpi__a_wait_ends_at_its_deadline),
        cmocka_unit_test(test_channel_mpi__closing_does_not_wait_and_loses_nothing_sent),
    };
    const char *name = argc > 0 ? argv[0] : "";
    sigset_t told;
    int failed;

    /* The role of a rank is not known before MPI runs, and the channel does not ask for it. */
    sigemptyset(&told); /* before MPI starts its threads, which would be ended by it */
    sigaddset(&told, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &told, NULL);
    unsetenv("OMPI_MCA_btl_vader_eager_limit"); /* the limit is to be our own */
    unsetenv("OMPI_MCA_btl_sm_eager_limit");
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1); /* as in jobs: a receiver does not read the sender's memory */
    if (world_open(&argc, &argv, ROLE_DRAFTER, &world) != STATUS_OK || world.size != 3 || channel_open_mpi(&world, &channel) != STATUS_OK)
        world_abort(STATUS_INTERNAL);
    failed = cmocka_run_group_tests_name(name, tests, NULL, NULL);
    if (failed > 0)
        world_abort(STATUS_INTERNAL); /* the others may wait in a barrier that this rank left out */
    channel_close(channel);
    world_close(&world, STATUS_OK);
    return failed;
}
