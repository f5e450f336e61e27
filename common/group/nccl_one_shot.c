/* Small sums without NCCL: whether the devices can, by a proof, and up to which size it is faster, by measuring. Nothing here is a failure but a
 * rank that is lost: where one-shot sums cannot be, NCCL sums everything. The proof is there because some machines (virtual ones, an IOMMU
 * between the slots) let a device map another's memory, and what it writes there never comes. */
#include "common/group/nccl.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_BYTES = 2 << 20, /* 64 rows of 8,192; NCCL's rings move less, and win before that or not */
    PROOF = 1000,         /* numbers */
    PROOF_S = 2,          /* that they may take to come */
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

/* No rank gives its memory back while another one has it open. */
static enum status close_inboxes(struct nccl *nccl)
{
    if (!nccl->one_shot)
        return STATUS_OK;
    nccl->backend->device.one_shot->leave(nccl->context);
    TRY(group_agree(&nccl->host, STATUS_OK));
    nccl->backend->device.one_shot->close(nccl->context);
    nccl->one_shot = 0;
    return STATUS_OK;
}

/* A sum of known numbers: `reason` is what is wrong with it, or as it was. */
static enum status prove(struct nccl *nccl, size_t most, const char **reason)
{
    const struct backend_one_shot *one_shot = nccl->backend->device.one_shot;
    size_t count = PROOF < most ? PROOF : most;
    float *x = (float *)(void *)nccl->memory, numbers[PROOF];
    int64_t deadline = clock_ns() + (int64_t)PROOF_S * 1000000000;

    for (size_t i = 0; i < count; i++)
        numbers[i] = (float)((nccl->host.rank + 1) * (int)(i + 1));
    nccl->backend->memory.write(nccl->context, x, numbers, count * sizeof *x);
    one_shot->sum(nccl->context, x, count, x, 0);
    while (!nccl->backend->device.idle(nccl->context) && clock_ns() < deadline)
        sched_yield();
    if (!nccl->backend->device.idle(nccl->context)) {
        one_shot->stop(nccl->context);
        *reason = "devices map each other's memory, and what one writes there does not come";
    }
    TRY(one_shot->read_back(nccl->context, x, count, numbers));
    for (size_t i = 0; i < count && *reason == NULL; i++)
        if (numbers[i] != (float)(nccl->host.size * (nccl->host.size + 1) / 2 * (int)(i + 1)))
            *reason = "devices map each other's memory, and what one writes there comes as something else";
    memset(numbers, 0, sizeof numbers);
    nccl->backend->memory.write(nccl->context, x, numbers, count * sizeof *x);
    return STATUS_OK;
}

static enum status open_inboxes(struct nccl *nccl, size_t most, int *is_open)
{
    const struct backend_one_shot *one_shot = nccl->backend->device.one_shot;
    struct backend_handle mine = {{0}}, handles[WORLD_MAX_RANKS];
    const char *reason = "the ranks are on several hosts, or too many", *disabled = getenv("NCCL_P2P_DISABLE");
    int can = one_shot != NULL && nccl->one_host && nccl->host.size <= one_shot->most_ranks;

    if (can && disabled != NULL && strcmp(disabled, "1") == 0) { /* the user knows that devices do not reach each other */
        reason = "NCCL_P2P_DISABLE is set";
        can = 0;
    }
    TRY(agree_on(nccl, can, reason, is_open));
    if (!*is_open)
        return STATUS_OK;
    can = one_shot->open(nccl->context, nccl->host.rank, nccl->host.size, most, &mine, &reason);
    nccl->one_shot = 1;
    TRY(agree_on(nccl, can, reason, is_open));
    if (!*is_open)
        return STATUS_OK;
    TRY(group_gather(&nccl->host, &mine, sizeof mine, handles));
    TRY(group_broadcast(&nccl->host, handles, (size_t)nccl->host.size * sizeof *handles));
    can = one_shot->connect(nccl->context, handles, &reason);
    TRY(agree_on(nccl, can, reason, is_open));
    if (!*is_open)
        return STATUS_OK;
    reason = NULL;
    TRY(group_agree(&nccl->host, prove(nccl, most, &reason)));
    return agree_on(nccl, reason == NULL, reason, is_open);
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
    TRY(nccl->backend->step.finish(nccl->context));
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
    size_t most = MOST_BYTES / sizeof(float) < nccl->most ? MOST_BYTES / sizeof(float) : nccl->most;
    int is_open = 0;

    if (sums == GROUP_SUMS_NCCL)
        return STATUS_OK;
    TRY(open_inboxes(nccl, most, &is_open));
    if (!is_open) {
        TRY(close_inboxes(nccl));
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
    return nccl->alone == 0 ? close_inboxes(nccl) : STATUS_OK;
}
