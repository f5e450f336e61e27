/* The adaptive draft length against machines whose times are known, and whose drafts are accepted as often as a number says: no clock, no chance.
 * What a job gets is compared with the best fixed draft length and with no drafts at all, over whole jobs, first rounds included. */
#include "verifier/round/adaptive.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { KNOWN = 8 };
enum { ROBBED = 400, TREE_MOST = 63 };
#define LINGERING 1.5
#define ROBBED_US 200

struct machine {
    const char *name;
    struct {
        int rows;
        double us;
    } step[KNOWN];             /* of a step; between them and beyond the last two by a line */
    double beside;             /* of a round, beside the step */
    double wire, token, reads; /* a proposal of k tokens is waited for wire + token k, one for which its drafter reads first so much longer */
    double ahead;              /* drafts of k tokens are there already for this to the power of k of the rounds; 0: the drafter does not run ahead */
    int by_chance;             /* so it is in some rounds and not in others; else each waits as long as they do on the average */
    double alpha;
    int tree;                  /* drafts are trees, each twice as large giving so many thousandths of a token more; 0: chains, by alpha */
    double burden;             /* steps of rounds with drafts, and of the round behind one, are slower by this factor; 0: they are not */
    double lingers;            /* for so many microseconds after a round with drafts those without take longer: drafters are not yet asleep */
    int hiccups;               /* every so many rounds take ten times as long; 0: none do */
    int cold;                  /* nothing was timed before the first round, no draft step either */
    int slow;                  /* the warm-up and so many first rounds take three times as long; a third, where it is below 0 */
    int robbed;                /* in so many rounds from the ROBBED-th on other programs take the drafter's core, and each wait is ROBBED_US */
    int plain_slow;            /* so many first rounds take twice as long where they have no drafts */
};

/* As measured with the pair of the demo, one thread on two cores. Four rows take less than twice one, eight twice as much again. */
#define AVX2 .step = {{1, 190}, {2, 240}, {4, 330}, {8, 660}, {20, 1650}}, .beside = 30
#define AVX512 .step = {{1, 190}, {2, 195}, {4, 230}, {8, 330}, {20, 700}}, .beside = 30
#define ZEN4 .step = {{1, 157}, {2, 219}, {4, 380}, {8, 700}, {20, 1750}}, .beside = 3
#define TWO .step = {{1, 85}, {2, 110}, {4, 208}, {8, 440}, {16, 790}}, .beside = 20, .wire = 100, .token = 40, .reads = 400
#define FAR .step = {{1, 1000}, {2, 1010}, {8, 1060}, {32, 1400}}, .beside = 50

