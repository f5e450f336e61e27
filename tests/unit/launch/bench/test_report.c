/* Reports of folders with known numbers: the figures, the pages, the comparison, and folders that are wrong. */
#include "common/sample/sampling.h"
#include "launch/bench/report/by_rank.h"
#include "launch/bench/report/compare.h"
#include "launch/bench/report/measured.h"
#include "launch/bench/report/page_html.h"
#include "launch/bench/report/page_md.h"
#include "launch/bench/report/summary.h"
#include "launch/bench/report/theory.h"
#include "launch/bench/report/trace_json.h"
#include "tests/support/capture.h"
#include "tests/unit/launch/bench/bench_folder.h"

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

_Static_assert((int)RUN_MOST_DRAFT == SAMPLING_MAX_DRAFT, "a report has a place for each draft");

static struct run run;
static struct measured_placement *all;

static int near(double value, double expected)
{
    return fabs(value - expected) <= 1e-6 * fabs(expected) + 1e-9;
}

static void compute(struct bench_folder *folder)
{
    bench_folder_make(folder);
    assert_int_equal(run_read(folder->path, &run), STATUS_OK);
    assert_int_equal(measured_compute(&run, all), STATUS_OK);
}

static void release(const struct bench_folder *folder)
{
    measured_release(&run, all);
    run_release(&run);
    memset(all, 0, RUN_MOST_PLACEMENTS * sizeof *all);
    bench_folder_remove(folder);
}

/* What a writer writes, to be freed. */
static char *written(void (*write)(const struct run *, const struct measured_placement *, FILE *))
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    assert_non_null(file);
    write(&run, all, file);
    fclose(file);
    return text;
}

static void test_report__speeds_are_tokens_over_time(void **state)
{
    struct bench_folder folder = {.command = "c", .lossless = 1};
    const struct measured *solo, *two;

    (void)state;
    compute(&folder);
    solo = &all->cell[0];
    two = &all->cell[1];
    assert_int_equal(two->repetitions, 2); /* the warm-up is none */
    assert_true(near(solo->tokens_per_second, 6 / 2.5e-3));
    assert_true(near(two->tokens_per_second, 6 / 1.9e-3));
    assert_true(near(two->speedup, 2.5 / 1.9));
    assert_true(near(two->speedup_spread, 0));
    assert_true(near(two->speedup_tpot, 2.0 / 1.4)); /* from the first token to the last */
    assert_true(near(two->ttft.median, 0.5));
    assert_true(near(two->e2el.median, 1.9));
    assert_int_equal(two->outputs_equal, 1);
    release(&folder);
}

static void test_report__arrivals_are_rounds_and_most_gaps_of_tokens_are_none(void **state)
{
    struct bench_folder folder = {.command = "c", .lossless = 1};

    (void)state;
    compute(&folder);
    assert_true(near(all->cell[1].round.median, 0.6));
    assert_true(near(all->cell[0].itl.median, 0.4));
    assert_true(near(all->cell[1].itl.median, 0)); /* 3 of 5 gaps */
    assert_true(near(all->cell[1].itl.mean, 1.2 / 5));
    release(&folder);
}

/* Each phase as it was written; what is left of the wait is wire; clocks that differ do not matter. */
static void test_report__phases_of_rounds_add_up(void **state)
{
    struct bench_folder folder = {.command = "c", .lossless = 1};
    const double *us;
    double sum = 0;

    (void)state;
    compute(&folder);
    us = all->cell[1].phase_us;
    assert_true(near(us[ROUND_TRUNCATE], 4 / 3.0)); /* not in the first round */
    assert_true(near(us[ROUND_DRAFT], 100) && near(us[ROUND_PACK], 3));
    assert_true(near(us[ROUND_WIRE], (47 + 45 + 45) / 3.0));
    assert_true(near(us[ROUND_VERIFY], 400) && near(us[ROUND_REDUCE], 30)); /* 420 with 20 in sums, and 10 to gather */
    assert_true(near(us[ROUND_DECIDE], 10) && near(us[ROUND_BROADCAST], 5) && near(us[ROUND_OUTPUT], 2) && near(us[ROUND_OTHER], 3));
    for (int p = 0; p < ROUND_PHASES; p++)
        sum += us[p];
    assert_true(near(sum, 600) && near(all->cell[1].round_us, 600));
    assert_true(near(all->cell[1].wait_us, 150));
    assert_true(near(all->cell[1].propose_us, 25)); /* by the clocks, which were 5 ms apart */
    assert_true(near(all->cell[1].commit_us, 25));
    release(&folder);
}

/* On a busy machine an offset is wrong by milliseconds, though by no more than half of its round trip: proposals are still found, and only the ways
 * one by one are off. */
static void test_report__an_offset_that_is_off_loses_no_proposal(void **state)
{
    struct bench_folder folder = {.command = "c", .lossless = 1, .clock_off_us = 4000};
    const double *us;

    (void)state;
    compute(&folder);
    us = all->cell[1].phase_us;
    assert_true(near(us[ROUND_DRAFT], 100) && near(us[ROUND_PACK], 3) && near(us[ROUND_WIRE], (47 + 45 + 45) / 3.0));
    assert_true(near(all->cell[1].propose_us, 25 - 4000));
    assert_true(near(all->cell[1].commit_us, 25 + 4000));
    release(&folder);
}

/* Clocks that may be off by more than passes are apart, and are not: each round has the proposal and the commit of its own pass. */
static void test_report__a_proposal_of_the_next_pass_is_not_taken_for_one_of_this(void **state)
{
    struct bench_folder folder = {.command = "c", .lossless = 1, .trip_us = 12000};

    (void)state;
    compute(&folder);
    assert_true(near(all->cell[1].propose_us, 25) && near(all->cell[1].commit_us, 25));
    release(&folder);
}

