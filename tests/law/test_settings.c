/* Every sampling parameter means the same at every drafted row as in solo decoding: random settings of all of them together, through the real
 * lead and drafter loops with the embedded pair, on one shard and on two. What solo decoding says is what speculative decoding must say, to the
 * token, the byte and the reason. Several settings are decoded together, so that they also must not disturb each other.
 * law_options.h has the arguments: seed=N, quick (a quarter of the settings), wide (four times as many), long (eighty times). */
#include "common/base/log.h"
#include "tests/law/law_options.h"
#include "tests/law/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SETTINGS = 250, ON_SHARDS = 64, BY_REJECTION = 64, BY_DEFINITION = 40, WIDE_FACTOR = 4, LONG_FACTOR = 80, QUICK_PART = 4 };

static uint64_t seed;
static int times = 1, divided = 1;

/* The settings of a mode, and what the target says to them solo. */
struct batch {
    int count;
    json_t **line;
    struct request_list requests;
    struct pair_result *solo;
};

static void fill(struct batch *batch, struct pair *pair, enum settings_mode mode, int count)
{
    static struct options options = {.request.max_tokens = 8, .rounds.draft_length = 4};
    struct pair_result *probe = calloc((size_t)count, sizeof *probe);
    struct request_list requests;

    options.request.sampling = sampling_default;
    const struct request_terms terms = pair_terms(pair, &options);
    *batch = (struct batch){.count = count};
    batch->line = calloc((size_t)count, sizeof(json_t *));
    batch->solo = calloc((size_t)count, sizeof *batch->solo);
    assert_true(probe != NULL && batch->line != NULL && batch->solo != NULL);
    for (int i = 0; i < count; i++)
        batch->line[i] = settings_probe(seed, i, mode);
    settings_read(&requests, &terms, batch->line, count);
    pair_run(pair, &requests, 0, probe, NULL);
    request_release(&requests);
    for (int i = 0; i < count; i++) {
        json_decref(batch->line[i]);
        batch->line[i] = settings_whole(seed, i, mode, &probe[i]);
    }
    settings_read(&batch->requests, &terms, batch->line, count);
    pair_run(pair, &batch->requests, 0, batch->solo, NULL);
    pair_release(probe, count);
    free(probe);
}

static void release(struct batch *batch)
{
    for (int i = 0; i < batch->count; i++)
        json_decref(batch->line[i]);
    free(batch->line);
    pair_release(batch->solo, batch->count);
    free(batch->solo);
    request_release(&batch->requests);
}

static int is_same(const struct pair_result *a, const struct pair_result *b)
{
    return a->count == b->count && a->length == b->length && a->finish == b->finish &&
           memcmp(a->tokens, b->tokens, (size_t)a->count * sizeof *a->tokens) == 0 && memcmp(a->text, b->text, a->length) == 0;
}

static void assert_equal(const struct batch *batch, const struct pair_result *results, const char *what)
{
    for (int i = 0; i < batch->count; i++) {
        const struct pair_result *a = &batch->solo[i], *b = &results[i];
        char *line;
        int at = 0;

        if (is_same(a, b))
            continue;
        while (at < a->count && at < b->count && a->tokens[at] == b->tokens[at])
            at++;
        line = json_dumps(batch->line[i], JSON_COMPACT);
        fail_msg("seed %llu, setting %d, %s: solo has %d tokens, %zu bytes and ends by '%s', the other %d, %zu and '%s'; they differ from token "
                 "%d on: %s",
                 (unsigned long long)seed, i, what, a->count, a->length, completion_reason(a->finish), b->count, b->length,
                 completion_reason(b->finish), at, line);
    }
}

/* That the settings are about something: how completions ended, and where. */
static void assert_covers(const struct batch *batch, const struct pair_result *results, const struct figures *figures)
{
    int by_text = 0, by_token = 0, by_length = 0, across = 0, held_back = 0;

    for (int i = 0; i < batch->count; i++) {
        const struct request *request = &batch->requests.request[i];
        const struct pair_result *result = &results[i];
        int32_t last = result->tokens[result->count - 1];
        int token = result->finish == FINISH_STOP && (last == 0 || (request->stop_tokens > 0 && last == request->stop_token[0]));

        by_length += result->finish == FINISH_LENGTH;
        by_token += token;
        by_text += result->finish == FINISH_STOP && !token;
        across += result->finish == FINISH_STOP && !token && result->length < result->before; /* the stop began in an earlier round */
        held_back += request->min_tokens > 0 && result->finish == FINISH_STOP;
    }
    print_message("ended by a text %d (%d of them begun in an earlier round), by a token %d, by length %d; behind min_tokens %d; "
                  "%lld tokens in %lld rounds, %lld of %lld drafts accepted\n",
                  by_text, across, by_token, by_length, held_back, (long long)figures->tokens, (long long)figures->rounds,
                  (long long)figures->accepted, (long long)figures->drafted);
    assert_true(figures->accepted > figures->tokens / 5);
    if (batch->count < SETTINGS)
        return; /* so few may lack a kind by chance */
    assert_true(by_text > batch->count / 20 && by_token > batch->count / 20 && by_length > batch->count / 20);
    assert_true(across > batch->count / 200 && held_back > batch->count / 20);
}

