#include "drafter/run_ahead.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/try.h"

#define TIME_SHARE   0.125 /* of a new time in the mean */
#define WINDOW_SHARE 0.75  /* of the usual window that is planned for */
#define USUAL_WORTH  0.3   /* until the lead has measured */
#define LEAST_SHARE  0.04  /* probability of an outcome that is drafted for: a branch costs either side some time, whatever comes */

enum status run_ahead_open(struct run_ahead *ahead, const struct draft *draft, struct mirror *mirrors, int slots, int is_on, int branches)
{
    int runs = is_on && draft->kind->step != NULL;

    *ahead = (struct run_ahead){.draft = draft,
                                .mirror = mirrors,
                                .slots = slots,
                                .is_on = runs,
                                .branches = branches,
                                .worth = USUAL_WORTH,
                                .outputs = runs ? 1 + MIRROR_BRANCHES : 1,
                                .most_jobs = draft_jobs(slots, runs)};
    size_t outputs = (size_t)(slots * ahead->outputs) * sizeof *ahead->output, jobs = (size_t)ahead->most_jobs * sizeof *ahead->job;

    TRY(arena_open(&ahead->arena, arena_round(outputs) + arena_round(jobs), "drafts"));
    arena_expect_gaps(&ahead->arena);
    ahead->output = arena_take(&ahead->arena, outputs);
    ahead->job = arena_take(&ahead->arena, jobs);
    return STATUS_OK;
}

void run_ahead_describe(const struct run_ahead *ahead)
{
    if (ahead->steps > 0)
        log_debug("ran ahead: %lld branches in %lld steps; %.0f us until a Commit; a q goes beforehand from a probability of %.3f on; a step of 1, "
                  "2, 4, 8, "
                  "16 rows takes %.0f, %.0f, %.0f, %.0f, %.0f us",
                  (long long)ahead->planned, (long long)ahead->steps, ahead->window_ns / 1e3, ahead->worth, ahead->row_ns[0] / 1e3,
                  2 * ahead->row_ns[1] / 1e3, 4 * ahead->row_ns[2] / 1e3, 8 * ahead->row_ns[3] / 1e3, 16 * ahead->row_ns[4] / 1e3);
}

void run_ahead_close(struct run_ahead *ahead)
{
    arena_close(&ahead->arena);
}

static struct draft_output *output_of(const struct run_ahead *ahead, const struct mirror *mirror, int output)
{
    return &ahead->output[mirror->slot * ahead->outputs + output];
}

struct draft_output *run_ahead_output(const struct run_ahead *ahead, const struct mirror *mirror)
{
    return output_of(ahead, mirror, mirror->output);
}

/* Is its draft with the lead, and one that can be run ahead of? Where a tree was asked for, what is there is of before. */
static int is_waiting(const struct mirror *mirror)
{
    return mirror->open && mirror->shape == TREE_CHAIN && mirror->wanted == 0 && (mirror->drafted > 0 || mirror->is_stopped);
}

static int size_of(int rows)
{
    int size = 0;

    while (size + 1 < AHEAD_SIZES && 1 << size < rows)
        size++;
    return size;
}

static void mean(double *of, double x)
{
    *of = *of == 0 ? x : *of + TIME_SHARE * (x - *of);
}

/* The expected time of a step of so many rows. A row of a larger step costs no more than one of a smaller step. */
static double step_ns(const struct run_ahead *ahead, int rows)
{
    int size = size_of(rows);

    while (size > 0 && ahead->row_ns[size] == 0)
        size--;
    return ahead->row_ns[size] * rows;
}

/* How many branches each of `drafts` drafts of `drafted` tokens may have, so that all are whole before the Commit usually comes. */
static int affordable(const struct run_ahead *ahead, int drafts, int drafted)
{
    double left = WINDOW_SHARE * ahead->window_ns - step_ns(ahead, drafts);
    int branches = 1;

    if (ahead->branches > 0)
        return ahead->branches < MIRROR_BRANCHES ? ahead->branches : MIRROR_BRANCHES;
    while (branches < MIRROR_BRANCHES && ahead->row_ns[0] > 0 &&
           drafted * step_ns(ahead, drafts * (branches + 1)) + drafts * (branches + 1) * ahead->send_ns <= left)
        branches++;
    return branches;
}

