/* `tandem run --perplexity FILE`: how probable the target finds a text. The text's tokens are cut into windows of --context tokens, each of which is
 * a request that completes nothing and asks for log p of the tokens of its second half; what is left behind the last whole window is not read. It
 * owns these requests while it runs. The lead alone runs it. */
#ifndef TANDEM_VERIFIER_COMMAND_SCORE_H
#define TANDEM_VERIFIER_COMMAND_SCORE_H

#include "verifier/job/job.h"

/* Collective over the group, on the lead. STATUS_NOINPUT, STATUS_DATA: the file is not there, or no such text. */
enum status score_run(struct job *job, struct peers *drafters, const struct request_list *none);

#endif
