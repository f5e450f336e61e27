/* Several tasks and drafts in one report: which cell stands for each row, what is refused, and that nothing of a file becomes a tag. */
#include "launch/bench/report/set.h"
#include "tests/support/capture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct set set;
static char folder[64];

static void put(const char *name, const char *text)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static const char parts[] = "{\"tandem_bench_set\": 1, \"command\": \"tandem bench --task <b>\", \"date\": \"d\", \"parts\": [\"one\", \"two\"]}";

/* Solo, two fixed lengths, auto, two sequences; the longer one is faster. */
static const char summary[] =
    "{\"task\": %s, \"tree\": %s, \"draft\": {\"path\": \"/m/<draft>\"}, \"placements\": [{\"cells\": ["
    "{\"solo\": true, \"draft_length\": 0, \"temperature\": 1.0, \"accept\": \"coupled\", \"max_concurrency\": 1, \"output_throughput\": 50.0},"
    "{\"solo\": false, \"draft_length\": 2, \"temperature\": 1.0, \"accept\": \"coupled\", \"max_concurrency\": 1, \"output_throughput\": 60.0, "
    "\"speedup\": 1.2, \"tokens_per_round\": 1.75, \"beyond_noise_limit\": false, \"theory\": {\"alpha\": 0.5, \"d_lk\": null, \"c\": 0.1, "
    "\"theorem_3_8_improvement\": 1.4}, "
    "\"predicted_before\": {\"speedup\": 1.3, \"measured_over_predicted\": 0.92, \"alpha\": 0.55}},"
    "{\"solo\": false, \"draft_length\": 4, \"temperature\": 1.0, \"accept\": \"coupled\", \"max_concurrency\": 1, \"output_throughput\": 75.0, "
    "\"speedup\": 1.5, \"beyond_noise_limit\": true, \"theory\": {\"alpha\": 0.6, \"d_lk\": 0.3, \"c\": 0.1, \"theorem_3_8_improvement\": 1.75}, "
    "\"predicted_before\": {\"speedup\": 1.2, \"measured_over_predicted\": 1.25, \"alpha\": 0.65}},"
    "{\"solo\": false, \"draft_length\": \"auto\", \"temperature\": 1.0, \"accept\": \"coupled\", \"max_concurrency\": 1, \"output_throughput\": "
    "90.0, "
    "\"speedup\": 1.8},"
    "{\"solo\": false, \"draft_length\": 4, \"temperature\": 1.0, \"accept\": \"coupled\", \"max_concurrency\": 2, \"output_throughput\": 99.0, "
    "\"speedup\": 1.9}]}]}";

/* task, tree: [2] what the parts have, as JSON */
static void make_of(const char *const *task, const char *const *tree)
{
    char path[128], text[4096];

    snprintf(folder, sizeof folder, "/tmp/test_set_XXXXXX");
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i == 0 ? "one" : "two");
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(text, sizeof text, summary, task[i], tree[i]);
        put(i == 0 ? "one/summary.json" : "two/summary.json", text);
    }
    put("set.json", parts);
}

static void make(void)
{
    make_of((const char *const[]){"\"stories\"", "null"}, (const char *const[]){"null", "null"});
}

static void take_away(void)
{
    static const char *const names[] = {"one/summary.json", "two/summary.json", "one", "two", "set.json", ""};
    char path[128];

    set_release(&set);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (unlink(path) != 0)
            rmdir(path);
    }
}

static void test_set__a_row_is_of_the_fastest_fixed_length_of_one_sequence(void **state)
{
    (void)state;
    make();
    assert_true(set_is_one(folder));
    assert_int_equal(set_open(folder, &set), STATUS_OK);
    assert_string_equal(set_part(&set, 1), "two");
    assert_int_equal(set_read(folder, &set), STATUS_OK);
    assert_int_equal(set.rows, 2);
    assert_string_equal(set.row[0].task, "stories");
    assert_string_equal(set.row[1].task, "completion");
    for (int i = 0; i < 2; i++) {
        const struct set_row *row = &set.row[i];

        assert_int_equal(row->gamma, 4);
        assert_true(row->speed == 1.5 && row->alpha == 0.6 && row->offline == 0.65 && row->distance == 0.3 && row->expected == 1.75 &&
                    row->predicted == 1.2 && row->solo == 50 && row->noisy);
    }
    assert_true(set.cells == 4 && set.near == 2 && !set.has_trees);
    take_away();
}

