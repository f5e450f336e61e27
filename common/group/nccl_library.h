/* NCCL as a library that is looked for when a group needs it: a program built for CUDA starts where NCCL is missing, and the group over it
 * compiles, and is tested against a library of the tests' own, where neither CUDA nor NCCL is. So the few types are declared here and not
 * taken from nccl.h; they are what NCCL keeps the same between versions (a config says its own size and version), and a test compares them
 * with nccl.h where there is one. Functions have NCCL's names without the prefix, and its rules; a missing one is NULL where that is said.
 */
#ifndef TANDEM_COMMON_GROUP_NCCL_LIBRARY_H
#define TANDEM_COMMON_GROUP_NCCL_LIBRARY_H

#include "common/base/status.h"
#include <limits.h>
#include <stddef.h>

/* What calls return. */
enum {
    NCCL_SUCCESS,
    NCCL_UNHANDLED_CUDA_ERROR,
    NCCL_SYSTEM_ERROR,
    NCCL_INTERNAL_ERROR,
    NCCL_INVALID_ARGUMENT,
    NCCL_INVALID_USAGE,
    NCCL_REMOTE_ERROR,
    NCCL_IN_PROGRESS,
};

enum {
    NCCL_SUM = 0,                /* ncclRedOp_t */
    NCCL_FLOAT32 = 7,            /* ncclDataType_t */
    NCCL_WINDOW_SYMMETRIC = 1,   /* a flag of ncclCommWindowRegister */
    NCCL_WINDOW_ALIGN = 4096,    /* of a window's memory */
    NCCL_WINDOW_VERSION = 22700, /* the first with symmetric windows */
    /* From 2.28.1 on up to 2.30.7 NCCL's kernels for windows begin before what is ahead of them has ended, and do not wait for it
     * (cudaGridDependencySynchronize was left out): behind a kernel that allows it, as linear maps do, they would read what is not written. */
    NCCL_HASTY_VERSION = 22800,
    NCCL_MENDED_VERSION = 23007,
    NCCL_LEAST_VERSION = 21800,  /* the config below is of that one */
    NCCL_UNDEFINED = INT_MIN,    /* a field of the config that keeps its default */
};
#define NCCL_CONFIG_MAGIC 0xcafebeefu

struct nccl_unique_id {
    char bytes[128];
};

/* ncclConfig_t as of NCCL_LEAST_VERSION: later ones are longer and take this for what it is by its size and version. */
struct nccl_config {
    size_t size;
    unsigned magic;
    unsigned version;
    int blocking;
    int cga_cluster_size;
    int min_ctas;
    int max_ctas;
    const char *net_name;
    int split_share;
};

struct nccl_comm;   /* ncclComm_t points at one */
struct nccl_window; /* ncclWindow_t points at one */

struct nccl_library {
    int version; /* 22809 is 2.28.9 */
    int (*get_version)(int *version);
    const char *(*get_error_string)(int result);
    const char *(*get_last_error)(struct nccl_comm *comm);
    int (*get_unique_id)(struct nccl_unique_id *id);
    int (*comm_init_rank_config)(struct nccl_comm **comm, int ranks, struct nccl_unique_id id, int rank, struct nccl_config *config);
    int (*comm_split)(struct nccl_comm *comm, int color, int key, struct nccl_comm **child, struct nccl_config *config);
    int (*comm_get_async_error)(struct nccl_comm *comm, int *result);
    int (*comm_finalize)(struct nccl_comm *comm);
    int (*comm_destroy)(struct nccl_comm *comm);
    int (*comm_abort)(struct nccl_comm *comm);
    int (*all_reduce)(const void *from, void *to, size_t count, int type, int operation, struct nccl_comm *comm, void *stream);
    int (*all_gather)(const void *from, void *to, size_t count, int type, struct nccl_comm *comm, void *stream);
    int (*group_start)(void);
    int (*send)(const void *from, size_t count, int type, int peer, struct nccl_comm *comm, void *stream);
    int (*recv)(void *to, size_t count, int type, int peer, struct nccl_comm *comm, void *stream);
    int (*group_end)(void);
    /* All four or none: before NCCL_WINDOW_VERSION, and from NCCL_HASTY_VERSION on before NCCL_MENDED_VERSION. */
    int (*mem_alloc)(void **memory, size_t bytes);
    int (*mem_free)(void *memory);
    int (*comm_window_register)(struct nccl_comm *comm, void *memory, size_t bytes, struct nccl_window **window, int flags);
    int (*comm_window_deregister)(struct nccl_comm *comm, struct nccl_window *window);
};

/* Local. Loads libnccl.so.2, which stays loaded to the end of the process, for it has threads of its own. STATUS_USAGE, after a line that
 * says what to do, where there is none, or one that is too old. */
enum status nccl_library_open(struct nccl_library *library);

#endif
