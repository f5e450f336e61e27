#include "common/backend/cuda/device.h"

#include "common/backend/cuda/driver.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARED_BLOCK = 2 << 20 };

struct device {
    int index;
    int processors;
    int shared_bytes, block_bytes;
    int overlaps, clusters;
    cudaStream_t stream;
    char name[256];
    char place[32];
    char uuid[48];
    cudaError_t failure; /* the first */
    const char *failed;  /* the call that it came from */
    int told;
};

static struct driver_device ask_driver(int index)
{
    struct driver_device told = {.major = DRIVER_LEAST_MAJOR};

    /* What it does not say is as it should be: opening tells. */
    (void)cudaDeviceGetAttribute(&told.major, cudaDevAttrComputeCapabilityMajor, index);
    (void)cudaDeviceGetAttribute(&told.minor, cudaDevAttrComputeCapabilityMinor, index);
    (void)cudaDeviceGetAttribute(&told.mode, cudaDevAttrComputeMode, index);
    (void)cudaGetLastError(); /* no failure of a launch */
    return told;
}

static enum status refused_by(const struct device *device, const char *call, cudaError_t error)
{
    const struct driver_device told = ask_driver(device->index);

    log_error("%s on device %d: %s (%s)%s", call, device->index, cudaGetErrorString(error), cudaGetErrorName(error),
              driver_advice(&told, (int)error));
    return STATUS_INTERNAL;
}

/* For what is done before a stream carries work: fails at once. */
#define TRY_CUDA(device, call)                                                                                                             \
    do {                                                                                                                                   \
        cudaError_t error_ = (call);                                                                                                       \
        if (error_ != cudaSuccess)                                                                                                         \
            return refused_by((device), #call, error_);                                                                                    \
    } while (0)

static void note(struct device *device, cudaError_t error, const char *call)
{
    if (error == cudaSuccess || device->failure != cudaSuccess)
        return;
    device->failure = error;
    device->failed = call;
}

int device_count(struct device_lack *lack)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    struct driver_answer answer = {.error = (int)error, .words = cudaGetErrorString(error)};

    if (error == cudaSuccess && count > 0)
        return count;
    if (lack == NULL)
        return 0;
    (void)cudaDriverGetVersion(&answer.driver);
    (void)cudaRuntimeGetVersion(&answer.runtime);
    lack->is_fault = driver_explain(&answer, lack->why, sizeof lack->why);
    return 0;
}

int device_is_usable(int index, struct device_lack *lack)
{
    const struct driver_device told = ask_driver(index);

    lack->is_fault = 1;
    return driver_allows(&told, lack->why, sizeof lack->why);
}

/* As nvidia-smi writes that of a whole device. */
static void write_uuid(const cudaUUID_t *uuid, char text[48])
{
    int length = snprintf(text, 48, "GPU-");

    for (int i = 0; i < 16; i++)
        length += snprintf(text + length, 48 - (size_t)length, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                           (unsigned char)uuid->bytes[i]);
}

static enum status look(struct device *device)
{
    struct cudaDeviceProp properties;

    TRY_CUDA(device, cudaSetDevice(device->index));
    TRY_CUDA(device, cudaGetDeviceProperties(&properties, device->index));
    TRY_CUDA(device, cudaDeviceGetPCIBusId(device->place, (int)sizeof device->place, device->index));
    TRY_CUDA(device, cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking));
    device->processors = properties.multiProcessorCount;
    device->shared_bytes = (int)properties.sharedMemPerMultiprocessor;
    device->block_bytes = (int)properties.sharedMemPerBlockOptin;
    device->overlaps = properties.major >= 9;
    device->clusters = properties.major >= 9 && properties.major < 12; /* later ones for desktops have clusters of one block */
    memcpy(device->name, properties.name, sizeof device->name);
    device->name[sizeof device->name - 1] = '\0';
    write_uuid(&properties.uuid, device->uuid);
    return STATUS_OK;
}

enum status device_open(int index, struct device **device)
{
    struct device_lack lack;
    int count = device_count(&lack);
    struct device *new;
    enum status status;

