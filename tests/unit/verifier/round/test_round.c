/* The lead's and the drafter's own loops in one process, over a loop channel, with the embedded pair. The test takes turns with them:
 * the lead admits, the drafter takes its messages and drafts, the lead verifies and commits. With a deadline of nothing the lead
 * waits for nobody, so what a schedule of faults lets through is all that counts, and no clock does. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/progress.h"
#include "tests/support/pair.h"
#include "verifier/job/audience.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* needs those above */

enum { SLOTS = 2, PROMPTS = 4, LENGTH = 4 };
enum { SCHEDULES = 27, SHORT = 24, LONG = 900 };
/* Each of the schedules and widths, or, with sanitizers, every so manieth: they make a round cost thirty times as much. */
#ifdef ROUND_SANITIZED
enum { EVERY = 4, LEAST_SLOTS = SLOTS };
#else
enum { EVERY = 1, LEAST_SLOTS = 1 };
#endif

static struct pair pair;
static struct draft lookup, *drafting = &pair.draft;
static int64_t now;

/* Allocations since the count was last set to zero. */
static volatile int allocations; /* the compiler knows malloc, and that it changes no variable of ours */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *old);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *old);

void *__wrap_malloc(size_t size)
{
    allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    allocations++;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    allocations++;
    return __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    allocations++;
    return __real_aligned_alloc(alignment, size);
}

void __wrap_free(void *old)
{
    allocations += old != NULL;
    __real_free(old);
}

/* One run: requests, and what they came to. */
struct run {
    struct options options;
    struct request_list requests;
    struct output output;
    struct show show;
    struct audience audience;
    struct engine engine;
};

static const char *const short_prompts[PROMPTS] = {"It is a truth universally acknowledged", "Call me", "The whale", "My lords, I"};
static const char *const *prompts = short_prompts;

static int run_ahead = 1;

static void open_run(struct run *run, enum accept_mode accept, double temperature, int tokens, const struct loop_faults *faults, int with_drafter)
{
    memset(run, 0, sizeof *run);
    run->options = (struct options){.request.sampling = sampling_default,
                                    .request.max_tokens = tokens,
                                    .rounds.draft_length = LENGTH,
                                    .request.ignore_eos = 1,
                                    .rounds.max_sequences = SLOTS};
    run->options.request.sampling.accept = accept;
    run->options.request.sampling.temperature = temperature;
    run->options.request.sampling.top_p = temperature > 0 ? 0.95 : 1.0;
    run->options.request.sampling.repetition_penalty = prompts == short_prompts ? 1.0 : 1.3;
    const struct request_terms terms = pair_terms(&pair, &run->options);
    for (int i = 0; i < PROMPTS; i++)
        assert_int_equal(request_add_text(&run->requests, &terms, prompts[i], strlen(prompts[i])), STATUS_OK);
    assert_int_equal(output_open(&run->output, NULL, 0, 0), STATUS_OK);
    audience_init(&run->audience, &run->output, &run->show, NULL);
    pair.team[0].shard.hash = 0;
    struct engine_terms engine = pair_engine(&pair, &run->requests, &run->audience.watch, with_drafter);

    engine.draft[0].draft = drafting;
    engine.faults = faults;
    engine.slots = SLOTS;
    engine.run_ahead = run_ahead;
    engine.hash_logits = 1;
    engine.deadline_ms = 0;
    engine.patient = 0;
    assert_int_equal(engine_open(&run->engine, &engine), STATUS_OK);
}

static void close_run(struct run *run)
{
    engine_close(&run->engine);
    assert_int_equal(output_close(&run->output), STATUS_OK);
    request_release(&run->requests);
}

/* One round. Returns whether there was one. */
static int take_round(struct run *run)
{
    now += 100 * 1000;
    assert_int_equal(engine_begin(&run->engine), STATUS_OK);
    if (run->engine.lead.slots.actives == 0)
        return 0;
    now += 100 * 1000;
    assert_int_equal(lead_round(&run->engine.lead), STATUS_OK);
    return 1;
}

/* What a finished run was, by its target's logits at every committed position: equal exactly when the outputs are. */
static uint64_t hash_of(struct run *run)
{
    while (take_round(run))
        continue;
    assert_int_equal(run->engine.lead.figures.tokens, 4 * (run->options.request.max_tokens));
    return pair.team[0].shard.hash;
}

