#include "launch/submit/launch_line.h"

#include "common/backend/choose.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/shell_word.h"
#include "common/base/try.h"
#include "common/model/config.h"
#include "common/options/options_idle.h"
#include "common/options/options_merge.h"
#include "common/options/options_paths.h"
#include "launch/submit/launch_hosts.h"
#include "verifier/job/launch_check.h"
#include "verifier/job/launch_look.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FEW_CORES = 3 /* a core for each rank: what is shown to whom it is new is the best that the machine does */ };

/* Several verifiers on devices need a device each, and NCCL, so the default is one: more must be asked for. */
static int is_for_devices(const struct options *options)
{
    const struct backend *backend = NULL;

    if (options->ranks.backend == BACKEND_CUDA)
        return 1; /* whether or not this host, which may only submit the job, has one */
    return backend_choose((enum backend_choice)options->ranks.backend, &backend) == STATUS_OK && backend != &backend_cpu;
}

static int choose_verifiers(const struct options *options)
{
    char target[PATH_MAX], unused[128];
    struct config config;

    if (options->ranks.verifiers > 0)
        return options->ranks.verifiers;
    if (options_is_showcase(options) && options->launch.hosts == NULL && sysconf(_SC_NPROCESSORS_ONLN) <= FEW_CORES)
        return 1;
    options_target_path(options, target);
    if (is_for_devices(options) || sysconf(_SC_NPROCESSORS_ONLN) < 2 || config_read(target, &config) != STATUS_OK)
        return 1;
    return config_allows_width(&config, 2, unused, sizeof unused) && config.kv_heads % 2 == 0 ? 2 : 1; /* with the bits of one */
}

/* The lead says it of all others. */
static void say_what_is_idle(const struct options *options)
{
    struct options_idle idle[OPTIONS_IDLE_MOST];
    int count = options->report.quiet ? 0 : options_find_idle(options, idle);

    for (int i = 0; i < count; i++)
        if (option_find(idle[i].name)->for_ranks == RANKS_NEVER)
            log_info("--%s changes nothing: %s", idle[i].name, idle[i].why);
}

enum status launch_line_open(const struct options *options, int argc, char **argv, struct launch_ranks *ranks)
{
    int drafters = options_drafts(options) ? (options->ranks.drafters < 0 ? options_kinds(options) : options->ranks.drafters) : 0;

    TRY(launch_ranks_check(options, drafters));
    TRY(launch_check(options));
    *ranks = (struct launch_ranks){.options = options, .drafters = drafters, .verifiers = choose_verifiers(options), .argc = argc, .argv = argv};
    TRY(launch_hosts_check(options, drafters, ranks->verifiers));
    say_what_is_idle(options);
    return (options->launch.terminal & TERMINAL_WILL_START) == 0 ? launch_look(options, drafters, ranks->verifiers)
                                                                 : STATUS_OK; /* ranks that are started look for themselves */
}

enum status launch_line_print(const struct options *options, int argc, char **argv, FILE *to)
{
    struct launch_ranks ranks;

    TRY(launch_line_open(options, argc, argv, &ranks));
    launch_ranks_write(&ranks, to);
    fputc('\n', to);
    return STATUS_OK;
}

/* Is a job to come first that measures the target alone in one process? Where it says more than the solo column: the target is small, so that a
 * verifier beside a drafter has not all cores, and there is a host to ask. */
static int measures_plain(const struct options *options)
{
    char target[PATH_MAX];
    struct config config;

    if (!options_is_showcase(options) || options->rounds.solo || options->ranks.drafters == 0 || options->launch.hosts != NULL ||
        options->launch.launcher != LAUNCHER_MPIRUN || options->report.trace != NULL || options->results.path != NULL || is_for_devices(options))
        return 0;
    options_target_path(options, target);
    return config_read(target, &config) == STATUS_OK && !config_is_large(&config, 0, 1);
}

/* The line of that job: the same options for one verifier. */
static void write_plain(const struct options *options, const struct launch_ranks *ranks, FILE *to)
{
    struct launch_ranks plain = {.options = options, .verifiers = 1, .argc = ranks->argc + 1};
    char *line = NULL;
    size_t size = 0;
    FILE *lines = open_memstream(&line, &size);

    plain.argv = calloc((size_t)plain.argc + 1, sizeof *plain.argv);
    if (plain.argv != NULL && lines != NULL) {
        memcpy(plain.argv, ranks->argv, (size_t)ranks->argc * sizeof *plain.argv);
        plain.argv[ranks->argc] = (char[]){"--measure-plain"};
        launch_ranks_write(&plain, lines);
    }
    if (lines != NULL)
        fclose(lines);
    fputs(" plain=", to);
    shell_word_put(line != NULL ? line : "", to);
    free(plain.argv);
    free(line);
}

enum status launch_line_facts(const struct options *options, int argc, char **argv, FILE *to)
{
    struct launch_ranks ranks = {0};
    char *line = NULL;
    size_t size = 0;
    FILE *lines = open_memstream(&line, &size);
    enum status status = STATUS_OK;

    if (lines == NULL) {
        log_error("no memory for the line that starts the ranks");
        return STATUS_INTERNAL;
    }
    if (!options->launch.dry_run)
        status = launch_line_open(options, argc, argv, &ranks);
    if (!options->launch.dry_run && status == STATUS_OK)
        launch_ranks_write(&ranks, lines);
    fclose(lines);
    if (status == STATUS_OK) {
        fprintf(to, "dry_run=%d from_stdin=%d ranks_here=%d recorder=", options->launch.dry_run,
                options->input.prompts != NULL && strcmp(options->input.prompts, "-") == 0,
                options->launch.hosts == NULL ? ranks.drafters + ranks.verifiers : 0);
        shell_word_put(options->report.recorder != NULL ? options->report.recorder : "", to);
        fputs(" line=", to);
        shell_word_put(line, to);
        if (!options->launch.dry_run && measures_plain(options))
            write_plain(options, &ranks, to);
        fputc('\n', to);
    }
    free(line);
    return status;
}
