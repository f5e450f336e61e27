/* A sequence is a request being decoded: it owns the truth (DESIGN section 3), its committed tokens, their digest, and how many of them are in the
 * target's cache. Committed tokens are only added, never changed, and the digest is always theirs. What its drafter was told and has proposed is in the
 * link. Only the lead's thread may call; nothing here sends or waits, and only opening and closing allocate. */
#ifndef TANDEM_VERIFIER_ROUND_SEQUENCE_H
#define TANDEM_VERIFIER_ROUND_SEQUENCE_H

#include "verifier/request/completion.h"
#include "verifier/round/draft_link.h"

struct sequence {
    const struct request *request; /* NULL: the slot is free */
    int slot;
    int32_t *tokens; /* [context] committed */
    int length;      /* committed tokens */
    uint64_t digest; /* of them */
    int cached;      /* places of the target's cache that hold them: length - 1 between rounds, less while its prompt is being read */
    int openings;    /* requests that the slot has had */
    int limit;       /* length at which it ends */
    struct bias bias; /* the request's, and with min_tokens the tokens that would end it */
    uint64_t sampling_digest; /* of the sampling parameters and the bias */
    struct completion completion;

    int adaptive;         /* the draft length that the lead chose, where it may; -1: the request's own */
    struct draft_link link; /* the drafter, and its proposal */

    int64_t started_ns, first_ns, ended_ns;
    int64_t rounds, drafted, tested, accepted; /* tested: drafts up to the first that was not accepted */
};

/* Bytes that sequence_init takes from an arena. */
size_t sequence_bytes(int context, int support_room);
void sequence_init(struct sequence *sequence, struct arena *arena, int slot, int context, int support_room);
/* How many of these first tokens the slot's cache holds, or will when the prompt that it reads is read.  tokens: [count] */
int sequence_common(const struct sequence *sequence, const int32_t *tokens, int count);
/* Has its prompt been read, all but the newest token, which is fed with the drafts? */
int sequence_is_read(const struct sequence *sequence);
/* Starts a request in the slot. What its cache holds of the same first tokens, from the sequence before, stays. */
enum status sequence_open(struct sequence *sequence, const struct request *request, const struct tokenizer *tokenizer,
                          const int32_t *eos, int eos_count, int context);
/* What the request asks of single tokens, and the tokens that must not end it before min_tokens: its stop tokens and the model's EOS. */
void sequence_fill_bias(const struct request *request, const int32_t *eos, int eos_count, struct bias *bias);
void sequence_close(struct sequence *sequence);

/* Takes a proposal over (copies it) if it was computed on exactly the committed tokens with exactly the request's sampling; returns
 * whether it was. */
int sequence_offer(struct sequence *sequence, const struct proposal *proposal);
/* Appends committed tokens; the proposal that was there is used up. */
void sequence_commit(struct sequence *sequence, const int32_t *tokens, int count);
/* Draft tokens worth asking for now: at most the request's draft length, and one less than what may still come. */
int sequence_wants(const struct sequence *sequence);

#endif
