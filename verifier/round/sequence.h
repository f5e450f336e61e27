/* A sequence is a request being decoded: it owns the truth, that is the committed tokens, their digest, and how many of them are
 * in the target's cache. Invariant: committed tokens are only added, never changed, and the digest is always theirs. What its drafters were told and
 * have proposed is in their links, and what is merged from them here. Only the lead's thread may call. Never sends or waits, and only opening and
 * closing allocate. */
#ifndef TANDEM_VERIFIER_ROUND_SEQUENCE_H
#define TANDEM_VERIFIER_ROUND_SEQUENCE_H

#include "verifier/request/completion.h"
#include "verifier/round/draft_link.h"
#include "verifier/round/merge.h"
#include "verifier/team/team.h"

struct sequence {
    const struct request *request; /* NULL: the slot is free */
    int choice;                    /* which completion of the request it is, from 0 */
    int64_t ticket; /* rises with each sequence that a run opens: who came first, and what drafters know it by; as long as each request has one
                       completion, its number */
    struct sampling sampling; /* the request's, with the choice's own seed */
    int slot;
    int32_t *tokens; /* [context] committed */
    int length;      /* committed tokens */
    uint64_t digest; /* of the committed tokens */
    int cached;      /* leading tokens that the target's cache holds: length - 1 between rounds, fewer while the prompt is being read */
    int openings;    /* requests that the slot has had */
    int limit;       /* length at which the request ends */
    struct bias bias; /* the request's logit biases; with min_tokens also the tokens that would end it */
    uint64_t sampling_digest; /* of the sampling parameters and the bias */
    struct completion completion;
    int scores; /* log p of so many tokens at the end of its prompt is asked for: request->scores, and none of a further choice, whose prompt is
                   the same */
    struct logprob *logprobs; /* [scores + completion.count] of the last tokens of its prompt and its own; NULL: none are asked for */
    double logprob_sum;       /* of its own tokens, where completions are chosen by it (request_chooses) */

    int adaptive;         /* the draft length that the lead chose; -1: the request has one of its own */
    enum tree_kind shape; /* of the drafts that are asked for, where the lead chooses it */
    int repeats;          /* its text depends on what is drafted, and its draft length is its own: the same seed is to give it again */
    int links;            /* draft links that there are, */
    int linked;           /* and those in use: all of them where the rule merges, else the first alone */
    struct draft_link *link; /* [links] by the kind of drafter: what it was told, and its proposal */
    struct merged merged;    /* of their proposals, where several are in use */
    int owns;                /* the target's own tokens in its last round, where the drafter hears them (struct verify: tells_own); else 0 */
    int32_t own[MESSAGE_MAX_COMMIT];

    int64_t started_ns, first_ns, ended_ns;
    int64_t rounds, drafted, tested, accepted; /* tested: accepted drafts and the first rejected one */
};

/* Bytes that sequence_init takes from an arena. */
size_t sequence_bytes(int context, int support_room, int links);
void sequence_init(struct sequence *sequence, struct arena *arena, int slot, int context, int support_room, int links);
/* How many of these leading tokens the slot's cache holds, or will hold once its prompt is read.  tokens: [count] */
int sequence_common(const struct sequence *sequence, const int32_t *tokens, int count);
/* Is the prompt in the cache, except for the newest token, which is fed with the drafts? */
int sequence_is_read(const struct sequence *sequence);
/* Does the request ask for no token, so that it ends once its prompt is read? */
int sequence_only_reads(const struct sequence *sequence);
/* Tokens of a prompt that may come from a cache. The newest is always fed, for its logits, and so are those after which log p is asked for: a cache
 * keeps no logits. */
int sequence_reusable(const struct request *request, int choice);
/* Of the next `count` prompt tokens to be read, how many give log p that is asked for? They are the last ones. */
int sequence_scored_rows(const struct sequence *sequence, int count);
/* Log p of the token at this place; NULL where none is known, as of a text's first token. */
struct logprob *sequence_logprob(const struct sequence *sequence, int place);
/* Starts a completion of a request in the slot, the only one or one of several. The prefix that the slot's cache still holds of the sequence before
 * is kept. */
enum status sequence_open(struct sequence *sequence, const struct request *request, int choice, const struct tokenizer *tokenizer, const int32_t *eos,
                          int eos_count, int context);
/* Is log p of its tokens asked for, to be told or to choose by? */
int sequence_wants_logprobs(const struct sequence *sequence);
/* Log p of its next token, which was committed at this place. */
void sequence_add_logprob(struct sequence *sequence, int place, const struct logprob *logprob);
/* Fills in the request's logit biases and, for min_tokens, the tokens that must not end it before: its stop tokens and the model's EOS. */
void sequence_fill_bias(const struct request *request, const int32_t *eos, int eos_count, struct bias *bias);
void sequence_close(struct sequence *sequence);

/* What becomes of a proposal that is offered. */
enum offer { OFFER_REFUSED, OFFER_TAKEN, OFFER_KEPT };
/* Copies a proposal into that link if it was computed on exactly the committed tokens with exactly the request's sampling, and is no tree where the
 * rule decides about chains alone or chains are merged, or onto its shelf if it begins with more tokens, which may be committed next. */
enum offer sequence_offer(struct sequence *sequence, struct draft_link *link, const struct proposal *proposal);
/* Joins what its drafters proposed into the one tree that is verified: of all their drafts the best by what agreed with the text before of each kind
 * (merge.h). Where one link is in use its proposal stays as it is. */
void sequence_merge(struct sequence *sequence, const struct merge *merge);
/* A proposal that nobody drafted, of as many tokens as are wanted, so that a round can be timed with their rows: its newest token again and again,
 * each with a q of so many ids where the rule asks for one. No drafter may be linked to it.  support: 1 .. the vocabulary */
void sequence_fill(struct sequence *sequence, int support);
/* What is to be verified in this round; NULL: nothing was drafted, and where several links are in use, before sequence_merge. */
const struct proposal *sequence_proposal(const struct sequence *sequence);
/* The same also after its tokens were committed, until the next comes; of no meaning where there was none. */
const struct proposal *sequence_latest(const struct sequence *sequence);
/* Is one of its drafters there, and not behind? */
int sequence_has_drafter(const struct sequence *sequence);
/* Appends committed tokens and drops the proposal. */
void sequence_commit(struct sequence *sequence, const int32_t *tokens, int count);
/* Drafts to ask for now: at most the draft length, and one less than the tokens that may still come, as a round adds a token of the target's own. */
int sequence_wants(const struct sequence *sequence);

#endif