    if (index < 0 || index >= count) {
        log_error("device %d of %d: %s", index, count, count == 0 ? lack.why : "there is none of that number");
        return STATUS_USAGE;
    }
    if (!device_is_usable(index, &lack)) {
        log_error("device %d cannot be used: %s", index, lack.why);
        return STATUS_USAGE;
    }
    new = calloc(1, sizeof *new);
    if (new == NULL) {
        log_error("no memory for a device");
        return STATUS_INTERNAL;
    }
    new->index = index;
    status = look(new);
    if (status != STATUS_OK) {
        device_close(new);
        return status;
    }
    *device = new;
    return STATUS_OK;
}

void device_close(struct device *device)
{
    if (device == NULL)
        return;
    if (device->stream != NULL)
        cudaStreamDestroy(device->stream);
    free(device);
}

const char *device_name(const struct device *device)
{
    return device->name;
}

int device_index(const struct device *device)
{
    return device->index;
}

const char *device_place(const struct device *device)
{
    return device->place;
}

const char *device_uuid(const struct device *device)
{
    return device->uuid;
}

int device_processors(const struct device *device)
{
    return device->processors;
}

int device_shared_bytes(const struct device *device)
{
    return device->shared_bytes;
}

int device_block_bytes(const struct device *device)
{
    return device->block_bytes;
}

int device_overlaps(const struct device *device)
{
    return device->overlaps;
}

int device_clusters(const struct device *device)
{
    return device->clusters;
}

struct CUstream_st *device_stream(const struct device *device)
{
    return device->stream;
}

enum status device_memory_left(struct device *device, size_t *free_bytes, size_t *all_bytes)
{
    size_t left, all;

    TRY_CUDA(device, cudaMemGetInfo(&left, &all));
    *free_bytes = left;
    *all_bytes = all;
    return STATUS_OK;
}

enum status device_memory_open(struct device *device, size_t bytes, const char *what, void **memory)
{
    size_t size = bytes > 0 ? bytes : 1, left = 0, all = 0;
    void *new = NULL;
    cudaError_t error = cudaMalloc(&new, size);

    if (error != cudaSuccess) {
        (void)cudaGetLastError(); /* it is no failure of a kernel */
        (void)cudaMemGetInfo(&left, &all);
        log_error("%s of %.3f GiB: device %d (%s) has %.3f of %.3f GiB free: %s", what, (double)size / 0x1p30, device->index, device->name,
                  (double)left / 0x1p30, (double)all / 0x1p30, cudaGetErrorString(error));
        return STATUS_INTERNAL;
    }
    note(device, cudaMemsetAsync(new, 0, size, device->stream), "zeroing memory");
    *memory = new;
    return STATUS_OK;
}

void device_memory_close(struct device *device, void *memory)
{
    note(device, cudaFree(memory), "cudaFree");
}

enum status device_host_open(struct device *device, size_t bytes, const char *what, void **memory)
{
    size_t size = bytes > 0 ? bytes : 1;
    void *new = NULL;
    cudaError_t error = cudaHostAlloc(&new, size, cudaHostAllocDefault);

    if (error != cudaSuccess) {
        (void)cudaGetLastError();
        log_error("%s of %.3f GiB: the host has no such memory to pin for device %d: %s", what, (double)size / 0x1p30, device->index,
                  cudaGetErrorString(error));
        return STATUS_INTERNAL;
    }
    memset(new, 0, size);
    *memory = new;
    return STATUS_OK;
}

void device_host_close(struct device *device, void *memory)
{
    note(device, cudaFreeHost(memory), "cudaFreeHost");
}

static int refused(cudaError_t error, const char **reason)
{
    (void)cudaGetLastError(); /* it is not to be found by the next launch */
    *reason = cudaGetErrorString(error);
    return 0;
}

int device_share(struct device *device, size_t bytes, void **memory, void *handle, const char **reason)
{
    cudaIpcMemHandle_t own;
    void *new = NULL;
    size_t size = (bytes + SHARED_BLOCK - 1) / SHARED_BLOCK * SHARED_BLOCK; /* others get the whole block that an allocation lies in */
    cudaError_t error = cudaMalloc(&new, size);

    (void)device; /* the only one of this thread */
    _Static_assert(sizeof own <= DEVICE_HANDLE_BYTES, "a handle of CUDA fits");
    if (error != cudaSuccess)
        return refused(error, reason);
    error = cudaIpcGetMemHandle(&own, new);
    if (error == cudaSuccess)
        error = cudaMemset(new, 0, size);
    if (error == cudaSuccess)
        error = cudaDeviceSynchronize(); /* zeros lie there before another device writes */
    if (error != cudaSuccess) {
        (void)cudaFree(new);
        return refused(error, reason);
    }
    memcpy(handle, &own, sizeof own);
    *memory = new;
    return 1;
}

