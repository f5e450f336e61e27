/* Packing: plain struct -> generated struct -> bytes. The generated structs lie on the stack and point into the plain ones; only what
 * must be recoded (ids to gaps) is laid out in the space, and then the frame. */
#include "common/wire/frame_header.h"
#include "common/wire/message_space.h"

#include "common/base/log.h"
#include "proto/commit.pb-c.h"
#include "proto/control.pb-c.h"
#include "proto/hello.pb-c.h"
#include "proto/proposal.pb-c.h"
#include "proto/request.pb-c.h"
#include <stdlib.h>
#include <string.h>

/* The space is sized for messages within the limits. A larger one would be an error of this program, and ends it. */
static void require(int holds, const char *what)
{
    if (holds)
        return;
    log_error("internal: a message to be packed has %s beyond its limit", what);
    abort();
}

static char *text(char *from, size_t size)
{
    require(memchr(from, 0, size) != NULL, "a text");
    return from;
}

static struct frame pack(struct message_space *space, enum message_type type, const ProtobufCMessage *message)
{
    unsigned char *bytes = (unsigned char *)space->packing.arena.base + space->packing.used;
    size_t payload = protobuf_c_message_pack(message, bytes + FRAME_HEADER_BYTES);

    frame_header_write(bytes, type, payload);
    return (struct frame){.bytes = bytes, .count = FRAME_HEADER_BYTES + payload};
}

struct frame message_pack_hello(struct message_space *space, const struct hello *hello)
{
    struct hello copy = *hello; /* generated structs have no const */
    Tandem__Hello m = TANDEM__HELLO__INIT;

    space->packing.used = 0;
    m.protocol = copy.protocol;
    m.program = text(copy.program, sizeof copy.program);
    m.role = copy.role;
    m.run = copy.run;
    m.vocab_digest = copy.vocab_digest;
    m.vocab_size = copy.vocab_size;
    m.bos = copy.bos;
    m.eos = copy.eos;
    m.context = copy.context;
    m.model = text(copy.model, sizeof copy.model);
    m.host = text(copy.host, sizeof copy.host);
    m.pid = copy.pid;
    m.device = text(copy.device, sizeof copy.device);
    m.draft_ns = copy.draft_ns;
    m.draft_batch_ns = copy.draft_batch_ns;
    return pack(space, MESSAGE_HELLO, &m.base);
}

static void fill_sampling(const struct sampling *sampling, Tandem__Sampling *m)
{
    tandem__sampling__init(m);
    m->temperature = sampling->temperature;
    m->top_p = sampling->top_p;
    m->min_p = sampling->min_p;
    m->repetition_penalty = sampling->repetition_penalty;
    m->presence_penalty = sampling->presence_penalty;
    m->frequency_penalty = sampling->frequency_penalty;
    m->top_k = (uint32_t)sampling->top_k;
    m->accept = (uint32_t)sampling->accept;
    m->seed = sampling->seed;
    m->lenience = sampling->lenience;
    m->threshold = sampling->threshold;
    m->typical_epsilon = sampling->typical_epsilon;
    m->typical_delta = sampling->typical_delta;
}

/* The memory that a bias needs while it is packed. */
struct bias_parts {
    Tandem__Bias bias;
    Tandem__TokenBias token[BIAS_MAX_TOKENS], *each_token[BIAS_MAX_TOKENS];
    Tandem__BadWord word[BIAS_MAX_WORDS], *each_word[BIAS_MAX_WORDS];
};

static Tandem__Bias *fill_bias(struct message_space *space, const struct bias *bias)
{
    struct bias_parts *m;

    if (bias_is_empty(bias))
        return NULL;
    require(bias->tokens <= BIAS_MAX_TOKENS && bias->words <= BIAS_MAX_WORDS && bias->enders <= BIAS_MAX_ENDERS, "a bias");
    m = message_space_take(&space->packing, sizeof *m);
    require(m != NULL, "a bias");
    tandem__bias__init(&m->bias);
    for (int i = 0; i < bias->tokens; i++) {
        tandem__token_bias__init(&m->token[i]);
        m->token[i].token = (uint32_t)bias->token[i];
        m->token[i].value = bias->value[i];
        m->each_token[i] = &m->token[i];
    }
    for (int i = 0; i < bias->words; i++) {
        tandem__bad_word__init(&m->word[i]);
        m->word[i].tokens = (uint32_t *)bias->word[i];
        m->word[i].n_tokens = (size_t)bias->length[i];
        m->each_word[i] = &m->word[i];
    }
    m->bias.tokens = m->each_token;
    m->bias.n_tokens = (size_t)bias->tokens;
    m->bias.words = m->each_word;
    m->bias.n_words = (size_t)bias->words;
    m->bias.min_tokens = (uint32_t)bias->min_tokens;
    m->bias.enders = (uint32_t *)bias->ender;
    m->bias.n_enders = (size_t)bias->enders;
    return &m->bias;
}

struct frame message_pack_open(struct message_space *space, const struct open_message *open)
{
    Tandem__Sampling sampling;
    Tandem__Open m = TANDEM__OPEN__INIT;

