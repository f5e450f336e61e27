/* The lead's view of its drafters, which the test plays, under a pretended clock. */
#include "verifier/round/peers.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/wire/channel_loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h> /* needs those above */

#define MS ((int64_t)1000000)

enum { RUN = 7, VOCAB = 100, CONTEXT = 20000, MOST = 2, DEADLINE_MS = 100 };

static int64_t now, speaks_ns; /* the last drafter sends a Heartbeat at that time; INT64_MAX: never */
static int drafters, sequences;
static struct channel *end[MOST + 1];
static struct message_space *space;
static struct peers peers;
static struct arena arena;
static struct sequence sequence[MOST];
static int32_t prompt[] = {1, 2, 3};
static struct request request[MOST];

static void speak(int drafter)
{
    int taken;

    assert_int_equal(channel_send(end[drafter], 0, message_pack_plain(space, MESSAGE_HEARTBEAT, RUN), &taken), STATUS_OK);
}

/* The lead waits: time goes to what the drafter says next, or to the deadline. */
static void pass_time(void *user, int waiting, int64_t deadline_ns)
{
    (void)user;
    assert_int_equal(waiting, 0);
    now = speaks_ns < deadline_ns ? speaks_ns : deadline_ns;
    if (now < speaks_ns)
        return;
    speaks_ns = INT64_MAX;
    speak(drafters);
}

/* So many drafters of so many kinds, and a sequence for each of one kind, whose drafts are greedy. */
static void open_kinds(int count, int kinds)
{
    const struct loop_hooks hooks = {.wait = pass_time};
    const int names[] = {1, 2};

    log_init("test_peers", LOG_ERROR);
    now = 0;
    speaks_ns = INT64_MAX;
    drafters = count;
    clock_pretend(&now);
    assert_int_equal(channel_loop_open(count + 1, NULL, end), STATUS_OK);
    channel_loop_hook(end[0], &hooks);
    assert_int_equal(message_space_open(&space), STATUS_OK);
    assert_int_equal(peers_open(&peers, end[0], names, count, RUN, VOCAB, DEADLINE_MS), STATUS_OK);
    peers.kinds = kinds;
    sequences = count / kinds;
    assert_int_equal(arena_open(&arena, (size_t)sequences * sequence_bytes(CONTEXT, MESSAGE_MAX_SUPPORT, kinds), "the sequences"), STATUS_OK);
    for (int i = 0; i < sequences; i++) {
        request[i] = (struct request){.index = (uint32_t)i,
                                      .tokens = prompt,
                                      .prompt_count = 3,
                                      .sampling = sampling_default,
                                      .max_tokens = CONTEXT,
                                      .draft_length = 4};
        request[i].sampling.temperature = kinds > 1 ? 0 : request[i].sampling.temperature;
        sequence_init(&sequence[i], &arena, i, CONTEXT, MESSAGE_MAX_SUPPORT, kinds);
        assert_int_equal(sequence_open(&sequence[i], &request[i], 0, NULL, NULL, 0, CONTEXT), STATUS_OK);
        sequence[i].cached = sequence[i].length - 1; /* its prompt is read */
        assert_int_equal(peers_assign(&peers, &sequence[i]), STATUS_OK);
        for (int kind = 0; kind < kinds; kind++)
            assert_int_equal(sequence[i].link[kind].drafter, kinds * i + kind);
    }
}

static void open_all(int count)
{
    open_kinds(count, 1);
}

static int close_all(void **state)
{
    (void)state;
    for (int i = 0; i < sequences; i++)
        sequence_close(&sequence[i]);
    arena_close(&arena);
    peers_close(&peers);
    message_space_close(space);
    for (int i = 0; i <= drafters; i++)
        channel_close(end[i]);
    clock_pretend(NULL);
    return 0;
}

/* A drafter hears all that is there. Returns whether it was asked if it is there. */
static int is_asked(int drafter)
{
    struct frame frame;
    int peer, refused, asked = 0;

    for (;;) {
        assert_int_equal(channel_receive(end[drafter], &peer, &frame, &refused), STATUS_OK);
        if (frame.count == 0)
            return asked;
        asked |= message_type(frame) == MESSAGE_HEARTBEAT;
    }
}

static void propose(int drafter, uint32_t draft_us)
{
    const struct sequence *for_this = &sequence[drafter - 1];
    const struct proposal proposal = {.run = RUN,
                                      .request = for_this->request->index,
                                      .base_length = (uint32_t)for_this->length,
                                      .base_digest = for_this->digest,
                                      .sampling_digest = sampling_digest(&for_this->request->sampling),
                                      .count = 1,
                                      .token = {5},
                                      .draft_us = draft_us};
    int taken;

    assert_int_equal(channel_send(end[drafter], 0, message_pack_proposal(space, &proposal), &taken), STATUS_OK);
}

