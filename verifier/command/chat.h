/* `tandem chat`: turn after turn. A line of stdin is a user's message; the reply streams to stdout, and both become part of what the next one is an
 * answer to, byte for byte. The target's cache keeps what it has of it, so a turn costs its own tokens alone.
 *
 * /reset forgets all turns, /exit, /quit or the end of stdin ends, a stop (chat_input.h) ends the reply with its next token. The turn's number is that of its
 * random draws, so that the same turns after a reset have the same replies. */
#ifndef TANDEM_VERIFIER_COMMAND_CHAT_H
#define TANDEM_VERIFIER_COMMAND_CHAT_H

#include "verifier/job/job.h"

/* For a job's table of commands; takes no requests. STATUS_OK at its end, also where the job was told to drain. Collective over the group, on the
 * lead; point to point with the drafters. */
enum status chat_run(struct job *job, struct peers *drafters, const struct request_list *requests);

#endif
