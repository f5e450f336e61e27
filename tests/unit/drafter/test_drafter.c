/* The drafter's loop, over a loop channel whose other ends are the test: the lead, and a stranger. The draft counts upwards. */
#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/wire/channel_loop.h"
#include "common/world/doorbells.h"
#include "drafter/drafter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h> /* needs those above */

enum { LEAD = 0, DRAFTER = 1, STRANGER = 2, ENDS = 3 };
enum { CONTEXT = 256, LONG = 200, SLOTS = 2, PROMPT = 3, VOCAB = 512, RUN = 5, REQUEST = 9, LENGTH = 4 };

static const int32_t prompt[PROMPT] = {30, 31, 32};
static struct channel *end[ENDS];
static struct message_space *space;
static struct drafter drafter;
static struct draft draft;

static enum status propose(void *state, struct mirror *const *mirrors, int count, struct draft_output *const *outputs)
{
    (void)state;
    for (int i = 0; i < count; i++) {
        outputs[i]->count = mirrors[i]->wanted;
        for (int k = 0; k < mirrors[i]->wanted; k++) {
            outputs[i]->token[k] = 100 + k;
            outputs[i]->q[k].count = 0;
        }
    }
    return STATUS_OK;
}

/* A kind that reads: what it was told to. */
static int rows_read, rows_of_part, copied_from, copied;

static enum status read_text(void *state, struct mirror *mirror, int rows)
{
    int left = mirror->length - 1 - mirror->cached;

    (void)state;
    rows_of_part = rows < 64 ? rows : 64;
    rows_of_part = rows_of_part < left ? rows_of_part : left;
    mirror->cached += rows_of_part;
    rows_read += rows_of_part;
    return STATUS_OK;
}

static void copy_text(void *state, struct cache_place from, struct cache_place to, int count)
{
    (void)state;
    assert_true(from.slot != to.slot && from.place == to.place);
    copied_from = from.place;
    copied += count;
}

/* A kind that can run ahead: its k-th draft of any text is 100 + k, and behind any draft it guesses EXPECTED, then EXPECTED + 1. */
enum { EXPECTED = 77 };
static const struct commit *said_meanwhile; /* what the lead says during one of its steps ahead, */
static int steps_before;                    /* after so many others */
static int looks_meanwhile;                 /* or that it asks whether the drafter is there */
static struct mirror_move moved;

static enum status propose_and_keep(void *state, struct mirror *const *mirrors, int count, struct draft_output *const *outputs)
{
    for (int i = 0; i < count; i++) {
        mirrors[i]->drafted = mirrors[i]->wanted;
        mirrors[i]->cached = mirrors[i]->length + mirrors[i]->drafted - 1;
        for (int k = 0; k < mirrors[i]->wanted; k++)
            mirrors[i]->tokens[mirrors[i]->length + k] = 100 + k;
    }
    return propose(state, mirrors, count, outputs);
}

static void say_meanwhile(void)
{
    int taken;

    if (said_meanwhile != NULL && steps_before-- == 0) {
        assert_int_equal(channel_send(end[LEAD], DRAFTER, message_pack_commit(space, said_meanwhile), &taken), STATUS_OK);
        said_meanwhile = NULL;
    }
    if (looks_meanwhile)
        assert_int_equal(channel_send(end[LEAD], DRAFTER, message_pack_plain(space, MESSAGE_HEARTBEAT, RUN), &taken), STATUS_OK);
    looks_meanwhile = 0;
}

static enum status step(void *state, const struct draft_job *jobs, int count)
{
    (void)state;
    for (int i = 0; i < count; i++) {
        struct draft_output *output = jobs[i].output;

        if (jobs[i].branch == JOB_LOOK) {
            jobs[i].mirror->cached++;
            continue;
        }
        struct branch *branch = &jobs[i].mirror->ahead.branch[jobs[i].branch];

        assert_int_equal(output->count, branch->count);
        output->q[output->count].count = 0;
        output->token[output->count++] = 100 + branch->count;
        jobs[i].mirror->tokens[branch->place + 1 + branch->count] = 100 + branch->count;
        branch->count++;
    }
    say_meanwhile();
    return STATUS_OK;
}

