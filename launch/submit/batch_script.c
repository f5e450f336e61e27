/* The shell of a batch job, behind its #SBATCH lines: files and options, the ranks, the wait for them, and what their end means. */
#include "launch/submit/batch_script.h"

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/shell_word.h"
#include "common/base/try.h"
#include "common/base/visible.h"
#include "common/options/options_table.h"
#include "launch/submit/batch_directives.h"
#include "launch/submit/launch_line.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "out.jsonl" is a stem and an ending; a dot in a folder's name or at the beginning of a name is none. */
static size_t stem_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path, *dot = strrchr(name, '.');

    return dot != NULL && dot != name ? (size_t)(dot - path) : strlen(path);
}

/* variable=FILE, or in an array a file of the task's own. */
static void write_file(const struct options *options, const char *variable, const char *path, FILE *to)
{
    size_t stem = stem_of(path);
    char *front = strndup(path, stem);

    if (options->slurm.parts > 0) {
        fprintf(to, "printf -v %s '%%s-%%05d-of-%%05d%%s' ", variable);
        shell_word_put(front != NULL ? front : path, to);
        fprintf(to, " \"$SLURM_ARRAY_TASK_ID\" %d ", options->slurm.parts);
        shell_word_put(path + stem, to);
    } else {
        fprintf(to, "%s=", variable);
        shell_word_put(options->slurm.draft_lengths != NULL && front != NULL ? front : path, to);
        if (options->slurm.draft_lengths != NULL) {
            fputs("-k\"$SLURM_ARRAY_TASK_ID\"", to);
            shell_word_put(path + stem, to);
        }
    }
    fputc('\n', to);
    free(front);
}

static void write_pair(void *state, const struct option_entry *entry, const char *value)
{
    FILE *to = state;

    if (entry->for_ranks != RANKS_ALWAYS)
        return;
    fprintf(to, "    --%s=", entry->name);
    shell_word_put(value, to);
    fputc('\n', to);
}

/* A file of options may be another one, or gone, when the job starts: the script has what it says now. It has been read without a fault. */
static void write_config(const struct launch_option *option, FILE *to)
{
    const char *path = option->value != NULL ? option->value : strchr(option->text, '=') + 1;

    fputs("    # of the file ", to);
    visible_put(path, strlen(path), "", to);
    fputc('\n', to);
    (void)option_show_config(path, write_pair, to);
}

static void write_options(const struct launch_ranks *ranks, int argc, char **argv, FILE *to)
{
    const struct options *options = ranks->options;
    struct launch_option option;

    fputs("options=(\n", to);
    for (int at = 1; launch_ranks_next(argc, argv, &at, &option);) /* before the command line, which wins */
        if (strcmp(option.entry->name, "config") == 0)
            write_config(&option, to);
    for (int at = 1; launch_ranks_next(argc, argv, &at, &option);) {
        if (option.entry->for_ranks == RANKS_BY_SCRIPT)
            continue;
        fputs("    ", to);
        launch_ranks_write_option(&option, to);
        fputc('\n', to);
    }
    if (options->slurm.cpus_per_rank > 0 && options->ranks.threads == 0)
        fprintf(to, "    --threads %d # the cores of a rank\n", options->slurm.cpus_per_rank);
    if (options->slurm.parts > 0)
        fprintf(to, "    --part \"$SLURM_ARRAY_TASK_ID/%d\"\n", options->slurm.parts);
    if (options->slurm.draft_lengths != NULL)
        fputs("    --draft-length \"$SLURM_ARRAY_TASK_ID\"\n", to);
    if (options->report.stats != NULL)
        fputs("    --stats \"$stats\"\n", to);
    fputs("    --output \"$output\" --resume # what an earlier start has finished is not computed again\n)\n\n", to);
}

static void write_files(const struct launch_ranks *ranks, FILE *to)
{
    const struct options *options = ranks->options;
    char folder[PATH_MAX];

    (void)paths_programs(folder);
    fputs("\nset -u\nbin=", to);
    shell_word_put(folder, to);
    fputc('\n', to);
    if (options->slurm.parts > 0)
        fputs("# Each task has a file of its own. In the order of their names, one behind the other, they are the results of the whole.\n", to);
    write_file(options, "output", options->results.path, to);
    if (options->report.stats != NULL)
        write_file(options, "stats", options->report.stats, to);
}

static const char *const before_the_step =
    "results() { cat \"$output.journal\" 2>/dev/null | grep -c '^{\"index\"'; } # that are done so far\n"
    "had=$(results)\n"
    "state() { stat -c '%i %y' \"$output\" 2>/dev/null; }\n"
    "before=$(state)\n"
    "whole() { [ -e \"$output\" ] && [ ! -e \"$output.journal\" ]; }\n"
    "made() { whole && [ \"$(state)\" != \"$before\" ]; } # since this start\n"
    "\n"
    "# SLURM's warning is passed on to the ranks: they finish what runs and end with 75. It is repeated, for what comes before the ranks listen\n"
    "# is lost.\n"
    "warned=0\n"
    "trap 'warned=1' USR1\n"
    "drain() {\n"
    "    trap 'warned=1' USR1\n"
    "    warned=1\n"
    "    while kill -USR1 \"$step\"; do sleep 2; done 2>/dev/null &\n"
    "}\n"
    "\n";

static const char *const the_folder =
    "# Open MPI removes its folder when that is empty, also one that another job of this user is about to use: this start has its own.\n"
    "folder=$(mktemp -d \"${TMPDIR:-/tmp}/tandem-XXXXXXXX\") || { echo \"tandem: cannot write to ${TMPDIR:-/tmp}; TMPDIR says which folder "
    "is taken\"; exit 74; }\n"
    "trap 'rm -rf -- \"$folder\"' EXIT\n"
    "export TMPDIR=$folder\n"
    "\n";

