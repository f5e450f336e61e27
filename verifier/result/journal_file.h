/* What a journal does with its file: claim it for one job, append whole lines, make them durable. It owns the descriptor and its lock. Invariant: the
 * file ends with a whole line, unless the process dies while it writes one. Every failure is told in one line and is STATUS_IO. For the files of the
 * journal alone; it never looks at what lines say. */
#ifndef TANDEM_VERIFIER_RESULT_JOURNAL_FILE_H
#define TANDEM_VERIFIER_RESULT_JOURNAL_FILE_H

#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>

enum { JOURNAL_FILE_PATIENCE_S = 15 };

struct journal_file {
    int fd; /* -1: closed */
    char *path;
    const char *output; /* borrowed: what the user knows it by */
    uint64_t end;       /* the file has so many bytes as long as nobody else writes to it */
};

/* Opens and locks the journal of `output`, and creates it where there is none. Another job that holds it is waited for, because the ranks of a
 * job whose mpirun was killed live on for some seconds, but no longer than `patience_s`. */
enum status journal_file_claim(struct journal_file *file, const char *output, int patience_s);
/* Removes the file, then releases the lock. */
enum status journal_file_remove(struct journal_file *file);
/* Releases the lock; the file stays. */
void journal_file_close(struct journal_file *file);
/* All of it: to be freed. */
enum status journal_file_read(const struct journal_file *file, char **bytes, size_t *count);
/* Cuts it to `count` bytes. */
enum status journal_file_cut(struct journal_file *file, uint64_t count);
/* Appends at `end`. What was written in part is taken back. A file that others wrote to, or that was removed, is left alone. */
enum status journal_file_append(struct journal_file *file, const char *bytes, size_t count);
/* What was appended is durable when this returns. */
enum status journal_file_sync(const struct journal_file *file);
/* The same for the name of a file: after creating or renaming. */
enum status journal_file_sync_folder(const char *path);

#endif
