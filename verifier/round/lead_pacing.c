/* The draft length of requests that leave it to the lead: measured before anything is decoded, or by an earlier job, then with every round without
 * prompt rows. */
#include "verifier/round/lead_parts.h"

#include "common/base/clock.h"
#include "common/base/try.h"
#include <math.h>

enum { WARM_UP_TURNS = 3 };
#define WARM_UP_NS    ((int64_t)300 * 1000000)
#define WARM_UP_SHARE 0.02 /* of the time that loading took, where that is more */

static int choose(struct lead *lead, int sequences)
{
    int length = adaptive_choose(&lead->drafting.adaptive, sequences);

    return length >= lead->drafting.least || lead->peers->count == 0 ? length : lead->drafting.least;
}

/* Was no draft behind the last accepted one of a chain refused? It may have ended with the text before its own end. Chains side by side are told
 * apart from trees by their q's: of these the places count that were come to. */
static int is_whole(const struct lead *lead, const struct sequence *sequence, const struct outcome *outcome)
{
    return outcome->refused < 0 && (sequence->linked == 1 || accept_needs_q(&sequence->sampling)) && !lead->drafting.adaptive.tokens.is_tree;
}

enum tree_kind lead_shape(const struct lead *lead, const struct sequence *sequence)
{
    if (lead->drafting.shape.count == 0 || !accept_takes_trees(&sequence->sampling))
        return TREE_CHAIN;
    return sequence->request->adaptive ? adaptive_shape_now(&lead->drafting.shape) : TREE_DYNAMIC;
}

/* Where shapes are chosen, of several drafts: are they of the one in use? A chain that was drafted ahead may come where a tree is asked for by now.
 */
static int is_in_use(const struct lead *lead, const struct sequence *sequence, const struct outcome *outcome)
{
    int is_tree = lead->drafting.adaptive.tokens.is_tree;

    if (lead->drafting.shape.count == 0 || outcome->drafted < 2)
        return 1;
    return sequence->shape == adaptive_shape_now(&lead->drafting.shape) && sequence_latest(sequence)->is_tree == is_tree;
}

/* Where trees are chosen, others than those, which a request asked for itself, say nothing of what trees of a size give. */
static int says_of_size(const struct lead *lead, const struct sequence *sequence, const struct outcome *outcome)
{
    if (!is_in_use(lead, sequence, outcome))
        return 0;
    return sequence->request->adaptive || !lead->drafting.adaptive.tokens.is_tree;
}

void lead_choose_length(struct lead *lead, int64_t wait_ns, int64_t decided_ns)
{
    struct adaptive_round round = {
        .sequences = lead->slots.readies, .work_us = (double)(decided_ns + lead->drafting.shown_ns) / 1000, .wait_us = (double)wait_ns / 1000};
    int adaptive = 0;

    for (int i = 0; i < lead->peers->count; i++)
        round.answer_us = fmax(round.answer_us, lead->peers->peer[i].usual_ns / 1000);
    for (int i = 0; i < lead->slots.readies; i++) {
        const struct outcome *outcome = &lead->slots.outcome[i];

        round.rows += outcome->drafted + 1;
        round.tokens += outcome->count;
        round.longest = outcome->drafted > round.longest ? outcome->drafted : round.longest;
        for (int k = 0; k < lead->slots.ready[i]->linked; k++) {
            round.caught_up |= lead->slots.ready[i]->link[k].opened;
            round.asked |= lead->drafting.by_price && lead->slots.ready[i]->link[k].wanted > 0;
        }
        adaptive |= lead->slots.ready[i]->request->adaptive;
        /* What nothing followed was accepted as far as it went; of a tree other drafts were not, and they are what another draft may be. */
        if (says_of_size(lead, lead->slots.ready[i], outcome))
            adaptive_add_verdict(&lead->drafting.adaptive, is_whole(lead, lead->slots.ready[i], outcome) ? outcome->accepted : outcome->drafted,
                                 outcome->accepted);
    }
    adaptive_add_round(&lead->drafting.adaptive, &round);
    lead->peers->price = lead->drafting.by_price ? adaptive_price(&lead->drafting.adaptive, round.sequences) : 0;
    if (!adaptive || lead->drafting.by_verdicts)
        return;
    adaptive_shape_turn(&lead->drafting.shape, &lead->drafting.adaptive, lead->slots.readies);
    lead->drafting.length = choose(lead, lead->slots.readies);
    for (int i = 0; i < lead->slots.readies; i++)
        if (lead->slots.ready[i]->request->adaptive) {
            lead->slots.ready[i]->adaptive = lead->drafting.length;
            lead->slots.ready[i]->shape = lead_shape(lead, lead->slots.ready[i]);
        }
}