static const struct machine machines[] = {
    {"AVX2, drafts are accepted", AVX2, .wire = 40, .token = 30, .reads = 100, .alpha = 0.9},
    {"AVX2, usual", AVX2, .wire = 40, .token = 30, .reads = 100, .alpha = 0.7},
    {"AVX2, drafts fall", AVX2, .wire = 40, .token = 30, .reads = 100, .alpha = 0.3},
    {"AVX-512, drafts are accepted", AVX512, .wire = 40, .token = 25, .reads = 100, .alpha = 0.9},
    {"AVX-512, usual", AVX512, .wire = 40, .token = 25, .reads = 100, .alpha = 0.7},
    {"AVX-512, drafts fall", AVX512, .wire = 40, .token = 25, .reads = 100, .alpha = 0.3},
    {"slow wire, drafts are accepted", FAR, .wire = 900, .token = 60, .reads = 2000, .alpha = 0.9},
    {"slow wire, drafts fall", FAR, .wire = 900, .token = 60, .reads = 2000, .alpha = 0.3},
    {"drafts that take seconds", .step = {{1, 1e5}, {2, 2e5}, {4, 4e5}}, .wire = 100, .token = 2e6, .reads = 2000, .alpha = 0.8},
    {"drafts that give a little", FAR, .wire = 20, .token = 540, .reads = 1000, .alpha = 0.8},
    {"drafts as slow as tokens", FAR, .wire = 100, .token = 1000, .reads = 2000, .alpha = 0.8},
    {"drafts half as slow as tokens, ahead", FAR, .wire = 20, .token = 400, .reads = 2000, .alpha = 0.8, .ahead = 0.85},
    {"AVX2, ahead", AVX2, .wire = 40, .token = 30, .reads = 100, .alpha = 0.7, .ahead = 0.9},
    {"slow wire, ahead", FAR, .wire = 900, .token = 60, .reads = 2000, .alpha = 0.8, .ahead = 0.85},
    {"multiply-adds are the limit", ZEN4, .wire = 5, .token = 17, .reads = 100, .alpha = 0.76, .ahead = 0.9},
    {"multiply-adds are the limit, robbed for a while", ZEN4, .wire = 5, .token = 17, .reads = 100, .alpha = 0.76, .ahead = 0.9, .robbed = 150},
    {"drafts half as slow as tokens, by chance", FAR, .wire = 20, .token = 400, .reads = 2000, .alpha = 0.8, .ahead = 0.85, .by_chance = 1},
    {"AVX2, by chance", AVX2, .wire = 40, .token = 30, .reads = 100, .alpha = 0.7, .ahead = 0.9, .by_chance = 1},
    {"AVX2, seldom, by chance", AVX2, .wire = 40, .token = 200, .reads = 100, .alpha = 0.7, .ahead = 0.5, .by_chance = 1},
    {"slow wire, by chance", FAR, .wire = 900, .token = 60, .reads = 2000, .alpha = 0.8, .ahead = 0.85, .by_chance = 1},
    {"a drafter in the way", AVX512, .wire = 60, .token = 30, .reads = 100, .alpha = 0.75, .burden = 1.4},
    {"a drafter a little in the way", AVX512, .wire = 40, .token = 25, .reads = 100, .alpha = 0.8, .burden = 1.1},
    {"a drafter in the way that lingers", AVX2, .wire = 20, .token = 20, .reads = 100, .alpha = 0.73, .burden = 1.5, .lingers = 600},
    {"hiccups", AVX512, .wire = 40, .token = 25, .reads = 100, .alpha = 0.7, .hiccups = 9},
    {"hiccups, drafts fall", AVX2, .wire = 40, .token = 30, .reads = 100, .alpha = 0.3, .hiccups = 9},
    {"two verifiers", TWO, .alpha = 0.73},
    {"two verifiers, slow at first", TWO, .alpha = 0.73, .slow = 40},
    {"two verifiers, fast at first", TWO, .alpha = 0.73, .slow = -40},
    {"two verifiers, slow for long", TWO, .alpha = 0.73, .slow = 200},
    {"trees that are accepted, rows cost nothing", FAR, .wire = 40, .token = 20, .reads = 100, .alpha = 0.7, .tree = 550},
    {"trees that are accepted, slow wire", FAR, .wire = 900, .token = 10, .reads = 2000, .alpha = 0.8, .tree = 600},
    {"trees, multiply-adds are the limit", ZEN4, .wire = 5, .token = 17, .reads = 100, .alpha = 0.76, .tree = 500},
    {"trees that fall", AVX2, .wire = 40, .token = 30, .reads = 100, .alpha = 0.25, .tree = 120},
    {"cold, drafts are accepted", AVX512, .wire = 40, .token = 25, .reads = 100, .alpha = 0.9, .cold = 1},
    {"cold, drafts fall", AVX2, .wire = 40, .token = 30, .reads = 100, .alpha = 0.3, .cold = 1},
};
enum { MACHINES = sizeof machines / sizeof *machines };

static const struct machine *machine_of(const char *name)
{
    for (int m = 0; m < MACHINES; m++)
        if (strcmp(machines[m].name, name) == 0)
            return &machines[m];
    fail_msg("no machine '%s'", name);
    return NULL;
}

static double step_us(const struct machine *machine, int rows)
{
    int high = 1;

    while (high + 1 < KNOWN && machine->step[high + 1].rows > 0 && machine->step[high].rows < rows)
        high++;
    int low = high - 1, from = machine->step[low].rows;

    return machine->step[low].us +
           (machine->step[high].us - machine->step[low].us) * (rows - from) / (machine->step[high].rows - from);
}

static double work_us(const struct machine *machine, int sequences, int length, int burdened)
{
    return step_us(machine, sequences * (length + 1)) * (burdened && machine->burden > 0 ? machine->burden : 1) + machine->beside;
}

static double answer_us(const struct machine *machine, int length)
{
    return length > 0 ? machine->wire + machine->token * length : 0;
}

/* How often that many drafts are there already. */
static double served(const struct machine *machine, int length)
{
    return machine->ahead > 0 ? pow(machine->ahead, length) : 0;
}

/* Tokens of a round with so many drafts. */
static double tokens_of(const struct machine *machine, int length)
{
    if (machine->tree == 0 || length == 0)
        return adaptive_expected_tokens(machine->alpha, length);
    return 1 + machine->alpha + machine->tree / 1e3 * log2(length);
}

/* Tokens by microsecond in the long run. */
static double rate(const struct machine *machine, int sequences, int length)
{
    return sequences * tokens_of(machine, length) /
           (work_us(machine, sequences, length, length > 0) + (1 - served(machine, length)) * answer_us(machine, length));
}

struct job {
    const struct machine *machine;
    int sequences;
    struct adaptive adaptive;
    uint64_t dice;
    int length;     /* of the round that comes */
    int before;     /* of the one before */
    int round;
    int drafted;    /* rounds with drafts, */
    int last;       /* and the last of them */
    double alone_us;   /* since the last of them */
    double us, tokens; /* of rounds at the usual speed, hiccups left out */
};

