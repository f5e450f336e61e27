/* tandem-report: `tandem report`. Writes the report of a bench's folder into it, or compares two of them. */
#include "common/base/log.h"
#include "common/base/new_file.h"
#include "common/base/standard_output.h"
#include "common/base/try.h"
#include "common/base/visible.h"
#include "common/base/wrapped.h"
#include "common/file/json_text.h"
#include "launch/bench/report/compare.h"
#include "launch/bench/report/forecast_file.h"
#include "launch/bench/report/measured.h"
#include "launch/bench/report/page_html.h"
#include "launch/bench/report/page_md.h"
#include "launch/bench/report/set.h"
#include "launch/bench/report/summary.h"
#include "launch/bench/report/table.h"
#include "launch/bench/report/trace_json.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CODE_NOISY = 1 };

static const char usage[] =
    "Usage: tandem report [OPTION]... DIR | A B\n\n"
    "  DIR                    write the report of a folder of tandem bench anew\n"
    "  A B                    compare two of them: what changed by more than both spread\n\n"
    "  --noise-limit P        percent of standard error beyond which a speedup is marked; default: as the bench was told\n"
    "  --timeline-rounds N    rounds of each cell in trace.json; default 40\n"
    "  --predict DIR          write DIR/prediction.json from its calibration, as tandem bench does before it measures\n\n"
    "Exit codes: 0 done; 1 the run was too noisy for a headline, or B is slower than A somewhere; 64 usage; 65 a file is not what it should be; "
    "66 a file is missing; 74 I/O.\n";

/* A file of the report. It takes its name when it is whole: on a full disk an earlier one stays as it is. */
struct page {
    char path[PATH_MAX], begun[PATH_MAX];
    FILE *file;
};

static enum status failed_at(const char *path)
{
    log_error("%s: %s", path, strerror(errno));
    return STATUS_IO;
}

/* FOLDER/NAME */
static enum status open_page(const char *folder, const char *name, struct page *page)
{
    snprintf(page->path, sizeof page->path, "%.4000s/%s", folder, name);
    snprintf(page->begun, sizeof page->begun, "%.4000s/%s.new", folder, name);
    page->file = new_file_open(page->begun, page->path, 0666);
    return page->file != NULL ? STATUS_OK : failed_at(page->path);
}

static enum status close_page(struct page *page)
{
    return new_file_put(page->file, !ferror(page->file), page->begun, page->path) ? STATUS_OK : failed_at(page->path);
}

static enum status write_page(const char *folder, const char *name, const struct run *run, const struct measured_placement *all,
                              void (*write)(const struct run *, const struct measured_placement *, FILE *))
{
    struct page page = {.file = NULL};

    TRY(open_page(folder, name, &page));
    write(run, all, page.file);
    return close_page(&page);
}

static enum status write_summary(const char *folder, const struct run *run, const struct measured_placement *all)
{
    json_t *summary = summary_make(run, all);
    char *text = json_text_write(summary, JSON_INDENT(1) | JSON_REAL_PRECISION(7));
    enum status status = STATUS_INTERNAL;
    struct page page = {.file = NULL};

    json_decref(summary);
    if (text == NULL) {
        log_error("no memory for the summary");
        return status;
    }
    status = open_page(folder, "summary.json", &page);
    if (status == STATUS_OK) {
        fprintf(page.file, "%s\n", text);
        status = close_page(&page);
    }
    free(text);
    return status;
}

static void write_rounds(const struct run *run, const struct measured_placement *all, FILE *to)
{
    for (int p = 0; p < run->placements; p++)
        rounds_write(run, &run->placement[p], &all[p].rounds, p == 0, to);
}

static void show(const struct run *run, const struct measured_placement *all, const char *folder, FILE *to)
{
    char loss[RUN_LOSS];

    for (int p = 0; p < run->placements; p++) {
        fprintf(to, "%s\n\n", run->placement[p].name);
        table_speed(run, &all[p], TABLE_TEXT, to);
        page_md_verdict(run, &all[p], TABLE_TEXT, to);
    }
    if (*run_loss(run->json, loss) != '\0')
        fprintf(to, "NOT LOSSLESS: %s.\n\n", loss);
    fprintf(to, "report: %s/report.md, %s/report.html\n", folder, folder);
}

static enum status report(const char *folder, double limit, double rounds, FILE *to, int *code)
{
    static struct run run;
    struct measured_placement *all = calloc(RUN_MOST_PLACEMENTS, sizeof *all);
    enum status status = STATUS_INTERNAL;

