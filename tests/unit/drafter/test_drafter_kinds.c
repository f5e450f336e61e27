/* The registry of drafter kinds: what the command line has of each, what the drafter has, and that the two are of one mind. */
#include "common/base/log.h"
#include "common/options/options_draft.h"
#include "common/options/options_paths.h"
#include "drafter/draft.h"
#include "tests/support/capture.h"
#include "tests/support/corpus_file.h"
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h> /* needs those above */

enum { TEXT = 256 };

static int other_number(const struct options_draft_kind *kind, const struct options_draft_key *key)
{
    int usual = *(const int *)(const void *)((const char *)&kind->usual + key->at);

    return usual > 0 ? usual + key->step : key->most;
}

/* --draft with all keys of a kind, each another number than the usual one; with a key that none has. */
static void write_all_keys(const struct options_draft_kind *kind, const char *more, char *text)
{
    int used = snprintf(text, TEXT, "%s", kind->name), some = 0;

    if (kind->made_by != NULL)
        used += snprintf(text + used, (size_t)(TEXT - used), ":some=file,of.ngram");
    for (int i = 0; i < OPTIONS_DRAFT_KEYS && kind->key[i].name != NULL; i++)
        used += snprintf(text + used, (size_t)(TEXT - used), "%c%s=%d", some++ ? ',' : ':', kind->key[i].name, other_number(kind, &kind->key[i]));
    snprintf(text + used, (size_t)(TEXT - used), "%s%s", *more == '\0' ? "" : some ? "," : ":", more);
}

static void test_drafter_kinds__each_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < DRAFTER_KINDS; i++) {
        assert_non_null(options_draft_kinds[i].name);
        assert_int_equal(options_draft_kinds[i].usual.kind, i);
        assert_ptr_equal(options_draft_kind(&options_draft_kinds[i].usual), &options_draft_kinds[i]);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(options_draft_kinds[i].name, options_draft_kinds[j].name);
    }
}

static void test_drafter_kinds__keys_are_read_and_written_back(void **state)
{
    char text[TEXT], written[OPTIONS_DRAFT_TEXT];
    struct options_draft draft;

    (void)state;
    for (int i = DRAFT_MODEL + 1; i < DRAFTER_KINDS; i++) {
        write_all_keys(&options_draft_kinds[i], "", text);
        assert_int_equal(options_draft_read(text, &draft), STATUS_OK);
        assert_int_equal(draft.kind, i);
        options_draft_write(&draft, written);
        assert_string_equal(written, text);
    }
}

static void test_drafter_kinds__an_unknown_key_is_named(void **state)
{
    char text[TEXT], line[TEXT], expected[TEXT];
    struct options_draft draft;
    struct capture capture;

    (void)state;
    for (int i = DRAFT_MODEL + 1; i < DRAFTER_KINDS; i++) {
        if (options_draft_kinds[i].made_by != NULL)
            continue; /* all behind its colon is a path */
        write_all_keys(&options_draft_kinds[i], "colour=3", text);
        snprintf(expected, sizeof expected, "--draft %s has no key 'colour'", options_draft_kinds[i].name);
        capture_begin(&capture);
        assert_int_equal(options_draft_read(text, &draft), STATUS_USAGE);
        capture_end(&capture, line, sizeof line);
        capture_assert_one_line(line, expected);
    }
}

/* What is no kind's name is a path, and so is the name of the kind that is said by one. */
static void test_drafter_kinds__all_else_is_a_path(void **state)
{
    const char *const paths[] = {"model", "lookups", "./self", "", "lookup/min=1"};
    char written[OPTIONS_DRAFT_TEXT];
    struct options_draft draft;

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        assert_int_equal(options_draft_read(paths[i], &draft), STATUS_OK);
        assert_int_equal(draft.kind, DRAFT_MODEL);
        options_draft_write(&draft, written);
        assert_string_equal(written, "");
    }
}

/* The file that a kind reads is its own, the target's, or none; a report has a word for what none has. */
static void test_drafter_kinds__each_reads_the_file_that_it_says(void **state)
{
    struct options options = {.model.target = "target", .model.draft = "draft"};
    char path[PATH_MAX];

    (void)state;
    for (int i = 0; i < DRAFTER_KINDS; i++) {
        const struct options_draft_kind *kind = &options_draft_kinds[i];

        options.model.draft_way = kind->usual;
        options_draft_path(&options, path);
        assert_false(kind->own_model && kind->target_model);
        assert_string_equal(path, kind->own_model ? "draft" : kind->target_model ? "target" : "");
        assert_int_equal(options_draft_runs_model(&options.model.draft_way), *path != '\0');
        assert_int_equal(kind->architecture == NULL, *path != '\0');
    }
    assert_true(options_draft_kinds[DRAFT_MODEL].own_model && options_draft_kinds[DRAFT_SELF].target_model);
    assert_false(options_draft_runs_model(&options_draft_kinds[DRAFT_LOOKUP].usual));
}

/* Where one can be broken in how it draws, there is something to break, and only there. */
static void test_drafter_kinds__the_drafter_has_each(void **state)
{
    (void)state;
    for (int i = 0; i < DRAFTER_KINDS; i++) {
        const struct draft_kind *kind = draft_kind_of((enum drafter_kind)i);

        assert_non_null(kind);
        assert_true(kind->name != NULL && kind->open != NULL && kind->propose != NULL && kind->close != NULL);
        assert_int_equal(kind->draw_wrong != NULL, options_draft_kinds[i].draws);
        assert_false(options_draft_kinds[i].needs_features); /* no message carries them */
        assert_int_equal(kind->learn != NULL, options_draft_kinds[i].hears_target);
    }
}

/* One that runs no model opens without. */
static void test_drafter_kinds__a_kind_without_a_model_opens(void **state)
{
    struct corpus_rows found = {0};
    char path[CORPUS_FILE_PATH];

    (void)state;
    for (int i = 0; i < DRAFTER_KINDS; i++) {
        const char *made_by = options_draft_kinds[i].made_by;
        const struct draft_parts parts = {.way = &options_draft_kinds[i].usual,
                                          .found = made_by != NULL || options_draft_kinds[i].target_tokens ? &found : NULL,
                                          .slots = 2,
                                          .support = 8,
                                          .context = draft_context(100)};
        struct draft draft = {0};

        if (options_draft_runs_model(parts.way))
            continue;
        corpus_rows_random(50, 5, &found);
        if (made_by != NULL) {
            corpus_file_make(made_by, 3, 50, 300, path);
            assert_int_equal(corpus_rows_open(path, made_by, &found), STATUS_OK);
            unlink(path);
        }
        assert_int_equal(draft_open(&draft, &parts), STATUS_OK);
        assert_ptr_equal(draft.kind, draft_kind_of((enum drafter_kind)i));
        draft_break(&draft, BREAKAGE_Q_TOP_K); /* nothing happens */
        draft_close(&draft);
        assert_null(draft.kind);
        corpus_rows_close(&found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drafter_kinds__each_has_a_name_of_its_own),
        cmocka_unit_test(test_drafter_kinds__keys_are_read_and_written_back),
        cmocka_unit_test(test_drafter_kinds__an_unknown_key_is_named),
        cmocka_unit_test(test_drafter_kinds__all_else_is_a_path),
        cmocka_unit_test(test_drafter_kinds__each_reads_the_file_that_it_says),
        cmocka_unit_test(test_drafter_kinds__the_drafter_has_each),
        cmocka_unit_test(test_drafter_kinds__a_kind_without_a_model_opens),
    };

    log_init("test_drafter_kinds", LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
