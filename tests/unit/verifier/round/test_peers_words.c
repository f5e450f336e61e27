/* What the lead says to a drafter and takes from it, over a loop whose other end is the test. test_peers.c is about when. */
#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/wire/channel_loop.h"
#include "verifier/round/peers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* needs those above */

enum { LEAD = 0, DRAFTER = 1, ENDS = 2, CONTEXT = 256, ROOM = 4, PROMPT = 3, VOCAB = 512, RUN = 5, LENGTH = 4 };
#define DEADLINE_NS ((int64_t)1000000)

struct rig {
    int64_t now_ns;
    struct arena arena;
    struct tokenizer *tokenizer;
    struct request request;
    struct sequence sequence;
    struct channel *end[ENDS];
    struct peers peers;
    struct message_space *space;
    int floods; /* the drafter sends this many frames whenever one of its own was read */
};

static int32_t prompt[PROMPT] = {30, 31, 32};
static const int32_t token[] = {40, 41, 42};

static void pass_time(void *user, int end, int64_t deadline_ns)
{
    struct rig *rig = user;
    int64_t due_ns = channel_loop_due_ns(rig->end[end]);

    rig->now_ns = due_ns < deadline_ns ? (due_ns > rig->now_ns ? due_ns : rig->now_ns) : deadline_ns;
}

static void say(struct rig *rig, struct frame frame)
{
    int taken;

    assert_int_equal(channel_send(rig->end[DRAFTER], LEAD, frame, &taken), STATUS_OK);
}

static void say_heartbeat(struct rig *rig)
{
    say(rig, message_pack_plain(rig->space, MESSAGE_HEARTBEAT, RUN));
}

static void note(void *user, enum loop_fate fate, int from, int to, struct frame frame)
{
    struct rig *rig = user;

    (void)frame;
    if (fate != LOOP_RECEIVED || from != DRAFTER || to != LEAD || rig->floods == 0)
        return;
    rig->now_ns += 1000;
    say_heartbeat(rig);
}

static int open_rig(void **state)
{
    static const int names[] = {DRAFTER};
    struct rig *rig = calloc(1, sizeof *rig);

    assert_non_null(rig);
    *state = rig;
    log_init("test_peers_words", LOG_ERROR);
    rig->now_ns = 1;
    clock_pretend(&rig->now_ns);
    rig->request = (struct request){
        .index = 9, .tokens = prompt, .prompt_count = PROMPT, .sampling = sampling_default, .max_tokens = 40, .draft_length = LENGTH};
    assert_int_equal(tokenizer_open(TANDEM_SOURCE_DIR "/launch/demo/target", 0, &rig->tokenizer), STATUS_OK);
    assert_int_equal(arena_open(&rig->arena, sequence_bytes(CONTEXT, ROOM, 1), "a sequence"), STATUS_OK);
    sequence_init(&rig->sequence, &rig->arena, 0, CONTEXT, ROOM, 1);
    assert_int_equal(sequence_open(&rig->sequence, &rig->request, 0, rig->tokenizer, NULL, 0, CONTEXT), STATUS_OK);
    rig->sequence.cached = rig->sequence.length - 1; /* its prompt is read */
    assert_int_equal(channel_loop_open(ENDS, NULL, rig->end), STATUS_OK);
    channel_loop_hook(rig->end[LEAD], &(struct loop_hooks){.user = rig, .wait = pass_time, .note = note});
    assert_int_equal(peers_open(&rig->peers, rig->end[LEAD], names, 1, RUN, VOCAB, (double)DEADLINE_NS / 1e6), STATUS_OK);
    assert_int_equal(message_space_open(&rig->space), STATUS_OK);
    return 0;
}

static int close_rig(void **state)
{
    struct rig *rig = *state;

    message_space_close(rig->space);
    peers_close(&rig->peers);
    channel_close(rig->end[LEAD]);
    channel_close(rig->end[DRAFTER]);
    sequence_close(&rig->sequence);
    arena_close(&rig->arena);
    tokenizer_close(rig->tokenizer);
    clock_pretend(NULL);
    free(rig);
    return 0;
}

