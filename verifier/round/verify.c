#include "verifier/round/verify_parts.h"

#include "common/base/log.h"
#include "common/base/trace.h"
#include "common/base/try.h"
#include "verifier/accept/accept_broken.h"
#include "verifier/accept/accept_synthetic.h"
#include <stdlib.h>
#include <string.h>

/* How many ids the row in front of a draft is asked about, whose logits the shards must report; none where no draft follows it (-1). */
static int support_size(const struct sampling *sampling, const struct proposal *proposal, int node, const int32_t **id)
{
    int32_t drawn;
    const struct support *asked = node < 0 ? NULL : proposal_asked(proposal, node, &drawn);

    if (asked == NULL || !evidence_facts(sampling)->tells_support)
        return 0;
    *id = asked->count == 0 ? &proposal->token[node] : asked->id; /* the point mass on the drafted token */
    return asked->count == 0 ? 1 : asked->count;
}

/* The first draft behind the row of this number; -1: none follows it. */
static int node_behind(const struct proposal *proposal, int row)
{
    return proposal_child(proposal, row - 1, row);
}

static const struct proposal *proposal_of(const struct sequence *sequence)
{
    static const struct proposal none = {0};
    const struct proposal *proposal = sequence_proposal(sequence);

    return proposal != NULL ? proposal : &none;
}

enum status verify_open(struct verify *verify, struct team *team, int max_sequences, int max_outputs, int max_ids)
{
    size_t vocab = (size_t)team->shard.model->vocab, lists = (size_t)team->group->size * EVIDENCE_LIST_MOST;
    size_t outputs = (size_t)max_outputs, sequences = (size_t)max_sequences;

    *verify = (struct verify){.team = team, .synthetic_acceptance = -1, .width = vocab > lists ? vocab : lists};
    /* The lists are as wide as the vocabulary for the rare row that needs all of it; the pages are only mapped when touched. */
    TRY(arena_open(&verify->arena,
                   arena_round(outputs * sizeof(struct target_row)) + arena_round(outputs * verify->width * sizeof(struct scored_token)) +
                       arena_round(outputs * verify->width * sizeof(double)) + arena_round((size_t)max_ids * sizeof(float)) +
                       arena_round(vocab * sizeof(float)) + 4 * arena_round(sequences * sizeof(struct verdict)) +
                       arena_round(outputs * sizeof(struct commit_note)) + arena_round(outputs * sizeof(struct keep_order)) +
                       arena_round(sequences * sizeof(struct prompt_part)) + arena_round(outputs * sizeof(struct logprob_order)) +
                       arena_round(outputs * sizeof(struct logprob)),
                   "the target rows of a step"));
    verify->target_row = arena_take(&verify->arena, outputs * sizeof(struct target_row));
    verify->best = arena_take(&verify->arena, outputs * verify->width * sizeof(struct scored_token));
    verify->p = arena_take(&verify->arena, outputs * verify->width * sizeof(double));
    verify->logit = arena_take(&verify->arena, (size_t)max_ids * sizeof(float));
    verify->whole = arena_take(&verify->arena, vocab * sizeof(float));
    verify->orders = arena_take(&verify->arena, sequences * sizeof *verify->orders);
    verify->winners = arena_take(&verify->arena, sequences * sizeof *verify->winners);
    verify->drawn = arena_take(&verify->arena, sequences * sizeof *verify->drawn);
    verify->verdict = arena_take(&verify->arena, sequences * sizeof *verify->verdict);
    verify->notes = arena_take(&verify->arena, outputs * sizeof *verify->notes);
    verify->keep = arena_take(&verify->arena, outputs * sizeof *verify->keep);
    verify->part = arena_take(&verify->arena, sequences * sizeof *verify->part);
    verify->asked = arena_take(&verify->arena, outputs * sizeof *verify->asked);
    verify->logprobs = arena_take(&verify->arena, outputs * sizeof *verify->logprobs);
    return STATUS_OK;
}

enum status verify_explain(struct verify *verify, int max_sequences)
{
    verify->explained = calloc((size_t)max_sequences, sizeof *verify->explained);
    if (verify->explained != NULL)
        return STATUS_OK;
    log_error("no memory for the drafts of %d sequences", max_sequences);
    return STATUS_INTERNAL;
}

void verify_close(struct verify *verify)
{
    free(verify->explained);
    arena_close(&verify->arena);
}

enum status verify_warm_up(struct verify *verify, const struct sampling *sampling, int rows, double *us)
{
    const struct slot_terms terms = {.sampling = *sampling};
    struct step *step = &verify->team->step;
    int64_t began;
    size_t unused;