static void test_set__tables_have_measured_beside_expected(void **state)
{
    char *text = NULL;
    size_t size;
    FILE *file;

    (void)state;
    make();
    assert_int_equal(set_open(folder, &set), STATUS_OK);
    assert_int_equal(set_read(folder, &set), STATUS_OK);
    for (int form = 0; form < 2; form++) {
        file = open_memstream(&text, &size);
        (form == 0 ? set_write_md : set_write_html)(&set, file);
        fclose(file);
        assert_non_null(strstr(text, "tokens/s within 10 % for 2 of 4 cells with drafts of all parts (50 %)"));
        assert_non_null(strstr(text, "Mq is what drafts, as the paper calls it. "));
        assert_non_null(strstr(text, "tokens/s and alone are medians by themselves, so their quotient may be another."));
        assert_null(strstr(text, "<draft>"));
        assert_true(form == 0 || strstr(text, "tandem bench --task &lt;b&gt;") != NULL);
        assert_true(form == 1 || strstr(text, "~1.50X") != NULL);
        assert_true(form == 1 || strstr(text, "0.86 |                  1.25 |") != NULL); /* over what was expected, and over what was predicted */
        free(text);
    }
    take_away();
}

/* The same number of drafts in each shape behind each other, in the order in which they were named; of a tree the paper's theory says nothing. */
static void test_set__shapes_stand_beside_each_other(void **state)
{
    static const char *const task[] = {"null", "null"}, *const tree[] = {"\"top-k\"", "\"chain\""}, *const names[] = {"top-k", "chain"};
    char *text = NULL;
    size_t size;
    FILE *file;

    (void)state;
    make_of(task, tree);
    assert_int_equal(set_open(folder, &set), STATUS_OK);
    assert_int_equal(set_read(folder, &set), STATUS_OK);
    assert_int_equal(set.shapes, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(set.shape[i].drafts, i < 2 ? 2 : 4);
        assert_string_equal(set.shape[i].tree, names[i % 2]);
    }
    assert_true(set.shape[1].tokens_per_round == 1.75 && set.shape[1].speed == 1.2 && set.shape[3].noisy);
    assert_true(set.row[0].is_tree && set.row[0].expected == -1 && !set.row[1].is_tree && set.row[1].expected == 1.75);
    file = open_memstream(&text, &size);
    set_write_md(&set, file);
    fclose(file);
    assert_non_null(strstr(text, "## Shapes: tokens per round"));
    assert_non_null(strstr(text, "draft&gt;, top-k |"));
    assert_non_null(strstr(text, "2 | chain |             1.75 |  1.20X |"));
    free(text);
    file = open_memstream(&text, &size);
    set_write_json(&set, file);
    fclose(file);
    assert_non_null(strstr(text, "\"shapes\": ["));
    assert_non_null(strstr(text, "\"tokens_per_round\": 1.75"));
    free(text);
    take_away();
}

static void refused(const char *name, const char *text, const char *said)
{
    struct capture capture;
    char line[4096];
    enum status status;

    make();
    put(name, text);
    capture_begin(&capture);
    status = set_open(folder, &set);
    if (status == STATUS_OK)
        status = set_read(folder, &set);
    capture_end(&capture, line, sizeof line);
    assert_int_equal(status, STATUS_DATA);
    capture_assert_one_line(line, said);
    take_away();
}

static void test_set__what_is_wrong_is_told_with_its_file(void **state)
{
    (void)state;
    refused("set.json", "{", "set.json: ");
    refused("set.json", "{}", "set.json: expected 1 to 128 parts");
    refused("set.json", "{\"parts\": [\"one\", \"../two\"]}", "set.json: expected 1 to 128 parts");
    refused("set.json", "{\"parts\": [\"one\", 2]}", "set.json: expected 1 to 128 parts");
    refused("two/summary.json", "[", "two/summary.json: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set__a_row_is_of_the_fastest_fixed_length_of_one_sequence),
        cmocka_unit_test(test_set__tables_have_measured_beside_expected),
        cmocka_unit_test(test_set__shapes_stand_beside_each_other),
        cmocka_unit_test(test_set__what_is_wrong_is_told_with_its_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