void device_share_close(struct device *device, void *memory)
{
    note(device, cudaFree(memory), "cudaFree");
}

int device_reach(struct device *device, const void *handle, void **memory, const char **reason)
{
    cudaIpcMemHandle_t other;
    void *there = NULL;
    cudaError_t error;

    (void)device;
    memcpy(&other, handle, sizeof other);
    error = cudaIpcOpenMemHandle(&there, other, cudaIpcMemLazyEnablePeerAccess);
    if (error != cudaSuccess)
        return refused(error, reason);
    *memory = there;
    return 1;
}

void device_leave(struct device *device, void *memory)
{
    note(device, cudaIpcCloseMemHandle(memory), "cudaIpcCloseMemHandle");
}

void device_write(struct device *device, void *to, const void *from, size_t bytes)
{
    note(device, cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, device->stream), "a copy to the device");
    note(device, cudaStreamSynchronize(device->stream), "a copy to the device");
}

void device_copy_in(struct device *device, void *to, const void *from, size_t bytes)
{
    note(device, cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, device->stream), "a copy to the device");
}

void device_copy_out(struct device *device, void *to, const void *from, size_t bytes)
{
    note(device, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, device->stream), "a copy from the device");
}

void device_copy(struct device *device, void *to, const void *from, size_t pitch, size_t bytes, size_t rows)
{
    note(device, cudaMemcpy2DAsync(to, pitch, from, pitch, bytes, rows, cudaMemcpyDeviceToDevice, device->stream), "a copy within the device");
}

void device_launched(struct device *device, const char *kernel)
{
    note(device, cudaGetLastError(), kernel);
}

void device_record(struct device *device)
{
    note(device, cudaStreamBeginCapture(device->stream, cudaStreamCaptureModeThreadLocal), "the recording of a step");
}

struct device_graph *device_recorded(struct device *device)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t playable = NULL;
    cudaError_t error = cudaStreamEndCapture(device->stream, &graph);

    if (error == cudaSuccess)
        error = cudaGraphInstantiate(&playable, graph, 0);
    if (graph != NULL)
        note(device, cudaGraphDestroy(graph), "cudaGraphDestroy");
    if (error == cudaSuccess)
        error = cudaGraphUpload(playable, device->stream); /* its memory is taken here, where it may be refused, and not by the first launch */
    if (error == cudaSuccess)
        return (struct device_graph *)playable;
    if (playable != NULL)
        (void)cudaGraphExecDestroy(playable);
    (void)cudaGetLastError();
    log_debug("a step is not recorded on device %d: %s", device->index, cudaGetErrorString(error));
    return NULL;
}

void device_play(struct device *device, struct device_graph *graph)
{
    note(device, cudaGraphLaunch((cudaGraphExec_t)graph, device->stream), "a recorded step");
}

void device_graph_close(struct device_graph *graph)
{
    (void)cudaGraphExecDestroy((cudaGraphExec_t)graph);
}

int device_idle(struct device *device)
{
    cudaError_t error = cudaStreamQuery(device->stream);

    if (error == cudaErrorNotReady) {
        (void)cudaGetLastError(); /* no failure of a launch */
        return 0;
    }
    note(device, error, "the stream");
    return 1;
}

enum status device_finish(struct device *device)
{
    note(device, cudaStreamSynchronize(device->stream), "waiting for the stream");
    if (device->failure == cudaSuccess)
        return STATUS_OK;
    if (!device->told)
        log_error("%s on device %d (%s): %s (%s); nothing more can be computed there, start the job again", device->failed, device->index,
                  device->name, cudaGetErrorString(device->failure), cudaGetErrorName(device->failure));
    device->told = 1;
    return STATUS_INTERNAL;
}
