/* Rows of logits behind texts that no model computes: those of a file made of texts, whichever it is, or of nothing at all. It owns the open file.
 * Immutable once open, so any thread may ask it. */
#ifndef TANDEM_COMMON_CORPUS_CORPUS_ROWS_H
#define TANDEM_COMMON_CORPUS_CORPUS_ROWS_H

#include "common/corpus/datastore.h"
#include "common/corpus/ngram_table.h"

enum { CORPUS_ROWS_LONGEST = DATASTORE_LONGEST };

struct corpus_rows_kind;

struct corpus_rows {
    const struct corpus_rows_kind *kind; /* NULL: none is open */
    int vocab;
    uint64_t tokenizer, digest; /* of what the ids are of; of the file */
    union {
        struct ngram_table table;
        struct datastore store;
    } of;
};

/* Local. A file that `tandem MADE_BY` wrote, "ngram" or "datastore". STATUS_NOINPUT, STATUS_DATA as of that file. */
enum status corpus_rows_open(const char *path, const char *made_by, struct corpus_rows *rows);
/* Rows of a vocabulary that say nothing: all tokens are as good but for one part in a thousand, by which those that a list of the best holds are
 * others behind each token. */
void corpus_rows_random(int vocab, uint64_t tokenizer, struct corpus_rows *rows);
/* May be called twice, and of one of zeros. */
void corpus_rows_close(struct corpus_rows *rows);
/* Pure. Logits of the first `vocab` tokens, finite: log p but of rows that say nothing; 0 where the file has no row behind this text.  last: [count],
 * the newest last, of which the last CORPUS_ROWS_LONGEST matter at most  logits: [vocab] */
int corpus_rows_row(const struct corpus_rows *rows, const int32_t *last, int count, int vocab, float *logits);

#endif
