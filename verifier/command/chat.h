/* `tandem chat`: turn after turn in one job. A line of stdin is a user's message; the reply streams to stdout, and both become a part of the next
 * prompt, byte for byte. It owns the conversation. Invariant: the target's cache keeps the text so far, so a turn costs its own tokens alone. The
 * lead alone runs it; results go to no file.
 *
 * /reset forgets all turns; /exit, /quit or the end of stdin ends the chat; a stop (chat_input.h) ends the reply with its next token. The turn's
 * number is that of its random draws, so that the same turns after a reset have the same replies. */
#ifndef TANDEM_VERIFIER_COMMAND_CHAT_H
#define TANDEM_VERIFIER_COMMAND_CHAT_H

#include "verifier/job/job.h"

/* For a job's table of commands; takes no requests. STATUS_OK at its end, also where the job was told to drain. Collective over the group, on the
 * lead; point to point with the drafters. */
enum status chat_run(struct job *job, struct peers *drafters, const struct request_list *requests);

#endif
