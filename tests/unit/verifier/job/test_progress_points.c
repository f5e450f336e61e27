/* What takes long reports as it goes: so often at least, each time counted over one piece of work. */
#include "common/base/digest.h"
#include "common/base/progress.h"
#include "common/model/forward.h"
#include "common/model/model_identity.h"
#include "common/world/clock_offset.h"
#include "tests/support/gguf_convert.h"
#include "tests/support/model_rig.h"
#include "verifier/request/request.h"
#include "verifier/result/journal_scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define TARGET TANDEM_SOURCE_DIR "/launch/demo/target"
/* Of the target: layers, their matrices' rows (q, k and v; gate and up, whole panels of them; the other two), and its vocabulary. */
enum { LAYERS = 6, QKV = 512, GATE_UP = 2 * 704, HIDDEN = 256, VOCAB = 2048, ROWS = LAYERS * (QKV + GATE_UP + 2 * HIDDEN) + VOCAB };

static uint64_t counted(void)
{
    return progress_look().count;
}

static void open_model(struct model_rig *rig, const struct backend *backend)
{
    model_rig_open_on(rig, TARGET, backend);
}

static void test_progress_points__each_panel_that_is_packed(void **state)
{
    struct model_rig rig;
    uint64_t before = counted();

    (void)state;
    open_model(&rig, &backend_cpu);
    assert_true(counted() - before >= ROWS / BACKEND_PANEL);
    model_rig_close(&rig);
}

static enum status pack_nothing(struct backend_context *context, const struct matrix_source *source, struct arena *arena, struct matrix **matrix)
{
    (void)context;
    (void)source;
    (void)arena;
    (void)matrix;
    return STATUS_OK;
}

static uint64_t begin_no_draft(struct backend_context *context, const struct draft_terms *terms)
{
    (void)context;
    (void)terms;
    return 0;
}

static void test_progress_points__each_row_that_is_widened(void **state)
{
    struct backend float32_alone = backend_cpu;
    struct model_rig rig;
    uint64_t before = counted();

    (void)state;
    float32_alone.linear.packs = 1u << DTYPE_F32;
    float32_alone.linear.matrix_pack = pack_nothing;
    open_model(&rig, &float32_alone);
    assert_true(counted() - before >= ROWS);
    model_rig_close(&rig);
}

/* Reports while a model is opened, for a device that drafts by itself or not. */
static uint64_t counted_to_open(const char *path, int drafts)
{
    struct backend drafting = backend_cpu;
    struct model_options options = {.threads = 1, .max_rows = 1, .drafts = drafts, .backend = &drafting};
    uint64_t before = counted();
    struct model *model;
    struct group self;

    drafting.draft.begin = begin_no_draft;
    drafting.draft.needs_table = 1;
    group_open_self(&self);
    assert_int_equal(model_open(path, &self, &options, &model), STATUS_OK);
    model_close(model);
    group_close(&self);
    return counted() - before;
}

static void test_progress_points__each_embedding_that_is_widened_for_a_device(void **state)
{
    char file[] = "/tmp/test_progress_points.XXXXXX.gguf";
    int descriptor = mkstemps(file, 5);

    (void)state;
    assert_true(descriptor >= 0 && close(descriptor) == 0);
    gguf_convert(TARGET, file, &(struct gguf_convert){.dtype = DTYPE_Q8_0});
    assert_true(counted_to_open(file, 1) - counted_to_open(file, 0) >= VOCAB);
    assert_int_equal(unlink(file), 0);
}

/* Of which there are five. */
static void test_progress_points__each_part_of_a_layer(void **state)
{
    const int32_t token = 1;
    struct model_rig rig;
    float logits[VOCAB];
    uint64_t before;

    (void)state;
    open_model(&rig, &backend_cpu);
    before = counted();
    model_rig_step(&rig, &(struct chain){.count = 1, .tokens = &token}, 1, logits);
    assert_true(counted() - before >= 5 * LAYERS);
    model_rig_close(&rig);
}

