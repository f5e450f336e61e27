#include "verifier/round/sequence.h"

#include "common/base/digest.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CONTEXT = 40, ROOM = 4, PROMPT = 3, LINKS = 2 };

struct rig {
    struct arena arena;
    struct tokenizer *tokenizer;
    struct request request;
    struct sequence sequence;
};

static int32_t prompt[PROMPT] = {30, 31, 32};
static const int32_t ids[] = {5, 6, 7, 8, 9};
static const uint32_t weights[] = {65532, 1, 1, 1, 1};

static int open_rig_of(void **state, int links)
{
    struct rig *rig = calloc(1, sizeof *rig);

    assert_non_null(rig);
    *state = rig;
    rig->request = (struct request){
        .tokens = prompt, .prompt_count = PROMPT, .sampling = sampling_default, .max_tokens = 10, .draft_length = 4};
    assert_int_equal(tokenizer_open(TANDEM_SOURCE_DIR "/launch/demo/target", 0, &rig->tokenizer), STATUS_OK);
    assert_int_equal(arena_open(&rig->arena, sequence_bytes(CONTEXT, ROOM, links), "a sequence"), STATUS_OK);
    sequence_init(&rig->sequence, &rig->arena, 2, CONTEXT, ROOM, links);
    assert_int_equal(sequence_open(&rig->sequence, &rig->request, 0, rig->tokenizer, NULL, 0, CONTEXT), STATUS_OK);
    rig->sequence.link[0].wanted = 4;
    return 0;
}

static int open_rig(void **state)
{
    return open_rig_of(state, 1);
}

static int open_merging_rig(void **state)
{
    return open_rig_of(state, LINKS);
}

static int close_rig(void **state)
{
    struct rig *rig = *state;

    sequence_close(&rig->sequence);
    arena_close(&rig->arena);
    tokenizer_close(rig->tokenizer);
    free(rig);
    return 0;
}

static void test_sequence__what_may_not_come_early_has_the_end_of_a_chats_answer(void **state)
{
    static const int32_t eos[] = {0, 9};
    struct rig *rig = *state;
    struct request request = rig->request;
    struct bias bias;

    request.min_tokens = 2;
    request.has_turn_end = 1;
    request.turn_end = 7;
    sequence_fill_bias(&request, eos, 2, &bias);
    assert_int_equal(bias.enders, 3);
    assert_int_equal(bias.ender[0], 7);
    request.ignore_eos = 1;
    sequence_fill_bias(&request, eos, 2, &bias);
    assert_int_equal(bias.enders, 0);
}

/* A proposal that fits. */
static struct proposal fitting(const struct rig *rig)
{
    struct proposal proposal = {.base_length = (uint32_t)rig->sequence.length,
                                .base_digest = rig->sequence.digest,
                                .sampling_digest = sampling_digest(&rig->request.sampling),
                                .count = 2,
                                .token = {5, 6}};

    proposal.q[1] = (struct support){.count = 4, .id = ids, .weight = weights};
    return proposal;
}

static void test_sequence__open_takes_the_prompt(void **state)
{
    const struct sequence *sequence = &((struct rig *)*state)->sequence;

    assert_int_equal(sequence->length, PROMPT);
    assert_memory_equal(sequence->tokens, prompt, sizeof prompt);
    assert_true(sequence->digest == digest_tokens(DIGEST_EMPTY, prompt, PROMPT));
    assert_int_equal(sequence->limit, PROMPT + 10);
    assert_int_equal(sequence->slot, 2);
}

/* A cache keeps no logits: what is asked about is fed, whoever has read the same before. */
static void test_sequence__what_is_scored_is_not_reused(void **state)
{
    struct rig *rig = *state;
    struct sequence *sequence = &rig->sequence;

    sequence->cached = PROMPT - 1;
    sequence_close(sequence);
    rig->request.logprobs = 0;
    rig->request.scores = 1;
    assert_int_equal(sequence_open(sequence, &rig->request, 0, rig->tokenizer, NULL, 0, CONTEXT), STATUS_OK);
    assert_int_equal(sequence->cached, PROMPT - 2);
    assert_int_equal(sequence_scored_rows(sequence, 1), 1);
    sequence->cached = 0;
    assert_int_equal(sequence_scored_rows(sequence, 1), 0);
    assert_int_equal(sequence_scored_rows(sequence, 2), 1);
    assert_null(sequence_logprob(sequence, PROMPT - 2));
    assert_ptr_equal(sequence_logprob(sequence, PROMPT - 1), sequence->logprobs);
    assert_ptr_equal(sequence_logprob(sequence, PROMPT), sequence->logprobs + 1);
    assert_int_equal(sequence_only_reads(sequence), 0);
}