/* A rank's phases and its idle time are the time of its passes: 1,900 us of three rounds. */
static void test_report__times_of_a_rank_add_up_to_its_passes(void **state)
{
    struct bench_folder folder = {.command = "c", .lossless = 1};

    (void)state;
    compute(&folder);
    for (int i = 0; i < 2; i++) {
        struct by_rank r = {.idle_us = 0};
        double sum = 0;

        assert_int_equal(by_rank_sum(&run.placement[0], &run.placement[0].rank[i], 1, all->cell[1].steps, &r), STATUS_OK);
        for (int p = 0; p < TRACE_PHASES; p++)
            sum += r.us[p];
        assert_true(near(sum + r.reduce_us + r.idle_us, 1900 / 3.0));
        assert_true(near(r.us[TRACE_DRAFT], i == 0 ? 100 : 0));
        assert_true(near(r.us[TRACE_VERIFY], i == 0 ? 0 : 400) && near(r.reduce_us, i == 0 ? 0 : 20));
        assert_true(near(r.us[TRACE_UNPACK], i == 0 ? 0 : 2) && near(r.us[TRACE_PREFILL], i == 0 ? 0 : 100 / 3.0));
        assert_true(near(r.idle_us, i == 0 ? 1900 / 3.0 - 103 - 4 / 3.0 : 148)); /* the lead's wait, less what it unpacks in it */
    }
    release(&folder);
}

/* The cell of two drafts. */
static json_t *summary_of_two(json_t *summary)
{
    return json_array_get(json_object_get(json_array_get(json_object_get(summary, "placements"), 0), "cells"), 1);
}

/* Counts of drafts are of all passes, whatever was kept of their rounds. */
static void test_report__lost_spans_change_no_rate(void **state)
{
    struct bench_folder folder = {.command = "c", .lossless = 1};
    json_t *summary, *cell, *rates;

    (void)state;
    bench_folder_make(&folder);
    bench_folder_cut(&folder);
    assert_int_equal(run_read(folder.path, &run), STATUS_OK);
    assert_int_equal(measured_compute(&run, all), STATUS_OK);
    summary = summary_make(&run, all);
    cell = summary_of_two(summary);
    rates = json_object_get(cell, "spec_decode_per_position_acceptance_rates");
    assert_true(near(json_number_value(json_object_get(cell, "spec_decode_num_drafts")), 6));
    assert_true(near(json_number_value(json_object_get(cell, "spec_decode_acceptance_length")), 2));
    assert_true(near(json_number_value(json_array_get(rates, 0)), 2 / 3.0) && near(json_number_value(json_array_get(rates, 1)), 1 / 3.0));
    json_decref(summary);
    release(&folder);
}

/* A trace that was full in the middle: passes that are in it whole count, and their times fit together. */
static void test_report__passes_beyond_a_full_trace_are_left_out(void **state)
{
    struct bench_folder folder = {.command = "c", .lossless = 1};
    int traced = 0;

    (void)state;
    bench_folder_make(&folder);
    bench_folder_cut(&folder);
    assert_int_equal(run_read(folder.path, &run), STATUS_OK);
    assert_int_equal(measured_compute(&run, all), STATUS_OK);
    for (int i = 0; i < run.placement[0].passes; i++)
        traced += run.placement[0].pass[i].traced;
    assert_int_equal(traced, 6); /* of 9: three warm-ups and one repetition */
    assert_int_equal(all->cell[1].repetitions, 2); /* speeds need no trace */
    assert_true(near(all->cell[1].round_us, 600) && near(all->cell[1].outside, 1 - 1800 / 1900.0));
    release(&folder);
}

static void test_report__theory_stands_beside_it(void **state)
{
    struct bench_folder folder = {.command = "c", .lossless = 1};
    const struct measured *two;

    (void)state;
    compute(&folder);
    two = &all->cell[1];
    assert_true(near(two->alpha, 0.6) && near(two->alpha_overlap, 0.6));
    assert_true(near(two->alpha_tokens, theory_alpha(2, 2))); /* 6 tokens in 3 rounds */
    assert_true(near(two->tokens_expected, 1.96));
    assert_true(near(two->c, 50 / 400.0));
    assert_true(near(two->v, 430 / 400.0));
    assert_true(near(two->rest, 70 / 400.0));
    assert_true(near(two->improvement, 1.96 / 1.25));
    assert_true(near(two->improvement_measured, 1.96 * 400 / 600));
    assert_true(near(two->operations, (2 * 0.1 + 3) / 1.96));
    assert_true(near(two->by_tokens, 2 / 1.96) && near(two->by_round, 1) && near(two->by_outside, (1800 / 1900.0) / (2400 / 2500.0)));
    assert_true(near(two->by_noise, 1));
    assert_true(near(two->speedup, two->improvement_measured * two->by_tokens * two->by_round * two->by_outside * two->by_noise));
    release(&folder);
}

static void test_report__noise_is_what_repetitions_differ_by(void **state)
{
    struct bench_folder still = {.command = "c", .lossless = 1}, noisy = {.command = "c", .lossless = 1, .slower = {0, 600}};
    struct measured_noise noise;
    double expected;

    (void)state;
    compute(&still);
    noise = measured_noise(&run, all, 1);
    assert_true(near(noise.spread, 0) && near(noise.spread_worst, 0) && near(noise.error_worst, 0));
    assert_true(noise.cells == 2 && noise.beyond == 0 && noise.least == 2 && noise.most == 2 && !measured_withholds(&noise));
    release(&still);
    compute(&noisy);
    /* Speedups 2500 / 1900 and 2500 / 2500: the median is between, and both are as far from it. */
    expected = (2.5 / 1.9 - 1) / 2 / ((2.5 / 1.9 + 1) / 2);
    noise = measured_noise(&run, all, 1);
    assert_true(near(noise.spread, 1.4826 * expected) && near(noise.spread_worst, 1.4826 * expected));
    assert_true(near(noise.error, expected) && near(noise.error_worst, expected) && noise.beyond == 2 && measured_withholds(&noise));
    noise.beyond = 1; /* one of two: the other may be quoted */
    assert_false(measured_withholds(&noise));
    release(&noisy);
}

static char *page_of(void (*write)(const struct run *, const struct measured_placement *, FILE *))
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    write(&run, all, file);
    fclose(file);
    return text;
}

