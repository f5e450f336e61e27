#include "common/backend/choose.h"

#include "common/base/log.h"
#include "common/base/number_list.h"
#ifdef TANDEM_CUDA
#include "common/backend/cuda/device.h"
#endif
#include <limits.h>

/* Devices that answer to this program, else 0 and the reason. */
static int cuda_devices(const char **reason)
{
#ifdef TANDEM_CUDA
    return device_count(reason);
#else
    *reason = "this program was built without it (cmake --preset release -DTANDEM_CUDA=ON; launch/tandem does so where nvcc is)";
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

enum status backend_choose_device(const struct backend *backend, const char *list, int turn, int *device)
{
    const char *reason;
    int devices = backend == &backend_cpu ? 0 : cuda_devices(&reason), listed[NUMBER_LIST_MAX];
    int count = list != NULL ? number_list_read(list, INT_MAX / 16, listed) : 0;

    *device = 0;
    if (devices <= 0)
        return STATUS_OK;
    *device = count > 0 ? listed[turn % count] : turn % devices;
    if (*device < devices)
        return STATUS_OK;
    log_error("device %d of the list %s is not there: this rank sees %d, from 0", *device, list, devices);
    return STATUS_USAGE;
}
