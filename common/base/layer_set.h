/* A set of a model's layers, of which a text says the numbers, from 0: "3+8-11". Owns nothing; pure. */
#ifndef TANDEM_COMMON_BASE_LAYER_SET_H
#define TANDEM_COMMON_BASE_LAYER_SET_H

#include <stddef.h>
#include <stdint.h>

enum { LAYER_SET_LAYERS = 128, LAYER_SET_TEXT = 200 };

struct layer_set {
    uint64_t bits[LAYER_SET_LAYERS / 64];
};

int layer_set_has(const struct layer_set *set, int layer);
void layer_set_add(struct layer_set *set, int layer);
void layer_set_remove(struct layer_set *set, int layer);
/* How many of the first `layers` are in it. */
int layer_set_count(const struct layer_set *set, int layers);
/* 1, or 0 with *set as it was: the text is no such list, whose numbers rise, or one of no LAYER_SET_TEXT. */
int layer_set_read(const char *text, struct layer_set *set);
/* Writes it again, neighbours as a range; "" of none. Returns the length, which is LAYER_SET_TEXT or more where there is not enough room.
 * text: [LAYER_SET_TEXT] */
int layer_set_write(const struct layer_set *set, char *text);

#endif