/* Of the steps in this round. */
static double slowness(const struct job *job)
{
    int slow = job->machine->slow;

    if (job->length == 0 && job->round < job->machine->plain_slow)
        return 2;
    if (job->length == 0 && job->drafted > 0 && job->alone_us < job->machine->lingers)
        return LINGERING;
    return slow > 0 ? job->round < slow ? 3 : 1 : job->round < -slow ? 1.0 / 3 : 1;
}

/* timed: how many numbers of rows there is time for; earlier, past: what jobs before left, NULL: nobody knows. */
static void begin_after(struct job *job, const struct machine *machine, int sequences, int timed, const struct adaptive_times *earlier,
                        const struct adaptive_past *past)
{
    *job = (struct job){.machine = machine, .sequences = sequences, .adaptive.tokens.is_tree = machine->tree > 0};
    if (!machine->cold)
        adaptive_add_draft_step(&job->adaptive, (struct adaptive_draft_step){.rows = 4, .one_us = machine->token, .all_us = machine->token});
    for (int i = 0; !machine->cold && i < timed && adaptive_work_warm_up_rows(i) <= sequences * (ADAPTIVE_START + 1); i++)
        adaptive_work_add_step(&job->adaptive.work, adaptive_work_warm_up_rows(i), slowness(job) * step_us(machine, adaptive_work_warm_up_rows(i)));
    if (earlier != NULL)
        adaptive_work_recall(&job->adaptive.work, earlier);
    if (past != NULL)
        adaptive_recall(&job->adaptive, past);
    job->length = adaptive_choose(&job->adaptive, sequences);
}

static void begin(struct job *job, const struct machine *machine, int sequences)
{
    begin_after(job, machine, sequences, ADAPTIVE_KNOTS, NULL, NULL);
}

static int happens(struct job *job, double probability)
{
    job->dice = job->dice * 6364136223846793005u + 1442695040888963407u;
    return (double)(job->dice >> 11) * 0x1p-53 < probability;
}

/* How many of these drafts are accepted: the same ones in each run. */
static int stand(struct job *job, int length)
{
    double more = tokens_of(job->machine, length) - 1;
    int accepted = 0;

    if (job->machine->tree > 0)
        return (int)more + happens(job, more - floor(more));
    while (accepted < length && happens(job, job->machine->alpha))
        accepted++;
    return accepted;
}

static int is_robbed(const struct job *job)
{
    return job->round >= ROBBED && job->round < ROBBED + job->machine->robbed;
}

/* What was drafted ahead is of the length of the round before. */
static double wait_us(struct job *job)
{
    const struct machine *machine = job->machine;
    double share = job->length == job->before ? served(machine, job->length) : 0;

    if (is_robbed(job))
        return ROBBED_US;
    if (machine->by_chance)
        share = happens(job, share);
    return (1 - share) * answer_us(machine, job->length);
}

static void take_round(struct job *job)
{
    const struct machine *machine = job->machine;
    double slow = machine->hiccups > 0 && job->round % machine->hiccups == 3 ? 10 : 1;
    struct adaptive_round round = {.sequences = job->sequences,
                                   .rows = job->sequences * (job->length + 1),
                                   .longest = job->length,
                                   .caught_up = job->length > 0 && job->before == 0,
                                   .work_us =
                                       slow * slowness(job) * work_us(machine, job->sequences, job->length, job->length > 0 || job->before > 0),
                                   .wait_us = slow * wait_us(job),
                                   .answer_us = answer_us(machine, job->length)};

    round.wait_us += round.caught_up ? machine->reads : 0;
    for (int s = 0; s < job->sequences; s++) {
        int accepted = stand(job, job->length);

        round.tokens += accepted + 1;
        adaptive_add_verdict(&job->adaptive, job->length, accepted);
    }
    adaptive_add_round(&job->adaptive, &round);
    job->drafted += job->length > 0;
    job->alone_us = job->length > 0 ? 0 : job->alone_us + round.work_us;
    job->last = job->length > 0 ? job->round : job->last;
    if (is_robbed(job)) {
        /* what could be had then is another question */
    } else if (slowness(job) == 1 || slowness(job) == LINGERING) {
        job->us += (round.work_us + round.wait_us) / slow;
        job->tokens += round.tokens;
    }
    job->before = job->length;
    job->round++;
    job->length = adaptive_choose(&job->adaptive, job->sequences);
    assert_in_range(job->length, 0, job->machine->tree > 0 ? TREE_MOST : ADAPTIVE_MOST);
}

