/* Small sums without NCCL: whether the devices can, and up to which size it is faster, by measuring. Nothing here is a failure but a rank that is
 * lost: where one-shot sums cannot be, NCCL sums everything. */
#include "common/group/nccl.h"

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include <string.h>

enum {
    MOST_BYTES = 128 << 10, /* from about here on NCCL's rings are as fast, for less traffic */
    LEAST_BYTES = 4 << 10,
    STRIDE = 4,             /* from one size that is measured to the next */
    WARM_UP = 3,
    SUMS = 20,              /* that are timed */
};

/* Is it so on every rank? The first that says no says why. */
static enum status agree_on(struct nccl *nccl, int mine, const char *reason, int *all)
{
    struct answer {
        int yes;
        char reason[128];
    } answer = {.yes = mine}, answers[WORLD_MAX_RANKS];

    if (!mine)
        strncpy(answer.reason, reason, sizeof answer.reason - 1);
    TRY(group_gather(&nccl->host, &answer, sizeof answer, answers));
    for (int r = nccl->host.size - 1; nccl->host.rank == 0 && r >= 0; r--)
        if (!answers[r].yes)
            answer = answers[r];
    TRY(group_broadcast(&nccl->host, &answer, sizeof answer));
    *all = answer.yes;
    if (!answer.yes && nccl->host.rank == 0)
        log_debug("no one-shot sums: %s", answer.reason);
    return STATUS_OK;
}

static enum status open_inboxes(struct nccl *nccl, int *is_open)
{
    const struct backend_one_shot *one_shot = nccl->backend->one_shot;
    struct backend_handle mine = {{0}}, handles[WORLD_MAX_RANKS];
    const char *reason = "the ranks are on several hosts, or too many";
    int can = one_shot != NULL && nccl->one_host && nccl->host.size <= one_shot->most_ranks;

    TRY(agree_on(nccl, can, reason, is_open));
    if (!*is_open)
        return STATUS_OK;
    can = one_shot->open(nccl->context, nccl->host.rank, nccl->host.size, MOST_BYTES / sizeof(float), &mine, &reason);
    nccl->one_shot = 1;
    TRY(agree_on(nccl, can, reason, is_open));
    if (!*is_open)
        return STATUS_OK;
    TRY(group_gather(&nccl->host, &mine, sizeof mine, handles));
    TRY(group_broadcast(&nccl->host, handles, (size_t)nccl->host.size * sizeof *handles));
    can = one_shot->connect(nccl->context, handles, &reason);
    return agree_on(nccl, can, reason, is_open);
}

static void close_inboxes(struct nccl *nccl)
{
    if (nccl->one_shot)
        nccl->backend->one_shot->close(nccl->context);
    nccl->one_shot = 0;
}

/* Nanoseconds of so many sums of zeros, one after the other. */
static enum status time_sums(struct nccl *nccl, size_t alone, size_t count, int sums, int64_t *ns)
{
    struct group group = {.rank = nccl->host.rank, .size = nccl->host.size, .kind = &nccl_kind, .state = nccl};
    int64_t start = clock_ns();

    nccl->alone = alone;
    for (int i = 0; i < sums; i++)
        TRY(group_sum(&group, (float *)(void *)nccl->memory, count));
    TRY(group_settle(&group));
    TRY(nccl->backend->finish(nccl->context));
    *ns = clock_ns() - start;
    return STATUS_OK;
}

static enum status is_faster(struct nccl *nccl, size_t count, int *faster)
{
    int64_t ns[2];

    for (int i = 0; i < 4; i++) {
        int alone = i / 2, timed = i % 2;

        TRY(group_agree(&nccl->host, time_sums(nccl, alone ? count : 0, count, timed ? SUMS : WARM_UP, &ns[alone])));
    }
    if (nccl->host.rank == 0)
        log_debug("a sum of %zu KiB takes %.1f us over NCCL and %.1f us one-shot", count * sizeof(float) / 1024, (double)ns[0] / 1e3 / SUMS,
                  (double)ns[1] / 1e3 / SUMS);
    *faster = ns[1] < ns[0];
    return group_broadcast(&nccl->host, faster, sizeof *faster);
}

/* The largest size up to which all that were measured were faster. */
static enum status measure(struct nccl *nccl, size_t most)
{
    size_t best = 0, least = LEAST_BYTES / sizeof(float);
    int faster = 1;

    for (size_t count = least < most ? least : most; faster; count = count * STRIDE < most ? count * STRIDE : most) {
        TRY(is_faster(nccl, count, &faster));
        if (faster)
            best = count;
        if (count == most)
            break;
    }
    nccl->alone = best;
    return STATUS_OK;
}

enum status nccl_one_shot_open(struct nccl *nccl, enum group_sums sums)
{
    size_t most = MOST_BYTES / sizeof(float) < nccl->part ? MOST_BYTES / sizeof(float) : nccl->part;
    int is_open = 0;

    if (sums == GROUP_SUMS_NCCL)
        return STATUS_OK;
    TRY(open_inboxes(nccl, &is_open));
    if (!is_open) {
        close_inboxes(nccl);
        if (sums == GROUP_SUMS_AUTO)
            return STATUS_OK;
        log_error("--all-reduce one-shot needs verifiers on one host, at most 8, whose devices reach each other's memory; --verbose says what is "
                  "missing");
        return STATUS_USAGE;
    }
    nccl->alone = most;
    if (sums == GROUP_SUMS_ONE_SHOT)
        return STATUS_OK;
    TRY(measure(nccl, most));
    if (nccl->alone == 0)
        close_inboxes(nccl);
    return STATUS_OK;
}
