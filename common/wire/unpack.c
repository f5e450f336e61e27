/* Unpacking: bytes -> generated struct -> plain struct. After unpack_frame the message is well formed and within its counts; what is
 * left for each type is what its numbers mean. Nothing is repaired, and `*out` is written only when all is well. */
#include "common/wire/unpack.h"

#include "common/wire/frame_header.h"
#include "common/wire/message_space.h"
#include "common/wire/schema.h"
#include "common/world/world.h"
#include "proto/commit.pb-c.h"
#include "proto/control.pb-c.h"
#include "proto/hello.pb-c.h"
#include "proto/request.pb-c.h"
#include <string.h>

const char *unpack_frame(struct message_space *space, struct frame frame, enum message_type type, const ProtobufCMessage **message)
{
    const struct schema *schema = schema_of(type);
    const char *wrong = frame_header_check(frame, type);
    const unsigned char *payload = frame.bytes + FRAME_HEADER_BYTES;

    if (wrong == NULL)
        wrong = precheck_walk(schema->rules, payload, frame.count - FRAME_HEADER_BYTES);
    if (wrong != NULL)
        return wrong;
    space->unpacking.used = 0;
    *message = protobuf_c_message_unpack(schema->descriptor, &space->allocator, frame.count - FRAME_HEADER_BYTES, payload);
    return *message == NULL ? "a message does not unpack" : NULL;
}

int unpack_in_vocab(const uint32_t *token, size_t count, int vocab)
{
    uint32_t highest = 0;

    for (size_t i = 0; i < count; i++)
        highest = token[i] > highest ? token[i] : highest;
    return count == 0 || (vocab > 0 && highest < (uint32_t)vocab);
}

/* The walk has seen that the text is shorter than `size`. */
static void copy_text(char *to, size_t size, const char *from)
{
    memset(to, 0, size);
    memcpy(to, from, strlen(from));
}

static int is_special(int32_t token, uint32_t vocab)
{
    return token >= -1 && token < (int32_t)vocab;
}

const char *message_unpack_hello(struct message_space *space, struct frame frame, struct hello *out)
{
    const ProtobufCMessage *read;
    const char *wrong = unpack_frame(space, frame, MESSAGE_HELLO, &read);

    if (wrong != NULL)
        return wrong;
    const Tandem__Hello *m = (const Tandem__Hello *)read;
    if (m->role > ROLE_VERIFIER)
        return "a role is unknown";
    if ((m->vocab_size < 1 && m->role != ROLE_DRAFTER) || m->vocab_size > INT32_MAX)
        return "a vocabulary's size is out of range";
    if (!is_special(m->bos, m->vocab_size) || !is_special(m->eos, m->vocab_size))
        return "a special token is outside the vocabulary";
    if (m->context < 1 || m->context > INT32_MAX)
        return "a context's length is out of range";
    *out = (struct hello){
        .protocol = m->protocol,
        .role = m->role,
        .run = m->run,
        .vocab_digest = m->vocab_digest,
        .vocab_size = m->vocab_size,
        .bos = m->bos,
        .eos = m->eos,
        .context = m->context,
        .pid = m->pid,
        .draft_ns = m->draft_ns,
        .draft_batch_ns = m->draft_batch_ns,
    };
    copy_text(out->program, sizeof out->program, m->program);
    copy_text(out->model, sizeof out->model, m->model);
    copy_text(out->host, sizeof out->host, m->host);
    copy_text(out->device, sizeof out->device, m->device);
    return NULL;
}

static const char *read_sampling(const Tandem__Sampling *m, struct sampling *out)
{
    char unread[128];

    if (m == NULL)
        return "sampling parameters are missing";
    if (m->top_k > INT32_MAX || m->accept > INT32_MAX)
        return "sampling parameters are out of range";
    *out = (struct sampling){
        .temperature = m->temperature,
        .top_p = m->top_p,
        .min_p = m->min_p,
        .repetition_penalty = m->repetition_penalty,
        .presence_penalty = m->presence_penalty,
        .frequency_penalty = m->frequency_penalty,
        .top_k = (int32_t)m->top_k,
        .accept = (int32_t)m->accept,
        .seed = m->seed,
        .lenience = m->lenience,
        .threshold = m->threshold,
        .typical_epsilon = m->typical_epsilon,
        .typical_delta = m->typical_delta,
    };
    return sampling_check(out, unread, sizeof unread) == STATUS_OK ? NULL : "sampling parameters are out of range";
}

/* The walk has seen that the lists are within their limits, so they fit the block; what the numbers mean, bias_check knows. */
static void copy_bias(const Tandem__Bias *m, struct bias *out)
{
    bias_init(out);
    for (; out->tokens < (int32_t)m->n_tokens; out->tokens++) {
        out->token[out->tokens] = (int32_t)m->tokens[out->tokens]->token;
        out->value[out->tokens] = m->tokens[out->tokens]->value;
    }
    for (; out->words < (int32_t)m->n_words; out->words++) {
        const Tandem__BadWord *word = m->words[out->words];

        out->length[out->words] = (int32_t)word->n_tokens;
        if (word->n_tokens > 0)
            memcpy(out->word[out->words], word->tokens, word->n_tokens * sizeof(int32_t));
    }
    out->min_tokens = (int32_t)m->min_tokens;
    out->enders = (int32_t)m->n_enders;
    if (m->n_enders > 0)
        memcpy(out->ender, m->enders, m->n_enders * sizeof(int32_t));
}

