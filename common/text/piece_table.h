/* The piece table owns what every id is spelled like: its key (the bytes by which the model's merges know it) and its text (the
 * bytes that it adds to an output). Both are the same bytes in a byte-level vocabulary; in a SentencePiece one the key of " the"
 * is U+2581 followed by "the". Filled at open, then indexed once; immutable and free for all threads after that. */
#ifndef TANDEM_COMMON_TEXT_PIECE_TABLE_H
#define TANDEM_COMMON_TEXT_PIECE_TABLE_H

#include "common/base/status.h"
#include "common/text/byte_buffer.h"
#include <stddef.h>
#include <stdint.h>

enum { PIECE_TABLE_IDS = 1 << 20 /* ids are below this */, PIECE_TABLE_BYTES = 1024 /* of one key or text, at most */ };
enum piece_flag {
    PIECE_PRESENT = 1,
    PIECE_KEYED = 2,   /* the model may find it by its key */
    PIECE_SPECIAL = 4, /* has no text in an output */
    PIECE_BYTE = 8,    /* stands for a single byte (<0xNN>) */
};

struct piece {
    uint32_t key, key_length;   /* place in table->bytes */
    uint32_t text, text_length; /* place in table->bytes */
    unsigned flags;             /* of enum piece_flag */
};

struct piece_table {
    struct piece *pieces; /* [size], absent ids have no flags */
    int size, capacity;
    struct byte_buffer bytes;
    int32_t *by_key, *by_text; /* [mask + 1], id or -1 */
    uint32_t mask;
};

/* Gives `id` its spelling. STATUS_DATA (not logged: the caller knows the file) when the id is out of range or taken, or a length is
 * over PIECE_TABLE_BYTES; STATUS_INTERNAL. */
enum status piece_table_put(struct piece_table *table, int64_t id, const char *key, size_t key_length, const char *text, size_t text_length,
                            unsigned flags);
/* Builds the two indexes; of pieces with equal bytes the lowest id is found, and one that stands for a byte last. */
enum status piece_table_index(struct piece_table *table);
void piece_table_release(struct piece_table *table);

/* The id with PIECE_KEYED and that key, or -1. */
int32_t piece_table_find_key(const struct piece_table *table, const char *key, size_t length);
/* Any id with that text, or -1. */
int32_t piece_table_find_text(const struct piece_table *table, const char *text, size_t length);
/* Is the token one that texts are cut into: known to the model's merges, or a single byte? Others were added, or fill the table. */
int piece_table_is_text(const struct piece_table *table, int id);
/* Digest of every such id and its text. */
uint64_t piece_table_digest(const struct piece_table *table);

#endif
