/* The messages between roles as plain structs, and their packing. Generated protobuf types stay inside this folder. Messages from
 * peers are untrusted: unpacking checks the frame, walks it before protobuf-c sees it (which has no depth limit), then checks every
 * number; what does not fit is refused with a reason and counted by the caller, never repaired.
 *
 * Packing and unpacking allocate nothing: both work in a `struct message_space` laid out at open, which has one region for each. So a
 * frame lives until the next packing with its space, and what an unpacked struct points at until the next unpacking with it. */
#ifndef TANDEM_COMMON_WIRE_MESSAGE_H
#define TANDEM_COMMON_WIRE_MESSAGE_H

#include "common/base/status.h"
#include "common/sample/bias.h"
#include "common/sample/sampling.h"
#include "common/sample/sparse_q.h"
#include "common/sample/tree_shape.h"
#include <stddef.h>
#include <stdint.h>

enum {
    MESSAGE_VERSION = 13,
    MESSAGE_MOST_WORTH = 1000,
    MESSAGE_MAX_DRAFT = SAMPLING_MAX_DRAFT,
    MESSAGE_MAX_COMMIT = MESSAGE_MAX_DRAFT + 1, /* all drafted tokens and the bonus */
    MESSAGE_MAX_SUPPORT = SPARSE_Q_MAX,
    MESSAGE_MAX_TOKENS = 1 << 20,
    MESSAGE_Q_SUM = SPARSE_Q_SUM,
    /* Tokens: a drafter that lacks more of a request's reads them in parts before it answers, and the lead knows that it may. */
    MESSAGE_LONG_TEXT = 64,
};

enum message_type {
    MESSAGE_HELLO = 1, /* any to any, once, gathered at start */
    MESSAGE_OPEN,      /* lead to drafter: a request, or again after a gap, with all committed tokens */
    MESSAGE_CLOSE,     /* lead to drafter: forget the request */
    MESSAGE_PROPOSAL,  /* drafter to lead */
    MESSAGE_COMMIT,    /* lead to drafter */
    MESSAGE_HEARTBEAT, /* lead to drafter when idle, and back; drafter to lead now and then while it reads a long text */
    MESSAGE_FAILURE,   /* any to lead: this rank cannot go on */
    MESSAGE_SHUTDOWN,  /* lead to drafter: the end */
    MESSAGE_DRAIN,     /* any to lead: end soon and lose nothing */
    MESSAGE_TYPES = MESSAGE_DRAIN,
};

struct hello {
    uint32_t protocol;       /* MESSAGE_VERSION */
    char program[32];        /* version text */
    uint32_t role;           /* enum role */
    uint64_t run;            /* drawn by world rank 0 */
    uint64_t vocab_digest;   /* tokenizer_digest */
    uint32_t vocab_size;     /* tokenizer_size; 0: a drafter without a model, which takes the target's vocabulary */
    int32_t bos;             /* -1: none */
    int32_t eos;             /* the first; -1: none */
    uint32_t context;        /* tokens of the model's context */
    char model[256];         /* its path as given */
    char host[64];
    uint32_t pid;
    char device[64];
    uint32_t draft_ns;       /* of a drafter: a step of one sequence; 0: not worth measuring */
    uint32_t draft_batch_ns; /* and of as many as it may have */
};

struct open_message {
    uint64_t run;
    uint32_t request;        /* by which all messages about it name it */
    uint32_t line;           /* the number of its line of input, for its random numbers (struct rng_key); choices of a line have the same */
    uint32_t pass;           /* which pass of the job over its prompts it is of */
    uint32_t prompt_count;   /* 1 .. count: how many of the tokens are the prompt (penalties treat the rest as generated) */
    const int32_t *tokens;   /* [count] all committed tokens */
    int count;               /* 1 .. MESSAGE_MAX_TOKENS */
    struct sampling sampling;
    uint32_t draft_length;   /* tokens wanted in the next proposal, 0 .. MESSAGE_MAX_DRAFT */
    uint32_t shape;          /* enum tree_kind of it, below TREE_AUTO, where the lead chooses it; else 0 */
    uint32_t limit;          /* committed length at which the request ends, count .. MESSAGE_MAX_TOKENS */
    const struct bias *bias; /* NULL: none */
};

struct close_message {
    uint64_t run;
    uint32_t request;
};

/* The distribution that one drafted token was sampled from: q(id[i]) = weight[i] / MESSAGE_Q_SUM, ids rising. count = 0 is the point
 * mass on the token itself (drafts of rules that need no q, and copies). */
struct support {
    int count;
    const int32_t *id;       /* [count], strictly rising */
    const uint32_t *weight;  /* [count], each >= 1, sum MESSAGE_Q_SUM */
};

struct proposal {
    uint64_t run;
    uint32_t request;
    uint32_t base_length;    /* committed tokens it was computed on */
    uint64_t base_digest;    /* digest_tokens of them */
    uint64_t sampling_digest;
    int count;               /* drafted tokens, 0 .. MESSAGE_MAX_DRAFT */
    int32_t token[MESSAGE_MAX_DRAFT];
    struct support q[MESSAGE_MAX_DRAFT]; /* of those that follow one token the first has their q, and none of the others one .. */
    struct support asked;                /* .. but where the lead joined what several drafters drew (count above 0): there each token has its own q,
                                            and here are the ids of all q's for the newest committed token, without weights. Never sent */
    int is_tree;             /* 0: a chain, each token follows the one before it, and parent is not read */
    int8_t parent[MESSAGE_MAX_DRAFT]; /* the token that each follows, an earlier one by its index; -1: the newest committed one */
    uint32_t ahead;                   /* tokens drafted before the text was committed, 0 .. count */
    uint32_t draft_us;       /* the drafter's own time for it, from the trigger to the send */
};