static const char *const after_the_step =
    " &\n"
    "step=$!\n"
    "[ $warned = 0 ] || drain\n"
    "trap drain USR1\n"
    "\n";

static const char *const watch_over_srun =
    "# srun of SLURM 22.05 may wait for itself where both groups end in the same instant. Once SLURM knows of no step but this shell, it is ended,\n"
    "# and whether the ranks came to their end is seen from what they wrote. The pipe tells this shell.\n"
    "exec 8<> <(:)\n"
    "(while sleep 30 && kill -0 \"$step\" && squeue -hs -j \"$SLURM_JOB_ID\" | grep -qv '\\.batch '; do :; done\n"
    "    sleep 10; kill -0 \"$step\" && echo ended >&8 && kill -KILL \"$step\") >/dev/null 2>&1 &\n"
    "\n";

static const char *const the_wait =
    "# The shell waits beside the ranks: one that ran them in the foreground would hear of the signal after their end.\n"
    "while :; do\n"
    "    warned=0 code=0\n"
    "    wait \"$step\" || code=$?\n"
    "    [ $warned = 1 ] || break # a signal ends the wait, not the ranks\n"
    "done\n"
    "\n";

static const char *const srun_was_ended =
    "if read -t 0 -u 8 && made; then code=0; fi\n"
    "\n";

static const char *const the_code =
    "# Whatever the ranks did, a warning that comes when mpirun has let go of them ends it with 138, and a lost drafter that does not come to the\n"
    "# end, so that srun ends it, with 137.\n"
    "if { [ \"$code\" = 137 ] || [ \"$code\" = 138 ]; } && made; then code=0; fi\n"
    "# 0, and so --dependency=afterok, only where every prompt has its line in the output: srun may end with 0 where nothing was started.\n"
    "if [ \"$code\" = 0 ] && ! whole; then code=71; fi\n"
    "case $code in\n"
    "0) ;;\n"
    "75 | 138) # told to end; 138: before the ranks listened\n"
    "    code=75\n"
    "    if [ \"$(results)\" -gt \"$had\" ]; then\n"
    "        echo \"tandem: $(results) results are in $output.journal; the job is queued again for the rest\"\n"
    "        scontrol requeue \"$SLURM_JOB_ID\" || echo \"tandem: it could not be queued again: submit it once more to go on\"\n"
    "    else\n"
    "        echo \"tandem: nothing was finished since this start, so it is not queued again: it needs a longer --time\"\n"
    "    fi ;;\n"
    "*)\n"
    "    if [ -e \"$output.journal\" ]; then\n"
    "        echo \"tandem: the ranks ended with $code; what is done is in $output.journal, and submitted once more the job goes on\"\n"
    "    else\n"
    "        echo \"tandem: the ranks ended with $code; nothing was finished\"\n"
    "    fi ;;\n"
    "esac\n"
    "exit \"$code\"\n";

static void write_script(const struct launch_ranks *ranks, int argc, char **argv, const char *folder, FILE *to)
{
    struct launch_ranks step = *ranks;

    step.argv = NULL;
    batch_directives_write(ranks, folder, to);
    write_files(ranks, to);
    write_options(ranks, argc, argv, to);
    if (ranks->options->launch.launcher != LAUNCHER_SRUN)
        fputs(the_folder, to);
    fputs(before_the_step, to);
    if (ranks->options->launch.launcher == LAUNCHER_SRUN)
        fputs("# Ranks look for messages; where they are more than the cores, this makes them give way to each other.\n"
              "export OMPI_MCA_mpi_yield_when_idle=1\n"
              "# In MPI_Init ranks wait for each other, so that none sends to one that cannot receive yet and crashes. By a tree, which SLURM would\n"
              "# take, they do not wait where the nodes are fewer than its TreeWidth.\n"
              "export SLURM_PMIX_FENCE=ring\n"
              "# PMIx fails on a node that died and kept what a step of the same number left there, and a start counts its steps from 0: "
              "so each start of\n"
              "# the job does as many empty steps as it had starts before.\n"
              "for ((i = 0; i < ${SLURM_RESTART_COUNT:-0}; i++)); do srun --mpi=none --nodes=1 --ntasks=1 true; done\n"
              "# PMIx is how Open MPI finds its ranks under srun. Where a rank fails the others would wait for it, so they are ended.\n",
              to);
    if (ranks->options->launch.launcher == LAUNCHER_SRUN && ranks->options->slurm.layout == SLURM_LAYOUT_GROUP && ranks->drafters > 0)
        fputs("# The number of a task says what it is: srun tells MPI nothing of roles.\n", to);
    launch_ranks_write(&step, to);
    fputs(after_the_step, to);
    if (ranks->options->slurm.layout == SLURM_LAYOUT_HETJOB)
        fputs(watch_over_srun, to);
    fputs(the_wait, to);
    if (ranks->options->slurm.layout == SLURM_LAYOUT_HETJOB)
        fputs(srun_was_ended, to);
    fputs(the_code, to);
}

enum status batch_script_print(const struct options *options, int argc, char **argv, FILE *to)
{
    struct launch_ranks ranks;
    char folder[PATH_MAX];

    TRY(batch_directives_check(options));
    TRY(launch_line_open(options, argc, argv, &ranks));
    if (getcwd(folder, sizeof folder) == NULL) {
        log_error("the current folder: %s", strerror(errno));
        return STATUS_IO;
    }
    if (!batch_directives_can_hold(folder)) {
        log_error("the name of the current folder has a line break in it, or another control character, which no #SBATCH line can hold");
        return STATUS_USAGE;
    }
    write_script(&ranks, argc, argv, folder, to);
    return STATUS_OK;
}
