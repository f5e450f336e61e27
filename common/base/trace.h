/* The trace: what this process did in each round, as spans of time by phase, for `tandem bench`. It owns its memory, taken and touched once, at open;
 * a span then costs two looks at the clock and 40 bytes, and without a trace one comparison. When the memory is full later spans are counted and not
 * kept. The file is written when the run is over, never in a round.
 *
 * One per process, as the recorder is; the main thread alone makes spans. Times are of this host's monotonic clock: those of other hosts differ by
 * what common/world/clock_offset.h measures. */
#ifndef TANDEM_COMMON_BASE_TRACE_H
#define TANDEM_COMMON_BASE_TRACE_H

#include "common/base/status.h"
#include <stdint.h>

/* Who makes it, and its three numbers. Spans of one rank nest or follow each other. */
enum trace_phase {
    TRACE_ROUND,   /* lead: sequences, those that had a proposal of the first kind of drafter, and of these those whose proposal was drafted before it
                      was asked for */
    TRACE_PREFILL, /* lead: a prompt goes through the target; tokens */
    TRACE_DRAFT,   /* drafter: tokens asked for, sequences */
    TRACE_PACK,    /* drafter: a proposal is packed, and at the end handed to MPI; tokens, bytes */
    TRACE_WAIT,    /* any: for proposals (lead), for messages (drafter), for an order (follower) */
    TRACE_UNPACK,  /* lead: a proposal is read; tokens, those drafted before their text was committed, bytes. It ends when the proposal counts as
                      arrived */
    TRACE_ORDER,   /* lead: an order goes to the followers; bytes */
    TRACE_VERIFY,  /* verifier: forward pass and evidence; rows, nanoseconds of it in the group's sums */
    TRACE_GATHER,  /* verifier: evidence goes to the lead; bytes */
    TRACE_DECIDE,  /* lead: distributions, accept tests, draws; sequences */
    TRACE_BROADCAST, /* lead: a commit, packed and handed to MPI; tokens, drafted, accepted. `length` is that before it */
    TRACE_TRUNCATE,  /* drafter: a commit is read and applied; tokens */
    TRACE_OUTPUT,    /* lead: results and what people see */
    TRACE_PHASES,
};

struct trace_span {
    int64_t start_ns, end_ns;
    int32_t phase;    /* enum trace_phase */
    uint32_t request; /* of the first sequence where it is about several */
    int32_t length;   /* committed tokens of it */
    int32_t value[3];
};

/* What the columns of the file are called, and the phases in it. */
#define TRACE_COLUMNS "phase,start_ns,end_ns,request,length,a,b,c"
const char *trace_name(enum trace_phase phase);
/* The phase of that name, or -1. */
int trace_phase_of(const char *name, int length);

/* Begins to keep at most `spans` spans, which trace_write will put into FOLDER/rank-NNNN.csv: that it can be written is found out here, before
 * anything is decoded. STATUS_INTERNAL, STATUS_IO, logged. */
enum status trace_open(int spans, const char *folder, int rank);
/* The time, or 0 when there is no trace. */
int64_t trace_begin(void);
/* Keeps a span that began at `start_ns` and ends now; nothing when that is 0. */
void trace_end(enum trace_phase phase, int64_t start_ns, uint32_t request, int length, int64_t a, int64_t b, int64_t c);
/* Writes lines of comment with who made it, then the spans in the order of their ends. Nothing without a trace. STATUS_IO, logged. */
enum status trace_write(const char *role, const char *host);
void trace_close(void);

#endif