static uint64_t run_solo(enum accept_mode accept, double temperature)
{
    struct run run;
    uint64_t hash;

    open_run(&run, accept, temperature, SHORT, NULL, 0);
    hash = hash_of(&run);
    close_run(&run);
    return hash;
}

static int open_models(void **state)
{
    (void)state;
    log_init("test_round", LOG_ERROR);
    clock_pretend(&now);
    pair_open(&pair, 1, "draft");
    assert_int_equal(draft_open_lookup(&lookup, &(struct options_draft){.min = 1, .max = 3}, SLOTS, pair.draft_model->shape.context), STATUS_OK);
    return 0;
}

static int close_models(void **state)
{
    (void)state;
    draft_close(&lookup);
    pair_close(&pair);
    return 0;
}

/* Biases, bad words and held-back ends for all requests but the first. */
static void ask_of_tokens(struct run *run)
{
    static struct bias bias;

    bias_init(&bias);
    bias_add_token(&bias, 300, 2.5);
    bias.words = 1;
    bias.length[0] = 2;
    bias.word[0][0] = 301;
    bias.word[0][1] = 302;
    for (int i = 1; i < run->requests.count; i++) {
        run->requests.request[i].bias = &bias;
        run->requests.request[i].min_tokens = LONG;
        run->requests.request[i].ignore_eos = 0;
    }
}

static void assert_allocates_nothing(enum accept_mode accept, double temperature)
{
    struct run run;

    open_run(&run, accept, temperature, LONG, NULL, 1);
    ask_of_tokens(&run);
    for (int i = 0; i < 20; i++)
        assert_true(take_round(&run));
    allocations = 0;
    for (int i = 0; i < 100; i++)
        (void)take_round(&run);
    assert_int_equal(allocations, 0);
    assert_int_equal(run.engine.lead.slots.actives, SLOTS); /* all of them rounds of sequences in the middle */
    assert_true(run.engine.lead.figures.accepted > 0);
    close_run(&run);
}

static void test_round__allocates_nothing(void **state)
{
    (void)state;
    allocations = 0;
    void *volatile some = malloc(1);
    free(some);
    assert_int_equal(allocations, 2); /* they are counted at all */
    assert_allocates_nothing(ACCEPT_REJECTION, 0.0);
    assert_allocates_nothing(ACCEPT_REJECTION, 0.8);
    assert_allocates_nothing(ACCEPT_COUPLED, 0.8);
    drafting = &lookup;
    run_ahead = 0; /* how many of its messages are on their way at once, for which the loop has records, comes to its peak late */
    assert_allocates_nothing(ACCEPT_REJECTION, 0.8);
    run_ahead = 1;
    drafting = &pair.draft;
}

/* A check believes nothing of rounds that were not drafted for, so both are counted: here by a drafter that answers, and by one that hears
 * nothing. */
static void test_round__rounds_that_ask_and_rounds_that_are_answered_are_counted(void **state)
{
    (void)state;
    for (int answers = 0; answers < 2; answers++) {
        struct run run;
        int64_t asked, answered;

        open_run(&run, ACCEPT_REJECTION, 0.8, SHORT, NULL, 1);
        run.engine.is_there[0] = answers; /* else it has no turn */
        (void)hash_of(&run);
        run.engine.is_there[0] = 1;
        asked = run.engine.lead.figures.asked_rounds;
        answered = run.engine.lead.figures.answered_rounds;
        assert_true(asked >= (answers ? 4 : 4 * (SHORT - 1))); /* all but the last of a sequence, whose token needs no draft */
        assert_true(answers ? answered >= asked - 2 * 4 && answered <= asked : answered == 0);
        assert_true(asked - answered >= run.engine.lead.figures.fallback_rounds);
        close_run(&run);
    }
}