static double best_rate(const struct machine *machine, int sequences)
{
    double best = 0;

    for (int k = 0; k <= (machine->tree > 0 ? TREE_MOST : ADAPTIVE_MOST); k++)
        best = fmax(best, rate(machine, sequences, k));
    return best;
}

/* Jobs of so many rounds give at least this part of what the best fixed length gives, and of what a job without drafts gives. */
static const struct {
    int rounds;
    double of_best, of_plain;
} bounds[] = {{60, 0.78, 0.90}, {160, 0.90, 0.95}, {2000, 0.95, 0.98}};
#define CHANCE 0.97 /* where it is chance whether a round waits, this part of it */

static void test_adaptive__a_job_is_nearly_as_fast_as_with_the_best_fixed_length(void **state)
{
    static const int sequences[] = {1, 4};
    int failed = 0;

    (void)state;
    for (int m = 0; m < MACHINES; m++)
        for (int s = 0; s < 2; s++)
            for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++) {
                struct job job;
                double fast, of_best = bounds[b].of_best * (machines[m].by_chance ? CHANCE : 1);

                begin(&job, &machines[m], sequences[s]);
                while (job.round < bounds[b].rounds + abs(machines[m].slow) + machines[m].robbed)
                    take_round(&job);
                fast = job.tokens / job.us;
                if (fast < of_best * best_rate(&machines[m], sequences[s]) || fast < bounds[b].of_plain * rate(&machines[m], sequences[s], 0)) {
                    failed = 1;
                    print_error("%s, %d sequences, %d rounds: %.3f of the best, %.3f of none; %d with drafts, K %d\n", machines[m].name, sequences[s],
                                bounds[b].rounds, fast / best_rate(&machines[m], sequences[s]), fast / rate(&machines[m], sequences[s], 0),
                                job.drafted, job.length);
                }
            }
    assert_false(failed);
}

/* A job whose warm-up had time for one row and two alone, with what an earlier one left, which timed all, begins as that one did, on a machine that
 * has become slower, too: what it knows is that many times as much. */
static void test_adaptive__what_earlier_jobs_timed_stands_in_for_what_a_job_has_no_time_for(void **state)
{
    static const double slower[] = {1, 3, 0.2};

    (void)state;
    for (int m = 0; m < MACHINES; m++)
        for (int s = 0; s < 3 && !machines[m].cold; s++) {
            struct adaptive_times times = {{0}};
            struct job whole, part;

            begin(&whole, &machines[m], 4);
            assert_int_equal(adaptive_work_leave(&whole.adaptive.work, &times), 1);
            for (int i = 0; i < ADAPTIVE_KNOTS; i++)
                times.us[i] *= slower[s];
            begin_after(&part, &machines[m], 4, 2, &times, NULL);
            for (int rows = 1; rows <= 20; rows++)
                assert_true(fabs(adaptive_work_us(&part.adaptive.work, rows, 0) / adaptive_work_us(&whole.adaptive.work, rows, 0) - 1) < 1e-9);
            assert_int_equal(part.length, whole.length);
        }
}

/* Jobs of so many rounds, one after the other: what they give in all. */
struct row_of_jobs {
    double us, tokens;
    int drafted; /* rounds with drafts */
};

static void take_jobs(struct row_of_jobs *row, const struct machine *machine, int sequences, int jobs, int rounds, struct adaptive_past *past)
{
    for (int j = 0; j < jobs; j++) {
        struct job job;

        begin_after(&job, machine, sequences, ADAPTIVE_KNOTS, NULL, past);
        job.dice = (uint64_t)j;
        while (job.round < rounds)
            take_round(&job);
        adaptive_leave(&job.adaptive, past);
        row->us += job.us;
        row->tokens += job.tokens;
        row->drafted += job.drafted;
    }
}

/* As in one long job the first rounds are soon no matter. */
static void test_adaptive__short_jobs_in_a_row_are_as_fast_as_one_that_is_long(void **state)
{
    static const int sequences[] = {1, 4};
    int failed = 0;

    (void)state;
    for (int m = 0; m < MACHINES; m++)
        for (int s = 0; s < 2 && machines[m].slow == 0 && machines[m].robbed == 0 && !machines[m].cold; s++) {
            struct adaptive_past past = {0};
            struct row_of_jobs row = {0};
            double fast;

            take_jobs(&row, &machines[m], sequences[s], 40, 50, &past);
            fast = row.tokens / row.us;
            if (fast < 0.84 * (machines[m].by_chance ? CHANCE : 1) * best_rate(&machines[m], sequences[s]) ||
                fast < 0.96 * rate(&machines[m], sequences[s], 0)) {
                failed = 1;
                print_error("%s, %d sequences: %.3f of the best, %.3f of none; %d with drafts\n", machines[m].name, sequences[s],
                            fast / best_rate(&machines[m], sequences[s]), fast / rate(&machines[m], sequences[s], 0), row.drafted);
            }
        }
    assert_false(failed);
}

