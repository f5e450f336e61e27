#include "launch/bench/report/rounds.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <stdlib.h>
#include <string.h>

enum { NEAR = 256 /* spans looked back through */, MOST_DRAFTS = 64 /* of a round */ };
#define UNDER_WAY_NS ((int64_t)100000000) /* no commit is under way for longer; the same place of another pass is later */

/* The drafts that a round used, each once. */
struct drafts {
    int rank[MOST_DRAFTS], at[MOST_DRAFTS];
    int count;
};

double rounds_step_us(const double *phase_us)
{
    return phase_us[ROUND_VERIFY] + phase_us[ROUND_REDUCE];
}

const char *rounds_phase(enum round_phase phase)
{
    static const char *const name[ROUND_PHASES] = {"truncate", "draft",  "pack",      "wire",   "order", "verify",
                                                   "reduce",   "decide", "broadcast", "output", "other"};

    return name[phase];
}

void rounds_release(struct rounds *rounds)
{
    free(rounds->round);
    *rounds = (struct rounds){0};
}

static double us_of(const struct trace_span *span)
{
    return (double)(span->end_ns - span->start_ns) / 1000;
}

/* The last span that ended by then. */
static int last_by(const struct run_rank *rank, int64_t end_ns)
{
    int low = 0, high = rank->spans;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (rank->span[middle].end_ns <= end_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

static int is_about(const struct trace_span *span, enum trace_phase phase, uint32_t request, int length)
{
    return span->phase == (int32_t)phase && span->request == request && span->length == length;
}

static int64_t distance(int64_t a, int64_t b)
{
    return a < b ? b - a : a - b;
}

int rounds_find(const struct run_rank *rank, enum trace_phase phase, uint32_t request, int length, int64_t end_ns, int64_t error_ns)
{
    int last = last_by(rank, end_ns), found = -1;

    for (int i = last; i >= 0 && i > last - NEAR && found < 0; i--)
        if (is_about(&rank->span[i], phase, request, length))
            found = i;
    for (int i = last + 1; i < rank->spans && rank->span[i].end_ns <= end_ns + error_ns; i++)
        if (is_about(&rank->span[i], phase, request, length))
            return found < 0 || distance(rank->span[i].end_ns, end_ns) < distance(rank->span[found].end_ns, end_ns) ? i : found;
    return found;
}

static void add_draft(struct drafts *drafts, int rank, int at)
{
    for (int i = 0; i < drafts->count; i++)
        if (drafts->rank[i] == rank && drafts->at[i] == at)
            return;
    if (drafts->count < MOST_DRAFTS) {
        drafts->rank[drafts->count] = rank;
        drafts->at[drafts->count++] = at;
    }
}

/* The proposal that arrived with this span: who sent it, from which draft, and how long it was under way. */
static void follow_proposal(const struct run_placement *placement, const struct trace_span *arrival, struct round *round, struct drafts *drafts)
{
    for (int r = 0; r < placement->ranks; r++) {
        const struct run_rank *rank = &placement->rank[r];
        int pack = strcmp(rank->role, "drafter") == 0
                       ? rounds_find(rank, TRACE_PACK, arrival->request, arrival->length, arrival->end_ns, rank->clock_error_ns)
                       : -1,
            draft = pack;

        if (pack < 0)
            continue;
        while (draft >= 0 && rank->span[draft].phase != TRACE_DRAFT && pack - draft < NEAR)
            draft--;
        if (draft < 0 || rank->span[draft].phase != TRACE_DRAFT)
            continue;
        round->propose_us = (double)(arrival->end_ns - rank->span[pack].end_ns) / 1000;
        round->phase_us[ROUND_PACK] += us_of(&rank->span[pack]);
        add_draft(drafts, r, draft);
        return;
    }
}

/* What the drafters did for the round: where there are several, the one that took longest. */
static void add_drafting(const struct run_placement *placement, const struct drafts *drafts, struct round *round)
{
    double longest = 0;

    for (int i = 0; i < drafts->count; i++) {
        double draft = 0, truncate = 0;

        for (int j = 0; j < drafts->count; j++) {
            const struct run_rank *rank = &placement->rank[drafts->rank[j]];

            if (drafts->rank[j] != drafts->rank[i])
                continue;
            draft += us_of(&rank->span[drafts->at[j]]);
            for (int k = drafts->at[j] - 1; k >= 0 && rank->span[k].phase == TRACE_TRUNCATE; k--)
                truncate += us_of(&rank->span[k]);
        }
        if (draft + truncate > longest) {
            longest = draft + truncate;
            round->phase_us[ROUND_DRAFT] = draft;
            round->phase_us[ROUND_TRUNCATE] = truncate;
        }
    }
    round->drafting_us = round->phase_us[ROUND_DRAFT];
}

/* The wait is what drafters did, and the wire. Where they were done before the lead began to wait, only what it saw of them counts. */
static void split_wait(struct round *round)
{
    double busy = round->phase_us[ROUND_TRUNCATE] + round->phase_us[ROUND_DRAFT] + round->phase_us[ROUND_PACK];

    if (busy > round->wait_us && busy > 0) {
        for (int i = ROUND_TRUNCATE; i <= ROUND_PACK; i++)
            round->phase_us[i] *= round->wait_us / busy;
        busy = round->wait_us;
    }
    round->phase_us[ROUND_WIRE] = round->wait_us - busy;
}

static int contains(const struct trace_span *outer, const struct trace_span *inner)
{
    return inner->start_ns >= outer->start_ns && inner->end_ns <= outer->end_ns;
}

/* Orders and gathers inside of deciding count as what they are. */
static double without_inner(const struct run_rank *lead, int first, int at)
{
    double us = us_of(&lead->span[at]);

    for (int i = first; i < at; i++)
        if ((lead->span[i].phase == TRACE_ORDER || lead->span[i].phase == TRACE_GATHER) && contains(&lead->span[at], &lead->span[i]))
            us -= us_of(&lead->span[i]);
    return us;
}

/* When a drafter took this commit up: nearest to its end, as far as clocks tell, for the same place of another pass may be near, too. -1: never. */
static int find_truncate(const struct run_rank *rank, const struct trace_span *commit)
{
    int last = last_by(rank, commit->end_ns - rank->clock_error_ns), found = -1;

    for (int i = last + 1; i < rank->spans && i < last + NEAR; i++)
        if (is_about(&rank->span[i], TRACE_TRUNCATE, commit->request, commit->length) &&
            rank->span[i].end_ns > commit->start_ns - rank->clock_error_ns && rank->span[i].start_ns - commit->end_ns < UNDER_WAY_NS &&
            (found < 0 || distance(rank->span[i].start_ns, commit->end_ns) < distance(rank->span[found].start_ns, commit->end_ns)))
            found = i;
    return found;
}

static void add_commit(const struct run_placement *placement, const struct trace_span *span, struct round *round)
{
    round->tokens += span->value[0];
    round->drafted += span->value[1];
    round->accepted += span->value[2];
    for (int r = 0; r < placement->ranks; r++) {
        const struct run_rank *rank = &placement->rank[r];
        int taken = strcmp(rank->role, "drafter") == 0 ? find_truncate(rank, span) : -1;

        if (taken < 0)
            continue;
        round->commit_us = (double)(rank->span[taken].start_ns - span->end_ns) / 1000;
        return;
    }
}

static void take_span(const struct run_placement *placement, int first, int at, struct round *round, struct drafts *drafts)
{
    const struct run_rank *lead = &placement->rank[placement->lead];
    const struct trace_span *span = &lead->span[at];
    double us = us_of(span), reduce = span->value[1] / 1000.0;

    switch ((enum trace_phase)span->phase) {
    case TRACE_WAIT:
        round->wait_us += us;
        break;
    case TRACE_UNPACK:
        follow_proposal(placement, span, round, drafts);
        break;
    case TRACE_ORDER:
        round->phase_us[ROUND_ORDER] += us;
        break;
    case TRACE_VERIFY:
        round->phase_us[ROUND_VERIFY] += us - reduce;
        round->phase_us[ROUND_REDUCE] += reduce;
        round->rows += span->value[0];
        break;
    case TRACE_GATHER:
        round->phase_us[ROUND_REDUCE] += us;
        break;
    case TRACE_DECIDE:
        round->phase_us[ROUND_DECIDE] += without_inner(lead, first, at);
        break;
    case TRACE_BROADCAST:
        round->phase_us[ROUND_BROADCAST] += us;
        add_commit(placement, span, round);
        break;
    case TRACE_OUTPUT:
        round->phase_us[ROUND_OUTPUT] += us;
        break;
    default:
        break;
    }
}

static int pass_at(const struct run_placement *placement, int64_t ns)
{
    int pass = -1;

    while (pass + 1 < placement->passes && placement->pass[pass + 1].start_ns <= ns)
        pass++;
    return pass;
}

/* Is it the first round of a request of its pass? */
static int is_first(const struct run_placement *placement, const struct trace_span *commit, int pass)
{
    const struct run_pass *here = &placement->pass[pass];

    return commit->request < (uint32_t)here->ends && commit->length == here->end[commit->request].prompt_tokens;
}

static void build_one(const struct run_placement *placement, int at, struct round *round)
{
    const struct run_rank *lead = &placement->rank[placement->lead];
    const struct trace_span *whole = &lead->span[at];
    struct drafts drafts = {.count = 0};
    int first = at;
    double known = 0;

    *round = (struct round){.pass = pass_at(placement, whole->start_ns),
                            .start_ns = whole->start_ns,
                            .us = us_of(whole),
                            .sequences = whole->value[0],
                            .proposals = whole->value[1],
                            .hits = whole->value[2],
                            .propose_us = ROUND_UNKNOWN,
                            .commit_us = ROUND_UNKNOWN};
    while (first > 0 && lead->span[first - 1].end_ns >= whole->start_ns && lead->span[first - 1].start_ns >= whole->start_ns)
        first--;
    for (int i = first; i < at; i++) {
        take_span(placement, first, i, round, &drafts);
        if (lead->span[i].phase == TRACE_BROADCAST && round->pass >= 0)
            round->opens |= is_first(placement, &lead->span[i], round->pass);
    }
    add_drafting(placement, &drafts, round);
    split_wait(round);
    for (int i = 0; i < ROUND_OTHER; i++)
        known += round->phase_us[i];
    round->phase_us[ROUND_OTHER] = round->us > known ? round->us - known : 0;
}

enum status rounds_build(const struct run_placement *placement, struct rounds *rounds)
{
    const struct run_rank *lead = &placement->rank[placement->lead];
    int count = 0;

    *rounds = (struct rounds){0};
    for (int i = 0; i < lead->spans; i++)
        count += lead->span[i].phase == TRACE_ROUND;
    rounds->round = calloc((size_t)count + 1, sizeof *rounds->round);
    if (rounds->round == NULL) {
        log_error("no memory for %d rounds", count);
        return STATUS_INTERNAL;
    }
    for (int i = 0; i < lead->spans; i++)
        if (lead->span[i].phase == TRACE_ROUND) {
            build_one(placement, i, &rounds->round[rounds->count]);
            rounds->count += rounds->round[rounds->count].pass >= 0;
        }
    return STATUS_OK;
}

int rounds_write(const struct run *run, const struct run_placement *placement, const struct rounds *rounds, int head, FILE *to)
{
    int written = 0;

    if (head) {
        written = fprintf(
            to, "placement,cell,draft_length,temperature,accept,max_sequences,repetition,start_us,round_us,sequences,rows,drafted,accepted,tokens");
        for (int i = 0; i < ROUND_PHASES && written >= 0; i++)
            written = fprintf(to, ",%s_us", rounds_phase((enum round_phase)i));
        written = written < 0 ? written : fprintf(to, ",idle_lead_us,idle_drafter_us,propose_us,commit_us,proposals,hits\n");
    }
    for (int i = 0; i < rounds->count && written >= 0; i++) {
        const struct round *round = &rounds->round[i];
        const struct run_pass *pass = &placement->pass[round->pass];
        const struct run_cell *cell = &run->cell[pass->cell];

        if (pass->warm_up || !pass->traced)
            continue;
        written = fprintf(to, "%s,%d,%d,%g,%s,%d,%d,%.1f,%.1f,%d,%d,%d,%d,%d", placement->name, pass->cell, cell->solo ? 0 : cell->draft_length,
                          cell->temperature, cell->accept, cell->sequences, pass->repetition,
                          (double)(round->start_ns - placement->pass[0].start_ns) / 1000, round->us, round->sequences, round->rows, round->drafted,
                          round->accepted, round->tokens);
        for (int p = 0; p < ROUND_PHASES && written >= 0; p++)
            written = fprintf(to, ",%.1f", round->phase_us[p]);
        written = written < 0 ? written
                              : fprintf(to, ",%.1f,%.1f,%.1f,%.1f,%d,%d\n", round->wait_us, cell->solo ? 0 : round->us - round->drafting_us,
                                        round->propose_us, round->commit_us, round->proposals, round->hits);
    }
    return written >= 0;
}
