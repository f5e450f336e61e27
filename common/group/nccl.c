/* Ranks with a device each: sums of device memory by NCCL on the backend's stream; bytes of the host by the kind that was there before.
 *
 * The sum has the tree's bits, as in every kind, so that a row's numbers do not depend on the rows beside it. NCCL promises the same bits
 * on every rank and no order of adding; the order of its rings and trees changes with an element's place and the size of the whole. Two
 * numbers have one sum, whatever the order; so two ranks all-reduce. More of them gather everybody's numbers and add them here. That moves
 * size / 2 times as much, which small sums, where time is latency, do not feel. Large ones, of prompts, go in slices: each rank is sent everybody's
 * numbers of its own slice, adds them, and gives the sum to all, which moves as much as an all-reduce does. Where devices reach each other's memory,
 * small sums go without NCCL, by the backend's one-shot kernel, which adds by the tree. */
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

static enum status sum_gathered(struct nccl *nccl, float *x, size_t count)
{
    TRY(nccl_done(nccl, "ncclAllGather",
                  nccl->library.all_gather(x, nccl->gathered, count, NCCL_FLOAT32, nccl->comm, nccl->device->stream)));
    nccl->backend->linear.tree_sum(nccl->context, nccl->gathered, nccl->host.size, count, x);
    return STATUS_OK;
}

/* Slice r of x goes to rank r, and everybody's slice of this rank's number comes.  gathered: [size][slice] */
static enum status exchange(struct nccl *nccl, const float *x, size_t slice)
{
    const struct nccl_library *library = &nccl->library;
    void *stream = nccl->device->stream;
    int sent = NCCL_SUCCESS, received = NCCL_SUCCESS, ended;

    TRY(nccl_done(nccl, "ncclGroupStart", library->group_start()));
    for (int r = 0; r < nccl->host.size && sent == NCCL_SUCCESS && received == NCCL_SUCCESS; r++) {
        sent = library->send(x + (size_t)r * slice, slice, NCCL_FLOAT32, r, nccl->comm, stream);
        received = library->recv(nccl->gathered + (size_t)r * slice, slice, NCCL_FLOAT32, r, nccl->comm, stream);
    }
    ended = library->group_end(); /* whatever was wrong before: a group that is open takes in all later calls */
    TRY(nccl_done(nccl, "ncclSend", sent));
    TRY(nccl_done(nccl, "ncclRecv", received));
    return nccl_done(nccl, "ncclGroupEnd", ended);
}

/* What is left over when slices are alike is fewer numbers than ranks. */
static enum status sum_sliced(struct nccl *nccl, float *x, size_t count)
{
    size_t size = (size_t)nccl->host.size, slice = count / size, rest = count % size;
    float *own = x + (size_t)nccl->host.rank * slice;

    TRY(exchange(nccl, x, slice));
    nccl->backend->linear.tree_sum(nccl->context, nccl->gathered, nccl->host.size, slice, own);
    TRY(nccl_done(nccl, "ncclAllGather", nccl->library.all_gather(own, x, slice, NCCL_FLOAT32, nccl->comm, nccl->device->stream)));
    return rest > 0 ? sum_gathered(nccl, x + size * slice, rest) : STATUS_OK;
}

enum status nccl_sum_once(struct nccl *nccl, float *x, size_t count)
{
    if (nccl->comm == NULL)
        return aborted(nccl);
    if (nccl->host.size <= 2)
        return nccl_done(nccl, "ncclAllReduce",
                         nccl->library.all_reduce(x, x, count, NCCL_FLOAT32, NCCL_SUM, nccl->comm, nccl->device->stream));
    return count <= nccl->part ? sum_gathered(nccl, x, count) : sum_sliced(nccl, x, count);
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
    for (size_t at = 0; at < count; at += nccl->most)
        TRY(in_round(nccl_sum_once(nccl, x + at, count - at < nccl->most ? count - at : nccl->most)));
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
