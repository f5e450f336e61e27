/* A sweep: one job that decodes the same prompts again and again, each pass in its own way (solo or with drafts, draft length, temperature, rule,
 * sequences at once), so that all of them have the same ranks, the same loaded models and the same minutes of the machine. `tandem bench` makes the
 * plan and reads what comes out. It owns the plan while it runs, and writes no result of a request. The lead alone runs it.
 *
 * The plan is one JSON object: {"results": FILE, "passes": [{"cell", "repetition", "warm_up", "solo", "draft_length" (-1: the lead chooses),
 * "temperature", "accept", "sequences", "prompts", "baseline" (the cell that it is compared with; it may be left out)}],
 * "more": {"noise_limit", "seconds"}}. With "more", which may be left out, cells whose speedup has a larger standard error than the limit, a share,
 * get further repetitions, like the last two in turns, for so long. FILE gets one JSON object a line: first the job's ranks, then each pass,
 * with its logits_hash where --hash-logits is given. */
#ifndef TANDEM_VERIFIER_COMMAND_SWEEP_H
#define TANDEM_VERIFIER_COMMAND_SWEEP_H

#include "verifier/job/job.h"

/* Collective over the group, on the lead. STATUS_DATA: the plan is not one; STATUS_IO. */
enum status sweep_run(struct job *job, struct peers *drafters, const struct request_list *requests);

#endif
