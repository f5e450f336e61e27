/* A device owns memory, copies and one stream, in which work is done in the order in which it was enqueued. device.c has it on the CUDA runtime;
 * device_emulated.c on the host's memory, where work is done at once. Invariant: the first call that fails is remembered with its name, and later
 * work may do nothing; device_finish reports it. Calls only enqueue: device_finish and device_write alone wait. One thread at a time may call. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_DEVICE_H
#define TANDEM_COMMON_BACKEND_CUDA_DEVICE_H

#include "common/base/status.h"
#include <stddef.h>

struct device;
struct device_graph; /* recorded work */
struct CUstream_st; /* CUDA's name of a stream, where there is no CUDA as well */

enum { DEVICE_HANDLE_BYTES = 64 }; /* what another process of the host needs to reach shared memory, to be passed on as it is */

/* Why there is no device, or this one is of no use. */
struct device_lack {
    int is_fault; /* somebody would count on one: there is a driver, or a device */
    char why[384];
};

/* The number of visible devices; 0 where none answers, and then `lack` (may be NULL) says why. */
int device_count(struct device_lack *lack);
/* Whether the device of this index, of those visible, may be used by this program; else `lack` says why not. Opens nothing. */
int device_is_usable(int index, struct device_lack *lack);

/* STATUS_USAGE when there is no device of that index, STATUS_INTERNAL when it does not work. */
enum status device_open(int index, struct device **device);
void device_close(struct device *device);

const char *device_name(const struct device *device);
int device_index(const struct device *device);
/* Its bus id, for people: parts of a device (MIG) have the same one. */
const char *device_place(const struct device *device);
/* Its UUID, which no other device, or part of one, has: two processes whose devices have the same one share a device. */
const char *device_uuid(const struct device *device);
/* The number of multiprocessors, which tells how many blocks are worth launching. */
int device_processors(const struct device *device);
/* Bytes of shared memory of a multiprocessor, for all of its blocks. */
int device_shared_bytes(const struct device *device);
/* The most of it that one block may have. */
int device_block_bytes(const struct device *device);
/* Whether a kernel may begin before the one ahead of it in the stream has ended (programmatic dependent launch). */
int device_overlaps(const struct device *device);
/* Whether eight blocks can run together and read each other's shared memory (thread block clusters). */
int device_clusters(const struct device *device);
struct CUstream_st *device_stream(const struct device *device);
/* Bytes free and in all. STATUS_INTERNAL when the device does not say. */
enum status device_memory_left(struct device *device, size_t *free_bytes, size_t *all_bytes);

/* Zeroed memory of the device, aligned to 256 bytes. STATUS_INTERNAL, with a line that names `what` and the figures, when there is not so
 * much. `memory` may be NULL for close. */
enum status device_memory_open(struct device *device, size_t bytes, const char *what, void **memory);
void device_memory_close(struct device *device, void *memory);
/* Pinned memory of the host, which copies to and from the device can use while the host goes on. Zeroed. */
enum status device_host_open(struct device *device, size_t bytes, const char *what, void **memory);
void device_host_close(struct device *device, void *memory);

/* Zeroed memory of the device that devices of other processes can be let into, and the other processes' memory as this device sees it. 0 with the
 * reason in CUDA's words, which is no failure of the device, where there is none, or the devices do not reach each other. device_leave before the
 * owner closes. */
int device_share(struct device *device, size_t bytes, void **memory, void *handle, const char **reason);
void device_share_close(struct device *device, void *memory);
int device_reach(struct device *device, const void *handle, void **memory, const char **reason);
void device_leave(struct device *device, void *memory);

/* Copies to the device; `from` may be any memory of the host and may go away when it returns. For loading. */
void device_write(struct device *device, void *to, const void *from, size_t bytes);
/* Copies in the stream; the host's memory is pinned and stays as it is until device_finish. */
void device_copy_in(struct device *device, void *to, const void *from, size_t bytes);
void device_copy_out(struct device *device, void *to, const void *from, size_t bytes);
/* Copies within the device's memory, in the stream: `rows` rows of `bytes`, `pitch` bytes from one to the next on both sides. */
void device_copy(struct device *device, void *to, const void *from, size_t pitch, size_t bytes, size_t rows);

/* To be called after each launch: remembers a launch that was refused. */
void device_launched(struct device *device, const char *kernel);
/* Work enqueued from here on is recorded and not done, up to device_recorded, which returns the recording; NULL when the work cannot be recorded,
 * which is no failure of the device: it has to be enqueued again. Pointers are recorded, not what they point at. No call that waits may be made in
 * between. */
void device_record(struct device *device);
struct device_graph *device_recorded(struct device *device);
/* Enqueues the recorded work; may be called any number of times. */
void device_play(struct device *device, struct device_graph *graph);
void device_graph_close(struct device_graph *graph);
/* Whether all work is done, or some has failed. Waits for nothing. */
int device_idle(struct device *device);
/* Waits for all work. STATUS_INTERNAL, after one line that names the device and the call, when any of it failed since the device was
 * opened: a device that has failed once stays so. */
enum status device_finish(struct device *device);

#endif