/* A round's collecting, waits and all. */
static void collect(void)
{
    int64_t wake;

    assert_int_equal(peers_begin(&peers, sequence, sequences), STATUS_OK);
    for (;;) {
        assert_int_equal(peers_gather(&peers, sequence, sequences, &wake), STATUS_OK);
        if (wake == 0)
            return;
        assert_int_equal(peers_wait(&peers, sequence, sequences, wake), STATUS_OK);
    }
}

/* A round of one millisecond, in which the target decides on one token. Returns how long the lead waited before it, in milliseconds. */
static int take_round(void)
{
    const int32_t token = 5;
    int64_t waited = -now;

    collect();
    waited += now;
    now += MS;
    for (int i = 0; i < sequences; i++) {
        sequence_commit(&sequence[i], &token, 1);
        sequence[i].rounds++;
        assert_int_equal(peers_commit(&peers, &sequence[i], sequence[i].length - 1, &token, 1, 0, FINISH_NOT), STATUS_OK);
    }
    return (int)(waited / MS);
}

static void test_peers__a_silent_drafter_is_waited_for_twice(void **state)
{
    (void)state;
    open_all(1);
    assert_int_equal(take_round(), DEADLINE_MS);
    assert_int_equal(take_round(), DEADLINE_MS);
    assert_int_equal(peers.peer[0].lost, 1);
    for (int i = 0; i < 10; i++)
        assert_int_equal(take_round(), 0);
}

/* It says that it is there whenever it is asked, and never proposes anything. */
static void test_peers__one_that_never_proposes_costs_a_small_share_of_the_time(void **state)
{
    int waited = 0;

    (void)state;
    open_all(1);
    for (int i = 0; i < 10000; i++) {
        waited += take_round();
        if (is_asked(1))
            speak(1);
    }
    assert_true(peers.peer[0].losses > 3);
    assert_true(waited <= now / MS / 8);
}

/* Late words of a lost drafter do not bring it back, so they cannot make it be lost again and again, and be asked ever more rarely. */
static void test_peers__a_drafter_whose_trouble_is_over_is_found_within_a_bound(void **state)
{
    int64_t over;

    (void)state;
    open_all(1);
    for (int i = 0; i < 60; i++) {
        speak(1);
        take_round();
        is_asked(1); /* which it does not hear */
    }
    for (over = now; peers.peer[0].lost; take_round()) {
        assert_true(now - over <= 8 * 2 * DEADLINE_MS * MS);
        if (is_asked(1))
            speak(1);
    }
}

/* One drafter is silent; the other, which was lost, is found while the first is waited for. */
static void test_peers__a_round_ends_in_time_also_where_a_drafter_is_found_in_it(void **state)
{
    (void)state;
    open_all(2);
    while (!peers.peer[1].lost || now < peers.peer[1].ask_ns) {
        propose(1, 0);
        take_round();
        is_asked(1);
    }
    assert_int_equal(peers.peer[0].lost, 0);
    is_asked(2);
    sequence[1].link[0].answered = sequence[1].length; /* it has read all that */
    speaks_ns = now + 15 * MS; /* it is asked in this round, and this is its answer; then it is silent again */
    assert_int_equal(take_round(), DEADLINE_MS);
    assert_int_equal(is_asked(2), 1);
    assert_int_equal(peers.peer[1].lost, 0);
}

static void test_peers__a_draft_took_no_longer_than_the_lead_waited(void **state)
{
    (void)state;
    open_all(1);
    now += 10 * MS;
    propose(1, UINT32_MAX);
    take_round();
    assert_int_equal(peers.draft.count, 1);
    assert_int_equal(peers.draft.ns, 10 * MS);
    assert_int_equal(peers.wire.ns, 0);
}

/* What a drafter of the only sequence proposes. */
static void propose_chain(int drafter, const int32_t *token, int count)
{
    struct proposal proposal = {.run = RUN,
                                .base_length = (uint32_t)sequence[0].length,
                                .base_digest = sequence[0].digest,
                                .sampling_digest = sampling_digest(&request[0].sampling),
                                .count = count};
    int taken;

    memcpy(proposal.token, token, (size_t)count * sizeof *token);
    assert_int_equal(channel_send(end[drafter], 0, message_pack_proposal(space, &proposal), &taken), STATUS_OK);
}

