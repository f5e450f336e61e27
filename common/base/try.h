/* TRY passes a status up; TRY_TO does the same where something must be undone first. Both evaluate the call once and log nothing:
 * the callee has said what went wrong. Libraries have their own forms beside the code that may call them (TRY_MPI in
 * common/world). */
#ifndef TANDEM_COMMON_BASE_TRY_H
#define TANDEM_COMMON_BASE_TRY_H

#include "common/base/status.h"

#define TRY(call)                                                                                                                  \
    do {                                                                                                                           \
        enum status try_status_ = (call);                                                                                          \
        if (try_status_ != STATUS_OK)                                                                                              \
            return try_status_;                                                                                                    \
    } while (0)

/* Needs a variable `enum status status` in scope, which holds the failure at `label`. */
#define TRY_TO(call, label)                                                                                                        \
    do {                                                                                                                           \
        status = (call);                                                                                                           \
        if (status != STATUS_OK)                                                                                                   \
            goto label;                                                                                                            \
    } while (0)

#endif
