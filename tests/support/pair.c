#include "tests/support/pair.h"

#include "verifier/job/audience.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RUN = 77, SUPPORT = 256, GROUP_BYTES = 1 << 18 };

/* Where the results of the run go: output_add has no other way to know. */
static struct pair_result *taking;

enum status __wrap_output_add(struct output *output, const struct request *request, const struct sequence *sequence);
enum status __wrap_output_add(struct output *output, const struct request *request, const struct sequence *sequence)
{
    struct pair_result *result = &taking[request->index];

    (void)output;
    assert_null(result->text); /* one result for each */
    result->finish = FINISH_ERROR;
    if (sequence == NULL) {
        result->text = strdup(request->error);
        assert_non_null(result->text);
        result->length = strlen(result->text);
        return STATUS_OK;
    }
    result->finish = sequence->completion.finish;
    result->count = sequence->completion.count;
    result->length = sequence->completion.length;
    result->tokens = calloc((size_t)result->count + 1, sizeof *result->tokens);
    result->text = calloc(result->length + 1, 1);
    assert_true(result->tokens != NULL && result->text != NULL);
    memcpy(result->tokens, sequence->tokens + request->prompt_count, (size_t)result->count * sizeof *result->tokens);
    memcpy(result->text, sequence->completion.text, result->length);
    result->rounds = sequence->rounds;
    result->drafted = sequence->drafted;
    result->accepted = sequence->accepted;
    assert_int_equal(sequence->length, request->prompt_count + result->count);
    return STATUS_OK;
}

static void *follow(void *team)
{
    return team_follow(team) == STATUS_OK ? NULL : team;
}

static void open_model(struct pair *pair, const char *name, struct group *group, struct model **model)
{
    const struct model_options options = {.threads = 1,
                                          .max_rows = (int)PAIR_OUTPUTS > (int)BACKEND_MAX_ROWS ? (int)PAIR_OUTPUTS : (int)BACKEND_MAX_ROWS};
    char path[1024];

    (void)pair;
    snprintf(path, sizeof path, TANDEM_SOURCE_DIR "/launch/demo/%s", name);
    assert_int_equal(model_open(path, group, &options, model), STATUS_OK);
}

void pair_open(struct pair *pair, int shards, const char *draft)
{
    memset(pair, 0, sizeof *pair);
    pair->shards = shards;
    group_open_self(&pair->self);
    thread_group_open(&pair->threads, shards, GROUP_BYTES, pair->group);
    assert_int_equal(tokenizer_open(TANDEM_SOURCE_DIR "/launch/demo/target", 0, &pair->tokenizer), STATUS_OK);
    for (int r = 0; r < shards; r++) {
        open_model(pair, "target", shards == 1 ? &pair->self : &pair->group[r], &pair->target[r]);
        assert_int_equal(team_open(&pair->team[r], pair->target[r], PAIR_SLOTS, PAIR_OUTPUTS, PAIR_IDS), STATUS_OK);
    }
    open_model(pair, draft, &pair->self, &pair->draft_model);
    assert_int_equal(draft_open_model(&pair->draft, pair->draft_model, PAIR_SLOTS, SUPPORT, 1), STATUS_OK);
    if (shards > 1)
        assert_int_equal(pthread_create(&pair->follower, NULL, follow, &pair->team[1]), 0);
}

void pair_copy(struct pair *pair)
{
    const struct options_draft way = {.kind = DRAFT_LOOKUP, .min = 1, .max = 4};

    draft_close(&pair->draft);
    assert_int_equal(draft_open_lookup(&pair->draft, &way, PAIR_SLOTS, pair->draft_model->shape.context), STATUS_OK);
}

void pair_close(struct pair *pair)
{
    void *failed = NULL;

    assert_int_equal(team_end(&pair->team[0]), STATUS_OK);
    if (pair->shards > 1)
        pthread_join(pair->follower, &failed);
    assert_null(failed);
    draft_close(&pair->draft);
    model_close(pair->draft_model);
    for (int r = 0; r < pair->shards; r++) {
        team_close(&pair->team[r]);
        model_close(pair->target[r]);
    }
    tokenizer_close(pair->tokenizer);
    thread_group_close(&pair->threads);
}

struct request_terms pair_terms(const struct pair *pair, const struct options *options)
{
    return (struct request_terms){.options = options,
                                  .tokenizer = pair->tokenizer,
                                  .context = pair->target[0]->shape.context,
                                  .vocab = pair->target[0]->vocab};
}

struct engine_terms pair_engine(struct pair *pair, const struct request_list *requests, const struct lead_watch *watch, int with_drafter)
{
    return (struct engine_terms){.team = &pair->team[0],
                                 .draft[0] = {.draft = &pair->draft, .vocab = pair->draft_model->vocab, .context = pair->draft_model->shape.context},
                                 .drafters = with_drafter,
                                 .tokenizer = pair->tokenizer,
                                 .requests = requests,
                                 .watch = watch,
                                 .run = RUN,
                                 .slots = PAIR_SLOTS,
                                 .outputs = PAIR_OUTPUTS,
                                 .ids = PAIR_IDS,
                                 .deadline_ms = 1000,
                                 .patient = 1};
}

/* One round: the drafter's turn, then the lead's. Returns whether there was one. */
static int take_round(struct engine *engine)
{
    struct lead *lead = &engine->lead;

    assert_int_equal(engine_begin(engine), STATUS_OK);
    if (lead->slots.actives == 0)
        return 0;
    for (int i = 0; i < lead->slots.count; i++)
        if (lead->slots.sequence[i].request != NULL)
            taking[lead->slots.sequence[i].request->index].before = lead->slots.sequence[i].completion.length;
    assert_int_equal(lead_round(lead), STATUS_OK);
    return 1;
}

void pair_run(struct pair *pair, const struct request_list *requests, int with_drafter, struct pair_result *results, struct figures *figures)
{
    struct output output = {0};
    struct show show = {0};
    struct audience audience;
    struct engine engine;
    struct engine_terms terms = pair_engine(pair, requests, &audience.watch, with_drafter);

    memset(results, 0, (size_t)requests->count * sizeof *results);
    taking = results;
    audience_init(&audience, &output, &show, NULL);
    terms.deadline_ms = 0;
    terms.patient = 0;
    assert_int_equal(engine_open(&engine, &terms), STATUS_OK);
    while (take_round(&engine))
        continue;
    assert_int_equal(engine.peers.refused + engine.drafter[0].refused, 0); /* every message of ours is a good one */
    if (figures != NULL)
        *figures = engine.lead.figures;
    engine_close(&engine);
}

void pair_release(struct pair_result *results, int count)
{
    for (int i = 0; i < count; i++) {
        free(results[i].tokens);
        free(results[i].text);
    }
    memset(results, 0, (size_t)count * sizeof *results);
}
