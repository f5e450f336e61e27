#include "common/base/standard_output.h"

#include "common/base/log.h"
#include "common/base/status.h"
#include <stdio.h>

int standard_output_end(int code)
{
    const int failed = fflush(stdout) != 0 || ferror(stdout);

    if (!failed || code >= STATUS_USAGE)
        return code;
    log_error("cannot write to stdout: a full disk, or a closed stream");
    return STATUS_IO;
}