/* A noisy bench has its report: every figure beyond the limit is marked, in the table and in JSON, and none of them is a headline. */
static void test_report__noisy_figures_are_marked_and_no_headline(void **state)
{
    struct bench_folder folders[] = {{.command = "c", .lossless = 1}, {.command = "c", .lossless = 1, .slower = {0, 600}}};

    (void)state;
    for (int noisy = 0; noisy < 2; noisy++) {
        char *text, *page;
        json_t *summary, *placement, *cell;

        compute(&folders[noisy]);
        text = page_of(page_md_write);
        page = page_of(page_html_write);
        summary = summary_make(&run, all);
        placement = json_array_get(json_object_get(summary, "placements"), 0);
        cell = json_array_get(json_object_get(placement, "cells"), 1);
        assert_int_equal(
            strstr(text, "No headline: the machine was too noisy. 2 of 2 speedups have a standard error beyond the limit of 5.0 %") != NULL, noisy);
        assert_int_equal(strstr(text, "| ~") != NULL || strstr(text, " ~1.16x") != NULL, noisy);
        assert_int_equal(strstr(text, "The account of where time went") != NULL, !noisy);
        assert_int_equal(strstr(page, "No headline") != NULL, noisy);
        assert_int_equal(strstr(page, "class=\"tile\"") != NULL, !noisy);
        assert_int_equal(json_is_true(json_object_get(placement, "headline")), !noisy);
        assert_int_equal(json_is_true(json_object_get(cell, "beyond_noise_limit")), noisy);
        assert_true(near(json_real_value(json_object_get(cell, "speedup_standard_error")), all[0].cell[1].speedup_error));
        assert_int_equal(json_integer_value(json_object_get(summary, "speedups_beyond_limit")), 2 * noisy);
        assert_null(json_object_get(json_array_get(json_object_get(placement, "cells"), 0), "beyond_noise_limit")); /* solo is the measure */
        json_decref(summary);
        free(page);
        free(text);
        release(&folders[noisy]);
    }
}

/* Tags are closed in order, and attributes have quotes. Void ones of HTML are known. */
static void check_tags(const char *text)
{
    static const char *const open_ended[] = {"meta", "!doctype", "br"};
    char stack[64][24];
    int depth = 0;

    for (const char *at = strchr(text, '<'); at != NULL; at = strchr(at + 1, '<')) {
        const char *end = strchr(at, '>');
        char name[24];
        int closing = at[1] == '/', quotes = 0, known = 0;

        assert_non_null(end);
        assert_int_equal(sscanf(at + 1 + closing, "%23[a-z0-9!]", name), 1);
        for (const char *c = at; c < end; c++) {
            quotes += *c == '"';
            assert_true(c == at || *c != '<');
        }
        assert_int_equal(quotes % 2, 0);
        for (size_t i = 0; i < sizeof open_ended / sizeof *open_ended; i++)
            known |= strcmp(name, open_ended[i]) == 0;
        if (known || end[-1] == '/')
            continue;
        if (!closing) {
            assert_true(depth < 64);
            snprintf(stack[depth++], sizeof stack[0], "%s", name);
            continue;
        }
        assert_true(depth > 0);
        assert_string_equal(stack[--depth], name);
    }
    assert_int_equal(depth, 0);
}

static void test_report__the_page_is_whole_and_escapes_what_it_is_told(void **state)
{
    static const char *const figures[] = {
        "Speedup against draft length", "Best draft length by alpha", "Acceptance by position", "Where a round's time goes", "rounds in time",
        "Time between arrivals",        "Message latency by size",    "operations by size"};
    struct bench_folder folder = {.command = "tandem bench --prompt '<script>alert(\\\"x\\\") & `date` \\u0007'", .lossless = 1};
    char *page;

    (void)state;
    compute(&folder);
    run.cell[2].draft_length = 4; /* two lengths make a line */
    page = written(page_html_write);
    check_tags(page);
    for (size_t i = 1; i < sizeof figures / sizeof *figures; i++)
        assert_non_null(strstr(page, figures[i]));
    assert_non_null(strstr(page, figures[0]));
    assert_null(strstr(page, "<script"));
    assert_non_null(strstr(page, "&lt;script&gt;alert(&quot;x&quot;) &amp; `date` "));
    assert_null(strchr(page, '\a'));
    assert_null(strstr(page, "nan"));
    assert_null(strstr(page, "inf\""));
    static const char *const from_elsewhere[] = {"http://", "https://", " src=", "url(", "@import", "<link"};
    for (size_t i = 0; i < sizeof from_elsewhere / sizeof *from_elsewhere; i++)
        assert_null(strstr(page, from_elsewhere[i]));
    free(page);
    release(&folder);
}

static void test_report__no_name_breaks_out_of_a_markdown_table(void **state)
{
    struct bench_folder folder = {.command = "tandem bench --stop 'a\\n# b'", .lossless = 1};
    char *page;

    (void)state;
    compute(&folder);
    json_object_set_new(json_object_get(run.json, "target"), "path", json_string("/m/a|b\n<script>"));
    run.placement[0].line = "mpirun '/m/a\n\n<script>'";
    page = written(page_md_write);
    assert_non_null(strstr(page, "\n| target | /m/a\\|b &lt;script&gt;, L, 100 parameters |\n"));
    assert_non_null(strstr(page, "| best K with v and wire |")); /* no such K need have been measured */
    assert_non_null(strstr(page, "\n    tandem bench --stop 'a # b'\n"));
    assert_non_null(strstr(page, "\n    mpirun '/m/a  <script>'\n")); /* in a block of code a tag is none */
    assert_null(strstr(page, "\n<script"));
    free(page);
    release(&folder);
}

static void test_report__two_placements_stand_side_by_side(void **state)
{
    struct bench_folder folder = {.command = "c", .lossless = 1};
    char *text, *page;

    (void)state;
    compute(&folder);
    run.placement[1] = run.placement[0];
    run.placement[1].name = "other-node";
    memcpy(&all[1], &all[0], sizeof *all);
    all[1].cell[1].phase_us[ROUND_WIRE] = 123.4;
    run.placements = 2;
    text = written(page_md_write);
    page = written(page_html_write);
    run.placements = 1; /* what is borrowed is given back once */
    assert_non_null(strstr(text, "# What the network costs"));
    assert_non_null(strstr(text, "123.4"));
    assert_non_null(strstr(page, "<h2>other-node</h2>"));
    check_tags(page);
    free(text);
    free(page);
    release(&folder);
}

