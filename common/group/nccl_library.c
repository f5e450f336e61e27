#include "common/group/nccl_library.h"

#include "common/base/log.h"
#include <dlfcn.h>
#include <string.h>

#define LIBRARY "libnccl.so.2"

struct symbol {
    const char *name;
    size_t place; /* of the pointer in struct nccl_library */
    int needed;
};

#define SYMBOL(name, member, needed)                                                                                                       \
    {                                                                                                                                      \
        name, offsetof(struct nccl_library, member), needed                                                                                \
    }

static const struct symbol symbols[] = {
    SYMBOL("ncclGetVersion", get_version, 1),
    SYMBOL("ncclGetErrorString", get_error_string, 1),
    SYMBOL("ncclGetLastError", get_last_error, 1),
    SYMBOL("ncclGetUniqueId", get_unique_id, 1),
    SYMBOL("ncclCommInitRankConfig", comm_init_rank_config, 1),
    SYMBOL("ncclCommSplit", comm_split, 1),
    SYMBOL("ncclCommGetAsyncError", comm_get_async_error, 1),
    SYMBOL("ncclCommFinalize", comm_finalize, 1),
    SYMBOL("ncclCommDestroy", comm_destroy, 1),
    SYMBOL("ncclCommAbort", comm_abort, 1),
    SYMBOL("ncclAllReduce", all_reduce, 1),
    SYMBOL("ncclAllGather", all_gather, 1),
    SYMBOL("ncclGroupStart", group_start, 1),
    SYMBOL("ncclSend", send, 1),
    SYMBOL("ncclRecv", recv, 1),
    SYMBOL("ncclGroupEnd", group_end, 1),
    SYMBOL("ncclMemAlloc", mem_alloc, 0),
    SYMBOL("ncclMemFree", mem_free, 0),
    SYMBOL("ncclCommWindowRegister", comm_window_register, 0),
    SYMBOL("ncclCommWindowDeregister", comm_window_deregister, 0),
};

static enum status find_symbols(void *handle, struct nccl_library *library)
{
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *function = dlsym(handle, symbols[i].name);

        if (function == NULL && symbols[i].needed) {
            log_error("%s has no %s; verifiers on several GPUs need NCCL %d.%d or later", LIBRARY, symbols[i].name,
                      NCCL_LEAST_VERSION / 10000, NCCL_LEAST_VERSION / 100 % 100);
            return STATUS_USAGE;
        }
        memcpy((char *)library + symbols[i].place, &function, sizeof function);
    }
    return STATUS_OK;
}

enum status nccl_library_open(struct nccl_library *library)
{
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    struct nccl_library found = {0};

    if (handle == NULL) {
        log_error("verifiers on several GPUs need NCCL, and it cannot be loaded (%s): install NVIDIA's libnccl2, name its folder in "
                  "LD_LIBRARY_PATH, or use one verifier or --backend cpu",
                  dlerror());
        return STATUS_USAGE;
    }
    if (find_symbols(handle, &found) != STATUS_OK)
        return STATUS_USAGE;
    if (found.get_version(&found.version) != NCCL_SUCCESS || found.version < NCCL_LEAST_VERSION) {
        log_error("%s is version %d, expected NCCL %d.%d or later", LIBRARY, found.version, NCCL_LEAST_VERSION / 10000,
                  NCCL_LEAST_VERSION / 100 % 100);
        return STATUS_USAGE;
    }
    int hasty = found.version >= NCCL_HASTY_VERSION && found.version < NCCL_MENDED_VERSION;

    if (found.version < NCCL_WINDOW_VERSION || hasty || found.mem_alloc == NULL || found.mem_free == NULL || found.comm_window_deregister == NULL)
        found.comm_window_register = NULL;
    *library = found;
    return STATUS_OK;
}
