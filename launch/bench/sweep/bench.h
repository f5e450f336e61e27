/* A bench from its command line to its folder. It owns the folder that it makes, in which nothing of another run lies. For the files of the sweep
 * alone; what it starts are jobs of `tandem run`. */
#ifndef TANDEM_LAUNCH_BENCH_SWEEP_BENCH_H
#define TANDEM_LAUNCH_BENCH_SWEEP_BENCH_H

#include "common/options/options.h"
#include "launch/bench/sweep/placement.h"
#include "launch/bench/sweep/plan.h"
#include <limits.h>

struct bench {
    struct plan plan;
    const char *tandem; /* the launcher */
    const char *output;
    char made_output[PATH_MAX];
    char prompts[PATH_MAX];
    int argc; /* what is left for a run, the program's name first */
    char **argv;
    struct options run;
    struct placement placement[PLACEMENT_MOST];
    int placements;
    char text[PLACEMENT_MOST][5][PATH_MAX]; /* words of commands */
    char command[2048]; /* as it was given */
};

/* How it is called, on stdout. */
void bench_print_usage(void);
/* Takes the options of a sweep; what is left goes to a run, and is read as its options. STATUS_USAGE, STATUS_NOINPUT (a config), logged. */
enum status bench_read_arguments(struct bench *bench, int argc, char **argv);

/* Makes the folder, which must be new or empty, and writes its whole path to bench->output. STATUS_USAGE, STATUS_IO. */
enum status bench_open_output(struct bench *bench);
enum status bench_make_folder(const char *path);
/* Takes the object over. STATUS_IO. */
enum status bench_write_json(const char *folder, const char *name, json_t *object);

#endif