static void test_sequence__context_bounds_the_limit(void **state)
{
    struct rig *rig = *state;

    sequence_close(&rig->sequence);
    rig->request.max_tokens = 1000;
    assert_int_equal(sequence_open(&rig->sequence, &rig->request, 0, rig->tokenizer, NULL, 0, CONTEXT), STATUS_OK);
    assert_int_equal(rig->sequence.limit, CONTEXT);
}

/* What would end it is held back for min_tokens; drafters must know, or their proposals are of another distribution. */
static void test_sequence__open_gathers_what_is_asked_of_tokens(void **state)
{
    static const int32_t eos[] = {1, 2};
    int32_t stop_token[] = {50};
    struct rig *rig = *state;
    struct proposal plain = fitting(rig), proposal = plain;
    struct bias bias;

    bias_init(&bias);
    bias_add_token(&bias, 7, 0.5);
    rig->request.bias = &bias;
    rig->request.stop_token = stop_token;
    rig->request.stop_tokens = 1;
    rig->request.min_tokens = 3;
    for (int ignore = 0; ignore < 2; ignore++) {
        sequence_close(&rig->sequence);
        rig->request.ignore_eos = ignore;
        assert_int_equal(sequence_open(&rig->sequence, &rig->request, 0, rig->tokenizer, eos, 2, CONTEXT), STATUS_OK);
        rig->sequence.link[0].wanted = 4;
        assert_int_equal(rig->sequence.bias.tokens, 1);
        assert_int_equal(rig->sequence.bias.min_tokens, 3);
        assert_int_equal(rig->sequence.bias.enders, ignore ? 1 : 3);
        assert_int_equal(rig->sequence.bias.ender[0], 50);
        assert_false(sequence_offer(&rig->sequence, rig->sequence.link, &plain));
        proposal.sampling_digest = bias_digest(&rig->sequence.bias, sampling_digest(&rig->request.sampling));
        assert_true(sequence_offer(&rig->sequence, rig->sequence.link, &proposal));
        rig->sequence.link[0].has_proposal = 0;
    }
}

static void test_sequence__offer_copies_what_fits(void **state)
{
    struct rig *rig = *state;
    struct proposal proposal = fitting(rig);
    int32_t own_ids[ROOM];

    memcpy(own_ids, ids, sizeof own_ids);
    proposal.q[1].id = own_ids;
    assert_true(sequence_offer(&rig->sequence, rig->sequence.link, &proposal));
    memset(own_ids, 0, sizeof own_ids); /* the message's memory is used again */
    assert_true(rig->sequence.link[0].has_proposal);
    assert_int_equal(rig->sequence.link[0].proposal.count, 2);
    assert_int_equal(rig->sequence.link[0].proposal.q[0].count, 0);
    assert_memory_equal(rig->sequence.link[0].proposal.q[1].id, ids, sizeof own_ids);
    assert_memory_equal(rig->sequence.link[0].proposal.q[1].weight, weights, sizeof own_ids);
}

static void test_sequence__offer_refuses_what_was_drafted_on_something_else(void **state)
{
    struct rig *rig = *state;

    rig->sequence.sampling.temperature = 0.8;
    for (int i = 0; i < 6; i++) {
        struct proposal proposal = fitting(rig);

        if (i == 0)
            proposal.base_digest ^= 1;
        else if (i == 1)
            proposal.base_length += MESSAGE_MAX_COMMIT + 1; /* more than a round may commit */
        else if (i == 2)
            proposal.sampling_digest ^= 1;
        else if (i == 3)
            rig->sequence.link[0].wanted = 0; /* nothing was asked for */
        else if (i == 4)
            proposal.is_tree = 1; /* which rejection does not decide about */
        else
            proposal.q[1].count = ROOM + 1;
        assert_int_equal(sequence_offer(&rig->sequence, rig->sequence.link, &proposal), OFFER_REFUSED);
        assert_false(rig->sequence.link[0].has_proposal);
        for (int k = 0; k < DRAFT_SHELF; k++)
            assert_false(rig->sequence.link[0].shelf[k].is_there);
        rig->sequence.link[0].wanted = 4;
    }
}

