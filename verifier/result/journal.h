/* The journal of a job that writes to a file: results in the order in which they finish, each durable soon after. It owns the journal's file and its
 * lock from open to close. Invariant: a result counts once journal_sync has made it durable, and then no kill, full disk or lost power takes it back;
 * the journal outlives the job, and a later job goes on from it. When all results are there, the file itself is written in the order of the input,
 * and the journal is removed. The lead's thread alone calls; it blocks on the disk. */
#ifndef TANDEM_VERIFIER_RESULT_JOURNAL_H
#define TANDEM_VERIFIER_RESULT_JOURNAL_H

#include "verifier/request/request.h"
#include "verifier/result/journal_file.h"
#include "verifier/result/journal_scan.h"

struct journal_place {
    uint64_t offset;
    uint64_t bytes; /* 0: there is no result yet */
};

struct journal {
    struct journal_file file;
    struct journal_place *place; /* [requests->count] */
    const struct request_list *requests;
    int held;    /* results in it */
    int resumed; /* of them, those of earlier jobs */
    int is_done; /* the output is complete since an earlier job; there is no journal */
    int dirty;   /* something was appended and is not durable yet */
    int failed;  /* it cannot be written to any more */
    int64_t synced_ns, sync_ns; /* when that was last done, and how long it took */
    struct journal_scan scan;   /* what was found, until begin */
    char *found;                /* the bytes of it */
    int resume;
    char *terms; /* the job's own copy */
};

/* What a job is told apart by. */
struct journal_job {
    const struct request_list *requests; /* must live as long as the journal */
    const char *terms;                   /* what its results depend on: a JSON object (journal_terms.h) */
    uint64_t run;
    const char *host;
};

/* Can results to this path have a journal? Not stdout, a device, a pipe or a link. */
int journal_is_for(const char *output);
/* Claims the journal of `output` and reads what it holds, as soon as a job starts. Without `resume` a journal with results is refused.
 * STATUS_USAGE, STATUS_IO. `output` must live as long as the journal. */
enum status journal_open(struct journal *journal, const char *output, int resume);
/* Begins or goes on, once the input is known. STATUS_DATA when the journal is of another job, and says what differs. */
enum status journal_begin(struct journal *journal, const struct journal_job *job);
int journal_has(const struct journal *journal, int at);
/* Adds the line of output (without newline) of one of the requests. */
enum status journal_add(struct journal *journal, const struct request *request, const char *text);
/* Makes durable what was added, when that is due or `now`. Cheap enough for every round. */
enum status journal_sync(struct journal *journal, int now);
/* Makes everything durable; when every result is there, writes the output and removes the journal. */
enum status journal_finish(struct journal *journal);
/* Makes durable what was added, and lets go of the file. A journal that nothing was begun in is removed. */
enum status journal_close(struct journal *journal);

#endif
