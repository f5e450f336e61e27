/* The way of a drain: from a signal at one rank to the lead. */
#include "common/wire/channel_loop.h"
#include "common/wire/drain_relay.h"
#include "common/world/signals.h"
#include "verifier/round/peers.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

enum { LEAD, DRAFTER, FOLLOWER, ENDS };

struct rig {
    struct channel *end[ENDS];
    struct message_space *space;
    struct peers peers;
};

static int open_rig(void **state)
{
    static struct rig rig;
    static const int drafters[] = {DRAFTER};

    *state = &rig;
    assert_int_equal(channel_loop_open(ENDS, NULL, rig.end), STATUS_OK);
    assert_int_equal(message_space_open(&rig.space), STATUS_OK);
    assert_int_equal(peers_open(&rig.peers, rig.end[LEAD], drafters, 1, 99, 100, 1000), STATUS_OK);
    return 0;
}

static int close_rig(void **state)
{
    struct rig *rig = *state;

    peers_close(&rig->peers);
    message_space_close(rig->space);
    for (int i = 0; i < ENDS; i++)
        channel_close(rig->end[i]);
    return 0;
}

static void send_to_lead(struct rig *rig, int from, enum message_type type, uint64_t run)
{
    int taken;

    assert_int_equal(channel_send(rig->end[from], LEAD, message_pack_plain(rig->space, type, run), &taken), STATUS_OK);
    assert_int_equal(peers_look(&rig->peers, NULL, 0), STATUS_OK);
}

static void test_drain__any_rank_may_ask(void **state)
{
    struct rig *rig = *state;

    send_to_lead(rig, FOLLOWER, MESSAGE_DRAIN, ~(uint64_t)99);
    assert_true(rig->peers.asked_to_drain);
    assert_int_equal(rig->peers.refused, 0);
}

static void test_drain__what_is_no_drain_of_this_run_is_refused(void **state)
{
    struct rig *rig = *state;

    send_to_lead(rig, DRAFTER, MESSAGE_DRAIN, 99); /* a Heartbeat whose type was damaged */
    send_to_lead(rig, DRAFTER, MESSAGE_DRAIN, ~(uint64_t)98);
    send_to_lead(rig, FOLLOWER, MESSAGE_HEARTBEAT, 99); /* of a rank that has nothing else to say */
    assert_false(rig->peers.asked_to_drain);
    assert_int_equal(rig->peers.refused, 3);
    send_to_lead(rig, DRAFTER, MESSAGE_HEARTBEAT, 99);
    assert_int_equal(rig->peers.refused, 3);
}

static void test_drain__a_signal_is_relayed_once(void **state)
{
    struct rig *rig = *state;
    struct drain_relay relay = {.channel = rig->end[FOLLOWER], .space = rig->space, .lead = LEAD, .run = 99};

    signals_open();
    assert_int_equal(drain_relay_look(&relay), STATUS_OK);
    assert_int_equal(peers_look(&rig->peers, NULL, 0), STATUS_OK);
    assert_false(rig->peers.asked_to_drain);
    assert_int_equal(raise(SIGUSR1), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(drain_relay_look(&relay), STATUS_OK);
    assert_int_equal(channel_pending(rig->end[FOLLOWER], LEAD), 1);
    assert_int_equal(peers_look(&rig->peers, NULL, 0), STATUS_OK);
    assert_true(rig->peers.asked_to_drain);
}

static void test_signals__a_pipe_that_nobody_reads_is_a_failing_write(void **state)
{
    int ends[2];

    (void)state;
    signals_open();
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    assert_int_equal(write(ends[1], "x", 1), -1);
    assert_int_equal(errno, EPIPE);
    close(ends[1]);
}

int main(void)
{
#define RIGGED(test) cmocka_unit_test_setup_teardown(test, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        RIGGED(test_drain__any_rank_may_ask),
        RIGGED(test_drain__what_is_no_drain_of_this_run_is_refused),
        RIGGED(test_drain__a_signal_is_relayed_once),
        cmocka_unit_test(test_signals__a_pipe_that_nobody_reads_is_a_failing_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
