#include "launch/submit/launch_ranks.h"

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/shell_word.h"
#include "common/base/try.h"
#include "common/options/options_table.h"
#include "launch/submit/launch_hosts.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The words of a text, each quoted and behind `before`: a shell that reads the line runs nothing of what they say. */
static void write_words(const char *before, const char *text, FILE *to)
{
    char *words = text != NULL ? strdup(text) : NULL, *rest = words;

    for (char *word = strsep(&rest, " \t"); word != NULL; word = strsep(&rest, " \t"))
        if (*word != '\0') {
            fputs(before, to);
            shell_word_put(word, to);
        }
    free(words);
}

int launch_ranks_next(int argc, char **argv, int *at, struct launch_option *option)
{
    while (*at < argc) {
        char name[OPTION_NAME];
        const char *text = argv[(*at)++], *value = option_cut(text, name);
        const struct option_entry *entry = option_find(name);

        if (entry == NULL)
            continue; /* it has been parsed: all are known */
        *option = (struct launch_option){.text = text, .value = NULL, .entry = entry};
        if (value == NULL && option_takes_next(entry, argc, argv, *at))
            option->value = argv[(*at)++];
        if (entry->for_ranks != RANKS_NEVER)
            return 1;
    }
    return 0;
}

void launch_ranks_write_option(const struct launch_option *option, FILE *to)
{
    shell_word_put(option->text, to);
    if (option->value == NULL)
        return;
    fputc(' ', to);
    shell_word_put(option->value, to);
}

static void write_options(const struct launch_ranks *ranks, FILE *to)
{
    struct launch_option option;

    if (ranks->argv == NULL)
        fputs(" \"${options[@]}\"", to);
    for (int at = 1; ranks->argv != NULL && launch_ranks_next(ranks->argc, ranks->argv, &at, &option);) {
        fputc(' ', to);
        launch_ranks_write_option(&option, to);
    }
}

/* Both programs have names that begin in the same way; `role` is the rest. */
static void write_program(const struct launch_ranks *ranks, const char *role, FILE *to)
{
    const char *programs = ranks->options->launch.programs != NULL ? ranks->options->launch.programs : "tandem";
    char folder[PATH_MAX], path[PATH_MAX + 128];

    fputc(' ', to);
    if (ranks->argv == NULL) {
        fprintf(to, "\"$bin\"/%.60s%s", programs, role);
        return;
    }
    (void)paths_programs(folder);
    snprintf(path, sizeof path, "%s/%.60s%s", folder, programs, role);
    shell_word_put(path, to);
}

/* Where the line of a script goes on. */
static void write_break(const struct launch_ranks *ranks, FILE *to)
{
    if (ranks->argv == NULL)
        fputs(" \\\n   ", to);
}

static void write_mpirun_part(const struct launch_ranks *ranks, int count, const char *role, const char *environment, FILE *to)
{
    write_break(ranks, to);
    fprintf(to, " -np %d", count);
    write_words(" -x ", ranks->options->launch.environment, to);
    write_words(" -x ", environment, to);
    write_program(ranks, role, to);
    write_options(ranks, to);
}

/* A part for each host, or one where there is no list of them. */
static void write_mpirun_role(const struct launch_ranks *ranks, struct launch_hosts *hosts, int count, const char *role,
                              const char *environment, FILE *to)
{
    while (count > 0) {
        struct launch_share share = {.ranks = count};
        char host[LAUNCH_HOSTS_NAME + 16];

        if (hosts->list != NULL) {
            share = launch_hosts_next(hosts, count);
            snprintf(host, sizeof host, "%.*s:%d", share.length, share.name, share.slots);
            fputs(" --host ", to);
            shell_word_put(host, to);
        }
        write_mpirun_part(ranks, share.ranks, role, environment, to);
        count -= share.ranks;
        if (count > 0)
            fputs(" :", to);
    }
}

/* Does the user choose that himself? mpirun takes a parameter once. */
static int names(const char *options, const char *parameter)
{
    return options != NULL && strstr(options, parameter) != NULL;
}

static void write_mpirun(const struct launch_ranks *ranks, FILE *to)
{
    const struct options *options = ranks->options;
    struct launch_hosts hosts = {.list = options->launch.hosts};

    fputs("mpirun -q", to);
    if (geteuid() == 0)
        fputs(" --allow-run-as-root", to);
    if (options->launch.hosts == NULL && ranks->argv != NULL) {
        /* One host: shared memory alone, so that no rank listens on the network, nor looks for its adapters, which takes MPI 0.2 s; no copies
         * from a peer's address space, which containers forbid. */
        fputs(" --oversubscribe", to);
        if (!names(options->launch.mpirun_options, "--mca pml "))
            fputs(" --mca pml ob1", to);
        if (!names(options->launch.mpirun_options, "--mca btl "))
            fputs(" --mca btl vader,self --mca btl_vader_single_copy_mechanism none", to);
    }
    if (ranks->drafters > 0 && (options->input.conversation || (options->input.prompts != NULL && strcmp(options->input.prompts, "-") == 0)))
        fprintf(to, " --stdin %d", ranks->drafters); /* the lead, which reads it, comes after the drafters */
    fputs(" --bind-to none --mca mpi_yield_when_idle 1", to);
    write_words(" ", options->launch.mpirun_options, to);
    if (ranks->drafters > 0) {
        write_mpirun_role(ranks, &hosts, ranks->drafters, "-drafter", options->launch.drafter_environment, to);
        fputs(" :", to);
    }
    write_mpirun_role(ranks, &hosts, ranks->verifiers, "-verifier", options->launch.verifier_environment, to);
}

