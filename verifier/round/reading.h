/* Reading: how prompts get into the target's cache, between and beside the rounds of the sequences that run already. What another slot's cache holds of
 * the same first tokens is copied; two prompts that begin alike and come together are read once: the later one waits for what they share. The
 * bits are those of reading it all (DESIGN section 8: a row has the same in any company). What a step takes of whom prefill.h decides. */
#ifndef TANDEM_VERIFIER_ROUND_READING_H
#define TANDEM_VERIFIER_ROUND_READING_H

#include "verifier/round/prefill.h"
#include "verifier/round/verify.h"

/* Who has, or will have, what a prompt begins with. */
struct source {
    int slot;     /* -1: nobody */
    int shared;   /* tokens */
    int openings; /* of that slot, when this was found */
};

struct reading {
    struct verify *verify;     /* borrowed */
    struct sequence *sequence; /* borrowed, [slots] */
    int slots;
    struct source *source;     /* [slots] */
    struct sequence **reader;  /* [slots] of the next step, the oldest request first */
    int *left, *share;         /* [slots] */
    struct prefill prefill;
    int64_t read;   /* tokens of prompts that were fed */
    int64_t reused; /* tokens of prompts that a cache held already, of the same slot or of another */
};

size_t reading_bytes(int slots);
void reading_init(struct reading *reading, struct arena *arena, struct verify *verify, struct sequence *sequences, int slots, int chunk);

/* The free slot whose cache holds most of the prompt; NULL: none is free. */
struct sequence *reading_choose_slot(const struct reading *reading, const struct request *request);
/* A sequence was opened, its newest token aside nothing of its prompt is fed yet. */
void reading_begin(struct reading *reading, struct sequence *sequence);
/* Makes the copies that can be made, and adds to the next step what it reads beside `runners` sequences of `taken` rows. rows: of prompts. Collective over
 * the group. */
enum status reading_plan(struct reading *reading, int runners, int taken, int *rows);
/* Tokens of all prompts that are not read yet. */
int64_t reading_left(const struct reading *reading);

#endif