/* By a rule that decides about any tree; the first of its tokens are a tree, too. */
static void test_sequence__offer_of_a_tree_is_taken_where_the_rule_decides_about_it(void **state)
{
    static const struct {
        double temperature;
        int accept;
    } rule[] = {{0, ACCEPT_REJECTION}, {0.8, ACCEPT_COUPLED}, {0.8, ACCEPT_WALK}};
    struct rig *rig = *state;

    for (int i = 0; i < 3; i++) {
        struct proposal proposal = fitting(rig);

        proposal.is_tree = 1;
        proposal.parent[0] = proposal.parent[1] = -1;
        rig->sequence.sampling.temperature = rule[i].temperature;
        rig->sequence.sampling.accept = rule[i].accept;
        rig->sequence.link[0].wanted = 1 + i % 2;
        assert_int_equal(sequence_offer(&rig->sequence, rig->sequence.link, &proposal), OFFER_TAKEN);
        assert_true(rig->sequence.link[0].proposal.is_tree);
        assert_int_equal(rig->sequence.link[0].proposal.count, 1 + i % 2);
        assert_int_equal(rig->sequence.link[0].proposal.parent[0], -1);
    }
}

/* Where the text depends on drafts, of a length that the request itself has. */
static void test_sequence__a_text_is_to_repeat_where_nothing_but_its_seed_decides(void **state)
{
    static const struct {
        double temperature;
        int accept, adaptive, repeats;
    } cases[] = {{0, ACCEPT_REJECTION, 0, 0}, {0.8, ACCEPT_REJECTION, 0, 1}, {0.8, ACCEPT_REJECTION, 1, 0}, {0.8, ACCEPT_COUPLED, 0, 0}};
    struct rig *rig = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sequence_close(&rig->sequence);
        rig->request.sampling.temperature = cases[i].temperature;
        rig->request.sampling.accept = cases[i].accept;
        rig->request.adaptive = cases[i].adaptive;
        assert_int_equal(sequence_open(&rig->sequence, &rig->request, 0, NULL, NULL, 0, CONTEXT), STATUS_OK);
        assert_int_equal(rig->sequence.repeats, cases[i].repeats);
    }
}

/* One draft is verified: that of the kind that was right before, but where the same seed is to give the same text whatever was decoded before it. */
static void test_sequence__several_drafts_are_joined_by_what_was_accepted_where_no_text_is_to_repeat(void **state)
{
    static const struct {
        double temperature;
        int accept, adaptive, length, count;
        int32_t token;
    } cases[] = {
        {0, ACCEPT_REJECTION, 0, 1, 1, 8},   {0.8, ACCEPT_COUPLED, 0, 1, 1, 8},   {0.8, ACCEPT_MULTISTEP, 1, 1, 1, 8},
        {0.8, ACCEPT_MULTISTEP, 0, 1, 1, 5}, {0.8, ACCEPT_MULTISTEP, 0, 4, 2, 5}, {0, ACCEPT_REJECTION, 0, 4, 2, 5},
    };
    struct rig *rig = *state;
    struct merge merge = {0};

    for (int i = 0; i < 100; i++) {
        merge_learn(&merge, 0, 1, 0);
        merge_learn(&merge, 1, 1, 1);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct proposal *proposal;

        sequence_close(&rig->sequence);
        rig->request.sampling.temperature = cases[i].temperature;
        rig->request.sampling.accept = cases[i].accept;
        rig->request.adaptive = cases[i].adaptive;
        rig->request.draft_length = cases[i].length;
        assert_int_equal(sequence_open(&rig->sequence, &rig->request, 0, NULL, NULL, 0, CONTEXT), STATUS_OK);
        for (int kind = 0; kind < LINKS; kind++) {
            struct proposal one = fitting(rig);

            one.count = 1;
            one.token[0] = kind == 0 ? 5 : 8;
            one.q[0] = (struct support){.count = 4, .id = ids, .weight = weights};
            rig->sequence.link[kind].wanted = 1;
            assert_int_equal(sequence_offer(&rig->sequence, &rig->sequence.link[kind], &one), OFFER_TAKEN);
        }
        sequence_merge(&rig->sequence, &merge);
        proposal = sequence_proposal(&rig->sequence);
        assert_int_equal(proposal->count, cases[i].count);
        assert_int_equal(proposal->token[0], cases[i].token);
        assert_int_equal(proposal->asked.count, cases[i].count > 1 && cases[i].accept == ACCEPT_MULTISTEP ? 4 : 0);
    }
}

