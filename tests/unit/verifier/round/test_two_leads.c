/* Two leads in one process, each with a drafter, a team and models of its own: their turns alternate, so each waits for proposals while the
 * other goes on. Time is pretended and hardly passes, so no deadline counts. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "tests/support/pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h> /* needs those above */

enum { LEADS = 2, SLOTS = 2, PROMPTS = 3, TOKENS = 24, LENGTH = 4, TURN_NS = 1000, MANY_TURNS = 10000 };

struct side {
    struct pair pair;
    struct options options;
    struct request_list requests;
    struct lead_watch watch;
    struct engine engine;
    int32_t got[PROMPTS][TOKENS];
    int results, waits;
};

static const char *const prompts[LEADS][PROMPTS] = {{"It is a truth universally acknowledged", "Call me", "The whale"},
                                                    {"My lords, I", "The whale", "In the beginning"}};
static struct side side[LEADS];
static int64_t now;

static enum status keep_result(void *state, const struct request *request, const struct sequence *sequence)
{
    struct side *one = state;

    assert_non_null(sequence);
    assert_int_equal(sequence->length - request->prompt_count, TOKENS);
    memcpy(one->got[request->index], sequence->tokens + request->prompt_count, sizeof one->got[0]);
    one->results++;
    return STATUS_OK;
}

static int open_sides(void **state)
{
    (void)state;
    log_init("test_two_leads", LOG_ERROR);
    clock_pretend(&now);
    for (int i = 0; i < LEADS; i++)
        pair_open(&side[i].pair, 1, "draft");
    return 0;
}

static int close_sides(void **state)
{
    (void)state;
    for (int i = 0; i < LEADS; i++)
        pair_close(&side[i].pair);
    return 0;
}

static void begin(struct side *one, const char *const *texts, enum accept_mode accept, double temperature, int drafts)
{
    const struct request_terms terms = pair_terms(&one->pair, &one->options);

    one->options = (struct options){.request.sampling = sampling_default,
                                    .request.max_tokens = TOKENS,
                                    .rounds.draft_length = LENGTH,
                                    .request.ignore_eos = 1,
                                    .rounds.max_sequences = SLOTS};
    one->options.request.sampling.accept = accept;
    one->options.request.sampling.temperature = temperature;
    one->requests = (struct request_list){0};
    for (int i = 0; i < PROMPTS; i++)
        assert_int_equal(request_add_text(&one->requests, &terms, texts[i], strlen(texts[i])), STATUS_OK);
    one->watch = (struct lead_watch){.state = one, .end = keep_result};
    one->results = one->waits = 0;
    struct engine_terms engine = pair_engine(&one->pair, &one->requests, &one->watch, drafts);

    engine.slots = SLOTS;
    assert_int_equal(engine_open(&one->engine, &engine), STATUS_OK);
}

static void end(struct side *one)
{
    engine_close(&one->engine);
    request_release(&one->requests);
}

static void turn(struct side *one)
{
    int64_t wake;

    now += TURN_NS;
    assert_int_equal(engine_turn(&one->engine, now, &wake), STATUS_OK);
    assert_true(wake == 0 || wake > now);
    one->waits += wake != 0;
}

static void run_solo(int i, enum accept_mode accept, double temperature, int32_t (*got)[TOKENS])
{
    begin(&side[i], prompts[i], accept, temperature, 0);
    for (int turns = 0; !side[i].engine.lead.is_over; turns++) {
        assert_true(turns < MANY_TURNS);
        turn(&side[i]);
    }
    assert_int_equal(side[i].results, PROMPTS);
    assert_int_equal(side[i].waits, 0); /* nobody is waited for */
    memcpy(got, side[i].got, sizeof side[i].got);
    end(&side[i]);
}

static void assert_both_are_solo(enum accept_mode accept, double temperature)
{
    int32_t solo[LEADS][PROMPTS][TOKENS];

    for (int i = 0; i < LEADS; i++)
        run_solo(i, accept, temperature, solo[i]);
    assert_memory_not_equal(solo[0], solo[1], sizeof solo[0]); /* one that had the other's would be seen */
    for (int i = 0; i < LEADS; i++) {
        memset(side[i].got, 0, sizeof side[i].got);
        begin(&side[i], prompts[i], accept, temperature, 1);
    }
    for (int turns = 0; !side[0].engine.lead.is_over || !side[1].engine.lead.is_over; turns++) {
        assert_true(turns < MANY_TURNS);
        for (int i = 0; i < LEADS; i++)
            turn(&side[i]);
    }
    for (int i = 0; i < LEADS; i++) {
        const struct figures *figures = &side[i].engine.lead.figures;

        assert_int_equal(side[i].results, PROMPTS);
        assert_memory_equal(side[i].got, solo[i], sizeof solo[i]);
        assert_true(figures->accepted > 0 && side[i].waits > 0);
        assert_int_equal(figures->fallback_rounds, 0); /* every proposal was waited for until it came */
        end(&side[i]);
    }
}

static void test_two_leads__coupled_output_is_that_of_solo(void **state)
{
    (void)state;
    assert_both_are_solo(ACCEPT_COUPLED, 0.8);
}

static void test_two_leads__greedy_output_is_that_of_solo(void **state)
{
    (void)state;
    assert_both_are_solo(ACCEPT_REJECTION, 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_leads__coupled_output_is_that_of_solo),
        cmocka_unit_test(test_two_leads__greedy_output_is_that_of_solo),
    };

    return cmocka_run_group_tests(tests, open_sides, close_sides);
}