/* What the lead sent next; type 0 when nothing. */
static int hear(struct rig *rig, struct frame *frame)
{
    int peer, refused;

    assert_int_equal(channel_receive(rig->end[DRAFTER], &peer, frame, &refused), STATUS_OK);
    return frame->count == 0 ? 0 : message_type(*frame);
}

static void assert_hears_open(struct rig *rig, int wanted)
{
    struct open_message open;
    struct frame frame;

    assert_int_equal(hear(rig, &frame), MESSAGE_OPEN);
    assert_null(message_unpack_open(rig->space, frame, VOCAB, &open));
    assert_true(open.run == RUN);
    assert_int_equal(open.request, 9);
    assert_int_equal(open.count, rig->sequence.length);
    assert_int_equal(open.prompt_count, PROMPT);
    assert_memory_equal(open.tokens, rig->sequence.tokens, (size_t)open.count * sizeof(int32_t));
    assert_int_equal(open.draft_length, wanted);
    assert_int_equal(open.limit, rig->sequence.limit);
}

static void assert_hears_nothing(struct rig *rig)
{
    struct frame frame;

    assert_int_equal(hear(rig, &frame), 0);
}

static void assign(struct rig *rig)
{
    assert_int_equal(peers_assign(&rig->peers, &rig->sequence), STATUS_OK);
    assert_hears_open(rig, rig->sequence.link[0].wanted);
}

/* A round's collecting, waits and all. */
static void collect(struct rig *rig)
{
    int64_t wake;

    assert_int_equal(peers_begin(&rig->peers, &rig->sequence, 1), STATUS_OK);
    for (;;) {
        assert_int_equal(peers_gather(&rig->peers, &rig->sequence, 1, &wake), STATUS_OK);
        if (wake == 0)
            return;
        assert_int_equal(peers_wait(&rig->peers, &rig->sequence, 1, wake), STATUS_OK);
    }
}

static void commit(struct rig *rig, int count, enum finish_reason finish)
{
    int old = rig->sequence.length;

    sequence_commit(&rig->sequence, token, count);
    assert_int_equal(peers_commit(&rig->peers, &rig->sequence, old, token, count, count - 1, finish), STATUS_OK);
}

/* A proposal for what is committed. */
static struct proposal fitting(const struct rig *rig)
{
    return (struct proposal){.run = RUN,
                             .request = 9,
                             .base_length = (uint32_t)rig->sequence.length,
                             .base_digest = rig->sequence.digest,
                             .sampling_digest = rig->sequence.sampling_digest,
                             .count = 2,
                             .token = {5, 6}};
}

static void propose(struct rig *rig, const struct proposal *proposal)
{
    say(rig, message_pack_proposal(rig->space, proposal));
}

static void propose_fitting(struct rig *rig)
{
    const struct proposal proposal = fitting(rig);

    propose(rig, &proposal);
}

/* A round without a proposal; what the lead then said has not been heard. */
static void miss(struct rig *rig)
{
    collect(rig);
    assert_false(rig->sequence.link[0].has_proposal);
    commit(rig, 1, FINISH_NOT);
}

static void test_peers_words__a_proposal_ends_the_wait(void **state)
{
    struct rig *rig = *state;

    assign(rig);
    propose_fitting(rig);
    collect(rig);
    assert_true(rig->sequence.link[0].has_proposal);
    assert_true(rig->now_ns < DEADLINE_NS);
    assert_int_equal(rig->peers.stale, 0);
}

static void test_peers_words__a_commit_says_what_was_committed(void **state)
{
    struct rig *rig = *state;
    struct commit heard;
    struct frame frame;

    for (int finish = 0; finish <= 1; finish++) {
        assign(rig);
        commit(rig, 3, finish ? FINISH_STOP : FINISH_NOT);
        assert_int_equal(hear(rig, &frame), MESSAGE_COMMIT);
        assert_null(message_unpack_commit(rig->space, frame, VOCAB, &heard));
        assert_true(heard.run == RUN && heard.digest == rig->sequence.digest);
        assert_int_equal(heard.request, 9);
        assert_int_equal(heard.old_length, rig->sequence.length - 3);
        assert_int_equal(heard.accepted, 2);
        assert_int_equal(heard.count, 3);
        assert_memory_equal(heard.tokens, token, sizeof token);
        assert_int_equal(heard.keep, rig->sequence.length - 1);
        assert_int_equal(heard.finish, finish ? FINISH_STOP : FINISH_NOT);
        assert_int_equal(heard.draft_length, finish ? 0 : LENGTH);
        assert_int_equal(rig->sequence.link[0].wanted, finish ? 0 : LENGTH);
    }
}

