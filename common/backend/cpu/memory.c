/* Does it fit? Checked before memory is taken, so that a rank reports the numbers instead of being killed by the kernel. */
#include "common/backend/cpu/context.h"

#include "common/base/log.h"
#include <stdio.h>

/* Bytes that this host can still give, or -1 when it does not say. */
static int64_t available(void)
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

enum status cpu_memory_check(struct backend_context *context, const char *what, size_t bytes)
{
    int64_t left = available();

    (void)context;
    if (left < 0 || bytes <= (size_t)left)
        return STATUS_OK;
    log_error("%s takes %.1f GiB, this host has %.1f GiB available", what, (double)bytes / 0x1p30, (double)left / 0x1p30);
    return STATUS_INTERNAL;
}
