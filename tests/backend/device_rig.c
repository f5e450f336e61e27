#include "tests/backend/device_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((weak)) void emulation_order(unsigned seed); /* where kernels are emulated */

static struct device *device;

struct device *device_rig_open(void)
{
    struct device_lack lack;

    if (device != NULL)
        return device;
    if (device_count(&lack) == 0) {
        printf("skipped: %s\n", lack.why);
        exit(77);
    }
    assert_int_equal(device_open(0, &device), STATUS_OK);
    return device;
}

void device_rig_close(void)
{
    if (device != NULL)
        device_close(device);
    device = NULL;
}

void *device_put(const void *from, size_t bytes)
{
    void *memory = NULL;

    assert_int_equal(device_memory_open(device_rig_open(), bytes + (bytes == 0), "a test", &memory), STATUS_OK);
    device_write(device, memory, from, bytes);
    return memory;
}

void *device_blank(size_t bytes)
{
    void *ones = malloc(bytes + (bytes == 0)), *memory;

    assert_non_null(ones);
    memset(ones, 0xff, bytes);
    memory = device_put(ones, bytes);
    free(ones);
    return memory;
}

void device_get(void *to, const void *from, size_t bytes)
{
    void *pinned = NULL;

    assert_int_equal(device_host_open(device, bytes + (bytes == 0), "a test", &pinned), STATUS_OK);
    device_copy_out(device, pinned, from, bytes);
    assert_int_equal(device_finish(device), STATUS_OK);
    memcpy(to, pinned, bytes);
    device_host_close(device, pinned);
}

void device_rig_order(unsigned seed)
{
    if (emulation_order != NULL)
        emulation_order(seed);
}

void device_free(void *memory)
{
    device_memory_close(device, memory);
}

uint16_t bf16_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float bf16_wide(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;

    memcpy(&value, &wide, sizeof value);
    return value;
}
