/* Devices of the emulation: their memory is the host's, and work is done when it is enqueued. There are several, so that each rank of a host has its
 * own. For tests the last ones have limits: one whose memory no other device reaches, one with less shared memory, one that refuses launches, one
 * with too little shared memory, one that is too old. Memory shared with other processes is a file without a name, which they open through /proc.
 * EMULATED_DRIVER in the environment says what the driver answers when devices are counted: "ERROR DRIVER RUNTIME", by CUDA's numbers;
 * EMULATED_DEVICES which are visible: "FIRST COUNT"; EMULATED_MEMORY how much each has. */
#include "common/backend/cuda/device.h"

#include "common/backend/cuda/driver.h"
#include "common/base/log.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of emulation.h, which is C++. */
void emulation_record(void);
struct device_graph *emulation_recorded(void);
void emulation_play(struct device_graph *graph);
void emulation_forget(struct device_graph *graph);
void emulation_copy(void *to, const void *from, size_t bytes);
void emulation_allow(size_t block_bytes);

enum { ALONE = 5, SMALL, BROKEN, NARROW, OLD, DEVICES, PROCESSORS = 3 };

/* Of a device: 4 GiB, or what EMULATED_MEMORY says, in MiB. */
static size_t all_memory(void)
{
    const char *told = getenv("EMULATED_MEMORY");

    return told != NULL ? (size_t)atol(told) << 20 : (size_t)4 << 30;
}

struct device {
    int index;  /* of all, */
    int number; /* and of those that are visible */
    const char *failed; /* the first launch that was refused, or NULL */
    int told;
};

/* Of those that are visible. */
static int first_visible(int *count)
{
    const char *told = getenv("EMULATED_DEVICES");
    int first = 0;

    *count = DEVICES;
    if (told == NULL || sscanf(told, "%d %d", &first, count) != 2)
        return 0;
    return first;
}

int device_count(struct device_lack *lack)
{
    const char *told = getenv("EMULATED_DRIVER");
    struct driver_answer answer = {.words = "an error of the emulation"};
    int count;

    first_visible(&count);
    if (told == NULL || sscanf(told, "%d %d %d", &answer.error, &answer.driver, &answer.runtime) != 3)
        return count;
    if (lack != NULL)
        lack->is_fault = driver_explain(&answer, lack->why, sizeof lack->why);
    return 0;
}

int device_is_usable(int index, struct device_lack *lack)
{
    int count;
    const struct driver_device told = {.major = first_visible(&count) + index == OLD ? 7 : 9, .minor = 5};

    lack->is_fault = 1;
    return driver_allows(&told, lack->why, sizeof lack->why);
}

enum status device_open(int index, struct device **device)
{
    struct device *new;
    struct device_lack lack;
    int count, first = first_visible(&count);

    if (index < 0 || index >= count) {
        log_error("device %d of %d: there is none of that number", index, count);
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
    new->index = first + index;
    new->number = index;
    emulation_allow((size_t)device_block_bytes(new));
    *device = new;
    return STATUS_OK;
}

void device_close(struct device *device)
{
    free(device);
}

const char *device_name(const struct device *device)
{
    return device->index == BROKEN ? "a broken emulation" : "emulation";
}

int device_index(const struct device *device)
{
    return device->number;
}

const char *device_place(const struct device *device)
{
    static const char *const places[DEVICES] = {"emulated:0", "emulated:1", "emulated:2", "emulated:3",
                                                "emulated:4", "emulated:5", "emulated:6", "emulated:7",
                                                "emulated:8", "emulated:9"};

    return places[device->index];
}

const char *device_uuid(const struct device *device)
{
    return device_place(device);
}

int device_processors(const struct device *device)
{
    (void)device;
    return PROCESSORS; /* few, so that a block gets several groups */
}

int device_shared_bytes(const struct device *device)
{
    return device_block_bytes(device) + (1 << 10);
}

int device_block_bytes(const struct device *device)
{
    if (device->index >= NARROW)
        return 64 << 10; /* sm_75 */
    return device->index == SMALL ? 99 << 10 : 163 << 10; /* sm_89, and sm_80: blocks that are large have a multiprocessor for themselves */
}

int device_overlaps(const struct device *device)
{
    (void)device;
    return 1;
}

int device_clusters(const struct device *device)
{
    return device->index != SMALL; /* sm_89 */
}

struct CUstream_st *device_stream(const struct device *device)
{
    (void)device;
    return NULL;
}

enum status device_memory_left(struct device *device, size_t *free_bytes, size_t *all_bytes)
{
    (void)device;
    *free_bytes = *all_bytes = all_memory();
    return STATUS_OK;
}

static enum status take(const struct device *device, size_t bytes, const char *what, void **memory)
{
    size_t size = bytes > 0 ? bytes : 1;
    void *new = NULL;

