#include "verifier/round/sequence.h"

#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include "common/model/config.h"
#include "verifier/accept/accept.h"
#include <stdlib.h>
#include <string.h>

_Static_assert(BIAS_MAX_STOPS + CONFIG_MAX_EOS <= BIAS_MAX_ENDERS, "all that may end a completion");

static size_t token_bytes(int context)
{
    return arena_round((size_t)context * sizeof(int32_t));
}

size_t sequence_bytes(int context, int support_room, int links)
{
    return token_bytes(context) + arena_round((size_t)links * sizeof(struct draft_link)) + (size_t)links * draft_link_bytes(support_room);
}

void sequence_init(struct sequence *sequence, struct arena *arena, int slot, int context, int support_room, int links)
{
    *sequence = (struct sequence){.slot = slot, .links = links};
    sequence->tokens = arena_take(arena, token_bytes(context));
    sequence->link = arena_take(arena, (size_t)links * sizeof *sequence->link);
    for (int i = 0; i < links; i++)
        draft_link_init(&sequence->link[i], arena, i, support_room);
}

int sequence_common(const struct sequence *sequence, const int32_t *tokens, int count)
{
    int has = sequence->request != NULL ? sequence->length - 1 : sequence->cached, most = has < count ? has : count, same = 0;

    while (same < most && sequence->tokens[same] == tokens[same])
        same++;
    return same;
}

int sequence_is_read(const struct sequence *sequence)
{
    return sequence->cached == sequence->length - 1;
}

int sequence_only_reads(const struct sequence *sequence)
{
    return sequence->limit == sequence->request->prompt_count;
}

/* What the first choice is told of the prompt holds for all. */
static int scores_of(const struct request *request, int choice)
{
    return choice == 0 ? request->scores : 0;
}

int sequence_reusable(const struct request *request, int choice)
{
    return request->prompt_count - 1 - scores_of(request, choice);
}

int sequence_scored_rows(const struct sequence *sequence, int count)
{
    int unscored = sequence_reusable(sequence->request, sequence->choice) - sequence->cached;

    return unscored <= 0 ? count : count > unscored ? count - unscored : 0;
}

struct logprob *sequence_logprob(const struct sequence *sequence, int place)
{
    int at = place - (sequence->request->prompt_count - sequence->scores);

    return sequence->logprobs != NULL && at >= 0 ? &sequence->logprobs[at] : NULL;
}

int sequence_wants_logprobs(const struct sequence *sequence)
{
    return sequence->logprobs != NULL || request_chooses(sequence->request);
}

void sequence_add_logprob(struct sequence *sequence, int place, const struct logprob *logprob)
{
    struct logprob *kept = sequence_logprob(sequence, place);

    if (kept != NULL)
        *kept = *logprob;
    sequence->logprob_sum += (double)logprob->logprob;
}

void sequence_fill_bias(const struct request *request, const int32_t *eos, int eos_count, struct bias *bias)
{
    if (request->bias != NULL)
        *bias = *request->bias;
    else
        bias_init(bias);
    bias->min_tokens = request->min_tokens;
    for (int i = 0; i < request->stop_tokens; i++)
        bias->ender[bias->enders++] = request->stop_token[i];
    if (request->has_turn_end && !request->ignore_eos)
        bias->ender[bias->enders++] = request->turn_end;
    for (int i = 0; i < eos_count && !request->ignore_eos; i++)
        bias->ender[bias->enders++] = eos[i];
}

enum status sequence_open(struct sequence *sequence, const struct request *request, int choice, const struct tokenizer *tokenizer, const int32_t *eos,
                          int eos_count, int context)
{
    int room = context - request->prompt_count, limit = request->max_tokens < room ? request->max_tokens : room;
    int scores = scores_of(request, choice);

    TRY(completion_open(&sequence->completion, request, tokenizer, eos, eos_count, limit));
    sequence->logprobs = request->logprobs >= 0 ? calloc((size_t)(scores + limit) + 1, sizeof *sequence->logprobs) : NULL;
    if (sequence->logprobs == NULL && request->logprobs >= 0) {
        log_error("no memory for log probabilities of %d tokens", scores + limit);
        completion_close(&sequence->completion);
        return STATUS_INTERNAL;
    }
    sequence->cached = sequence_common(sequence, request->tokens, sequence_reusable(request, choice));
    sequence->openings++;
    memcpy(sequence->tokens, request->tokens, (size_t)request->prompt_count * sizeof *request->tokens);
    sequence->request = request;
    sequence->choice = choice;
    sequence->ticket = (int64_t)request->index + choice;
    sequence->scores = scores;
    sequence->logprob_sum = 0;
    sequence->sampling = request->sampling;
    sequence->sampling.seed = request_seed(request, choice);
    sequence_fill_bias(request, eos, eos_count, &sequence->bias);
    sequence->sampling_digest = bias_digest(&sequence->bias, sampling_digest(&sequence->sampling));
    sequence->length = request->prompt_count;
    sequence->digest = digest_tokens(DIGEST_EMPTY, request->tokens, request->prompt_count);
    sequence->limit = request->prompt_count + limit;
    sequence->linked = accept_merges(&sequence->sampling) ? sequence->links : 1;
    for (int i = 0; i < sequence->links; i++)
        draft_link_reset(&sequence->link[i]);
    sequence->merged.is_there = 0;
    sequence->owns = 0;
    sequence->adaptive = -1;
    sequence->shape = TREE_CHAIN;
    sequence->repeats = !request->adaptive && !accept_compares_tokens(&sequence->sampling);
    sequence->rounds = sequence->drafted = sequence->tested = sequence->accepted = 0;
    sequence->started_ns = clock_ns();
    sequence->first_ns = sequence->ended_ns = 0;
    return STATUS_OK;
}