/* Where drafts do not pay, many short jobs ask for as few as a long one; and what one job saw of its text does not keep the next ones from drafting
 * for theirs. */
static void test_adaptive__a_rest_goes_on_in_the_next_job_and_ends_there(void **state)
{
    struct machine machine = *machine_of("AVX-512, drafts fall");
    struct adaptive_past past = {0};
    struct row_of_jobs row = {0}, falls = {0};

    (void)state;
    take_jobs(&row, machine_of("drafts as slow as tokens"), 1, 200, 100, &past);
    assert_in_range(row.drafted, 16, 300);
    past = (struct adaptive_past){0};
    take_jobs(&row, machine_of("drafts that take seconds"), 1, 1, 20, &past);
    assert_true(past.rest_us >= 64 * 4 * 2.1e6 && past.rest_us <= 64 * 4 * 2.4e6); /* a probe of four rounds is a 64th of the time */
    past = (struct adaptive_past){0};
    take_jobs(&falls, &machine, 1, 4, 50, &past);
    assert_true(past.rest_us > 0);
    machine.alpha = 0.9;
    row = (struct row_of_jobs){0};
    take_jobs(&row, &machine, 1, 120, 50, &past);
    assert_true(row.drafted > 20 * 50);
    assert_true(past.rest_us == 0);
}

/* Where drafting went on as a job ended the next one drafts, too, by however little it pays. */
static void test_adaptive__drafting_goes_on_in_the_next_job(void **state)
{
    struct adaptive_past past = {0};
    struct row_of_jobs row = {0};

    (void)state;
    take_jobs(&row, machine_of("drafts that give a little"), 1, 4, 100, &past);
    row = (struct row_of_jobs){0};
    take_jobs(&row, machine_of("drafts that give a little"), 1, 40, 50, &past);
    assert_int_equal(past.rests, 0);
    assert_true(row.drafted > 40 * 50 / 2);
}

/* Of what is timed anew the newest counts, the rest is kept as it was beside one row; and no step takes less than one of fewer rows. */
static void test_adaptive__what_is_left_is_the_newest_of_each_number_of_rows(void **state)
{
    struct adaptive_work work = {0}, next = {0};
    struct adaptive_times times = {{0}}, wrong = {{[0] = 100, [1] = 120, [3] = 90, [7] = 400}};

    (void)state;
    assert_int_equal(adaptive_work_leave(&work, &times), 0);
    adaptive_work_add_step(&work, 1, 100);
    adaptive_work_add_step(&work, 1, 130);
    adaptive_work_add_step(&work, 4, 200);
    assert_int_equal(adaptive_work_leave(&work, &times), 1);
    assert_true(times.us[0] == 100 && times.us[1] == 0 && times.us[3] == 200);
    adaptive_work_add_step(&next, 1, 150);
    adaptive_work_add_step(&next, 2, 180);
    assert_int_equal(adaptive_work_leave(&next, &times), 1);
    assert_true(times.us[0] == 150 && times.us[1] == 180 && times.us[3] == 300);
    adaptive_work_recall(&next, &wrong);
    assert_true(next.shape[0] == 150 && next.shape[1] == 180 && next.shape[3] == 0 && next.shape[7] == 600);
}

/* Time stolen from the step of one row counts no longer when more rows took less; nor does it when it is the only one that both jobs timed. */
static void test_adaptive__one_slow_step_spoils_nothing_that_is_remembered(void **state)
{
    struct adaptive_work first = {0}, next = {0};
    struct adaptive_times times = {{0}};

    (void)state;
    adaptive_work_add_step(&first, 1, 100);
    adaptive_work_add_step(&first, 2, 120);
    adaptive_work_add_step(&first, 8, 300);
    assert_int_equal(adaptive_work_leave(&first, &times), 1);
    adaptive_work_add_step(&next, 1, 1200);
    adaptive_work_add_step(&next, 2, 120);
    adaptive_work_recall(&next, &times);
    assert_true(adaptive_work_us(&next, 1, 0) == 120 && adaptive_work_us(&next, 8, 0) == 300);
    assert_int_equal(adaptive_work_leave(&next, &times), 1);
    assert_true(times.us[0] == 120 && times.us[1] == 120 && times.us[7] == 300);
    next = (struct adaptive_work){0};
    adaptive_work_add_step(&next, 1, 240);
    adaptive_work_add_step(&next, 2, 130);
    adaptive_work_recall(&next, &times); /* the smaller of 130 / 120 twice */
    assert_true(fabs(adaptive_work_us(&next, 8, 0) - 325) < 1e-9);
}

