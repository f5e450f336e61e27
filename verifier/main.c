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

int main(int argc, char **argv)
{
    struct options options;
    struct job job = {.options = &options};
    enum status status = options_parse(argc, argv, &options);
    enum log_level level;

    if (status != STATUS_OK)
        return (int)status;
    if (options.print != OPTIONS_PRINT_NOTHING)
        return print(&options);
    level = options.quiet ? LOG_ERROR : options.verbose ? LOG_DEBUG : LOG_INFO;
    log_init("tandem", level);
    if (options.dry_run)
        return (int)launch_line_print(&options, argc, argv, stdout);
    status = world_open(&argc, &argv, ROLE_VERIFIER, &job.world);
    if (status != STATUS_OK)
        world_abort(status);
    if (job.world.rank != job.world.lead) {
        char label[64];

        snprintf(label, sizeof label, "tandem-verifier[%d]", job.world.rank);
        log_init(label, level);
    }
    status = watchdog_open(options.watchdog_s);
    if (status == STATUS_OK)
        status = job_run(&job);
    watchdog_close();
    job_release(&job);
    world_close(&job.world);
    return (int)status;
}