/* As `--compare` and the sweep do: pass after pass with the same drafters. The figures of each are its own. */
static void test_round__each_pass_has_its_own_figures(void **state)
{
    int64_t answers[2], rounds[2], ahead[2];
    struct run run;

    (void)state;
    open_run(&run, ACCEPT_REJECTION, 0.0, SHORT, NULL, 1);
    for (int pass = 0; pass < 2; pass++) {
        struct lead *lead = &run.engine.lead;
        struct lead next = {.team = lead->team,
                            .verify = lead->verify,
                            .peers = lead->peers,
                            .watch = lead->watch,
                            .tokenizer = lead->tokenizer,
                            .queue.requests = lead->queue.requests,
                            .slots.count = lead->slots.count,
                            .prefill_chunk = lead->prefill_chunk};

        (void)hash_of(&run);
        answers[pass] = run.engine.peers.draft.count;
        rounds[pass] = lead->figures.rounds;
        ahead[pass] = run.engine.peers.ahead.all.rounds;
        lead_close(lead);
        *lead = next;
        assert_int_equal(lead_open(lead), STATUS_OK);
    }
    for (int pass = 0; pass < 2; pass++) { /* a sequence's first round has none, and most others have one */
        assert_in_range(answers[pass], rounds[pass] / 2 + 1, rounds[pass] - PROMPTS);
        assert_in_range(ahead[pass], 1, rounds[pass] - PROMPTS);
    }
    close_run(&run);
}

static void assert_faults_cost_only_speed(enum accept_mode accept, double temperature, int schedules)
{
    uint64_t solo = run_solo(accept, temperature);
    int64_t accepted = 0, refused = 0, stale = 0, fallbacks = 0;

    for (int i = 0; i < schedules; i += EVERY) {
        /* Faults alone and together, rare and frequent, by the digits of i. tests/simulation has the many schedules, on a toy pair. */
        const double rate[] = {0.0, 0.03, 0.3};
        const struct loop_faults faults = {.seed = (uint64_t)i,
                                           .lose = rate[i % 3],
                                           .repeat = rate[i / 3 % 3],
                                           .reorder = rate[i / 9 % 3],
                                           .corrupt = rate[i / 3 % 3],
                                           .delay_us = i / 9 * 250};
        struct run run;

        open_run(&run, accept, temperature, SHORT, &faults, 1);
        assert_int_equal(hash_of(&run), solo);
        accepted += run.engine.lead.figures.accepted;
        refused += run.engine.peers.refused + run.engine.drafter[0].refused;
        stale += run.engine.peers.stale;
        fallbacks += run.engine.lead.figures.fallback_rounds;
        close_run(&run);
    }
    /* The faults happened, and drafting went on between them. */
    assert_true(accepted > 0 && refused > 0 && stale > 0 && fallbacks > 0);
}

static void test_round__faults_of_the_wire_cost_only_speed(void **state)
{
    (void)state;
    assert_faults_cost_only_speed(ACCEPT_COUPLED, 0.8, SCHEDULES);
    assert_faults_cost_only_speed(ACCEPT_REJECTION, 0.0, SCHEDULES);
    drafting = &lookup;
    assert_faults_cost_only_speed(ACCEPT_COUPLED, 0.8, SCHEDULES);
    assert_faults_cost_only_speed(ACCEPT_REJECTION, 0.0, SCHEDULES);
    drafting = &pair.draft;
}

/* A drafter that has nothing says so, and the lead goes on at once: no fallback, and nobody is lost. */
static void test_round__a_proposal_of_nothing_is_an_answer(void **state)
{
    struct run run;

    (void)state;
    drafting = &lookup;
    open_run(&run, ACCEPT_REJECTION, 0.0, SHORT, NULL, 1);
    while (take_round(&run))
        continue;
    assert_true(run.engine.lead.figures.empty_rounds > 0 && run.engine.lead.figures.drafted > 0);
    assert_int_equal(run.engine.lead.figures.fallback_rounds, 0);
    assert_int_equal(run.engine.peers.peer[0].losses + run.engine.peers.peer[0].misses, 0);
    assert_int_equal(run.engine.peers.stale, 0);
    close_run(&run);
    drafting = &pair.draft;
}

static uint64_t run_seeded(uint64_t seed)
{
    struct run run;
    uint64_t hash;

    open_run(&run, ACCEPT_REJECTION, 0.8, SHORT, NULL, 0);
    for (int i = 0; i < run.requests.count; i++)
        run.requests.request[i].sampling.seed = seed;
    hash = hash_of(&run);
    close_run(&run);
    return hash;
}

