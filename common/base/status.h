/* The one status type. Values are the program's exit codes (sysexits), so only `main` turns a status into an exit code and it needs no table. A
 * function that can fail returns `enum status`; the first to know the reason logs it; callers pass the status up silently and leave their outputs
 * untouched. Plain values; pure. */
#ifndef TANDEM_COMMON_BASE_STATUS_H
#define TANDEM_COMMON_BASE_STATUS_H

enum status {
    STATUS_OK = 0,
    /* `tandem check` found something that does not hold. launch/tandem turns it into 1, which mpirun uses for failures of its own */
    STATUS_CHECK = 10,
    STATUS_ELSEWHERE = 2, /* another rank failed and says why: never an exit code, for its own status is larger and the job ends with that */
    STATUS_USAGE = 64,    /* the command line */
    STATUS_DATA = 65,     /* a model or an input that is wrong */
    STATUS_NOINPUT = 66,  /* a file that is missing or cannot be read */
    STATUS_INTERNAL = 70, /* a fault of this program, or memory that is not to be had */
    STATUS_IO = 74,       /* a write, a network or an MPI call that failed */
    STATUS_DRAINED = 75,  /* stopped on request with work left: run again */
    STATUS_WATCHDOG = 76, /* no progress within the deadline */
};

#endif
