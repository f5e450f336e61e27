#include "tests/law/toy_round.h"

#include "common/base/digest.h"
#include "drafter/draft_model.h"
#include "drafter/run_ahead.h"
#include "tests/law/toy_hub.h"
#include "verifier/round/adaptive.h"
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RUN_ID = 7, MAX_ASKED = TOY_SLOTS * MESSAGE_MAX_COMMIT, SUPPORT_ROOM = 256 };

struct toy_parts {
    int price; /* how many Commits had one */
    struct toy_hub hub;
    struct group group[TOY_SHARDS], alone;
    struct toy_model target[TOY_SHARDS], draft_model, second_model;
    struct team team[TOY_SHARDS];
    struct backend_context *context;
    struct verify verify;
    struct draft draft, second;
    struct run_ahead ahead;
    struct arena arena;
    struct mirror mirror[TOY_SLOTS], second_mirror[TOY_SLOTS];
    struct draft_output second_output[TOY_SLOTS];
    struct merge merge;
    struct sequence sequence[TOY_SLOTS];
    struct request request[TOY_SLOTS];
    int32_t prompt[TOY_PROMPT];
    struct message_space *lead_space, *drafter_space;
    struct tokenizer *tokenizer;
    struct sequence *active[TOY_SLOTS];
    int next;
    struct adaptive adaptive;
    uint32_t rounds;
};

static void open_team(struct toy_round *round)
{
    const struct backend_options options = {.threads = 1, .max_rows = MAX_ASKED};
    struct toy_parts *parts = round->parts;
    int shards = round->run->shards;

    assert_int_equal(backend_cpu.open(&options, &parts->context), STATUS_OK);
    toy_hub_init(&parts->hub, parts->team, shards, parts->group);
    for (int r = 0; r < shards; r++) {
        toy_model_init(&parts->target[r], round->law, 0, &parts->group[r], parts->context, MAX_ASKED);
        assert_int_equal(team_open(&parts->team[r], &parts->target[r].model, TOY_SLOTS, MAX_ASKED, MAX_ASKED * SUPPORT_ROOM), STATUS_OK);
    }
    assert_int_equal(verify_open(&parts->verify, &parts->team[0], TOY_SLOTS, MAX_ASKED, MAX_ASKED * SUPPORT_ROOM), STATUS_OK);
    parts->verify.measure_overlap = 1;
    parts->verify.tells_own = round->run->lookahead;
}

static void open_model(struct toy_round *round)
{
    struct toy_parts *parts = round->parts;

    group_open_self(&parts->alone);
    toy_model_init(&parts->draft_model, round->law, 1, &parts->alone, parts->context, MAX_ASKED);
    assert_int_equal(draft_open_model(&parts->draft, &parts->draft_model.model, TOY_SLOTS, round->run->support, 1), STATUS_OK);
}

static void open_drafter(struct toy_round *round)
{
    struct toy_parts *parts = round->parts;

    const struct draft_parts ahead = {.way = &options_draft_kinds[DRAFT_LOOKAHEAD].usual, .slots = TOY_SLOTS, .context = TOY_CONTEXT};

    if (round->run->lookahead)
        assert_int_equal(draft_open(&parts->draft, &ahead), STATUS_OK);
    else
        open_model(round);
    draft_stop(&parts->draft, &round->run->stopping);
    draft_shape(&parts->draft, &round->run->shape);
    assert_int_equal(draft_copy(&parts->draft, &round->run->copies, TOY_SLOTS, TOY_CONTEXT), STATUS_OK);
    if (round->run->merges) {
        toy_model_init(&parts->second_model, round->law, 0, &parts->alone, parts->context, MAX_ASKED);
        assert_int_equal(draft_open_model(&parts->second, &parts->second_model.model, TOY_SLOTS, round->run->support, 1), STATUS_OK);
    }
    assert_int_equal(message_space_open(&parts->lead_space), STATUS_OK);
    assert_int_equal(message_space_open(&parts->drafter_space), STATUS_OK);
}