static int ahead_of_all; /* what is proposed with a q was sent before it was asked for */

/* With q at its first token: ids and weights of 2. */
static void propose_with_q(struct rig *rig, uint32_t draft_us)
{
    static const int32_t id[] = {5, 7};
    static const uint32_t weight[] = {MESSAGE_Q_SUM / 2, MESSAGE_Q_SUM / 2};
    struct proposal proposal = fitting(rig);

    proposal.q[0] = (struct support){.count = 2, .id = id, .weight = weight};
    proposal.draft_us = draft_us;
    proposal.ahead = ahead_of_all ? (uint32_t)proposal.count : 0;
    propose(rig, &proposal);
}

/* A round in which the proposal comes 700 us after it was asked for. */
static void take_round(struct rig *rig, int has_q, uint32_t draft_us)
{
    struct frame frame;

    rig->now_ns += 700 * 1000;
    if (has_q)
        propose_with_q(rig, draft_us);
    else
        propose_fitting(rig);
    collect(rig);
    assert_true(rig->sequence.link[0].has_proposal);
    commit(rig, 1, FINISH_NOT);
    assert_int_equal(hear(rig, &frame), MESSAGE_COMMIT);
}

/* Of proposals that have a q, and without the time of the drafter. */
static void test_peers_words__the_way_of_a_q_is_measured(void **state)
{
    struct rig *rig = *state;
    const struct peer *peer = &rig->peers.peer[0];

    assign(rig);
    take_round(rig, 0, 100);
    assert_true(peer->wire_ns == 0);
    take_round(rig, 1, 200);
    assert_true(peer->wire_ns == 500e3);
    take_round(rig, 1, 400);
    assert_true(peer->wire_ns == 300e3);
    take_round(rig, 1, 200); /* the lead was busy, or the way has become longer */
    assert_in_range(peer->wire_ns, 301e3, 331e3);
    rig->peers.peer[0].wire_ns = 495e3; /* as after some more of them */
    take_round(rig, 1, 200);
    assert_true(peer->wire_ns == 500e3);
    ahead_of_all = 1;
    take_round(rig, 1, 700); /* one that was under way already when it was asked for says nothing */
    ahead_of_all = 0;
    assert_true(peer->wire_ns == 500e3);
    take_round(rig, 1, 700); /* one that takes no time says how short it is, not that it is not known */
    assert_in_range(peer->wire_ns, 1, 10e3);
}

static void test_peers_words__the_taking_of_a_q_is_measured(void **state)
{
    struct rig *rig = *state;

    clock_pretend(NULL);
    assign(rig);
    propose_fitting(rig);
    assert_int_equal(peers_look(&rig->peers, &rig->sequence, 1), STATUS_OK);
    assert_true(rig->peers.unpack_ns == 0);
    propose_with_q(rig, 0); /* for what is committed already: it is taken all the same */
    assert_int_equal(peers_look(&rig->peers, &rig->sequence, 1), STATUS_OK);
    assert_true(rig->peers.unpack_ns > 0);
}

static void test_peers_words__a_commit_says_how_probable_a_text_must_be_to_be_sent_beforehand(void **state)
{
    static const struct {
        double wire_us, unpack_us;
        uint32_t worth;
    } cases[] = {{0, 0, 0}, {0, 20, 0}, {1000, 0, 0}, {1000, 20, 40}, {50, 10, 400}, {10, 20, MESSAGE_MOST_WORTH}, {1e7, 1, 1}};
    struct rig *rig = *state;
    struct commit heard;
    struct frame frame;

    assign(rig);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig->peers.peer[0].wire_ns = 1e3 * cases[i].wire_us;
        rig->peers.unpack_ns = 1e3 * cases[i].unpack_us;
        commit(rig, 1, FINISH_NOT);
        assert_int_equal(hear(rig, &frame), MESSAGE_COMMIT);
        assert_null(message_unpack_commit(rig->space, frame, VOCAB, &heard));
        assert_int_equal(heard.worth, cases[i].worth);
    }
}

