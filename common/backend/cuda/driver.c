#include "common/backend/cuda/driver.h"

#include <stdio.h>

/* Of cudaError_t and cudaComputeMode. */
enum {
    ERROR_STUB_LIBRARY = 34,
    ERROR_INSUFFICIENT_DRIVER = 35,
    ERROR_DEVICES_UNAVAILABLE = 46,
    ERROR_NO_DEVICE = 100,
    ERROR_SYSTEM_NOT_READY = 802,
    ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    ERROR_NO_KERNEL_IMAGE = 209,
    ERROR_UNSUPPORTED_PTX = 222,
    ERROR_COMPAT_NOT_SUPPORTED = 804,
    ERROR_MPS_FIRST = 805, /* to 810: MPS's own errors */
    ERROR_MPS_LAST = 810,
    MODE_PROHIBITED = 2,
    MODE_EXCLUSIVE = 3,
};

static const char *advice_of(int error)
{
    if (error >= ERROR_MPS_FIRST && error <= ERROR_MPS_LAST)
        return "; MPS has the device: does nvidia-cuda-mps-control run, and for this user?";
    switch (error) {
    case ERROR_SYSTEM_NOT_READY:
        return "; nvidia-fabricmanager has to run on hosts with NVSwitch";
    case ERROR_SYSTEM_DRIVER_MISMATCH:
        return "; the driver's library is not that of the driver which is loaded: reboot, or load it anew";
    case ERROR_COMPAT_NOT_SUPPORTED:
        return "; a cuda-compat folder is on LD_LIBRARY_PATH, and this device does not take it: leave it out";
    default:
        return "; nvidia-smi tells more";
    }
}

int driver_explain(const struct driver_answer *answer, char *why, size_t size)
{
    if (answer->error == ERROR_NO_DEVICE || answer->error == 0) {
        snprintf(why, size, "no device is visible (nvidia-smi -L lists those of the host; CUDA_VISIBLE_DEVICES or a container may hide them)");
        return 0;
    }
    if (answer->driver == 0 || answer->error == ERROR_STUB_LIBRARY) {
        snprintf(why, size, "no NVIDIA driver is installed, or none is passed into this container");
        return 0;
    }
    if (answer->error == ERROR_INSUFFICIENT_DRIVER)
        snprintf(why, size,
                 "the NVIDIA driver serves CUDA %d.%d and this program is built with CUDA %d.%d: install a newer driver, or build with a toolkit of "
                 "the driver's version",
                 answer->driver / 1000, answer->driver % 1000 / 10, answer->runtime / 1000, answer->runtime % 1000 / 10);
    else
        snprintf(why, size, "the NVIDIA driver (CUDA %d.%d) says: %s%s", answer->driver / 1000, answer->driver % 1000 / 10, answer->words,
                 advice_of(answer->error));
    return 1;
}

int driver_allows(const struct driver_device *device, char *why, size_t size)
{
    if (device->major < DRIVER_LEAST_MAJOR)
        snprintf(why, size, "its compute capability is %d.%d, and the kernels are for %d.0 and later", device->major, device->minor,
                 DRIVER_LEAST_MAJOR);
    else if (device->mode == MODE_PROHIBITED)
        snprintf(why, size, "its compute mode is Prohibited: nvidia-smi -c DEFAULT lets programs use it");
    else
        return 1;
    return 0;
}

const char *driver_advice(const struct driver_device *device, int error)
{
    if (error == ERROR_DEVICES_UNAVAILABLE && device->mode == MODE_EXCLUSIVE)
        return "; its compute mode is Exclusive_Process and another process has it: give each rank a device of its own, start MPS, or nvidia-smi "
               "-c DEFAULT";
    if (error >= ERROR_MPS_FIRST && error <= ERROR_MPS_LAST)
        return advice_of(error);
    if (error == ERROR_NO_KERNEL_IMAGE || error == ERROR_UNSUPPORTED_PTX)
        return "; this program has no code for the device that the driver takes: install a newer driver, or build on this machine";
    return "";
}
