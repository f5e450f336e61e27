#include "tests/simulation/oracle.h"

#include "common/base/digest.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define SLACK_NS 1000000

static struct simulation *watched;

enum status __real_verify_round(struct verify *verify, struct sequence *const *sequences, int count, struct outcome *outcomes);
enum status __wrap_verify_round(struct verify *verify, struct sequence *const *sequences, int count, struct outcome *outcomes);
enum status __real_output_add(struct output *output, const struct request *request, const struct sequence *sequence);
enum status __wrap_output_add(struct output *output, const struct request *request, const struct sequence *sequence);

void oracle_watch(struct simulation *simulation)
{
    watched = simulation;
}

/* Only what was computed on the committed tokens, with the request's sampling, and asked for, is verified. */
static void check_proposal(const struct sequence *sequence, const struct proposal *proposal)
{
    if (proposal->base_length != (uint32_t)sequence->length ||
        proposal->base_digest != digest_tokens(DIGEST_EMPTY, sequence->tokens, sequence->length))
        simulation_fail(watched, "request %u: a proposal for %u other tokens is verified on %d", sequence->request->index,
                        proposal->base_length, sequence->length);
    if (proposal->sampling_digest != sampling_digest(&sequence->request->sampling))
        simulation_fail(watched, "request %u: a proposal with another sampling is verified", sequence->request->index);
    if (proposal->request != sequence->request->index || proposal->run != SIMULATION_RUN)
        simulation_fail(watched, "request %u: a proposal of request %u, run %llu is verified", sequence->request->index, proposal->request,
                        (unsigned long long)proposal->run);
    if (sequence->length + proposal->count >= sequence->limit)
        simulation_fail(watched, "request %u: %d drafts after %d tokens, with the limit at %d", sequence->request->index, proposal->count,
                        sequence->length, sequence->limit);
}

static int is_for_drafter(struct message_space *space, struct frame frame)
{
    struct open_message open;
    struct close_message close;
    struct commit commit;
    uint64_t run;

    switch (message_type(frame)) {
    case MESSAGE_OPEN:
        return message_unpack_open(space, frame, TOY_IDS, &open) == NULL && open.run == SIMULATION_RUN;
    case MESSAGE_CLOSE:
        return message_unpack_close(space, frame, &close) == NULL && close.run == SIMULATION_RUN;
    case MESSAGE_COMMIT:
        return message_unpack_commit(space, frame, TOY_IDS, &commit) == NULL && commit.run == SIMULATION_RUN;
    case MESSAGE_HEARTBEAT:
    case MESSAGE_SHUTDOWN:
        return message_unpack_plain(space, frame, &run) == NULL && run == SIMULATION_RUN;
    default:
        return 0;
    }
}

static int is_for_lead(struct message_space *space, struct frame frame)
{
    struct proposal proposal;
    struct failure failure;
    uint64_t run;

    switch (message_type(frame)) {
    case MESSAGE_PROPOSAL: /* one of another run is stale */
        return message_unpack_proposal(space, frame, TOY_IDS, &proposal) == NULL;
    case MESSAGE_HEARTBEAT:
        return message_unpack_plain(space, frame, &run) == NULL && run == SIMULATION_RUN;
    case MESSAGE_FAILURE:
        return message_unpack_failure(space, frame, &failure) == NULL;
    default:
        return 0;
    }
}

int oracle_must_be_refused(const struct simulation *simulation, int from, int to, struct frame frame)
{
    struct message_space *space = simulation->hostile.space;

    if (to == ENGINE_LEAD)
        return from > simulation->actors || !is_for_lead(space, frame);
    return from != ENGINE_LEAD || !is_for_drafter(space, frame);
}

/* A drafter of this kind. */
static int is_one_there(const struct simulation *simulation, int kind)
{
    for (int i = kind; i < simulation->engine.peers.count; i += simulation->engine.peers.kinds)
        if (!simulation->engine.peers.peer[i].lost)
            return 1;
    return 0;
}