static void guess(void *state, const struct mirror *mirror, int after, struct guesses *guesses)
{
    (void)state;
    assert_in_range(after, 0, mirror->drafted);
    *guesses = (struct guesses){.count = 2, .token = {EXPECTED, EXPECTED + 1}};
}

static void copy_branch(void *state, struct cache_place from, struct cache_place to, int count)
{
    (void)state;
    assert_int_equal(from.slot, to.slot);
    moved = (struct mirror_move){from.place, to.place, count};
}

static const struct draft_kind running = {.name = "running", .propose = propose_and_keep, .step = step, .guess = guess, .copy = copy_branch};
static const struct draft_kind counting = {.name = "counting", .propose = propose};
static const struct draft_kind reading = {.name = "reading", .propose = propose, .read = read_text, .copy = copy_text};

#define TERMS .channel = end[DRAFTER], .draft = &draft, .lead = LEAD, .run = RUN, .vocab = VOCAB, .context = CONTEXT, .slots = SLOTS

static int open_drafter(void **state)
{
    (void)state;
    rows_read = rows_of_part = copied_from = copied = 0;
    log_init("test_drafter", LOG_ERROR);
    draft = (struct draft){.kind = &counting};
    assert_int_equal(channel_loop_open(ENDS, NULL, end), STATUS_OK);
    assert_int_equal(message_space_open(&space), STATUS_OK);
    assert_int_equal(drafter_open(&drafter, &(struct drafter_terms){TERMS}), STATUS_OK);
    return 0;
}

static int close_drafter(void **state)
{
    (void)state;
    drafter_close(&drafter);
    message_space_close(space);
    for (int i = 0; i < ENDS; i++)
        channel_close(end[i]);
    return 0;
}

static void say(int from, struct frame frame)
{
    int taken;

    assert_int_equal(channel_send(end[from], DRAFTER, frame, &taken), STATUS_OK);
    assert_int_equal(drafter_turn(&drafter, clock_ns()), STATUS_OK);
}

/* What the drafter sent to the lead next; type 0 when nothing. */
static int hear(struct frame *frame)
{
    int peer, refused;

    assert_int_equal(channel_receive(end[LEAD], &peer, frame, &refused), STATUS_OK);
    return frame->count == 0 ? 0 : message_type(*frame);
}

static void assert_hears_nothing(void)
{
    struct frame frame;

    assert_int_equal(hear(&frame), 0);
}

static void say_open(int from, uint64_t run, uint32_t request)
{
    const struct open_message open = {.run = run,
                                      .request = request,
                                      .prompt_count = PROMPT,
                                      .tokens = prompt,
                                      .count = PROMPT,
                                      .sampling = sampling_default,
                                      .draft_length = LENGTH,
                                      .limit = CONTEXT};

    say(from, message_pack_open(space, &open));
}

static struct commit committing(const int32_t *token, int old_length, uint64_t digest)
{
    return (struct commit){.run = RUN,
                           .request = REQUEST,
                           .old_length = (uint32_t)old_length,
                           .tokens = token,
                           .count = 1,
                           .keep = (uint32_t)old_length,
                           .digest = digest_tokens(digest, token, 1),
                           .draft_length = 2};
}

static uint64_t digest_of_prompt(void)
{
    return digest_tokens(DIGEST_EMPTY, prompt, PROMPT);
}