/* Rounds of a sequence whose drafter hangs are not rounds in which somebody reads first. */
static void test_peers_words__who_is_lost_reads_nothing(void **state)
{
    struct rig *rig = *state;

    assign(rig);
    assert_true(rig->sequence.link[0].opened);
    rig->peers.peer[0].lost = 1;
    commit(rig, 1, FINISH_NOT);
    assert_false(rig->sequence.link[0].opened);
}

static void test_peers_words__a_commit_says_what_a_row_costs(void **state)
{
    struct rig *rig = *state;
    struct commit heard;
    struct frame frame;

    assign(rig);
    for (int i = 0; i <= 4; i++) {
        rig->peers.price = 0.25 * i;
        commit(rig, 1, FINISH_NOT);
        assert_int_equal(hear(rig, &frame), MESSAGE_COMMIT);
        assert_null(message_unpack_commit(rig->space, frame, VOCAB, &heard));
        assert_int_equal(heard.price, 250 * i);
    }
}

static void test_peers_words__what_is_not_for_this_round_is_dropped_and_counted(void **state)
{
    struct rig *rig = *state;

    struct proposal wrong[] = {fitting(rig), fitting(rig), fitting(rig), fitting(rig), fitting(rig)};

    wrong[0].run++;
    wrong[1].request++;
    wrong[2].base_digest++;
    wrong[3].sampling_digest++;
    wrong[4].base_length--;
    assign(rig);
    for (int i = 0; i < 5; i++)
        propose(rig, &wrong[i]);
    collect(rig);
    assert_false(rig->sequence.link[0].has_proposal);
    assert_int_equal(rig->peers.stale, 5);
    assert_true(rig->now_ns >= DEADLINE_NS);
}

static void test_peers_words__a_drafter_whose_words_are_refused_is_not_said_to_be_slow(void **state)
{
    struct rig *rig = *state;

    for (int refused = 1; refused >= 0; refused--) {
        struct proposal wrong = fitting(rig);
        struct peer *peer = &rig->peers.peer[0];

        wrong.token[1] = VOCAB;
        wrong.run += !refused; /* stale, but well formed: the last word counts */
        wrong.token[1] -= !refused;
        peer->losses = peer->misses = peer->lost = 0;
        assign(rig);
        while (!peer->lost) {
            propose(rig, &wrong);
            miss(rig);
        }
        assert_string_equal(peer->why, refused ? "sends what is refused" : "does not answer in time");
        while (hear(rig, &(struct frame){0}) != 0)
            ;
    }
}

/* As above, with a text so long that the drafter reads it in parts. */
static void assign_long(struct rig *rig, int adaptive)
{
    static int32_t long_prompt[MESSAGE_LONG_TEXT + PROMPT];
    struct frame frame;

    for (int i = 0; i < MESSAGE_LONG_TEXT + PROMPT; i++)
        long_prompt[i] = 30 + i % 5;
    sequence_close(&rig->sequence);
    rig->request.tokens = long_prompt;
    rig->request.prompt_count = MESSAGE_LONG_TEXT + PROMPT;
    rig->request.adaptive = adaptive;
    assert_int_equal(sequence_open(&rig->sequence, &rig->request, 0, rig->tokenizer, NULL, 0, CONTEXT), STATUS_OK);
    rig->sequence.cached = rig->sequence.length - 1;
    assert_int_equal(peers_assign(&rig->peers, &rig->sequence), STATUS_OK);
    assert_int_equal(hear(rig, &frame), MESSAGE_OPEN);
}