void oracle_check_admission(const struct simulation *simulation)
{
    if (simulation->plan->faults.outbox > 0) /* its message may be the one that finds no place */
        return;
    for (int i = 0; i < simulation->engine.lead.slots.count; i++) {
        const struct sequence *sequence = &simulation->engine.lead.slots.sequence[i];
        int is_new = sequence->request != NULL && sequence->started_ns == clock_ns();

        for (int k = 0; is_new && k < sequence->linked; k++) {
            int drafter = sequence->link[k].drafter;

            if (drafter >= 0 && drafter % simulation->engine.peers.kinds != k)
                simulation_fail(simulation, "request %u is given to drafter %d as one of kind %d", sequence->request->index, drafter + 1, k);
            if (drafter >= 0 && simulation->engine.peers.peer[drafter].lost && is_one_there(simulation, k))
                simulation_fail(simulation, "request %u is given to drafter %d, which is lost", sequence->request->index, drafter + 1);
        }
    }
}

/* Has it a proposal that lay on the shelf? Then a request that it was last sent may be lost, and be missed a round after others of that round: two
 * rounds in a row, by which it is lost once more. */
static int may_lack_a_request(const struct simulation *simulation, int drafter)
{
    for (int i = 0; i < simulation->engine.lead.slots.count; i++) {
        const struct sequence *sequence = &simulation->engine.lead.slots.sequence[i];

        for (int k = 0; sequence->request != NULL && k < sequence->linked; k++)
            if (sequence->link[k].drafter == drafter && sequence->link[k].has_proposal)
                return 1;
    }
    return 0;
}

void oracle_note_losses(struct simulation *simulation)
{
    const struct plan *plan = simulation->plan;
    int is_late = plan->faults.delay_us * 8000 > (int64_t)(plan->deadline_ms * 1e6) || plan->incident[INCIDENT_HOSTILE] > 0;

    for (int i = 0; i < simulation->engine.peers.count; i++) {
        const struct peer *peer = &simulation->engine.peers.peer[i];
        int is_busy = simulation->actor[i].busy_ns > simulation->now_ns + 1000;

        simulation->losses_allowed[i] = is_late || is_busy || peer->lost || peer->misses > 0 ? -1 : peer->losses + may_lack_a_request(simulation, i);
    }
}

/* Has it a drafter? */
static int check_links(const struct sequence *sequence)
{
    int has_one = 0;

    for (int k = 0; k < sequence->linked; k++) {
        const struct draft_link *link = &sequence->link[k];

        if (link->has_proposal)
            check_proposal(sequence, &link->proposal);
        if (link->drafter < 0 && is_one_there(watched, k))
            simulation_fail(watched, "request %u goes without a drafter of kind %d, though one is there", sequence->request->index, k);
        if (watched->is_after && link->has_proposal && link->proposal.count > 0)
            watched->used[link->drafter]++;
        has_one |= link->drafter >= 0;
    }
    return has_one;
}

enum status __wrap_verify_round(struct verify *verify, struct sequence *const *sequences, int count, struct outcome *outcomes)
{
    for (int i = 0; i < count; i++) {
        const struct sequence *sequence = sequences[i];
        const struct proposal *proposal = sequence_proposal(sequence);
        int drafted = proposal != NULL ? proposal->count : 0;

        if (proposal != NULL)
            check_proposal(sequence, proposal);
        watched->expected_fallbacks += check_links(sequence) && proposal == NULL && sequence_wants(sequence) > 0;
        watched->tally.merged += sequence->linked > 1 && drafted > 0 && proposal->is_tree;
        if (sequence->linked > 1 && drafted > sequence_wants(sequence))
            simulation_fail(watched, "request %u: %d drafts are verified, %d were wanted", sequence->request->index, drafted,
                            sequence_wants(sequence));
        simulation_tell(watched, "lead: request %u, %d tokens, verifies %d", sequence->request->index, sequence->length, drafted);
    }
    return __real_verify_round(verify, sequences, count, outcomes);
}

