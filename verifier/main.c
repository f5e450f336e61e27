/* tandem-verifier: a rank of the group that runs the target model. The first of them is the lead: it decides. Without drafters the job
 * decodes solo. */
#include "verifier/job.h"

#include "common/base/log.h"
#include "common/world/watchdog.h"
#include "verifier/launch_line.h"
#include <stdio.h>

static int print(const struct options *options)
{
    options_print(options, "tandem-verifier", "completes prompts with a large model, which it shares with the other tandem-verifier ranks of an MPI job; tandem-drafter ranks make it faster",
                  stdout);
    return 0;
}

static enum log_level level_of(const struct options *options)
{
    return options->quiet ? LOG_ERROR : options->verbose ? LOG_DEBUG : LOG_INFO;
}

static enum status work(struct job *job)
{
    enum status status = watchdog_open(job->options->watchdog_s);

    if (status == STATUS_OK)
        status = job_run(job);
    watchdog_close();
    return status;
}

int main(int argc, char **argv)
{
    struct options options;
    struct job job = {.options = &options};
    enum status status, parsed;
    char label[64] = "tandem";

    if (world_is_launched())
        log_hold();
    parsed = options_parse(argc, argv, &options);
    if (parsed == STATUS_OK && options.print != OPTIONS_PRINT_NOTHING)
        return print(&options);
    if (parsed == STATUS_OK)
        log_init(label, level_of(&options));
    if (parsed == STATUS_OK && options.dry_run) {
        log_let_go(1);
        return (int)launch_line_print(&options, argc, argv, stdout);
    }
    if (parsed != STATUS_OK && !world_is_launched())
        return (int)parsed;
    status = world_open(&argc, &argv, ROLE_VERIFIER, &job.world);
    if (status != STATUS_OK)
        world_abort(status);
    if (job.world.rank != job.world.lead)
        snprintf(label, sizeof label, "tandem-verifier[%d]", job.world.rank);
    if (parsed == STATUS_OK)
        log_init(label, level_of(&options));
    status = world_agree(&job.world, parsed); /* what is wrong with the command line is said once */
    if (status == STATUS_OK)
        status = work(&job);
    job_release(&job);
    world_close(&job.world, status);
    return (int)status;
}