static void assert_hears_proposal(uint32_t request, int base, uint64_t digest, int count)
{
    struct proposal proposal;
    struct frame frame;

    assert_int_equal(hear(&frame), MESSAGE_PROPOSAL);
    assert_null(message_unpack_proposal(space, frame, VOCAB, &proposal));
    assert_true(proposal.run == RUN);
    assert_int_equal(proposal.request, request);
    assert_int_equal(proposal.base_length, base);
    assert_true(proposal.base_digest == digest);
    assert_int_equal(proposal.count, count);
    for (int k = 0; k < count; k++)
        assert_int_equal(proposal.token[k], 100 + k);
}

/* Of all drafts and the expected token, or another one. tokens: [LENGTH + 1] */
static struct commit committing_all(int32_t *tokens, int32_t last)
{
    for (int k = 0; k < LENGTH; k++)
        tokens[k] = 100 + k;
    tokens[LENGTH] = last;
    return (struct commit){.run = RUN,
                           .request = REQUEST,
                           .old_length = PROMPT,
                           .accepted = LENGTH,
                           .tokens = tokens,
                           .count = LENGTH + 1,
                           .keep = PROMPT + LENGTH,
                           .digest = digest_tokens(digest_of_prompt(), tokens, LENGTH + 1),
                           .draft_length = 2};
}

static void say_commit(const struct commit *commit)
{
    say(LEAD, message_pack_commit(space, commit));
}

/* Of the text that `accepted` drafts and another token make. */
static uint64_t digest_behind(uint64_t digest, int accepted, int32_t last)
{
    int32_t token[] = {100, 101, 102, 103, 104, 105, 106, 107};

    token[accepted] = last;
    return digest_tokens(digest, token, accepted + 1);
}

static uint64_t digest_ahead(uint64_t digest, int drafts)
{
    return digest_behind(digest, drafts, EXPECTED);
}

static void begin_with(const struct drafter_terms *terms)
{
    drafter_close(&drafter);
    draft.kind = &running;
    moved = (struct mirror_move){0};
    assert_int_equal(drafter_open(&drafter, terms), STATUS_OK);
}

/* The drafter runs ahead for so many texts of each draft. */
static void begin_ahead(int branches)
{
    begin_with(&(struct drafter_terms){TERMS, .run_ahead = 1, .branches = branches});
}

static void test_drafter__drafts_for_the_text_that_is_expected_and_answers_its_commit_beforehand(void **state)
{
    int32_t tokens[LENGTH + 1];
    int base = PROMPT + LENGTH + 1;

    (void)state;
    begin_ahead(1);
    say_open(LEAD, RUN, REQUEST);
    assert_hears_proposal(REQUEST, PROMPT, digest_of_prompt(), LENGTH);
    assert_hears_proposal(REQUEST, base, digest_ahead(digest_of_prompt(), LENGTH), LENGTH);
    assert_hears_nothing();
    const struct commit commit = committing_all(tokens, EXPECTED);
    say_commit(&commit);
    assert_int_equal(moved.count, 0);                                                /* it lies where it belongs */
    assert_hears_proposal(REQUEST, base + 2 + 1, digest_ahead(commit.digest, 2), 2); /* of the four the lead takes two */
    assert_hears_nothing();
}

static void test_drafter__drafts_anew_where_another_text_comes(void **state)
{
    int32_t tokens[LENGTH + 1];

    (void)state;
    begin_ahead(1);
    say_open(LEAD, RUN, REQUEST);
    assert_hears_proposal(REQUEST, PROMPT, digest_of_prompt(), LENGTH);
    assert_hears_proposal(REQUEST, PROMPT + LENGTH + 1, digest_ahead(digest_of_prompt(), LENGTH), LENGTH);
    const struct commit commit = committing_all(tokens, EXPECTED + 1);
    say_commit(&commit);
    assert_hears_proposal(REQUEST, PROMPT + LENGTH + 1, commit.digest, 2);
    assert_hears_proposal(REQUEST, PROMPT + LENGTH + 1 + 3, digest_ahead(commit.digest, 2), 2);
    assert_hears_nothing();
}

