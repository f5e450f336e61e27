/* What the tests of the CUDA kernels share: a device, emulated or real, and numbers on it. */
#ifndef TANDEM_TESTS_BACKEND_DEVICE_RIG_H
#define TANDEM_TESTS_BACKEND_DEVICE_RIG_H

#include "common/backend/cuda/device.h"
#include "tests/backend/rig.h"

/* The device of the test's process. Without one the process ends with 77, after a line that says why. */
struct device *device_rig_open(void);
void device_rig_close(void);

/* A copy on the device, of at least one byte. */
void *device_put(const void *from, size_t bytes);
/* Memory of the device whose every byte is 0xff: NaN, and no token. */
void *device_blank(size_t bytes);
/* What the device has there, once all work is done: a kernel that failed fails the test. */
void device_get(void *to, const void *from, size_t bytes);
void device_free(void *memory);

/* The order of threads and blocks from here on, in the emulation (emulation_order); on a device they have their own. */
void device_rig_order(unsigned seed);

/* Rounds to the nearest bfloat16, ties to even; finite. */
uint16_t bf16_of(float value);
float bf16_wide(uint16_t bits);

#endif
