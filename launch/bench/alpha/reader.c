#include "launch/bench/alpha/reader.h"

#include "common/backend/choose.h"
#include "common/base/clock.h"
#include "common/base/paths.h"
#include "common/base/try.h"
#include "common/options/options_paths.h"
#include <stdlib.h>
#include <unistd.h>

static enum status lay_out(struct reader *reader)
{
    size_t rows = (size_t)reader->model->max_rows, words = rows * sizeof(int32_t), outputs = (size_t)reader->model->max_outputs;
    size_t logits = outputs * (size_t)reader->model->vocab;

    TRY(arena_open(&reader->arena,
                   5 * arena_round(words) + arena_round(rows * sizeof(uint64_t)) + arena_round(outputs * sizeof(int32_t)) +
                       arena_round(logits * sizeof(float)),
                   "the rows of a step"));
    reader->rows.token = arena_take(&reader->arena, words);
    reader->rows.position = arena_take(&reader->arena, words);
    reader->rows.slot = arena_take(&reader->arena, words);
    reader->rows.place = arena_take(&reader->arena, words);
    reader->rows.base = arena_take(&reader->arena, words);
    reader->rows.ancestors = arena_take(&reader->arena, rows * sizeof(uint64_t));
    reader->asked = arena_take(&reader->arena, outputs * sizeof(int32_t));
    reader->logits = arena_take(&reader->arena, logits * sizeof(float));
    return STATUS_OK;
}

int reader_threads(const struct options *options)
{
    return options->ranks.threads > 0 ? options->ranks.threads : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

static enum status open_model(struct reader *reader, const struct options *options, int vocab, int slots, int outputs)
{
    const struct backend *backend;
    char tokenizer[sizeof reader->path];
    struct config config;

    TRY(backend_choose((enum backend_choice)options->ranks.backend, &backend));
    if (vocab == 0) /* the first of its models */
        backend_choose_warn((enum backend_choice)options->ranks.backend, backend);
    TRY(config_read(reader->path, &config));
    paths_tokenizer(reader->path, tokenizer, sizeof tokenizer);
    TRY(tokenizer_open(tokenizer, config.vocab, &reader->tokenizer));
    int own = tokenizer_size(reader->tokenizer), is_draft = vocab > 0;
    const struct layer_set none = {0};
    const struct model_options model = {.threads = reader_threads(options),
                                        .max_rows =
                                            backend->step.prompt_rows > slots ? backend->step.prompt_rows : slots, /* and READER_LONGEST is less */
                                        .max_outputs = outputs,
                                        .context = options->model.context,
                                        .slots = slots,
                                        .layers = is_draft ? options->model.draft_way.layers : 0,
                                        .skip = is_draft ? options->model.draft_way.skip : none,
                                        .vocab = is_draft ? options_draft_vocab(options, own < vocab ? own : vocab) : own,
                                        .quantise = model_quantise(options_bits(options, is_draft)),
                                        .cache = options->model.cache,
                                        .backend = backend};
    return model_open(reader->path, &reader->self, &model, &reader->model);
}

enum status reader_open(struct reader *reader, const struct options *options, int vocab, int slots, int outputs)
{
    enum status status;

    *reader = (struct reader){0};
    if (vocab > 0)
        options_draft_path(options, reader->path);
    else
        options_target_path(options, reader->path);
    group_open_self(&reader->self);
    TRY_TO(open_model(reader, options, vocab, slots, outputs), close_reader);
    TRY_TO(kv_cache_open(&reader->cache, reader->model, slots), close_reader);
    TRY_TO(forward_open(&reader->forward, reader->model, &reader->cache), close_reader);
    TRY_TO(lay_out(reader), close_reader);
    return STATUS_OK;

close_reader:
    reader_close(reader);
    return status;
}

void reader_close(struct reader *reader)
{
    arena_close(&reader->arena);
    forward_close(&reader->forward);
    kv_cache_close(&reader->cache);
    model_close(reader->model);
    tokenizer_close(reader->tokenizer);
    group_close(&reader->self);
    *reader = (struct reader){0};
}

/* The target may have added tokens that a draft model has not: any other stands for them, as in a job. */
static void put_row(struct reader *reader, int slot, int place, int first, int32_t token)
{
    struct rows *rows = &reader->rows;
    int r = rows->count++;

    rows->token[r] = token < reader->model->config.vocab ? token : 0;
    rows->position[r] = rows->place[r] = place;
    rows->slot[r] = slot;
    backend_see_chain(rows, r, first, place - first);
}

enum status reader_feed(struct reader *reader, int slot, const int32_t *tokens, int count)
{
    int most = model_prompt_rows(reader->model);

    for (int first = 0; first < count;) {
        int end = count - first < most ? count : first + most;

        reader->rows.count = 0;
        for (int place = first; place < end; place++)
            put_row(reader, slot, place, first, tokens[place]);
        TRY(forward_run(&reader->forward, &reader->rows, reader->asked, 0, reader->logits));
        first = end;
    }
    reader->rows.count = 0;
    return STATUS_OK;
}

/* Each step asks for a row at least, so that none of them is played from a recording, which is of all layers. */
enum status reader_see(struct reader *reader, int slot, const int32_t *tokens, int count, int first, reader_seen *see, void *state)
{
    int rows = model_prompt_rows(reader->model), most = rows < reader->model->max_outputs ? rows : reader->model->max_outputs;

    for (int begin = 0; begin < count; begin += most) {
        int end = count - begin < most ? count : begin + most, asked = first > begin ? first : begin, outputs = 0;

        asked = asked < end ? asked : end - 1;
        reader->rows.count = 0;
        for (int place = begin; place < end; place++)
            put_row(reader, slot, place, begin, tokens[place]);
        for (int place = asked; place < end; place++)
            reader->asked[outputs++] = place - begin;
        TRY(forward_run(&reader->forward, &reader->rows, reader->asked, outputs, reader->logits));
        for (int place = first > begin ? first : begin; place < end; place++)
            see(state, place, reader_logits(reader, place - asked));
    }
    reader->rows.count = 0;
    return STATUS_OK;
}

void reader_add(struct reader *reader, int slot, int place, int32_t token)
{
    reader->asked[reader->rows.count] = reader->rows.count;
    put_row(reader, slot, place, place, token);
}

enum status reader_run(struct reader *reader)
{
    int64_t began = clock_ns();

    TRY(forward_run(&reader->forward, &reader->rows, reader->asked, reader->rows.count, reader->logits));
    reader->rows.count = 0;
    reader->ns += clock_ns() - began;
    return STATUS_OK;
}

float *reader_logits(const struct reader *reader, int row)
{
    return reader->logits + (size_t)row * (size_t)reader->model->vocab;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

enum status reader_time(struct reader *reader, int rows, double *ns)
{
    enum { TURNS = 15, PLACE = 32 };
    int first = PLACE + rows < reader->model->longest ? PLACE : 0;
    double took[TURNS];

    for (int turn = 0; turn < TURNS; turn++) {
        int64_t before = reader->ns;

        for (int i = 0; i < rows; i++) {
            reader->asked[i] = i;
            put_row(reader, 0, first + i, first, i);
        }
        TRY(reader_run(reader));
        took[turn] = (double)(reader->ns - before);
        reader->ns = before;
    }
    qsort(took, TURNS, sizeof *took, by_size);
    *ns = took[TURNS / 2];
    return STATUS_OK;
}
