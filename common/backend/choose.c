#include "common/backend/choose.h"

#include "common/backend/cuda/device.h"
#include "common/base/log.h"
#include "common/base/number_list.h"
#include <limits.h>
#include <stdio.h>

enum { MOST_DEVICES = 64 }; /* of a host */

/* Those of the visible devices that can be used, by their numbers; where there are none, the reason. A host may have one more for its screen. */
static int usable_devices(int number[MOST_DEVICES], int *visible, struct device_lack *lack)
{
#ifdef TANDEM_CUDA
    int count = device_count(lack), usable = 0;

    *visible = count;
    for (int i = 0; i < count && i < MOST_DEVICES; i++)
        if (device_is_usable(i, lack))
            number[usable++] = i;
    if (count > 0 && usable == 0) {
        char why[sizeof lack->why];

        snprintf(why, sizeof why, "%s", lack->why);
        snprintf(lack->why, sizeof lack->why, count == 1 ? "device %d cannot be used: %.300s" : "no device can be used, the last, %d, for this: %.300s",
                 count - 1, why);
    }
    return usable;
#else
    (void)number;
    *visible = 0;
    *lack = (struct device_lack){.why = "this program was built without it (cmake --preset release -DTANDEM_CUDA=ON; launch/tandem does so where nvcc is)"};
    return 0;
#endif
}

enum status backend_choose(enum backend_choice choice, const struct backend **backend)
{
    int number[MOST_DEVICES], visible, devices;
    struct device_lack lack = {0};

    devices = choice == BACKEND_CPU ? 0 : usable_devices(number, &visible, &lack);
    if (choice == BACKEND_CUDA && devices == 0) {
        log_error("--backend cuda cannot be had on this host: %s", lack.why);
        return STATUS_USAGE;
    }
    *backend = &backend_cpu;
#ifdef TANDEM_CUDA
    if (devices > 0)
        *backend = &backend_cuda;
    else if (choice == BACKEND_AUTO)
        log_debug("no CUDA here: %s; computing on the CPU", lack.why);
#endif
    return STATUS_OK;
}

void backend_choose_warn(enum backend_choice choice, const struct backend *backend)
{
    int number[MOST_DEVICES], visible;
    struct device_lack lack = {0};

    if (choice == BACKEND_AUTO && backend == &backend_cpu && usable_devices(number, &visible, &lack) == 0 && lack.is_fault)
        log_warn("computing on the CPU: %s (--backend cpu says nothing of it)", lack.why);
}

enum status backend_choose_device(const struct backend *backend, const char *list, int turn, int *device)
{
    int number[MOST_DEVICES], listed[NUMBER_LIST_MAX], visible;
    struct device_lack lack;
    int usable = backend == &backend_cpu ? 0 : usable_devices(number, &visible, &lack);
    int count = list != NULL ? number_list_read(list, INT_MAX / 16, listed) : 0;

    *device = 0;
    if (usable == 0)
        return STATUS_OK;
    *device = count > 0 ? listed[turn % count] : number[turn % usable];
    if (*device < visible)
        return STATUS_OK;
    log_error("device %d of the list %s is not there: this rank sees %d, from 0", *device, list, visible);
    return STATUS_USAGE;
}
