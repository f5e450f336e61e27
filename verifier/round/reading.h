/* Reading puts prompts into the target's KV cache, beside the rounds of running sequences. It owns who copies from whom, and the counts of tokens
 * read and reused; the sequences are borrowed. Tokens that another slot's cache holds as a common prefix are copied; of two such prompts that come
 * together the later one waits, and the prefix is read once. Invariant: the cache has the same bits as if all had been read (a
 * row's values do not depend on its batch). A cache keeps no logits, so where log p of a prompt's tokens is asked for, the prompt is fed from there
 * on, whoever has read the same before. Only the lead's thread may call; collective over the group where so said. Never allocates after init, and
 * talks to no drafter. */
#ifndef TANDEM_VERIFIER_ROUND_READING_H
#define TANDEM_VERIFIER_ROUND_READING_H

#include "verifier/round/prefill.h"
#include "verifier/round/verify.h"

/* The slot whose cache holds, or will hold, a prefix of the prompt. */
struct source {
    int slot;     /* -1: none */
    int shared;   /* length of the prefix */
    int openings; /* of that slot when it was chosen: a change means another request has it */
};

struct reading {
    struct verify *verify;     /* borrowed */
    struct sequence *sequence; /* borrowed, [slots] */
    int slots;
    struct source *source;     /* [slots] */
    struct sequence **reader;  /* [slots] sequences that read in the next step, the oldest request first */
    int *left, *share;         /* [slots] */
    struct prefill prefill;
    int64_t read;   /* prompt tokens that were fed */
    int64_t reused; /* prompt tokens that a cache held already, of the same slot or of another */
};

size_t reading_bytes(int slots);
void reading_init(struct reading *reading, struct arena *arena, struct verify *verify, struct sequence *sequences, int slots, int chunk);

/* The free slot whose cache holds the longest prefix of the prompt that this choice of the request may take over; NULL: none is free. */
struct sequence *reading_choose_slot(const struct reading *reading, const struct request *request, int choice);
/* To be called when a sequence was opened, before anything of its prompt is fed. */
void reading_begin(struct reading *reading, struct sequence *sequence);
/* Makes the copies that can be made now: before a slot is given away for which others wait. Collective over the group. */
enum status reading_copy(struct reading *reading);
/* Makes them, and adds prompt rows to the next step, which has `runners` sequences with `taken` rows already. rows: prompt
 * rows added. Collective over the group. */
enum status reading_plan(struct reading *reading, int runners, int taken, int *rows);
/* Prompt tokens of all sequences that are not in the cache yet. */
int64_t reading_left(const struct reading *reading);

#endif