static void open_parts(struct toy_round *round)
{
    struct toy_parts *parts = round->parts = calloc(1, sizeof *parts);
    int links = round->run->merges ? 2 : 1;

    assert_non_null(parts);
    open_team(round);
    open_drafter(round);
    assert_int_equal(tokenizer_open(TANDEM_SOURCE_DIR "/launch/demo/target", 0, &parts->tokenizer), STATUS_OK);
    assert_int_equal(
        arena_open(&parts->arena, TOY_SLOTS * (sequence_bytes(TOY_CONTEXT, SUPPORT_ROOM, links) + 2 * mirror_bytes(TOY_CONTEXT)), "the toy"),
        STATUS_OK);
    for (int i = 0; i < TOY_PROMPT; i++)
        parts->prompt[i] = round->law->id[i + 1];
    for (int i = 0; i < TOY_SLOTS; i++) {
        sequence_init(&parts->sequence[i], &parts->arena, i, TOY_CONTEXT, SUPPORT_ROOM, links);
        mirror_init(&parts->mirror[i], &parts->arena, i, TOY_CONTEXT);
        mirror_init(&parts->second_mirror[i], &parts->arena, i, TOY_CONTEXT);
    }
    assert_int_equal(run_ahead_open(&parts->ahead, &parts->draft, parts->mirror, TOY_SLOTS, round->run->run_ahead, 1), STATUS_OK);
}

static void close_parts(struct toy_round *round)
{
    struct toy_parts *parts = round->parts;

    const struct model_copies *copies = round->run->lookahead ? NULL : ((struct model_draft *)parts->draft.state)->copies;

    round->copied = copies != NULL ? copies->whole + copies->rests : 0;
    run_ahead_close(&parts->ahead);
    arena_close(&parts->arena);
    tokenizer_close(parts->tokenizer);
    message_space_close(parts->drafter_space);
    message_space_close(parts->lead_space);
    draft_close(&parts->draft);
    if (round->run->merges)
        draft_close(&parts->second);
    verify_close(&parts->verify);
    for (int r = 0; r < round->run->shards; r++)
        team_close(&parts->team[r]);
    backend_cpu.close(parts->context);
    free(parts);
    round->parts = NULL;
}

/* Does the message of this kind get lost? A function of the request and its length alone, never of what was drafted. */
static int is_lost(const struct toy_round *round, const struct sequence *sequence, int kind)
{
    const uint32_t which[3] = {sequence->request->index, (uint32_t)sequence->length, (uint32_t)kind};

    return (double)(digest_bytes(which, sizeof which, 99) >> 11) * 0x1p-53 < round->run->loss;
}

static void open_mirror(struct toy_round *round, const struct sequence *sequence, struct mirror *mirror)
{
    const struct open_message sent = {.run = RUN_ID,
                                      .request = sequence->request->index,
                                      .line = sequence->request->index,
                                      .prompt_count = TOY_PROMPT,
                                      .tokens = sequence->tokens,
                                      .count = sequence->length,
                                      .sampling = sequence->request->sampling,
                                      .draft_length = (uint32_t)sequence_wants(sequence),
                                      .limit = (uint32_t)sequence->limit};
    struct open_message open;

    assert_null(message_unpack_open(round->parts->drafter_space, message_pack_open(round->parts->lead_space, &sent), toy_law_ids(round->law), &open));
    assert_true(mirror_open(mirror, &open));
}

static void send_open(struct toy_round *round, struct sequence *sequence)
{
    open_mirror(round, sequence, &round->parts->mirror[sequence->slot]);
    sequence->link[0].wanted = sequence_wants(sequence);
}