/* A Commit of the first drafts and another token.  tokens: [LENGTH + 1] */
static struct commit committing_some(int32_t *tokens, int accepted, int32_t last)
{
    struct commit commit = committing_all(tokens, last);

    tokens[accepted] = last;
    commit.accepted = (uint32_t)accepted;
    commit.count = accepted + 1;
    commit.keep = (uint32_t)(PROMPT + accepted);
    commit.digest = digest_behind(digest_of_prompt(), accepted, last);
    return commit;
}

/* Each of them comes before its Commit does, which is answered by nothing but what is for the texts behind it. */
static void test_drafter__drafts_for_several_texts_at_once(void **state)
{
    static const struct {
        int accepted;
        int32_t last;
    } text[] = {{0, EXPECTED}, {1, EXPECTED}, {LENGTH, EXPECTED}};

    (void)state;
    for (int t = 0; t < 3; t++) {
        const struct commit commit = committing_some((int32_t[LENGTH + 1]){0}, text[t].accepted, text[t].last);

        begin_ahead(3);
        say_open(LEAD, RUN, REQUEST);
        assert_hears_proposal(REQUEST, PROMPT, digest_of_prompt(), LENGTH);
        for (int i = 0; i < 3; i++) /* what may come of all drafts is drafted for last, as the last draft is fed first */
            assert_hears_proposal(REQUEST, PROMPT + text[i].accepted + 1, digest_behind(digest_of_prompt(), text[i].accepted, text[i].last), LENGTH);
        assert_hears_nothing();
        say_commit(&commit);
        assert_int_equal(moved.count, text[t].accepted == LENGTH ? 0 : 2); /* of what was drafted as much as was asked for */
        assert_int_equal(moved.to, text[t].accepted == LENGTH ? 0 : PROMPT + text[t].accepted);
        for (int i = 0; i < 3; i++) {
            struct frame frame;
            struct proposal proposal;

            assert_int_equal(hear(&frame), MESSAGE_PROPOSAL);
            assert_null(message_unpack_proposal(space, frame, VOCAB, &proposal));
            assert_true(proposal.base_length > commit.old_length + commit.count);
            assert_int_equal(proposal.ahead, proposal.count);
        }
        assert_hears_nothing();
    }
}

/* What finds no place is not taken for sent: the Commit of its text is answered. */
static void test_drafter__what_could_not_be_sent_beforehand_is_sent_when_it_is_asked_for(void **state)
{
    int32_t tokens[LENGTH + 1];

    (void)state;
    for (int waiting = 0; waiting <= CHANNEL_OUTBOX / 2; waiting += CHANNEL_OUTBOX / 2) {
        const struct loop_faults faults = {.outbox = waiting == 0}; /* one place, or half of all that are full */
        const struct commit commit = committing_all(tokens, EXPECTED);
        struct frame frame;
        int taken;

        begin_ahead(1);
        channel_loop_set_faults(end[LEAD], &faults);
        for (int i = 0; i < waiting; i++)
            assert_int_equal(channel_send(end[DRAFTER], LEAD, message_pack_plain(space, MESSAGE_HEARTBEAT, RUN), &taken), STATUS_OK);
        say_open(LEAD, RUN, REQUEST);
        for (int i = 0; i < waiting; i++)
            assert_int_equal(hear(&frame), MESSAGE_HEARTBEAT);
        assert_hears_proposal(REQUEST, PROMPT, digest_of_prompt(), LENGTH);
        assert_hears_nothing();
        say_commit(&commit);
        assert_hears_proposal(REQUEST, PROMPT + LENGTH + 1, commit.digest, 2);
    }
}