/* With four sequences there twice the rows take twice the time, and a round of K drafts gives less than K + 1 times the tokens. */
static void test_adaptive__no_drafter_is_asked_where_the_warm_up_says_that_no_draft_can_pay(void **state)
{
    struct job job;

    (void)state;
    begin(&job, machine_of("AVX2, drafts are accepted"), 4);
    while (job.round < 1000)
        take_round(&job);
    assert_int_equal(job.drafted, 0);
}

static void test_adaptive__asks_ever_more_rarely_where_drafts_do_not_pay_but_does_not_give_up(void **state)
{
    struct job job;
    int early, late;

    (void)state;
    begin(&job, machine_of("drafts as slow as tokens"), 1);
    while (job.round < 2000)
        take_round(&job);
    early = job.drafted;
    while (job.round < 20000)
        take_round(&job);
    late = job.drafted - early;
    assert_in_range(early, 8, 60);
    assert_in_range(late, 1, 4 * early);
    assert_true(job.last > 2000);
}

/* Text that is hard to draft for, then easy text. */
static void test_adaptive__drafts_again_when_they_come_to_pay(void **state)
{
    struct machine machine = *machine_of("AVX-512, drafts fall");
    struct job job;

    (void)state;
    begin(&job, &machine, 1);
    while (job.round < 200)
        take_round(&job);
    assert_int_equal(job.length, 0);
    machine.alpha = 0.9;
    while (job.round < 6000)
        take_round(&job);
    assert_true(job.length > 1);
}

/* Virtual cores shared a real one for a while. Where drafters have no cores of their own that does not pass, and is not tried again soon. */
static void test_adaptive__what_slows_drafted_rounds_may_be_over_soon(void **state)
{
    (void)state;
    for (int shares = 0; shares < 2; shares++) {
        struct machine machine = *machine_of("AVX-512, usual");
        struct job job;
        int drafted;

        begin(&job, &machine, 1);
        job.adaptive.shares_cores = shares;
        machine.burden = 2.5;
        while (job.round < 150)
            take_round(&job);
        assert_int_equal(job.length, 0);
        machine.burden = 0;
        while (job.round < 500)
            take_round(&job);
        drafted = job.drafted;
        while (job.round < 600)
            take_round(&job);
        if (shares)
            assert_int_equal(job.drafted, drafted);
        else
            assert_in_range(job.drafted - drafted, 90, 100);
    }
}

/* Drafts pay at first, for the verifiers are slow without them; then they no longer do, and nothing about the drafts says so. */
static void test_adaptive__what_there_would_be_without_drafts_is_looked_at(void **state)
{
    struct machine machine = *machine_of("AVX2, usual");
    struct job job;

    (void)state;
    machine.token = 130;
    machine.plain_slow = 40;
    begin(&job, &machine, 1);
    while (job.round < 40)
        take_round(&job);
    assert_true(job.length > 0);
    while (job.round < 100)
        take_round(&job);
    assert_int_equal(job.length, 0);
    assert_in_range(job.last, 40, 99);
}

/* Every round drafts in a job that is told to, and what that costs is seen. */
static void draft_always(struct job *job, const char *name, int sequences, int length)
{
    begin(job, machine_of(name), sequences);
    while (job->round < 200) {
        job->length = length;
        take_round(job);
    }
}

static void test_adaptive__drafts_that_were_asked_for_and_cost_time_are_told_of(void **state)
{
    struct job job;
    double with, without;

    (void)state;
    draft_always(&job, "AVX2, usual", 4, 4);
    assert_true(adaptive_drafts_cost(&job.adaptive, &with, &without));
    assert_true(fabs(with / (1e6 * job.tokens / job.us) - 1) < 0.05);
    assert_true(fabs(without / (1e6 * rate(job.machine, 4, 0)) - 1) < 0.1);
    draft_always(&job, "AVX-512, usual", 1, 3);
    assert_false(adaptive_drafts_cost(&job.adaptive, &with, &without));
}

static void test_adaptive__the_wait_for_a_drafter_that_reads_first_is_not_the_usual_one(void **state)
{
    struct job job;

    (void)state;
    begin(&job, machine_of("AVX-512, usual"), 1);
    while (job.round < 50)
        take_round(&job);
    assert_true(job.length > 0);
    double before = adaptive_rate(&job.adaptive, 1, job.length);
    struct adaptive_round reads = {.sequences = 1, .rows = job.length + 1, .longest = job.length, .tokens = 2, .caught_up = 1};

    reads.work_us = work_us(job.machine, 1, job.length, 1);
    reads.wait_us = 1000 * answer_us(job.machine, job.length);
    adaptive_add_round(&job.adaptive, &reads);
    assert_true(fabs(adaptive_rate(&job.adaptive, 1, job.length) / before - 1) < 0.01);
}