static void test_sequence__offer_of_more_than_was_asked_for_is_cut(void **state)
{
    struct rig *rig = *state;
    struct proposal proposal = fitting(rig);

    rig->sequence.link[0].wanted = 1;
    assert_int_equal(sequence_offer(&rig->sequence, rig->sequence.link, &proposal), OFFER_TAKEN);
    assert_int_equal(rig->sequence.link[0].proposal.count, 1);
}

/* A proposal for tokens that are not committed yet is used when they are, once, and only for just these. */
static void test_sequence__what_is_drafted_ahead_lies_on_the_shelf_until_its_tokens_are_committed(void **state)
{
    const int32_t tokens[] = {9, 8}, others[] = {9, 7};
    struct rig *rig = *state;

    for (int same = 0; same <= 1; same++) {
        struct proposal proposal = fitting(rig), now = fitting(rig);
        int32_t own_ids[ROOM];

        memcpy(own_ids, ids, sizeof own_ids);
        proposal.q[1].id = own_ids;
        proposal.base_length += 2;
        proposal.base_digest = digest_tokens(rig->sequence.digest, tokens, 2);
        assert_int_equal(sequence_offer(&rig->sequence, rig->sequence.link, &proposal), OFFER_KEPT);
        memset(own_ids, 0, sizeof own_ids);
        now.q[1].id = own_ids;
        assert_false(rig->sequence.link[0].has_proposal);
        assert_int_equal(sequence_offer(&rig->sequence, rig->sequence.link, &now), OFFER_TAKEN); /* beside it */
        sequence_commit(&rig->sequence, same ? tokens : others, 2);
        assert_false(draft_link_fetch(rig->sequence.link, rig->sequence.length, rig->sequence.digest)); /* nothing was asked for */
        rig->sequence.link[0].wanted = 4;
        assert_int_equal(draft_link_fetch(rig->sequence.link, rig->sequence.length, rig->sequence.digest), same);
        assert_int_equal(rig->sequence.link[0].has_proposal, same);
        if (same)
            assert_memory_equal(rig->sequence.link[0].proposal.q[1].id, ids, sizeof own_ids);
        rig->sequence.link[0].has_proposal = 0;
        assert_int_equal(draft_link_fetch(rig->sequence.link, rig->sequence.length, rig->sequence.digest), 0); /* it is used up */
    }
}

/* Closes the sequence and opens one on a prompt of `count` tokens; returns how many of them need not be fed. */
static int reopen(struct rig *rig, int32_t *tokens, int count)
{
    struct request next = {.tokens = tokens, .prompt_count = count, .sampling = sampling_default, .max_tokens = 10};

    sequence_close(&rig->sequence);
    assert_int_equal(sequence_open(&rig->sequence, &next, 0, rig->tokenizer, NULL, 0, CONTEXT), STATUS_OK);
    rig->sequence.request = &rig->request; /* `next` ends here */
    return rig->sequence.cached;
}

/* A proposal for the text that token `last` makes of the committed ones, `last` being all that tells the texts of one length apart. */
static struct proposal ahead_of(struct rig *rig, int length, int32_t last)
{
    struct proposal proposal = fitting(rig);
    int32_t tokens[MESSAGE_MAX_COMMIT] = {0};

    tokens[length - 1] = last;
    proposal.base_length += (uint32_t)length;
    proposal.base_digest = digest_tokens(rig->sequence.digest, tokens, length);
    proposal.token[0] = last;
    return proposal;
}

/* Offers as many texts as the shelf has places, each told by its last token, of one and of two tokens in turns; commits one of them. */
static void commit_one_of(struct rig *rig, int which)
{
    int32_t tokens[2] = {0, which};

    for (int i = 0; i < DRAFT_SHELF; i++) {
        struct proposal proposal = ahead_of(rig, 1 + i % 2, i);

        assert_int_equal(sequence_offer(&rig->sequence, rig->sequence.link, &proposal), OFFER_KEPT);
    }
    sequence_commit(&rig->sequence, which % 2 ? tokens : tokens + 1, 1 + which % 2);
    rig->sequence.link[0].wanted = 4;
    assert_true(draft_link_fetch(rig->sequence.link, rig->sequence.length, rig->sequence.digest));
    assert_int_equal(rig->sequence.link[0].proposal.token[0], which);
}