    TRY(team_open_slot(verify->team, &terms));
    step_layout(step, rows, rows, 0);
    for (int r = 0; r < rows; r++) {
        const int32_t token = 0;

        step->output_row[r] = step_add_chain(step, 0, r, &token, 1);
        step->support_first[r + 1] = 0;
    }
    began = clock_ns();
    TRY(team_step(verify->team, &unused));
    *us = (double)(clock_ns() - began) / 1000;
    return STATUS_OK;
}

/* The newest committed token, and the drafts that follow it. */
static int feed(struct step *step, const struct sequence *sequence, const struct proposal *proposal)
{
    int place = sequence->length - 1;
    int32_t fed[MESSAGE_MAX_COMMIT];

    if (proposal->is_tree)
        return step_add_tree(step, sequence->slot, place, sequence->tokens[place], proposal->token, proposal->parent, proposal->count);
    fed[0] = sequence->tokens[place];
    memcpy(fed + 1, proposal->token, (size_t)proposal->count * sizeof *fed);
    return step_add_chain(step, sequence->slot, place, fed, proposal->count + 1);
}

/* Lays out the step: for each sequence its newest token and its drafts, all of them output rows; then the prompt rows. */
static void build(struct verify *verify, struct sequence *const *sequences, int count)
{
    struct step *step = &verify->team->step;
    int rows = 0, ids = 0, output = 0, used = 0;

    for (int s = 0; s < count; s++) {
        const struct proposal *proposal = proposal_of(sequences[s]);
        const int32_t *at;

        rows += proposal->count + 1;
        for (int i = 0; i <= proposal->count; i++)
            ids += support_size(&sequences[s]->sampling, proposal, node_behind(proposal, i), &at);
    }
    step_layout_scored(step, rows + verify_prompt_rows(verify), rows, verify_scored_rows(verify), ids);
    for (int s = 0; s < count; s++) {
        const struct sequence *sequence = sequences[s];
        const struct proposal *proposal = proposal_of(sequence);
        int first = feed(step, sequence, proposal);

        for (int i = 0; i <= proposal->count; i++) {
            const int32_t *id;
            int size = support_size(&sequence->sampling, proposal, node_behind(proposal, i), &id);

            if (size > 0)
                memcpy(step->id + used, id, (size_t)size * sizeof *step->id);
            step->output_row[output] = verify->breakage == BREAKAGE_STALE_ROW && i > 0 ? first + i - 1 : first + i;
            used += size;
            step->support_first[++output] = used;
        }
    }
    verify_lay_out_prompts(verify);
}

/* Joins the shards' evidence into the target rows of the step. */
static enum status join(struct verify *verify, struct sequence *const *sequences, int count, size_t bytes)
{
    struct team *team = verify->team;
    const void *from[WORLD_MAX_RANKS];
    int output = 0;

    for (int r = 0; r < team->group->size; r++)
        from[r] = team->gathered + (size_t)r * bytes;
    for (int s = 0; s < count; s++) {
        const struct sampling *sampling = &sequences[s]->sampling;

        for (int i = 0; i <= proposal_of(sequences[s])->count; i++, output++) {
            struct rng_key key = shard_key(&team->shard.terms[sequences[s]->slot], &team->step, output);
            int first = team->step.support_first[output], ids = team->step.support_first[output + 1] - first;
            struct scored_token *best = verify->best + (size_t)output * verify->width;
            double *p = verify->p + (size_t)output * verify->width;
            int vocab = team->shard.model->vocab;

            if (!evidence_is_finite(sampling, from, team->group->size)) {
                log_error("request %u: the target gives no finite logit: its weights are damaged", sequences[s]->request->index);
                return STATUS_DATA;
            }
            if (!evidence_join(sampling, &key, from, team->group->size, ids, vocab, best, p, verify->logit + first, &verify->target_row[output])) {
                TRY(team_whole_row(team, output, verify->whole));
                evidence_join_whole(sampling, &key, verify->whole, vocab, best, p, &verify->target_row[output]);
            }
            for (int r = 0; r < team->group->size; r++)
                from[r] = (const char *)from[r] + evidence_bytes(sampling, ids);
        }
    }
    return STATUS_OK;
}

/* The draws over logits that stay on the shards, for all sequences in one exchange. */
static enum status gumbel_max(struct verify *verify, struct sequence *const *sequences, const int *first_output, int orders)
{
    TRY(team_draws(verify->team, verify->orders, orders, verify->winners));
    for (int i = 0; i < orders; i++) {
        int s = verify->drawn[i];
        struct verdict *verdict = &verify->verdict[s];
        const struct proposal *proposal = proposal_of(sequences[s]);

        verdict->token = verify->winners[i].token;
        if (verdict->draw == DRAW_RESIDUAL) {
            int output = first_output[s] + verdict_row(verdict, verdict->accepted);
            struct rng_key key = shard_key(&verify->team->shard.terms[sequences[s]->slot], &verify->team->step, output);
            int32_t drawn;
            const struct support *asked = proposal_asked(proposal, verdict->refused, &drawn);
            struct scored_token inside = accept_gumbel_max_support(&verify->target_row[output], asked, drawn, &verdict->residual, &key);

            if (inside.token >= 0 && (verdict->token < 0 || inside.score > verify->winners[i].score))
                verdict->token = inside.token;
        }
    }
    return STATUS_OK;
}