static const char *read_bias(struct message_space *space, const Tandem__Bias *m, int vocab, const struct bias **out)
{
    char unread[160];
    struct bias *bias;

    *out = NULL;
    if (m == NULL)
        return NULL;
    bias = message_space_take(&space->unpacking, sizeof *bias);
    if (bias == NULL)
        return "a message does not unpack";
    copy_bias(m, bias);
    *out = bias;
    return bias_check(bias, vocab, unread, sizeof unread) == STATUS_OK ? NULL : "token biases are out of range";
}

const char *message_unpack_open(struct message_space *space, struct frame frame, int vocab, struct open_message *out)
{
    struct sampling sampling;
    const struct bias *bias;
    const ProtobufCMessage *read;
    const char *wrong = unpack_frame(space, frame, MESSAGE_OPEN, &read);

    if (wrong != NULL)
        return wrong;
    const Tandem__Open *m = (const Tandem__Open *)read;
    wrong = read_sampling(m->sampling, &sampling);
    if (wrong == NULL)
        wrong = read_bias(space, m->bias, vocab, &bias);
    if (wrong != NULL)
        return wrong;
    if (m->n_tokens < 1)
        return "a request has no tokens";
    if (m->prompt_count < 1 || m->prompt_count > m->n_tokens)
        return "a prompt's length does not agree with the tokens";
    if (!unpack_in_vocab(m->tokens, m->n_tokens, vocab))
        return "a token is outside the vocabulary";
    if (m->draft_length > MESSAGE_MAX_DRAFT)
        return "a draft length is out of range";
    if (m->shape >= TREE_AUTO)
        return "a tree's shape is unknown";
    if (m->limit < m->n_tokens || m->limit > MESSAGE_MAX_TOKENS)
        return "a length limit is out of range";
    *out = (struct open_message){
        .run = m->run,
        .request = m->request,
        .line = m->line,
        .pass = m->pass,
        .prompt_count = m->prompt_count,
        .tokens = (const int32_t *)m->tokens,
        .count = (int)m->n_tokens,
        .sampling = sampling,
        .draft_length = m->draft_length,
        .shape = m->shape,
        .limit = m->limit,
        .bias = bias,
    };
    return NULL;
}

const char *message_unpack_close(struct message_space *space, struct frame frame, struct close_message *out)
{
    const ProtobufCMessage *read;
    const char *wrong = unpack_frame(space, frame, MESSAGE_CLOSE, &read);

    if (wrong != NULL)
        return wrong;
    const Tandem__Close *m = (const Tandem__Close *)read;
    *out = (struct close_message){.run = m->run, .request = m->request};
    return NULL;
}

static const char *check_commit(const Tandem__Commit *m, int vocab)
{
    uint64_t length = (uint64_t)m->old_length + m->n_tokens;

    if (!unpack_in_vocab(m->tokens, m->n_tokens, vocab) || !unpack_in_vocab(m->own, m->n_own, vocab))
        return "a token is outside the vocabulary";
    if (length > MESSAGE_MAX_TOKENS)
        return "a committed length is out of range";
    if (m->accepted > m->n_tokens)
        return "more tokens are accepted than committed";
    if (m->keep > length)
        return "a truncation point is beyond the committed tokens";
    if (m->draft_length > MESSAGE_MAX_DRAFT)
        return "a draft length is out of range";
    if (m->shape >= TREE_AUTO)
        return "a tree's shape is unknown";
    if (m->worth > MESSAGE_MOST_WORTH || m->price > MESSAGE_MOST_WORTH)
        return "a probability is out of range";
    return NULL;
}

const char *message_unpack_commit(struct message_space *space, struct frame frame, int vocab, struct commit *out)
{
    const ProtobufCMessage *read;
    const char *wrong = unpack_frame(space, frame, MESSAGE_COMMIT, &read);

    if (wrong != NULL)
        return wrong;
    const Tandem__Commit *m = (const Tandem__Commit *)read;
    wrong = check_commit(m, vocab);
    if (wrong != NULL)
        return wrong;
    *out = (struct commit){
        .run = m->run,
        .request = m->request,
        .old_length = m->old_length,
        .accepted = m->accepted,
        .tokens = (const int32_t *)m->tokens,
        .count = (int)m->n_tokens,
        .keep = m->keep,
        .digest = m->digest,
        .finish = m->finish,
        .draft_length = m->draft_length,
        .shape = m->shape,
        .worth = m->worth,
        .price = m->price,
        .own = (const int32_t *)m->own,
        .owns = (int)m->n_own,
    };
    return NULL;
}

const char *message_unpack_failure(struct message_space *space, struct frame frame, struct failure *out)
{
    const ProtobufCMessage *read;
    const char *wrong = unpack_frame(space, frame, MESSAGE_FAILURE, &read);

    if (wrong != NULL)
        return wrong;
    const Tandem__Failure *m = (const Tandem__Failure *)read;
    *out = (struct failure){.code = m->code};
    copy_text(out->text, sizeof out->text, m->text);
    return NULL;
}

const char *message_unpack_plain(struct message_space *space, struct frame frame, uint64_t *run)
{
    const ProtobufCMessage *read;
    int is = message_type(frame);
    enum message_type type = is == MESSAGE_SHUTDOWN || is == MESSAGE_DRAIN ? (enum message_type)is : MESSAGE_HEARTBEAT;
    const char *wrong = unpack_frame(space, frame, type, &read);

    if (wrong != NULL)
        return wrong;
    *run = ((const Tandem__Plain *)read)->run;
    return NULL;
}
