/* Ranks with a device each: sums of device memory by NCCL on the backend's stream; bytes of the host by the kind that was there before.
 *
 * The sum has the tree's bits, as in every kind, so that a row's numbers do not depend on the rows beside it. NCCL promises the same bits
 * on every rank and no order of adding; the order of its rings and trees changes with an element's place and the size of the whole. Two
 * numbers have one sum, whatever the order; so two ranks all-reduce. More of them gather everybody's numbers and add them here. That moves
 * size / 2 times as much, which small sums, where time is latency, do not feel. Where devices reach each other's memory, small sums go without
 * NCCL, by the backend's one-shot kernel, which adds by the tree. */
#include "common/group/nccl.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/try.h"

/* In a round ranks do not exchange their status: a failure of another rank ends the job here as it does there. */
static enum status in_round(enum status status)
{
    return status == STATUS_ELSEWHERE ? STATUS_IO : status;
}

static enum status aborted(const struct nccl *nccl)
{
    log_debug("nothing can be summed on %s any more", nccl->who);
    return STATUS_IO;
}

enum status nccl_sum_part(struct nccl *nccl, float *x, size_t count)
{
    const struct nccl_library *library = &nccl->library;
    void *stream = nccl->device->stream;

    if (nccl->comm == NULL)
        return aborted(nccl);
    if (nccl->host.size <= 2)
        return nccl_done(nccl, "ncclAllReduce", library->all_reduce(x, x, count, NCCL_FLOAT32, NCCL_SUM, nccl->comm, stream));
    TRY(nccl_done(nccl, "ncclAllGather", library->all_gather(x, nccl->gathered, count, NCCL_FLOAT32, nccl->comm, stream)));
    nccl->backend->linear.tree_sum(nccl->context, nccl->gathered, nccl->host.size, count, x);
    return STATUS_OK;
}

static enum status one_shot(struct nccl *nccl, const float *partial, size_t count, float *x, int adds)
{
    if (nccl->comm == NULL)
        return aborted(nccl);
    nccl->backend->device.one_shot->sum(nccl->context, partial, count, x, adds);
    return STATUS_OK;
}

static enum status nccl_add(struct group *group, float *x, const float *partial, size_t count)
{
    return one_shot(group->state, partial, count, x, 1);
}

static int nccl_sums_alone(const struct group *group, size_t count)
{
    const struct nccl *nccl = group->state;

    return count <= nccl->alone;
}

static enum status nccl_sum(struct group *group, float *x, size_t count)
{
    struct nccl *nccl = group->state;

    if (count <= nccl->alone)
        return one_shot(nccl, x, count, x, 0);
    for (size_t at = 0; at < count; at += nccl->part)
        TRY(in_round(nccl_sum_part(nccl, x + at, count - at < nccl->part ? count - at : nccl->part)));
    return STATUS_OK;
}

/* What was asked of the device is done, or a rank is lost, or has failed: NCCL tells of the one, the alarm of the other. */
static enum status nccl_settle(struct group *group)
{
    struct nccl *nccl = group->state;
    struct wait wait;

    world_wait_begin_usual(nccl->world, &wait, &nccl->step);
    wait.deaf = 1;
    for (int idle = 0; !idle;) {
        int result = NCCL_SUCCESS, code;

        idle = nccl->backend->device.idle(nccl->context); /* and what was idle by then has its error there, if any */
        if (nccl->comm == NULL)
            return aborted(nccl);
        code = nccl->library.comm_get_async_error(nccl->comm, &result);
        if (code != NCCL_SUCCESS || result != NCCL_SUCCESS)
            TRY(in_round(nccl_done(nccl, "a sum over NCCL", code != NCCL_SUCCESS ? code : result)));
        if (nccl_is_alarmed(nccl)) {
            nccl_abort(nccl);
            return STATUS_IO;
        }
        if (!idle)
            world_wait_step(nccl->world, &wait, INT64_MAX);
    }
    world_wait_end(&wait, clock_ns());
    return STATUS_OK;
}

static void *nccl_buffer(const struct group *group, size_t bytes)
{
    const struct nccl *nccl = group->state;

    return bytes <= nccl->lent ? nccl->memory : NULL;
}

static enum status nccl_broadcast(struct group *group, void *bytes, size_t count)
{
    struct nccl *nccl = group->state;

    return group_broadcast(&nccl->host, bytes, count);
}

static enum status nccl_gather(struct group *group, const void *mine, size_t count, void *all)
{
    struct nccl *nccl = group->state;

    return group_gather(&nccl->host, mine, count, all);
}

static const char *nccl_describe(const struct group *group)
{
    const struct nccl *nccl = group->state;

    return nccl->words;
}

static void nccl_close(struct group *group)
{
    struct nccl *nccl = group->state;
    struct group host = nccl->host;

    nccl_release(nccl);
    group_close(&host);
}

const struct group_kind nccl_kind = {
    .name = "NCCL",
    .sum = nccl_sum,
    .add = nccl_add,
    .sums_alone = nccl_sums_alone,
    .broadcast = nccl_broadcast,
    .gather = nccl_gather,
    .close = nccl_close,
    .settle = nccl_settle,
    .buffer = nccl_buffer,
    .describe = nccl_describe,
};