/* Nor is a draft that was asked for, and found none: it is there as soon as there is a place. */
static void test_drafter__a_draft_that_finds_no_place_is_sent_when_there_is_one(void **state)
{
    const struct loop_faults faults = {.outbox = 1};

    (void)state;
    for (int runs_ahead = 0; runs_ahead < 2; runs_ahead++) {
        if (runs_ahead)
            begin_ahead(1);
        channel_loop_set_faults(end[LEAD], &faults);
        say_open(LEAD, RUN, REQUEST);
        say_open(LEAD, RUN, REQUEST + 1);
        assert_hears_proposal(REQUEST, PROMPT, digest_of_prompt(), LENGTH);
        assert_hears_nothing();
        assert_int_equal(drafter_turn(&drafter, clock_ns()), STATUS_OK);
        assert_hears_proposal(REQUEST + 1, PROMPT, digest_of_prompt(), LENGTH);
        assert_int_equal(drafter.proposals, 2);
    }
}

/* A message ends it: a part is never sent, but gone on with where its text is committed. */
/* Another text that begins with the same tokens will find them in the cache. */
static void test_drafter__what_was_drafted_ahead_is_moved_where_its_text_ends_too(void **state)
{
    struct commit commit = committing_some((int32_t[LENGTH + 1]){0}, 1, EXPECTED);

    (void)state;
    begin_ahead(3);
    say_open(LEAD, RUN, REQUEST);
    for (int i = 0; i < 4; i++) {
        struct frame frame;

        assert_int_equal(hear(&frame), MESSAGE_PROPOSAL);
    }
    commit.finish = 1;
    say_commit(&commit);
    assert_int_equal(moved.count, 2);
    assert_int_equal(moved.to, PROMPT + 1);
    assert_hears_nothing();
}

static void test_drafter__what_is_drafted_ahead_gives_way_to_a_message(void **state)
{
    (void)state;
    for (int same = 0; same <= 1; same++)
        for (int steps = 0; steps < LENGTH; steps++) { /* the first of them looks behind the draft */
            int32_t tokens[LENGTH + 1];
            const struct commit commit = committing_all(tokens, same ? EXPECTED : EXPECTED + 1);

            begin_ahead(1);
            said_meanwhile = &commit;
            steps_before = steps;
            say_open(LEAD, RUN, REQUEST);
            assert_null(said_meanwhile);
            assert_hears_proposal(REQUEST, PROMPT, digest_of_prompt(), LENGTH);
            assert_hears_proposal(REQUEST, PROMPT + LENGTH + 1, commit.digest, 2);
            assert_hears_proposal(REQUEST, PROMPT + LENGTH + 1 + 3, digest_ahead(commit.digest, 2), 2);
            assert_hears_nothing();
        }
}

/* A message that changes nothing is answered, and then the draft is gone on with. */
/* Whenever the message comes, what was drafted ahead is whole. */
static void test_drafter__an_unhurried_drafter_takes_no_message_before_it_has_drafted_ahead(void **state)
{
    (void)state;
    for (int steps = 0; steps < LENGTH; steps++) {
        const struct commit commit = committing_all((int32_t[LENGTH + 1]){0}, EXPECTED);

        begin_with(&(struct drafter_terms){TERMS, .run_ahead = 1, .branches = 1, .unhurried = 1});
        said_meanwhile = &commit;
        steps_before = steps;
        say_open(LEAD, RUN, REQUEST);
        assert_null(said_meanwhile);
        assert_hears_proposal(REQUEST, PROMPT, digest_of_prompt(), LENGTH);
        assert_hears_proposal(REQUEST, PROMPT + LENGTH + 1, commit.digest, LENGTH); /* not of the two that the commit asks for */
    }
}

static void test_drafter__what_is_drafted_ahead_is_sent_whole(void **state)
{
    struct frame frame;

    (void)state;
    begin_ahead(1);
    looks_meanwhile = 1;
    say_open(LEAD, RUN, REQUEST);
    assert_hears_proposal(REQUEST, PROMPT, digest_of_prompt(), LENGTH);
    assert_int_equal(hear(&frame), MESSAGE_HEARTBEAT);
    assert_hears_proposal(REQUEST, PROMPT + LENGTH + 1, digest_ahead(digest_of_prompt(), LENGTH), LENGTH);
    assert_hears_nothing();
}