void lead_follow_verdicts(struct lead *lead)
{
    for (int i = 0; lead->drafting.by_verdicts && i < lead->slots.readies; i++) {
        struct sequence *sequence = lead->slots.ready[i];

        if (sequence->request->adaptive)
            sequence->adaptive = adaptive_next(sequence->adaptive, lead->slots.outcome[i].drafted, lead->slots.outcome[i].accepted);
    }
}

/* Once at least, one row twice, for the first step is a cold one, and again while there is time. */
static enum status time_steps(struct lead *lead, const struct request *first, int rows, int64_t until)
{
    int at_least = rows == 1 ? 2 : 1;
    double us;

    TRY(lead_keep_in_touch(lead, clock_ns(), "warming up"));
    for (int turn = 0; turn < at_least || (turn < WARM_UP_TURNS && clock_ns() < until); turn++) {
        TRY(verify_warm_up(lead->verify, &first->sampling, rows, &us));
        adaptive_work_add_step(&lead->drafting.adaptive.work, rows, us);
    }
    return STATUS_OK;
}

/* Is that known from an earlier job? */
static int is_known(const struct lead *lead, int rows)
{
    const struct adaptive_times *earlier = lead->drafting.earlier;

    return earlier != NULL && earlier->us[adaptive_work_knot(rows)] > 0;
}

/* One row and two, and as many more as there is time for, first those that no earlier job has timed. */
static enum status time_all_steps(struct lead *lead, const struct request *first, int most)
{
    int64_t share = (int64_t)(WARM_UP_SHARE * (double)lead->drafting.load_ns), until = clock_ns() + (share > WARM_UP_NS ? share : WARM_UP_NS);

    for (int known = 0; known < 2; known++)
        for (int i = 0; adaptive_work_warm_up_rows(i) <= most; i++) {
            int rows = adaptive_work_warm_up_rows(i);

            if (i < 2 ? !known : is_known(lead, rows) == known && clock_ns() < until)
                TRY(time_steps(lead, first, rows, until));
        }
    if (lead->drafting.earlier != NULL)
        adaptive_work_recall(&lead->drafting.adaptive.work, lead->drafting.earlier);
    if (lead->drafting.past != NULL)
        adaptive_recall(&lead->drafting.adaptive, lead->drafting.past);
    return STATUS_OK;
}

enum status lead_warm_up(struct lead *lead)
{
    const struct request *first = lead_find_first(lead);
    int sequences = lead_count_next(lead);
    int most = sequences * (ADAPTIVE_START + 1), longest = lead->team->shard.model->shape.context;

    if (lead->peers->count == 0 || first == NULL || lead->figures.steps > 0)
        return STATUS_OK; /* in a chat the slots are in use after its first turn */
    for (int i = 0; i < lead->peers->count; i++)
        adaptive_add_draft_step(&lead->drafting.adaptive,
                                (struct adaptive_draft_step){.rows = lead->slots.count * (lead->peers->count / lead->peers->kinds),
                                                             .one_us = lead->peers->peer[i].draft_ns / 1e3,
                                                             .all_us = lead->peers->peer[i].draft_batch_ns / 1e3});
    most = most < longest ? most : longest;
    if (!adaptive_work_is_known(&lead->drafting.adaptive.work))
        TRY(time_all_steps(lead, first, most));
    lead->drafting.length = choose(lead, sequences);
    return STATUS_OK;
}