/* Where the residual is empty up to rounding (p = q on the whole vocabulary), the token is drawn from p. */
static enum status redraw_empty(struct verify *verify, const int *first_output, int count)
{
    for (int s = 0; s < count; s++) {
        struct verdict *verdict = &verify->verdict[s];

        if (verdict->draw == DRAW_NONE || verdict->token >= 0)
            continue;
        verify->orders[0] = (struct draw_order){.output = first_output[s] + verdict_row(verdict, verdict->accepted), .residual = 0};
        TRY(team_draws(verify->team, verify->orders, 1, verify->winners));
        verdict->token = verify->winners[0].token;
    }
    return STATUS_OK;
}

/* Of all drafts that follow a row, of which one is accepted or none. */
static double overlap_behind(const struct target_row *targets, const struct proposal *proposal, int row)
{
    double overlap = 0;

    for (int node = row; node < proposal->count; node++)
        if (proposal_parent(proposal, node) == row - 1)
            overlap += accept_overlap(&targets[row], &proposal->q[node], proposal->token[node]);
    return overlap;
}

/* Tested drafts are those of the path and what was rejected at its end. */
static void add_overlaps(struct verify *verify, const struct target_row *targets, const struct proposal *proposal, const struct verdict *verdict)
{
    for (int depth = 0; depth < verdict->accepted + (verdict->refused >= 0); depth++) {
        double overlap = overlap_behind(targets, proposal, verdict_row(verdict, depth));

        verify->overlap += overlap;
        verify->overlap_variance += overlap * (1 - overlap);
        verify->overlaps++;
        verify->by_place[depth].tested++;
        verify->by_place[depth].excess += (depth < verdict->accepted) - overlap;
    }
}

/* Which kinds of drafters proposed each draft of a merged proposal. */
static void tell_sources(const struct verify *verify, const struct sequence *sequence, struct explained *explained)
{
    explained->kind = verify->kind;
    for (int i = 0; sequence->merged.is_there && verify->kind != NULL && i < explained->count; i++)
        explained->node[i].source = sequence->merged.source[i];
}

static struct verdict judge(const struct verify *verify, const struct sequence *sequence, const struct target_row *targets,
                            const struct proposal *proposal, const struct rng_key *key)
{
    const struct sampling *sampling = &sequence->sampling;

    if (verify->synthetic_acceptance >= 0)
        return accept_synthetic_decide(verify->synthetic_acceptance, sampling, targets, proposal->count, key);
    if (verify->breakage != BREAKAGE_NONE)
        return accept_broken_decide(verify->breakage, sampling, targets, proposal, proposal->count, key);
    return accept_decide(sampling, targets, proposal, proposal->count, key);
}

static enum status decide(struct verify *verify, struct sequence *const *sequences, int count, int *first_output)
{
    int orders = 0, output = 0, row;

    for (int s = 0; s < count; s++) {
        const struct sequence *sequence = sequences[s];
        const struct proposal *proposal = proposal_of(sequence);
        const struct target_row *targets = &verify->target_row[output];
        struct rng_key key = shard_key(&verify->team->shard.terms[sequence->slot], &verify->team->step, output);
        struct verdict verdict = judge(verify, sequence, targets, proposal, &key);

        first_output[s] = output;
        if (verify->explained != NULL) {
            explained_fill(&verify->explained[s], &sequence->sampling, targets, proposal, &verdict, &key);
            tell_sources(verify, sequence, &verify->explained[s]);
        }
        if (verify->measure_overlap && accept_overlap_tells(&sequence->sampling))
            add_overlaps(verify, targets, proposal, &verdict);
        row = verdict_row(&verdict, verdict.accepted);
        key.position += (uint32_t)verdict.accepted;
        if (verdict.draw != DRAW_NONE && targets[row].kind == TARGET_LIST) {
            int node = verdict.refused >= 0 ? verdict.refused : 0; /* a plain draw uses no q */

            verdict.token = accept_draw_list(&targets[row], &proposal->q[node], proposal->token[node],
                                             verdict.draw == DRAW_RESIDUAL ? &verdict.residual : NULL, &key, RNG_RESIDUAL);
            verdict.draw = DRAW_NONE;
        }
        if (verdict.draw != DRAW_NONE) {
            verify->orders[orders] = (struct draw_order){.output = output + row, .residual = verdict.draw == DRAW_RESIDUAL};
            verify->drawn[orders++] = s;
        }
        verify->verdict[s] = verdict;
        output += proposal->count + 1;
    }
    if (orders > 0) {
        TRY(gumbel_max(verify, sequences, first_output, orders));
        TRY(redraw_empty(verify, first_output, count));
    }
    return STATUS_OK;
}