/* LONG tokens, of which all but the last ten are the same. */
static void say_long_open(uint32_t request)
{
    int32_t text[LONG];

    for (int i = 0; i < LONG; i++)
        text[i] = 30 + i % 7 + (i >= LONG - 10 ? (int)request : 0);
    const struct open_message open = {.run = RUN,
                                      .request = request,
                                      .prompt_count = LONG,
                                      .tokens = text,
                                      .count = LONG,
                                      .sampling = sampling_default,
                                      .draft_length = LENGTH,
                                      .limit = CONTEXT};

    say(LEAD, message_pack_open(space, &open));
}

/* Part by part, the lead being told that it is being read, before it is answered; a short one that comes meanwhile is answered at once. */
static void test_drafter__a_long_text_is_read_in_parts_behind_what_is_short(void **state)
{
    int64_t now = INT64_C(1000000000);
    struct frame frame;

    (void)state;
    clock_pretend(&now);
    draft.kind = &reading;
    say_long_open(REQUEST);
    assert_int_equal(rows_of_part, 64);
    assert_int_equal(hear(&frame), MESSAGE_HEARTBEAT);
    assert_hears_nothing();
    say_open(LEAD, RUN, REQUEST + 1);
    assert_int_equal(hear(&frame), MESSAGE_PROPOSAL);
    assert_hears_nothing();
    assert_int_equal(rows_of_part, 16); /* a small part, for the short one may want more */
    for (int turn = 0; drafter.proposals < 2; turn++) {
        assert_true(turn < LONG);
        assert_int_equal(drafter_turn(&drafter, clock_ns()), STATUS_OK);
    }
    assert_in_range(rows_read, LONG - MESSAGE_LONG_TEXT, LONG - 1);
    assert_int_equal(hear(&frame), MESSAGE_PROPOSAL);
    assert_hears_nothing();
    clock_pretend(NULL);
}

/* Nobody sends anything that would end the wait of another turn. */
static void test_drafter__a_text_is_answered_in_the_turn_that_has_read_it(void **state)
{
    (void)state;
    draft.kind = &reading;
    say_long_open(REQUEST);
    for (int turn = 0; drafter.proposals == 0; turn++) {
        assert_true(turn < LONG);
        assert_true(drafter.mirror[0].length - drafter.mirror[0].cached > MESSAGE_LONG_TEXT);
        assert_int_equal(drafter_turn(&drafter, clock_ns()), STATUS_OK);
    }
}

static void test_drafter__what_another_text_begins_with_is_copied(void **state)
{
    (void)state;
    draft.kind = &reading;
    say_long_open(REQUEST);
    while (drafter.proposals < 1)
        assert_int_equal(drafter_turn(&drafter, clock_ns()), STATUS_OK);
    drafter.mirror[0].cached = LONG - 1; /* as after a proposal */
    rows_read = 0;
    say_long_open(REQUEST + 1);
    while (drafter.proposals < 2)
        assert_int_equal(drafter_turn(&drafter, clock_ns()), STATUS_OK);
    assert_int_equal(copied, LONG - 10);
    assert_int_equal(copied_from, 0);
    assert_int_equal(drafter.reused, LONG - 10);
    assert_int_equal(rows_read, 0);
}

static void test_drafter__an_open_is_answered_by_one_proposal(void **state)
{
    (void)state;
    say_open(LEAD, RUN, REQUEST);
    assert_hears_proposal(REQUEST, PROMPT, digest_of_prompt(), LENGTH);
    assert_int_equal(drafter_turn(&drafter, clock_ns()), STATUS_OK);
    assert_hears_nothing();
    assert_int_equal(drafter.proposals, 1);
}