/* Where the lead chooses draft lengths it goes on plainly, sends nothing that would pile up, and tells all once the drafter has answered. */
static void test_peers_words__a_drafter_that_reads_is_not_waited_for(void **state)
{
    struct rig *rig = *state;
    struct open_message open;
    struct proposal old;
    struct frame frame;

    assign_long(rig, 1);
    old = fitting(rig);
    for (int i = 0; i < 5; i++) {
        assert_false(peers_holds(&rig->sequence));
        collect(rig);
        assert_false(rig->sequence.link[0].has_proposal);
        commit(rig, 1, FINISH_NOT);
        assert_hears_nothing(rig);
    }
    assert_int_equal(rig->now_ns, 1);
    assert_int_equal(rig->peers.peer[0].misses, 0);
    propose(rig, &old); /* it has read what it was sent */
    collect(rig);
    assert_int_equal(rig->peers.stale, 1);
    assert_int_equal(rig->now_ns, 1); /* there is no other answer to wait for */
    assert_int_equal(rig->peers.peer[0].misses, 0);
    commit(rig, 1, FINISH_NOT);
    assert_int_equal(hear(rig, &frame), MESSAGE_OPEN);
    assert_null(message_unpack_open(rig->space, frame, VOCAB, &open));
    assert_int_equal(open.count, rig->sequence.length);
    propose_fitting(rig);
    collect(rig);
    assert_true(rig->sequence.link[0].has_proposal);
}

/* Where the draft length is fixed the sequence waits as long as the drafter is heard, for its text is to be the same however long that takes. */
static void test_peers_words__a_sequence_of_fixed_drafts_waits_for_a_drafter_that_reads(void **state)
{
    struct rig *rig = *state;

    rig->peers.longest_ns = INT64_C(1000000000);
    assign_long(rig, 0);
    while (rig->now_ns < 5 * rig->peers.longest_ns) {
        say_heartbeat(rig);
        assert_true(peers_holds(&rig->sequence));
        collect(rig);
        assert_int_equal(rig->peers.peer[0].misses, 0);
    }
    propose_fitting(rig);
    collect(rig);
    assert_true(rig->sequence.link[0].has_proposal && !peers_holds(&rig->sequence));
}

static void test_peers_words__a_sequence_waits_no_longer_than_for_any_drafter_that_is_silent(void **state)
{
    struct rig *rig = *state;

    assign_long(rig, 0);
    while (peers_holds(&rig->sequence)) {
        collect(rig);
        assert_true(rig->now_ns <= 2 * DEADLINE_NS);
    }
    assert_int_equal(rig->peers.peer[0].misses, 1);
    assert_int_equal(rig->sequence.link[0].wanted, 0);
}

static void test_peers_words__what_is_no_message_for_the_lead_is_refused(void **state)
{
    static const unsigned char junk[] = "junk";
    struct rig *rig = *state;

    assign(rig);
    say(rig, (struct frame){.bytes = junk, .count = sizeof junk});
    say(rig, message_pack_plain(rig->space, MESSAGE_SHUTDOWN, RUN));
    say(rig, message_pack_close(rig->space, &(struct close_message){.run = RUN, .request = 9}));
    collect(rig);
    assert_int_equal(rig->peers.refused, 3);
    assert_int_equal(rig->peers.stale, 0);
}

/* Each way, and nothing of what is refused. */
static void test_peers_words__bytes_are_counted_as_they_go_over_the_wire(void **state)
{
    static const uint8_t junk[] = {0xff, 1, 2, 3};
    struct rig *rig = *state;
    const struct wire_figures *bytes = &rig->peers.bytes;
    struct frame frame;

    peers_count_anew(&rig->peers);
    assert_int_equal(peers_assign(&rig->peers, &rig->sequence), STATUS_OK);
    assert_int_equal(hear(rig, &frame), MESSAGE_OPEN);
    assert_true(bytes->sent == 1 && bytes->sent_bytes == (int64_t)frame.count && bytes->received == 0 && bytes->received_bytes == 0);
    for (int i = 1; i <= 3; i++) {
        frame = message_pack_plain(rig->space, MESSAGE_HEARTBEAT, RUN);
        say(rig, frame);
        say(rig, (struct frame){.bytes = junk, .count = sizeof junk});
        assert_int_equal(peers_look(&rig->peers, &rig->sequence, 1), STATUS_OK);
        assert_true(bytes->received == i && bytes->received_bytes == i * (int64_t)frame.count);
    }
    assert_int_equal(bytes->sent, 1);
    peers_count_anew(&rig->peers);
    assert_true(bytes->sent == 0 && bytes->sent_bytes == 0 && bytes->received == 0 && bytes->received_bytes == 0);
}

