/* What the device's memory gives: reading, by several sizes and cuts, of which the best counts, and copying.
 *
 * bench_bandwidth [MEGABYTES]      the largest size, by default 4096
 *
 * Lines "figure,megabytes,cut,value,GB/s"; the last one, "read_bandwidth", is the best reading of the largest size. A copy counts what it
 * reads and what it writes. Times are of several launches in a row, from the first's start to the last's end. */
#include "common/backend/cuda/device.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include "launch/dev/gpu/bandwidth.h"

#include <stdio.h>
#include <stdlib.h>

enum { MEGABYTE = 1 << 20, LAUNCHES = 8, REPETITIONS = 3, LARGEST = 1 << 20 };

struct bench {
    struct device *device;
    char *memory; /* [2][bytes] */
    void *sink;
    size_t bytes;
};

/* Bytes in a nanosecond. */
static enum status rate(const struct bench *bench, size_t bytes, const struct bandwidth_cut *cut, int is_copy, double *best)
{
    struct CUstream_st *stream = device_stream(bench->device);

    *best = 0;
    for (int i = -1; i < REPETITIONS; i++) { /* one to warm up */
        int64_t start = clock_ns();
        double now;

        for (int j = 0; j < LAUNCHES; j++) {
            if (is_copy)
                bandwidth_copy_start(bench->memory + bench->bytes, bench->memory, bytes, cut, stream);
            else
                bandwidth_read_start(bench->memory, bytes, cut, bench->sink, stream);
            device_launched(bench->device, is_copy ? "copy_memory" : "read_memory");
        }
        TRY(device_finish(bench->device));
        now = (double)bytes * LAUNCHES * (is_copy ? 2 : 1) / (double)(clock_ns() - start);
        *best = i >= 0 && now > *best ? now : *best;
    }
    return STATUS_OK;
}

static enum status read_size(const struct bench *bench, size_t bytes, double *best)
{
    static const int blocks[] = {2, 4, 8}, threads[] = {256, 512}, loads[] = {4, 8, 16}; /* blocks of each multiprocessor */
    struct bandwidth_cut best_cut = {0};

    *best = 0;
    for (int b = 0; b < 3; b++)
        for (int t = 0; t < 2; t++)
            for (int l = 0; l < 3; l++) {
                const struct bandwidth_cut cut = {blocks[b] * device_processors(bench->device), threads[t], loads[l]};
                double now;

                TRY(rate(bench, bytes, &cut, 0, &now));
                if (now > *best) {
                    *best = now;
                    best_cut = cut;
                }
            }
    printf("read,%zu,%d blocks of %d threads with %d loads,%.1f,GB/s\n", bytes / MEGABYTE, best_cut.blocks, best_cut.threads,
           best_cut.loads, *best);
    return STATUS_OK;
}

static enum status run(const struct bench *bench)
{
    const struct bandwidth_cut cut = {8 * device_processors(bench->device), 256, 4};
    double best = 0, copied;

    bandwidth_fill_start(bench->memory, 2 * bench->bytes, &cut, device_stream(bench->device));
    device_launched(bench->device, "fill_memory");
    for (size_t bytes = bench->bytes > 64 * (size_t)MEGABYTE ? bench->bytes / 16 : bench->bytes; bytes <= bench->bytes; bytes *= 4)
        TRY(read_size(bench, bytes, &best));
    TRY(rate(bench, bench->bytes, &cut, 1, &copied));
    printf("copy,%zu,%d blocks of %d threads with %d loads,%.1f,GB/s\n", bench->bytes / MEGABYTE, cut.blocks, cut.threads, cut.loads,
           copied);
    printf("read_bandwidth,%zu,best,%.1f,GB/s\n", bench->bytes / MEGABYTE, best);
    return STATUS_OK;
}

static enum status measure(size_t bytes)
{
    struct bench bench = {.bytes = bytes};
    void *memory = NULL;
    enum status status;

    TRY(device_open(0, &bench.device));
    TRY_TO(device_memory_open(bench.device, 2 * bytes, "the memory to read", &memory), close_device);
    bench.memory = memory;
    TRY_TO(device_memory_open(bench.device, 16, "the sink", &bench.sink), close_memory);
    printf("# %s, %d multiprocessors\n", device_name(bench.device), device_processors(bench.device));
    status = run(&bench);
    device_memory_close(bench.device, bench.sink);

close_memory:
    device_memory_close(bench.device, memory);
close_device:
    device_close(bench.device);
    return status;
}

int main(int count, char **words)
{
    long megabytes = count > 1 ? strtol(words[1], NULL, 10) : 4096;

    log_init("bench_bandwidth", LOG_INFO);
    if (count > 2 || megabytes < 1 || megabytes > LARGEST) {
        log_error("usage: %s [MEGABYTES], 1 to %d", words[0], LARGEST);
        return STATUS_USAGE;
    }
    return (int)measure((size_t)megabytes * MEGABYTE);
}
