#include "drafter/draft.h"

#include "common/base/clock.h"
#include "common/base/try.h"
#include <stdlib.h>

enum { TRIES = 3 };

static const struct draft_kind *const kinds[] = {
    [DRAFT_MODEL] = &draft_model_kind,
    [DRAFT_LOOKUP] = &draft_lookup_kind,
    [DRAFT_SELF] = &draft_model_kind,
    [DRAFT_NGRAM] = &draft_model_kind,
    [DRAFT_RETRIEVAL] = &draft_model_kind,
    [DRAFT_RANDOM] = &draft_model_kind,
    [DRAFT_LOOKAHEAD] = &draft_lookahead_kind,
};
_Static_assert(sizeof kinds / sizeof *kinds == DRAFTER_KINDS, "each kind of common/options/options_draft.h has a row here");

const struct draft_kind *draft_kind_of(enum drafter_kind kind)
{
    return kinds[kind];
}

int draft_output_grow(struct draft_output *output, int parent, int32_t token)
{
    for (int i = parent + 1; i < output->count; i++)
        if (output->parent[i] == parent && output->token[i] == token)
            return i;
    output->token[output->count] = token;
    output->parent[output->count] = (int8_t)parent;
    output->q[output->count] = (struct support){0};
    return output->count++;
}

enum status draft_open(struct draft *draft, const struct draft_parts *terms)
{
    return kinds[terms->way->kind]->open(draft, terms);
}

int draft_context(int asked)
{
    return asked > 0 ? (asked + BACKEND_PANEL - 1) / BACKEND_PANEL * BACKEND_PANEL : MODEL_DEFAULT_CONTEXT;
}

/* A sequence of one token, of which nothing is cached. */
struct timed {
    struct mirror mirror;
    struct draft_output output;
    int32_t tokens[2]; /* and the one that is drafted */
};

static enum status time_once(struct draft *draft, struct timed *timed, struct draft_job *jobs, int sequences, double *us)
{
    int64_t began;

    for (int i = 0; i < sequences; i++) {
        struct mirror *mirror = &timed[i].mirror;

        *mirror = (struct mirror){.slot = i, .tokens = timed[i].tokens, .length = 1, .prompt_count = 1, .sampling = sampling_default};
        mirror->sampling.temperature = 0;
        bias_init(&mirror->bias);
        timed[i].output.count = 0;
        jobs[i] = (struct draft_job){.mirror = mirror, .branch = JOB_DRAFT, .output = &timed[i].output};
    }
    began = clock_ns();
    TRY(draft->kind->step(draft->state, jobs, sequences));
    *us = (double)(clock_ns() - began) / 1000;
    return STATUS_OK;
}

enum status draft_time_step(struct draft *draft, int sequences, double *us)
{
    enum status status = STATUS_OK;
    struct draft_job jobs[sequences];
    struct timed *timed;
    double took = 0;

    *us = 0;
    if (draft->kind->read == NULL)
        return STATUS_OK;
    timed = calloc((size_t)sequences, sizeof *timed);
    if (timed == NULL)
        return STATUS_INTERNAL;
    for (int i = 0; i < TRIES && status == STATUS_OK; i++) {
        status = time_once(draft, timed, jobs, sequences, &took);
        *us = i == 0 || took < *us ? took : *us;
    }
    free(timed);
    return status;
}

void draft_price(struct draft *draft, double price)
{
    if (draft->kind->price != NULL)
        draft->kind->price(draft->state, price);
}

void draft_learn(struct draft *draft, const struct mirror *mirror, const struct commit *commit)
{
    if (draft->kind->learn != NULL)
        draft->kind->learn(draft->state, mirror, commit);
}

void draft_stop(struct draft *draft, const struct stopping *stopping)
{
    if (draft->kind->stop != NULL)
        draft->kind->stop(draft->state, stopping);
}

void draft_shape(struct draft *draft, const struct tree_shape *shape)
{
    if (draft->kind->shape != NULL)
        draft->kind->shape(draft->state, shape);
}

enum status draft_copy(struct draft *draft, const struct draft_copies *copies, int slots, int context)
{
    if (draft->kind->copies == NULL || (!copies->cascade && copies->first == 0 && copies->after == 0))
        return STATUS_OK;
    return draft->kind->copies(draft->state, copies, slots, context);
}

void draft_break(struct draft *draft, enum breakage breakage)
{
    if (draft->kind->draw_wrong != NULL)
        draft->kind->draw_wrong(draft->state, breakage);
}

void draft_close(struct draft *draft)
{
    if (draft->kind != NULL)
        draft->kind->close(draft->state);
    *draft = (struct draft){0};
}