static struct result result_of(const struct request *request, const struct sequence *sequence)
{
    struct result result = {.times = 1, .finish = FINISH_ERROR};

    if (sequence == NULL)
        return result;
    result.finish = sequence->completion.finish;
    result.count = sequence->length;
    memcpy(result.token, sequence->tokens, (size_t)sequence->length * sizeof *result.token);
    result.text = digest_bytes(sequence->completion.text, sequence->completion.length, 0);
    if (sequence->length - request->prompt_count != sequence->completion.count)
        simulation_fail(watched, "request %u: %d tokens and a text of %d", request->index, sequence->length - request->prompt_count,
                        sequence->completion.count);
    return result;
}

/* Where two results differ first: the place of a token, or -1 for the text or the reason to end. */
static int first_difference(const struct result *a, const struct result *b)
{
    int at = 0;

    while (at < a->count && at < b->count && a->token[at] == b->token[at])
        at++;
    return at < a->count || at < b->count ? at : -1;
}

static int is_same(const struct result *a, const struct result *b)
{
    return a->finish == b->finish && a->count == b->count && a->text == b->text &&
           memcmp(a->token, b->token, (size_t)a->count * sizeof *a->token) == 0;
}

enum status __wrap_output_add(struct output *output, const struct request *request, const struct sequence *sequence)
{
    int planned = watched->plan->requests, index = (int)request->index, at = index < planned ? index : planned;
    struct result now = result_of(request, sequence), *kept = watched->actors == 0 ? &watched->solo[at] : &watched->result[at];

    simulation_tell(watched, "lead: request %u is done, %d tokens", request->index, now.count);
    if (index < planned && kept->times++ > 0)
        simulation_fail(watched, "request %u has two results", request->index);
    if (index >= planned && watched->times_after[index - planned]++ > 0)
        simulation_fail(watched, "request %u has two results", request->index);
    now.times = kept->times;
    *kept = now;
    if (watched->actors > 0 && plan_is_determined(request) && !is_same(&now, &watched->solo[at]))
        simulation_fail(watched, "request %u: its output is not that of solo (%d tokens, %d in solo, the first difference at %d)",
                        request->index, now.count, watched->solo[at].count, first_difference(&now, &watched->solo[at]));
    return __real_output_add(output, request, sequence);
}

/* What the lead has committed of a request: those of its sequence, or of its result. NULL: it has no such request. */
static const int32_t *truth_of(const struct simulation *simulation, uint32_t request, int *count)
{
    for (int i = 0; i < simulation->engine.lead.slots.count; i++) {
        const struct sequence *sequence = &simulation->engine.lead.slots.sequence[i];

        if (sequence->request != NULL && sequence->request->index == request) {
            *count = sequence->length;
            return sequence->tokens;
        }
    }
    if (request >= (uint32_t)simulation->plan->requests || simulation->result[request].times == 0)
        return NULL;
    *count = simulation->result[request].count;
    return simulation->result[request].token;
}

static int is_damaged(const struct simulation *simulation)
{
    return simulation->damaged > 0 || simulation->tally.hostile_frames > 0;
}

/* The cache's places from `first` on hold the mirror's tokens there. */
static void check_places(const struct simulation *simulation, const struct actor *actor, const struct mirror *mirror, int first, int count)
{
    const float *key = (const float *)simulation->stage->draft_model[actor->number].cache->layer[0].keys + mirror->slot * TOY_CONTEXT;

    for (int i = first; i < first + count; i++)
        if (key[i] != (float)mirror->tokens[i])
            simulation_fail(simulation, "drafter %d, request %u: place %d of the cache holds %g, not %d", actor->number + 1, mirror->request, i,
                            (double)key[i], mirror->tokens[i]);
}