/* The first sequence's drafter proposes so many tokens, all of them drafted ahead; one is asked for. */
static void propose_ahead(int count)
{
    const int32_t token[] = {5, 6, 7};
    struct proposal proposal = {.run = RUN, .sampling_digest = sampling_digest(&request[0].sampling), .count = count, .ahead = (uint32_t)count};
    int taken;

    open_all(1);
    proposal.base_length = (uint32_t)sequence[0].length;
    proposal.base_digest = sequence[0].digest;
    proposal.sampling_digest = sampling_digest(&request[0].sampling);
    memcpy(proposal.token, token, sizeof token);
    sequence[0].link[0].wanted = 1;
    assert_int_equal(channel_send(end[1], 0, message_pack_proposal(space, &proposal), &taken), STATUS_OK);
    collect();
    assert_true(sequence[0].link[0].has_proposal);
}

/* Fewer are asked for at the end of a text than were drafted ahead: those that are used were all there. */
static void test_peers__what_is_cut_of_a_draft_ahead_is_a_hit_all_the_same(void **state)
{
    (void)state;
    propose_ahead(3);
    assert_int_equal(sequence[0].link[0].proposal.count, 1);
    assert_true(peers.ahead.hits == 1 && peers.ahead.wait.count == 1);
}

/* Nor was anything drafted ahead where nothing is proposed. */
static void test_peers__an_empty_proposal_is_no_hit(void **state)
{
    (void)state;
    propose_ahead(0);
    assert_true(sequence[0].link[0].proposal.count == 0 && peers.ahead.hits == 0 && peers.ahead.wait.count == 0);
}

/* The newest Commit that a drafter was sent: how many of its drafts it says were accepted. */
static int told_accepted(int drafter)
{
    struct frame frame;
    struct commit commit;
    int peer, refused, accepted = -1;

    for (;;) {
        assert_int_equal(channel_receive(end[drafter], &peer, &frame, &refused), STATUS_OK);
        if (frame.count == 0)
            return accepted;
        if (message_type(frame) == MESSAGE_COMMIT) {
            assert_null(message_unpack_commit(space, frame, VOCAB, &commit));
            accepted = (int)commit.accepted;
        }
    }
}

/* Two kinds for one request: both are waited for, what they say becomes one tree, and each hears of its own drafts how many were right. */
static void test_peers__two_kinds_draft_for_one_request(void **state)
{
    const int32_t first[] = {5, 6, 7}, second[] = {5, 8, 9, 10}, committed[] = {5, 8, 9, 11};

    (void)state;
    open_kinds(2, 2);
    propose_chain(1, first, 3);
    propose_chain(2, second, 4);
    collect();
    assert_true(sequence[0].link[0].has_proposal && sequence[0].link[1].has_proposal);
    assert_true(peers.taken == 2 && peers.draft.count == 1); /* they worked at the same time */
    assert_null(sequence_proposal(&sequence[0]));            /* until they are merged */
    sequence_merge(&sequence[0], &peers.merge);
    assert_int_equal(sequence_proposal(&sequence[0])->count, 4); /* of six that differ, as many as are wanted */
    assert_int_equal(sequence_proposal(&sequence[0])->token[0], 5);
    assert_int_equal(sequence[0].merged.source[0], 3);
    sequence_commit(&sequence[0], committed, 4);
    assert_null(sequence_proposal(&sequence[0]));
    assert_int_equal(peers_commit(&peers, &sequence[0], sequence[0].length - 4, committed, 4, 3, FINISH_NOT), STATUS_OK);
    assert_int_equal(told_accepted(1), 1);
    assert_int_equal(told_accepted(2), 3);
    assert_true(peers.kind[0].drafted == 3 && peers.kind[0].agreed == 1 && peers.kind[1].drafted == 4 && peers.kind[1].agreed == 3);
    assert_true(merge_rate(&peers.merge, 1, 1) > merge_rate(&peers.merge, 0, 1));
}

/* The second kind is silent: the round waits for it, and later ones are without it. */
static void test_peers__a_kind_that_is_lost_leaves_the_other(void **state)
{
    const int32_t token[] = {5};

    (void)state;
    open_kinds(2, 2);
    for (int i = 0; i < 4; i++) {
        int64_t waited = -now;

        propose_chain(1, token, 1);
        collect();
        waited += now;
        assert_int_equal(waited / MS, i < 2 ? DEADLINE_MS : 0);
        assert_true(sequence[0].link[0].has_proposal && !sequence[0].link[1].has_proposal);
        sequence_merge(&sequence[0], &peers.merge);
        assert_int_equal(sequence_proposal(&sequence[0])->count, 1);
        sequence_commit(&sequence[0], token, 1);
        sequence[0].rounds++;
        assert_int_equal(peers_commit(&peers, &sequence[0], sequence[0].length - 1, token, 1, 1, FINISH_NOT), STATUS_OK);
    }
    assert_true(!peers.peer[0].lost && peers.peer[1].lost && peers.peer[1].sequences == 1);
}