static void test_drafter__a_commit_is_answered_by_a_proposal_on_all_tokens(void **state)
{
    const int32_t token = 40;
    const struct commit commit = committing(&token, PROMPT, digest_of_prompt());

    (void)state;
    say_open(LEAD, RUN, REQUEST);
    assert_hears_proposal(REQUEST, PROMPT, digest_of_prompt(), LENGTH);
    say(LEAD, message_pack_commit(space, &commit));
    assert_hears_proposal(REQUEST, PROMPT + 1, commit.digest, 2);
}

static void test_drafter__a_commit_that_does_not_fit_is_followed_by_silence_until_an_open(void **state)
{
    const int32_t token = 40;
    struct commit commit = committing(&token, PROMPT + 1, digest_of_prompt());

    (void)state;
    say_open(LEAD, RUN, REQUEST);
    assert_hears_proposal(REQUEST, PROMPT, digest_of_prompt(), LENGTH);
    say(LEAD, message_pack_commit(space, &commit));
    assert_hears_nothing();
    commit = committing(&token, PROMPT, digest_of_prompt());
    say(LEAD, message_pack_commit(space, &commit));
    assert_hears_nothing();
    assert_int_equal(drafter.unfitting, 2);
    say_open(LEAD, RUN, REQUEST);
    assert_hears_proposal(REQUEST, PROMPT, digest_of_prompt(), LENGTH);
}

static void test_drafter__another_run_is_not_served(void **state)
{
    const int32_t token = 40;
    struct commit commit = committing(&token, PROMPT, digest_of_prompt());

    (void)state;
    say_open(LEAD, RUN + 1, REQUEST);
    assert_hears_nothing();
    assert_int_equal(drafter.refused, 1);
    say_open(LEAD, RUN, REQUEST);
    assert_hears_proposal(REQUEST, PROMPT, digest_of_prompt(), LENGTH);
    commit.run++;
    say(LEAD, message_pack_commit(space, &commit));
    assert_hears_nothing();
    say(LEAD, message_pack_plain(space, MESSAGE_SHUTDOWN, RUN + 1));
    assert_false(drafter.ended);
    say(LEAD, message_pack_plain(space, MESSAGE_SHUTDOWN, RUN));
    assert_true(drafter.ended);
}

static void test_drafter__a_stranger_is_not_heard(void **state)
{
    (void)state;
    say_open(STRANGER, RUN, REQUEST);
    say(STRANGER, message_pack_plain(space, MESSAGE_SHUTDOWN, RUN));
    assert_hears_nothing();
    assert_int_equal(drafter.refused, 2);
    assert_false(drafter.ended);
}

/* It ends by a Commit that says so, or by a Close. */
static void test_drafter__a_request_that_is_over_makes_room(void **state)
{
    const int32_t token = 40;
    struct commit commit = committing(&token, PROMPT, digest_of_prompt());

    (void)state;
    commit.finish = 1;
    commit.draft_length = 0;
    say_open(LEAD, RUN, REQUEST);
    say_open(LEAD, RUN, REQUEST + 1);
    assert_int_equal(drafter.mirror[0].open + drafter.mirror[1].open, 2);
    say(LEAD, message_pack_commit(space, &commit));
    assert_int_equal(drafter.mirror[0].open + drafter.mirror[1].open, 1);
    say(LEAD, message_pack_close(space, &(struct close_message){.run = RUN, .request = REQUEST + 1}));
    assert_int_equal(drafter.mirror[0].open + drafter.mirror[1].open, 0);
}

static void test_drafter__a_heartbeat_is_answered(void **state)
{
    struct frame frame;

    (void)state;
    say(LEAD, message_pack_plain(space, MESSAGE_HEARTBEAT, RUN));
    assert_int_equal(hear(&frame), MESSAGE_HEARTBEAT);
    assert_hears_nothing();
}