    require(open->count >= 0 && open->count <= MESSAGE_MAX_TOKENS, "a number of tokens");
    space->packing.used = 0;
    fill_sampling(&open->sampling, &sampling);
    m.run = open->run;
    m.request = open->request;
    m.line = open->line;
    m.pass = open->pass;
    m.prompt_count = open->prompt_count;
    m.tokens = (uint32_t *)open->tokens;
    m.n_tokens = (size_t)open->count;
    m.sampling = &sampling;
    m.draft_length = open->draft_length;
    m.shape = open->shape;
    m.limit = open->limit;
    m.bias = fill_bias(space, open->bias);
    return pack(space, MESSAGE_OPEN, &m.base);
}

struct frame message_pack_close(struct message_space *space, const struct close_message *close)
{
    Tandem__Close m = TANDEM__CLOSE__INIT;

    space->packing.used = 0;
    m.run = close->run;
    m.request = close->request;
    return pack(space, MESSAGE_CLOSE, &m.base);
}

static uint32_t *gaps_of(struct message_space *space, const struct support *q)
{
    uint32_t *gap = message_space_take(&space->packing, (size_t)q->count * sizeof *gap);
    uint32_t before = 0;

    require(gap != NULL, "a support");
    for (int i = 0; i < q->count; i++) {
        gap[i] = (uint32_t)q->id[i] - before;
        before = (uint32_t)q->id[i];
    }
    return gap;
}

static void fill_drafted(struct message_space *space, int32_t token, const struct support *q, Tandem__Drafted *m)
{
    require(q->count >= 0 && q->count <= MESSAGE_MAX_SUPPORT, "a support");
    tandem__drafted__init(m);
    m->token = (uint32_t)token;
    m->n_gap = m->n_weight = (size_t)q->count;
    m->gap = gaps_of(space, q);
    m->weight = (uint32_t *)q->weight;
}

/* Fills in the parents of a tree; a chain has none. */
static void fill_parents(const struct proposal *proposal, uint32_t *parent, Tandem__Proposal *m)
{
    for (int i = 0; proposal->is_tree && i < proposal->count; i++) {
        require(proposal->parent[i] >= -1 && proposal->parent[i] < i, "a parent");
        parent[i] = (uint32_t)(proposal->parent[i] + 1);
    }
    m->parent = parent;
    m->n_parent = proposal->is_tree ? (size_t)proposal->count : 0;
}

struct frame message_pack_proposal(struct message_space *space, const struct proposal *proposal)
{
    uint32_t parent[MESSAGE_MAX_DRAFT];
    Tandem__Drafted drafted[MESSAGE_MAX_DRAFT], *each[MESSAGE_MAX_DRAFT];
    Tandem__Proposal m = TANDEM__PROPOSAL__INIT;

    require(proposal->count >= 0 && proposal->count <= MESSAGE_MAX_DRAFT, "a number of drafted tokens");
    space->packing.used = 0;
    for (int i = 0; i < proposal->count; i++) {
        fill_drafted(space, proposal->token[i], &proposal->q[i], &drafted[i]);
        each[i] = &drafted[i];
    }
    m.run = proposal->run;
    m.request = proposal->request;
    m.base_length = proposal->base_length;
    m.base_digest = proposal->base_digest;
    m.sampling_digest = proposal->sampling_digest;
    m.drafted = each;
    m.n_drafted = (size_t)proposal->count;
    m.draft_us = proposal->draft_us;
    m.ahead = proposal->ahead;
    fill_parents(proposal, parent, &m);
    return pack(space, MESSAGE_PROPOSAL, &m.base);
}

struct frame message_pack_commit(struct message_space *space, const struct commit *commit)
{
    Tandem__Commit m = TANDEM__COMMIT__INIT;

    require(commit->count >= 0 && commit->count <= MESSAGE_MAX_COMMIT, "a number of committed tokens");
    require(commit->owns >= 0 && commit->owns <= MESSAGE_MAX_COMMIT, "a number of the target's tokens");
    space->packing.used = 0;
    m.run = commit->run;
    m.request = commit->request;
    m.old_length = commit->old_length;
    m.accepted = commit->accepted;
    m.tokens = (uint32_t *)commit->tokens;
    m.n_tokens = (size_t)commit->count;
    m.keep = commit->keep;
    m.digest = commit->digest;
    m.finish = commit->finish;
    m.draft_length = commit->draft_length;
    m.shape = commit->shape;
    m.worth = commit->worth;
    m.price = commit->price;
    m.own = (uint32_t *)commit->own;
    m.n_own = (size_t)commit->owns;
    return pack(space, MESSAGE_COMMIT, &m.base);
}

struct frame message_pack_failure(struct message_space *space, const struct failure *failure)
{
    struct failure copy = *failure;
    Tandem__Failure m = TANDEM__FAILURE__INIT;

    space->packing.used = 0;
    m.code = copy.code;
    m.text = text(copy.text, sizeof copy.text);
    return pack(space, MESSAGE_FAILURE, &m.base);
}

struct frame message_pack_plain(struct message_space *space, enum message_type type, uint64_t run)
{
    Tandem__Plain m = TANDEM__PLAIN__INIT;

    require(type == MESSAGE_HEARTBEAT || type == MESSAGE_SHUTDOWN || type == MESSAGE_DRAIN, "a type");
    space->packing.used = 0;
    m.run = run;
    return pack(space, type, &m.base);
}