/* Each is found, and the others go. */
static void test_sequence__of_several_texts_that_which_is_committed_is_taken(void **state)
{
    struct rig *rig = *state;

    for (int which = 0; which < DRAFT_SHELF; which++) {
        reopen(rig, rig->sequence.tokens, 3);
        rig->sequence.link[0].wanted = 4;
        commit_one_of(rig, which);
        for (int i = 0; i < DRAFT_SHELF; i++)
            assert_false(rig->sequence.link[0].shelf[i].is_there);
    }
}

/* What the drafter sends before it hears of a commit comes after that, and is for nothing. What it sends for the next draft is there all the same,
 * however long the texts are: the drafter takes it as sent. */
static void test_sequence__what_came_late_pushes_out_nothing_of_the_next_draft(void **state)
{
    struct rig *rig = *state;

    for (int late = 0; late <= DRAFT_SHELF; late++)
        for (int which = 0; which < DRAFT_SHELF; which++) {
            reopen(rig, rig->sequence.tokens, 3);
            rig->sequence.link[0].wanted = 4;
            for (int i = 0; i < late; i++) {
                struct proposal proposal = ahead_of(rig, 1 + i % MESSAGE_MAX_COMMIT, 100 + i);

                assert_int_equal(sequence_offer(&rig->sequence, rig->sequence.link, &proposal), OFFER_KEPT);
            }
            commit_one_of(rig, which);
        }
}

static void test_sequence__commit_uses_the_proposal_up(void **state)
{
    struct rig *rig = *state;
    const int32_t tokens[] = {9, 8};
    const int32_t all[] = {30, 31, 32, 9, 8};
    struct proposal proposal = fitting(rig);

    assert_true(sequence_offer(&rig->sequence, rig->sequence.link, &proposal));
    sequence_commit(&rig->sequence, tokens, 2);
    assert_int_equal(rig->sequence.length, 5);
    assert_int_equal(rig->sequence.cached, 4);
    assert_memory_equal(rig->sequence.tokens, all, sizeof all);
    assert_true(rig->sequence.digest == digest_tokens(DIGEST_EMPTY, all, 5));
    assert_false(rig->sequence.link[0].has_proposal);
    assert_int_equal(rig->sequence.link[0].wanted, 0);
    assert_false(sequence_offer(&rig->sequence, rig->sequence.link, &proposal)); /* it comes again, too late */
}

static void test_sequence__a_new_prompt_keeps_what_the_cache_holds_of_it(void **state)
{
    struct rig *rig = *state;
    const int32_t committed[] = {5, 6};
    int32_t same[] = {30, 31, 32, 5, 6, 7}, other[] = {30, 31, 9, 5, 6, 7};

    assert_int_equal(rig->sequence.cached, 0);
    sequence_commit(&rig->sequence, committed, 2);          /* the cache holds 30 31 32 5, and not 6, which was not fed */
    assert_int_equal(reopen(rig, same, 6), 4);
    assert_int_equal(reopen(rig, same, 3), 2);              /* the newest token is fed anew, for its logits */
    assert_int_equal(reopen(rig, same, 6), 2);              /* nothing was fed since: no more than before */
    rig->sequence.cached = 5;                               /* as if it had been */
    assert_int_equal(reopen(rig, other, 6), 2);
    assert_memory_equal(rig->sequence.tokens, other, sizeof other);
    assert_int_equal(reopen(rig, other + 1, 5), 0);
}

static void test_sequence__wants_one_less_than_may_come(void **state)
{
    struct rig *rig = *state;
    const int32_t token = 9;

    for (int left = 10; left > 0; left--) {
        assert_int_equal(sequence_wants(&rig->sequence), left - 1 < 4 ? left - 1 : 4);
        sequence_commit(&rig->sequence, &token, 1);
    }
    assert_int_equal(sequence_wants(&rig->sequence), 0);
}

static void test_sequence__wants_no_more_than_a_message_holds(void **state)
{
    struct rig *rig = *state;

    rig->request.draft_length = 1000;
    rig->sequence.limit = CONTEXT * 100;
    assert_int_equal(sequence_wants(&rig->sequence), MESSAGE_MAX_DRAFT);
}