static void test_settings__speculative_output_is_solo_output(void **state)
{
    struct pair_result *results;
    struct figures figures;
    struct batch batch;
    struct pair pair;

    (void)state;
    pair_open(&pair, 1, "draft");
    fill(&batch, &pair, SETTINGS_EQUAL, SETTINGS * times / divided);
    results = calloc((size_t)batch.count, sizeof *results);
    assert_non_null(results);
    for (int i = 0; i < batch.count; i++)
        settings_assert_kept(&batch.requests.request[i], &batch.solo[i], pair.target[0]->config.eos, pair.target[0]->config.eos_count);
    pair_run(&pair, &batch.requests, 1, results, &figures);
    assert_equal(&batch, results, "speculative on one shard");
    assert_covers(&batch, results, &figures);
    pair_release(results, batch.count);
    free(results);
    release(&batch);
    pair_close(&pair);
}

static void test_settings__output_does_not_depend_on_the_cut_of_the_vocabulary(void **state)
{
    struct pair_result *results;
    struct figures figures;
    struct batch batch;
    struct pair one, two;

    (void)state;
    pair_open(&one, 1, "draft");
    pair_open(&two, 2, "draft");
    fill(&batch, &one, SETTINGS_EQUAL, ON_SHARDS * times / divided);
    results = calloc((size_t)batch.count, sizeof *results);
    assert_non_null(results);
    for (int drafts = 0; drafts < 2; drafts++) {
        pair_run(&two, &batch.requests, drafts, results, NULL);
        assert_equal(&batch, results, drafts ? "speculative on two shards" : "solo on two shards");
        pair_release(results, batch.count);
    }
    pair_copy(&two);
    pair_run(&two, &batch.requests, 1, results, &figures);
    assert_equal(&batch, results, "copies on two shards");
    assert_true(figures.accepted > 0 && figures.accepted < figures.drafted && figures.empty_rounds > 0);
    pair_release(results, batch.count);
    free(results);
    release(&batch);
    pair_close(&two);
    pair_close(&one);
}

/* The parameters mean what they are defined to mean: the target's own logits, the definitions written out, the same token. */
static void test_settings__tokens_are_those_of_the_definitions(void **state)
{
    struct model_rig target;
    struct batch batch;
    struct pair pair;
    int looked_at = 0, tokens = 0;

    (void)state;
    pair_open(&pair, 1, "draft");
    model_rig_open(&target, TANDEM_SOURCE_DIR "/launch/demo/target", NULL, 1, NULL);
    fill(&batch, &pair, SETTINGS_EQUAL, BY_DEFINITION * times / divided);
    for (int i = 0; i < batch.count; i++) {
        looked_at += settings_assert_defined(&batch.requests.request[i], &batch.solo[i], &target);
        tokens += batch.solo[i].count;
    }
    print_message("%d of %d tokens looked at\n", looked_at, tokens);
    assert_true(looked_at > tokens - tokens / 20);
    release(&batch);
    model_rig_close(&target);
    pair_close(&pair);
}

/* Algorithm 1 gives another output than solo, by the same law; what the request asks of tokens holds in both. */
static void test_settings__rejection_keeps_bans_and_ends(void **state)
{
    struct pair_result *results;
    struct figures figures;
    struct batch batch;
    struct pair pair;

    (void)state;
    pair_open(&pair, 1, "draft");
    fill(&batch, &pair, SETTINGS_REJECTION, BY_REJECTION * times / divided);
    results = calloc((size_t)batch.count, sizeof *results);
    assert_non_null(results);
    pair_run(&pair, &batch.requests, 1, results, &figures);
    for (int i = 0; i < batch.count; i++)
        settings_assert_kept(&batch.requests.request[i], &results[i], pair.target[0]->config.eos, pair.target[0]->config.eos_count);
    assert_covers(&batch, results, &figures);
    pair_release(results, batch.count);
    pair_copy(&pair); /* a point mass may be on a token that is banned */
    pair_run(&pair, &batch.requests, 1, results, &figures);
    for (int i = 0; i < batch.count; i++)
        settings_assert_kept(&batch.requests.request[i], &results[i], pair.target[0]->config.eos, pair.target[0]->config.eos_count);
    assert_true(figures.accepted > 0 && figures.accepted < figures.drafted);
    pair_release(results, batch.count);
    free(results);
    release(&batch);
    pair_close(&pair);
}

int main(int argc, char **argv)
{
    const struct law_options options = law_options_read(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings__speculative_output_is_solo_output),
        cmocka_unit_test(test_settings__output_does_not_depend_on_the_cut_of_the_vocabulary),
        cmocka_unit_test(test_settings__tokens_are_those_of_the_definitions),
        cmocka_unit_test(test_settings__rejection_keeps_bans_and_ends),
    };

    log_init("test_settings", LOG_ERROR);
    seed = options.seed;
    times = options.is_long ? LONG_FACTOR : options.is_wide ? WIDE_FACTOR : 1;
    divided = options.is_quick ? QUICK_PART : 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
