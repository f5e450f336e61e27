#include "tests/support/device_rig.h"

#include "common/base/check.h"
#include <stdio.h>

static struct backend_device device = {.name = "pretended"};
static int busy;

static const struct backend_device *rig_device(const struct backend_context *context)
{
    (void)context;
    return &device;
}

static int rig_idle(struct backend_context *context)
{
    (void)context;
    return busy == 0 || busy-- == 0;
}

enum status device_rig_open(struct device_rig *rig, int number)
{
    const struct backend_options options = {.threads = 1, .max_rows = 1};

    TRY(backend_cpu.open(&options, &rig->context));
    rig->backend = backend_cpu;
    rig->backend.device = rig_device;
    rig->backend.idle = rig_idle;
    device.number = number;
    snprintf(device.place, sizeof device.place, "0000:%02x:00.0", 24 + number);
    return STATUS_OK;
}

void device_rig_close(struct device_rig *rig)
{
    rig->backend.close(rig->context);
}

void device_rig_busy(int questions)
{
    busy = questions;
}
