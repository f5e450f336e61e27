/* The signals that a rank heeds. SIGUSR1 tells the job to drain: to end soon and lose nothing. It may come to any rank, or to all. */
#ifndef TANDEM_COMMON_WORLD_SIGNALS_H
#define TANDEM_COMMON_WORLD_SIGNALS_H

/* Local, first of all: until then SIGUSR1 ends the process. A file that reaches a limit of its size, a pipe that nobody reads and a peer
 * that closed its connection are failing writes from here on, not signals that end the process. */
void signals_open(void);
/* Local. Has this process been told to drain? */
int signals_ask_to_drain(void);

#endif
