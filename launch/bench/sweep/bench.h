/* A bench from its command line to its folder. It owns the folder that it makes, in which nothing of another run lies. For the files of the sweep
 * alone; what it starts are jobs of `tandem run`. */
#ifndef TANDEM_LAUNCH_BENCH_SWEEP_BENCH_H
#define TANDEM_LAUNCH_BENCH_SWEEP_BENCH_H

#include "common/options/options.h"
#include "launch/bench/sweep/child.h"
#include "launch/bench/sweep/placement.h"
#include "launch/bench/sweep/plan.h"
#include <limits.h>

enum { BENCH_TASKS = 16, BENCH_DRAFTS = 8, BENCH_TREES = 8, BENCH_ALPHAS = 8, BENCH_WORDS = 16, BENCH_NAME = 48 };

/* Prompts of one kind, by the name that the report has for them. */
struct bench_task {
    char name[BENCH_NAME];
    const char *file;
};

struct bench {
    struct plan plan;
    struct plan calibration; /* what is timed of the target alone, before */
    const char *tandem;      /* the launcher */
    const char *output;
    char made_output[PATH_MAX];
    char prompts[PATH_MAX];          /* those of the demonstration */
    const char *alpha[BENCH_ALPHAS]; /* files of tandem alpha, in place of texts of its own */
    int alphas;
    const char *split; /* where the calibrating prompts are from, for the report; NULL: nothing is predicted, as of drawn verdicts and trees */
    struct bench_task task[BENCH_TASKS];
    int tasks; /* 0: the prompts of the run */
    const char *draft[BENCH_DRAFTS];
    int drafts; /* 0: that of a config, or the embedded one */
    const char *tree[BENCH_TREES]; /* shapes of drafts */
    int trees;                     /* 0: that of a config, or chains */
    int argc;   /* what is left for a run, the program's name first; behind it there is room for a part's own words */
    char **argv;
    int part_argc;         /* with the words of the current part: what a run is told */
    struct options run;    /* of that part */
    const char *task_name; /* of that part, NULL: none was named */
    struct placement placement[PLACEMENT_MOST];
    int placements;
    char text[BENCH_WORDS][PATH_MAX]; /* words of the command in the making */
    char command[2048]; /* as it was given */
};

/* Parts: each task with each draft in each shape. 1 where nothing was given twice. */
int bench_parts(const struct bench *bench);
/* Makes a part the current one: bench->run, its words, its task and its plan. It gives back what was. STATUS_USAGE, STATUS_NOINPUT, STATUS_DATA,
 * logged. */
enum status bench_begin_part(struct bench *bench, int part);
/* The name of its folder.  name: [size] */
void bench_name_part(const struct bench *bench, int part, char *name, size_t size);
/* How it is called, on stdout. */
void bench_print_usage(void);
/* Takes the options of a sweep; what is left goes to a run, and is read as its options. STATUS_USAGE, STATUS_NOINPUT (a config), logged. */
enum status bench_read_arguments(struct bench *bench, int argc, char **argv);

/* The words that every job has: the launcher's, those of the command line, where the ranks are.  prompts: the file, where the command line names no
 * single prompt; lives as long as the words; NULL: none is added */
enum status bench_begin_words(const struct bench *bench, int placement, const char *prompts, struct child_words *words);
/* The job that measures a plan: raw/PLACEMENT below `folder` has its plan and takes what it writes. The words live in bench->text. */
enum status bench_sweep_words(struct bench *bench, int placement, const char *folder, const struct plan *plan, struct child_words *words);
/* Makes that folder, and writes the plan there. */
enum status bench_plan_job(const struct bench *bench, int placement, const char *folder, const struct plan *plan);
/* The program of that name beside this one, with the arguments that are not NULL; its stdout goes to the file `output`, or
 * is ours. */
enum status bench_run_program(const char *name, const char *first, const char *second, const char *output, int *code);

/* Deals the prompts out: as many as passes have are measured, every second one to begin with, and up to four times as many others calibrate; where
 * there is one alone it does both. bench->split says which. */
enum status bench_split_prompts(struct bench *bench);
/* Times and decodes what predictions are made from, on other prompts than are measured, and writes them. A part that fails says why, and costs the
 * prediction alone; one that was ended by a signal leaves its exit code in *ended. */
enum status bench_predict(struct bench *bench, int *ended);

/* Writes rounds.html: how the rounds of the first prompt are decided, by the longest proposals of the first terms. That it fails costs the page
 * alone; where it was ended by a signal, *ended is its exit code. */
void bench_show_rounds(struct bench *bench, int *ended);

/* Makes the folder, which must be new or empty, and writes its whole path to bench->output. STATUS_USAGE, STATUS_IO. */
enum status bench_open_output(struct bench *bench);
enum status bench_make_folder(const char *path);
/* Nothing was measured: takes away what a bench writes before, so that the same command, mended, finds the folder empty again. */
void bench_forget(const struct bench *bench);
/* Takes the object over. STATUS_IO. */
enum status bench_write_json(const char *folder, const char *name, json_t *object);

#endif