static void check_branch(const struct simulation *simulation, const struct actor *actor, const struct mirror *mirror, const struct branch *branch)
{
    uint64_t digest = digest_tokens(digest_tokens(mirror->digest, mirror->tokens + mirror->length, branch->after), mirror->tokens + branch->place, 1);

    check_places(simulation, actor, mirror, branch->place, branch->count);
    if (branch->after > mirror->drafted || branch->count > branch->wanted || branch->place < mirror->length + mirror->drafted)
        simulation_fail(simulation, "drafter %d, request %u: a branch behind %d of %d drafts has %d of %d tokens at place %d", actor->number + 1,
                        mirror->request, branch->after, mirror->drafted, branch->count, branch->wanted, branch->place);
    if (branch->digest != digest)
        simulation_fail(simulation, "drafter %d, request %u: the digest of a branch is not that of its text", actor->number + 1, mirror->request);
}

static void check_mirror(const struct simulation *simulation, const struct actor *actor, const struct mirror *mirror)
{
    int count = 0, fed = mirror->length + mirror->drafted - !mirror->ahead.has_looked;
    const int32_t *truth = truth_of(simulation, mirror->request, &count);

    if (mirror->cached > fed)
        simulation_fail(simulation, "drafter %d, request %u: %d places cached of %d tokens and %d drafts", actor->number + 1, mirror->request,
                        mirror->cached, mirror->length, mirror->drafted);
    check_places(simulation, actor, mirror, 0, mirror->cached);
    for (int b = 0; b < mirror->ahead.branches; b++)
        check_branch(simulation, actor, mirror, &mirror->ahead.branch[b]);
    if (mirror->digest != digest_tokens(DIGEST_EMPTY, mirror->tokens, mirror->length))
        simulation_fail(simulation, "drafter %d, request %u: the digest is not that of its %d tokens", actor->number + 1, mirror->request,
                        mirror->length);
    if (truth == NULL || is_damaged(simulation))
        return;
    if (mirror->length > count || memcmp(mirror->tokens, truth, (size_t)mirror->length * sizeof *truth) != 0)
        simulation_fail(simulation, "drafter %d, request %u: its %d tokens are no beginning of the lead's %d", actor->number + 1,
                        mirror->request, mirror->length, count);
}

void oracle_check_mirrors(const struct simulation *simulation, const struct actor *actor)
{
    for (int i = 0; i < actor->drafter->terms.slots; i++)
        if (actor->drafter->mirror[i].open)
            check_mirror(simulation, actor, &actor->drafter->mirror[i]);
}

void oracle_check_mirrors_at_end(const struct simulation *simulation, const struct actor *actor)
{
    for (int i = 0; simulation->plan->is_peaceful && i < actor->drafter->terms.slots; i++)
        if (actor->drafter->mirror[i].open)
            simulation_fail(simulation, "drafter %d still has request %u, which is over", actor->number + 1, actor->drafter->mirror[i].request);
}

static void check_target_cache(const struct simulation *simulation, const struct sequence *sequence)
{
    if (sequence->rounds > 0 ? !sequence_is_read(sequence) : sequence->cached > sequence->length - 1) /* a prompt may be being read */
        simulation_fail(simulation, "request %u: %d places cached of %d tokens", sequence->request->index, sequence->cached, sequence->length);
    for (int r = 0; r < simulation->plan->shards; r++) {
        const float *key = (const float *)simulation->target->model[r].cache->layer[0].keys + sequence->slot * TOY_CONTEXT;

        for (int i = 0; i < sequence->cached; i++)
            if (key[i] != (float)sequence->tokens[i])
                simulation_fail(simulation, "request %u: place %d of shard %d's cache holds %g, not %d", sequence->request->index, i, r,
                                (double)key[i], sequence->tokens[i]);
    }
}

