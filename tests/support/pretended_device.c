#include "tests/support/pretended_device.h"

#include "common/base/try.h"
#include <stdio.h>

static struct backend_device device = {.name = "pretended"};
static int busy;

static const struct backend_device *give_device(const struct backend_context *context)
{
    (void)context;
    return &device;
}

static int say_idle(struct backend_context *context)
{
    (void)context;
    return busy == 0 || busy-- == 0;
}

enum status pretended_device_open(struct pretended_device *rig, int number)
{
    const struct backend_options options = {.threads = 1, .max_rows = 1};

    TRY(backend_cpu.open(&options, &rig->context));
    rig->backend = backend_cpu;
    rig->backend.device.which = give_device;
    rig->backend.device.idle = say_idle;
    device.number = number;
    snprintf(device.place, sizeof device.place, "0000:%02x:00.0", 24 + number);
    snprintf(device.uuid, sizeof device.uuid, "GPU-%d", number);
    return STATUS_OK;
}

void pretended_device_rename(int uuid)
{
    snprintf(device.uuid, sizeof device.uuid, "GPU-other-%d", uuid);
}

void pretended_device_close(struct pretended_device *rig)
{
    rig->backend.close(rig->context);
}

void pretended_device_busy(int questions)
{
    busy = questions;
}
