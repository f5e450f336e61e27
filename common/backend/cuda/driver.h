/* What the CUDA runtime answers about a machine's driver and devices, in words that tell what to do. Pure: it knows numbers of CUDA but not its headers,
 * so that every answer can be tried where there is no device. For device.c and the emulation alone. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_DRIVER_H
#define TANDEM_COMMON_BACKEND_CUDA_DRIVER_H

#include <stddef.h>

enum { DRIVER_LEAST_MAJOR = 8 }; /* compute capability of the oldest devices that the kernels are for */

/* As the runtime counts: 12040 is CUDA 12.4; 0: there is none. */
struct driver_answer {
    int error;         /* of counting the devices; 0: none */
    const char *words; /* the runtime's own of it */
    int driver, runtime;
};

/* Why no device is to be had. Returns whether somebody would count on one: a driver is there and does not serve. */
int driver_explain(const struct driver_answer *answer, char *why, size_t size);

struct driver_device {
    int major, minor; /* compute capability */
    int mode;         /* compute mode: 0 shared, 2 prohibited, 3 for one process */
};

/* Whether programs may use the device at all; else why not. */
int driver_allows(const struct driver_device *device, char *why, size_t size);
/* What helps where a device that may be used cannot be opened for this `error`; empty where nothing is known. */
const char *driver_advice(const struct driver_device *device, int error);

#endif