static void test_report__drawn_verdicts_are_marked_everywhere(void **state)
{
    struct bench_folder folder = {.command = "c", .lossless = 0};
    char *page, *text;
    json_t *summary;

    (void)state;
    compute(&folder);
    page = written(page_html_write);
    text = written(page_md_write);
    summary = summary_make(&run, all);
    assert_non_null(strstr(page, "NOT LOSSLESS"));
    assert_non_null(strstr(text, "NOT LOSSLESS"));
    assert_true(json_is_false(json_object_get(summary, "lossless")));
    assert_true(json_number_value(json_object_get(summary, "synthetic_acceptance")) == 0.8);
    json_decref(summary);
    free(page);
    free(text);
    release(&folder);
}

static void test_report__summary_has_vllms_names(void **state)
{
    static const char *const names[] = {"mean_ttft_ms", "median_tpot_ms", "p99_itl_ms", "std_e2el_ms", "output_throughput", "request_throughput",
                                        "total_token_throughput", "total_input_tokens", "spec_decode_acceptance_rate",
                                        "spec_decode_acceptance_length", "spec_decode_num_drafts", "spec_decode_draft_tokens",
                                        "spec_decode_accepted_tokens", "spec_decode_per_position_acceptance_rates"};
    struct bench_folder folder = {.command = "c", .lossless = 1};
    json_t *summary, *cell;

    (void)state;
    compute(&folder);
    summary = summary_make(&run, all);
    cell = summary_of_two(summary);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_non_null(json_object_get(cell, names[i]));
    /* 3 of 6 drafts, in 3 rounds of 2 repetitions; percent, as vLLM has it, and the verified token counts */
    assert_true(near(json_number_value(json_object_get(cell, "spec_decode_acceptance_rate")), 50));
    assert_true(near(json_number_value(json_object_get(cell, "spec_decode_acceptance_length")), 2));
    assert_true(near(json_number_value(json_object_get(cell, "spec_decode_num_drafts")), 6));
    assert_true(near(json_number_value(json_array_get(json_object_get(cell, "spec_decode_per_position_acceptance_rates"), 1)), 1 / 3.0));
    json_decref(summary);
    release(&folder);
}

/* One track for each rank, and each arrow has a begin and an end. */
static void test_report__the_timeline_is_json_with_flows(void **state)
{
    struct bench_folder folder = {.command = "c", .lossless = 1};
    int processes = 0, begun = 0, ended = 0, verify = 0;
    json_t *trace, *event;
    size_t at;
    char *text;

    (void)state;
    compute(&folder);
    text = written(trace_json_write);
    trace = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(trace);
    json_array_foreach (json_object_get(trace, "traceEvents"), at, event) {
        const char *ph = json_string_value(json_object_get(event, "ph")), *name = json_string_value(json_object_get(event, "name"));

        processes += *ph == 'M';
        begun += *ph == 's';
        ended += *ph == 'f';
        verify += *ph == 's' && strcmp(name, "verify") == 0;
        assert_true(*ph == 'M' || json_is_number(json_object_get(event, "ts")));
    }
    assert_int_equal(processes, 2);
    assert_int_equal(begun, ended);
    assert_int_equal(verify, 6); /* three rounds of two cells */
    assert_int_equal(begun, 6 + 6 + 4); /* proposals; commits, but not that of the last round */
    json_decref(trace);
    free(text);
    release(&folder);
}

static json_t *summary_of(double speed, double spread, const char *name)
{
    return json_pack("{s:b, s:[{s:s, s:[{s:s, s:b, s:i, s:f, s:f}]}]}", "lossless", 1, "placements", "name", "same-node", "cells", "name", name,
                     "solo", 1, "repetitions", 4, "output_throughput", speed, "output_throughput_spread", spread);
}

static void test_compare__tells_what_is_beyond_noise(void **state)
{
    static const struct {
        double before, after, spread;
        int worse;
        const char *verdict;
    } rows[] = {{100, 97, 0.02, 0, NULL},  {100, 80, 0.02, 1, "SLOWER"}, {100, 120, 0.02, 0, "faster"},
                {100, 80, 0.10, 0, NULL}, {100, 98, 0, 1, "SLOWER"},    {100, 99.5, 0, 0, NULL}};

    (void)state;
    assert_true(near(compare_bar(0.03, 4, 0.04, 4), 3 * 1.2533 * 0.025) && near(compare_bar(0, 1, 0, 1), 0.01));
    assert_true(near(compare_bar(0.03, 1, 0, 0), 3 * 1.2533 * 0.03));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *a = summary_of(rows[i].before, rows[i].spread, "T 0, solo"), *b = summary_of(rows[i].after, rows[i].spread, "T 0, solo");
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);

        assert_int_equal(compare_summaries(a, b, file), rows[i].worse);
        fclose(file);
        assert_int_equal(strstr(text, "SLOWER") != NULL, rows[i].verdict != NULL && strcmp(rows[i].verdict, "SLOWER") == 0);
        assert_int_equal(strstr(text, "faster") != NULL, rows[i].verdict != NULL && strcmp(rows[i].verdict, "faster") == 0);
        free(text);
        json_decref(a);
        json_decref(b);
    }
}

static void test_compare__cells_that_are_in_one_alone_are_counted(void **state)
{
    json_t *a = summary_of(100, 0, "T 0, solo"), *b = summary_of(50, 0, "T 1, solo");
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    (void)state;
    assert_int_equal(compare_summaries(a, b, file), 0);
    fclose(file);
    assert_non_null(strstr(text, "1 cells of A are not in B"));
    free(text);
    json_decref(a);
    json_decref(b);
}

