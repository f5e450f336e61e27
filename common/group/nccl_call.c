#include "common/group/nccl.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/progress.h"
#include "common/base/recorder.h"

enum {
    ALARM_TAG = 1,
    ALARM_MS = 1000, /* that a rank which only sees that another one is gone waits for its alarm */
};

/* By result: what the user can do. */
static const char *const advice[] = {
    [NCCL_UNHANDLED_CUDA_ERROR] = "look at driver and device with nvidia-smi",
    [NCCL_SYSTEM_ERROR] = "look at the network (NCCL_SOCKET_IFNAME chooses the interface), at the space in /dev/shm and at ulimit -l",
    [NCCL_INTERNAL_ERROR] = "a fault of NCCL, or another one before it",
    [NCCL_INVALID_ARGUMENT] = "are program, NCCL and its settings the same on every rank?",
    [NCCL_INVALID_USAGE] = "are program, NCCL and its settings the same on every rank, and does each have a device of its own?",
    [NCCL_REMOTE_ERROR] = "another rank, its host or the network between is lost: look for the first error of the others",
};

static const char *advice_for(int result)
{
    int known = result > 0 && result < (int)(sizeof advice / sizeof advice[0]);

    return known ? advice[result] : "an answer that NCCL is not known to give";
}

void nccl_patience(struct nccl *nccl, double seconds, const char *doing)
{
    nccl->deadline_ns = seconds > 0 ? clock_ns() + (int64_t)(seconds * 1e9) : 0;
    nccl->doing = doing;
}

void nccl_abort(struct nccl *nccl)
{
    struct nccl_comm *comm = nccl->comm;

    nccl->comm = NULL;
    nccl->window = NULL; /* goes with it */
    if (nccl->one_shot)
        nccl->backend->device.one_shot->stop(nccl->context);
    if (comm != NULL)
        nccl->library.comm_abort(comm);
}

int nccl_is_alarmed(struct nccl *nccl)
{
    int flag = 0;

    if (!nccl->alarmed && MPI_Iprobe(MPI_ANY_SOURCE, ALARM_TAG, nccl->alarm, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS)
        nccl->alarmed = flag;
    return nccl->alarmed;
}

static void raise_alarm(const struct nccl *nccl)
{
    MPI_Request request;

    for (int i = 0; i < nccl->host.size; i++)
        if (i != nccl->host.rank && MPI_Isend(NULL, 0, MPI_BYTE, i, ALARM_TAG, nccl->alarm, &request) == MPI_SUCCESS)
            MPI_Request_free(&request);
}

static enum status give_up(struct nccl *nccl, enum status status)
{
    raise_alarm(nccl);
    nccl_abort(nccl);
    return status;
}

static enum status stopped(struct nccl *nccl, const char *call)
{
    log_debug("%s is given up: another rank has failed", call);
    nccl_abort(nccl);
    return STATUS_ELSEWHERE;
}

/* Has the other rank said itself what is wrong? */
static int is_told(struct nccl *nccl)
{
    int64_t deadline = clock_ns() + (int64_t)ALARM_MS * 1000000;
    struct wait wait;

    world_wait_begin(nccl->world, &wait);
    wait.deaf = 1;
    while (!nccl_is_alarmed(nccl) && clock_ns() < deadline)
        world_wait_step(nccl->world, &wait, INT64_MAX);
    return nccl->alarmed;
}

static enum status failed(struct nccl *nccl, const char *call, int result)
{
    const struct nccl_library *library = &nccl->library;

    if (result == NCCL_REMOTE_ERROR && is_told(nccl))
        return stopped(nccl, call);
    log_error("%s failed on %s: %s (%s); %s; NCCL_DEBUG=WARN tells more", call, nccl->who, library->get_error_string(result),
              library->get_last_error(nccl->comm), advice_for(result));
    recorder_note("a call of NCCL failed with #", result, 0, 0);
    return give_up(nccl, STATUS_IO);
}

static enum status late(struct nccl *nccl, const char *call)
{
    log_error("%s is not done in time on %s: another rank is lost or cannot be reached; NCCL_DEBUG=INFO shows where it waits, "
              "NCCL_SOCKET_IFNAME chooses the network interface",
              call, nccl->who);
    return give_up(nccl, STATUS_WATCHDOG);
}

enum status nccl_done(struct nccl *nccl, const char *call, int result)
{
    struct wait wait;

    world_wait_begin(nccl->world, &wait);
    wait.deaf = 1; /* NCCL rings no doorbell */
    while (result == NCCL_IN_PROGRESS) {
        int code;

        if (nccl_is_alarmed(nccl))
            return stopped(nccl, call);
        if (nccl->deadline_ns != 0 && clock_ns() > nccl->deadline_ns)
            return late(nccl, call);
        if (nccl->deadline_ns != 0)
            progress_made(nccl->doing); /* this wait has a deadline of its own */
        code = nccl->library.comm_get_async_error(nccl->comm, &result);
        if (code != NCCL_SUCCESS)
            result = code;
        if (result == NCCL_IN_PROGRESS)
            world_wait_step(nccl->world, &wait, INT64_MAX);
    }
    return result == NCCL_SUCCESS ? STATUS_OK : failed(nccl, call, result);
}