/* So that a drafter does not draft out of what the same prompts had before. */
static void test_peers_words__an_open_says_which_pass_it_is_of(void **state)
{
    struct rig *rig = *state;
    struct open_message open;
    struct frame frame;

    for (uint32_t pass = 1; pass <= 3; pass++) {
        peers_count_anew(&rig->peers);
        assert_int_equal(peers_assign(&rig->peers, &rig->sequence), STATUS_OK);
        assert_int_equal(hear(rig, &frame), MESSAGE_OPEN);
        assert_null(message_unpack_open(rig->space, frame, VOCAB, &open));
        assert_int_equal(open.pass, pass);
    }
}

/* It may have missed a message. */
static void test_peers_words__a_missed_deadline_is_followed_by_everything_anew(void **state)
{
    struct rig *rig = *state;

    assign(rig);
    miss(rig);
    assert_true(rig->now_ns >= DEADLINE_NS);
    assert_false(rig->peers.peer[0].lost);
    assert_hears_open(rig, LENGTH);
    assert_hears_nothing(rig);
}

static void test_peers_words__a_lost_drafter_that_is_heard_gets_everything_and_is_waited_for(void **state)
{
    struct rig *rig = *state;
    struct frame frame;
    int64_t then_ns;

    assign(rig);
    miss(rig);
    assert_hears_open(rig, LENGTH);
    miss(rig);
    assert_true(rig->peers.peer[0].lost);
    collect(rig);
    assert_hears_nothing(rig);
    rig->now_ns = rig->peers.peer[0].ask_ns;
    collect(rig);
    assert_int_equal(hear(rig, &frame), MESSAGE_HEARTBEAT);
    then_ns = rig->now_ns;
    say_heartbeat(rig);
    collect(rig);
    assert_hears_open(rig, LENGTH);
    assert_true(rig->now_ns > then_ns);
    assert_false(rig->peers.peer[0].lost);
    commit(rig, 1, FINISH_NOT);
    assert_hears_open(rig, LENGTH); /* it missed that one, too */
    propose_fitting(rig);
    collect(rig);
    assert_true(rig->sequence.link[0].has_proposal);
    commit(rig, 1, FINISH_NOT);
    collect(rig);
    assert_false(rig->peers.peer[0].lost); /* an answer made its misses good */
}

static void test_peers_words__a_drafter_that_takes_nothing_is_lost(void **state)
{
    struct rig *rig = *state;

    for (int i = 0; i < CHANNEL_OUTBOX; i++)
        assert_int_equal(peers_assign(&rig->peers, &rig->sequence), STATUS_OK);
    assert_false(rig->peers.peer[0].lost);
    assert_int_equal(peers_assign(&rig->peers, &rig->sequence), STATUS_OK);
    assert_true(rig->peers.peer[0].lost);
    assert_int_equal(peers_assign(&rig->peers, &rig->sequence), STATUS_OK);
    assert_int_equal(rig->sequence.link[0].drafter, -1);
}

/* A request of which one token is left, or for which no draft is worth while. */
static void test_peers_words__a_drafter_that_is_not_asked_hears_nothing_until_it_is(void **state)
{
    struct rig *rig = *state;

    assign(rig);
    rig->sequence.adaptive = 0;
    commit(rig, 1, FINISH_NOT);
    assert_hears_nothing(rig);
    collect(rig);
    assert_true(rig->now_ns < DEADLINE_NS);
    rig->sequence.adaptive = 2;
    commit(rig, 1, FINISH_NOT);
    assert_hears_open(rig, 2);
}

