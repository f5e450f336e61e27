/* An n-gram table says how probable each token is behind the last few: interpolated Kneser-Ney with three discounts for each order (Chen and Goodman
 * 1998, section 3.4), of which the file has what a row needs and no counts. It owns the mapped file and the logarithms of its unigrams. Invariant:
 * immutable once open, so any thread may ask it. A file is checked as a whole when it is opened: what a row reads lies within it, and every number is
 * between 0 and 1. `ngram_count.h` makes them.
 *
 * The file: struct ngram_header; then float32 of each token alone, [vocab]; then for each order 2 .. order, of `contexts` texts of order - 1 tokens:
 * int32 tokens, [contexts][order - 1], rising; uint32 where the tokens that followed each begin, [contexts + 1]; float32 of what is left for shorter
 * texts, [contexts]; int32 of the tokens that followed, [followers], rising behind each context; float32 of the share of each, [followers].
 * Little-endian. p(w | t_1 .. t_k) = share(t_1 .. t_k, w) + left(t_1 .. t_k) p(w | t_2 .. t_k) */
#ifndef TANDEM_COMMON_CORPUS_NGRAM_TABLE_H
#define TANDEM_COMMON_CORPUS_NGRAM_TABLE_H

#include "common/base/status.h"
#include "common/corpus/texts.h"
#include "common/file/file_map.h"
#include <stddef.h>
#include <stdint.h>

enum { NGRAM_ORDER = 5 /* the highest */, NGRAM_CONTEXT = NGRAM_ORDER - 1 };
#define NGRAM_MAGIC   "tandem\nN"
#define NGRAM_VERSION 1

struct ngram_header {
    char magic[8];
    uint32_t version, order, vocab, unused;
    uint64_t tokenizer;                /* tokenizer_digest of what the ids are of */
    uint64_t tokens;                   /* that it was made from */
    uint64_t contexts[NGRAM_CONTEXT];  /* of the orders from 2 on */
    uint64_t followers[NGRAM_CONTEXT]; /* the same */
    uint64_t digest;                   /* texts_digest of all behind the header, with that of the header before this as its seed */
};

/* What there is of an order. Of a table that was opened it is read alone. */
struct ngram_level {
    int32_t *context;
    uint32_t *first;
    float *left;
    int32_t *token;
    float *share;
};

/* All that lies behind a header. */
struct ngram_body {
    float *alone;                            /* [vocab] */
    struct ngram_level level[NGRAM_CONTEXT]; /* behind 1, 2, ... tokens */
};

struct ngram_table {
    struct file_map file;
    struct ngram_header header;
    struct ngram_body body;
    float *log_alone; /* [vocab] */
};

/* Local. STATUS_NOINPUT; STATUS_DATA for a file that is none, of another version, cut, or damaged, with a line that says which. */
enum status ngram_table_open(const char *path, struct ngram_table *table);
/* May be called twice, and of a table of zeros. */
void ngram_table_close(struct ngram_table *table);

/* For who makes one. Bytes of the body that such a header has behind it; 0: more than a file can have. */
size_t ngram_table_bytes(const struct ngram_header *header);
/* Where in the body everything lies. */
void ngram_table_lay_out(const struct ngram_header *header, void *bytes, struct ngram_body *body);
/* Of the header before its digest, and the body. */
uint64_t ngram_table_digest(const struct ngram_header *header, const void *body);

/* Pure. log p(w | the last `count` tokens) for each of the first `vocab` tokens, never -infinity.  last: [count], the newest last; of these the
 * newest order - 1 matter  vocab: at most the table's  logits: [vocab] */
void ngram_table_row(const struct ngram_table *table, const int32_t *last, int count, int vocab, float *logits);

#endif
