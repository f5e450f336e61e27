#include "launch/submit/batch_directives.h"

#include "common/backend/choose.h"
#include "common/base/log.h"
#include "common/base/visible.h"
#include <stdlib.h>
#include <string.h>

static int is_file(const char *path)
{
    return path != NULL && *path != '\0' && strcmp(path, "-") != 0;
}

static enum status refuse(const char *what)
{
    log_error("%s", what);
    return STATUS_USAGE;
}

enum { SBATCH_TEXTS = 3 };

/* What sbatch is told beside its words: lists of options; NULL where there is none. */
static const char *sbatch_text(const struct options *options, int i)
{
    return i == 0 ? options->slurm.sbatch_options : i == 1 ? options->slurm.drafter_sbatch : options->slurm.verifier_sbatch;
}

int batch_directives_can_hold(const char *text)
{
    return visible_is_plain(text, strlen(text), "\t");
}

static int has_controls(const struct options *options)
{
    int found = 0;

    for (int i = 0; i < SBATCH_TEXTS; i++)
        found |= sbatch_text(options, i) != NULL && !batch_directives_can_hold(sbatch_text(options, i));
    for (int i = 0; i < options->slurm.sbatch_word.count; i++)
        found |= !batch_directives_can_hold(options->slurm.sbatch_word.text[i]);
    return found;
}

static int begins_with_either(const char *text, const char *name, const char *other)
{
    return strncmp(text, name, strlen(name)) == 0 || strncmp(text, other, strlen(other)) == 0;
}

/* Is sbatch told anything that begins with one of the two, as --array=1 or -a1? */
static int is_asked(const struct options *options, const char *name, const char *other)
{
    for (int i = 0; i < SBATCH_TEXTS; i++)
        for (const char *at = sbatch_text(options, i); at != NULL && *(at += strspn(at, " \t")) != '\0'; at += strcspn(at, " \t"))
            if (begins_with_either(at, name, other))
                return 1;
    for (int i = 0; i < options->slurm.sbatch_word.count; i++)
        if (begins_with_either(options->slurm.sbatch_word.text[i], name, other))
            return 1;
    return 0;
}

enum status batch_directives_check(const struct options *options)
{
    int is_array = options->slurm.parts > 0 || options->slurm.draft_lengths != NULL;

    if (!is_file(options->input.prompts) || !is_file(options->results.path))
        return refuse("a batch job needs --prompts and --output, each with a file that all its nodes see");
    if (options->checks.size != CHECK_OFF || options->report.compare)
        return refuse("a batch job completes prompts: expected neither --check nor --compare");
    if (options->launch.hosts != NULL)
        return refuse("--hosts has no place in a batch job: SLURM chooses the hosts, as by --sbatch-options --nodelist=LIST");
    if (options->slurm.parts > 0 && (options->slurm.draft_lengths != NULL || options->input.part != NULL))
        return refuse("--parts makes an array, expected neither --draft-lengths nor --part beside it");
    if (options->slurm.draft_lengths != NULL && options->rounds.solo)
        return refuse("--draft-lengths needs drafters, expected no --solo");
    if (options->slurm.draft_lengths != NULL && options->rounds.stopping.kind == STOPPING_HEURISTIC)
        return refuse("--stop-drafting heuristic chooses the draft length, expected no --draft-lengths");
    if (is_array && options->report.trace != NULL)
        return refuse("the tasks of an array would write over each other's --trace, expected it without --parts and --draft-lengths");
    if (has_controls(options))
        return refuse("an option of sbatch has a line break in it, or another control character");
    if (!is_array && is_asked(options, "--array", "-a"))
        return refuse("--array: all tasks would write one --output, expected --parts N or --draft-lengths LIST, which make an array");
    if (options->ranks.backend == BACKEND_CUDA && !is_asked(options, "--gpus", "-G") && !is_asked(options, "--gres", "--tres"))
        log_warn("--backend cuda, and SLURM is not asked for a GPU: as --sbatch-options --gpus-per-node=N does");
    return STATUS_OK;
}

