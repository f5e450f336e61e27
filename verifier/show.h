/* What a person sees while it runs: the completion as it grows (on a terminal coloured as in Leviathan et al. 2023, Figure 1), or progress
 * over many prompts. */
#ifndef TANDEM_VERIFIER_SHOW_H
#define TANDEM_VERIFIER_SHOW_H

#include "verifier/sequence.h"
#include "verifier/verify.h"
#include <stdio.h>

struct show {
    FILE *text;    /* where a completion streams to; NULL: nowhere */
    FILE *notes;   /* where all else goes; NULL: nowhere */
    int colour;
    int bar;       /* progress as a bar that is redrawn */
    int total;     /* requests */
    int done;
    int64_t tokens;
    int64_t started_ns, last_ns;
    size_t printed; /* bytes of the completion that is shown */
    struct utf8_stream stream;
};

/* The prompt, before its completion. */
void show_prompt(struct show *show, const struct sequence *sequence);
/* One round of the sequence whose text streams: its outcome, cut to `kept` tokens. */
void show_round(struct show *show, const struct sequence *sequence, const struct outcome *outcome, const struct proposal *proposal, int kept);
void show_end(struct show *show, const struct sequence *sequence);
/* Progress over all requests: a bar, or a line every few seconds. */
void show_progress(struct show *show, int finished, int tokens);

#endif
