/* Byte pair encoding of one piece of text (Sennrich et al. 2016): it starts as one symbol a byte (byte-level) or a character (with bytes for what has
 * no piece), and of all neighbours that merge, those of the lowest rank do first, the leftmost of equals, until none is left. Neighbours wait in a
 * heap keyed by rank and place, so n symbols take O(n log n); an entry whose symbols have changed meanwhile is skipped when it is popped. The model
 * is borrowed and immutable; each encode call has its own working space. */
#ifndef TANDEM_COMMON_TEXT_BPE_H
#define TANDEM_COMMON_TEXT_BPE_H

#include "common/text/byte_buffer.h"
#include "common/text/merge_table.h"
#include "common/text/piece_table.h"

struct bpe {
    struct piece_table pieces;
    struct merge_table merges;
    int byte_level;          /* symbols are bytes, not characters */
    int fuse_unknown;        /* neighbouring unknown characters are one token */
    int ignore_merges;       /* a piece that is in the table as a whole is that token, whatever the merges say */
    int32_t unknown;         /* token of a character that has none, or -1: it is left out */
    int32_t byte_token[256]; /* token that stands for one byte, or -1 */
    char separator[4];       /* what a word begins with when no merge reaches across, see bpe_index */
    size_t separator_length; /* 0: words cannot be told */
};

struct bpe_work {
    struct byte_buffer symbols, heap;
};

/* Pieces longer than this are refused: places are 31 bits wide. */
enum { BPE_PIECE_BYTES = 1 << 30 };

/* To be called once pieces and merges are complete. Finds out whether words can be encoded one by one: when no merged piece has a
 * separator (U+2581 or a space) behind anything but a separator, no merge can cross the place in front of a word, so cutting there
 * changes nothing and keeps heaps short. */
void bpe_index(struct bpe *bpe);
/* Appends the tokens (int32_t) of piece[0 .. length), valid UTF-8, to `tokens`. STATUS_DATA (logged) where the piece
 * is over BPE_PIECE_BYTES, STATUS_INTERNAL where memory is not to be had. */
enum status bpe_encode(const struct bpe *bpe, struct bpe_work *work, const char *piece, size_t length, struct byte_buffer *tokens);
void bpe_work_release(struct bpe_work *work);
void bpe_release(struct bpe *bpe);

#endif