/* Answers that took no step, as those drafted ahead, make no deadline that the drafter's own steps would miss: 8 times those of 4 tokens and one. */
static void test_peers__a_deadline_leaves_time_for_the_drafters_steps(void **state)
{
    static const int step_ms[] = {0, 1}, waited_ms[] = {20, 40};

    (void)state;
    for (int i = 0; i < 2; i++) {
        open_all(1);
        peers.peer[0].draft_ns = (uint32_t)(step_ms[i] * MS);
        for (int round = 0; round < 5; round++) {
            propose(1, 0);
            assert_int_equal(take_round(), 0);
        }
        assert_int_equal(take_round(), waited_ms[i]);
        if (i == 0)
            close_all(state);
    }
}

/* A text that the same seed is to give again waits for its draft as long as the user said: a proposal less would be another text. */
static void test_peers__a_text_that_is_to_repeat_waits_the_whole_deadline(void **state)
{
    (void)state;
    open_all(1);
    sequence[0].repeats = 1;
    for (int round = 0; round < 5; round++) {
        propose(1, 0);
        assert_int_equal(take_round(), 0);
    }
    assert_int_equal(take_round(), DEADLINE_MS);
}

/* A drafter is found again and gets a long text, of which no draft is wanted: nobody waits for its reading. */
static void test_peers__a_reader_that_is_to_draft_nothing_holds_nobody(void **state)
{
    int32_t tokens[MESSAGE_MAX_COMMIT] = {0};

    (void)state;
    open_all(1);
    for (int i = 0; i < 2; i++)
        sequence_commit(&sequence[0], tokens, MESSAGE_MAX_COMMIT);
    request[0].draft_length = 0;
    peers.peer[0].reopen = 1;
    collect();
    assert_int_equal(peers.peer[0].reopen, 0);
    assert_false(peers_holds(&sequence[0]));
}

/* By rules that ask for q only the first kind drafts. */
static void test_peers__a_request_that_needs_q_has_one_drafter(void **state)
{
    struct request other;

    (void)state;
    open_kinds(2, 2);
    sequence_close(&sequence[0]);
    peers.peer[0].sequences = peers.peer[1].sequences = 0;
    other = request[0];
    other.sampling.temperature = 1;
    assert_int_equal(sequence_open(&sequence[0], &other, 0, NULL, NULL, 0, CONTEXT), STATUS_OK);
    assert_int_equal(peers_assign(&peers, &sequence[0]), STATUS_OK);
    assert_true(sequence[0].link[0].drafter == 0 && sequence[0].link[1].drafter == -1);
    assert_true(peers.peer[0].sequences == 1 && peers.peer[1].sequences == 0);
    peers.peer[0].lost = 1;
    assert_int_equal(peers_assign(&peers, &sequence[0]), STATUS_OK);
    assert_int_equal(sequence[0].link[0].drafter, -1); /* one of another kind is none for it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_peers__a_silent_drafter_is_waited_for_twice, close_all),
        cmocka_unit_test_teardown(test_peers__one_that_never_proposes_costs_a_small_share_of_the_time, close_all),
        cmocka_unit_test_teardown(test_peers__a_drafter_whose_trouble_is_over_is_found_within_a_bound, close_all),
        cmocka_unit_test_teardown(test_peers__a_round_ends_in_time_also_where_a_drafter_is_found_in_it, close_all),
        cmocka_unit_test_teardown(test_peers__a_draft_took_no_longer_than_the_lead_waited, close_all),
        cmocka_unit_test_teardown(test_peers__what_is_cut_of_a_draft_ahead_is_a_hit_all_the_same, close_all),
        cmocka_unit_test_teardown(test_peers__an_empty_proposal_is_no_hit, close_all),
        cmocka_unit_test_teardown(test_peers__two_kinds_draft_for_one_request, close_all),
        cmocka_unit_test_teardown(test_peers__a_kind_that_is_lost_leaves_the_other, close_all),
        cmocka_unit_test_teardown(test_peers__a_deadline_leaves_time_for_the_drafters_steps, close_all),
        cmocka_unit_test_teardown(test_peers__a_text_that_is_to_repeat_waits_the_whole_deadline, close_all),
        cmocka_unit_test_teardown(test_peers__a_reader_that_is_to_draft_nothing_holds_nobody, close_all),
        cmocka_unit_test_teardown(test_peers__a_request_that_needs_q_has_one_drafter, close_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