/* "env A=B", where there is something to set. */
static void write_env(const struct options *options, const char *environment, FILE *to)
{
    if (options->launch.environment != NULL || environment != NULL)
        fputs(" env", to);
    write_words(" ", options->launch.environment, to);
    write_words(" ", environment, to);
}

static void write_srun_tasks(const struct launch_ranks *ranks, int count, FILE *to)
{
    fprintf(to, " --ntasks=%d", count);
    if (ranks->options->slurm.cpus_per_rank > 0) /* srun does not take it over from sbatch */
        fprintf(to, " --cpus-per-task=%d", ranks->options->slurm.cpus_per_rank);
    write_words(" ", ranks->options->slurm.srun_options, to);
}

/* srun with PMIx waits for itself, for ever, where both groups of a heterogeneous job end in the same instant (seen with SLURM 22.05, one
 * job in eight). So a drafter's task stays a little longer than its rank. */
static const char *const lingering = "trap : USR1; \"$0\" \"$@\"; code=$?; sleep 1; exit $code";

static void write_srun_part(const struct launch_ranks *ranks, int group, int count, const char *role, const char *environment, FILE *to)
{
    write_break(ranks, to);
    if (ranks->options->slurm.layout == SLURM_LAYOUT_HETJOB)
        fprintf(to, " --het-group=%d", group);
    write_srun_tasks(ranks, count, to);
    write_env(ranks->options, environment, to);
    if (ranks->options->slurm.layout == SLURM_LAYOUT_HETJOB && group == 0) {
        fputs(" bash -c ", to);
        shell_word_put(lingering, to);
    }
    write_program(ranks, role, to);
    write_options(ranks, to);
}

/* Every task of one group runs the same, and takes its role from its number: SLURM's, for MPI_APPNUM is 0 everywhere under srun. */
static void write_srun_choice(const struct launch_ranks *ranks, FILE *to)
{
    const struct options *options = ranks->options;
    char *text = NULL;
    size_t size;
    FILE *choice = open_memstream(&text, &size);

    if (choice == NULL)
        return;
    fprintf(choice, "if [ \"$SLURM_PROCID\" -lt %d ]; then exec", ranks->drafters);
    write_env(options, options->launch.drafter_environment, choice);
    fputs(" \"$0\"-drafter \"$@\"; else exec", choice);
    write_env(options, options->launch.verifier_environment, choice);
    fputs(" \"$0\"-verifier \"$@\"; fi", choice);
    fclose(choice);
    write_srun_tasks(ranks, ranks->drafters + ranks->verifiers, to);
    write_break(ranks, to);
    fputs(" bash -c ", to);
    shell_word_put(text, to);
    free(text);
    write_program(ranks, "", to);
    write_options(ranks, to);
}

static void write_srun(const struct launch_ranks *ranks, FILE *to)
{
    const struct options *options = ranks->options;

    if (ranks->argv != NULL) /* a script has exported them, and says there what they are for */
        fputs("env OMPI_MCA_mpi_yield_when_idle=1 SLURM_PMIX_FENCE=ring ", to);
    fputs("srun --mpi=pmix --kill-on-bad-exit=1", to);
    if (options->slurm.layout == SLURM_LAYOUT_GROUP && ranks->drafters > 0) {
        write_srun_choice(ranks, to);
        return;
    }
    if (ranks->drafters > 0) {
        write_srun_part(ranks, 0, ranks->drafters, "-drafter", options->launch.drafter_environment, to);
        fputs(" :", to);
    }
    write_srun_part(ranks, 1, ranks->verifiers, "-verifier", options->launch.verifier_environment, to);
}

void launch_ranks_write(const struct launch_ranks *ranks, FILE *to)
{
    if (ranks->options->launch.launcher == LAUNCHER_SRUN)
        write_srun(ranks, to);
    else
        write_mpirun(ranks, to);
}

static enum status check_environment(const char *name, const char *text)
{
    static const char *const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

    for (const char *at = text; at != NULL && *(at += strspn(at, " \t")) != '\0'; at += strcspn(at, " \t")) {
        size_t length = strspn(at, letters);

        if (length > 0 && at[length] == '=' && !(*at >= '0' && *at <= '9'))
            continue;
        log_error("--%s has '%.*s', expected words NAME=VALUE", name, (int)strcspn(at, " \t"), at);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

enum status launch_ranks_check(const struct options *options, int drafters)
{
    TRY(check_environment("environment", options->launch.environment));
    TRY(check_environment("drafter-environment", options->launch.drafter_environment));
    TRY(check_environment("verifier-environment", options->launch.verifier_environment));
    if (options->launch.hosts != NULL && *options->launch.hosts == '\0') {
        log_error("--hosts is '', expected HOST[:SLOTS],...");
        return STATUS_USAGE;
    }
    if (options->launch.launcher == LAUNCHER_SRUN && options->launch.hosts != NULL) {
        log_error("--hosts is for mpirun: with --launcher srun SLURM chooses the hosts, as --srun-options --nodelist=LIST");
        return STATUS_USAGE;
    }
    if (options->slurm.layout == SLURM_LAYOUT_HETJOB && options->launch.launcher != LAUNCHER_SRUN) {
        log_error("--slurm-layout hetjob needs --launcher srun: mpirun sees the first group of a heterogeneous job alone");
        return STATUS_USAGE;
    }
    if (options->slurm.layout == SLURM_LAYOUT_HETJOB && drafters == 0) {
        log_error(
            "--slurm-layout hetjob has a group for drafters, and there is no drafter: expected --draft MODEL, or --slurm-layout group");
        return STATUS_USAGE;
    }
    return STATUS_OK;
}