/* The token that the i-th follows, by its index; -1: the newest committed one. */
static inline int proposal_parent(const struct proposal *proposal, int i)
{
    return proposal->is_tree ? proposal->parent[i] : i - 1;
}

/* The first token from the `from`-th on that follows that one (-1: the newest committed one); -1: there is none. */
static inline int proposal_child(const struct proposal *proposal, int parent, int from)
{
    if (!proposal->is_tree)
        return parent + 1 >= from && parent + 1 < proposal->count ? parent + 1 : -1;
    for (int i = from; i < proposal->count; i++)
        if (proposal->parent[i] == parent)
            return i;
    return -1;
}

/* The q that the i-th was drawn from, and in *drawn the token of its point mass where that is all there is of it. */
static inline const struct support *proposal_q(const struct proposal *proposal, int i, int32_t *drawn)
{
    int first = proposal->is_tree && proposal->asked.count == 0 ? 0 : i;

    while (first < i && proposal->parent[first] != proposal->parent[i])
        first++;
    *drawn = proposal->token[first];
    return &proposal->q[first];
}

/* The ids that the row in front of the i-th is asked about, in the same form. */
static inline const struct support *proposal_asked(const struct proposal *proposal, int i, int32_t *drawn)
{
    const struct support *q = proposal_q(proposal, i, drawn);

    return proposal->asked.count > 0 && proposal_parent(proposal, i) < 0 ? &proposal->asked : q;
}

struct commit {
    uint64_t run;
    uint32_t request;
    uint32_t old_length;     /* committed tokens before */
    uint32_t accepted;       /* drafted tokens among the new ones */
    const int32_t *tokens;   /* [count] newly committed */
    int count;               /* 0 .. MESSAGE_MAX_COMMIT */
    uint32_t keep;           /* cache-truncation point: places that stay valid */
    uint64_t digest;         /* of the committed tokens, the new ones included */
    uint32_t finish;         /* enum finish_reason; not 0: the request is over */
    uint32_t draft_length;   /* tokens wanted in the next proposal */
    uint32_t shape;          /* as in Open */
    uint32_t worth;          /* 1/1000, at most MESSAGE_MOST_WORTH: how probable a text must be for drafts with a q to be sent before it is committed;
                                0: not known */
    uint32_t price;          /* the same: what the row of one more draft costs, in tokens of the job; 0: not known, or nobody asks */
    const int32_t *own;      /* [owns] the target's own token behind the newest of the tokens before, then behind each draft of the round */
    int owns;                /* 0 .. MESSAGE_MAX_COMMIT; 0: nobody asks */
};

struct failure {
    uint32_t code;           /* enum status */
    char text[256];
};

/* A packed message: a frame header and the protobuf. */
struct frame {
    const unsigned char *bytes;
    size_t count;
};

struct message_space;

/* Largest frame of any message, in bytes: what a receiver must be ready for. */
size_t message_frame_limit(void);
enum status message_space_open(struct message_space **space);
void message_space_close(struct message_space *space);

/* Packing: the frame lies in the space. They cannot fail for values within the limits above; anything else is a fault of ours. */
struct frame message_pack_hello(struct message_space *space, const struct hello *hello);
struct frame message_pack_open(struct message_space *space, const struct open_message *open);
struct frame message_pack_close(struct message_space *space, const struct close_message *close);
struct frame message_pack_proposal(struct message_space *space, const struct proposal *proposal);
struct frame message_pack_commit(struct message_space *space, const struct commit *commit);
struct frame message_pack_failure(struct message_space *space, const struct failure *failure);
/* Heartbeat, Shutdown and Drain carry the run alone. A Drain carries its complement (~run), so that a Heartbeat whose type was damaged on the way
 * is not taken for one. */
struct frame message_pack_plain(struct message_space *space, enum message_type type, uint64_t run);

/* Type of a frame, or 0 when it is none (too short, wrong magic, version or length). */
int message_type(struct frame frame);

/* Unpacking: 0 and `*out` filled, or a static text that says what is wrong (not logged: a peer may send it a million times). Beyond
 * the frame: counts within the limits, sizes that agree, ids in [0, vocab), numbers finite and in range (sampling_check, bias_check), weights
 * >= 1 that sum to MESSAGE_Q_SUM, each drafted token in its own support, parents before their children, strings without NUL and valid in length. */
const char *message_unpack_hello(struct message_space *space, struct frame frame, struct hello *out);
const char *message_unpack_open(struct message_space *space, struct frame frame, int vocab, struct open_message *out);
const char *message_unpack_close(struct message_space *space, struct frame frame, struct close_message *out);
const char *message_unpack_proposal(struct message_space *space, struct frame frame, int vocab, struct proposal *out);
const char *message_unpack_commit(struct message_space *space, struct frame frame, int vocab, struct commit *out);
const char *message_unpack_failure(struct message_space *space, struct frame frame, struct failure *out);
const char *message_unpack_plain(struct message_space *space, struct frame frame, uint64_t *run);

#endif