/* The accepted tokens of trees go to the places that those of a chain lie at. Each comes from behind its place, so that none is overwritten before it
 * is moved. */
static enum status keep_paths(struct verify *verify, struct sequence *const *sequences, int count)
{
    int keeps = 0;

    for (int s = 0; s < count; s++) {
        const struct verdict *verdict = &verify->verdict[s];

        for (int i = 0; i < verdict->accepted; i++)
            if (verdict->node[i] != i)
                verify->keep[keeps++] =
                    (struct keep_order){.slot = sequences[s]->slot, .from = sequences[s]->length + verdict->node[i], .to = sequences[s]->length + i};
    }
    return keeps > 0 && verify->breakage != BREAKAGE_STALE_PATH ? team_keep(verify->team, verify->keep, keeps) : STATUS_OK;
}

/* What the target says behind the newest token and behind each draft, whatever becomes of it. */
static void tell_own(const struct verify *verify, struct sequence *sequence, const struct target_row *targets, int drafted)
{
    sequence->owns = verify->tells_own && accept_compares_tokens(&sequence->sampling) ? drafted + 1 : 0;
    for (int i = 0; i < sequence->owns; i++)
        sequence->own[i] = targets[i].winner;
}

enum status verify_round(struct verify *verify, struct sequence *const *sequences, int count, struct outcome *outcomes)
{
    int64_t start = clock_ns(), stepped;
    int first_output[count];
    size_t bytes;

    build(verify, sequences, count);
    TRY(team_step(verify->team, &bytes));
    stepped = clock_ns();
    clock_add(&verify->step, stepped - start);
    int64_t began = trace_begin();
    TRY(join(verify, sequences, count, bytes));
    TRY(decide(verify, sequences, count, first_output));
    for (int s = 0; s < count; s++) {
        const struct verdict *verdict = &verify->verdict[s];
        const struct proposal *proposal = proposal_of(sequences[s]);
        struct outcome *outcome = &outcomes[s];

        outcome->drafted = proposal->count;
        outcome->accepted = verdict->accepted;
        outcome->refused = verdict->refused;
        outcome->count = verdict->accepted + 1;
        for (int i = 0; i < verdict->accepted; i++)
            outcome->token[i] = proposal->token[verdict->node[i]];
        outcome->token[verdict->accepted] = verdict->token;
        tell_own(verify, sequences[s], &verify->target_row[first_output[s]], proposal->count);
        outcome->explained = NULL;
        if (verify->explained != NULL) {
            verify->explained[s].token = verdict->token;
            outcome->explained = &verify->explained[s];
        }
    }
    TRY(keep_paths(verify, sequences, count));
    clock_add(&verify->decide, clock_ns() - stepped);
    trace_end(TRACE_DECIDE, began, (uint32_t)sequences[0]->ticket, sequences[0]->length, count, 0, 0);
    return verify_end_prompts(verify); /* behind all that reads the step's evidence, whose memory it uses */
}

enum status verify_note(struct verify *verify, const struct outcome *outcomes, const int *kept, int count)
{
    int notes = 0, output = 0;

    for (int s = 0; s < count; s++) {
        for (int i = 0; i < kept[s]; i++)
            verify->notes[notes++] = (struct commit_note){.output = output + verdict_row(&verify->verdict[s], i), .token = outcomes[s].token[i]};
        output += outcomes[s].drafted + 1;
    }
    return team_note(verify->team, verify->notes, notes);
}

enum status verify_logprobs(struct verify *verify, struct sequence *const *sequences, const struct outcome *outcomes, const int *kept, int count)
{
    int asked = 0, output = 0;

    for (int s = 0; s < count; s++) {
        for (int i = 0; sequence_wants_logprobs(sequences[s]) && i < kept[s]; i++)
            verify->asked[asked++] = (struct logprob_order){.output = output + verdict_row(&verify->verdict[s], i),
                                                            .token = outcomes[s].token[i],
                                                            .top = sequences[s]->logprobs != NULL ? sequences[s]->request->logprobs : 0};
        output += outcomes[s].drafted + 1;
    }
    if (asked == 0)
        return STATUS_OK;
    TRY(team_logprobs(verify->team, verify->asked, asked, verify->logprobs));
    asked = 0;
    for (int s = 0; s < count; s++)
        for (int i = 0; sequence_wants_logprobs(sequences[s]) && i < kept[s]; i++)
            sequence_add_logprob(sequences[s], sequences[s]->length - kept[s] + i, &verify->logprobs[asked++]);
    return STATUS_OK;
}
