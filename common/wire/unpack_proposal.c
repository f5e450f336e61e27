/* Unpacking a proposal: the one message whose size and rate matter. Ids are rebuilt from their gaps in place, so that the plain struct
 * points into what protobuf-c laid out; one pass checks all that q must be. */
#include "common/wire/unpack.h"

#include "proto/proposal.pb-c.h"

static const char *read_support(Tandem__Drafted *m, int vocab, struct support *out)
{
    uint64_t id = 0, sum = 0;
    int own = 0;

    if (m->n_gap != m->n_weight)
        return "a support has not as many weights as ids";
    for (size_t i = 0; i < m->n_gap; i++) {
        if (i > 0 && m->gap[i] == 0)
            return "a support's ids do not rise";
        if (m->weight[i] == 0)
            return "a support has a weight of 0";
        id += m->gap[i];
        sum += m->weight[i];
        own |= id == m->token;
        m->gap[i] = (uint32_t)id;
    }
    /* At most MESSAGE_MAX_SUPPORT gaps of 32 bits: 64 bits cannot wrap, so the last id being inside means that all were. */
    if (m->n_gap > 0 && id >= (uint64_t)vocab)
        return "a support's id is outside the vocabulary";
    if (m->n_gap > 0 && sum != MESSAGE_Q_SUM)
        return "a support's weights have the wrong sum";
    if (m->n_gap > 0 && !own)
        return "a drafted token is not in its own support";
    *out = (struct support){.count = (int)m->n_gap, .id = (const int32_t *)m->gap, .weight = m->weight};
    return NULL;
}

static const char *read_drafted(const Tandem__Proposal *m, int vocab, struct proposal *out)
{
    for (size_t i = 0; i < m->n_drafted; i++) {
        if (!unpack_in_vocab(&m->drafted[i]->token, 1, vocab))
            return "a token is outside the vocabulary";
        const char *wrong = read_support(m->drafted[i], vocab, &out->q[i]);
        if (wrong != NULL)
            return wrong;
        out->token[i] = (int32_t)m->drafted[i]->token;
    }
    return NULL;
}

static const char *read_parents(const Tandem__Proposal *m, struct proposal *out)
{
    if (m->n_parent == 0)
        return NULL;
    if (m->n_parent != m->n_drafted)
        return "a tree has not as many parents as tokens";
    for (size_t i = 0; i < m->n_parent; i++) {
        if (m->parent[i] > i)
            return "a parent does not come before its child";
        out->parent[i] = (int8_t)((int)m->parent[i] - 1);
        out->is_tree |= m->parent[i] != i;
    }
    return NULL;
}

const char *message_unpack_proposal(struct message_space *space, struct frame frame, int vocab, struct proposal *out)
{
    struct proposal proposal;
    const ProtobufCMessage *read;
    const char *wrong = unpack_frame(space, frame, MESSAGE_PROPOSAL, &read);

    if (wrong != NULL)
        return wrong;
    const Tandem__Proposal *m = (const Tandem__Proposal *)read;
    if (m->base_length > MESSAGE_MAX_TOKENS)
        return "a base length is out of range";
    proposal = (struct proposal){
        .run = m->run,
        .request = m->request,
        .base_length = m->base_length,
        .base_digest = m->base_digest,
        .sampling_digest = m->sampling_digest,
        .count = (int)m->n_drafted,
        .draft_us = m->draft_us,
        .ahead = m->ahead,
    };
    if (proposal.ahead > (uint32_t)m->n_drafted)
        return "more tokens were drafted beforehand than there are";
    wrong = read_drafted(m, vocab, &proposal);
    if (wrong == NULL)
        wrong = read_parents(m, &proposal);
    if (wrong != NULL)
        return wrong;
    *out = proposal;
    return NULL;
}