/* A word of an #SBATCH line, whose quotes are sbatch's own. */
static void write_directive_word(const char *text, FILE *to)
{
    if (strpbrk(text, " \t\"'\\#") == NULL) {
        fputs(text, to);
        return;
    }
    fputc('"', to);
    for (; *text != '\0'; text++)
        fprintf(to, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    fputc('"', to);
}

/* A line for each option: "-p main" is one, "--nodes=2 --time=10" are two. */
static void write_directive(const char *word, int *begun, FILE *to)
{
    fputs(*begun && *word != '-' ? " " : *begun ? "\n#SBATCH " : "#SBATCH ", to);
    write_directive_word(word, to);
    *begun = 1;
}

static void write_directives(const char *text, const struct option_texts *given, FILE *to)
{
    char *words = text != NULL ? strdup(text) : NULL, *rest = words;
    int begun = 0;

    for (char *word = strsep(&rest, " \t"); word != NULL; word = strsep(&rest, " \t"))
        if (*word != '\0')
            write_directive(word, &begun, to);
    free(words);
    for (int i = 0; given != NULL && i < given->count; i++)
        write_directive(given->text[i], &begun, to);
    if (begun)
        fputc('\n', to);
}

/* What one group of nodes is asked for. */
static void write_group(const struct options *options, int tasks, const char *more, FILE *to)
{
    fprintf(to, "#SBATCH --ntasks=%d\n", tasks);
    if (options->slurm.cpus_per_rank > 0)
        fprintf(to, "#SBATCH --cpus-per-task=%d\n", options->slurm.cpus_per_rank);
    write_directives(options->slurm.sbatch_options, NULL, to);
    write_directives(more, NULL, to);
    write_directives(NULL, &options->slurm.sbatch_word, to);
}

static void write_array(const struct options *options, FILE *to)
{
    if (options->slurm.parts > 0)
        fprintf(to, "# One task for each part of the prompts.\n#SBATCH --array=0-%d\n", options->slurm.parts - 1);
    else if (options->slurm.draft_lengths != NULL)
        fprintf(to, "# One task for each draft length; the numbers are the lengths.\n#SBATCH --array=%s\n", options->slurm.draft_lengths);
}

void batch_directives_write(const struct launch_ranks *ranks, const char *folder, FILE *to)
{
    const struct options *options = ranks->options;
    int is_array = options->slurm.parts > 0 || options->slurm.draft_lengths != NULL;

    fprintf(to,
            "#!/bin/bash\n"
            "# Completes prompts with Tandem: %d drafter and %d verifier ranks. The job may be stopped at any time and goes on where it was.\n"
            "#SBATCH --job-name=tandem\n"
            "#SBATCH --output=tandem-%s.out\n"
            "# The log goes on after a requeue; without this its first part would be lost.\n"
            "#SBATCH --open-mode=append\n"
            "# Two minutes before the time limit this shell (B:) gets SIGUSR1, and ends the job in order. SLURM may send it a minute early.\n"
            "#SBATCH --signal=B:USR1@120\n"
            "# SLURM may start the job again: after a node was lost, and when this script asks for it.\n"
            "#SBATCH --requeue\n"
            "# Where it was submitted: paths below count from there.\n"
            "#SBATCH --chdir=",
            ranks->drafters, ranks->verifiers, is_array ? "%A_%a" : "%j");
    write_directive_word(folder, to);
    fputc('\n', to);
    write_array(options, to);
    if (options->slurm.layout == SLURM_LAYOUT_GROUP) {
        fputs("# A task for each rank.\n", to);
        write_group(options, ranks->drafters + ranks->verifiers, NULL, to);
        return;
    }
    fputs("# Two groups of nodes that start together. The first is for drafters.\n", to);
    write_group(options, ranks->drafters, options->slurm.drafter_sbatch, to);
    fputs("#SBATCH hetjob\n# The second is for verifiers.\n#SBATCH --requeue\n", to);
    write_group(options, ranks->verifiers, options->slurm.verifier_sbatch, to);
}