/* A length that was asked for may be longer than any that is chosen. */
static void test_adaptive__the_wait_for_more_drafts_than_it_chooses_is_measured_too(void **state)
{
    enum { LONGER = 2 * ADAPTIVE_MOST };
    const struct adaptive_round round = {
        .sequences = 1, .rows = LONGER + 1, .longest = LONGER, .tokens = 1, .work_us = 900, .wait_us = 100 * LONGER};
    struct adaptive adaptive = {0};
    struct adaptive_terms terms;

    (void)state;
    adaptive_work_add_step(&adaptive.work, 1, 300);
    adaptive_work_add_step(&adaptive.work, 2, 320);
    for (int i = 0; i < 20; i++)
        adaptive_add_round(&adaptive, &round);
    assert_int_equal(adaptive_explain(&adaptive, 1, LONGER, &terms), 1);
    assert_true(terms.waited);
    assert_true(fabs(terms.c * 300 / 100 - 1) < 0.2); /* the time of a round without drafts follows the others a little */
    assert_true(fabs(terms.speedup * (terms.v + LONGER * terms.c) / adaptive_expected_tokens(0.7, LONGER) - 1) < 1e-9); /* none was judged */
}

/* Of a tree all of it was judged, and what its size gave is known of that size; of sizes that were not tried what began goes on. */
static void test_adaptive__a_tree_gives_what_trees_of_its_size_gave(void **state)
{
    struct adaptive_tokens tokens = {.is_tree = 1}, other = tokens, again = tokens;

    (void)state;
    for (int size = 1; size <= ADAPTIVE_MOST; size++) {
        int drafts = adaptive_tokens_drafts(&tokens, size);

        assert_int_equal(adaptive_tokens_size(&tokens, drafts), size);
        assert_int_equal(adaptive_tokens_size(&tokens, drafts + 1), drafts < 4 ? size + 1 : size);
        assert_true(adaptive_tokens_expected(&tokens, size) > adaptive_tokens_expected(&tokens, size - 1));
    }
    assert_true(adaptive_tokens_size(&tokens, 0) == 0 && adaptive_tokens_drafts(&tokens, 0) == 0 && adaptive_tokens_expected(&tokens, 0) == 1);
    assert_false(adaptive_tokens_known(&tokens));
    for (int i = 0; i < 200; i++)
        adaptive_tokens_add(&tokens, 13, i % 2 == 0 ? 3 : 4); /* counts as a tree of 12 */
    assert_true(adaptive_tokens_known(&tokens));
    assert_true(fabs(adaptive_tokens_expected(&tokens, adaptive_tokens_size(&tokens, 12)) - 4.5) < 0.1);
    assert_true(adaptive_tokens_expected(&tokens, ADAPTIVE_MOST) > 4.6);
    for (int i = 0; i < 200; i++)
        adaptive_tokens_add(&other, 12, 0); /* then fewer nodes give nothing either */
    for (int size = 1; size <= ADAPTIVE_MOST; size++)
        assert_true(adaptive_tokens_expected(&other, size) >= adaptive_tokens_expected(&other, size - 1));
    assert_true(adaptive_tokens_expected(&other, 1) < 1.4);
    adaptive_tokens_recall(&again, &tokens, 32);
    assert_true(again.tested[adaptive_tokens_size(&tokens, 12) - 1] == 32);
    assert_true(adaptive_tokens_expected(&again, 7) > 4 && adaptive_tokens_expected(&again, 7) < adaptive_tokens_expected(&tokens, 7));
    tokens.accepted[6] = 1e9; /* as a damaged file may have it */
    adaptive_tokens_recall(&again, &tokens, 32);
    assert_true(adaptive_tokens_expected(&again, 7) <= 13);
}

/* Of a proposal what comes behind the first draft that falls was not judged, and says nothing. */
static void test_adaptive__drafts_behind_the_first_that_falls_count_nowhere(void **state)
{
    struct adaptive adaptive = {0}, same = {0};

    (void)state;
    adaptive_add_verdict(&adaptive, 8, 2);
    adaptive_add_verdict(&same, 3, 2);
    assert_memory_equal(&adaptive, &same, sizeof adaptive);
}

static void test_adaptive__warm_up_rows_are_those_of_few_drafts(void **state)
{
    static const int rows[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};

    (void)state;
    for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++)
        assert_int_equal(adaptive_work_warm_up_rows(i), rows[i]);
}

static void test_adaptive__expected_tokens_is_equation_1(void **state)
{
    (void)state;
    for (double alpha = 0.1; alpha < 0.95; alpha += 0.1)
        for (int k = 0; k < 8; k++)
            assert_true(fabs(adaptive_expected_tokens(alpha, k) - (1 - pow(alpha, k + 1)) / (1 - alpha)) < 1e-12);
}