static void test_round__a_seed_decides_the_draws(void **state)
{
    (void)state;
    assert_true(run_seeded(1) == run_seeded(1));
    assert_true(run_seeded(1) != run_seeded(2));
    assert_true(run_seeded(1) != run_seeded(UINT64_C(1) << 32 | 1));
}

/* Runs until a text holds the letter. Returns how many drafts that stood were cut off. */
static int64_t cut_at(char letter)
{
    char text[] = {letter, 0}, *stop = text, **own[4] = {0};
    int64_t accepted = 0, cut = 0;
    struct run run;

    open_run(&run, ACCEPT_REJECTION, 0.0, SHORT, NULL, 1);
    for (int i = 0; i < run.requests.count; i++) {
        own[i] = run.requests.request[i].stop;
        run.requests.request[i].stop = &stop;
        run.requests.request[i].stops = 1;
    }
    while (take_round(&run))
        for (int i = 0; i < run.engine.lead.slots.readies; i++) {
            int kept = run.engine.lead.slots.kept[i], all = run.engine.lead.slots.outcome[i].accepted;

            accepted += kept < all ? kept : all;
            cut += kept < all ? all - kept : 0;
        }
    assert_int_equal(run.engine.lead.figures.accepted, accepted);
    for (int i = 0; i < run.requests.count; i++) {
        run.requests.request[i].stop = own[i];
        run.requests.request[i].stops = 0;
    }
    close_run(&run);
    return cut;
}

static void test_round__drafts_behind_the_end_are_not_counted(void **state)
{
    int64_t cut = 0;

    (void)state;
    for (char letter = 'a'; letter <= 'z'; letter++)
        cut += cut_at(letter);
    assert_true(cut > 0);
}

/* Texts of some 300 tokens, of which the first 250 or so are the same; and a short one. */
static char long_text[PROMPTS][2000];

static void write_long_prompts(const char **to)
{
    static const char *const ends[PROMPTS] = {"The first of them said", "Nobody who was there", "A second one", "Then the king"};

    for (int i = 0; i < PROMPTS; i++) {
        size_t used = 0;

        for (int line = 0; line < 18; line++)
            used += (size_t)snprintf(long_text[i] + used, sizeof long_text[i] - used,
                                     "In the year %d the sea was high and the ship went down. ", 1700 + line * 7);
        snprintf(long_text[i] + used, sizeof long_text[i] - used, "%s", ends[i]);
        to[i] = long_text[i];
    }
}

static int64_t tokens_to_read(const struct run *run)
{
    int64_t all = 0;

    for (int i = 0; i < PROMPTS; i++)
        all += run->requests.request[i].prompt_count - 1;
    return all;
}

/* Every prompt alone, and nothing kept of the one before. */
static uint64_t hash_of_each(enum accept_mode accept, double temperature)
{
    struct run run;
    uint64_t hash;

    open_run(&run, accept, temperature, SHORT, NULL, 0);
    run.engine.lead.slots.count = run.engine.lead.reading.slots = 1;
    do
        run.engine.lead.slots.sequence[0].cached = run.engine.lead.slots.sequence[0].request == NULL ? 0 : run.engine.lead.slots.sequence[0].cached;
    while (take_round(&run));
    assert_int_equal(run.engine.lead.reading.reused, 0);
    assert_int_equal(run.engine.lead.reading.read, tokens_to_read(&run));
    hash = pair.team[0].shard.hash;
    close_run(&run);
    return hash;
}

/* What runs before left in the target's cache and history would do for what is not copied. */
static void forget_all(void)
{
    memset(pair.team[0].shard.cache.layer[0].keys, 0,
           (size_t)((char *)pair.team[0].shard.cache.layer[1].keys - (char *)pair.team[0].shard.cache.layer[0].keys));
    memset(pair.team[0].shard.history, 0, (size_t)PAIR_SLOTS * (size_t)pair.target[0]->shape.context * sizeof *pair.team[0].shard.history);
}