/* A lead that sends nothing for longer than the drafter's patience, and at last that it is over. */
struct silence {
    int64_t now;
    int turns;
    struct doorbell own, lead;
    int works; /* the lead, meanwhile */
};

static void pass_time(void *user, int who, int64_t deadline_ns)
{
    struct silence *silence = user;
    int taken;

    (void)who;
    silence->now = deadline_ns;
    atomic_fetch_add(&silence->lead.made, (uint64_t)silence->works);
    if (++silence->turns == 100)
        assert_int_equal(channel_send(end[LEAD], DRAFTER, message_pack_plain(space, MESSAGE_SHUTDOWN, RUN), &taken), STATUS_OK);
}

static enum status sit_through(int works)
{
    struct silence silence = {.now = 1000000000, .works = works};
    struct doorbells doorbells = {.mine = &silence.own, .first = &silence.own, .of = {&silence.lead, &silence.own}};
    struct world world = {.rank = DRAFTER, .size = 2, .doorbells = &doorbells};
    const struct loop_hooks hooks = {.user = &silence, .wait = pass_time};
    struct loop_hooks none = {0};
    enum status status;

    channel_loop_hook(end[DRAFTER], &hooks);
    clock_pretend(&silence.now);
    drafter.terms.world = &world;
    drafter.terms.patience_s = 5;
    status = drafter_run(&drafter);
    clock_pretend(NULL);
    channel_loop_hook(end[DRAFTER], &none);
    return status;
}

static void test_drafter__a_lead_that_gets_something_done_is_there(void **state)
{
    (void)state;
    assert_int_equal(sit_through(1), STATUS_OK);
}

static void test_drafter__a_lead_that_is_silent_and_gets_nothing_done_is_lost(void **state)
{
    (void)state;
    log_init("test_drafter", LOG_ERROR);
    log_hold();
    assert_int_equal(sit_through(0), STATUS_WATCHDOG);
    log_let_go(0);
}

int main(void)
{
#define OPENED(test) cmocka_unit_test_setup_teardown(test, open_drafter, close_drafter)
    const struct CMUnitTest tests[] = {
        OPENED(test_drafter__an_unhurried_drafter_takes_no_message_before_it_has_drafted_ahead),
        OPENED(test_drafter__what_is_drafted_ahead_is_sent_whole),
        OPENED(test_drafter__drafts_for_several_texts_at_once),
        OPENED(test_drafter__a_draft_that_finds_no_place_is_sent_when_there_is_one),
        OPENED(test_drafter__what_could_not_be_sent_beforehand_is_sent_when_it_is_asked_for),
        OPENED(test_drafter__what_was_drafted_ahead_is_moved_where_its_text_ends_too),
        OPENED(test_drafter__what_is_drafted_ahead_gives_way_to_a_message),
        OPENED(test_drafter__drafts_anew_where_another_text_comes),
        OPENED(test_drafter__drafts_for_the_text_that_is_expected_and_answers_its_commit_beforehand),
        OPENED(test_drafter__an_open_is_answered_by_one_proposal),
        OPENED(test_drafter__a_commit_is_answered_by_a_proposal_on_all_tokens),
        OPENED(test_drafter__a_commit_that_does_not_fit_is_followed_by_silence_until_an_open),
        OPENED(test_drafter__another_run_is_not_served),
        OPENED(test_drafter__a_stranger_is_not_heard),
        OPENED(test_drafter__a_request_that_is_over_makes_room),
        OPENED(test_drafter__a_long_text_is_read_in_parts_behind_what_is_short),
        OPENED(test_drafter__a_text_is_answered_in_the_turn_that_has_read_it),
        OPENED(test_drafter__what_another_text_begins_with_is_copied),
        OPENED(test_drafter__a_heartbeat_is_answered),
        OPENED(test_drafter__a_lead_that_gets_something_done_is_there),
        OPENED(test_drafter__a_lead_that_is_silent_and_gets_nothing_done_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
