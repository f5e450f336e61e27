/* What a person sees while a job runs: the completion as it grows (with its drafts coloured as in Leviathan et al. 2023, Figure 1, where that is
 * asked for), or progress over prompts. Where the completion is shown, a prompt that takes long has a line of progress until the text begins. It
 * owns the counts that the lines are made of; the streams are the caller's. Invariant: a terminal gets no byte of a model or a prompt that it
 * would obey. The lead's thread alone calls; local. Never writes results. */
#ifndef TANDEM_VERIFIER_JOB_SHOW_H
#define TANDEM_VERIFIER_JOB_SHOW_H

#include "verifier/job/explain_page.h"
#include "verifier/job/progress_line.h"
#include "verifier/result/output.h"
#include "verifier/round/sequence.h"
#include "verifier/round/verify.h"
#include <stdio.h>

struct show {
    FILE *text;    /* where a completion streams to; NULL: nowhere */
    FILE *notes;   /* where all else goes; NULL: nowhere */
    int text_is_terminal, notes_is_terminal; /* which gets no byte that it would obey; a pipe gets the bytes */
    int explains;                            /* each round, before the text, which is then shown whole at its end */
    struct explain_page *page;               /* where rounds go, too; NULL: nowhere */
    int drafts;    /* the text is shown with what was drafted, if in colour */
    int colour;
    int bar;       /* progress as a bar that is redrawn */
    int total;     /* requests */
    int done;
    int64_t tokens;      /* generated */
    int64_t read, reads; /* tokens of prompts: that were read, that are to be read */
    int64_t past, whole; /* tokens of prompts and completions that are behind, that there may be at most: the estimate of what is left */
    int64_t started_ns;
    struct progress_line progress; /* over all requests; set up by show_begin */
    struct progress_line reading;  /* how far a prompt is read whose completion streams; set up by the caller */
    const struct sequence *unread; /* whose prompt is being read, and shown when its completion begins */
    int64_t reading_ns, reading_from; /* since when, from which number of tokens read */
    size_t printed; /* bytes of the completion that is shown */
    struct utf8_stream stream;
};

/* Begins to count, over these requests; set up by the caller before. kept: what an earlier job has written of them, or NULL */
void show_begin(struct show *show, const struct request_list *requests, const struct output *kept);
/* This sequence's prompt is read from here on; it is shown when that is over, before its completion. */
void show_prompt(struct show *show, const struct sequence *sequence);
/* One round of the sequence whose text streams: its outcome, cut to `kept` tokens. */
void show_round(struct show *show, const struct sequence *sequence, const struct outcome *outcome, const struct proposal *proposal, int kept);
void show_end(struct show *show, const struct sequence *sequence);
/* A request that is done without decoding: it is wrong, or an earlier job has its result. */
void show_skip(struct show *show, const struct request *request);
/* So many tokens of prompts were read. */
void show_read(struct show *show, int tokens);
/* Progress over all requests: a bar, or a line every few seconds. */
void show_progress(struct show *show, int finished, int tokens);

#endif