static void assert_shared(enum accept_mode accept, double temperature, int with_drafter, int slots)
{
    uint64_t each = hash_of_each(accept, temperature);
    struct run run;

    forget_all();
    open_run(&run, accept, temperature, SHORT, NULL, with_drafter);
    run.engine.lead.slots.count = run.engine.lead.reading.slots = slots;
    assert_int_equal(hash_of(&run), each);
    assert_int_equal(run.engine.lead.reading.read + run.engine.lead.reading.reused, tokens_to_read(&run));
    assert_in_range(run.engine.lead.reading.read, tokens_to_read(&run) / PROMPTS,
                    tokens_to_read(&run) / PROMPTS + 40); /* once, and what is each one's own */
    assert_int_equal(run.engine.lead.figures.accepted > 0, with_drafter);
    if (with_drafter)
        assert_true(slots == 1 || run.engine.drafter[0].reused > 200);
    close_run(&run);
}

static void test_round__prompts_that_begin_alike_are_read_once(void **state)
{
    const char *texts[PROMPTS];

    (void)state;
    write_long_prompts(texts);
    prompts = texts;
    for (int with_drafter = 0; with_drafter <= 1; with_drafter++)
        for (int slots = LEAST_SLOTS; slots <= SLOTS; slots++) {
            assert_shared(ACCEPT_REJECTION, 0.0, with_drafter, slots);
            assert_shared(ACCEPT_COUPLED, 0.8, with_drafter, slots);
        }
    prompts = short_prompts;
}

/* A prompt that comes while another sequence runs is read in parts, and the other one goes on. */
static void test_round__a_long_prompt_is_read_beside_what_runs(void **state)
{
    const char *texts[PROMPTS];
    struct run run;
    uint64_t each;
    int beside = 0;

    (void)state;
    write_long_prompts(texts);
    texts[0] = short_prompts[0];
    prompts = texts;
    each = hash_of_each(ACCEPT_COUPLED, 0.8);
    open_run(&run, ACCEPT_COUPLED, 0.8, SHORT, NULL, 1);
    run.engine.lead.reading.prefill.chunk = 16;
    do {
        int64_t tokens = run.engine.lead.figures.tokens;

        if (!take_round(&run))
            break;
        if (run.engine.lead.slots.sequence[1].request != NULL && !sequence_is_read(&run.engine.lead.slots.sequence[1])) {
            beside++;
            assert_true(run.engine.lead.figures.tokens > tokens);
        }
    } while (run.engine.lead.figures.tokens < SHORT);
    assert_true(beside >= 5);
    assert_int_equal(hash_of(&run), each);
    close_run(&run);
    prompts = short_prompts;
}

/* Rows are saved up where many are to come; the last ones of a prompt, fewer than that, are read as soon as they are earned. */
static void test_round__the_end_of_a_prompt_is_not_waited_for(void **state)
{
    const char *texts[PROMPTS];
    struct run run;
    struct sequence *late;

    (void)state;
    write_long_prompts(texts);
    texts[0] = short_prompts[0];
    prompts = texts;
    for (int enough = 0; enough <= 1; enough++) {
        open_run(&run, ACCEPT_COUPLED, 0.8, SHORT, NULL, 0);
        late = &run.engine.lead.slots.sequence[1];
        for (int i = 0; i < 2; i++)
            assert_true(take_round(&run));
        assert_true(sequence_is_read(&run.engine.lead.slots.sequence[0]) && late->request != NULL && !sequence_is_read(late));
        late->cached = late->length - 1 - 5;
        run.engine.lead.reading.prefill =
            (struct prefill){.runners = 1, .alone_us = 1000, .added_us = 1e9, .added_rows = 1, .credit = PREFILL_BURST - (enough ? 5.5 : 4.5)};
        assert_true(take_round(&run));
        assert_int_equal(sequence_is_read(late), enough);
        close_run(&run);
    }
    prompts = short_prompts;
}