static void send_commit(struct toy_round *round, struct sequence *sequence, const struct outcome *outcome, int kept)
{
    const struct commit sent = {.run = RUN_ID,
                                .request = sequence->request->index,
                                .old_length = (uint32_t)(sequence->length - kept),
                                .accepted = (uint32_t)(kept < outcome->accepted ? kept : outcome->accepted),
                                .tokens = outcome->token,
                                .count = kept,
                                .keep = (uint32_t)(sequence->length - 1),
                                .digest = sequence->digest,
                                .draft_length = (uint32_t)sequence_wants(sequence),
                                .own = sequence->own,
                                .owns = sequence->owns};
    struct mirror *mirror = &round->parts->mirror[sequence->slot];
    const struct draft *draft = &round->parts->draft;
    struct mirror_move move, path[MESSAGE_MAX_COMMIT];
    struct commit commit;
    int paths;

    if (is_lost(round, sequence, 1)) {
        mirror->wanted = 0;
        return;
    }
    assert_null(
        message_unpack_commit(round->parts->drafter_space, message_pack_commit(round->parts->lead_space, &sent), toy_law_ids(round->law), &commit));
    draft_price(&round->parts->draft, (double)(round->parts->price++ % 4) / 5); /* which is none of the coins' doing */
    run_ahead_learn(&round->parts->ahead, mirror, &commit);
    draft_learn(&round->parts->draft, mirror, &commit);
    paths = mirror_path(mirror, &commit, path);
    if (!mirror_commit(mirror, &commit, &move)) {
        send_open(round, sequence);
        return;
    }
    if (move.count > 0)
        draft->kind->copy(draft->state, (struct cache_place){mirror->slot, move.from}, (struct cache_place){mirror->slot, move.to}, move.count);
    for (int i = 0; i < paths; i++)
        draft->kind->copy(draft->state, (struct cache_place){mirror->slot, path[i].from}, (struct cache_place){mirror->slot, path[i].to}, 1);
    sequence->link[0].wanted = sequence_wants(sequence);
    round->fetched += draft_link_fetch(sequence->link, sequence->length, sequence->digest);
}

/* Packs, checks and unpacks a proposal for these tokens, and offers it. */
static enum offer offer(struct toy_round *round, int kind, const struct mirror *mirror, int length, uint64_t digest,
                        const struct draft_output *output)
{
    struct toy_parts *parts = round->parts;
    struct proposal sent = {.run = RUN_ID,
                            .request = mirror->request,
                            .base_length = (uint32_t)length,
                            .base_digest = digest,
                            .sampling_digest = mirror->sampling_digest,
                            .count = output->count,
                            .is_tree = output->is_tree};
    struct proposal proposal;

    memcpy(sent.token, output->token, sizeof sent.token);
    memcpy(sent.q, output->q, sizeof sent.q);
    memcpy(sent.parent, output->parent, sizeof sent.parent);
    assert_null(message_unpack_proposal(parts->lead_space, message_pack_proposal(parts->drafter_space, &sent), toy_law_ids(round->law), &proposal));
    return sequence_offer(&parts->sequence[mirror->slot], &parts->sequence[mirror->slot].link[kind], &proposal);
}

/* A number of this round's, of which drafts know nothing. */
static uint64_t chance(const struct toy_round *round)
{
    return digest_bytes(&round->parts->rounds, sizeof round->parts->rounds, 98);
}

/* As drafter.c does, but for the clock: how many texts are drafted for, and after how many steps a message comes, are drawn. */
static void run_ahead(struct toy_round *round)
{
    struct toy_parts *parts = round->parts;
    int left = chance(round) / 64 % 4 == 0 ? (int)(chance(round) / 256 % 4) : INT_MAX, did = 1;
    const struct draft_output *output;
    struct branch *branch;
    struct mirror *mirror;

    parts->ahead.branches = 1 + (int)(chance(round) / 1024 % 6);
    while (did && left-- > 0) {
        assert_int_equal(run_ahead_step(&parts->ahead, &did), STATUS_OK);
        while ((branch = run_ahead_whole(&parts->ahead, &mirror, &output)) != NULL) {
            enum offer what = offer(round, 0, mirror, mirror->length + branch->after + 1, branch->digest, output);

            assert_true(what == OFFER_KEPT || round->run->loss > 0); /* a mirror that missed a commit may be behind */
            branch->is_sent = 1;
        }
    }
}