    if (size > all_memory() || posix_memalign(&new, 256, size) != 0) {
        log_error("%s of %.3f GiB: device %d (%s) has %.3f of %.3f GiB free", what, (double)bytes / 0x1p30, device->index,
                  device_name(device), (double)all_memory() / 0x1p30, (double)all_memory() / 0x1p30);
        return STATUS_INTERNAL;
    }
    memset(new, 0, size);
    *memory = new;
    return STATUS_OK;
}

enum status device_memory_open(struct device *device, size_t bytes, const char *what, void **memory)
{
    return take(device, bytes, what, memory);
}

void device_memory_close(struct device *device, void *memory)
{
    (void)device;
    free(memory);
}

enum status device_host_open(struct device *device, size_t bytes, const char *what, void **memory)
{
    return take(device, bytes, what, memory);
}

void device_host_close(struct device *device, void *memory)
{
    (void)device;
    free(memory);
}

static int map(int file, size_t bytes, void **memory, const char **reason)
{
    void *there = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    *reason = strerror(errno);
    if (there == MAP_FAILED)
        return 0;
    *memory = there;
    return 1;
}

/* What a mapping begins with. */
struct head {
    size_t bytes; /* of all */
    int file;     /* the owner's, by which others find it */
};
enum { HEAD_BYTES = 256 };

static struct head *head_of(void *memory)
{
    return (struct head *)(void *)((char *)memory - HEAD_BYTES);
}

int device_share(struct device *device, size_t bytes, void **memory, void *handle, const char **reason)
{
    int file = memfd_create("device", 0);
    void *there;

    if (file < 0 || ftruncate(file, (off_t)(HEAD_BYTES + bytes)) != 0 || !map(file, HEAD_BYTES + bytes, &there, reason)) {
        *reason = strerror(errno);
        if (file >= 0)
            close(file);
        return 0;
    }
    *(struct head *)there = (struct head){HEAD_BYTES + bytes, file};
    snprintf(handle, DEVICE_HANDLE_BYTES, "/proc/%d/fd/%d", device->index == ALONE ? 0 : (int)getpid(), file);
    *memory = (char *)there + HEAD_BYTES;
    return 1;
}

void device_leave(struct device *device, void *memory)
{
    (void)device;
    (void)munmap(head_of(memory), head_of(memory)->bytes);
}

void device_share_close(struct device *device, void *memory)
{
    close(head_of(memory)->file);
    device_leave(device, memory);
}

int device_reach(struct device *device, const void *handle, void **memory, const char **reason)
{
    int file = open(handle, O_RDWR), is_there;
    struct stat found;
    void *there;

    (void)device;
    *reason = strerror(errno);
    if (file < 0)
        return 0;
    is_there = fstat(file, &found) == 0 && map(file, (size_t)found.st_size, &there, reason);
    close(file);
    if (is_there)
        *memory = (char *)there + HEAD_BYTES;
    return is_there;
}

void device_write(struct device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    memcpy(to, from, bytes);
}

void device_copy_in(struct device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    emulation_copy(to, from, bytes);
}

void device_copy_out(struct device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    emulation_copy(to, from, bytes);
}

void device_copy(struct device *device, void *to, const void *from, size_t pitch, size_t bytes, size_t rows)
{
    (void)device;
    for (size_t row = 0; row < rows; row++)
        emulation_copy((char *)to + row * pitch, (const char *)from + row * pitch, bytes);
}

void device_launched(struct device *device, const char *kernel)
{
    if (device->index == BROKEN && device->failed == NULL)
        device->failed = kernel;
}

void device_record(struct device *device)
{
    (void)device;
    emulation_record();
}

struct device_graph *device_recorded(struct device *device)
{
    (void)device;
    return emulation_recorded();
}

void device_play(struct device *device, struct device_graph *graph)
{
    (void)device;
    emulation_play(graph);
}

void device_graph_close(struct device_graph *graph)
{
    emulation_forget(graph);
}

int device_idle(struct device *device)
{
    (void)device;
    return 1;
}

enum status device_finish(struct device *device)
{
    if (device->failed == NULL)
        return STATUS_OK;
    if (!device->told)
        log_error("%s on device %d (%s): refused; nothing more can be computed there, start the job again", device->failed, device->index,
                  device_name(device));
    device->told = 1;
    return STATUS_INTERNAL;
}