    if (all == NULL)
        return status;
    TRY_TO(run_read(folder, &run), release);
    run.timeline_rounds = (int)rounds;
    TRY_TO(measured_compute(&run, all), release);
    if (limit >= 0 && json_object_set_new(run.json, "noise_limit", json_real(limit)) != 0)
        TRY_TO(STATUS_INTERNAL, release);
    TRY_TO(write_summary(folder, &run, all), release);
    TRY_TO(write_page(folder, "report.md", &run, all, page_md_write), release);
    TRY_TO(write_page(folder, "report.html", &run, all, page_html_write), release);
    TRY_TO(write_page(folder, "rounds.csv", &run, all, write_rounds), release);
    TRY_TO(write_page(folder, "trace.json", &run, all, trace_json_write), release);
    show(&run, all, folder, to);
    for (int p = 0; p < run.placements; p++) {
        struct measured_noise noise = measured_noise(&run, &all[p], 1);

        if (measured_withholds(&noise))
            *code = CODE_NOISY;
    }
release:
    measured_release(&run, all);
    run_release(&run);
    free(all);
    return status;
}

static enum status write_set_page(const char *folder, const char *name, const struct set *set, void (*write)(const struct set *, FILE *))
{
    struct page page = {.file = NULL};

    TRY(open_page(folder, name, &page));
    write(set, page.file);
    return close_page(&page);
}

/* Its parts anew, without a word of each, then what they have together. */
static enum status report_set(const char *folder, double limit, double rounds, FILE *to, int *code)
{
    static struct set set;
    char part[PATH_MAX];
    FILE *nowhere = fopen("/dev/null", "w");
    enum status status = nowhere != NULL ? STATUS_OK : failed_at("/dev/null");

    TRY(status);
    TRY_TO(set_open(folder, &set), release);
    for (int i = 0; i < set.parts; i++) {
        snprintf(part, sizeof part, "%.3000s/%.200s", folder, set_part(&set, i));
        TRY_TO(report(part, limit, rounds, nowhere, code), release);
    }
    TRY_TO(set_read(folder, &set), release);
    TRY_TO(write_set_page(folder, "summary.json", &set, set_write_json), release);
    TRY_TO(write_set_page(folder, "report.md", &set, set_write_md), release);
    TRY_TO(write_set_page(folder, "report.html", &set, set_write_html), release);
    set_write_tables(&set, TABLE_TEXT, to);
    fprintf(to, "report: %s/report.md, %s/report.html\n", folder, folder);
release:
    fclose(nowhere);
    set_release(&set);
    return status;
}

/* What is said of one folder or of two. It quotes files, which somebody else may have written: a terminal shows what it would obey. */
static enum status tell(const char *const folder[2], double limit, double rounds, int *code)
{
    char *told = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&told, &size);
    enum status status;

    if (to == NULL) {
        log_error("no memory for what is to be said");
        return STATUS_INTERNAL;
    }
    if (folder[1] != NULL)
        status = compare_runs(folder[0], folder[1], to, code);
    else
        status = (set_is_one(folder[0]) ? report_set : report)(folder[0], limit, rounds, to, code);
    if (fclose(to) == 0 && isatty(STDOUT_FILENO))
        visible_put(told, size, "\n", stdout);
    else
        fwrite(told, 1, size, stdout);
    free(told);
    return status;
}

int main(int argc, char **argv)
{
    const char *folder[2] = {NULL, NULL}, *predicted = NULL;
    double limit = -1, rounds = 0;
    int folders = 0, code = 0;
    enum status status;

    log_init("tandem report", LOG_INFO);
    for (int i = 1; i < argc; i++) {
        char *end;

        if (strcmp(argv[i], "--help") == 0) {
            wrapped_put_help(stdout, usage);
            return standard_output_end(0);
        }
        if ((strcmp(argv[i], "--noise-limit") == 0 || strcmp(argv[i], "--timeline-rounds") == 0) && i + 1 < argc) {
            const char *name = argv[i++];
            double value = strtod(argv[i], &end);

            if (end == argv[i] || *end != '\0' || !(value >= 0 && value <= 1e6)) {
                log_error("%s is '%s', expected a number from 0 to 1000000", name, argv[i]);
                return STATUS_USAGE;
            }
            *(strcmp(name, "--noise-limit") == 0 ? &limit : &rounds) = strcmp(name, "--noise-limit") == 0 ? value / 100 : value;
        } else if (strcmp(argv[i], "--predict") == 0 && i + 1 < argc) {
            predicted = argv[++i];
        } else if (strncmp(argv[i], "--", 2) == 0 || folders == 2) {
            log_error("unexpected argument '%s', expected one or two folders of tandem bench, --noise-limit P, --timeline-rounds N",
                      argv[i]);
            return STATUS_USAGE;
        } else {
            folder[folders++] = argv[i];
        }
    }
    if (predicted != NULL)
        return (int)forecast_make(predicted);
    if (folders == 0) {
        wrapped_put_help(stderr, usage);
        return STATUS_USAGE;
    }
    status = tell(folder, limit, rounds, &code);
    return standard_output_end(status != STATUS_OK ? (int)status : code);
}