/* Those that want tokens propose; `begun`: go on with what was drafted ahead. */
static void draft_some(struct toy_round *round, int begun)
{
    struct toy_parts *parts = round->parts;
    struct draft_output *each[TOY_SLOTS];
    struct mirror *batch[TOY_SLOTS];
    int count = 0;

    for (int i = 0; i < TOY_SLOTS; i++) {
        struct mirror *mirror = &parts->mirror[i];

        if (parts->sequence[i].request == NULL || !mirror->open || mirror->wanted == 0 || (mirror->drafted > 0) != begun)
            continue;
        each[count] = run_ahead_output(&parts->ahead, mirror);
        each[count]->is_tree = 0;
        batch[count++] = mirror;
    }
    if (count == 0)
        return;
    assert_int_equal(parts->draft.kind->propose(parts->draft.state, batch, count, each), STATUS_OK);
    for (int i = 0; i < count; i++) {
        batch[i]->wanted = 0;
        if (!is_lost(round, &parts->sequence[batch[i]->slot], 0))
            assert_int_equal(offer(round, 0, batch[i], batch[i]->length, batch[i]->digest, each[i]), OFFER_TAKEN);
    }
}

/* The second drafter is told all of a text each time. */
static void draft_second(struct toy_round *round)
{
    struct toy_parts *parts = round->parts;
    struct draft_output *each[TOY_SLOTS];
    struct mirror *batch[TOY_SLOTS];
    int count = 0;

    for (int i = 0; i < TOY_SLOTS; i++) {
        struct mirror *mirror = &parts->second_mirror[i];

        if (parts->sequence[i].request == NULL || sequence_wants(&parts->sequence[i]) == 0 || is_lost(round, &parts->sequence[i], 2))
            continue;
        open_mirror(round, &parts->sequence[i], mirror);
        mirror->sampling.drafter = 1;
        mirror->sampling.temperature *= 2;
        parts->sequence[i].link[1].wanted = sequence_wants(&parts->sequence[i]);
        each[count] = &parts->second_output[i];
        each[count]->is_tree = 0;
        batch[count++] = mirror;
    }
    if (count == 0)
        return;
    assert_int_equal(parts->second.kind->propose(parts->second.state, batch, count, each), STATUS_OK);
    for (int i = 0; i < count; i++) {
        if (each[i]->token[0] == round->law->id[0]) /* as where copies would follow, and there are none */
            each[i]->count = 1;
        assert_int_equal(offer(round, 1, batch[i], batch[i]->length, batch[i]->digest, each[i]), OFFER_TAKEN);
    }
}

static void draft_all(struct toy_round *round)
{
    draft_some(round, 1);
    draft_some(round, 0);
    if (round->run->merges)
        draft_second(round);
    if (round->run->run_ahead)
        run_ahead(round);
}

static void start(struct toy_round *round, int slot)
{
    struct toy_parts *parts = round->parts;
    const struct toy_run *run = round->run;
    struct request *request = &parts->request[slot];
    struct sequence *sequence = &parts->sequence[slot];

    *request = (struct request){.index = run->first + (uint32_t)parts->next++,
                                .tokens = parts->prompt,
                                .prompt_count = TOY_PROMPT,
                                .sampling = run->sampling,
                                .max_tokens = run->length + run->beyond,
                                .draft_length = run->draft_length,
                                .adaptive = run->merges == TOY_MERGES_LEARNT,
                                .ignore_eos = 1};
    const struct slot_terms terms = {
        .sampling = run->sampling, .request = request->index, .prompt_count = TOY_PROMPT, .slot = slot};

    assert_int_equal(sequence_open(sequence, request, 0, parts->tokenizer, NULL, 0, TOY_CONTEXT), STATUS_OK);
    assert_int_equal(team_open_slot(&parts->team[0], &terms), STATUS_OK);
    assert_int_equal(verify_prefill(&parts->verify, sequence), STATUS_OK);
    if (run->draft_length > 0)
        send_open(round, sequence);
}

static void commit(struct toy_round *round, struct sequence *sequence, const struct outcome *outcome)
{
    int kept = completion_push(&sequence->completion, outcome->token, outcome->count);
    unsigned compared = 0, agreed = 0;

    if (round->on_outcome != NULL)
        round->on_outcome(round->user, sequence, outcome);
    sequence->rounds++;
    for (int kind = 0; round->run->merges && kind < 2; kind++)
        if (sequence->link[kind].has_proposal) {
            const struct proposal *chain = &sequence->link[kind].proposal;
            int is_right = merge_agreed(chain, outcome->token, kept);

            merge_learn(&round->parts->merge, kind, chain->count < kept ? chain->count : kept, is_right);
            compared |= (unsigned)(chain->count > 0) << kind;
            agreed |= (unsigned)(is_right > 0) << kind;
        }
    merge_learn_first(&round->parts->merge, compared, agreed);
    sequence_commit(sequence, outcome->token, kept);
    if (sequence->length - TOY_PROMPT >= round->run->length) {
        if (round->on_end != NULL)
            round->on_end(round->user, sequence->request->index, sequence->tokens + TOY_PROMPT);
        mirror_close(&round->parts->mirror[sequence->slot]);
        mirror_close(&round->parts->second_mirror[sequence->slot]);
        sequence_close(sequence);
    } else if (round->run->draft_length > 0) {
        send_commit(round, sequence, outcome, kept);
    }
}

