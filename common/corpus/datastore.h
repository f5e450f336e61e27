/* A datastore holds texts, and finds in them what followed the longest end of another text (He et al. 2023, REST; Liu et al. 2024, infini-gram). It
 * owns the mapped file: the tokens, and their places sorted by what stands there (a suffix array). Invariant: immutable once open, so any thread may
 * ask it. A file is checked when it is opened; what it says of the order is not believed beyond where it leads to.
 *
 * The file: struct datastore_header; int32 tokens, [places], TEXTS_NONE in front of each text and behind the last; uint32 places that have a token,
 * [sorted], by up to DATASTORE_LONGEST + 1 tokens. Little-endian. */
#ifndef TANDEM_COMMON_CORPUS_DATASTORE_H
#define TANDEM_COMMON_CORPUS_DATASTORE_H

#include "common/base/status.h"
#include "common/corpus/texts.h"
#include "common/file/file_map.h"

enum {
    DATASTORE_LONGEST = 32, /* tokens that are looked for */
    DATASTORE_LEAST = 2,    /* of them; what fewer found is not worth a draft */
    DATASTORE_SEEN = 1024,  /* places, evenly chosen, of those that are found, whose next tokens are counted */
};
#define DATASTORE_MAGIC   "tandem\nD"
#define DATASTORE_VERSION 1
#define DATASTORE_FLOOR   (-30.0f) /* log p of what did not follow */

struct datastore_header {
    char magic[8];
    uint32_t version, vocab;
    uint64_t tokenizer; /* tokenizer_digest of what the ids are of */
    uint64_t places, sorted;
    uint64_t digest; /* texts_digest of all behind the header, with that of the header before this as its seed */
};

struct datastore {
    struct file_map file;
    struct datastore_header header;
    const int32_t *token;
    const uint32_t *sorted;
};

/* A file of these texts, whole.  bytes: malloc'ed, [*size]. STATUS_DATA as of texts_check. */
enum status datastore_make(const struct texts *texts, int vocab, uint64_t tokenizer, void **bytes, size_t *size);

/* Local. STATUS_NOINPUT; STATUS_DATA for a file that is none, of another version, cut, or damaged, with a line that says which. */
enum status datastore_open(const char *path, struct datastore *store);
/* May be called twice, and of one of zeros. */
void datastore_close(struct datastore *store);
/* Of the header before its digest, and the body of so many bytes. */
uint64_t datastore_digest(const struct datastore_header *header, const void *body, size_t bytes);

/* Pure. log p(w) for each of the first `vocab` tokens, p being the share of each among what followed the longest end of `last` that occurs and is
 * followed at all. Returns its length; 0, where none of at least DATASTORE_LEAST tokens is, or by none of the first `vocab` tokens.  last: [count],
 * the newest last logits: [vocab] */
int datastore_row(const struct datastore *store, const int32_t *last, int count, int vocab, float *logits);

#endif
