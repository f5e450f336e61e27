#include "common/backend/choose.h"

#include "common/base/log.h"
#ifdef TANDEM_CUDA
#include "common/backend/cuda/device.h"
#endif

/* Devices that answer to this program, else 0 and the reason. */
static int cuda_devices(const char **reason)
{
#ifdef TANDEM_CUDA
    return device_count(reason);
#else
    *reason = "this program was built without it (cmake --preset cuda)";
    return 0;
#endif
}

enum status backend_choose(enum backend_choice choice, const struct backend **backend)
{
    const char *reason = "";
    int devices = choice == BACKEND_CPU ? 0 : cuda_devices(&reason);

    if (choice == BACKEND_CUDA && devices == 0) {
        log_error("--backend cuda cannot be had on this host: %s", reason);
        return STATUS_USAGE;
    }
#ifdef TANDEM_CUDA
    if (devices == 0 && choice == BACKEND_AUTO)
        log_debug("no CUDA here: %s; computing on the CPU", reason);
    *backend = devices > 0 ? &backend_cuda : &backend_cpu;
#else
    *backend = &backend_cpu;
#endif
    return STATUS_OK;
}

int backend_choose_device(const struct backend *backend, int node_rank)
{
    const char *reason;
    int devices = backend == &backend_cpu ? 0 : cuda_devices(&reason);

    return devices > 0 ? node_rank % devices : 0;
}