/* A request without drafts is not opened, else the drafter would read its prompt, maybe on a core of the group. */
static void assign_without_drafts(struct rig *rig)
{
    rig->sequence.adaptive = 0;
    assert_int_equal(peers_assign(&rig->peers, &rig->sequence), STATUS_OK);
    assert_int_equal(rig->sequence.link[0].drafter, 0);
    assert_hears_nothing(rig);
}

static void test_peers_words__a_request_without_drafts_is_not_opened(void **state)
{
    struct rig *rig = *state;

    assign_without_drafts(rig);
    collect(rig);
    assert_true(rig->now_ns < DEADLINE_NS);
    commit(rig, 1, FINISH_STOP);
    assert_hears_nothing(rig);
}

static void test_peers_words__a_request_that_gets_drafts_later_is_opened_then(void **state)
{
    struct rig *rig = *state;

    assign_without_drafts(rig);
    rig->sequence.adaptive = 2;
    commit(rig, 1, FINISH_NOT);
    assert_hears_open(rig, 2);
}

static void test_peers_words__a_drafter_is_asked_for_no_more_than_it_has_room_for(void **state)
{
    struct rig *rig = *state;

    rig->peers.peer[0].context = PROMPT + 3;
    assign(rig);
    assert_int_equal(rig->sequence.link[0].wanted, 2);
    commit(rig, 2, FINISH_NOT);
    assert_int_equal(rig->sequence.link[0].wanted, 0);
}

/* Without a bound on what is read at a time these never end. */
static void test_peers_words__a_drafter_that_never_stops_sending_does_not_hold_the_lead(void **state)
{
    struct rig *rig = *state;

    assign(rig);
    rig->floods = 1;
    say_heartbeat(rig);
    collect(rig); /* something is expected: until its deadline */
    assert_true(rig->now_ns >= DEADLINE_NS);
    commit(rig, 1, FINISH_NOT);
    assert_hears_open(rig, LENGTH);
    rig->sequence.link[0].wanted = 0;
    collect(rig); /* nothing is */
}

int main(void)
{
#define RIGGED(test) cmocka_unit_test_setup_teardown(test, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        RIGGED(test_peers_words__a_proposal_ends_the_wait),
        RIGGED(test_peers_words__a_commit_says_what_was_committed),
        RIGGED(test_peers_words__the_way_of_a_q_is_measured),
        RIGGED(test_peers_words__the_taking_of_a_q_is_measured),
        RIGGED(test_peers_words__a_commit_says_how_probable_a_text_must_be_to_be_sent_beforehand),
        RIGGED(test_peers_words__a_commit_says_what_a_row_costs),
        RIGGED(test_peers_words__who_is_lost_reads_nothing),
        RIGGED(test_peers_words__what_is_not_for_this_round_is_dropped_and_counted),
        RIGGED(test_peers_words__a_drafter_whose_words_are_refused_is_not_said_to_be_slow),
        RIGGED(test_peers_words__a_drafter_that_reads_is_not_waited_for),
        RIGGED(test_peers_words__a_sequence_of_fixed_drafts_waits_for_a_drafter_that_reads),
        RIGGED(test_peers_words__a_sequence_waits_no_longer_than_for_any_drafter_that_is_silent),
        RIGGED(test_peers_words__what_is_no_message_for_the_lead_is_refused),
        RIGGED(test_peers_words__bytes_are_counted_as_they_go_over_the_wire),
        RIGGED(test_peers_words__an_open_says_which_pass_it_is_of),
        RIGGED(test_peers_words__a_missed_deadline_is_followed_by_everything_anew),
        RIGGED(test_peers_words__a_lost_drafter_that_is_heard_gets_everything_and_is_waited_for),
        RIGGED(test_peers_words__a_drafter_that_takes_nothing_is_lost),
        RIGGED(test_peers_words__a_drafter_that_is_not_asked_hears_nothing_until_it_is),
        RIGGED(test_peers_words__a_request_without_drafts_is_not_opened),
        RIGGED(test_peers_words__a_request_that_gets_drafts_later_is_opened_then),
        RIGGED(test_peers_words__a_drafter_is_asked_for_no_more_than_it_has_room_for),
        RIGGED(test_peers_words__a_drafter_that_never_stops_sending_does_not_hold_the_lead),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