static json_t *pair_of(double solo, double drafted)
{
    json_t *summary = summary_of(solo, 0.01, "T 0, solo");
    json_t *cells = json_object_get(json_array_get(json_object_get(summary, "placements"), 0), "cells");

    json_array_append_new(cells,
                          json_pack("{s:s, s:b, s:i, s:f, s:f, s:f, s:f}", "name", "T 0, K 4", "solo", 0, "repetitions", 4, "output_throughput",
                                    drafted, "output_throughput_spread", 0.01, "speedup", drafted / solo, "speedup_spread", 0.01));
    return summary;
}

/* Solo is the control: where it changed, so did the machine, and a drafted cell is worse where its speedup is. */
static void test_compare__solo_is_the_control(void **state)
{
    static const struct {
        double solo, drafted;
        int moved, worse;
    } rows[] = {{100, 200, 0, 0}, {80, 160, 1, 1}, {100, 160, 0, 2}, {80, 120, 1, 2}, {120, 200, 1, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *a = pair_of(100, 200), *b = pair_of(rows[i].solo, rows[i].drafted);
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);

        assert_int_equal(compare_summaries(a, b, file), rows[i].worse);
        fclose(file);
        assert_int_equal(strncmp(text, "Control: same-node, T 0, solo, changed by ", 42) == 0, rows[i].moved);
        assert_int_equal(strstr(text, "by speedup") != NULL, rows[i].moved);
        free(text);
        json_decref(a);
        json_decref(b);
    }
}

/* FOLDER/summary.json of these fields, whose quotes are single, and of a placement without cells. */
static void write_summary_of(const char *folder, const char *fields)
{
    char line[256], file[128];
    json_t *summary;

    snprintf(line, sizeof line, "{%s, 'placements': [{'name': 'p', 'ranks': [], 'cells': []}]}", fields);
    for (char *at = line; *at != '\0'; at++)
        *at = *at == '\'' ? '"' : *at;
    summary = json_loads(line, 0, NULL);
    assert_non_null(summary);
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(file, sizeof file, "%s/summary.json", folder);
    assert_int_equal(json_dump_file(summary, file, 0), 0);
    json_decref(summary);
}