/* Chooses the branches of a mirror's draft. Those that all of it makes have to wait until its last token was fed. */
static void plan(struct run_ahead *ahead, struct mirror *mirror, int branches)
{
    struct outcome_choice choice[MIRROR_BRANCHES];
    int guesses[MESSAGE_MAX_DRAFT + 1], count, drafted = mirror->drafted;

    for (int after = 0; after < drafted; after++) {
        ahead->draft->kind->guess(ahead->draft->state, mirror, after, &mirror->ahead.guesses[after]);
        guesses[after] = mirror->ahead.guesses[after].count;
    }
    guesses[drafted] = MIRROR_GUESSES;
    count = outcomes_choose(&ahead->outcomes, drafted, guesses, branches, ahead->branches > 0 ? 0 : LEAST_SHARE, choice);
    mirror->ahead.is_planned = 1;
    mirror->ahead.bonuses = 0;
    for (int i = 0; i < count; i++)
        if (choice[i].after == drafted)
            mirror->ahead.bonuses++;
        else
            ahead->planned += mirror_branch(mirror, choice[i].after, choice[i].guess);
    mirror->asked_ns = clock_ns();
}

static void plan_all(struct run_ahead *ahead)
{
    int drafts = 0, longest = 0;

    for (int i = 0; i < ahead->slots; i++)
        if (is_waiting(&ahead->mirror[i])) {
            drafts++;
            longest = mirror_branch_length(&ahead->mirror[i]) > longest ? mirror_branch_length(&ahead->mirror[i]) : longest;
        }
    for (int i = 0, branches = drafts > 0 ? affordable(ahead, drafts, longest) : 0; i < ahead->slots; i++)
        if (is_waiting(&ahead->mirror[i]) && !ahead->mirror[i].ahead.is_planned) {
            plan(ahead, &ahead->mirror[i], branches);
            ahead->planned_ns = ahead->mirror[i].asked_ns;
        }
}

/* The last token of the draft was fed: the branches that go on from there. */
static void plan_bonuses(struct run_ahead *ahead, struct mirror *mirror)
{
    struct guesses *guesses = &mirror->ahead.guesses[mirror->drafted];

    ahead->draft->kind->guess(ahead->draft->state, mirror, mirror->drafted, guesses);
    mirror->ahead.has_looked = 1;
    for (int i = 0; i < mirror->ahead.bonuses && i < guesses->count; i++)
        ahead->planned += mirror_branch(mirror, mirror->drafted, i);
}

static int is_to_look(const struct mirror *mirror)
{
    return mirror->ahead.bonuses > 0 && !mirror->ahead.has_looked && mirror->length + mirror->drafted < mirror->context;
}

/* The jobs of a mirror, as far as there is room. */
static int add_jobs(struct run_ahead *ahead, struct mirror *mirror, int count)
{
    if (is_to_look(mirror) && mirror->is_stopped && mirror->cached == mirror->length + mirror->drafted)
        plan_bonuses(ahead, mirror); /* what it stopped at is behind its last token */
    if (is_to_look(mirror) && count < ahead->most_jobs)
        ahead->job[count++] =
            (struct draft_job){.mirror = mirror, .branch = JOB_LOOK, .output = run_ahead_output(ahead, mirror), .depth = mirror->drafted};
    for (int b = 0; b < mirror->ahead.branches && count < ahead->most_jobs; b++) {
        struct branch *branch = &mirror->ahead.branch[b];
        struct draft_output *output = output_of(ahead, mirror, branch->output);

        if (branch->count == branch->wanted)
            continue;
        output->count = branch->count;
        output->is_tree = 0;
        ahead->job[count++] = (struct draft_job){.mirror = mirror, .branch = b, .output = output};
    }
    return count;
}

