#include "common/text/piece_table.h"

#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include <stdlib.h>
#include <string.h>

static enum status make_room(struct piece_table *table, int64_t id)
{
    int capacity = table->capacity * 2 > (int)id + 1 ? table->capacity * 2 : (int)id + 1;
    struct piece *pieces;

    if (id < table->capacity)
        return STATUS_OK;
    pieces = realloc(table->pieces, (size_t)capacity * sizeof *pieces);
    if (pieces == NULL) {
        log_error("cannot have %d pieces of a tokenizer", capacity);
        return STATUS_INTERNAL;
    }
    memset(pieces + table->capacity, 0, (size_t)(capacity - table->capacity) * sizeof *pieces);
    table->pieces = pieces;
    table->capacity = capacity;
    return STATUS_OK;
}

static enum status put_bytes(struct byte_buffer *bytes, const char *from, size_t count, uint32_t *place, uint32_t *length)
{
    *place = (uint32_t)bytes->count;
    *length = (uint32_t)count;
    return byte_buffer_append(bytes, from, count);
}

enum status piece_table_put(struct piece_table *table, int64_t id, const char *key, size_t key_length, const char *text, size_t text_length,
                            unsigned flags)
{
    struct piece piece = {.flags = flags | PIECE_PRESENT};

    progress_made("reading the tokenizer");
    if (id < 0 || id >= PIECE_TABLE_IDS || key_length > PIECE_TABLE_BYTES || text_length > PIECE_TABLE_BYTES)
        return STATUS_DATA;
    TRY(make_room(table, id));
    if (table->pieces[id].flags != 0)
        return STATUS_DATA;
    TRY(put_bytes(&table->bytes, key, key_length, &piece.key, &piece.key_length));
    if (key_length == text_length && memcmp(key, text, key_length) == 0) {
        piece.text = piece.key;
        piece.text_length = piece.key_length;
    } else {
        TRY(put_bytes(&table->bytes, text, text_length, &piece.text, &piece.text_length));
    }
    table->pieces[id] = piece;
    if (id >= table->size)
        table->size = (int)id + 1;
    return STATUS_OK;
}

/* Slot of the id whose key (or text) is bytes[0 .. length), or of the hole where it belongs. */
static uint32_t slot_of(const struct piece_table *table, const int32_t *slots, const char *bytes, size_t length)
{
    uint32_t slot = (uint32_t)digest_bytes(bytes, length, DIGEST_EMPTY) & table->mask;

    for (; slots[slot] >= 0; slot = (slot + 1) & table->mask) {
        const struct piece *piece = &table->pieces[slots[slot]];
        uint32_t place = slots == table->by_key ? piece->key : piece->text;
        uint32_t count = slots == table->by_key ? piece->key_length : piece->text_length;

        if (count == length && memcmp(table->bytes.data + place, bytes, length) == 0)
            return slot;
    }
    return slot;
}

static void index_one(const struct piece_table *table, int32_t *slots, int id)
{
    const struct piece *piece = &table->pieces[id];
    uint32_t slot = slots == table->by_key ? slot_of(table, slots, table->bytes.data + piece->key, piece->key_length)
                                           : slot_of(table, slots, table->bytes.data + piece->text, piece->text_length);

    if (slots[slot] < 0)
        slots[slot] = id;
}

static void index_where(const struct piece_table *table, int32_t *slots, unsigned mask, unsigned flags)
{
    for (int id = 0; id < table->size; id++)
        if ((table->pieces[id].flags & mask) == flags)
            index_one(table, slots, id);
}

enum status piece_table_index(struct piece_table *table)
{
    size_t slots = 64;

    while (slots < (size_t)table->size * 2)
        slots *= 2;
    TRY(byte_buffer_reserve(&table->bytes, 1)); /* so that data is never NULL */
    table->by_key = malloc(slots * sizeof *table->by_key);
    table->by_text = malloc(slots * sizeof *table->by_text);
    if (table->by_key == NULL || table->by_text == NULL) {
        log_error("cannot have %zu slots for the pieces of a tokenizer", slots);
        return STATUS_INTERNAL;
    }
    table->mask = (uint32_t)slots - 1;
    memset(table->by_key, -1, slots * sizeof *table->by_key);
    memset(table->by_text, -1, slots * sizeof *table->by_text);
    index_where(table, table->by_key, PIECE_KEYED, PIECE_KEYED);
    index_where(table, table->by_text, PIECE_PRESENT | PIECE_BYTE, PIECE_PRESENT);
    index_where(table, table->by_text, PIECE_PRESENT | PIECE_BYTE, PIECE_PRESENT | PIECE_BYTE);
    return STATUS_OK;
}

void piece_table_release(struct piece_table *table)
{
    free(table->pieces);
    free(table->by_key);
    free(table->by_text);
    byte_buffer_release(&table->bytes);
    *table = (struct piece_table){0};
}

int32_t piece_table_find_key(const struct piece_table *table, const char *key, size_t length)
{
    return table->by_key[slot_of(table, table->by_key, key, length)];
}

int32_t piece_table_find_text(const struct piece_table *table, const char *text, size_t length)
{
    return table->by_text[slot_of(table, table->by_text, text, length)];
}

int piece_table_is_text(const struct piece_table *table, int id)
{
    return id < table->size && (table->pieces[id].flags & (PIECE_KEYED | PIECE_BYTE)) != 0;
}

uint64_t piece_table_digest(const struct piece_table *table)
{
    uint64_t digest = DIGEST_EMPTY;

    for (int id = 0; id < table->size; id++) {
        const struct piece *piece = &table->pieces[id];
        uint32_t head[2] = {(uint32_t)id, piece->text_length};

        if (!piece_table_is_text(table, id))
            continue;
        digest = digest_bytes(head, sizeof head, digest);
        digest = digest_bytes(table->bytes.data + piece->text, piece->text_length, digest);
    }
    return digest;
}