/* A completion that is cut in its middle ends with its next token, whatever more stood in that round; the others of the queue run as ever. */
static void test_round__a_cut_completion_ends_with_its_next_token(void **state)
{
    struct run run;
    int64_t tokens;
    int cut;

    (void)state;
    open_run(&run, ACCEPT_REJECTION, 0.0, SHORT, NULL, 1);
    for (int i = 0; i < 3; i++)
        assert_true(take_round(&run));
    tokens = run.engine.lead.figures.tokens;
    assert_true(tokens >= 3);
    assert_int_equal(lead_admit(&run.engine.lead), STATUS_OK);
    cut = run.engine.lead.slots.actives;
    assert_true(cut > 0);
    lead_cut(&run.engine.lead);
    assert_true(take_round(&run));
    assert_int_equal(run.engine.lead.figures.tokens, tokens + cut);
    for (int i = 0; i < run.engine.lead.slots.count; i++)
        assert_null(run.engine.lead.slots.sequence[i].request);
    while (take_round(&run))
        continue;
    assert_int_equal(run.engine.lead.figures.tokens, tokens + cut + (4 - cut) * SHORT);
    close_run(&run);
}

/* In a chat nothing else gets done as long as nobody types. */
static void test_round__a_lead_that_rests_reports(void **state)
{
    struct run run;
    uint64_t before;

    (void)state;
    open_run(&run, ACCEPT_REJECTION, 0.0, SHORT, NULL, 0);
    before = progress_look().count;
    assert_int_equal(lead_rest(&run.engine.lead), STATUS_OK);
    assert_true(progress_look().count > before);
    assert_string_equal(progress_look().doing, "waiting for input");
    close_run(&run);
}

enum { ORDERS = 8, MOST_ORDER = 2048 };

/* Keeps what the lead of a group of two broadcasts, and gives it to the follower. */
static struct {
    unsigned char bytes[ORDERS][MOST_ORDER];
    int kept, given;
} orders;

static enum status broadcast_by_hand(struct group *group, void *bytes, size_t count)
{
    int *at = group->rank == 0 ? &orders.kept : &orders.given;

    assert_true(*at < ORDERS && count <= MOST_ORDER);
    if (group->rank == 0)
        memcpy(orders.bytes[(*at)++], bytes, count);
    else
        memcpy(bytes, orders.bytes[(*at)++], count);
    return STATUS_OK;
}

/* Also one by which nothing is computed: it came from a lead that lives. */
static void test_round__a_follower_reports_each_order(void **state)
{
    static const struct group_kind by_hand = {.name = "by hand", .broadcast = broadcast_by_hand};
    struct group group = {.rank = 0, .size = 2, .kind = &by_hand}, *own = pair.team[0].group;
    uint64_t before;

    (void)state;
    pair.team[0].group = &group;
    for (int i = 1; i < ORDERS; i++)
        assert_int_equal(team_rest(&pair.team[0]), STATUS_OK);
    assert_int_equal(team_end(&pair.team[0]), STATUS_OK);
    group.rank = 1;
    before = progress_look().count;
    assert_int_equal(team_follow(&pair.team[0]), STATUS_OK);
    assert_int_equal(orders.given, ORDERS);
    assert_true(progress_look().count - before >= ORDERS);
    pair.team[0].group = own;
}

int main(int argc, char **argv)
{
    if (EVERY > 1)
        printf("one in %d of %d schedules, %d sequences at once\n", EVERY, SCHEDULES, LEAST_SLOTS);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round__allocates_nothing),
        cmocka_unit_test(test_round__rounds_that_ask_and_rounds_that_are_answered_are_counted),
        cmocka_unit_test(test_round__each_pass_has_its_own_figures),
        cmocka_unit_test(test_round__faults_of_the_wire_cost_only_speed),
        cmocka_unit_test(test_round__a_proposal_of_nothing_is_an_answer),
        cmocka_unit_test(test_round__a_seed_decides_the_draws),
        cmocka_unit_test(test_round__drafts_behind_the_end_are_not_counted),
        cmocka_unit_test(test_round__prompts_that_begin_alike_are_read_once),
        cmocka_unit_test(test_round__a_long_prompt_is_read_beside_what_runs),
        cmocka_unit_test(test_round__the_end_of_a_prompt_is_not_waited_for),
        cmocka_unit_test(test_round__a_cut_completion_ends_with_its_next_token),
        cmocka_unit_test(test_round__a_lead_that_rests_reports),
        cmocka_unit_test(test_round__a_follower_reports_each_order),
    };

    return cmocka_run_group_tests(tests, open_models, close_models);
}
