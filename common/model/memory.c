#include "common/model/memory.h"

#include "common/base/log.h"
#include <stdio.h>

int64_t memory_available(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    long long kib = -1;
    char line[128];

    if (file == NULL)
        return -1;
    while (fgets(line, sizeof line, file) != NULL && sscanf(line, "MemAvailable: %lld kB", &kib) != 1)
        continue;
    fclose(file);
    return kib < 0 ? -1 : (int64_t)kib * 1024;
}

enum status memory_check(const char *what, int64_t bytes)
{
    int64_t available = memory_available();

    if (available < 0 || bytes <= available)
        return STATUS_OK;
    log_error("%s takes %.1f GiB, this host has %.1f GiB available", what, (double)bytes / 0x1p30, (double)available / 0x1p30);
    return STATUS_INTERNAL;
}
