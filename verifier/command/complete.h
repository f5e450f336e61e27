/* Completes the prompts of a job: each result to the output, progress or the completion itself to the screen, figures at the end; with --compare solo
 * beside it, in turns. Owns nothing beyond a run; the lead alone runs it. */
#ifndef TANDEM_VERIFIER_COMMAND_COMPLETE_H
#define TANDEM_VERIFIER_COMMAND_COMPLETE_H

#include "verifier/job/job.h"

/* For a job's table of commands. STATUS_DRAINED when the job was told to drain before all was done. Collective over the group, on the lead. */
enum status complete_run(struct job *job, struct peers *drafters, const struct request_list *requests);

#endif