enum status run_ahead_step(struct run_ahead *ahead, int *did)
{
    int64_t began;
    int count = 0, left_out = 0;

    *did = 0;
    if (!ahead->is_on)
        return STATUS_OK;
    plan_all(ahead);
    for (int i = 0; i < ahead->slots; i++)
        if (is_waiting(&ahead->mirror[i]))
            count = add_jobs(ahead, &ahead->mirror[i], count);
    if (count == 0)
        return STATUS_OK;
    began = clock_ns();
    TRY(ahead->draft->kind->step(ahead->draft->state, ahead->job, count));
    for (int i = 0; i < count; i++)
        if (ahead->job[i].branch == JOB_LOOK)
            plan_bonuses(ahead, ahead->job[i].mirror);
        else if (ahead->job[i].mirror->ahead.branch[ahead->job[i].branch].wanted == 0)
            left_out++; /* nothing was to be drafted for that text */
    if (left_out == 0)
        mean(&ahead->row_ns[size_of(count)], (double)(clock_ns() - began) / count);
    ahead->steps += left_out < count;
    *did = 1;
    return STATUS_OK;
}

/* Point masses are a few bytes. A q is kilobytes, which cost the lead time whether they are used or not: it says how probable a text must be for that
 * to be less than what waiting for them costs. */
static int is_for_the_shelf(const struct run_ahead *ahead, const struct mirror *mirror, const struct branch *branch,
                            const struct draft_output *output)
{
    int weights = 0;

    for (int k = 0; k < branch->count; k++)
        weights += output->q[k].count;
    return weights == 0 || outcomes_share(&ahead->outcomes, mirror->drafted, branch->after, branch->guess) >= ahead->worth;
}

struct branch *run_ahead_whole(struct run_ahead *ahead, struct mirror **mirror, const struct draft_output **output)
{
    for (int i = 0; i < ahead->slots; i++)
        for (int b = 0; is_waiting(&ahead->mirror[i]) && b < ahead->mirror[i].ahead.branches; b++) {
            struct branch *branch = &ahead->mirror[i].ahead.branch[b];

            *mirror = &ahead->mirror[i];
            *output = output_of(ahead, *mirror, branch->output);
            if (!branch->is_sent && branch->count > 0 && branch->count == branch->wanted && is_for_the_shelf(ahead, *mirror, branch, *output))
                return branch;
        }
    return NULL;
}

void run_ahead_sent(struct run_ahead *ahead, int count, int64_t ns)
{
    if (count > 0)
        mean(&ahead->send_ns, (double)ns / count);
}

void run_ahead_learn(struct run_ahead *ahead, const struct mirror *mirror, const struct commit *commit)
{
    int accepted = (int)commit->accepted, guess = 0, drafted = mirror->drafted;
    const struct guesses *guesses;

    if (commit->worth > 0)
        ahead->worth = (double)commit->worth / MESSAGE_MOST_WORTH;
    if (!mirror->ahead.is_planned || (int)commit->old_length != mirror->length || commit->count <= accepted || accepted > drafted)
        return;
    if (ahead->planned_ns > 0)
        mean(&ahead->window_ns, (double)(clock_ns() - ahead->planned_ns));
    ahead->planned_ns = 0; /* the Commits of a round come together */
    if (accepted == drafted && !mirror->ahead.has_looked) {
        outcomes_add(&ahead->outcomes, drafted, accepted, -1);
        return;
    }
    if (accepted < drafted && commit->tokens[accepted] == mirror->tokens[mirror->length + accepted])
        return; /* the round was without this draft */
    guesses = &mirror->ahead.guesses[accepted];
    if (commit->count > accepted + 1) /* drafts of another kind follow: no branch is of this text */
        guess = MIRROR_GUESSES;
    while (guess < guesses->count && guesses->token[guess] != commit->tokens[accepted])
        guess++;
    outcomes_add(&ahead->outcomes, drafted, accepted, guess < guesses->count ? guess : MIRROR_GUESSES);
}