static void remove_summary(const char *folder)
{
    char file[128];

    snprintf(file, sizeof file, "%s/summary.json", folder);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void assert_heads(const char *a, const char *b, const char *expected)
{
    char folder[] = "/tmp/test_compare_XXXXXX", first[64], second[64], *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    int code = -1;

    assert_non_null(mkdtemp(folder));
    snprintf(first, sizeof first, "%s/a", folder);
    snprintf(second, sizeof second, "%s/b", folder);
    write_summary_of(first, a);
    write_summary_of(second, b);
    assert_int_equal(compare_runs(first, second, to, &code), STATUS_OK);
    fclose(to);
    assert_int_equal(code, 0);
    if (strstr(text, expected) == NULL)
        fail_msg("expected '%s' in '%s'", expected, text);
    free(text);
    remove_summary(first);
    remove_summary(second);
    assert_int_equal(rmdir(folder), 0);
}

/* What two folders say of themselves, and what of that stands at the head. */
static void test_compare__heads_with_what_differs(void **state)
{
    (void)state;
    assert_heads("'tandem': '1', 'machine': {'host': 'x', 'cores': 8}", "'tandem': '1', 'machine': {'host': 'x', 'cores': 8}",
                 "What differs in configuration:\n  nothing\n\n");
    assert_heads("'tandem': '1', 'machine': {'host': 'x'}", "'tandem': '2', 'machine': {'host': 'y'}",
                 "What differs in configuration:\n  tandem                   A \"1\", B \"2\"\n  host                     A \"x\", B \"y\"\n\n");
    assert_heads("'max_tokens': 64, 'target': {'context': 512}", "'max_tokens': 64",
                 "What differs in configuration:\n  context                  A 512, B nothing\n\n");
    assert_heads("'lossless': false, 'synthetic_acceptance': 0.8", "'lossless': true, 'synthetic_acceptance': 0.8",
                 "What differs in configuration:\n  lossless                 A false, B true\nNOT LOSSLESS: verdicts were drawn with rate 0.8 "
                 "(--synthetic-acceptance), so times and messages are real and the text follows no model.\n\n");
    assert_heads("'lossless': true, 'synthetic_acceptance': -1.0", "'lossless': false, 'synthetic_acceptance': -1.0",
                 "What differs in configuration:\n  lossless                 A true, B false\n"
                 "NOT LOSSLESS: a rule of --accepts does not keep the target's distribution.\n\n");
}

/* A folder with such predictions, read. */
static void open_predicted(struct bench_folder *folder, const char *prediction)
{
    bench_folder_make(folder);
    bench_folder_spoil(folder, "prediction.json", prediction);
    assert_int_equal(run_read(folder->path, &run), STATUS_OK);
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("expected '%s' in '%s'", part, text);
}

/* Predictions are what prediction.json says, whatever was measured: the page has both, and names what failed. */
static void test_report__a_prediction_stands_beside_what_was_measured(void **state)
{
    static const char prediction[] =
        "{\"calibration\": {\"prompts\": \"every second <prompt>\"}, \"placements\": [{\"name\": \"same-node\", \"cells\": ["
        "{\"cell\": 0, \"draft_length\": 0, \"tokens_per_second\": 2400.0, \"speedup\": 1.0, \"tokens_per_round\": 1.0, \"round_us\": 400.0, "
        "\"verify_us\": 390.0, \"wait_us\": 0.0, \"rest_us\": 10.0, \"outside_us\": 100.0, \"cold_wait_us\": 0.0, \"hit_rate\": 0.0, \"alpha\": "
        "-1.0, \"overlap\": -1.0},"
        "{\"cell\": 1, \"draft_length\": 2, \"tokens_per_second\": 4200.0, \"speedup\": 1.75, \"tokens_per_round\": 2.0, \"round_us\": 450.0, "
        "\"verify_us\": 280.0, \"wait_us\": 150.0, \"rest_us\": 20.0, \"outside_us\": 100.0, \"cold_wait_us\": 150.0, \"hit_rate\": 0.3, "
        "\"hits_after\": [0.25, 0.1, 0.9], \"alpha\": 0.65, \"overlap\": 0.625}]}]}";
    struct bench_folder folder = {.command = "c", .lossless = 1};
    char *page, *html;
    json_t *summary, *cell;

    (void)state;
    open_predicted(&folder, prediction);
    assert_int_equal(measured_compute(&run, all), STATUS_OK);
    page = written(page_md_write);
    html = written(page_html_write);
    summary = summary_make(&run, all);
    cell = json_object_get(summary_of_two(summary), "predicted_before");
    assert_non_null(
        strstr(page, "tokens/s within 10 % for 0 of 1 cells with drafts (0 %), the farthest off by 24.8 %; their speedups over solo for 0 of 1; "
                     "solo cells 1 of 1. Calibrated on every second &lt;prompt&gt;."));
    assert_non_null(strstr(page, "T 0, K 2: -24.8 % (v: the verifying step took 430 us, 280 predicted)."));
    assert_has(page, "The fastest of each group: T 0, K 2, 1.32x.");
    assert_non_null(strstr(page, "## Predicted, then measured"));
    assert_non_null(strstr(html, "Predicted, then measured"));
    assert_true(near(json_number_value(json_object_get(cell, "output_throughput")), 4200));
    assert_true(near(json_number_value(json_object_get(cell, "measured_over_predicted")), 6 / 1.9e-3 / 4200));
    assert_null(
        json_object_get(json_array_get(json_object_get(json_array_get(json_object_get(summary, "placements"), 0), "cells"), 2), "predicted_before"));
    free(page);
    all[0].cell[1].speedup = 1.01;
    all[0].cell[2].speedup = 0.9;
    all[0].cell[1].speedup_error = 0.01; /* it may be less than 1 */
    page = written(page_md_write);
    assert_has(page, "The fastest of each group: T 0, solo (K 2 1.01x).");
    json_decref(summary);
    free(page);
    free(html);
    release(&folder);
}

/* Of a round that follows accepted drafts the proposal was there each time, of one behind a rejection never. */
static void test_report__hits_stand_by_what_came_before_them(void **state)
{
    static const char prediction[] =
        "{\"calibration\": {\"prompts\": \"p\"}, \"placements\": [{\"name\": \"same-node\", \"cells\": [{\"cell\": 1, \"draft_length\": 2, "
        "\"tokens_per_second\": 4200.0, \"hit_rate\": 0.3, \"hits_after\": [0.25, 0.1, 0.9]}]}]}";
    struct bench_folder folder = {.command = "c", .lossless = 1};
    json_t *summary, *ahead, *cells;
    char *page, *html, *trace;

    (void)state;
    open_predicted(&folder, prediction);
    assert_int_equal(measured_compute(&run, all), STATUS_OK);
    page = written(page_md_write);
    html = written(page_html_write);
    trace = written(trace_json_write);
    summary = summary_make(&run, all);
    cells = json_object_get(json_array_get(json_object_get(summary, "placements"), 0), "cells");
    ahead = json_object_get(json_array_get(cells, 1), "run_ahead");
    assert_has(page, "| 33 % (30) of 6 | 100 % (90) of 2 | 0 % (25) of 2 ");
    assert_has(page, "| 33 % of 6      | 100 % of 2      | 0 % of 2 "); /* of the chosen length nothing was predicted */
    assert_has(html, "<td class=\"text\">100 % (90) of 2</td>");
    assert_has(trace, "\"sequences\":1,\"proposals\":1,\"drafted ahead\":1}");
    assert_has(trace, "\"sequences\":1,\"proposals\":1,\"drafted ahead\":0}");
    assert_true(near(json_number_value(json_object_get(json_object_get(ahead, "all_accepted"), "hit_rate")), 1));
    assert_true(near(json_number_value(json_object_get(json_object_get(ahead, "all_accepted"), "predicted")), 0.9));
    assert_int_equal(json_array_size(json_object_get(ahead, "rejected")), 1);
    ahead = json_object_get(json_object_get(json_array_get(cells, 2), "run_ahead"), "all");
    assert_true(near(json_number_value(json_object_get(ahead, "hit_rate")), 1 / 3.0) && json_is_null(json_object_get(ahead, "predicted")));
    json_decref(summary);
    free(page);
    free(html);
    free(trace);
    release(&folder);
}

/* A lead that did not draft is told of, and not the acceptance of the drafts that it did not make; passes without drafts say nothing of p and q. */
static void test_report__where_nothing_was_drafted_no_draft_is_to_blame(void **state)
{
    static const char prediction[] = "{\"calibration\": {\"prompts\": \"p\"}, \"placements\": [{\"name\": \"same-node\", \"cells\": [{\"cell\": 2, "
                                     "\"draft_length\": 2, \"tokens_per_second\": 9000.0, \"tokens_per_round\": 2.0, \"round_us\": 300.0}]}]}";
    struct bench_folder folder = {.command = "c", .lossless = 1};
    char *page;

    (void)state;
    open_predicted(&folder, prediction);
    for (int i = 0; i < run.placement[0].passes; i++) {
        struct run_pass *pass = &run.placement[0].pass[i];

        if (pass->cell != 2)
            continue;
        pass->hits.rounds = pass->repetition; /* of 3 */
        if (pass->repetition == 0) {
            memset(pass->tested, 0, sizeof pass->tested);
            pass->overlap = 0;
        }
    }
    assert_int_equal(measured_compute(&run, all), STATUS_OK);
    assert_true(near(all[0].cell[2].alpha_overlap, 0.6));
    page = written(page_md_write);
    assert_has(page, "(the lead drafted in 17 % of rounds, which 2 drafts were predicted to be faster than)");
    assert_has(page, "| seldom drafted");
    free(page);
    release(&folder);
}

/* Where target and draft share noise a draft stands where both draw the same: the match rate is counted, and D_LK is what p and q say elsewhere. */
static void test_report__a_match_rate_is_no_distance(void **state)
{
    static const char prediction[] = "{\"placements\": [{\"name\": \"same-node\", \"cells\": [{\"cell\": 1, \"tokens_per_second\": 1.0, "
                                     "\"alpha\": 0.65, \"overlap\": 0.695}]}]}";
    json_t *cells, *summary, *theory;

    (void)state;
    for (int told = 0; told < 2; told++) {
        struct bench_folder folder = {.command = "c", .lossless = 1};

        bench_folder_make(&folder);
        if (told)
            bench_folder_spoil(&folder, "prediction.json", prediction);
        assert_int_equal(run_read(folder.path, &run), STATUS_OK);
        for (int i = 0; i < run.cells; i++) {
            run.cell[i].temperature = 1;
            run.cell[i].accept = "coupled";
        }
        assert_int_equal(measured_compute(&run, all), STATUS_OK);
        summary = summary_make(&run, all);
        cells = json_object_get(json_array_get(json_object_get(summary, "placements"), 0), "cells");
        theory = json_object_get(json_array_get(cells, 1), "theory");
        assert_true(json_is_null(json_object_get(theory, "alpha_mean_sum_min_p_q")));
        assert_int_equal(json_is_null(json_object_get(theory, "d_lk")), !told);
        assert_true(!told || near(json_number_value(json_object_get(theory, "d_lk")), 0.305));
        assert_true(near(json_number_value(json_object_get(theory, "alpha")), 0.6));
        json_decref(summary);
        release(&folder);
    }
}

/* Rounds that miss their account by more with each draft are not noisy; rounds that miss it now by this, now by that, are. */
static void test_report__what_grows_with_the_draft_length_is_no_noise(void **state)
{
    static const double misses[][3] = {{0.85, 0.75, 0.65}, {0.75, 0.85, 0.65}, {0.85, 1.2, 0.65}};

    (void)state;
    for (int m = 0; m < 3; m++) {
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);

        memset(&run, 0, sizeof run);
        run.cells = 3;
        for (int i = 0; i < 3; i++) {
            run.cell[i] = (struct run_cell){.draft_length = 2 << i, .accept = "rejection", .sequences = 1};
            all[0].cell[i] = (struct measured){
                .speedup = misses[m][i], .improvement_measured = 1, .by_tokens = 1, .by_round = misses[m][i], .by_outside = 1, .by_noise = 1};
        }
        page_md_verdict(&run, all, TABLE_TEXT, file);
        fclose(file);
        assert_int_equal(strstr(text, "noise, or waking up") != NULL, m > 0);
        assert_int_equal(strstr(text, "the more so the more is drafted") != NULL, m == 0);
        free(text);
    }
    memset(&run, 0, sizeof run);
    memset(all[0].cell, 0, 3 * sizeof all[0].cell[0]);
}

