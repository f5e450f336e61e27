/* The target alone on all threads of one process: what drafts on further ranks have to beat. It prints its speed and its threads for the launcher of
 * the showcase, and writes no result. */
#ifndef TANDEM_VERIFIER_COMMAND_PLAIN_H
#define TANDEM_VERIFIER_COMMAND_PLAIN_H

#include "verifier/job/job.h"

/* Collective over the group, on the lead. */
enum status plain_run(struct job *job, struct peers *drafters, const struct request_list *requests);

#endif