static int fill_slots(struct toy_round *round)
{
    struct toy_parts *parts = round->parts;
    int active = 0, slots = round->run->slots > 0 ? round->run->slots : TOY_SLOTS;

    for (int i = 0; i < slots; i++) {
        if (parts->sequence[i].request == NULL && parts->next < round->run->count)
            start(round, i);
        if (parts->sequence[i].request != NULL)
            parts->active[active++] = &parts->sequence[i];
    }
    return active;
}

/* The next draft length from a round's outcomes, and from how long it is pretended to have taken. */
static int choose_length(struct toy_round *round, const struct outcome *outcome, int active)
{
    struct adaptive *adaptive = &round->parts->adaptive;
    struct adaptive_round took = {.sequences = active};
    int accepted = 0;

    for (int i = 0; i < active; i++) {
        took.rows += outcome[i].drafted + 1;
        took.tokens += outcome[i].count;
        took.longest = outcome[i].drafted > took.longest ? outcome[i].drafted : took.longest;
        accepted += outcome[i].accepted;
        adaptive_add_verdict(adaptive, outcome[i].drafted, outcome[i].accepted);
    }
    took.work_us = (100 + 10 * took.rows) * (double)(1 + chance(round) % 4);
    took.wait_us = took.longest * (double)(chance(round) / 4 % 64);
    adaptive_add_round(adaptive, &took);
    return round->run->length_by == TOY_ADAPTIVE ? adaptive_choose(adaptive, active) : (int)((chance(round) + (uint64_t)accepted * 3) % 6);
}

static void set_lengths(struct toy_round *round, const struct outcome *outcome, int active)
{
    struct toy_parts *parts = round->parts;

    parts->rounds++;
    for (int i = 0; round->run->length_by == TOY_HEURISTIC && i < active; i++) {
        struct sequence *sequence = parts->active[i];
        int length = sequence->adaptive >= 0 ? sequence->adaptive : round->run->draft_length;

        sequence->adaptive = adaptive_next(length, outcome[i].drafted, outcome[i].accepted);
    }
    if (round->run->length_by != TOY_ADAPTIVE && round->run->length_by != TOY_JUMPY)
        return;
    int length = choose_length(round, outcome, active);

    for (int i = 0; i < active; i++)
        parts->active[i]->adaptive = length;
}

static void peek(struct toy_round *round, int active)
{
    for (int i = 0; i < active; i++) {
        struct sequence *sequence = round->parts->active[i];

        if (sequence->link[0].has_proposal && sequence->link[0].proposal.token[0] == round->law->id[0])
            sequence->link[0].has_proposal = 0;
    }
}

void toy_round_run(struct toy_round *round, struct toy_overlap *overlap)
{
    struct outcome outcome[TOY_SLOTS];
    int active;

    open_parts(round);
    while ((active = fill_slots(round)) > 0) {
        draft_all(round);
        if (round->run->length_by == TOY_PEEKS)
            peek(round, active);
        for (int i = 0; i < active; i++)
            sequence_merge(round->parts->active[i], &round->parts->merge);
        assert_int_equal(verify_round(&round->parts->verify, round->parts->active, active, outcome), STATUS_OK);
        set_lengths(round, outcome, active);
        for (int i = 0; i < active; i++)
            commit(round, round->parts->active[i], &outcome[i]);
    }
    if (overlap != NULL)
        *overlap = (struct toy_overlap){
            round->parts->verify.overlap, round->parts->verify.overlap_variance, round->parts->verify.overlaps};
    close_parts(round);
}
