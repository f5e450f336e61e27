/* A backend that says that its memory is a device's, while it is the host's: the CPU backend with a device of its own for each rank. For
 * tests of what groups do with such memory. */
#ifndef TANDEM_TESTS_SUPPORT_PRETENDED_DEVICE_H
#define TANDEM_TESTS_SUPPORT_PRETENDED_DEVICE_H

#include "common/backend/backend.h"

struct pretended_device {
    struct backend backend;
    struct backend_context *context;
};

/* The device is number `number` on this host. One per process. */
enum status pretended_device_open(struct pretended_device *rig, int number);
/* Another UUID: with the bus id of another, a part of a device; with another bus id, the same device as two containers see it. */
void pretended_device_rename(int uuid);
void pretended_device_close(struct pretended_device *rig);
/* The device is busy the next so many times that it is asked. */
void pretended_device_busy(int questions);

#endif
