/* An arena owns one mapping of memory that is taken from the front and given back as a whole: what a model, a cache or a loop
 * needs is laid out at open, and a round takes nothing. Pages are zero and are touched by their first user (so that a thread
 * may place its own part); huge pages are asked for. Not for use by two threads at once. */
#ifndef TANDEM_COMMON_BASE_ARENA_H
#define TANDEM_COMMON_BASE_ARENA_H

#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>

enum { ARENA_ALIGN = 64 };

struct arena {
    char *base;
    size_t size; /* bytes mapped */
    size_t used; /* bytes taken */
};

/* An arena's memory that other processes of the host may map, and read alone. `root` and `key` are the lender's: where in it they begin, and what it
 * is. */
struct arena_loan {
    int pid, descriptor; /* of the lender; 0 and whatever: nothing is lent */
    char *base;          /* where the lender has it, and who borrows it, too: pointers within it hold in both */
    size_t bytes;
    uint64_t device, file; /* which the descriptor is of: the number may mean another process, or another file, to who borrows */
    size_t root;
    uint64_t key;
};

/* Bytes that `bytes` occupy in an arena: rounded up to ARENA_ALIGN. */
size_t arena_round(size_t bytes);

/* Maps `bytes` of zero pages. STATUS_INTERNAL with a line that names `what` when the system has not got them. */
enum status arena_open(struct arena *arena, size_t bytes, const char *what);
/* The same of memory that can be lent, with what *loan says of it; its descriptor is the caller's to close. 0: the system gives none such. */
int arena_open_lent(struct arena *arena, size_t bytes, struct arena_loan *loan);
/* Maps what another process lends, to be read alone; arena_close as usual. 0: it cannot be had, as where another user's process lends it, or
 * something else is at its place here. */
int arena_borrow(struct arena *arena, const struct arena_loan *loan);
/* For an arena of the host's that will be used here and there: small pages are asked for, because a huge one is cleared whole at its first byte. */
void arena_expect_gaps(const struct arena *arena);
void arena_close(struct arena *arena);

/* Takes `bytes`, aligned to ARENA_ALIGN and zero. The size was computed by the opener, so running out is a fault of ours: the
 * process ends with a line that names the sizes. Never returns NULL. */
void *arena_take(struct arena *arena, size_t bytes);

/* Gives back everything taken since `mark` (a value of arena->used). The bytes keep their old content. */
void arena_rewind(struct arena *arena, size_t mark);

#endif