static void test_progress_points__each_piece_of_a_tokenizer_and_each_word_of_a_text(void **state)
{
    struct tokenizer *tokenizer;
    uint64_t before = counted();
    enum { WORDS = 1000 };
    char text[2 * WORDS + 1];
    int32_t *tokens;
    int count;

    (void)state;
    assert_int_equal(tokenizer_open(TARGET "/tokenizer.json", VOCAB, &tokenizer), STATUS_OK);
    assert_true(counted() - before >= (uint64_t)tokenizer_size(tokenizer));
    for (int i = 0; i < WORDS; i++)
        memcpy(text + 2 * i, " a", 3);
    before = counted();
    assert_int_equal(tokenizer_encode(tokenizer, text, 2 * WORDS, 0, &tokens, &count, NULL), STATUS_OK);
    assert_true(counted() - before >= WORDS);
    free(tokens);
    tokenizer_close(tokenizer);
}

/* Lines without a prompt: nothing of them is encoded. */
static void test_progress_points__each_line_of_prompts(void **state)
{
    struct options options;
    const char *line = "{}";
    enum { LINES = 100 };
    struct request_list list = {0};
    struct tokenizer *tokenizer;
    uint64_t before;

    (void)state;
    assert_int_equal(options_parse(1, (char *[]){(char *)"test"}, &options), STATUS_OK);
    assert_int_equal(tokenizer_open(TARGET "/tokenizer.json", VOCAB, &tokenizer), STATUS_OK);
    const struct request_terms terms = {.options = &options, .tokenizer = tokenizer, .context = 64, .vocab = VOCAB};
    assert_int_equal(request_prepare(&list, &terms), STATUS_OK);
    before = counted();
    for (int i = 0; i < LINES; i++)
        assert_int_equal(request_add_line(&list, &terms, line, strlen(line), i + 1), STATUS_OK);
    assert_true(counted() - before >= LINES);
    request_release(&list);
    tokenizer_close(tokenizer);
    options_release(&options);
}

static void test_progress_points__each_line_of_a_journal(void **state)
{
    const struct journal_line header = {.kind = JOURNAL_LINE_HEADER, .fence = 1, .host = "a", .results = 1, .text = "{}", .length = 2};
    struct journal_scan scan;
    char *line;
    size_t count;
    uint64_t before;

    (void)state;
    line = journal_line_write(&header, 0, &count);
    assert_non_null(line);
    before = counted();
    assert_int_equal(journal_scan_open(&scan, line, count), STATUS_OK);
    assert_null(scan.wrong);
    assert_true(counted() > before);
    journal_scan_close(&scan);
    free(line);
}

static void test_progress_points__each_part_of_a_large_file(void **state)
{
    uint64_t before = counted(), identity;
    struct stat found;

    (void)state;
    assert_int_equal(stat(TARGET "/model.safetensors", &found), 0);
    assert_int_equal(model_identity(TARGET, &identity), STATUS_OK);
    assert_true(counted() - before >= (uint64_t)found.st_size / (16 << 10) || counted() - before >= 256);
}

static void test_progress_points__each_file_that_is_opened(void **state)
{
    struct checkpoint *checkpoint;
    struct config config;
    uint64_t before;

    (void)state;
    assert_int_equal(config_read(TARGET, &config), STATUS_OK);
    before = counted();
    assert_int_equal(checkpoint_open(TARGET, &config, &checkpoint), STATUS_OK);
    assert_true(counted() > before);
    checkpoint_close(checkpoint);
}

/* Of a world of one there is nobody to ask. */
static void test_progress_points__each_rank_whose_clock_is_measured(void **state)
{
    struct world world = {.size = 1};
    struct clock_offset offset;
    uint64_t before = counted();

    (void)state;
    assert_int_equal(clock_offset_measure(&world, &offset), STATUS_OK);
    assert_true(counted() > before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_progress_points__each_panel_that_is_packed),
        cmocka_unit_test(test_progress_points__each_row_that_is_widened),
        cmocka_unit_test(test_progress_points__each_embedding_that_is_widened_for_a_device),
        cmocka_unit_test(test_progress_points__each_part_of_a_layer),
        cmocka_unit_test(test_progress_points__each_piece_of_a_tokenizer_and_each_word_of_a_text),
        cmocka_unit_test(test_progress_points__each_line_of_prompts),
        cmocka_unit_test(test_progress_points__each_line_of_a_journal),
        cmocka_unit_test(test_progress_points__each_part_of_a_large_file),
        cmocka_unit_test(test_progress_points__each_file_that_is_opened),
        cmocka_unit_test(test_progress_points__each_rank_whose_clock_is_measured),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