void oracle_check_round(const struct simulation *simulation)
{
    int64_t waited = simulation->now_ns - simulation->round_ns - simulation->verified_ns;
    int of[PLAN_DRAFTERS] = {0};

    for (int i = 0; i < simulation->engine.lead.slots.count; i++) {
        const struct sequence *sequence = &simulation->engine.lead.slots.sequence[i];

        if (sequence->request == NULL)
            continue;
        check_target_cache(simulation, sequence);
        for (int k = 0; k < sequence->linked; k++)
            if (sequence->link[k].drafter >= 0)
                of[sequence->link[k].drafter]++;
    }
    for (int i = 0; i < simulation->engine.peers.count; i++)
        if (simulation->engine.peers.peer[i].sequences != of[i])
            simulation_fail(simulation, "drafter %d has %d sequences, the lead counts %d", i + 1, of[i], simulation->engine.peers.peer[i].sequences);
    if (waited > (int64_t)(simulation->plan->deadline_ms * 1e6) + SLACK_NS)
        simulation_fail(simulation, "the lead waited %.3f ms in a round, with a deadline of %g ms", (double)waited / 1e6,
                        simulation->plan->deadline_ms);
}

static void check_counts(const struct simulation *simulation)
{
    const struct figures *figures = &simulation->engine.lead.figures;
    const struct tally *tally = &simulation->tally;
    int64_t answers = simulation->engine.peers.taken + simulation->engine.peers.ahead.proposals;

    if (tally->refused != simulation->refusals_due)
        simulation_fail(simulation, "%lld messages came that are none for their receiver, %lld were refused", (long long)simulation->refusals_due,
                        (long long)tally->refused);
    if (!is_damaged(simulation) && simulation->engine.peers.stale + answers != simulation->proposals_received)
        simulation_fail(simulation, "%lld proposals came, %lld were taken or kept and %lld stale", (long long)simulation->proposals_received,
                        (long long)answers, (long long)simulation->engine.peers.stale);
    if (figures->fallback_rounds != simulation->expected_fallbacks)
        simulation_fail(simulation, "%lld rounds went without a proposal, the lead counts %lld", (long long)simulation->expected_fallbacks,
                        (long long)figures->fallback_rounds);
    if (figures->accepted > figures->drafted || figures->tokens < figures->rounds || figures->tokens > figures->accepted + figures->rounds)
        simulation_fail(simulation, "%lld tokens of %lld rounds, %lld of %lld drafts accepted", (long long)figures->tokens,
                        (long long)figures->rounds, (long long)figures->accepted, (long long)figures->drafted);
    if (!is_damaged(simulation) && tally->refused > 0)
        simulation_fail(simulation, "%lld messages were refused, and none was damaged", (long long)tally->refused);
    if (simulation->plan->is_peaceful &&
        ((simulation->engine.peers.stale > 0 && !simulation->plan->run_ahead) || tally->refused > 0 || tally->losses > 0))
        simulation_fail(simulation, "nothing went wrong, yet %lld proposals were stale, %lld messages refused, %lld drafters lost",
                        (long long)simulation->engine.peers.stale, (long long)tally->refused, (long long)tally->losses);
}

void oracle_check_end(const struct simulation *simulation)
{
    for (int i = 0; i < simulation->plan->requests; i++)
        if (simulation->result[i].times != 1)
            simulation_fail(simulation, "request %d has %d results", i, simulation->result[i].times);
    for (int i = 0; i < simulation->engine.lead.queue.next - simulation->plan->requests; i++)
        if (simulation->times_after[i] != 1)
            simulation_fail(simulation, "request %d has %d results", simulation->plan->requests + i, simulation->times_after[i]);
    check_counts(simulation);
    for (int i = 0; i < simulation->engine.peers.count; i++)
        if (simulation->losses_allowed[i] >= 0 && simulation->engine.peers.peer[i].losses > simulation->losses_allowed[i])
            simulation_fail(simulation, "drafter %d was lost after the faults had stopped", i + 1);
}