/* A folder in which one file is spoiled: the status, and a line that names it. */
static void refuse(const char *name, const char *text, enum status expected, const char *said)
{
    struct bench_folder folder = {.command = "c", .lossless = 1};
    struct capture capture;
    enum status status;
    char line[4096];

    bench_folder_make(&folder);
    bench_folder_spoil(&folder, name, text);
    capture_begin(&capture);
    status = run_read(folder.path, &run);
    capture_end(&capture, line, sizeof line);
    assert_int_equal(status, expected);
    capture_assert_one_line(line, said);
    run_release(&run);
    bench_folder_remove(&folder);
}

#define A_CELL(sequences)                                                                                                                            \
    "{\"solo\":true,\"draft_length\":0,\"temperature\":0.0,\"accept\":\"rejection\",\"sequences\":" #sequences ",\"baseline\":0}"

/* The line of a pass that began at that time, with those requests. */
#define A_PASS(start, requests)                                                                                                                      \
    "{\"cell\":0,\"repetition\":0,\"warm_up\":false,\"start_ns\":" #start ",\"wall_ns\":1,\"tokens\":1,\"rounds\":1,\"steps\":1,\"drafted\":0,"      \
    "\"accepted\":0,\"full_rounds\":0,\"full_tokens\":0,\"fallback_rounds\":0,\"mean_sum_min_p_q\":0.0,\"tested\":[],\"accepted_at\":[],"            \
    "\"ends\":[" requests "]}"