/* As many as are wanted, of its newest token, each a point mass; and none where no more than one token may come. */
static void test_sequence__is_filled_with_what_nobody_drafted(void **state)
{
    struct rig *rig = *state;
    const struct proposal *proposal;

    for (int left = 10; left > 1; left--) {
        sequence_fill(&rig->sequence, 100);
        proposal = sequence_proposal(&rig->sequence);
        assert_non_null(proposal);
        assert_int_equal(proposal->count, left - 1 < 4 ? left - 1 : 4);
        assert_false(proposal->is_tree);
        for (int i = 0; i < proposal->count; i++)
            assert_true(proposal->token[i] == rig->sequence.tokens[rig->sequence.length - 1] && proposal->q[i].count == 0);
        sequence_commit(&rig->sequence, &ids[left % 5], 1);
    }
    sequence_fill(&rig->sequence, 100);
    assert_null(sequence_proposal(&rig->sequence));
}

/* A rule that asks for q gets one: of as many ids as are said and there is room for, rising, the token among them. */
static void test_sequence__is_filled_with_q_where_the_rule_asks_for_it(void **state)
{
    static const int32_t newest[] = {0, 1, 2, 3, 4, 39};
    struct rig *rig = *state;

    rig->sequence.sampling.temperature = 1;
    for (int support = 1; support <= ROOM + 1; support++)
        for (size_t n = 0; n < sizeof newest / sizeof *newest; n++) {
            const struct proposal *proposal;

            rig->sequence.tokens[rig->sequence.length - 1] = newest[n];
            sequence_fill(&rig->sequence, support);
            proposal = sequence_proposal(&rig->sequence);
            assert_int_equal(proposal->count, 4);
            for (int i = 0; i < proposal->count; i++) {
                const struct support *q = &proposal->q[i];
                uint32_t sum = 0;
                int found = 0;

                assert_int_equal(q->count, support == 1 ? 0 : support < ROOM ? support : ROOM);
                for (int j = 0; j < q->count; j++) {
                    assert_true(q->weight[j] >= 1 && (j == 0 || q->id[j] > q->id[j - 1]));
                    sum += q->weight[j];
                    found += q->id[j] == newest[n];
                }
                assert_true(q->count == 0 || (sum == MESSAGE_Q_SUM && found == 1));
            }
        }
    rig->sequence.sampling.accept = ACCEPT_COUPLED;
    sequence_fill(&rig->sequence, ROOM);
    assert_int_equal(sequence_proposal(&rig->sequence)->q[0].count, 0);
}

int main(void)
{
#define RIGGED(test) cmocka_unit_test_setup_teardown(test, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        RIGGED(test_sequence__what_may_not_come_early_has_the_end_of_a_chats_answer),
        RIGGED(test_sequence__open_takes_the_prompt),
        RIGGED(test_sequence__what_is_scored_is_not_reused),
        RIGGED(test_sequence__context_bounds_the_limit),
        RIGGED(test_sequence__open_gathers_what_is_asked_of_tokens),
        RIGGED(test_sequence__offer_copies_what_fits),
        RIGGED(test_sequence__offer_refuses_what_was_drafted_on_something_else),
        RIGGED(test_sequence__offer_of_a_tree_is_taken_where_the_rule_decides_about_it),
        RIGGED(test_sequence__a_text_is_to_repeat_where_nothing_but_its_seed_decides),
        cmocka_unit_test_setup_teardown(test_sequence__several_drafts_are_joined_by_what_was_accepted_where_no_text_is_to_repeat, open_merging_rig,
                                        close_rig),
        RIGGED(test_sequence__offer_of_more_than_was_asked_for_is_cut),
        RIGGED(test_sequence__what_is_drafted_ahead_lies_on_the_shelf_until_its_tokens_are_committed),
        RIGGED(test_sequence__of_several_texts_that_which_is_committed_is_taken),
        RIGGED(test_sequence__what_came_late_pushes_out_nothing_of_the_next_draft),
        RIGGED(test_sequence__commit_uses_the_proposal_up),
        RIGGED(test_sequence__a_new_prompt_keeps_what_the_cache_holds_of_it),
        RIGGED(test_sequence__wants_one_less_than_may_come),
        RIGGED(test_sequence__is_filled_with_what_nobody_drafted),
        RIGGED(test_sequence__is_filled_with_q_where_the_rule_asks_for_it),
        RIGGED(test_sequence__wants_no_more_than_a_message_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
