/* tandem-verifier: a rank of the group that runs the target model. The first of them is the lead: it decides. Without drafters the job
 * decodes solo. */
#include "common/base/log.h"
#include "common/base/recorder.h"
#include "common/base/standard_output.h"
#include "common/world/keeper.h"
#include "common/world/signals.h"
#include "common/world/watchdog.h"
#include "launch/submit/batch_script.h"
#include "launch/submit/launch_line.h"
#include "verifier/check/check.h"
#include "verifier/command/chat.h"
#include "verifier/command/complete.h"
#include "verifier/command/plain.h"
#include "verifier/command/score.h"
#include "verifier/command/sweep.h"
#include "verifier/result/journal_tell.h"
#include <stdio.h>

static int print(const struct options *options)
{
    options_print(options, "tandem-verifier",
                  "completes prompts with a large model, which it shares with the other tandem-verifier ranks of an MPI job; "
                  "tandem-drafter ranks make it faster",
                  stdout);
    return 0;
}

static enum log_level level_of(const struct options *options)
{
    return options->report.quiet ? LOG_ERROR : options->report.verbose ? LOG_DEBUG : LOG_INFO;
}

/* What needs no other rank: printing, and checking before a job. */
static int is_alone(enum status parsed, const struct options *options)
{
    return parsed == STATUS_OK ? options->print != OPTIONS_PRINT_NOTHING || options->launch.dry_run || options->launch.launch_facts ||
                                     options->slurm.batch_script || options->launch.tell_journal
                               : !world_is_launched();
}

static int end_alone(enum status parsed, const struct options *options, int argc, char **argv)
{
    if (parsed != STATUS_OK)
        return (int)parsed;
    if (options->print != OPTIONS_PRINT_NOTHING)
        return print(options);
    log_let_go(1);
    if ((options->launch.terminal & TERMINAL_WILL_START) != 0) /* the lead will warn of them */
        log_leave_files();
    if (options->launch.tell_journal) {
        journal_tell(options, stdout);
        return 0;
    }
    if (options->slurm.batch_script)
        return (int)batch_script_print(options, argc, argv, stdout);
    if (options->launch.launch_facts)
        return (int)launch_line_facts(options, argc, argv, stdout);
    return (int)launch_line_print(options, argc, argv, stdout);
}

static int asks_chat(const struct options *options)
{
    return options->input.conversation;
}

static int asks_check(const struct options *options)
{
    return options->checks.size != CHECK_OFF;
}

static int asks_sweep(const struct options *options)
{
    return options->report.sweep != NULL;
}

static int asks_plain(const struct options *options)
{
    return options->report.measures_plain;
}

static int asks_perplexity(const struct options *options)
{
    return options->input.perplexity != NULL;
}

static int asks_nothing_else(const struct options *options)
{
    (void)options;
    return 1;
}

/* What a job may be asked to do: the first that the options ask for. */
static const struct {
    int (*is_asked)(const struct options *options);
    struct job_command command;
} commands[] = {{asks_chat, {.name = "chat", .run = chat_run}},
                {asks_check, {.name = "check", .takes_prompts = 1, .is_patient = 1, .run = check_run}},
                {asks_sweep, {.name = "sweep", .takes_prompts = 1, .keeps_results = 1, .run = sweep_run}},
                {asks_plain, {.name = "plain", .takes_prompts = 1, .run = plain_run}},
                {asks_perplexity, {.name = "score", .run = score_run}},
                {asks_nothing_else, {.name = "complete", .takes_prompts = 1, .keeps_results = 1, .run = complete_run}}};

static const struct job_command *choose_command(const struct options *options)
{
    size_t at = 0;

    while (!commands[at].is_asked(options))
        at++;
    recorder_note(commands[at].command.name, 0, 0, 0);
    return &commands[at].command;
}

int main(int argc, char **argv)
{
    struct options options = {0};
    struct job job = {.options = &options};
    enum status status, parsed;
    char label[64] = "tandem";

    signals_open();
    if (world_is_launched())
        log_hold();
    parsed = options_parse(argc, argv, &options);
    if (parsed == STATUS_OK && options.print == OPTIONS_PRINT_NOTHING)
        log_init(label, level_of(&options));
    if (is_alone(parsed, &options)) {
        int code = standard_output_end(end_alone(parsed, &options, argc, argv));

        options_release(&options);
        return code;
    }
    status = world_is_launched() ? keeper_open() : STATUS_OK;
    if (status != STATUS_OK)
        world_abort(status);
    world_record(options.report.recorder, "verifier");
    status = watchdog_open(options.limits.watchdog_s); /* MPI waits for ranks that may never come */
    if (status == STATUS_OK)
        status = world_open(&argc, &argv, ROLE_VERIFIER, &job.world);
    if (status != STATUS_OK)
        world_abort(status);
    watchdog_stand_behind(job.world.role_rank);
    if (job.world.rank != job.world.lead)
        snprintf(label, sizeof label, "tandem-verifier[%d]", job.world.rank);
    if (parsed == STATUS_OK)
        log_init(label, level_of(&options));
    log_clear_lines(options_have_bar(&options));
    if (job.world.rank != job.world.lead)
        log_leave_files();
    status = world_agree(&job.world, parsed); /* what is wrong with the command line is said once */
    if (status == STATUS_OK)
        status = job_run(&job, choose_command(&options));
    if (status != STATUS_OK && job.follows)
        world_abort(status); /* the others wait for what this rank was to give them */
    job_release(&job);
    world_close(&job.world, status);
    watchdog_close();
    options_release(&options);
    return (int)status;
}