void sequence_close(struct sequence *sequence)
{
    completion_close(&sequence->completion);
    free(sequence->logprobs);
    sequence->logprobs = NULL;
    sequence->request = NULL;
}

enum offer sequence_offer(struct sequence *sequence, struct draft_link *link, const struct proposal *proposal)
{
    uint32_t length = (uint32_t)sequence->length;

    if (proposal->sampling_digest != sequence->sampling_digest ||
        (proposal->is_tree && (sequence->linked > 1 || !accept_takes_trees(&sequence->sampling))))
        return OFFER_REFUSED;
    if (proposal->base_length > length && proposal->base_length - length <= MESSAGE_MAX_COMMIT)
        return draft_link_keep(link, proposal) ? OFFER_KEPT : OFFER_REFUSED;
    if (proposal->base_length != length || proposal->base_digest != sequence->digest)
        return OFFER_REFUSED;
    return draft_link_take(link, proposal) ? OFFER_TAKEN : OFFER_REFUSED;
}

void sequence_merge(struct sequence *sequence, const struct merge *merge)
{
    static const struct merge nothing = {0}; /* is known, so that the same seed gives the same text whatever was decoded before it */
    const struct proposal *from[MERGE_MOST] = {NULL};

    for (int i = 0; i < sequence->linked; i++)
        from[i] = sequence->link[i].has_proposal ? &sequence->link[i].proposal : NULL;
    if (sequence->linked > 1)
        (accept_needs_q(&sequence->sampling) ? merge_apart : merge_chains)(sequence->repeats ? &nothing : merge, from, sequence->linked,
                                                                           sequence_wants(sequence), &sequence->merged);
}

/* The same probability for the first ids and that token, or for ids alone where it is among them. */
static struct support even_support(const struct draft_link *link, int row, int32_t token, int count)
{
    int32_t *id = link->supports.id + (size_t)row * (size_t)link->support_room;
    uint32_t *weight = link->supports.weight + (size_t)row * (size_t)link->support_room;

    for (int i = 0; i < count; i++) {
        id[i] = i;
        weight[i] = MESSAGE_Q_SUM / (uint32_t)count;
    }
    weight[0] += MESSAGE_Q_SUM % (uint32_t)count;
    if (token >= count)
        id[count - 1] = token;
    return (struct support){.count = count, .id = id, .weight = weight};
}

void sequence_fill(struct sequence *sequence, int support)
{
    struct draft_link *link = &sequence->link[0];
    int count = support < link->support_room ? support : link->support_room, needs_q = accept_needs_q(&sequence->sampling);

    link->proposal = (struct proposal){.base_length = (uint32_t)sequence->length, .base_digest = sequence->digest, .count = sequence_wants(sequence)};
    for (int i = 0; i < link->proposal.count; i++) {
        int32_t token = sequence->tokens[sequence->length - 1];

        link->proposal.token[i] = token;
        if (needs_q && count > 1)
            link->proposal.q[i] = even_support(link, i, token, count);
    }
    link->has_proposal = link->proposal.count > 0;
}

const struct proposal *sequence_latest(const struct sequence *sequence)
{
    return sequence->linked > 1 ? &sequence->merged.proposal : &sequence->link[0].proposal;
}

const struct proposal *sequence_proposal(const struct sequence *sequence)
{
    int is_there = sequence->linked > 1 ? sequence->merged.is_there : sequence->link[0].has_proposal;

    return is_there ? sequence_latest(sequence) : NULL;
}

int sequence_has_drafter(const struct sequence *sequence)
{
    for (int i = 0; i < sequence->linked; i++)
        if (sequence->link[i].drafter >= 0 && !sequence->link[i].behind)
            return 1;
    return 0;
}

void sequence_commit(struct sequence *sequence, const int32_t *tokens, int count)
{
    memcpy(sequence->tokens + sequence->length, tokens, (size_t)count * sizeof *tokens);
    sequence->digest = digest_tokens(sequence->digest, tokens, count);
    sequence->length += count;
    sequence->cached = sequence->length - 1;
    sequence->merged.is_there = 0;
    for (int i = 0; i < sequence->linked; i++)
        draft_link_use_up(&sequence->link[i]);
}

int sequence_wants(const struct sequence *sequence)
{
    int left = sequence->limit - sequence->length - 1;
    int asked = sequence->adaptive >= 0 ? sequence->adaptive : sequence->request->draft_length;
    int most = asked < MESSAGE_MAX_DRAFT ? asked : MESSAGE_MAX_DRAFT;

    return left < most ? (left > 0 ? left : 0) : most;
}
