/* A backend that says that its memory is a device's, while it is the host's: the CPU backend with a device of its own for each rank. For
 * tests of what groups do with such memory. */
#ifndef TANDEM_TESTS_SUPPORT_DEVICE_RIG_H
#define TANDEM_TESTS_SUPPORT_DEVICE_RIG_H

#include "common/backend/backend.h"

struct device_rig {
    struct backend backend;
    struct backend_context *context;
};

/* The device is number `number` on this host. One per process. */
enum status device_rig_open(struct device_rig *rig, int number);
void device_rig_close(struct device_rig *rig);
/* The device is busy the next so many times that it is asked. */
void device_rig_busy(int questions);

#endif