static void test_report__what_is_wrong_is_told_with_its_file(void **state)
{
    (void)state;
    refuse("bench.json", "{", STATUS_DATA, "bench.json: not valid JSON");
    refuse("bench.json", "{}", STATUS_DATA, "bench.json: there is no \"tandem_bench\", expected a folder of tandem bench");
    refuse("bench.json", "{\"tandem_bench\":2}", STATUS_DATA, "bench.json: it is of version 2, expected 1");
    refuse("bench.json", "{\"tandem_bench\":1}", STATUS_DATA, "bench.json: there are no cells");
    refuse("bench.json", "{\"tandem_bench\":1,\"cells\":[{\"solo\":true}]}", STATUS_DATA, "bench.json: a cell is not one");
    refuse("bench.json", "{\"tandem_bench\":1,\"cells\":[" A_CELL(2147483647) "]}", STATUS_DATA, "bench.json: a cell is not one");
    refuse("raw/same-node/clocks.csv", NULL, STATUS_NOINPUT, "raw/same-node was not measured to its end, so there is nothing to report");
    refuse("raw/same-node/passes.jsonl", "{}\n", STATUS_DATA, "passes.jsonl: no pass was measured");
    refuse("raw/same-node/passes.jsonl", "{}\n{\"cell\":99}\n", STATUS_DATA, "passes.jsonl: a pass is not one");
    refuse("raw/same-node/passes.jsonl", "{}\n{]\n", STATUS_DATA, "passes.jsonl:2: not valid JSON");
    refuse("raw/same-node/rank-0000.csv", "# rank 0\nnonsense\n", STATUS_DATA, "rank-0000.csv:2: no span");
    refuse("raw/same-node/rank-0001.csv", "draft,1,2,3,4,5,6\n", STATUS_DATA, "rank-0001.csv:1: no span");
    refuse("raw/same-node/rank-0000.csv", "verify,1,2,3,4,5,6,7", STATUS_DATA, "rank-0000.csv: it ends within a line");
    refuse("raw/same-node/rank-0000.csv", "verify,2,1,2,3,4,5,6\n", STATUS_DATA, "rank-0000.csv:1: no span");
    refuse("raw/same-node/rank-0000.csv", "verify,1,9223372036854775807,2,3,4,5,6\n", STATUS_DATA, "rank-0000.csv:1: no span");
    refuse("raw/same-node/rank-0001.csv", "broadcast,1,2,0,5,2147483647,0,0\n", STATUS_DATA, "rank-0001.csv:1: no span"); /* a list of them: 8 GB */
    refuse("raw/same-node/clocks.csv", "", STATUS_DATA, "clocks.csv:2: expected when,rank,measured,offset_ns,round_trip_ns, 2 whole lines before");
    refuse("raw/same-node/clocks.csv", "\nbefore,0,1,0,4000\nbefore,1,1,0,0\nafter,0,1,0,4000\nafter,1,1,0,", STATUS_DATA, "clocks.csv:5: expected");
    refuse("raw/same-node/clocks.csv", "\nbefore,0,1,0,4000\nbefore,1,1,0,0\n", STATUS_DATA, "clocks.csv:4: expected");
    refuse("raw/same-node/clocks.csv", "\nbefore,2,1,0,4000\n", STATUS_DATA, "clocks.csv:2: expected");
    refuse("raw/same-node/clocks.csv", "\nbefore,0,1,9223372036854775807,4000\n", STATUS_DATA, "clocks.csv:2: expected");
    refuse("raw/same-node/passes.jsonl", "{}\n" A_PASS(0, "") "\n", STATUS_DATA, "passes.jsonl: a pass has no requests");
    refuse("raw/same-node/passes.jsonl", "{}\n" A_PASS(0, "[5,4,6,1,1,\"00\"]") "\n", STATUS_DATA, "passes.jsonl: a request of a pass is not one");
    refuse("raw/same-node/passes.jsonl", "{}\n" A_PASS(-1, "[4,5,6,1,1,\"00\"]") "\n", STATUS_DATA, "passes.jsonl: a pass is not one");
    refuse("raw/same-node/latency.jsonl", "x\n", STATUS_DATA, "latency.jsonl:1: not valid JSON");
}

/* Numbers that no request of a pass has, as a damaged trace or a pass that failed in the middle may hold: no memory beyond the passes is read. */
static void test_report__a_commit_of_no_request_opens_none(void **state)
{
    struct bench_folder folder = {.command = "c", .lossless = 1};

    (void)state;
    bench_folder_make(&folder);
    bench_folder_spoil(&folder, "raw/same-node/rank-0001.csv",
                       "broadcast,900000,999000,4294967295,5,1,0,0\nbroadcast,900000,999000,1,5,1,0,0\nround,900000,1000000,0,0,1,0,0\n");
    assert_int_equal(run_read(folder.path, &run), STATUS_OK);
    run.placement[0].pass[0].start_ns = 0;
    assert_int_equal(measured_compute(&run, all), STATUS_OK);
    assert_int_equal(all[0].rounds.count, 1);
    assert_false(all[0].rounds.round[0].opens);
    release(&folder);
}

static void test_report__what_is_missing_is_told(void **state)
{
    struct capture capture;
    char line[1024];

    (void)state;
    capture_begin(&capture);
    assert_int_equal(run_read("/nowhere", &run), STATUS_NOINPUT);
    capture_end(&capture, line, sizeof line);
    capture_assert_one_line(line, "/nowhere/bench.json");
    run_release(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report__speeds_are_tokens_over_time),
        cmocka_unit_test(test_report__arrivals_are_rounds_and_most_gaps_of_tokens_are_none),
        cmocka_unit_test(test_report__phases_of_rounds_add_up),
        cmocka_unit_test(test_report__an_offset_that_is_off_loses_no_proposal),
        cmocka_unit_test(test_report__a_proposal_of_the_next_pass_is_not_taken_for_one_of_this),
        cmocka_unit_test(test_report__times_of_a_rank_add_up_to_its_passes),
        cmocka_unit_test(test_report__passes_beyond_a_full_trace_are_left_out),
        cmocka_unit_test(test_report__lost_spans_change_no_rate),
        cmocka_unit_test(test_report__theory_stands_beside_it),
        cmocka_unit_test(test_report__noise_is_what_repetitions_differ_by),
        cmocka_unit_test(test_report__noisy_figures_are_marked_and_no_headline),
        cmocka_unit_test(test_report__the_page_is_whole_and_escapes_what_it_is_told),
        cmocka_unit_test(test_report__no_name_breaks_out_of_a_markdown_table),
        cmocka_unit_test(test_report__two_placements_stand_side_by_side),
        cmocka_unit_test(test_report__drawn_verdicts_are_marked_everywhere),
        cmocka_unit_test(test_report__summary_has_vllms_names),
        cmocka_unit_test(test_report__the_timeline_is_json_with_flows),
        cmocka_unit_test(test_compare__tells_what_is_beyond_noise),
        cmocka_unit_test(test_compare__solo_is_the_control),
        cmocka_unit_test(test_compare__heads_with_what_differs),
        cmocka_unit_test(test_report__a_prediction_stands_beside_what_was_measured),
        cmocka_unit_test(test_report__hits_stand_by_what_came_before_them),
        cmocka_unit_test(test_report__where_nothing_was_drafted_no_draft_is_to_blame),
        cmocka_unit_test(test_report__a_match_rate_is_no_distance),
        cmocka_unit_test(test_report__what_grows_with_the_draft_length_is_no_noise),
        cmocka_unit_test(test_compare__cells_that_are_in_one_alone_are_counted),
        cmocka_unit_test(test_report__what_is_wrong_is_told_with_its_file),
        cmocka_unit_test(test_report__a_commit_of_no_request_opens_none),
        cmocka_unit_test(test_report__what_is_missing_is_told),
    };
    int failed;

    all = calloc(RUN_MOST_PLACEMENTS, sizeof *all);
    if (all == NULL)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(all);
    return failed;
}
