/* The flight recorder: the last 256 things that this process did, kept in memory and written to a file only when the job breaks: by the watchdog, an
 * abort, a fatal signal, or SIGTERM when the job is torn down because of another rank. Nothing is written when all went well.
 *
 * One per process, as the watchdog is. A note takes no lock and no memory; the main thread alone makes them, and a dump from another thread or a
 * signal may at worst tear the newest. A line of the file begins with the time of the wall clock, so that the files of all ranks can be sorted
 * together; between hosts that order is as good as their clocks agree. */
#ifndef TANDEM_COMMON_BASE_RECORDER_H
#define TANDEM_COMMON_BASE_RECORDER_H

#include <stdint.h>

enum { RECORDER_EVENTS = 256 };

/* `what` is a literal; each # in it stands for the next of the numbers. The cost is that of reading the clock. */
void recorder_note(const char *what, int64_t a, int64_t b, int64_t c);

/* Says where a dump goes, FOLDER/rank-NNNN, and who tells it ("drafter"). `announce`: whoever makes the folder says so on stderr. */
void recorder_open(const char *folder, int rank, const char *who, int announce);
/* Catches fatal signals and SIGTERM: dump, then what would have happened without it. Call after MPI has started, which has handlers too. */
void recorder_catch_signals(void);
/* From here on nothing is written. Async-signal-safe. */
void recorder_close(void);
/* An address that another process may set to say the same; it is looked at by every dump. */
void recorder_heed(const _Atomic uint32_t *over);
/* Writes the events, the oldest first, and then why. The first call alone does; one that comes meanwhile waits for it. Async-signal-safe. */
void recorder_dump(const char *why);

#endif