static void test_adaptive__the_next_length_is_two_more_or_one_fewer(void **state)
{
    (void)state;
    assert_int_equal(adaptive_next(5, 5, 5), 7);
    assert_int_equal(adaptive_next(5, 5, 4), 4);
    assert_int_equal(adaptive_next(5, 5, 0), 4);
    assert_int_equal(adaptive_next(5, 3, 3), 7); /* fewer were wanted: the text ends */
    assert_int_equal(adaptive_next(5, 0, 0), 5); /* none came */
    assert_int_equal(adaptive_next(1, 1, 0), 1);
    assert_int_equal(adaptive_next(ADAPTIVE_MOST - 1, 9, 9), ADAPTIVE_MOST);
    assert_int_equal(adaptive_next(ADAPTIVE_MOST, 9, 9), ADAPTIVE_MOST);
}

/* Steps of 100 us and 20 for each row, drafts that are waited for 10 us each: one more draft of each sequence takes 20 us and its share of 10, in
 * which the job decodes what it has decoded so far in such a time. */
static void test_adaptive__the_price_of_a_row_is_what_the_job_decodes_in_its_time(void **state)
{
    static const int sequences[] = {1, 4}, lengths[] = {1, 3};

    (void)state;
    for (size_t s = 0; s < 2; s++)
        for (size_t l = 0; l < 2; l++) {
            int many = sequences[s], length = lengths[l], rows = many * (length + 1), tokens = many * 2;
            double us = 100 + 20 * rows + 10 * length, expected = (20 + 10.0 / many) * tokens / us, found;
            struct adaptive adaptive = {0};

            for (int i = 0; adaptive_work_warm_up_rows(i) <= 32; i++)
                adaptive_work_add_step(&adaptive.work, adaptive_work_warm_up_rows(i), 100 + 20 * adaptive_work_warm_up_rows(i));
            assert_true(adaptive_price(&adaptive, many) == 0);
            for (int round = 0; round < 200; round++) {
                int now = round % 3 == 0 ? length + 1 : length; /* so that the wait for one more is known */

                adaptive_add_round(&adaptive, &(struct adaptive_round){.sequences = many,
                                                                       .rows = many * (now + 1),
                                                                       .longest = now,
                                                                       .tokens = tokens,
                                                                       .work_us = 100 + 20 * many * (now + 1),
                                                                       .wait_us = 10 * now});
            }
            found = adaptive_price(&adaptive, many);
            if (!(fabs(found - expected) <= 0.15 * expected))
                fail_msg("%d sequences of %d drafts: %g, expected %g", many, length, found, expected);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adaptive__the_next_length_is_two_more_or_one_fewer),
        cmocka_unit_test(test_adaptive__what_earlier_jobs_timed_stands_in_for_what_a_job_has_no_time_for),
        cmocka_unit_test(test_adaptive__short_jobs_in_a_row_are_as_fast_as_one_that_is_long),
        cmocka_unit_test(test_adaptive__a_rest_goes_on_in_the_next_job_and_ends_there),
        cmocka_unit_test(test_adaptive__drafting_goes_on_in_the_next_job),
        cmocka_unit_test(test_adaptive__what_is_left_is_the_newest_of_each_number_of_rows),
        cmocka_unit_test(test_adaptive__one_slow_step_spoils_nothing_that_is_remembered),
        cmocka_unit_test(test_adaptive__no_drafter_is_asked_where_the_warm_up_says_that_no_draft_can_pay),
        cmocka_unit_test(test_adaptive__asks_ever_more_rarely_where_drafts_do_not_pay_but_does_not_give_up),
        cmocka_unit_test(test_adaptive__drafts_again_when_they_come_to_pay),
        cmocka_unit_test(test_adaptive__what_slows_drafted_rounds_may_be_over_soon),
        cmocka_unit_test(test_adaptive__what_there_would_be_without_drafts_is_looked_at),
        cmocka_unit_test(test_adaptive__drafts_that_were_asked_for_and_cost_time_are_told_of),
        cmocka_unit_test(test_adaptive__the_wait_for_a_drafter_that_reads_first_is_not_the_usual_one),
        cmocka_unit_test(test_adaptive__the_wait_for_more_drafts_than_it_chooses_is_measured_too),
        cmocka_unit_test(test_adaptive__drafts_behind_the_first_that_falls_count_nowhere),
        cmocka_unit_test(test_adaptive__a_tree_gives_what_trees_of_its_size_gave),
        cmocka_unit_test(test_adaptive__warm_up_rows_are_those_of_few_drafts),
        cmocka_unit_test(test_adaptive__expected_tokens_is_equation_1),
        cmocka_unit_test(test_adaptive__a_job_is_nearly_as_fast_as_with_the_best_fixed_length),
        cmocka_unit_test(test_adaptive__the_price_of_a_row_is_what_the_job_decodes_in_its_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
